"""The static path on CPU decodes what the eager engine decodes: tokens, counts and cells."""

import math
from dataclasses import replace
from typing import Any, Final

import pytest
import torch
from hypothesis import given

from reference.counts import count
from reference.engine import Arithmetic
from reference.graphs import StaticDecoder
from reference.provenance import Part
from tests.driving import MAKERS, Case, play
from tests.graphs.problems import PROMPTS, cells_differ_by, eager, same, small, static
from tests.runs import TOLERANCE, Job, decode, scripted
from tests.strategies import cases

DECODERS: Final = ("ar", "dtv", "wfd")


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_one_static_decoder_decodes_every_prompt_as_the_engine_does(family: str, decoder: str) -> None:
    """Case 27: nothing of the first prompt, its length or its drafts is left in the next one."""
    model = small(family)
    sizes: dict[str, Any] = {"depth": 4, "draft_depth": 1, "draft_length": 3}
    decoders = static(model, decoder, **sizes)
    for prompt, budget, stop_ids in zip(PROMPTS * 2, (13, 9, 9, 1, 0, 3), ((), (5,), (), (), (), ()), strict=True):
        expected = eager(model, prompt, decoder, max_new_tokens=budget, stop_ids=stop_ids, **sizes)
        found = decoders.decode(prompt, max_new_tokens=budget, eos_token_id=stop_ids)
        assert same(found, expected)


@pytest.mark.parametrize(
    "decoder,dtype,depth,draft_depth",
    [
        ("wfd", torch.float64, 16, 1),
        ("wfd", torch.float32, 16, 2),
        ("wfd", torch.float64, 6, 2),
        ("wfd", torch.float32, 6, 3),
        ("wfd", torch.float64, 5, 5),
        ("wfd", torch.float64, 1, 1),
        ("dtv", torch.float64, 8, 1),
        ("dtv", torch.float32, 6, 2),
        ("dtv", torch.float64, 3, 3),
    ],
)
def test_every_width_decodes_as_the_engine_does(decoder: str, dtype: torch.dtype, depth: int, draft_depth: int) -> None:
    model = small("huginn" if depth == 6 else "ouro", dtype=dtype)
    sizes: dict[str, Any] = {"depth": depth, "draft_depth": draft_depth, "draft_length": 2}
    expected = eager(model, PROMPTS[2], decoder, max_new_tokens=12, **sizes)
    assert same(static(model, decoder, **sizes).decode(PROMPTS[2], max_new_tokens=12, eos_token_id=None), expected)


@given(cases(most_recurrences=4, largest_budget=8))
def test_decisions_are_those_of_the_schedule_for_any_drafts(case: Case) -> None:
    """Any table, stop ids, budget and context, with WFD at the nearest draft depth that divides T."""
    case = replace(case, draft_depth=math.gcd(case.draft_depth, case.recurrence_depth))
    model = scripted(case)
    for decoder in ("wfd", "dtv"):
        expected = play(MAKERS[decoder], case)
        static_decoder = StaticDecoder(
            model,
            decoder=decoder,
            num_positions=max(1, case.end - 1),
            recurrence_depth=case.recurrence_depth,
            draft_depth=case.draft_depth,
            draft_length=case.draft_length,
            looks_every=2,
        )
        found = static_decoder.decode(case.prompt, max_new_tokens=case.max_new_tokens, eos_token_id=case.stop_ids)
        assert tuple(found.token_ids) == expected.token_ids
        assert found.finish_reason == expected.finish_reason
        assert found.counts == count(expected.events)


@pytest.mark.parametrize("decoder,dtype", [("ar", torch.float64), ("wfd", torch.float32), ("dtv", torch.float64)])
def test_finished_positions_leave_the_cells_that_the_engine_leaves(decoder: str, dtype: torch.dtype) -> None:
    model = small("huginn", dtype=dtype)
    job = Job(
        network=model,
        prompt=PROMPTS[1],
        recurrence_depth=4,
        draft_depth=2,
        draft_length=3,
        max_new_tokens=9,
        arithmetic=Arithmetic.BATCHED,
    )
    decoding = decode(job, decoder)
    static_decoder = static(model, decoder, depth=4, draft_depth=2)
    found = static_decoder.decode(job.prompt, max_new_tokens=9, eos_token_id=None)
    assert found.token_ids == decoding.output().token_ids
    number = len(job.prompt) + 9 - 1
    assert cells_differ_by(static_decoder, decoding, number) <= TOLERANCE[dtype]


@pytest.mark.parametrize("decoder", ["wfd", "dtv"])
def test_cells_that_nobody_owns_have_no_influence(decoder: str) -> None:
    model = small("huginn")
    static_decoder = static(model, decoder, depth=4, draft_depth=1)
    expected = static_decoder.decode(PROMPTS[0], max_new_tokens=9, eos_token_id=None)
    for name, buffer in static_decoder.step.cells.named_buffers():
        if name.endswith(("keys", "values")):
            buffer.fill_(1e30)
    found = static_decoder.decode(PROMPTS[0], max_new_tokens=9, eos_token_id=None)
    assert (found.token_ids, found.counts) == (expected.token_ids, expected.counts)


@pytest.mark.parametrize("decoder", ["wfd", "dtv"])
def test_executions_without_a_lane_leave_no_trace(decoder: str) -> None:
    """A capture begins with some of them."""
    model = small("huginn")
    sizes: dict[str, Any] = {"depth": 4, "draft_depth": 1, "draft_length": 3}
    static_decoder = static(model, decoder, **sizes)
    positions = static_decoder.step.positions.clone()
    for call in dict.fromkeys(static_decoder.calls):
        for _ in range(3):
            call()
    assert torch.equal(static_decoder.step.positions, positions)  # they would run out of the cells
    assert not any(cells[:, :, :-1].any() for part in Part for cells in static_decoder.step.cells.part(part))
    expected = eager(model, PROMPTS[0], decoder, max_new_tokens=9, **sizes)
    assert same(static_decoder.decode(PROMPTS[0], max_new_tokens=9, eos_token_id=None), expected)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("draft_depth", [1, 2, 3])
def test_shared_slots_give_what_an_eager_cache_with_as_few_slots_gives(decoder: str, draft_depth: int) -> None:
    model = small("ouro")
    sizes: dict[str, Any] = {"depth": 6, "draft_depth": draft_depth, "draft_length": 3}
    static_decoder = static(model, decoder, kv_slots=2, **sizes)
    for prompt in PROMPTS[:2]:
        expected = eager(model, prompt, decoder, max_new_tokens=10, kv_slots=2, **sizes)
        assert same(static_decoder.decode(prompt, max_new_tokens=10, eos_token_id=None), expected)
    own = static(model, decoder, **sizes)
    assert static_decoder.step.cells.num_bytes * 3 == own.step.cells.num_bytes


def test_sharing_changes_what_is_decoded_so_that_the_test_above_can_fail() -> None:
    model = small("ouro")
    own, shared = (static(model, "ar", depth=6, draft_depth=6, kv_slots=slots) for slots in (None, 1))
    assert own.decode(PROMPTS[1], max_new_tokens=10).token_ids != shared.decode(PROMPTS[1], max_new_tokens=10).token_ids


@pytest.mark.parametrize("looks_every,ahead", [(1, 0), (1, 1), (3, 1), (20, 1)])
def test_tokens_do_not_depend_on_when_the_host_looks(looks_every: int, ahead: int) -> None:
    model = small("ouro")
    static_decoder = static(model, "wfd", depth=4, draft_depth=1, looks_every=looks_every)
    expected = eager(model, (1, 2), "wfd", depth=4, draft_depth=1, draft_length=1, max_new_tokens=12)
    static_decoder._ahead = ahead  # noqa: SLF001 - what a CUDA device would have
    assert same(static_decoder.decode((1, 2), max_new_tokens=12, eos_token_id=None), expected)
