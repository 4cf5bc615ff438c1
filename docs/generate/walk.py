"""The walk: docs/walkthrough.md, docs/walk/ and their figures, from real runs of the shipped models.

The text of a page is the file of its name that ends in `.in`; every number, token and picture in it is put in here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from string import Template
from typing import Final

import torch

from docs.generate import DOCS, call, cells
from docs.generate.cells import Cells
from reference import ar, dtv, models, trace, wfd
from reference.cli.inputs import Texts
from reference.cost.closed_forms import expected_ticks_per_token
from reference.engine import Output
from reference.figures import canvas, scenes, slots, svg
from reference.figures.grid import Column, Labels, Mark, Outcome, Snapshot, Verdict, short, snapshots
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.oracle.tolerance import TOLERANCES
from reference.schedule import Accept, Event, Lane, Reject, Start

MODEL: Final = "tiny-ouro"
"""The model shown."""
_DRAFT_DEPTH: Final = 1
_OTHER_DEPTH: Final = 2
_DRAFT_LENGTHS: Final = (2, 4, 8)
_SHOWN_LENGTH: Final = 4
_MAX_NEW_TOKENS: Final = 128
_MOST_TICKS: Final = 14


_RATES: Final = (0.6, 0.8, 0.9, 0.95, 0.99)
_LENGTHS: Final = (1, 2, 4, 8, 16)
"""What the table of expected ticks is about."""

PAGES: Final = (
    "walkthrough",
    *(f"walk/{name}" for name in ("time", "drafts", "wavefront", "counting", "slots", "sharing", "lossless")),
)
"""The pages in their order."""


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
    rounds: Mapping[int, Output]
    """DtV, by draft length."""
    cells: Cells | None = None
    """Runs that show what else there is in cells."""

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
            rounds = _rounds(model, texts.ids(prompt))
            return replace(story, rounds=rounds, cells=cells.decode(model, texts, flavour, prompt))
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
    return Story(flavour, prompt, texts.text(wave.token_ids), texts.label, plain, wave, other, rounds={})


def _rounds(model: LoopedModel, ids: Sequence[int]) -> Mapping[int, Output]:
    return {
        length: dtv.generate(model, ids, max_new_tokens=_MAX_NEW_TOKENS, draft_depth=_DRAFT_DEPTH, draft_length=length)
        for length in _DRAFT_LENGTHS
    }


def pages(story: Story, docs: Path) -> Mapping[Path, str]:
    """Gives the content of every generated file."""
    said = values(story)
    texts = {docs / f"{name}.md": _page(name, said) for name in PAGES}
    return texts | {docs / "figures" / f"{name}.svg": figure for name, figure in _figures(story, said).items()}


def template(name: str) -> Template:
    """Gives the text of a page with places for what is computed."""
    return Template((DOCS / f"{name}.md.in").read_text(encoding="utf-8"))


def _page(name: str, said: Mapping[str, str]) -> str:
    note = f"<!-- Written by docs/generate from {Path(name).name}.md.in; change it there. -->\n\n"
    return note + template(name).substitute(said)


def values(story: Story) -> dict[str, str]:
    """Gives all that the page says in numbers and tokens, by its name there."""
    own = _values(story) | _alternatives(story) | _drafting(story) | _slots(story) | _times(story)
    return own | call.values() | cells.values(_cells(story))


def _cells(story: Story) -> Cells:
    assert story.cells is not None
    return story.cells


def _figures(story: Story, said: Mapping[str, str]) -> dict[str, str]:
    return _own_figures(story, said) | call.figures(said) | cells.figures(_cells(story), said)


def _own_figures(story: Story, said: Mapping[str, str]) -> dict[str, str]:
    plain = tuple(islice(snapshots(story.plain.events), 3 * story.opening[0].start.recurrence_depth + 1))
    return {
        "ar": svg.history(plain, story.labels, canvas.Words("AR, tick by tick", said["ar_alt"])),
        "dtv": svg.history(_first_rounds(story), story.labels, canvas.Words("DtV, tick by tick", said["dtv_alt"])),
        "reads": slots.reads(
            _wave(story),
            story.labels,
            canvas.Words("What a row reads", said["reads_alt"]),
            reader=_reader(story).position,
        ),
        "wave": svg.states([_wave(story)], story.labels, canvas.Words("The wavefront", said["wave_alt"])),
        "flush": svg.states(_flush(story), story.labels, canvas.Words("A flush", said["flush_alt"])),
        "wfd": svg.history(story.opening, story.labels, canvas.Words("WFD, tick by tick", said["history_alt"])),
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


def _times(story: Story) -> dict[str, str]:
    """Gives what the run's calls would take on the machine of the page on time."""
    rows = [one.num_rows for one in snapshots(story.wave.events) if one.tick]
    graph, eager = call.run_speedup(rows, num_single=story.plain.counts.ticks)
    return {"graph_speedup": graph, "eager_speedup": eager}


def _first_rounds(story: Story) -> tuple[Snapshot, ...]:
    """Gives the first ticks of the DtV run that is drawn: two rounds, or what there is of them."""
    start = story.opening[0].start
    length = 2 * (_SHOWN_LENGTH * start.draft_depth + start.recurrence_depth)
    return tuple(islice(snapshots(story.rounds[_SHOWN_LENGTH].events), length + 1))


def _drafting(story: Story) -> dict[str, str]:
    """Gives what the pages say of DtV."""
    start = story.opening[0].start
    full, draft = start.recurrence_depth, start.draft_depth
    round_length = _SHOWN_LENGTH * draft + full
    return {
        "dtv_length": str(_SHOWN_LENGTH),
        "dtv_round": str(round_length),
        "dtv_most": str(_SHOWN_LENGTH + 1),
        "remaining": str(full - draft),
        "dtv_runs": "\n".join(
            f"| {length} | {out.counts.ticks} | {out.counts.accepted} | {out.counts.rejected} | {out.counts.flushed} |"
            for length, out in story.rounds.items()
        ),
        "dilemma_table": "\n".join(_dilemma(start)),
        "dtv_alt": (
            f"A grid of positions and ticks. In each round of {round_length} ticks one position moves at a time until "
            f"{_SHOWN_LENGTH + 1} have depth {draft}, then all of them move together to depth {full}."
        ),
    }


def _dilemma(start: Start) -> Iterator[str]:
    """Gives expected ticks per token as the lines of a table."""
    yield "| α | " + " | ".join(f"γ = {length}" for length in _LENGTHS) + " | WFD |"  # noqa: RUF001 - the symbols of the pages
    yield "| ---: |" + " ---: |" * (len(_LENGTHS) + 1)
    for rate in _RATES:
        ticks = [
            expected_ticks_per_token(replace(start, decoder="dtv", draft_length=length), rate) for length in _LENGTHS
        ]
        shown = [f"**{one:.2f}**" if one == min(ticks) else f"{one:.2f}" for one in ticks]
        yield f"| {rate} | " + " | ".join(shown) + f" | {expected_ticks_per_token(start, rate):.2f} |"


def _reader(story: Story) -> Column:
    """Gives the lane whose reads are shown: the youngest that has begun to climb."""
    return next(column for column in reversed(_wave(story).columns) if column.mark is Mark.DRAFTING and column.depth)


def _slots(story: Story) -> dict[str, str]:
    """Gives what the pages say of slots and of margins."""
    reader = _reader(story)
    rejection, outcome = _rejection(story)
    dropped = next(column.dropped for column in rejection.columns if column.position == outcome.position)
    assert dropped is not None
    positions = range(outcome.position, outcome.position + outcome.num_flushed)
    return {
        "reader_position": str(reader.position),
        "reader_depth": str(reader.depth),
        "reader_next": str(reader.depth + 1),
        "flushed_positions": ", ".join(map(str, positions)),
        "overwrites": "\n".join(_overwrites(rejection, dropped)),
        "smallest_margin": f"{min(story.plain.margins):.2g}",
        "tolerance": f"{2 * TOLERANCES[torch.float32]:g}",
        "reads_alt": (
            f"The grid after tick {_wave(story).snapshot.tick}. In row {reader.depth + 1} the cells of all positions "
            f"before {reader.position} are framed and filled; its own, which is empty, is dashed."
        ),
    }


def _overwrites(rejection: Snapshot, dropped: Lane) -> Iterator[str]:
    """Gives what a lane that starts after a rejection finds in its cells, as the lines of a table."""
    for recurrence in range(rejection.start.recurrence_depth):
        written = rejection.tick - dropped.depth + recurrence + 1
        old = f"the dropped lane's, of tick {written}" if recurrence < dropped.depth else "nothing"
        yield f"| {rejection.tick + recurrence + 1} | {recurrence} | {old} |"


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
