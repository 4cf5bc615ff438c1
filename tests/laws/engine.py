"""Laws of runs on models: what WFD and DtV compute is what AR computes."""

import math
from collections.abc import Collection, Sequence
from itertools import count as numbers

import torch
from hypothesis import currently_in_test_context, event
from torch import Tensor

from reference.engine import Arithmetic, Decoding, Output
from reference.stopping import FinishReason
from tests.driving import Case, plays, remark
from tests.runs import Job, agree, decode, finished_cells, is_near_tie, start


def free_positions(decoding: Decoding) -> range:
    """Gives the positions of the cache that hold neither a final token nor a lane."""
    lanes = decoding.state.lanes
    return range(lanes[-1].position + 1 if lanes else decoding.kv.num_positions, decoding.kv.num_positions)


def decode_amid_nan(job: Job, decoder: str, moments: Collection[int], *, reference: Decoding | None = None) -> Decoding:
    """Runs a decoder, with NaN written into every free cell after the prefill and at some moments (KV-05).

    Args:
        job: The problem.
        decoder: The decoder.
        moments: Ticks after which it is written again.
        reference: A finished run of AR; after every tick, all cells of finished positions must equal its own (KV-06).
    """
    decoding = start(job, decoder)
    expected = [] if reference is None else list(finished_cells(reference, reference.state.frontier - 1))
    decoding.kv.fill(free_positions(decoding), math.nan)
    while not decoding.is_finished:
        decoding.step()
        if decoding.state.ticks in moments:
            decoding.kv.fill(free_positions(decoding), math.nan)
        if reference is not None:
            finished_cells_are(expected, decoding)
    return decoding


def finished_cells_are(expected: Sequence[tuple[str, Tensor]], decoding: Decoding) -> None:
    """Every cell of every position below F - 1 is as expected, bit for bit; positions are the third axis (KV-06)."""
    number = decoding.state.frontier - 1
    for (name, cells), (_, right) in zip(finished_cells(decoding, number), expected, strict=True):
        assert torch.equal(cells, right[:, :, :number]), f"{name} of finished positions differ (KV-06)"


def outputs_are_identical(output: Output, expected: Output) -> None:
    """Tokens, reason, margins and logits are equal, bit for bit (CONF-02)."""
    assert output.token_ids == expected.token_ids
    assert output.finish_reason == expected.finish_reason
    assert output.margins == expected.margins
    assert output.logits is not None
    assert expected.logits is not None
    assert torch.equal(output.logits, expected.logits)


def everything_is_that_of_ar(job: Job, moments: Collection[int] = ()) -> None:
    """In exact arithmetic DtV and WFD give AR's tokens, logits, margins and cells after every tick (CONF-02, KV-06)."""
    reference = decode_amid_nan(job, "ar", moments)
    for decoder in ("dtv", "wfd"):
        remark(decoder)
        decoding = decode_amid_nan(job, decoder, moments, reference=reference)
        outputs_are_identical(decoding.output(), reference.output())


def everything_is_near_that_of_exact_ar(job: Job, moments: Collection[int] = ()) -> None:
    """In batched arithmetic all three give exact AR's tokens up to a near tie, and logits near its own (CONF-03)."""
    reference = decode(job.in_arithmetic(Arithmetic.EXACT), "ar")
    for decoder in ("ar", "dtv", "wfd"):
        remark(decoder)
        decoding = decode_amid_nan(job.in_arithmetic(Arithmetic.BATCHED), decoder, moments)
        if tokens_agree_up_to_a_near_tie(decoding.output(), reference.output()):
            ours = finished_cells(decoding, decoding.state.frontier - 1)
            theirs = finished_cells(reference, decoding.state.frontier - 1)
            assert all(agree(cells, expected) for (_, cells), (_, expected) in zip(ours, theirs, strict=True))


def tokens_agree_up_to_a_near_tie(output: Output, expected: Output) -> bool:
    """Holds that logits agree, and tokens too unless one is a near tie; says whether all tokens are equal (CONF-05)."""
    assert output.logits is not None
    assert expected.logits is not None
    pairs = zip(output.token_ids, expected.token_ids, output.logits, expected.logits, strict=False)
    for place, (token, right, logits, right_logits) in zip(numbers(), pairs, strict=False):
        assert agree(logits, right_logits), f"logits of token {place} differ by more than the tolerance (CONF-04)"
        if token != right:
            assert is_near_tie(right_logits), f"wrong: token {place} is {token} instead of {right} (CONF-05)"
            if currently_in_test_context():
                event("near tie")
            remark(f"near tie: token {place} is {token} instead of {right}, logits {right_logits.tolist()}")
            return False
    assert len(output.token_ids) == len(expected.token_ids)
    assert output.finish_reason == expected.finish_reason
    assert isinstance(output.finish_reason, FinishReason)
    return True


def events_are_those_of_the_schedule(case: Case, arithmetic: Arithmetic) -> None:
    """On the scripted model, ties and all, every decoder does what its schedule does on the bare table (CONF-03)."""
    job = Job.of(case, arithmetic=arithmetic, with_ties=True)
    for run in plays(case):
        decoding = decode(job, run.schedule.name)
        assert tuple(decoding.events) == run.events
        assert decoding.output().token_ids == list(run.token_ids)
        assert decoding.output().finish_reason == run.finish_reason
