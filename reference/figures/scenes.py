"""Which moments of a run are worth a picture: the fullest wave, the first rejection, the fresh start behind it."""

from collections.abc import Iterable
from dataclasses import dataclass

from reference.figures.grid import Column, Mark, Snapshot, snapshots
from reference.schedule import Event

_CONTEXT = 2
"""Finished columns shown to the left of a wave."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment, with the positions around its wave."""

    snapshot: Snapshot
    """The moment."""
    first: int
    """Position of the first column to be shown."""
    width: int
    """Number of columns to be shown."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns to be shown."""
        return self.snapshot.between(self.first, self.first + self.width)


def wavefront_width(snapshot: Snapshot) -> int:
    """Gives W = ceil(T / d), the most lanes of a wavefront (WFD-08)."""
    return -(-snapshot.start.recurrence_depth // snapshot.start.draft_depth)


def scene(snapshot: Snapshot) -> Scene:
    """Frames one moment: two finished columns, then the wave, as wide as it can become."""
    first = snapshot.columns[0].position
    shown = max(first, snapshot.first_unfinished - _CONTEXT)
    begun = sum(column.mark is not Mark.COMMITTED for column in snapshot.columns)
    return Scene(snapshot, shown, _CONTEXT + max(wavefront_width(snapshot) + 1, begun))


def first_rejection(events: Iterable[Event]) -> Snapshot | None:
    """Gives the moment of the first rejection, if there is one."""
    return next((snapshot for snapshot in snapshots(events) if snapshot.rejects), None)


def key_scenes(events: Iterable[Event]) -> tuple[Scene, ...]:
    """Gives up to three moments in order: the wave at its fullest, the first rejection, the tick after it.

    A run without rejections has one: the first tick with the most rows.
    """
    run = tuple(events)
    rejection = first_rejection(run)
    end = rejection.tick + 1 if rejection else None
    before = [one for one in snapshots(run) if end is None or one.tick <= end]
    calm = [one for one in before if rejection is None or one.tick < rejection.tick]
    fullest = max(calm, key=lambda one: (one.num_rows, -one.tick))
    return tuple(scene(one) for one in (fullest, *(one for one in before if rejection and one.tick >= rejection.tick)))


def opening(events: Iterable[Event], *, most_ticks: int) -> tuple[Snapshot, ...]:
    """Gives the first ticks of a run: until three ticks behind the first rejection, if that is soon, else `most_ticks`.

    Args:
        events: The events of one run.
        most_ticks: The most ticks to give, beside tick 0.
    """
    shown: list[Snapshot] = []
    rejection: int | None = None
    for one in snapshots(events):
        if one.tick > most_ticks:
            break
        if rejection is None and one.rejects:
            rejection = one.tick
        shown.append(one)
        # A picture of a few ticks would not show the wave filling up.
        if rejection is not None and one.tick >= max(rejection + 3, 2 * one.start.recurrence_depth):
            break
    return tuple(shown)
