"""The walk: docs/walkthrough.md and its figures, from a real run of the shipped tiny-ouro.

The page's text is docs/walkthrough.md.in; every number, token and picture in it is put in here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from string import Template
from typing import Final

from docs.generate import DOCS
from reference import ar, models, trace, wfd
from reference.cli.inputs import Texts
from reference.engine import Output
from reference.figures import scenes, svg
from reference.figures.grid import Labels, Mark, Outcome, Snapshot, Verdict, short, snapshots
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.schedule import Accept, Event, Reject

MODEL: Final = "tiny-ouro"
"""The model shown."""
_DRAFT_DEPTH: Final = 1
_OTHER_DEPTH: Final = 2
_MAX_NEW_TOKENS: Final = 128
_MOST_TICKS: Final = 14


class NoRunToShowError(RuntimeError):
    """No default prompt leads to a run with a full wavefront and then a rejection among its first ticks."""


@dataclass(frozen=True)
class Story:
    """The runs that the page tells of."""

    flavour: str
    """The kind of prompt."""
    prompt: str
    """Its text."""
    text: str
    """The answer."""
    labels: Labels
    """Gives the text of a token."""
    plain: Output
    """AR."""
    wave: Output
    """WFD."""
    other: Output
    """WFD at another draft depth."""

    @cached_property
    def opening(self) -> tuple[Snapshot, ...]:
        """The ticks in the long picture."""
        return scenes.opening(self.wave.events, most_ticks=_MOST_TICKS)

    @cached_property
    def rejection(self) -> Snapshot | None:
        """The first rejection in it."""
        return next((one for one in self.opening if one.rejects), None)

    @cached_property
    def before(self) -> tuple[Snapshot, ...]:
        """The ticks before that rejection, tick 0 left out."""
        assert self.rejection is not None
        return self.opening[1 : self.rejection.tick]

    @property
    def tells_everything(self) -> bool:
        """Whether the picture shows the wave at full width, a rejection behind it, and the ticks after."""
        if self.rejection is None or self.opening[-1].tick < self.rejection.tick + 2:
            return False
        return any(one.num_rows == scenes.wavefront_width(one) for one in self.before)


def find_story() -> Story:
    """Gives the first default prompt whose run shows everything.

    Raises:
        NoRunToShowError: If there is none.
    """
    model, texts = models.load(MODEL), Texts(load_tokenizer(MODEL))
    for flavour, prompt in default_prompts().items():
        story = tell(model, texts, flavour, prompt)
        if story.tells_everything:
            return story
    message = f"within {_MOST_TICKS} ticks, on any of {', '.join(default_prompts())}"
    raise NoRunToShowError(message)


def tell(model: LoopedModel, texts: Texts, flavour: str, prompt: str) -> Story:
    """Decodes a prompt in all the ways that the page speaks of."""
    ids = texts.ids(prompt)
    plain = ar.generate(model, ids, max_new_tokens=_MAX_NEW_TOKENS)
    wave, other = (
        wfd.generate(model, ids, max_new_tokens=_MAX_NEW_TOKENS, draft_depth=depth)
        for depth in (_DRAFT_DEPTH, _OTHER_DEPTH)
    )
    assert plain.token_ids == wave.token_ids == other.token_ids
    return Story(flavour, prompt, texts.text(wave.token_ids), texts.label, plain, wave, other)


def pages(story: Story, docs: Path) -> Mapping[Path, str]:
    """Gives the content of every generated file."""
    said = values(story)
    text = Template((DOCS / "walkthrough.md.in").read_text(encoding="utf-8")).substitute(said)
    note = "<!-- Written by docs/generate from walkthrough.md.in; change it there. -->\n\n"
    return {docs / "walkthrough.md": note + text} | {
        docs / "figures" / f"{name}.svg": figure for name, figure in _figures(story, said).items()
    }


def values(story: Story) -> dict[str, str]:
    """Gives all that the page says in numbers and tokens, by its name there."""
    return _values(story) | _alternatives(story)


def _figures(story: Story, said: Mapping[str, str]) -> dict[str, str]:
    plain = tuple(islice(snapshots(story.plain.events), 3 * story.opening[0].start.recurrence_depth + 1))
    return {
        "ar": svg.history(plain, story.labels, svg.Words("AR, tick by tick", said["ar_alt"])),
        "wave": svg.states([_wave(story)], story.labels, svg.Words("The wavefront", said["wave_alt"])),
        "flush": svg.states(_flush(story), story.labels, svg.Words("A flush", said["flush_alt"])),
        "wfd": svg.history(story.opening, story.labels, svg.Words("WFD, tick by tick", said["history_alt"])),
    }


def _wave(story: Story) -> scenes.Scene:
    """Frames the first tick with the widest wave."""
    return scenes.scene(max(story.before, key=lambda one: (one.num_rows, -one.tick)))


def _flush(story: Story) -> list[scenes.Scene]:
    """Frames the rejection and the ticks around it, all three on the same positions."""
    assert story.rejection is not None
    tick = story.rejection.tick
    first = scenes.scene(story.opening[tick - 1])
    return [scenes.Scene(one, first.first, first.width) for one in story.opening[tick - 1 : tick + 2]]


def _values(story: Story) -> dict[str, str]:
    """Gives what the page says in numbers and tokens."""
    start, counts = story.opening[0].start, story.wave.counts
    full, draft, first = start.recurrence_depth, start.draft_depth, start.prompt_length
    tokens = [_token(story, token) for token in story.wave.token_ids]
    num_tokens = counts.committed - 1
    verdicts = [isinstance(event, Accept) for event in story.wave.events if isinstance(event, Accept | Reject)]
    accepted = sum(verdicts[: num_tokens - 1])
    rejected = num_tokens - 1 - accepted
    wave = _wave(story).snapshot
    lanes = [column for column in wave.columns if column.mark is not Mark.COMMITTED]
    rejection, outcome = _rejection(story)
    judged = counts.accepted + counts.rejected
    return {
        "flavour": story.flavour,
        "prompt": story.prompt.rstrip("\n"),
        "text": story.text.strip("\n"),
        "prompt_length": str(first),
        "committed": str(counts.committed),
        "num_tokens": str(num_tokens),
        "full": str(full),
        "draft": str(draft),
        "draft_recurrences": _counted(draft, "recurrence"),
        "width": str(scenes.wavefront_width(wave)),
        "most_flushed": _counted(scenes.wavefront_width(wave) - 1, "lane"),
        "first_position": str(first),
        "first_token": tokens[0],
        "second_position": str(first + 1),
        "second_token": tokens[1],
        "ar_ticks": str(story.plain.counts.ticks),
        "ar_rate": f"{story.plain.counts.ticks / num_tokens:.2f}",
        "judged": str(judged),
        "accepted": str(counts.accepted),
        "alpha": f"{counts.acceptance_rate:.2f}",
        "wave_tick": str(wave.tick),
        "wave_rows": _counted(len(lanes), "row"),
        "wave_count": _counted(len(lanes), "lane"),
        "wave_lanes": "\n".join(
            f"- position {column.position}, “{_token(story, column.token)}”, at depth {column.depth}: "
            f"{'a final token' if column.mark is Mark.VERIFYING else 'a guess'}"
            for column in lanes
            if column.token is not None
        ),
        "reject_tick": str(rejection.tick),
        "restart_tick": str(rejection.tick + 1),
        "reject_position": str(outcome.position),
        "right_token": _token(story, outcome.token),
        "wrong_token": _token(story, outcome.draft_token),
        "verifier_position": str(outcome.position - 1),
        "verifier_token": tokens[outcome.position - 1 - first],
        "flushed_count": _counted(outcome.num_flushed, "lane"),
        "tick_table": "\n".join(_table(story)),
        "deciding": _counted(num_tokens - 1, "verdict"),
        "deciding_all": str(num_tokens - 1),
        "deciding_accepted": str(accepted),
        "deciding_rejected": str(rejected),
        "wfd_ticks": str(counts.ticks),
        "wfd_rate": f"{counts.ticks / num_tokens:.2f}",
        "wfd_rows": f"{counts.lane_ticks / counts.ticks:.2f}",
        "wasted": str(counts.lane_ticks - num_tokens * full),
        "speedup": f"{story.plain.counts.ticks / counts.ticks:.2f}",
        "expected": f"{counts.acceptance_rate * draft + (1 - counts.acceptance_rate) * full:.2f}",
        "best_ticks": str(full + (num_tokens - 1) * draft),
        "worst_ticks": str(num_tokens * full),
        "trace": "\n".join(f"    {line}" for line in _lines_of(story.wave.events, rejection.tick)),
        "ar_alt": (
            f"A grid of positions and ticks. One position moves at a time; each takes {full} ticks, "
            "and the next one begins only then."
        ),
        "wave_alt": (
            f"A grid of positions and depths after tick {wave.tick}. The lanes form a diagonal: "
            + ", ".join(f"position {column.position} at depth {column.depth}" for column in lanes)
            + "."
        ),
        "flush_alt": (
            f"The grid after ticks {rejection.tick - 1}, {rejection.tick} and {rejection.tick + 1}: "
            f"a wave of {_counted(story.opening[rejection.tick - 1].num_rows, 'lane')}; "
            f"{outcome.num_flushed} of them crossed out; one lane at depth 1."
        ),
        "history_alt": (
            f"A grid of positions and ticks. Up to {wave.num_rows} positions move in a tick, as diagonals; in tick "
            f"{rejection.tick} the wave is crossed out, {_counted(outcome.num_flushed, 'lane')}, and starts again."
        ),
    }


def _alternatives(story: Story) -> dict[str, str]:
    """Gives what the page says of another draft depth."""
    counts, start = story.other.counts, next(snapshots(story.other.events)).start
    return {
        "other_depth": str(start.draft_depth),
        "other_width": _counted(-(-start.recurrence_depth // start.draft_depth), "lane"),
        "other_accepted": str(counts.accepted),
        "other_judged": str(counts.accepted + counts.rejected),
        "other_ticks": str(counts.ticks),
    }


def _rejection(story: Story) -> tuple[Snapshot, Outcome]:
    assert story.rejection is not None
    return story.rejection, next(one for one in story.rejection.outcomes if one.verdict is Verdict.REJECTED)


def _table(story: Story) -> Iterator[str]:
    """Gives the first ticks as the lines of a table."""
    yield "| tick | lanes that moved | rows | what follows |"
    yield "| ---: | --- | ---: | --- |"
    for one in story.opening[1:]:
        moved = [column for column in one.columns if column.moved]
        depths = (column.dropped.depth if column.dropped else column.depth for column in moved)
        lanes = ", ".join(f"{column.position}:{depth}" for column, depth in zip(moved, depths, strict=True))
        yield f"| {one.tick} | {lanes} | {one.num_rows} | {_what_follows(story, one)} |"


def _what_follows(story: Story, snapshot: Snapshot) -> str:
    said = []
    for outcome in snapshot.outcomes:
        token = _token(story, outcome.token)
        if outcome.draft_token is not None:
            said.append(
                f"“{_token(story, outcome.draft_token)}” *rejected*, {_counted(outcome.num_flushed, 'lane')} flushed, "
                f"“{token}” committed"
            )
        else:
            said.append(f"“{token}” committed" + (", *accepted*" if outcome.verdict is Verdict.ACCEPTED else ""))
    return "; ".join(said).replace("|", "\\|")


def _lines_of(events: Sequence[Event], tick: int) -> list[str]:
    """Gives the trace of one tick."""
    return [
        line
        for event, line in zip(events, trace.to_jsonl(events).splitlines(), strict=True)
        if getattr(event, "tick", None) == tick
    ]


def _token(story: Story, token: int | None) -> str:
    assert token is not None
    return short(story.labels(token), 20)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
