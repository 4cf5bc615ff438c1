"""Cases 8, 13 and 33: the order of a wave, the recurrence depth of a call, and what the draft depth changes."""

import warnings
from typing import Any

import pytest
import torch
from hypothesis import given

from reference.engine import Arithmetic
from reference.models.protocol import LoopedModel
from reference.schedule import Advance, Flush, Inject, Lane
from tests.cases.decoders import decode, every_decoder, lap_model
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro
from tests.runs import Job
from tests.runs import decode as decode_job
from tests.strategies import jobs


@pytest.mark.spec("WFD-11", "DTV-07", "KV-03")
@given(job=jobs(arithmetic=Arithmetic.BATCHED, dtypes=(torch.float64,)))
def test_case_8_a_position_runs_a_recurrence_only_after_all_before_it_have(job: Job) -> None:
    """In the trace: whoever runs recurrence r, every earlier position has run r, on the very token it sees."""
    decoding = decode_job(job, "wfd", provenance=False)
    depths = dict.fromkeys(range(len(job.prompt)), job.recurrence_depth)
    tokens = dict(enumerate(job.prompt))
    for event in decoding.events:
        if isinstance(event, Inject):
            depths[event.position], tokens[event.position] = 0, event.token
        elif isinstance(event, Flush):
            for position in event.positions:
                del depths[position], tokens[position]
        elif isinstance(event, Advance):
            for lane in event.lanes:
                depths[lane.position] += 1
                assert Lane(lane.position, tokens[lane.position], depths[lane.position]) == lane
                assert all(depths[earlier] >= lane.depth for earlier in range(lane.position))
    assert max(depths) <= job.context_length - 1


@pytest.mark.spec("MOD-02")
@every_decoder
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_case_13_two_recurrences_of_a_deeper_model_are_a_model_of_two(decoder: str, family: str) -> None:
    def model_of(depth: int) -> LoopedModel:
        if family == "ouro":
            return random_ouro(ouro_config(recurrence_depth=depth))
        return random_huginn(huginn_config(recurrence_depth=depth))

    deep, shallow = model_of(4), model_of(2)
    options: dict[str, Any] = {"max_new_tokens": 10, "keep_logits": True, "arithmetic": "exact"}
    output = decode(decoder, deep, [1, 2, 3], recurrence_depth=2, **options)
    expected = decode(decoder, shallow, [1, 2, 3], **options)
    assert output.token_ids == expected.token_ids
    assert output.events == expected.events
    assert output.kv_bytes == expected.kv_bytes
    assert output.logits is not None
    assert expected.logits is not None
    assert torch.equal(output.logits, expected.logits)
    assert deep.recurrence_depth == 4
    assert decode(decoder, deep, [1, 2, 3], **options).token_ids != output.token_ids


@pytest.mark.spec("MOD-02", "MOD-01")
@every_decoder
def test_case_13_deeper_than_trained_works_and_warns_once_and_below_1_is_a_value_error(decoder: str) -> None:
    model = lap_model(recurrence_depth=4)
    with pytest.warns(UserWarning, match="deeper than the model was trained for") as caught:
        output = decode(decoder, model, [4], max_new_tokens=5, recurrence_depth=6)
    assert len(caught) == 1
    assert len(output.token_ids) == 5
    with pytest.raises(ValueError, match=r"recurrence_depth=0 is below 1 \(MOD-01\)"):
        decode(decoder, model, [4], max_new_tokens=5, recurrence_depth=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decode(decoder, model, [4], max_new_tokens=5, recurrence_depth=4)


@pytest.mark.spec("WFD-11")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_case_33_the_draft_depth_changes_speed_not_text_and_stopping_early_changes_text(family: str) -> None:
    model = random_ouro(seed=7) if family == "ouro" else random_huginn(seed=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = [
            decode("wfd", model, [1, 2], max_new_tokens=20, recurrence_depth=4, draft_depth=depth)
            for depth in (1, 2, 3)
        ]
        shallow = decode("ar", model, [1, 2], max_new_tokens=20, recurrence_depth=1)
    assert outputs[0].token_ids == outputs[1].token_ids == outputs[2].token_ids
    assert len({output.acceptance_rate for output in outputs}) > 1
    assert shallow.token_ids != outputs[0].token_ids
