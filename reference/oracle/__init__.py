"""Judges somebody else's implementation: its tokens, the trace of its schedule, and the counts that it reports.

    from reference import models, oracle

    verdict = oracle.check_tokens(models.load("tiny-ouro"), prompt_ids, candidate_ids)
    print(verdict)

Every judgement that is not `exact` names the place and the clause of `spec/`.
"""

from reference.oracle.counts import check_counts
from reference.oracle.tokens import check_tokens
from reference.oracle.totals import check_totals
from reference.oracle.traces import check_trace
from reference.oracle.verdicts import Verdict

__all__ = ["Verdict", "check_counts", "check_tokens", "check_totals", "check_trace"]
