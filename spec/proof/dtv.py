"""DtV is right for all parameters, draft lengths, lengths, budgets, stop ids and heads.

The last tick of a round verifies its lanes one after the other. The proof takes that tick in several steps: `arrive` is
its recurrent call, after which all lanes stand at depth T, and each further step is one verdict. `is_judging` marks the
states in between; ticks do not grow there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from spec.proof.logic import Function, Obligation, Term, all_of, any_of, for_one, if_else, implies, least, no
from spec.proof.wave import (
    ANY,
    AR,
    ASSUMPTIONS,
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

CASES: Final = ("climb", "draft", "together", "arrive", "accept", "reject", "bonus", "finish")
"""What a step can be. The last four are verdicts; they follow `arrive` within its tick."""

BUGS: Final[Mapping[str, str]] = {
    "the last source drafts too": "draft: DTV-03 sources",
    "verification starts again at depth 0": "together: DTV-08 ticks",
    "a round ignores the end": "bonus: DTV-03 length",
    "every draft is accepted": "accept: oldest is final",
    "a verification leaves the provisional entry": "arrive: KV-07 entries of this call",
    "rows of one call do not see each other": "together: KV-03 reads of lanes",
    "a rejected lane is kept": "reject: KV-04 lane cells",
}
"""Wrong steps, each with an obligation that it leaves unproved."""


# ---- the step -------------------------------------------------------------------------------------------------------


def num_drafts(world: World, frontier: Term) -> Term:
    """Gives K of a round that starts at this frontier (DTV-03)."""
    wanted = least(world.draft_length, world.end - frontier - 1)
    return if_else(world.draft_depth < world.recurrence_depth, wanted, 0)


def is_case(world: World, case: str, s: State, y: Term, bug: str | None = None) -> Term:
    """Says whether the next step is of this case, if the full depth says `y` should the oldest lane be asked."""
    full, shallow = world.recurrence_depth, world.draft_depth
    depth = s.depth(s.youngest)
    drafting = depth < shallow
    last_source = s.num_lanes == s.num_drafts + (2 if bug == "the last source drafts too" else 1)
    draft_due = all_of(depth + 1 == shallow, shallow < full, no(last_source))
    arriving = depth + 1 == full
    ends = world.ends(s.frontier + 1, y)
    followed = s.num_lanes > 1
    right = bug == "every draft is accepted" or s.token(1) == y
    going = no(s.is_judging)
    guards = {
        "climb": (going, drafting, no(draft_due), no(arriving)),
        "draft": (going, drafting, draft_due, no(arriving)),
        "together": (going, no(drafting), no(arriving)),
        "arrive": (going, arriving),
        "accept": (s.is_judging, no(ends), followed, right),
        "reject": (s.is_judging, no(ends), followed, no(right)),
        "bonus": (s.is_judging, no(ends), no(followed)),
        "finish": (s.is_judging, ends),
    }
    return all_of(*guards[case])


def step(world: World, case: str, s: State, y: Term, g: Term, bug: str | None = None) -> State:
    """Gives the state after a step of the given case.

    Args:
        world: Parameters and heads.
        case: One of `CASES`.
        s: The state before.
        y: What the full depth says of the oldest lane.
        g: What the draft head says of the youngest lane.
        bug: One of `BUGS`, to be built in.
    """
    if case in ("climb", "draft", "together", "arrive"):
        return _call(world, case, s, g, bug)
    return _verdict(world, case, s, y, bug)


def moves(world: World, s: State, i: Term) -> Term:
    """Says whether lane `i` is a row of the next call: the youngest alone, or all (DTV-04, DTV-05)."""
    return any_of(i == s.youngest, s.depth(s.youngest) >= world.draft_depth)


def _index(s: State, p: Term) -> Term:
    """Gives the index of the lane at a position."""
    return p - (s.frontier - 1)


def cells_after(world: World, s: State) -> Function:
    """Gives the cells after the next call."""

    def cell(p: Term, r: Term) -> Term:
        i = _index(s, p)
        return if_else(all_of(s.has(i), moves(world, s, i), s.depth(i) == r), s.text(i), s.cell(p, r))

    return cell


def _call(world: World, case: str, s: State, g: Term, bug: str | None) -> State:
    """Gives the state after a recurrent call and the readouts behind it."""
    starts_again = bug == "verification starts again at depth 0" and case == "together"

    def is_drafted(p: Term) -> Term:
        return all_of(case == "draft", p == s.position(s.youngest))

    def is_verified(p: Term) -> Term:
        is_kept = all_of(bug == "a verification leaves the provisional entry", s.entry_depth(p) != 0)
        return all_of(case == "arrive", s.has(_index(s, p)), no(is_kept))

    def entry_depth(p: Term) -> Term:
        drafted_or_old = if_else(is_drafted(p), world.draft_depth, s.entry_depth(p))
        return if_else(is_verified(p), world.recurrence_depth, drafted_or_old)

    def depth(i: Term) -> Term:
        risen = s.depth(i) + if_else(moves(world, s, i), 1, 0)
        return if_else(all_of(starts_again, s.depth(i) == world.draft_depth), 1, risen)

    def is_new(i: Term) -> Term:
        return all_of(case == "draft", i == s.num_lanes)

    return replace(
        s,
        num_lanes=s.num_lanes + (1 if case == "draft" else 0),
        ticks=s.ticks + 1,
        is_judging=case == "arrive",
        position=lambda i: if_else(is_new(i), s.position(s.youngest) + 1, s.position(i)),
        depth=lambda i: if_else(is_new(i), 0, depth(i)),
        token=lambda i: if_else(is_new(i), g, s.token(i)),
        text=lambda i: if_else(is_new(i), world.extend(s.text(s.youngest), g), s.text(i)),
        cell=cells_after(world, s),
        entry=lambda p: if_else(any_of(is_drafted(p), is_verified(p)), s.text(_index(s, p)), s.entry(p)),
        entry_depth=entry_depth,
    )


def _verdict(world: World, case: str, s: State, y: Term, bug: str | None) -> State:
    """Gives the state after the oldest lane's token was committed."""
    frontier = s.frontier + 1
    judged = all_of(case == "finish", s.num_lanes > 1)
    is_right = any_of(case == "accept", all_of(judged, s.token(1) == y))
    is_wrong = any_of(case == "reject", all_of(judged, s.token(1) != y))
    committed = replace(
        s,
        frontier=frontier,
        final=lambda p: if_else(p == s.frontier, y, s.final(p)),
        accepted=s.accepted + if_else(is_right, 1, 0),
        rejected=s.rejected + if_else(is_wrong, 1, 0),
    )
    if case == "accept":
        return replace(
            committed,
            num_lanes=s.num_lanes - 1,
            round_accepted=s.round_accepted + 1,
            position=lambda i: s.position(i + 1),
            depth=lambda i: s.depth(i + 1),
            token=lambda i: s.token(i + 1),
            text=lambda i: s.text(i + 1),
        )
    # The round is over: one fresh lane, or none.
    surplus = 1 if bug == "a rejected lane is kept" and case == "reject" else 0

    def counts(p: Term) -> Term:
        return p < frontier - 1 + surplus

    return replace(
        committed,
        num_lanes=0 if case == "finish" else 1,
        is_judging=False,
        base=s.ticks,
        num_drafts=world.draft_length if bug == "a round ignores the end" else num_drafts(world, frontier),
        round_accepted=0,
        position=lambda _: s.frontier,
        depth=lambda _: 0,
        token=lambda _: y,
        text=lambda _: world.extend(s.text(0), y),
        cell=lambda p, r: if_else(counts(p), s.cell(p, r), world.nothing),
        entry=lambda p: if_else(counts(p), s.entry(p), world.nothing),
        entry_depth=lambda p: if_else(counts(p), s.entry_depth(p), 0),
    )


# ---- invariants and claims ------------------------------------------------------------------------------------------


def invariants(world: World, ar: Text) -> dict[str, Function]:
    """Gives all invariants of DtV, between ticks and between the verdicts of one tick."""
    full, shallow = world.recurrence_depth, world.draft_depth

    def phase(s: State, i: Term) -> Term:
        """While drafting all but the youngest wait at d; then all K + 1 stand side by side; at T while judging."""
        depth = s.depth(s.youngest)
        waiting = all_of(depth < shallow, implies(i < s.youngest, s.depth(i) == shallow))
        together = all_of(depth >= shallow, s.depth(i) == depth)
        return implies(s.has(i), if_else(s.is_judging, s.depth(i) == full, any_of(waiting, together)))

    def in_range(s: State) -> Term:
        depth = s.depth(s.youngest)
        return implies(no(s.is_judging), all_of(depth >= 0, depth < full))

    def sources(s: State) -> Term:
        complete = s.num_lanes == s.num_drafts + 1
        going = all_of(
            s.num_lanes <= s.num_drafts + 1,
            implies(s.depth(s.youngest) >= shallow, complete),
            s.round_accepted == 0,
        )
        judging = all_of(s.num_lanes + s.round_accepted == s.num_drafts + 1, s.round_accepted >= 0)
        return if_else(s.is_judging, judging, going)

    def length(s: State) -> Term:
        return all_of(s.num_drafts >= 0, s.num_drafts == num_drafts(world, s.frontier - s.round_accepted))

    def provisional(s: State, i: Term) -> Term:
        p = s.position(i)
        behind = all_of(s.entry(p) == s.text(i), s.entry_depth(p) == shallow)
        judging = all_of(s.entry(p) == s.text(i), s.entry_depth(p) == full)
        return implies(s.has(i), if_else(s.is_judging, judging, if_else(i < s.youngest, behind, s.entry_depth(p) == 0)))

    def ticks(s: State) -> Term:
        so_far = (s.num_lanes - 1) * shallow + s.depth(s.youngest)
        return s.ticks == s.base + if_else(s.is_judging, s.num_drafts * shallow + full, so_far)

    return {
        **shared_invariants(world, ar),
        "DTV-04 phase": phase,
        "range of depths": in_range,
        "DTV-03 sources": sources,
        "DTV-03 length": length,
        "KV-08 provisional entries": provisional,
        "DTV-08 ticks": ticks,
    }


def obligations(bug: str | None = None) -> Iterator[Obligation]:
    """Gives everything that has to be proved."""
    world, s = ANY, any_state()
    known = invariants(world, AR)
    y, g = full_depth(s.text(0)), drafted
    prompt = world.prompt_length
    begun = start(world, ar_token(prompt), ar_text, num_drafts=num_drafts(world, prompt + 1))
    goes_on = no(world.ends(prompt + 1, ar_token(prompt)))
    for name, claim in known.items():
        yield Obligation(f"start: {name}", (*ASSUMPTIONS, goes_on), for_one(claim, skip=[begun]))

    given = (*ASSUMPTIONS, *holds(known, s))
    for case in CASES:
        guard, after = is_case(world, case, s, y, bug), step(world, case, s, y, g, bug)
        if case != "finish":
            yield from preserved(case, known, s, after, guard)
        for name, claim in _claims_of_a_step(world, case, s, after, bug).items():
            yield Obligation(f"{case}: {name}", (*given, guard), for_one(claim))
    for name, claim in _claims_of_a_state(world, s, y, bug).items():
        yield Obligation(f"state: {name}", given, for_one(claim))


def _claims_of_a_state(world: World, s: State, y: Term, bug: str | None) -> dict[str, Function]:
    """Gives what holds in every state."""

    def one_case() -> Term:
        found = [is_case(world, case, s, y, bug) for case in CASES]
        once = [no(all_of(a, b)) for number, a in enumerate(found) for b in found[number + 1 :]]
        return all_of(any_of(*found), *once)

    return {
        "DTV-06 width": lambda: s.num_lanes <= world.draft_length + 1,
        "KV-02 cells": lambda i: implies(s.has(i), all_of(s.position(i) >= 0, s.position(i) < world.end - 1)),
        "DTV-03 no draft at d = T": lambda: implies(world.draft_depth == world.recurrence_depth, s.num_lanes == 1),
        "DTV-09 round": lambda: s.ticks - s.base <= world.draft_length * world.draft_depth + world.recurrence_depth,
        "one case, and only one": one_case,
    }


def _claims_of_a_step(world: World, case: str, s: State, after: State, bug: str | None) -> dict[str, Function]:
    """Gives what holds of every step of a case."""
    full, shallow, prompt = world.recurrence_depth, world.draft_depth, world.prompt_length

    def row(i: Term) -> Term:
        return all_of(s.has(i), moves(world, s, i))

    if case in ("climb", "draft", "together", "arrive"):
        # Writes come before reads: a row meets what older rows of this very call have written.
        seen = s.cell if bug == "rows of one call do not see each other" else cells_after(world, s)
        claims: dict[str, Function] = {
            "KV-03 reads of final positions": lambda i, p: implies(
                all_of(row(i), p >= 0, p < s.frontier - 1), seen(p, s.depth(i)) == ar_text(p)
            ),
            "KV-03 reads of lanes": lambda i, j: implies(
                all_of(row(i), j >= 0, j < i), seen(s.position(j), s.depth(i)) == s.text(j)
            ),
            "KV-03 own state": lambda i: implies(
                all_of(row(i), s.depth(i) > 0), s.cell(s.position(i), s.depth(i) - 1) == s.text(i)
            ),
            "KV-04 writes once": lambda i: implies(row(i), s.cell(s.position(i), s.depth(i)) == world.nothing),
            "DTV-05 advance": lambda i: implies(
                s.has(i), after.depth(i) == s.depth(i) + if_else(moves(world, s, i), 1, 0)
            ),
            "DTV-08 ticks grow": lambda: all_of(after.ticks == s.ticks + 1, after.frontier == s.frontier),
        }
        if case == "draft":
            claims["KV-08 entries for a draft"] = lambda j: implies(
                all_of(j >= 0, j < s.youngest),
                all_of(after.entry(s.position(j)) == s.text(j), after.entry_depth(s.position(j)) == shallow),
            )
        if case == "arrive":
            claims["KV-07 entries of final positions"] = lambda p: implies(
                all_of(p >= 0, p < s.frontier - 1), all_of(after.entry(p) == ar_text(p), after.entry_depth(p) == full)
            )
            claims["KV-07 entries of this call"] = lambda j: implies(
                s.has(j), all_of(after.entry(s.position(j)) == s.text(j), after.entry_depth(s.position(j)) == full)
            )
        return claims
    claims = {
        "DTV-08 no tick": lambda: after.ticks == s.ticks,
        "DTV-09 commits": lambda: after.frontier == s.frontier + 1,
    }
    if case != "accept":
        claims["DTV-08 round"] = lambda: all_of(
            after.base == after.ticks, s.ticks == s.base + s.num_drafts * shallow + full
        )
    match case:
        case "reject":
            claims["DTV-06 flush"] = lambda: all_of(s.num_lanes - 1 >= 1, s.num_lanes - 1 <= s.num_drafts)
            claims["DTV-06 outcome"] = lambda: s.round_accepted < s.num_drafts
        case "bonus":
            claims["DTV-06 outcome"] = lambda: s.round_accepted == s.num_drafts
        case "finish":
            claims["DTV-07 identity"] = lambda p: implies(
                all_of(p >= prompt, p < after.frontier), after.final(p) == ar_token(p)
            )
            claims["DTV-07 end"] = lambda p: all_of(
                world.ends(after.frontier, ar_token(after.frontier - 1)),
                implies(all_of(p >= prompt, p < s.frontier), no(world.ends(p + 1, ar_token(p)))),
            )
        case _:
            pass
    return claims
