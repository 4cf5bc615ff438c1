"""Tokens, judged one by one on the candidate's own prefix."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from reference import oracle
from reference.axes import Hidden, Logits
from reference.errors import NumericsError, ParameterError
from reference.models.protocol import AttentionRows
from reference.models.scripted import ScriptedModel
from reference.oracle.token_verdicts import Fault, TokensVerdict
from reference.oracle.verdicts import Verdict, worst
from tests.cases.decoders import decode, every_decoder, lap_model
from tests.models_for_tests import random_model
from tests.running import Running
from tests.runs import tiny_model

EXACT, NEAR_TIE, WRONG = Verdict.EXACT, Verdict.NEAR_TIE, Verdict.WRONG


def faults(verdict: TokensVerdict) -> list[tuple[int, str]]:
    return [(fault.index, fault.clause) for fault in verdict.faults]


def fixed(*rows: Sequence[float], context_length: int = 64, dtype: torch.dtype = torch.float64) -> ScriptedModel:
    """Gives a model that says the first row after a prompt of one token, the second after two tokens, and so on."""
    return ScriptedModel(
        table=lambda prefix, depth: rows[min(len(prefix), len(rows)) - 1] if depth == 2 else rows[0],
        vocab_size=len(rows[0]),
        recurrence_depth=2,
        context_length=context_length,
        dtype=dtype,
    )


@pytest.mark.spec("AR-03", "WFD-11", "DTV-07")
@every_decoder
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("stop", [None, "last"])
def test_what_the_reference_decodes_is_exact(decoder: str, family: str, stop: str | None) -> None:
    model = random_model(family, seed=5)
    ids = decode("ar", model, [1, 2, 3], max_new_tokens=12, eos_token_id=None, state_seed=2).token_ids
    eos = None if stop is None else ids[7]
    options: dict[str, Any] = {"max_new_tokens": 12, "eos_token_id": eos, "state_seed": 2}
    output = decode(decoder, model, [1, 2, 3], **options)
    verdict = oracle.check_tokens(
        model,
        [1, 2, 3],
        output.token_ids,
        max_new_tokens=12,
        eos_token_id=eos,
        state_seed=2,
        finish_reason=output.finish_reason,
    )
    assert verdict.verdict is EXACT, str(verdict)
    assert verdict.finish_reason == output.finish_reason
    assert [token.margin for token in verdict.tokens] == pytest.approx(output.margins, abs=1e-10)
    assert verdict.first_difference is None


@given(seed=st.integers(0, 7), place=st.integers(0, 8), other=st.integers(1, 6))
def test_a_token_changed_anywhere_is_found_at_its_place(seed: int, place: int, other: int) -> None:
    model = tiny_model("ouro", seed, torch.float64)
    ids = decode("ar", model, [1], max_new_tokens=9).token_ids
    ids[place] = (ids[place] + other) % 7
    verdict = oracle.check_tokens(model, [1], ids)
    first = verdict.first_difference
    assert verdict.verdict is WRONG
    assert first is not None
    assert (first.index, first.candidate_id) == (place, ids[place])
    assert faults(verdict)[0] == (place, "AR-03")
    assert first.gap > first.tolerance


@pytest.mark.spec("CONF-05")
@pytest.mark.parametrize(
    "logits,tolerance,expected",
    [
        ((5.0, 4.98, 0.0), 0.05, NEAR_TIE),
        ((5.0, 4.0, 0.0), 0.05, WRONG),
        ((5.0, 4.95, 0.0), 0.06, NEAR_TIE),
        ((5.0, 5.0, 0.0), 0.0, NEAR_TIE),
    ],
)
def test_case_25_a_token_within_the_tolerance_is_a_near_tie_and_no_other_is(
    logits: tuple[float, ...], tolerance: float, expected: Verdict
) -> None:
    verdict = oracle.check_tokens(fixed(logits), [2], [1], tolerance=tolerance)
    assert verdict.verdict is expected
    first = verdict.first_difference
    assert first is not None
    assert (first.candidate_id, first.reference_id) == (1, 0)
    assert (first.reference_logit, first.candidate_logit) == logits[:2]
    assert first.gap == first.margin == logits[0] - logits[1]


@pytest.mark.spec("CONF-05")
def test_a_near_tie_condemns_nothing_behind_it_and_excuses_nothing() -> None:
    model = ScriptedModel(
        table=lambda prefix, _: [1.0, 1.0 - 1e-12, 0.0] if len(prefix) == 1 else [0.0, 0.0, float(prefix[1]) + 1],
        vocab_size=3,
        recurrence_depth=2,
    )
    verdict = oracle.check_tokens(model, [0], [1, 2, 2])
    assert verdict.verdict is NEAR_TIE
    assert [token.verdict for token in verdict.tokens] == [NEAR_TIE, EXACT, EXACT]
    assert verdict.is_consistent_after_near_tie
    assert len(verdict.near_ties) == 1
    verdict = oracle.check_tokens(model, [0], [1, 2, 0])
    assert [token.verdict for token in verdict.tokens] == [NEAR_TIE, EXACT, WRONG]
    assert not verdict.is_consistent_after_near_tie
    assert faults(verdict) == [(2, "AR-03")]


@pytest.mark.spec("CONF-05", "CONF-04")
@pytest.mark.parametrize(
    "dtype,within", [(torch.float64, 1e-10), (torch.float32, 1e-4), (torch.bfloat16, 0.0625), (torch.float16, 2.0**-7)]
)
def test_the_default_tolerance_is_that_of_the_coarser_type_and_grows_with_the_logits(
    dtype: torch.dtype, within: float
) -> None:
    (small,) = oracle.check_tokens(fixed((0.5, 0.0)), [0], [0], dtype=dtype).tokens
    (large,) = oracle.check_tokens(fixed((-8.0, 3.0)), [0], [1], dtype=dtype).tokens
    assert small.tolerance == pytest.approx(2 * within)
    assert large.tolerance == pytest.approx(16 * within)
    (coarse,) = oracle.check_tokens(fixed((0.5, 0.0), dtype=torch.bfloat16), [0], [0], dtype=dtype).tokens
    assert coarse.tolerance == pytest.approx(2 * 0.0625)


def test_a_type_without_a_tolerance_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"dtype=torch.int8 is none of .*\(CONF-04\)"):
        oracle.check_tokens(fixed((0.5, 0.0)), [0], [0], dtype=torch.int8)


def test_an_infinite_logit_does_not_make_everything_a_tie() -> None:
    verdict = oracle.check_tokens(fixed((-math.inf, 2.0, 0.0)), [0], [2])
    assert verdict.verdict is WRONG
    assert verdict.tokens[0].tolerance == pytest.approx(4e-10)
    assert faults(oracle.check_tokens(fixed((-math.inf, 2.0, 0.0)), [0], [0])) == [(0, "AR-03")]


@pytest.mark.spec("SMP-02")
def test_nan_is_no_verdict() -> None:
    with pytest.raises(NumericsError, match="SMP-02"):
        oracle.check_tokens(fixed((math.nan, 2.0)), [0], [1])


@pytest.mark.spec("SMP-01")
def test_a_wrong_token_that_a_shallow_readout_says_is_named_as_that() -> None:
    verdict = oracle.check_tokens(lap_model(), [0], [1, 2, 3, 0])
    assert faults(verdict) == [(3, "AR-03")]
    assert verdict.faults[0].reason == "token 0 where the full depth says 4, 1 ahead; depth 1, 2, 3 says 0"
    assert "depth" in str(verdict)
    other = oracle.check_tokens(lap_model(), [0], [1, 2, 3, 7])
    assert "; depth" not in other.faults[0].reason


@pytest.mark.spec("MOD-02")
def test_the_depth_asked_for_is_the_depth_judged() -> None:
    model = lap_model()
    assert oracle.check_tokens(model, [0], [1, 2, 3, 4]).verdict is EXACT
    # At depth 3 the scripted model gives its shallow answer.
    assert oracle.check_tokens(model, [0], [1, 2, 3, 0], recurrence_depth=3).verdict is EXACT


@pytest.mark.spec("SMP-14")
@pytest.mark.parametrize(
    "ids,options,expected",
    [
        ([1, 2], {"eos_token_id": 2, "finish_reason": "eos"}, []),
        ([1, 2], {"eos_token_id": 2, "finish_reason": "length"}, [(2, "SMP-14")]),
        ([1], {"eos_token_id": 2, "finish_reason": "eos"}, [(1, "SMP-14")]),
        ([1, 2, 3], {"eos_token_id": 2}, [(2, "SMP-14")]),
        ([1, 2, 3], {"max_new_tokens": 4}, [(3, "SMP-14")]),
        ([1, 2, 3, 4, 5], {"max_new_tokens": 4}, [(4, "SMP-14")]),
        ([1, 2, 3, 4], {"max_new_tokens": 4, "finish_reason": "length"}, []),
        ([1, 2, 3, 4], {"max_new_tokens": 4, "finish_reason": "context"}, [(4, "SMP-14")]),
        ([1, 2, 3, 4], {"finish_reason": "length"}, []),
        ([1, 2, 3, 4], {"finish_reason": "context"}, [(4, "SMP-14")]),
        ([1, 2, 3, 4, 5, 6], {"finish_reason": "context"}, []),
        ([1, 2, 3, 4, 5, 6, 7], {}, [(6, "SMP-14")]),
        ([], {"max_new_tokens": 0, "finish_reason": "length"}, []),
        ([1], {"max_new_tokens": 0}, [(0, "SMP-10")]),
        ([], {"max_new_tokens": 3}, [(0, "SMP-14")]),
        ([], {}, []),
    ],
)
def test_the_end_is_judged(ids: list[int], options: dict[str, object], expected: list[tuple[int, str]]) -> None:
    verdict = oracle.check_tokens(lap_model(context_length=6), [0], ids, **options)  # type: ignore[arg-type]
    assert faults(verdict) == expected
    assert verdict.verdict is (WRONG if expected else EXACT)
    assert [token.verdict for token in verdict.tokens].count(WRONG) == 0


def test_what_follows_a_text_that_is_too_short_is_told() -> None:
    model = lap_model()
    (fault,) = oracle.check_tokens(model, [0], [1, 2], max_new_tokens=4).faults
    assert fault.reason.endswith("the reference goes on with 3")
    (fault,) = oracle.check_tokens(model, [0], [1, 2], max_new_tokens=4, eos_token_id=3).faults
    assert fault == Fault(2, "SMP-14", "the stop id 3 is missing: it is part of the result, as its last token")


@pytest.mark.spec("MOD-04")
@pytest.mark.parametrize("stranger", [-1, 8, 10**20])
def test_an_id_outside_the_vocabulary_is_wrong_and_nothing_is_said_of_what_follows(stranger: int) -> None:
    verdict = oracle.check_tokens(lap_model(), [0], [1, stranger, 3, 4], max_new_tokens=9)
    assert faults(verdict) == [(1, "MOD-04")]
    assert len(verdict.tokens) == 2
    assert verdict.tokens[1].candidate_logit == -math.inf
    assert verdict.tokens[1].gap == math.inf


@pytest.mark.spec("CONF-03")
def test_log_probabilities_are_compared() -> None:
    model = fixed((math.log(0.7), math.log(0.3)))
    right = oracle.check_tokens(model, [0], [0], logprobs=[math.log(0.7)])
    assert right.verdict is EXACT
    assert right.tokens[0].logprob_error == pytest.approx(0.0)
    for claimed in (math.log(0.2), 0.0, math.nan):
        verdict = oracle.check_tokens(model, [0], [0], logprobs=[claimed])
        assert faults(verdict) == [(0, "CONF-03")]
    assert oracle.check_tokens(model, [0], [0]).tokens[0].logprob_error is None


@pytest.mark.parametrize(
    "ids,options,match",
    [
        ([1, True], {}, "SMP-07"),
        ([True], {}, "SMP-07"),
        ([1], {"logprobs": [0.0, 0.0]}, "2 logprobs for 1"),
        ([1], {"tolerance": -0.1}, "CONF-05"),
        ([1], {"tolerance": math.nan}, "CONF-05"),
        ([1], {"recurrence_depth": 0}, "MOD-01"),
        ([1], {"state_seed": -1}, "MOD-08"),
        ([1], {"eos_token_id": 99}, "SMP-08"),
        ([1], {"max_new_tokens": -1}, "SMP-04"),
    ],
)
def test_a_bad_argument_is_an_error_and_no_verdict(ids: list[int], options: dict[str, object], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        oracle.check_tokens(lap_model(), [0], ids, **options)  # type: ignore[arg-type]


def test_tensors_are_ids_too() -> None:
    verdict = oracle.check_tokens(lap_model(), torch.tensor([0]), torch.tensor([1, 2, 3, 4]))
    assert verdict.verdict is EXACT
    assert str(verdict) == "exact: 4 tokens judged, 0 near ties"


@pytest.mark.spec("MOD-03")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_one_pass_over_the_text_is_all_that_is_computed(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(family)
    ids = decode("ar", model, [1, 2], max_new_tokens=20).token_ids
    rows: list[int] = []
    recur, head = type(model).recur, type(model).head
    read: list[int] = []

    def counted(self: object, states: Hidden, injected: Hidden, call: AttentionRows) -> Hidden:
        rows.append(len(states))
        return recur(self, states, injected, call)  # type: ignore[arg-type]

    def headed(self: object, coda_output: Hidden) -> Logits:
        read.append(len(coda_output))
        return head(self, coda_output)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "recur", counted)
    monkeypatch.setattr(type(model), "head", headed)
    verdict = oracle.check_tokens(model, [1, 2], ids)
    assert verdict.verdict is EXACT
    assert rows == [2 + 20 - 1] * model.recurrence_depth
    assert read == [20]


def test_the_logits_are_those_of_a_plain_run() -> None:
    model = random_model("huginn")
    running = Running(model, num_positions=4, state_seed=1, state_scale=1.0)
    logits = running.logits([1, 2, 3, 4])
    verdict = oracle.check_tokens(model, [1], [2, 3, 4], max_new_tokens=5, state_seed=1)
    assert [token.reference_logit for token in verdict.tokens] == pytest.approx(logits.amax(-1)[:3].tolist())
    assert [token.candidate_logit for token in verdict.tokens] == pytest.approx(
        [float(logits[row, token]) for row, token in enumerate((2, 3, 4))]
    )


def test_wrong_weighs_more_than_a_near_tie_and_that_more_than_exact() -> None:
    assert worst([]) is EXACT
    assert worst([EXACT, NEAR_TIE, EXACT]) is NEAR_TIE
    assert worst([WRONG, NEAR_TIE, EXACT]) is WRONG
