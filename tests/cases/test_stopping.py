"""Cases 1, 2, 14 and 22: end tokens, length caps and the end of the context, inside a round or a wave."""

import pytest
import torch

from reference.errors import ParameterError
from reference.models.scripted import ScriptedModel
from reference.schedule import Commit, Event, Inject
from tests.cases.decoders import decode, every_decoder, every_draft_length, lap_model
from tests.runs import tiny_model


@pytest.mark.spec("SMP-14")
@every_decoder
def test_case_1_an_end_token_in_mid_block_is_the_last_token(decoder: str) -> None:
    output = decode(decoder, lap_model(), [0], max_new_tokens=20, eos_token_id=2)
    assert output.token_ids == [1, 2]
    assert output.finish_reason == "eos"


@pytest.mark.spec("SMP-14", "WFD-11", "DTV-07")
@pytest.mark.parametrize("family", ["scripted", "ouro", "huginn"])
@pytest.mark.parametrize("draft_depth", [1, 3])
def test_case_1_any_token_of_ar_named_as_end_token_ends_all_three_at_its_first_place(
    family: str, draft_depth: int
) -> None:
    model = lap_model() if family == "scripted" else tiny_model(family, 6, torch.float64)
    options = {"max_new_tokens": 12, "recurrence_depth": 3, "draft_depth": draft_depth}
    unstopped = decode("ar", model, [0, 1], eos_token_id=None, **options).token_ids
    for stop in set(unstopped):
        expected = unstopped[: unstopped.index(stop) + 1]
        for decoder in ("ar", "dtv", "wfd"):
            output = decode(decoder, model, [0, 1], eos_token_id=stop, **options)
            assert output.token_ids == expected
            assert output.finish_reason == "eos"


@pytest.mark.spec("SMP-14", "NOT-01")
@every_decoder
@every_draft_length
def test_case_2_a_length_cap_gives_exactly_so_many_tokens(decoder: str, draft_length: int) -> None:
    for cap in range(1, 13):
        streamed: list[int] = []

        def watch(event: Event, streamed: list[int] = streamed) -> None:
            if isinstance(event, Commit):
                streamed.append(event.token)

        output = decode(decoder, lap_model(), [0], max_new_tokens=cap, draft_length=draft_length, tracer=watch)
        assert output.token_ids == streamed == [token % 8 for token in range(1, cap + 1)]
        assert output.finish_reason == "length"


@pytest.mark.spec("SMP-09")
@every_decoder
@pytest.mark.parametrize(
    "stop,last",
    [
        (None, None),
        (0, 0),
        (5, 5),
        ([2, 5], 2),
        ([5, 2], 2),
        ((7, 6), 6),
        ({3, 4}, 3),
        (frozenset({4}), 4),
        (torch.tensor([5, 6]), 5),
        (torch.tensor(6), 6),
        ([], None),
        (torch.tensor([], dtype=torch.int64), None),
    ],
    ids=repr,
)
def test_case_14_an_end_token_may_be_none_an_id_or_any_collection_of_ids(
    decoder: str, stop: object, last: int | None
) -> None:
    output = decode(decoder, lap_model(), [0], max_new_tokens=20, eos_token_id=stop)
    assert output.finish_reason == ("length" if last is None else "eos")
    assert len(output.token_ids) == 20 if last is None else output.token_ids[-1] == last
    assert output.token_ids == [token % 8 for token in range(1, len(output.token_ids) + 1)]


@pytest.mark.spec("SMP-08")
@every_decoder
@pytest.mark.parametrize("stop", [8, -1, [2, 8], {9}, torch.tensor([2, -1]), 2.5], ids=repr)
def test_case_14_an_end_token_outside_the_vocabulary_is_a_value_error(decoder: str, stop: object) -> None:
    with pytest.raises(ValueError, match=r"eos_token_id=.*\(SMP-08\)") as caught:
        decode(decoder, lap_model(), [0], max_new_tokens=20, eos_token_id=stop)
    assert isinstance(caught.value, ParameterError)


@pytest.mark.spec("SMP-15", "KV-02", "NOT-01")
@every_decoder
@pytest.mark.parametrize("draft_length", [1, 8])
def test_case_22_a_context_that_is_just_long_enough_changes_nothing(decoder: str, draft_length: int) -> None:
    model = lap_model(context_length=7)
    output = decode(decoder, model, [0, 1, 2], max_new_tokens=5, draft_length=draft_length, provenance=True)
    assert output.token_ids == [3, 4, 5, 6, 7]
    assert output.finish_reason == "length"
    assert max(event.position for event in output.events if isinstance(event, Inject)) == 6
    assert output.kv_bytes == 7 * model.kv_shapes.bytes_per_position(4, bytes_per_element=8)


@pytest.mark.spec("SMP-14", "SMP-15")
@every_decoder
@pytest.mark.parametrize("draft_length", [1, 8])
def test_case_22_one_position_less_ends_all_three_one_token_earlier(decoder: str, draft_length: int) -> None:
    output = decode(decoder, lap_model(context_length=6), [0, 1, 2], max_new_tokens=5, draft_length=draft_length)
    assert output.token_ids == [3, 4, 5, 6]
    assert output.finish_reason == "context"


@pytest.mark.spec("SMP-06", "SMP-14")
@every_decoder
def test_case_22_a_prompt_that_fills_the_context_gets_one_token_and_a_longer_one_none(decoder: str) -> None:
    model = lap_model(context_length=3)
    assert decode(decoder, model, [0, 1, 2], max_new_tokens=5).token_ids == [3]
    assert decode(decoder, model, [0, 1, 2], max_new_tokens=5).finish_reason == "context"
    assert decode(decoder, model, [0, 1, 2], max_new_tokens=1).finish_reason == "length"
    with pytest.raises(ParameterError, match="SMP-06"):
        decode(decoder, model, [0, 1, 2, 3], max_new_tokens=5)


@pytest.mark.spec("SMP-01")
@every_decoder
@pytest.mark.parametrize("arithmetic", ["exact", "batched"])
def test_case_24_when_all_logits_are_equal_the_token_is_0(decoder: str, arithmetic: str) -> None:
    model = ScriptedModel(table=lambda _prefix, _depth: [1.5] * 8, vocab_size=8, recurrence_depth=4)
    output = decode(decoder, model, [3], max_new_tokens=9, arithmetic=arithmetic)
    assert output.token_ids == [0] * 9
    assert output.margins == [0.0] * 9
    assert output.counts.rejected == 0
