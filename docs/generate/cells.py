"""What the walk shows of cells beside the story's own run: the coda's entries, and slots that recurrences share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reference import models, wfd
from reference.cli.inputs import Texts
from reference.engine import Output
from reference.figures import scenes, slots
from reference.figures.canvas import Words
from reference.figures.grid import Labels, snapshots
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts
from reference.models.tokenizer import load_tokenizer
from reference.schedule import Commit, Draft
from reference.sharing import slot_map

_CODA_MODEL: Final = "tiny-huginn"
_CODA_DEPTH: Final = 4
_CODA_ROWS: Final = 8
"""Ticks with readouts that are drawn."""
_FRAMED: Final = 6
"""Which of them has its reads framed."""
_SLOTS: Final = 2
_DRAFT_DEPTHS: Final = (1, 2)
"""Below the bound, and at it."""


@dataclass(frozen=True)
class Cells:
    """The runs."""

    coda: Output
    """WFD of a model with attention in its coda."""
    coda_labels: Labels
    """Gives the text of its tokens."""
    shared: Mapping[int, Output]
    """WFD with shared slots, by draft depth."""
    labels: Labels
    """Gives the text of their tokens."""

    @property
    def readout_ticks(self) -> list[int]:
        """Ticks of the first run that wrote a coda entry, in order."""
        return sorted({event.tick for event in self.coda.events if isinstance(event, Commit | Draft) and event.tick})

    @property
    def by_recurrence(self) -> tuple[int, ...]:
        """The slot of every recurrence where slots are shared."""
        found = slot_map(_SLOTS, recurrence_depth=self.recurrence_depth, recurrent_layers=1).by_recurrence
        assert found is not None
        return found

    @property
    def recurrence_depth(self) -> int:
        """T of the runs with shared slots."""
        return next(snapshots(self.shared[_DRAFT_DEPTHS[0]].events)).start.recurrence_depth

    def scene(self, draft_depth: int) -> scenes.Scene:
        """Frames the first tick at which the wave of a run is full."""
        shown = scenes.opening(self.shared[draft_depth].events, most_ticks=2 * self.recurrence_depth)
        return scenes.scene(max(shown, key=lambda one: (one.num_rows, -one.tick)))

    def seen(self, draft_depth: int) -> tuple[slots.Found, ...]:
        """Gives what the youngest lane found in that tick at positions in flight or just finished."""
        scene = self.scene(draft_depth)
        _, _, seen = slots.found(scene, self.by_recurrence)
        return tuple(one for one in seen if one.position >= scene.snapshot.start.prompt_length)


def decode(model: LoopedModel, texts: Texts, flavour: str, prompt: str) -> Cells:
    """Decodes a prompt with shared slots, and one of the same flavour with the other model.

    Args:
        model: The model of the walk.
        texts: Its tokenizer.
        flavour: The kind of prompt.
        prompt: Its text.
    """
    coda_model, coda_texts = models.load(_CODA_MODEL), Texts(load_tokenizer(_CODA_MODEL))
    coda_ids, ids = coda_texts.ids(default_prompts()[flavour]), texts.ids(prompt)
    return Cells(
        coda=wfd.generate(coda_model, coda_ids, max_new_tokens=12, draft_depth=_CODA_DEPTH),
        coda_labels=coda_texts.label,
        shared={
            depth: wfd.generate(model, ids, max_new_tokens=12, draft_depth=depth, kv_slots=_SLOTS)
            for depth in _DRAFT_DEPTHS
        },
        labels=texts.label,
    )


def values(cells: Cells) -> dict[str, str]:
    """Gives all that the pages say of these runs, by its name there."""
    low, high = _DRAFT_DEPTHS
    framed, entries = _framed(cells)
    verified = next(event.position - 1 for event in framed if isinstance(event, Commit))
    drafted = next(event.position for event in framed if isinstance(event, Draft))
    between = [position for position, entry in entries.items() if entry.depth == _CODA_DEPTH and position < drafted]
    scene = cells.scene(low)
    reader, slot, _ = slots.found(scene, cells.by_recurrence)
    other = next(one for one in cells.seen(low) if not one.is_ars)
    assert all(one.is_ars for one in cells.seen(high)), "the page says that d is at the bound"
    last = max(recurrence for recurrence, one in enumerate(cells.by_recurrence) if one == slot)
    return {
        "coda_model": _CODA_MODEL,
        "coda_depth": str(_CODA_DEPTH),
        "coda_full": str(next(snapshots(cells.coda.events)).start.recurrence_depth),
        "coda_tick": str(framed[0].tick),
        "coda_verified": str(verified),
        "coda_drafted": str(drafted),
        "coda_provisional": " and ".join(map(str, sorted(between))),
        "coda_alt": (
            f"A grid of positions and ticks with readouts. Each tick a square appears where a verification wrote, "
            f"over the circle that a draft had left there, and a circle further right. In tick {framed[0].tick} the "
            f"cells up to position {verified} are framed: all are squares."
        ),
        "shared_slots": str(_SLOTS),
        "shared_left": " and ".join(map(str, slots.held(cells.recurrence_depth, cells.by_recurrence))),
        "shared_low": str(low),
        "shared_high": str(high),
        "shared_full": str(cells.recurrence_depth),
        "shared_tick": str(scene.snapshot.tick),
        "shared_reader": str(reader.position),
        "shared_recurrence": str(reader.depth - 1),
        "shared_slot": str(slot),
        "shared_other": str(other.position),
        "shared_found": str(other.recurrence),
        "shared_last": str(last),
        "shared_bounds": "\n".join(_bounds(cells.recurrence_depth)),
        "shared_alt": (
            f"Two moments with {_SLOTS} slots at each position. With d = {low} one of the cells that the youngest lane "
            f"reads, at position {other.position}, is framed as one that AR would find otherwise. With d = {high} all "
            "are framed as AR finds them."
        ),
    }


def figures(cells: Cells, said: Mapping[str, str]) -> dict[str, str]:
    """Gives the pictures, by name."""
    ticks = cells.readout_ticks[:_CODA_ROWS]
    moments = [(cells.scene(depth), _sentence(cells, depth)) for depth in _DRAFT_DEPTHS]
    return {
        "coda": slots.coda(
            cells.coda.events,
            cells.coda_labels,
            Words("The coda's entries", said["coda_alt"]),
            last_tick=ticks[-1],
            framed=ticks[_FRAMED],
        ),
        "shared": slots.shared(
            moments, cells.labels, Words("Shared slots", said["shared_alt"]), slots=cells.by_recurrence
        ),
    }


def _framed(cells: Cells) -> tuple[list[Commit | Draft], Mapping[int, slots.Entry]]:
    """Gives the readouts of the tick whose reads are framed, and the coda's entries after it."""
    tick = cells.readout_ticks[_FRAMED]
    happened = [event for event in cells.coda.events if isinstance(event, Commit | Draft) and event.tick == tick]
    after = dict(
        zip((one.tick for one in snapshots(cells.coda.events)), slots.coda_entries(cells.coda.events), strict=True)
    )
    return happened, after[tick]


def _sentence(cells: Cells, draft_depth: int) -> str:
    reader, slot, _ = slots.found(cells.scene(draft_depth), cells.by_recurrence)
    return f"with d = {draft_depth}: position {reader.position} made recurrence {reader.depth - 1} and read slot {slot}"


def _bounds(recurrence_depth: int) -> list[str]:
    least = [
        slot_map(number, recurrence_depth=recurrence_depth, recurrent_layers=1).least_draft_depth
        for number in range(1, recurrence_depth + 1)
    ]
    return [
        "| slots s | " + " | ".join(str(number) for number in range(1, recurrence_depth + 1)) + " |",
        "| --- |" + " ---: |" * recurrence_depth,
        "| least d | " + " | ".join(map(str, least)) + " |",
    ]
