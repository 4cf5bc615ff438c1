"""Events in words, the clauses that ask for them, and verdicts as JSON."""

import math
from dataclasses import replace

from reference.schedule import Accept, Advance, Commit, Draft, Event, Finish, Flush, Inject, Reject, Start


def describe(event: Event) -> str:
    """Gives an event in a few words."""
    match event:
        case Start():
            text = f"start of {event.decoder}"
        case Advance():
            text = f"advance of {listed(tuple(lane.position for lane in event.lanes))}"
        case Draft():
            text = f"draft {event.token} at position {event.position}"
        case Commit():
            text = f"commit of {event.token} at position {event.position}"
        case Accept():
            text = f"acceptance at position {event.position}"
        case Reject():
            text = f"rejection at position {event.position}, {event.draft_token} against {event.verified_token}"
        case Flush():
            text = f"flush of {listed(event.positions)}"
        case Inject():
            text = f"lane at position {event.position} with token {event.token}"
        case Finish():
            text = f"finish, {event.reason}, {listed(event.abandoned)} abandoned"
    return text


def listed(positions: tuple[int, ...]) -> str:
    """Gives positions in words."""
    return f"positions {', '.join(map(str, positions))}" if positions else "no positions"


def ascending(event: Event) -> Event:
    """Gives an event with its positions ascending: the order in which lanes are dropped says nothing."""
    match event:
        case Flush():
            return replace(event, positions=tuple(sorted(event.positions)))
        case Finish():
            return replace(event, abandoned=tuple(sorted(event.abandoned)))
        case _:
            return event


def clause_of(owed: Event) -> str:
    """Gives the clause that asks for an event which a commit brings about."""
    match owed:
        case Accept() | Reject():
            return "SMP-12"
        case Inject(tick=0):
            return "SMP-11"
        case Flush() | Inject():
            return "SMP-13"
        case _:
            return "SMP-14"


def plain(value: object) -> object:
    """Gives a value as JSON has it; a number that is not finite, which JSON lacks, is None."""
    match value:
        case dict():
            return {name: plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value
