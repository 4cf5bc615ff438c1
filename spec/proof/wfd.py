"""WFD is right for all parameters, lengths, budgets, stop ids and heads.

The invariants hold after prefill, every tick keeps them, and every claim follows from them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from spec.proof.logic import (
    Function,
    Obligation,
    Term,
    all_of,
    any_of,
    for_one,
    if_else,
    implies,
    least,
    no,
)
from spec.proof.wave import (
    ANY,
    AR,
    ASSUMPTIONS,
    WIDTH,
    State,
    Text,
    World,
    any_state,
    ar_text,
    ar_token,
    drafted,
    full_depth,
    holds,
    preserved,
    shared_invariants,
    start,
)

CASES: Final = ("climb", "accept", "reject", "restart", "finish")
"""What a tick can be; `climb` and `accept` inject a draft as well, if one is due."""

BUGS: Final[Mapping[str, str]] = {
    "a flush forgets the youngest lane": "reject: WFD-07 spacing",
    "a fresh lane skips a recurrence": "reject: WFD-12 ticks",
    "every draft is accepted": "accept: oldest is final",
    "drafts one recurrence early": "climb: WFD-07 spacing",
    "cells of a flushed lane stay valid": "reject: KV-04 other cells",
    "a verification leaves the provisional entry": "accept: KV-07 finished entries",
    "a draft is started beyond the end": "climb: SMP-15 injection",
}
"""Wrong steps, each with an obligation that it leaves unproved."""


# ---- the step -------------------------------------------------------------------------------------------------------


def draft_due(world: World, s: State, bug: str | None = None) -> Term:
    """Says whether the youngest lane is read out at `d` in this tick (WFD-04)."""
    early = 1 if bug == "drafts one recurrence early" else 0
    beyond = 0 if bug == "a draft is started beyond the end" else 1
    return all_of(
        s.depth(s.youngest) + 1 == world.draft_depth - early,
        world.draft_depth < world.recurrence_depth,
        world.may_inject(s.position(s.youngest) + beyond),
    )


def is_case(world: World, case: str, s: State, y: Term, bug: str | None = None) -> Term:
    """Says whether a tick in state `s` is of this case, if the full depth says `y` should it be asked."""
    due = s.depth(0) + 1 == world.recurrence_depth
    ends = world.ends(s.frontier + 1, y)
    followed = s.num_lanes > 1
    right = bug == "every draft is accepted" or s.token(1) == y
    match case:
        case "climb":
            return no(due)
        case "accept":
            return all_of(due, no(ends), followed, right)
        case "reject":
            return all_of(due, no(ends), followed, no(right))
        case "restart":
            return all_of(due, no(ends), no(followed))
        case _:
            return all_of(due, ends)


def step(world: World, case: str, s: State, y: Term, g: Term, bug: str | None = None) -> State:
    """Gives the state after a tick of the given case.

    Args:
        world: Parameters and heads.
        case: One of `CASES`.
        s: The state before.
        y: What the full depth says of the oldest lane.
        g: What the draft head says of the youngest lane.
        bug: One of `BUGS`, to be built in.
    """
    retired = 0 if case == "climb" else 1
    frontier = s.frontier + retired
    judged = all_of(case == "finish", s.num_lanes > 1)
    is_right = any_of(case == "accept", all_of(judged, s.token(1) == y))
    is_wrong = any_of(case == "reject", all_of(judged, s.token(1) != y))
    moved = replace(
        s,
        frontier=frontier,
        final=lambda p: if_else(all_of(retired == 1, p == s.frontier), y, s.final(p)),
        ticks=s.ticks + 1,
        accepted=s.accepted + if_else(is_right, 1, 0),
        rejected=s.rejected + if_else(is_wrong, 1, 0),
        **_written(world, case, s, bug),
    )
    if case in ("climb", "accept"):
        return _go_on(world, moved, s, g, retired=retired, due=draft_due(world, s, bug))
    return _start_afresh(world, moved, s, y, case=case, bug=bug)


def _written(world: World, case: str, s: State, bug: str | None) -> dict[str, Function]:
    """Gives cells and coda entries after the call and the readouts, before anything is dropped."""
    due = draft_due(world, s, bug)

    def cell(p: Term, r: Term) -> Term:
        """Every lane writes the cell of its recurrence."""
        i = p - (s.frontier - 1)
        return if_else(all_of(s.has(i), s.depth(i) == r), s.text(i), s.cell(p, r))

    def is_verified(p: Term) -> Term:
        is_kept = all_of(bug == "a verification leaves the provisional entry", s.entry_depth(p) != 0)
        return all_of(case != "climb", p == s.position(0), no(is_kept))

    def is_drafted(p: Term) -> Term:
        return all_of(due, p == s.position(s.youngest))

    def entry(p: Term) -> Term:
        return if_else(is_verified(p), s.text(0), if_else(is_drafted(p), s.text(s.youngest), s.entry(p)))

    def entry_depth(p: Term) -> Term:
        drafted_or_old = if_else(is_drafted(p), world.draft_depth, s.entry_depth(p))
        return if_else(is_verified(p), world.recurrence_depth, drafted_or_old)

    return {"cell": cell, "entry": entry, "entry_depth": entry_depth}


def _go_on(world: World, moved: State, s: State, g: Term, *, retired: int, due: Term) -> State:
    """Completes a tick that drops nothing: the lanes that are left, and the drafted one behind them."""
    left = s.num_lanes - retired

    def is_new(i: Term) -> Term:
        return all_of(due, i == left)

    return replace(
        moved,
        num_lanes=left + if_else(due, 1, 0),
        position=lambda i: if_else(is_new(i), s.position(s.youngest) + 1, s.position(i + retired)),
        depth=lambda i: if_else(is_new(i), 0, s.depth(i + retired) + 1),
        token=lambda i: if_else(is_new(i), g, s.token(i + retired)),
        text=lambda i: if_else(is_new(i), world.extend(s.text(s.youngest), g), s.text(i + retired)),
    )


def _start_afresh(world: World, moved: State, s: State, y: Term, *, case: str, bug: str | None) -> State:
    """Completes a tick that leaves one fresh lane, or none: every other incarnation that is not final has ended."""
    keeps_one = all_of(bug == "a flush forgets the youngest lane", case == "reject", s.num_lanes - 1 > 1)
    first_depth = 1 if bug == "a fresh lane skips a recurrence" and case == "reject" else 0
    surplus = 2 if bug == "cells of a flushed lane stay valid" else 0

    def counts(p: Term) -> Term:
        return p < moved.frontier - 1 + surplus

    return replace(
        moved,
        num_lanes=if_else(keeps_one, 2, 0 if case == "finish" else 1),
        position=lambda i: if_else(i == 0, s.frontier, s.position(s.youngest)),
        depth=lambda i: if_else(i == 0, first_depth, s.depth(s.youngest) + 1),
        token=lambda i: if_else(i == 0, y, s.token(s.youngest)),
        text=lambda i: if_else(i == 0, world.extend(s.text(0), y), s.text(s.youngest)),
        cell=lambda p, r: if_else(counts(p), moved.cell(p, r), world.nothing),
        entry=lambda p: if_else(counts(p), moved.entry(p), world.nothing),
        entry_depth=lambda p: if_else(counts(p), moved.entry_depth(p), 0),
    )


# ---- invariants and claims ------------------------------------------------------------------------------------------


def invariants(world: World, ar: Text) -> dict[str, Function]:
    """Gives all invariants of WFD between ticks."""
    full, shallow = world.recurrence_depth, world.draft_depth

    def spacing(s: State, i: Term) -> Term:
        return implies(s.has(i), s.depth(i) == s.depth(0) - i * shallow)

    def in_range(s: State) -> Term:
        return all_of(s.depth(0) < full, s.depth(s.youngest) >= 0)

    def eager(s: State) -> Term:
        return any_of(s.depth(s.youngest) < shallow, no(world.may_inject(s.position(s.youngest) + 1)))

    def provisional(s: State, i: Term) -> Term:
        p = s.position(i)
        behind = all_of(s.entry(p) == s.text(i), s.entry_depth(p) == shallow)
        return implies(s.has(i), if_else(i < s.youngest, behind, s.entry_depth(p) == 0))

    def ticks(s: State) -> Term:
        committed = s.frontier - 1 - world.prompt_length
        return s.ticks == shallow * s.accepted + full * (committed - s.accepted) + s.depth(0)

    def judged(s: State) -> Term:
        committed = s.frontier - 1 - world.prompt_length
        total = if_else(shallow < full, committed, 0)
        return all_of(s.accepted >= 0, s.rejected >= 0, s.accepted + s.rejected == total)

    return {
        **shared_invariants(world, ar),
        "WFD-07 spacing": spacing,
        "range of depths": in_range,
        "WFD-07 eager": eager,
        "KV-08 provisional entries": provisional,
        "WFD-12 ticks": ticks,
        "WFD-12 judged": judged,
    }


def obligations(bug: str | None = None) -> Iterator[Obligation]:
    """Gives everything that has to be proved."""
    world, s = ANY, any_state()
    known = invariants(world, AR)
    y, g = full_depth(s.text(0)), drafted
    begun = start(world, ar_token(world.prompt_length), ar_text)
    goes_on = no(world.ends(world.prompt_length + 1, ar_token(world.prompt_length)))
    for name, claim in known.items():
        yield Obligation(f"start: {name}", (*ASSUMPTIONS, goes_on), for_one(claim, skip=[begun]))

    given = (*ASSUMPTIONS, *holds(known, s))
    for case in CASES:
        guard, after = is_case(world, case, s, y, bug), step(world, case, s, y, g, bug)
        if case != "finish":
            yield from preserved(case, known, s, after, guard)
        for name, claim in _claims_of_a_step(world, case, s, after).items():
            yield Obligation(f"{case}: {name}", (*given, guard), for_one(claim))
    for name, claim in _claims_of_a_state(world, s, y, bug).items():
        yield Obligation(f"state: {name}", given, for_one(claim))


def _claims_of_a_state(world: World, s: State, y: Term, bug: str | None) -> dict[str, Function]:
    """Gives what holds in every state, and in the tick that begins there."""
    full, shallow = world.recurrence_depth, world.draft_depth
    due = s.depth(0) + 1 == full

    def reads_of_final_positions(i: Term, p: Term) -> Term:
        return implies(all_of(s.has(i), p >= 0, p < s.frontier - 1), s.cell(p, s.depth(i)) == ar_text(p))

    def reads_of_lanes(i: Term, j: Term) -> Term:
        return implies(all_of(s.has(i), j >= 0, j < i), s.cell(s.position(j), s.depth(i)) == s.text(j))

    def own_state(i: Term) -> Term:
        return implies(all_of(s.has(i), s.depth(i) > 0), s.cell(s.position(i), s.depth(i) - 1) == s.text(i))

    def writes(i: Term) -> Term:
        return implies(s.has(i), s.cell(s.position(i), s.depth(i)) == world.nothing)

    def cells(i: Term) -> Term:
        return implies(s.has(i), all_of(s.position(i) >= 0, s.position(i) < world.end - 1))

    def entries_for_verification(p: Term) -> Term:
        read = all_of(due, p >= 0, p < s.position(0))
        return implies(read, all_of(s.entry(p) == ar_text(p), s.entry_depth(p) == full))

    def entries_for_a_draft(j: Term) -> Term:
        read = all_of(draft_due(world, s), j >= 0, j < s.youngest)
        return implies(read, all_of(s.entry(s.position(j)) == s.text(j), s.entry_depth(s.position(j)) == shallow))

    def one_case() -> Term:
        found = [is_case(world, case, s, y, bug) for case in CASES]
        once = [no(all_of(a, b)) for number, a in enumerate(found) for b in found[number + 1 :]]
        return all_of(any_of(*found), *once)

    return {
        "WFD-08 width": lambda: s.num_lanes <= WIDTH,
        "KV-03 reads of final positions": reads_of_final_positions,
        "KV-03 reads of lanes": reads_of_lanes,
        "KV-03 own state": own_state,
        "KV-04 writes once": writes,
        "KV-02 cells": cells,
        "KV-07 entries for a verification": entries_for_verification,
        "KV-08 entries for a draft": entries_for_a_draft,
        "WFD-06 no judged draft at d = T": lambda: implies(shallow == full, s.num_lanes == 1),
        "WFD-10 bound": lambda: s.ticks < (world.end - world.prompt_length - 1) * full,
        "one case, and only one": one_case,
    }


def _claims_of_a_step(world: World, case: str, s: State, after: State) -> dict[str, Function]:
    """Gives what holds of every tick of a case."""
    full, shallow, prompt = world.recurrence_depth, world.draft_depth, world.prompt_length
    claims: dict[str, Function] = {}
    match case:
        case "climb":
            claims["WFD-10 progress"] = lambda: all_of(after.frontier == s.frontier, after.depth(0) == s.depth(0) + 1)
        case "accept":
            claims["WFD-10 progress"] = lambda: all_of(
                after.frontier == s.frontier + 1, after.depth(0) == full - shallow
            )
        case "reject":
            claims["WFD-10 progress"] = lambda: all_of(after.frontier == s.frontier + 1, after.depth(0) == 0)
            claims["WFD-09 flush"] = lambda: all_of(s.num_lanes - 1 >= 1, s.num_lanes - 1 <= WIDTH - 1)
        case "restart":
            claims["WFD-10 progress"] = lambda: all_of(after.frontier == s.frontier + 1, after.depth(0) == 0)
            claims["WFD-06 only at d = T"] = lambda: shallow == full
        case _:
            committed = after.frontier - 1 - prompt  # N
            decisive = s.accepted
            claims["WFD-11 identity"] = lambda p: implies(
                all_of(p >= prompt, p < after.frontier), after.final(p) == ar_token(p)
            )
            # AR ends at the first token at which the stop rule holds: here, and nowhere before.
            claims["WFD-11 end"] = lambda p: all_of(
                world.ends(after.frontier, ar_token(after.frontier - 1)),
                implies(all_of(p >= prompt, p < s.frontier), no(world.ends(p + 1, ar_token(p)))),
            )
            claims["WFD-12 ticks"] = lambda: (
                after.ticks == full + shallow * decisive + full * (committed - 1 - decisive)
            )
            claims["WFD-12 judged"] = lambda: implies(
                shallow < full, after.accepted + after.rejected == least(committed, world.end - prompt - 2)
            )
            claims["WFD-10 bound"] = lambda: after.ticks <= (world.end - prompt - 1) * full
            claims["WFD-13 against AR"] = lambda: committed * full - after.ticks == (full - shallow) * decisive
            claims["WFD-09 flush"] = lambda: s.num_lanes - 1 <= WIDTH - 1
    if case in ("climb", "accept"):
        retired = 0 if case == "climb" else 1
        claims["WFD-03 advance"] = lambda i: implies(
            all_of(i >= retired, i < s.num_lanes), after.depth(i - retired) == s.depth(i) + 1
        )
    return claims
