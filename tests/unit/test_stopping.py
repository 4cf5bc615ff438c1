"""The end of a sequence, as a table."""

import pytest

from reference.errors import ParameterError
from reference.stopping import FinishReason, Stopping


def limits(prompt_length: int, max_new_tokens: int, context_length: int, *stop_ids: int) -> Stopping:
    return Stopping(
        prompt_length=prompt_length,
        max_new_tokens=max_new_tokens,
        context_length=context_length,
        stop_ids=frozenset(stop_ids),
    )


@pytest.mark.spec("NOT-01", "SMP-14")
@pytest.mark.parametrize(
    "prompt_length,max_new_tokens,context_length,end,reason",
    [
        (3, 5, 64, 8, "length"),
        (3, 5, 7, 8, "length"),  # the last token needs no position of its own
        (3, 5, 6, 7, "context"),
        (3, 5, 3, 4, "context"),  # the prompt fills the context: one token
        (3, 1, 3, 4, "length"),
        (3, 0, 3, 3, "length"),
        (1, 1, 1, 2, "length"),
        (1, 2, 1, 2, "context"),
    ],
)
def test_the_end_and_its_reason(
    prompt_length: int, max_new_tokens: int, context_length: int, end: int, reason: str
) -> None:
    stopping = limits(prompt_length, max_new_tokens, context_length)
    assert stopping.end == end
    assert stopping.reason_of_end() == reason
    assert stopping.reason_at(end, 0) == reason
    assert stopping.reason_at(end - 1, 0) is None


@pytest.mark.spec("SMP-14")
def test_a_stop_id_ends_before_the_end_and_wins_at_the_end() -> None:
    stopping = limits(1, 5, 64, 0, 7)
    assert stopping.reason_at(3, 0) is FinishReason.EOS
    assert stopping.reason_at(3, 7) is FinishReason.EOS
    assert stopping.reason_at(3, 1) is None
    assert stopping.reason_at(6, 7) is FinishReason.EOS
    assert stopping.reason_at(6, 1) is FinishReason.LENGTH


@pytest.mark.spec("SMP-15")
def test_a_lane_may_start_only_if_its_prediction_can_be_committed() -> None:
    stopping = limits(3, 5, 64)
    assert [stopping.may_inject(position) for position in (5, 6, 7, 8)] == [True, True, False, False]


@pytest.mark.spec("SMP-04", "SMP-05", "SMP-06")
@pytest.mark.parametrize(
    "prompt_length,max_new_tokens,context_length,message",
    [
        (0, 5, 64, "prompt_length=0: the prompt is empty (SMP-05)"),
        (5, 5, 4, "prompt_length=5 exceeds context_length=4 (SMP-06)"),
        (1, -1, 4, "max_new_tokens=-1 is below 0 (SMP-04)"),
        (1, True, 4, "max_new_tokens=True is not a whole number (SMP-04)"),
    ],
)
def test_limits_under_which_nothing_can_be_decoded_are_refused(
    prompt_length: int, max_new_tokens: int, context_length: int, message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        limits(prompt_length, max_new_tokens, context_length)
    assert str(caught.value) == message


def test_reasons_equal_their_text() -> None:
    assert [str(reason) for reason in FinishReason] == ["eos", "length", "context"]
