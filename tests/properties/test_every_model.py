"""AR, DtV and WFD on real caches: a scripted model that reads its prefix from cells, and small random networks."""

import pytest
import torch
from hypothesis import given

from reference.engine import Arithmetic
from tests.driving import Case
from tests.laws import engine
from tests.runs import Job
from tests.strategies import cases, jobs, moments

EVERY_DTYPE = (torch.float64, torch.float32, torch.bfloat16)


@pytest.mark.spec("CONF-02", "DTV-07", "WFD-11", "KV-03", "KV-04", "KV-05", "KV-06", "KV-07", "MOD-05")
@given(job=jobs(arithmetic=Arithmetic.EXACT, dtypes=EVERY_DTYPE), moments=moments)
def test_in_exact_arithmetic_everything_is_that_of_ar_bit_for_bit(job: Job, moments: set[int]) -> None:
    engine.everything_is_that_of_ar(job, moments)


@pytest.mark.spec("CONF-03", "CONF-04", "CONF-05", "DTV-07", "WFD-11", "KV-03", "KV-04", "KV-05", "KV-06", "KV-07")
@given(job=jobs(arithmetic=Arithmetic.BATCHED, dtypes=EVERY_DTYPE), moments=moments)
def test_in_batched_arithmetic_tokens_are_those_of_ar_up_to_a_near_tie(job: Job, moments: set[int]) -> None:
    engine.everything_is_near_that_of_exact_ar(job, moments)


@pytest.mark.spec("CONF-03", "KV-03", "KV-04", "MOD-03", "SMP-01")
@pytest.mark.parametrize("arithmetic", Arithmetic)
@given(case=cases(most_recurrences=5, largest_budget=9))
def test_the_engine_does_what_the_schedule_says_whoever_answers(arithmetic: Arithmetic, case: Case) -> None:
    engine.events_are_those_of_the_schedule(case, arithmetic)
