"""A wavefront decoder. It shares no line with `reference`; it stands for an engine of yours."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from network import Lane, Network


@dataclass
class Run:
    """What decoding gave."""

    ids: list[int] = field(default_factory=list)
    reason: str = ""
    events: list[dict[str, object]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def trace(self) -> str:
        """JSON lines."""
        return "\n".join(json.dumps(event) for event in self.events)


class Engine:
    """Decodes one prompt after another."""

    def __init__(self, folder: Path) -> None:
        """Loads a folder in the official format."""
        self.network = Network(folder)

    def generate(self, prompt: list[int], budget: int, stop_ids: list[int], draft_depth: int) -> Run:
        """Decodes greedily."""
        self.network.clear()
        return Wave(self.network, prompt, budget, stop_ids, draft_depth).run()


class Wave:
    """One run."""

    def __init__(self, network: Network, prompt: list[int], budget: int, stop_ids: list[int], draft_depth: int) -> None:
        """Takes the problem."""
        self.network, self.prompt, self.stop_ids, self.draft_depth = network, prompt, stop_ids, draft_depth
        self.fits = len(prompt) + budget <= network.context + 1
        self.end = min(len(prompt) + budget, network.context + 1)
        self.frontier, self.tick = len(prompt), 0
        self.lanes: list[Lane] = []
        self.started: dict[int, int] = {}
        self.result = Run(counts=dict.fromkeys(("committed", "ticks", "accepted", "rejected", "flushed"), 0))
        parameters = {"recurrence_depth": network.depth, "draft_depth": draft_depth, "draft_length": None}
        limits = {"prompt_length": len(prompt), "max_new_tokens": budget, "context_length": network.context}
        start = {"event": "start", "version": 2, "decoder": "wfd", "stop_ids": stop_ids}
        self.result.events.append(start | parameters | limits)

    def run(self) -> Run:
        """Decodes."""
        if self.end == len(self.prompt):
            self.result.reason = "length"
        else:
            rows = [Lane(k, token, self.network.embed(token), 0) for k, token in enumerate(self.prompt)]
            for _ in range(self.network.depth):
                self.network.advance(rows)
            self.lanes = rows[-1:]
            self.verify(self.network.read_out(rows[-1]))
        while not self.result.reason:
            self.step()
        abandoned = [lane.position for lane in self.lanes]
        self.say("finish", reason=self.result.reason, abandoned=abandoned)
        return self.result

    def step(self) -> None:
        """Runs one tick: every lane one recurrence further, then a verification, then a draft."""
        self.tick += 1
        self.count("ticks")
        reads = self.network.advance(self.lanes)
        self.say("advance", lanes=[[lane.position, lane.token, lane.depth] for lane in self.lanes], reads=reads)
        if self.lanes[0].depth == self.network.depth:
            self.verify(self.network.read_out(self.lanes[0]))
        if self.result.reason:
            return
        source = self.lanes[-1]
        if source.depth == self.draft_depth < self.network.depth and source.position + 2 < self.end:
            token = self.network.read_out(source)
            self.say("draft", position=source.position, token=token)
            self.inject(source.position + 1, token)

    def verify(self, token: int) -> None:
        """Commits a token and judges the draft that was made for it."""
        self.say("commit", position=self.frontier, token=token)
        self.result.ids.append(token)
        self.count("committed")
        behind = self.lanes[1:]
        if behind and behind[0].token == token:
            self.count("accepted")
            self.say("accept", position=self.frontier)
        elif behind:
            self.count("rejected")
            self.count("flushed", len(behind))
            self.say("reject", position=self.frontier, draft_token=behind[0].token, verified_token=token)
            self.say("flush", positions=[lane.position for lane in behind])
            self.network.cut(self.frontier)
            behind = []
        self.lanes = behind
        self.frontier += 1
        if token in self.stop_ids:
            self.result.reason = "eos"
        elif self.frontier == self.end:
            self.result.reason = "length" if self.fits else "context"
        elif not self.lanes:
            self.inject(self.frontier - 1, token)

    def inject(self, position: int, token: int) -> None:
        """Starts a lane."""
        self.say("inject", position=position, token=token)
        incarnation = self.started.get(position, 0)
        self.started[position] = incarnation + 1
        self.lanes.append(Lane(position, token, self.network.embed(token), incarnation))

    def say(self, event: str, **values: object) -> None:
        """Writes a line of the trace."""
        self.result.events.append({"event": event, "tick": self.tick, **values})

    def count(self, name: str, number: int = 1) -> None:
        """Counts something."""
        self.result.counts[name] += number
