"""The small worlds that the models are checked in, and the mutants of the models' text."""

from typing import Final, NamedTuple

from spec.tlc import Case

EVERY_END: Final = (
    Case(T=3, d=2, gamma=2, M=0),
    Case(T=3, d=2, gamma=2, M=1),
    Case(T=3, d=2, gamma=2, M=2, stops=(0, 1)),
    Case(T=3, d=1, gamma=3, P=2, M=5, X=2),
    Case(T=3, d=1, gamma=3, P=2, M=1, X=2),
    Case(T=3, d=1, gamma=3, P=2, M=9, X=5),
    Case(T=3, d=1, gamma=3, P=2, M=4, X=5),
    Case(T=4, d=2, gamma=2, M=5, stops=(1,)),
    Case(T=5, d=2, gamma=4, M=4, X=4, stops=(0,)),
)
"""Budget, context and stop ids at every place: on the first token, on the last, in mid-wave, and none at all."""

EVERY_SHAPE: Final = (
    Case(T=1, d=1, M=3),
    Case(T=2, d=1, gamma=1, M=4),
    Case(T=3, d=3, gamma=2, M=3),
    Case(T=4, d=1, gamma=3, M=5),
    Case(T=4, d=3, gamma=1, M=4, stops=(1,)),
    Case(T=5, d=2, gamma=2, M=5),
    Case(T=6, d=2, gamma=3, M=4),
    Case(T=6, d=4, gamma=1, M=4),
)
"""Draft depths that divide the recurrence depth and others, waves of one lane to four."""

EIGHT: Final = (
    Case(T=8, d=1, gamma=3, M=4),
    Case(T=8, d=3, gamma=2, M=4, stops=(1,)),
)
"""Eight recurrences."""

DEEP: Final = (
    Case(T=8, d=1, gamma=4, M=6, stops=(1,)),
    Case(T=8, d=2, gamma=3, M=6),
    Case(T=8, d=3, gamma=5, M=6),
    Case(T=8, d=5, gamma=2, M=6),
    Case(T=7, d=2, gamma=4, M=6, stops=(1,)),
)
"""Eight recurrences and six tokens."""

LIVELY: Final = (
    Case(T=1, d=1, M=2),
    Case(T=3, d=1, gamma=2, M=3, stops=(1,)),
    Case(T=3, d=2, gamma=1, M=3),
)
"""Few states: whether every run ends is checked on them."""

MUTABLE: Final = (
    Case(T=3, d=3, gamma=2, M=3),
    Case(T=4, d=2, gamma=2, M=5),
    Case(T=4, d=1, gamma=3, P=2, M=5, X=5, stops=(1,)),
    Case(T=5, d=2, gamma=3, M=5),
)
"""Where mutants live: d divides T, does not, and equals T."""


class Mutant(NamedTuple):
    """One wrong text."""

    edits: tuple[tuple[str, str], ...]
    """What to find, and what to put there."""
    violated: str
    """The property that TLC must report."""


_FRESH_AFTER_REJECTION: Final = (
    "  /\\ lanes' = <<NewLane(Frontier, y)>>\n  /\\ Remember(Moving, Due, {})\n  /\\ rejected' = rejected + 1"
)


def _after_rejection(lanes: str, stay: str = "{}") -> tuple[tuple[str, str]]:
    """Gives the edit by which WFD goes on otherwise after a rejection."""
    put = f"  /\\ lanes' = {lanes}\n  /\\ Remember(Moving, Due, {stay})\n  /\\ rejected' = rejected + 1"
    return ((_FRESH_AFTER_REJECTION, put),)


WFD_MUTANTS: Final = {
    "a flush forgets the youngest lane": Mutant(
        _after_rejection(
            "<<NewLane(Frontier, y)>> \\o (IF Len(Behind) > 1 THEN <<Last(Behind)>> ELSE <<>>)", "Positions(Behind)"
        ),
        "WFD07_Spacing",
    ),
    "a rejected lane is repaired in place": Mutant(
        _after_rejection("[Behind EXCEPT ![1].token = y]", "Positions(Behind)"),
        "KV03_FreshReads",
    ),
    "a fresh lane skips a recurrence": Mutant(
        _after_rejection("<<[NewLane(Frontier, y) EXCEPT !.depth = IF T > 1 THEN 1 ELSE 0]>>"),
        "WFD07_Spacing",
    ),
    "a draft outlives its flushed source": Mutant(
        _after_rejection(
            "<<NewLane(Frontier, y)>> \\o (IF DraftDue THEN <<NewLane(Last(Moved).position + 1, y)>> ELSE <<>>)"
        ),
        "WFD07_Spacing",
    ),
    "drafts one recurrence early": Mutant(
        (("DraftDue  == Last(Moved).depth = d", "DraftDue  == Last(Moved).depth = d - 1"),), "WFD07_Spacing"
    ),
    "verifies one recurrence early": Mutant(
        (("VerifyDue == Moved[1].depth = T", "VerifyDue == Moved[1].depth = T - 1"),), "KV04_WriteOrder"
    ),
    "an accepted lane does not draft": Mutant(
        (
            (
                "lanes' = Append(f, NewLane(Last(Moved).position + 1, g))",
                "lanes' = IF Len(f) < Len(lanes) THEN f ELSE Append(f, NewLane(Last(Moved).position + 1, g))",
            ),
        ),
        "WFD07_Spacing",
    ),
    "every draft is accepted": Mutant(
        (("Behind[1].token = y", "TRUE"), ("Behind[1].token # y", "FALSE")),
        "COST03_Judged",
    ),
    "the draft is committed instead of the verified token": Mutant(
        (("out' = out \\o v", "out' = out \\o (IF Len(lanes) > 1 THEN <<lanes[2].token>> ELSE v)"),),
        "WFD11_Identity",
    ),
    "a draft is started beyond the end": Mutant(
        (("MayInject(Last(Moved).position + 1)\nDue", "MayInject(Last(Moved).position)\nDue"),),
        "SMP15_Injection",
    ),
    "the last token gets a position of its own": Mutant((("Min(P + M, X + 1)", "Min(P + M, X)"),), "SMP14_Finish"),
    "the context's end is called length": Mutant(
        (('THEN "length" ELSE "context"', 'THEN "length" ELSE "length"'),), "SMP14_Finish"
    ),
    "a stop id is passed over": Mutant((('IF token \\in Stops THEN "eos"', 'IF FALSE THEN "eos"'),), "SMP14_Finish"),
    "a drafted stop id ends the text": Mutant(
        (
            (
                "reason' = Reason(Frontier + 1, y)",
                'reason\' = IF Behind # <<>> /\\ Behind[1].token \\in Stops THEN "eos" ELSE Reason(Frontier + 1, y)',
            ),
        ),
        "SMP14_Finish",
    ),
    "the last draft is not judged": Mutant(
        (("accepted' = accepted + (IF IsRight(y) THEN 1 ELSE 0)", "accepted' = accepted"),), "WFD12_Ticks"
    ),
    "only the oldest lane advances": Mutant(
        (
            (
                "Moved  == [i \\in DOMAIN lanes |-> [lanes[i] EXCEPT !.depth = @ + 1]]",
                "Moved  == [i \\in DOMAIN lanes |-> [lanes[i] EXCEPT !.depth = IF i = 1 THEN @ + 1 ELSE @]]",
            ),
        ),
        "WFD07_Spacing",
    ),
    "a flush leaves its cells valid": Mutant(
        (("Counts(p) == p < Frontier' - 1 \\/ p \\in stay", "Counts(p) == TRUE"),), "KV04_WriteOrder"
    ),
    "cells are written to the next recurrence": Mutant(
        (
            (
                "LET writers == {i \\in moving : lanes[i].position = p /\\ lanes[i].depth = r}",
                "LET writers == {i \\in moving : lanes[i].position = p /\\ lanes[i].depth = r + 1}",
            ),
        ),
        "KV03_FreshReads",
    ),
    "a verification leaves the provisional entry": Mutant(
        (("IF readers = {} THEN coda[p]", "IF readers = {} \\/ coda[p] # NoEntry THEN coda[p]"),), "KV07_CodaReads"
    ),
    "a lane reads one recurrence ahead": Mutant(
        (
            ("ELSE \\A j", "ELSE \\A j"),
            (
                "IF Writers(p) = {} THEN kv[p][r] = Own(text, p)",
                "IF Writers(p) = {} THEN kv[p][Min(r + 1, T - 1)] = Own(text, p)",
            ),
        ),
        "KV03_FreshReads",
    ),
}

DTV_MUTANTS: Final = {
    "the last source drafts too": Mutant((("Len(lanes) < K + 1", "Len(lanes) < K + 2"),), "SMP15_Injection"),
    "verification starts again at depth 0": Mutant(
        (
            (
                "~Drafting /\\ lanes' = Moved",
                "~Drafting /\\ lanes' = [i \\in DOMAIN lanes |-> [Moved[i] EXCEPT !.depth = Restarted(@)]]",
            ),
            (
                "Due       == IF VerifyDue",
                "Restarted(r) == IF r = d + 1 THEN 1 ELSE r\nDue       == IF VerifyDue",
            ),
        ),
        "KV04_WriteOrder",
    ),
    "a round ignores the end": Mutant((("Min(gamma, End - Frontier - 1)", "gamma"),), "SMP15_Injection"),
    "drafts are made at full depth": Mutant((("K == IF d = T THEN 0 ELSE Min", "K == Min"),), "DTV08_Ticks"),
    "waiting lanes climb along": Mutant(
        (("Moving   == IF Drafting THEN {Len(lanes)} ELSE DOMAIN lanes", "Moving   == DOMAIN lanes"),), "DTV04_Phases"
    ),
    "every draft is accepted": Mutant(
        (
            ("n < Len(Moved) /\\ Moved[n + 1].token = y", "n < Len(Moved)"),
            ("n < Len(Moved) /\\ Moved[n + 1].token # y", "FALSE"),
        ),
        "COST03_Judged",
    ),
    "the draft is committed instead of the verified token": Mutant(
        (
            (
                "out' = out \\o v",
                "out' = out \\o [k \\in DOMAIN v |-> IF k < Len(lanes) THEN lanes[k + 1].token ELSE v[k]]",
            ),
        ),
        "DTV07_Identity",
    ),
    "verification skips a recurrence": Mutant(
        (
            (
                "~Drafting /\\ lanes' = Moved",
                "~Drafting /\\ lanes' = [i \\in DOMAIN lanes |-> [Moved[i] EXCEPT !.depth = Min(@ + 1, T - 1)]]",
            ),
        ),
        "KV03_FreshReads",
    ),
    "a round runs over a stop id": Mutant(
        (('IsRight(k, v[k]) /\\ Reason(Frontier + k, v[k]) = "none"', "IsRight(k, v[k])"),), "SMP14_Finish"
    ),
    "the bonus lane starts at draft depth": Mutant(
        (
            (
                "NextRound(p, y) == lanes' = <<NewLane(p, y)>>",
                "NextRound(p, y) == lanes' = <<[NewLane(p, y) EXCEPT !.depth = d - 1]>>",
            ),
        ),
        "KV03_FreshReads",
    ),
    "the bonus is counted as accepted": Mutant(
        (("accepted' = accepted + n - 1 /\\ UNCHANGED rejected", "accepted' = accepted + n /\\ UNCHANGED rejected"),),
        "DTV06_Outcome",
    ),
    "the last draft is not judged": Mutant(
        (("accepted' = accepted + n - 1 + (IF IsRight(n, v[n]) THEN 1 ELSE 0)", "accepted' = accepted + n - 1"),),
        "COST03_Judged",
    ),
    "rows of one call do not see each other": Mutant(
        (("Writers(p) == {j \\in moving : j < i", "Writers(p) == {j \\in moving : FALSE"),), "KV03_FreshReads"
    ),
    "a verification leaves the provisional entry": Mutant(
        (("IF readers = {} THEN coda[p]", "IF readers = {} \\/ coda[p] # NoEntry THEN coda[p]"),), "KV07_CodaReads"
    ),
    "drafts at one recurrence less": Mutant(
        (("DraftDue  == Drafting /\\ Last(Moved).depth = d", "DraftDue  == Drafting /\\ Last(Moved).depth = d - 1"),),
        "DTV04_Phases",
    ),
}

_ROWS_AS_CALLS: Final = (("!.lane_ticks = @ + Len(event[3])", "!.lane_ticks = @ + 1"),)
_READOUTS_ONE_BY_ONE: Final = (
    (
        "IF IsReadOut(events) THEN 1 ELSE 0",
        'Cardinality({i \\in DOMAIN events : events[i][1] \\in {"commit", "draft"}})',
    ),
)
_DRAFTS_NOT_READ_OUT: Final = (('\\in {"commit", "draft"}', '\\in {"commit"}'),)
_VERDICT_LOST_AT_THE_STOP: Final = (
    (
        'THEN <<<<"accept", ticks\', p>>>>',
        'THEN IF reason\' = "none" THEN <<<<"accept", ticks\', p>>>> ELSE <<>>',
    ),
)
_REJECTED_LANE_NOT_FLUSHED: Final = (
    (
        "[i \\in DOMAIN behind |-> behind[i].position]>>>>)",
        "[i \\in DOMAIN Tail(behind) |-> Tail(behind)[i].position]>>>>)",
    ),
)
_ACCEPTED_LANE_NOT_ABANDONED: Final = (
    ("THEN SubSeq(moved, n + 1, Len(moved)) ELSE", "THEN SubSeq(moved, n + 2, Len(moved)) ELSE"),
)
_RESTART_NOT_INJECTED: Final = (('/\\ verdict\' # "accept"\n', '/\\ verdict\' = "reject"\n'),)
_TWO_LANES_AT_MOST: Final = (
    ("DraftDue  == Last(Moved).depth = d", "DraftDue  == Len(lanes) < 2 /\\ Last(Moved).depth = d"),
)

COUNT_MUTANTS: Final = {
    "WFDCounts": {
        "COST01_Rows": _ROWS_AS_CALLS,
        "COST01_Width": WFD_MUTANTS["drafts one recurrence early"].edits,
        "COST02_Readouts": _READOUTS_ONE_BY_ONE,
        "COST02_Calls": _DRAFTS_NOT_READ_OUT,
        "COST03_Verdicts": _VERDICT_LOST_AT_THE_STOP,
        "COST04_Flushes": _REJECTED_LANE_NOT_FLUSHED,
        "COST04_Bound": WFD_MUTANTS["drafts one recurrence early"].edits,
        "COST04_FarFromEnd": _TWO_LANES_AT_MOST,
        "COST05_Conservation": _ACCEPTED_LANE_NOT_ABANDONED,
        "COST06_Ticks": WFD_MUTANTS["a fresh lane skips a recurrence"].edits,
        "AR02_Counts": WFD_MUTANTS["verifies one recurrence early"].edits,
    },
    "DtVCounts": {
        "COST01_Rows": _ROWS_AS_CALLS,
        "COST01_FullDepth": DTV_MUTANTS["waiting lanes climb along"].edits,
        "COST02_Readouts": _READOUTS_ONE_BY_ONE,
        "COST02_Calls": _DRAFTS_NOT_READ_OUT,
        "COST03_Verdicts": DTV_MUTANTS["the bonus is counted as accepted"].edits,
        "COST04_Flushes": _REJECTED_LANE_NOT_FLUSHED,
        "COST04_Bound": DTV_MUTANTS["the last source drafts too"].edits,
        "COST05_Conservation": _ACCEPTED_LANE_NOT_ABANDONED,
        "AR02_Counts": _RESTART_NOT_INJECTED,
    },
}
"""By layer and claim: an edit of the counting, of the events or of the model that the claim must not survive."""


def in_turn(recurrence_depth: int, num_slots: int) -> tuple[int, ...]:
    """Gives the slot of every recurrence if slots are taken in turn (SHR-02)."""
    return tuple(r % num_slots for r in range(recurrence_depth))


def every_map(recurrence_depth: int) -> list[tuple[int, ...]]:
    """Gives every way to share slots; slots are numbered as they appear."""
    maps: list[tuple[int, ...]] = [()]
    for _ in range(recurrence_depth):
        maps = [(*slots, slot) for slots in maps for slot in range(len(set(slots)) + 1)]
    return maps


_SHARED_SIZES: Final = (
    *((T, d, in_turn(T, s)) for T in range(1, 6) for s in range(1, T + 1) for d in range(1, T + 1)),
)
_SHARED_MAPS: Final = (*((T, d, slots) for T in range(2, 5) for slots in every_map(T) for d in range(1, T)),)

SHARED: Final = (
    *(Case(T=T, d=d, gamma=1, M=3, slot=slots) for T, d, slots in dict.fromkeys((*_SHARED_SIZES, *_SHARED_MAPS))),
    *(Case(T=T, d=d, gamma=2, M=4, slot=in_turn(T, s)) for T, s in ((3, 2), (4, 2)) for d in range(1, T)),
    Case(T=4, d=1, gamma=1, M=2, slot=in_turn(4, 1)),
    Case(T=3, d=1, gamma=1, P=2, M=4, slot=in_turn(3, 2), stops=(1,)),
)
"""Slots in turn for every size up to five recurrences, and every slot map up to four, for every draft depth."""

SHARED_DEEP: Final = tuple(
    Case(T=T, d=d, gamma=2, M=4, slot=in_turn(T, s))
    for T in (6, 7, 8)
    for s in range(1, T + 1)
    for d in range(1, T + 1)
)
"""Slots in turn up to eight recurrences."""

SHARED_MUTABLE: Final = (
    Case(T=3, d=1, gamma=1, M=4, slot=(0, 1, 0)),
    Case(T=4, d=2, gamma=1, M=4, slot=(0, 1, 0, 1)),
    Case(T=3, d=2, gamma=1, M=4, slot=(0, 0, 1)),
)
"""Where mutants of sharing live."""

SHARED_MUTANTS: Final = {
    "rows read before others write": (
        "WFDSharing",
        Mutant(
            (
                (
                    "Writers(p) == {j \\in moving : j < i /\\ lanes[j].position = p /\\ Slot",
                    "Writers(p) == {j \\in {} : Slot",
                ),
            ),
            "SHR08_Sufficient",
        ),
    ),
    "the first write wins": (
        "WFDSharing",
        Mutant(
            (("IF writers = {} THEN shared[p][c]", "IF writers = {} \\/ shared[p][c] # Unwritten THEN shared[p][c]"),),
            "SHR05_FreshReads",
        ),
    ),
    "prefill keeps the first recurrence of a slot": (
        "WFDSharing",
        Mutant(
            (("Cell(Deepest(c), text)]\n", "Cell(CHOOSE r \\in Recurrences : Slot(r) = c, text)]\n"),), "SHR07_Finished"
        ),
    ),
    "the bound is one less": (
        "WFDSharing",
        Mutant((("Deepest(Slot(r)) - r <= d", "Deepest(Slot(r)) - r <= d + 1"),), "SHR08_Sufficient"),
    ),
    "DtV by the bound of WFD": (
        "DtVSharing",
        Mutant(
            (
                (
                    "\\A r \\in d..(T - 1) : \\A q \\in Recurrences : Slot(q) = Slot(r) => q = r",
                    "\\A r \\in Recurrences : Deepest(Slot(r)) - r <= d",
                ),
            ),
            "SHR09_Sufficient",
        ),
    ),
    "slots in turn ask for a whole turn more": (
        "WFDSharing",
        Mutant((("d >= s * ((T - 1) \\div s)", "d >= s * (T \\div s)"),), "SHR08_InTurn"),
    ),
    "one slot too few is enough for DtV": (
        "DtVSharing",
        Mutant((("<=> s >= T \\/ d = T", "<=> s >= T - 1 \\/ d = T"),), "SHR09_InTurn"),
    ),
    "a lane behind a lane in flight is AR's": (
        "DtVSharing",
        Mutant((("accepted = 0 => out = twin", "accepted <= 1 => out = twin"),), "SHR10_NothingAccepted"),
    ),
}
"""By name: the module, what is changed and what must fail."""
