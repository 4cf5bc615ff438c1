"""Judges the counts of a run without its trace: totals are held against each other and against the closed forms.

Each condition below is one clause. It is tried if every count that it speaks of is claimed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from reference.cost.closed_forms import exact_ticks
from reference.oracle.counts import Claims, CountsVerdict, Discrepancy, Number, check_names, equal, ratio, verdict_on
from reference.schedule import Accept, Commit, Event, Reject, Start, check_draft_depth
from reference.stopping import FinishReason, Stopping


def check_totals(claimed: Claims, start: Start, finish_reason: str) -> CountsVerdict:
    """Judges the counts of a run by its parameters, as far as closed forms decide.

    For AR and WFD the verdicts on drafts decide the ticks. For DtV their order does too, so its ticks are judged by
    `check_counts` alone. The run must not have used a freedom that changes counts.

    Args:
        claimed: Any of the fields of `Counts` and `acceptance_rate`, by name.
        start: The parameters of the run, as its trace would name them.
        finish_reason: Why it ended.

    Raises:
        ParameterError: If something claimed has another name, or the parameters break a rule.

    Spec: AR-02, WFD-06, WFD-09, WFD-12, SMP-14, COST-01 to COST-05.
    """
    check_names(claimed)
    check_draft_depth(start.draft_depth, start.recurrence_depth, clause="WFD-01")
    stopping = Stopping(
        prompt_length=start.prompt_length, max_new_tokens=start.max_new_tokens, context_length=start.context_length
    )
    totals = _Totals(claimed, start, stopping.end - start.prompt_length, finish_reason == FinishReason.EOS)
    conditions = (_committed, _rate, _flushed, _lanes, _rows, _nothing_drafted, _judged, _ticks)
    return verdict_on(one for condition in conditions for one in condition(totals))


@dataclass(frozen=True, slots=True)
class _Totals:
    """What is claimed, and of which run."""

    claimed: Claims
    """The counts."""
    start: Start
    """The parameters."""
    most: int
    """Most tokens that could be committed."""
    is_stopped: bool
    """Whether a stop id ended the run."""

    def has(self, *names: str) -> bool:
        """Tells whether all of these are claimed."""
        return set(names) <= self.claimed.keys()

    def wrong(self, name: str, expected: str, clause: str) -> Discrepancy:
        """Gives a discrepancy."""
        return Discrepancy(name, self.claimed[name], expected, clause, "")

    @property
    def num_tokens(self) -> int:
        """N: tokens after the first."""
        return max(int(self.claimed["committed"]) - 1, 0)

    @property
    def judged(self) -> Number:
        """Judged drafts."""
        return self.claimed["accepted"] + self.claimed["rejected"]

    @property
    def drafts(self) -> bool:
        """Whether the run drafts at all."""
        return self.start.draft_depth < self.start.recurrence_depth

    @property
    def widest(self) -> int:
        """Most lanes in flight at once (WFD-08, DTV-05)."""
        if not self.drafts:
            return 1
        if self.start.draft_length is not None:
            return self.start.draft_length + 1
        return -(-self.start.recurrence_depth // self.start.draft_depth)


def _committed(of: _Totals) -> Iterator[Discrepancy]:
    if of.has("committed"):
        committed = of.claimed["committed"]
        if committed > of.most or (committed < of.most and not of.is_stopped):
            yield of.wrong("committed", f"{'at most ' if of.is_stopped else ''}{of.most}", "SMP-14")


def _rate(of: _Totals) -> Iterator[Discrepancy]:
    if of.has("accepted", "rejected", "acceptance_rate"):
        rate = ratio(of.claimed["accepted"], of.judged)
        if not equal(of.claimed["acceptance_rate"], rate):
            yield of.wrong("acceptance_rate", f"{rate:g} = accepted / (accepted + rejected)", "COST-03")


def _flushed(of: _Totals) -> Iterator[Discrepancy]:
    if of.has("rejected", "flushed"):
        least, most = of.claimed["rejected"], of.claimed["rejected"] * (of.widest - 1)
        if not least <= of.claimed["flushed"] <= most:
            clause = "COST-04" if of.claimed["flushed"] < least or of.start.draft_length is not None else "WFD-09"
            yield of.wrong("flushed", f"from {least:g} to {most:g}", clause)


def _lanes(of: _Totals) -> Iterator[Discrepancy]:
    if of.has("committed", "flushed", "prelude_calls"):
        least = of.num_tokens + of.claimed["flushed"]
        if of.claimed["prelude_calls"] < least:
            yield of.wrong("prelude_calls", f"at least {least:g}: lanes retired, flushed or abandoned", "COST-05")


def _rows(of: _Totals) -> Iterator[Discrepancy]:
    if of.has("ticks", "lane_ticks"):
        least, most = of.claimed["ticks"], of.claimed["ticks"] * of.widest
        if not least <= of.claimed["lane_ticks"] <= most:
            yield of.wrong("lane_ticks", f"from {least:g} to {most:g}", "COST-01")


def _nothing_drafted(of: _Totals) -> Iterator[Discrepancy]:
    """At d = T every decoder is AR."""
    if of.drafts:
        return
    for name in ("accepted", "rejected", "flushed"):
        if of.claimed.get(name, 0):
            yield of.wrong(name, "0: nothing is drafted at d = T", "WFD-06")
    if of.has("committed"):
        full = of.num_tokens * of.start.recurrence_depth
        rights = {"ticks": full, "lane_ticks": full, "prelude_calls": of.num_tokens, "readout_calls": of.num_tokens}
        for name, right in rights.items():
            if of.claimed.get(name, right) != right:
                yield of.wrong(name, str(right), "AR-02")


def _judged(of: _Totals) -> Iterator[Discrepancy]:
    if not (of.drafts and of.has("committed", "accepted", "rejected")):
        return
    if of.start.draft_length is not None:
        if of.judged > of.num_tokens:
            yield of.wrong("accepted", f"at most {of.num_tokens - of.claimed['rejected']:g}", "COST-03")
        return
    expected = min(of.num_tokens, max(of.most - 2, 0))
    if of.judged != expected:
        what = f"{expected - of.claimed['rejected']:g}, as {expected} drafts are judged"
        yield of.wrong("accepted", what, "WFD-12")


def _ticks(of: _Totals) -> Iterator[Discrepancy]:
    is_wave = of.drafts and of.start.draft_length is None
    if is_wave and of.has("committed", "accepted", "rejected", "ticks"):
        possible = sorted(_possible_ticks(of))
        if of.claimed["ticks"] not in possible:
            yield of.wrong("ticks", " or ".join(map(str, possible)), "WFD-12")


def _possible_ticks(of: _Totals) -> set[int]:
    """Gives the ticks of a wavefront with so many verdicts: two numbers where it is open which verdict came last.

    The last one decides nothing where a stop id ends the run.
    """
    first = of.start.prompt_length
    commits: list[Event] = [Commit(0, first + k, 0) for k in range(of.num_tokens + 1)]
    accepted, rejected = [True] * int(of.claimed["accepted"]), [False] * int(of.claimed["rejected"])
    possible = set()
    for verdicts in (accepted + rejected, rejected + accepted):
        # Verdicts beyond N - 1 are those that decide nothing; missing ones are an error of another condition.
        padded = verdicts + [False] * (of.num_tokens - len(verdicts))
        judged: list[Event] = [
            Accept(0, first + k) if right else Reject(0, first + k, draft_token=0, verified_token=1)
            for k, right in enumerate(padded, start=1)
        ]
        possible.add(exact_ticks([of.start, *commits, *judged]))
    return possible
