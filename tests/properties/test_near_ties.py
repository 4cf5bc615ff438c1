"""When different tokens are a near tie, by rule, and when they are wrong."""

from dataclasses import replace

import pytest
import torch

from reference.engine import Output
from tests.cases.decoders import decode, lap_model
from tests.laws.engine import tokens_agree_up_to_a_near_tie
from tests.runs import is_near_tie


def output_of(tokens: list[int], logits: list[list[float]], dtype: torch.dtype) -> Output:
    """Gives an output that claims tokens and logits."""
    some = decode("ar", lap_model(), [0], max_new_tokens=len(tokens))
    return replace(some, token_ids=tokens, logits=torch.tensor(logits, dtype=dtype))


@pytest.mark.spec("CONF-04", "CONF-05")
@pytest.mark.parametrize(
    "dtype,row,verdict",
    [
        (torch.float32, [5.0, 4.9995], True),  # margin 0.0005, at most 2 * 1e-4 * 5
        (torch.float32, [5.0, 4.98], False),
        (torch.float32, [0.1, 0.09985], True),  # small logits are measured against 1
        (torch.float64, [5.0, 4.9995], False),
        (torch.float64, [5.0, 5.0], True),
        (torch.bfloat16, [5.0, 4.5], True),
        (torch.bfloat16, [5.0, 4.0], False),
    ],
)
def test_a_margin_of_at_most_two_tolerances_is_a_near_tie(dtype: torch.dtype, row: list[float], verdict: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_near_tie(torch.tensor(row, dtype=dtype)) == verdict


@pytest.mark.spec("CONF-05")
def test_another_token_at_a_near_tie_ends_the_comparison_and_elsewhere_it_is_wrong() -> None:
    near, far = [5.0, 4.9995], [5.0, 4.0]
    right = output_of([0, 0, 1], [far, near, [0.0, 9.0]], torch.float32)
    assert tokens_agree_up_to_a_near_tie(right, right)
    # What follows a near tie has another prefix and is not compared.
    assert not tokens_agree_up_to_a_near_tie(output_of([0, 1, 0], [far, near, far], torch.float32), right)
    with pytest.raises(AssertionError, match=r"wrong: token 0 is 1 instead of 0 \(CONF-05\)"):
        tokens_agree_up_to_a_near_tie(output_of([1, 0, 1], [far, near, [0.0, 9.0]], torch.float32), right)
    with pytest.raises(AssertionError, match=r"logits of token 1 differ .* \(CONF-04\)"):
        tokens_agree_up_to_a_near_tie(output_of([0, 0, 1], [far, [5.0, 4.9], [0.0, 9.0]], torch.float32), right)
