"""WFD never needs more ticks than DtV or AR (WFD-13, WFD-14), and the limit of DtV, for all sizes.

`wfd(k)` is the tick at which WFD commits the k-th token after the first: it grows by `T` for the first, and then by `d`
after a token whose draft was right and by `T` after any other (WFD-12). A DtV round that begins behind `c` tokens with
`dtv` ticks costs `K * d + T` ticks and commits `m <= K + 1` tokens, of which all but the last were drafted right
(DTV-08). Both meet the same drafts: `right(k)` says whether that of token `k` is.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import z3  # type: ignore[import-untyped]

from spec.proof.logic import Function, Obligation, Term, all_of, implies

_T, _D, _K, _GAMMA, _C, _M, _I, _DTV = z3.Ints("T d K gamma c m i dtv")
_INT: Final = z3.IntSort()
_right: Final[Function] = z3.Function("right", _INT, z3.BoolSort())
_wfd: Final[Function] = z3.Function("wfd", _INT, _INT)


BUGS: Final[Mapping[str, str]] = {
    "a round commits one more": "WFD-14 every token",
    "a round goes on behind a wrong draft": "tokens of a round: next",
}
"""Wrong assumptions, each with an obligation that it leaves unproved."""


def _pace(k: Term) -> Term:
    """Gives the ticks of WFD from token `k` to the next: what the verification of `k` decided."""
    return z3.If(all_of(k >= 1, _D < _T, _right(k)), _D, _T)


def _behind(i: Term) -> Term:
    """Says that WFD commits the i-th token of the round so many ticks after the round's beginning."""
    return _wfd(_C + i) == _wfd(_C) + _pace(_C) + (i - 1) * _D


def obligations(bug: str | None = None) -> Iterator[Obligation]:
    """Gives everything that has to be proved.

    Args:
        bug: One of `BUGS`, to be built in.
    """
    k = z3.Int("k")
    sizes = all_of(_D >= 1, _D <= _T, _K >= 0, _C >= 0, _M >= 1)
    last = _C + _M - (1 if bug == "a round goes on behind a wrong draft" else 0)
    most = _K + (2 if bug == "a round commits one more" else 1)
    given = (
        sizes,
        z3.ForAll([k], implies(k >= 0, _wfd(k + 1) == _wfd(k) + _pace(k)), patterns=[_wfd(k + 1)]),
        # The round: all tokens but its last were drafted right; with d = T nothing is drafted (DTV-03).
        most >= _M,
        implies(_D == _T, _K == 0),
        z3.ForAll([k], implies(all_of(k > _C, k < last), _right(k)), patterns=[_right(k)]),
    )
    round_of_dtv = _DTV + _K * _D + _T

    # Induction over the tokens of a round gives `_behind(i)` for 1 <= i <= m; with d = T there is one token.
    first = _wfd(_C + 1) == _wfd(_C) + _pace(_C)
    yield Obligation("tokens of a round: first", given, implies(first, _behind(1)))
    inside = all_of(_I >= 1, _I < _M, _D < _T)
    following = _wfd(_C + _I + 1) == _wfd(_C + _I) + _pace(_C + _I)
    yield Obligation("tokens of a round: next", (*given, inside, _behind(_I)), implies(following, _behind(_I + 1)))

    # One round. `slack` is by how much DtV is behind WFD.
    token = all_of(_I >= 1, _I <= _M)
    lead = _wfd(_C) <= _DTV
    yield Obligation("WFD-14 every token", (*given, token, lead, _behind(_I)), _wfd(_C + _I) <= round_of_dtv)
    slack = _DTV - _wfd(_C)
    next_slack = round_of_dtv - _wfd(_C + _M)
    gain = (_K + 1 - _M) * _D + (_T - _pace(_C))
    yield Obligation("WFD-14 slack", (*given, _behind(_M)), next_slack == slack + gain)
    yield Obligation("WFD-14 slack never shrinks", (*given, _behind(_M)), next_slack >= slack)
    stays = all_of(_M == _K + 1, _pace(_C) == _T)
    yield Obligation("WFD-14 equality", (*given, _behind(_M)), (next_slack == slack) == stays)

    # AR takes T ticks a token.
    ar_slack = all_of(_wfd(_C + 1) == _wfd(_C) + _pace(_C), _wfd(_C) <= _C * _T)
    yield Obligation("WFD-13 never slower than AR", (*given, ar_slack), _wfd(_C + 1) <= (_C + 1) * _T)
    saved = (_C + 1) * _T - _wfd(_C + 1) == _C * _T - _wfd(_C) + z3.If(_pace(_C) == _D, _T - _D, 0)
    yield Obligation("WFD-13 what is saved", (*given, ar_slack), saved)

    # All drafts right: a round of gamma drafts costs d + (T - d) / (gamma + 1) ticks a token; n tokens in one round, or
    # in WFD, d + (T - d) / n. Both tend to d, and the distance is below any epsilon from some length on.
    length, epsilon, cost = z3.Reals("length epsilon cost")
    shallow, full = z3.ToReal(_D), z3.ToReal(_T)
    per_token = all_of(_D >= 1, _D <= _T, length >= 1, cost * length == (length - 1) * shallow + full)
    yield Obligation("limit: cost", (per_token,), (cost - shallow) * length == full - shallow)
    far = all_of(epsilon > 0, length * epsilon > full - shallow)
    yield Obligation("limit: reached", (per_token, far), all_of(cost >= shallow, cost < shallow + epsilon))
    other, dearer = z3.Reals("longer dearer")
    longer = all_of(other > length, dearer * other == (other - 1) * shallow + full)
    yield Obligation("limit: monotone", (per_token, longer), dearer <= cost)
