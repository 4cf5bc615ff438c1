"""The engine around a schedule: arguments, surroundings, what is computed and what is not."""

import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch

from reference import ar, dtv, engine, wfd
from reference.engine import Arithmetic, Output
from reference.errors import NumericsError, ParameterError
from reference.kv import KVCache, Rows
from reference.models.protocol import LoopedModel
from reference.models.scripted import ScriptedModel
from reference.provenance import Part
from reference.schedule import Commit, Event, Start
from reference.stopping import Stopping
from tests.driving import Case, Lap
from tests.models_for_tests import random_huginn, random_ouro
from tests.running import Running
from tests.runs import Job, decode, scripted, start, tiny_model

LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=3, max_new_tokens=9)


def run(decoder: str, model: LoopedModel, prompt: object, **options: Any) -> Output:  # noqa: ANN401 - whatever is tried
    """Calls a decoder's `generate` with defaults for all that it requires."""
    options = {"max_new_tokens": 9} | options
    generators: dict[str, Callable[..., Output]] = {"ar": ar.generate, "dtv": dtv.generate, "wfd": wfd.generate}
    if decoder != "ar":
        options = {"draft_depth": 1} | options
    if decoder == "dtv":
        options = {"draft_length": 3} | options
    return generators[decoder](model, prompt, **options)


every_decoder = pytest.mark.parametrize("decoder", ["ar", "dtv", "wfd"])


def no_answer(prefix: tuple[int, ...], depth: int) -> list[float]:
    message = f"asked about {prefix} at depth {depth}"
    raise AssertionError(message)


def untouchable_model() -> ScriptedModel:
    """Gives a model that must not be computed."""
    return ScriptedModel(table=no_answer, vocab_size=8, recurrence_depth=4, context_length=6)


BAD_ARGUMENTS = [
    ([], {}, "prompt_length=0: the prompt is empty (SMP-05)"),
    ([0] * 7, {}, "prompt_length=7 exceeds context_length=6 (SMP-06)"),
    ([0, 8], {}, "prompt_ids=[8] outside the vocabulary of 8 tokens (SMP-07)"),
    ([-1], {}, "prompt_ids=-1 is below 0 (SMP-07)"),
    ([True], {}, "prompt_ids=True is not a whole number (SMP-07)"),
    (torch.tensor([1.0]), {}, "prompt_ids=1.0 is not a whole number (SMP-07)"),
    (torch.tensor([[1], [2]]), {}, "prompt_ids has shape (2, 1); one sequence is one axis (SMP-07)"),
    ([0], {"max_new_tokens": -1}, "max_new_tokens=-1 is below 0 (SMP-04)"),
    ([0], {"max_new_tokens": True}, "max_new_tokens=True is not a whole number (SMP-04)"),
    ([0], {"recurrence_depth": 0}, "recurrence_depth=0 is below 1 (MOD-01)"),
    ([0], {"recurrence_depth": True}, "recurrence_depth=True is not a whole number (MOD-01)"),
    ([0], {"eos_token_id": 8}, "eos_token_id=[8] outside the vocabulary of 8 tokens (SMP-08)"),
    ([0], {"eos_token_id": [1, -1]}, "eos_token_id=-1 is below 0 (SMP-08)"),
    ([0], {"eos_token_id": True}, "eos_token_id=True is not a whole number (SMP-08)"),
    ([0], {"eos_token_id": "eos"}, "eos_token_id='eos' is neither ids nor 'model' (SMP-09)"),
    ([0], {"arithmetic": "fast"}, "arithmetic='fast' is none of ['exact', 'batched'] (CONF-01)"),
    ([0], {"kv_slots": 0}, "kv_slots=0 is below 1 (SHR-01)"),
    ([0], {"kv_slots": True}, "kv_slots=True is not a whole number (SHR-01)"),
    ([0], {"state_seed": -1}, "state_seed=-1 is below 0 (MOD-08)"),
    ([0], {"state_scale": math.nan}, "state_scale=nan is not a finite number of at least 0 (MOD-07)"),
]
"""Prompt, options, message."""


@pytest.mark.spec(
    "NOT-04", "MOD-01", "MOD-07", "MOD-08", "SMP-04", "SMP-05", "SMP-06", "SMP-07", "SMP-08", "SMP-09", "CONF-01"
)
@every_decoder
@pytest.mark.parametrize("budget", [0, 9])
@pytest.mark.parametrize("prompt,options,message", BAD_ARGUMENTS)
def test_a_bad_argument_is_named_before_anything_is_computed(
    decoder: str, budget: int, prompt: object, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        run(decoder, untouchable_model(), prompt, **({"max_new_tokens": budget} | options))
    assert str(caught.value) == message


@pytest.mark.spec("NOT-04", "DTV-01", "DTV-02", "WFD-01")
@pytest.mark.parametrize(
    "decoder,options,message",
    [
        ("wfd", {"draft_depth": 5}, "draft_depth=5 exceeds recurrence_depth=4 (WFD-01)"),
        ("wfd", {"draft_depth": 3, "recurrence_depth": 2}, "draft_depth=3 exceeds recurrence_depth=2 (WFD-01)"),
        ("wfd", {"draft_depth": 0}, "draft_depth=0 is below 1 (WFD-01)"),
        ("dtv", {"draft_depth": 5}, "draft_depth=5 exceeds recurrence_depth=4 (DTV-01)"),
        ("dtv", {"draft_length": 0}, "draft_length=0 is below 1 (DTV-02)"),
    ],
)
def test_a_bad_draft_parameter_is_named_before_anything_is_computed(
    decoder: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError) as caught:
        run(decoder, untouchable_model(), [0], **options)
    assert str(caught.value) == message


@pytest.mark.spec("SMP-10", "KV-02")
@every_decoder
def test_a_budget_of_0_computes_and_allocates_nothing(decoder: str) -> None:
    output = run(decoder, untouchable_model(), [0], max_new_tokens=0, keep_logits=True)
    assert output.token_ids == []
    assert output.finish_reason == "length"
    assert output.margins == []
    assert output.logits is not None
    assert output.logits.shape == (0, 8)
    assert output.kv_bytes == 0
    assert output.counts.committed == output.counts.ticks == output.counts.prelude_calls == 0
    assert math.isnan(output.acceptance_rate)


@pytest.mark.spec("SMP-07")
@every_decoder
@pytest.mark.parametrize(
    "prompt",
    [[4, 5], (4, 5), torch.tensor([4, 5]), torch.tensor([4, 5], dtype=torch.int32), torch.tensor([4, 5]).byte()],
    ids=["list", "tuple", "int64", "int32", "uint8"],
)
def test_a_prompt_is_a_list_a_tuple_or_a_tensor_of_ids(decoder: str, prompt: Sequence[int] | torch.Tensor) -> None:
    assert run(decoder, scripted(LAP), prompt, max_new_tokens=4).token_ids == [6, 7, 0, 1]


@pytest.mark.spec("SMP-09")
@every_decoder
def test_without_a_choice_the_models_own_stop_ids_hold_and_a_choice_replaces_them(decoder: str) -> None:
    model = ScriptedModel(table=scripted(LAP).table, vocab_size=8, recurrence_depth=4, eos_token_ids=frozenset({3}))
    assert run(decoder, model, [0]).token_ids == [1, 2, 3]
    assert run(decoder, model, [0], eos_token_id=engine.DECLARED_BY_MODEL).token_ids == [1, 2, 3]
    assert run(decoder, model, [0], eos_token_id=5).token_ids == [1, 2, 3, 4, 5]
    assert run(decoder, model, [0], eos_token_id=None).finish_reason == "length"
    assert run(decoder, model, [0], eos_token_id=[]).finish_reason == "length"


@pytest.mark.spec("SMP-03")
@every_decoder
def test_margins_belong_to_committed_tokens_and_their_verification(decoder: str) -> None:
    def table(prefix: tuple[int, ...], depth: int) -> list[float]:
        return [float(depth), float(len(prefix)) / 10, -1.0]

    model = ScriptedModel(table=table, vocab_size=3, recurrence_depth=4)
    output = run(decoder, model, [1], max_new_tokens=5, keep_logits=True)
    assert output.margins == pytest.approx([4 - size / 10 for size in range(1, 6)])
    assert output.logits is not None
    assert output.logits[:, 0].tolist() == [4.0] * 5
    assert len(output.margins) == len(output.token_ids) == len(output.logits)


@pytest.mark.spec("SMP-03")
def test_in_a_vocabulary_of_one_the_margin_is_infinite() -> None:
    model = ScriptedModel(table=lambda _prefix, _depth: [0.5], vocab_size=1, recurrence_depth=2)
    output = wfd.generate(model, [0], max_new_tokens=3, draft_depth=1)
    assert output.token_ids == [0, 0, 0]
    assert output.margins == [math.inf] * 3


@pytest.mark.spec("SMP-02")
@every_decoder
@pytest.mark.parametrize("bad_depth", [1, 4])
def test_nan_in_any_readout_ends_the_run_with_an_error(decoder: str, bad_depth: int) -> None:
    def table(prefix: tuple[int, ...], depth: int) -> list[float]:
        return [0.0, math.nan] if depth == bad_depth and len(prefix) == 3 else [0.0, 1.0]

    model = ScriptedModel(table=table, vocab_size=2, recurrence_depth=4)
    if decoder == "ar" and bad_depth == 1:
        assert run(decoder, model, [0]).finish_reason == "length"
    else:
        with pytest.raises(NumericsError, match="SMP-02"):
            run(decoder, model, [0])


@pytest.mark.spec("KV-02")
@every_decoder
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_cells_are_of_the_models_type_and_number_end_minus_1(decoder: str, family: str, dtype: torch.dtype) -> None:
    model = tiny_model(family, 0, dtype)
    output = run(decoder, model, [1, 2, 3], max_new_tokens=4, recurrence_depth=2, keep_logits=True)
    expected = 6 * model.kv_shapes.bytes_per_position(2, bytes_per_element=dtype.itemsize)
    assert output.kv_bytes == expected
    assert output.logits is not None
    assert output.logits.dtype == dtype


class Calls:
    """Notes the rows of every call on a cache."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        """Starts to listen."""
        self.made: list[tuple[Part, list[int], list[int]]] = []
        rows = KVCache.rows

        def noted(cache: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int]) -> Rows:
            self.made.append((part, list(positions), list(depths)))
            return rows(cache, part, positions, depths)

        patch.setattr(KVCache, "rows", noted)

    def of(self, part: Part) -> list[tuple[list[int], list[int]]]:
        """Gives positions and depths of every call of one part."""
        return [(positions, depths) for made, positions, depths in self.made if made is part]


@pytest.mark.spec("CONF-03", "WFD-03", "COST-01", "COST-02")
@every_decoder
def test_batched_makes_one_call_per_tick_and_one_per_tick_with_readouts(
    decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls(monkeypatch)
    counts = run(decoder, scripted(LAP), [0]).counts
    in_prefill = LAP.recurrence_depth
    recurrent = calls.of(Part.RECURRENT)[in_prefill:]
    assert len(recurrent) == counts.ticks
    assert sum(len(positions) for positions, _ in recurrent) == counts.lane_ticks
    assert len(calls.of(Part.CODA)) - 1 == counts.readout_calls
    assert len(calls.of(Part.PRELUDE)) - 1 == counts.prelude_calls


@pytest.mark.spec("CONF-02")
@every_decoder
def test_exact_computes_every_row_alone_oldest_first(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    counts = run(decoder, scripted(LAP), [0], arithmetic="exact").counts
    recurrent = calls.of(Part.RECURRENT)[LAP.recurrence_depth :]
    assert [len(positions) for positions, _ in recurrent] == [1] * counts.lane_ticks
    assert {len(positions) for positions, _ in calls.of(Part.CODA)} == {1}
    depths = [depth for _, (depth,) in recurrent]
    if decoder == "wfd":
        assert depths[:10] == [0, 1, 0, 2, 1, 0, 3, 2, 1, 0]


@pytest.mark.spec("KV-02", "SMP-15")
@every_decoder
def test_no_cell_is_written_at_or_behind_end_minus_1(decoder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Calls(monkeypatch)
    run(decoder, scripted(LAP), [0, 1, 2], max_new_tokens=5)
    assert max(position for _, positions, _ in calls.made for position in positions) == 6


@pytest.mark.spec("KV-07", "KV-08")
def test_a_readout_sees_final_entries_behind_it_and_drafts_may_see_provisional_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(monkeypatch)
    output = run("wfd", tiny_model("huginn", 1, torch.float64), [1, 2], max_new_tokens=12, arithmetic="exact")
    assert output.counts.accepted > 0
    written: dict[int, int] = {}
    num_mixed = 0
    for part, positions, depths in calls.made:
        if part is Part.PRELUDE:  # a new incarnation
            written.update(dict.fromkeys(positions, 0))
        elif part is Part.CODA:
            written.update(zip(positions, depths, strict=True))
            seen = [written[position] for position in range(positions[-1] + 1)]
            if depths[-1] == 4:
                assert set(seen) == {4}
            else:
                assert seen == sorted(seen, reverse=True)
                assert set(seen) <= {1, 4}
                num_mixed += seen[-2] == 1
    assert num_mixed > 0


@pytest.mark.spec("MOD-02")
def test_a_depth_above_the_models_own_warns_once_and_decodes() -> None:
    with pytest.warns(UserWarning, match="recurrence_depth=6 is deeper than the model was trained for") as caught:
        output = run(
            "wfd",
            scripted(Case(table=Lap(), recurrence_depth=4, draft_depth=1, max_new_tokens=9)),
            [4],
            recurrence_depth=6,
        )
    assert len(caught) == 1
    assert len(output.token_ids) == 9


@pytest.mark.spec("MOD-02")
def test_the_warning_points_at_the_callers_line() -> None:
    program = """
import warnings
from reference import wfd
from reference.models.scripted import ScriptedModel
model = ScriptedModel(table=lambda prefix, depth: [0.0, 1.0], vocab_size=2, recurrence_depth=2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    wfd.generate(model, [0], max_new_tokens=3, draft_depth=1, recurrence_depth=3)
assert [(warning.filename, warning.lineno) for warning in caught] == [("<string>", 8)], caught[0]
"""
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - our own text
    assert finished.returncode == 0, finished.stderr


@pytest.mark.spec("MOD-02")
@every_decoder
def test_at_or_below_the_models_own_depth_nothing_warns(decoder: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for depth in (1, 3, 4, None):
            run(decoder, scripted(LAP), [4], recurrence_depth=depth)


@pytest.mark.spec("CONF-06")
@every_decoder
@pytest.mark.parametrize("build", [random_ouro, random_huginn], ids=["ouro", "huginn"])
def test_a_run_leaves_its_surroundings_as_they_were(decoder: str, build: Callable[[], LoopedModel]) -> None:
    model, prompt, stop_ids = build(), [1, 2], [5, 6]
    before = {name: repr(value) for name, value in vars(model).items()}
    surroundings = (
        torch.get_rng_state().tolist(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    )
    first = run(decoder, model, prompt, eos_token_id=stop_ids, recurrence_depth=2, keep_logits=True)
    run(decoder, model, [4], state_seed=9)
    again = run(decoder, model, prompt, eos_token_id=stop_ids, recurrence_depth=2, keep_logits=True)
    assert {name: repr(value) for name, value in vars(model).items()} == before
    assert (prompt, stop_ids) == ([1, 2], [5, 6])
    assert surroundings == (
        torch.get_rng_state().tolist(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    )
    assert first.token_ids == again.token_ids
    assert first.events == again.events
    assert first.margins == again.margins
    assert first.logits is not None
    assert again.logits is not None
    assert torch.equal(first.logits, again.logits)
    assert not first.logits.requires_grad


@pytest.mark.spec("NOT-03")
@every_decoder
def test_a_tracer_receives_every_event_when_it_happens(decoder: str) -> None:
    seen: list[Event] = []
    output = run(decoder, scripted(LAP), [0], tracer=seen.append)
    assert seen == output.events
    assert isinstance(seen[0], Start)
    assert seen[0].decoder == decoder


def test_without_a_wish_for_logits_none_are_kept() -> None:
    assert run("wfd", scripted(LAP), [0]).logits is None


def test_an_output_is_frozen_and_only_a_finished_run_has_one() -> None:
    output = run("ar", scripted(LAP), [0])
    with pytest.raises(FrozenInstanceError):
        output.kv_bytes = 3  # type: ignore[misc]
    job = Job.of(LAP, arithmetic=Arithmetic.BATCHED)
    assert decode(job, "ar").output().token_ids == output.token_ids
    unfinished = engine.Decoding(job.model, [0], ar.AR(recurrence_depth=4, stopping=LAP.stopping))
    assert not unfinished.is_finished
    with pytest.raises(AssertionError, match="step until is_finished"):
        unfinished.output()


@pytest.mark.spec("AR-03")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_token_of_ar_is_that_of_a_recomputation_from_nothing(family: str, dtype: torch.dtype) -> None:
    model = tiny_model(family, 2, dtype)
    output = run("ar", model, [1, 2], max_new_tokens=12, keep_logits=True)
    assert output.logits is not None
    for place, token in enumerate(output.token_ids):
        prefix = [1, 2, *output.token_ids[:place]]
        alone = run("ar", model, prefix, max_new_tokens=1, keep_logits=True)
        assert alone.token_ids == [token]
        assert alone.logits is not None
        torch.testing.assert_close(
            alone.logits[0], output.logits[place], rtol=0, atol={torch.float64: 1e-10, torch.float32: 1e-4}[dtype]
        )


@pytest.mark.spec("MOD-04")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_readout_at_depth_r_is_that_of_r_recurrences_and_changes_nothing(family: str, depth: int) -> None:
    model, tokens = tiny_model(family, 3, torch.float64), [1, 2, 3, 4]
    deep = Running(model, num_positions=4, recurrence_depth=4)
    _, by_depth = deep.extend(tokens)
    states = by_depth[depth].clone()
    before = [deep.cache.cells(Part.RECURRENT, slice(0, 4), recurrence=recurrence) for recurrence in range(4)]
    before.append(deep.cache.cells(Part.PRELUDE, slice(0, 4)))
    logits = deep.read_out(by_depth[depth], depth=depth)
    after = [deep.cache.cells(Part.RECURRENT, slice(0, 4), recurrence=recurrence) for recurrence in range(4)]
    after.append(deep.cache.cells(Part.PRELUDE, slice(0, 4)))
    assert torch.equal(by_depth[depth], states)
    for (keys, values), (same_keys, same_values) in zip(before, after, strict=True):
        assert torch.equal(keys, same_keys)
        assert torch.equal(values, same_values)
    shallow = Running(model, num_positions=4, recurrence_depth=depth).logits(tokens)
    torch.testing.assert_close(logits, shallow, rtol=0, atol=1e-10)


@pytest.mark.spec("KV-08", "MOD-03")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("draft_depth", [1, 2])
def test_lanes_in_flight_hold_the_cells_of_their_own_prefix(family: str, draft_depth: int) -> None:
    job = Job(
        network=tiny_model(family, 4, torch.float64),
        prompt=(1, 2),
        recurrence_depth=3,
        draft_depth=draft_depth,
        max_new_tokens=9,
        arithmetic=Arithmetic.BATCHED,
    )
    decoding, final, num_compared = start(job, "wfd"), list(job.prompt), 0
    final += [event.token for event in decoding.events if isinstance(event, Commit)]
    while not decoding.is_finished:
        final += [event.token for event in decoding.step() if isinstance(event, Commit)]
        lanes = decoding.state.lanes
        prefix = final + [lane.token for lane in lanes[1:]]
        alone = Running(job.model, num_positions=len(prefix), recurrence_depth=3, state_scale=1.0)
        alone.extend(prefix)
        for lane in lanes:
            at = slice(0, lane.position + 1)
            for part, recurrence in [(Part.PRELUDE, 0), *((Part.RECURRENT, number) for number in range(lane.depth))]:
                for ours, right in zip(
                    decoding.kv.cells(part, at, recurrence=recurrence),
                    alone.cache.cells(part, at, recurrence=recurrence),
                    strict=True,
                ):
                    torch.testing.assert_close(ours, right, rtol=0, atol=1e-10)
                    num_compared += lane is not lanes[0]
    assert num_compared > 10


@pytest.mark.parametrize("keep_logits", [False, True])
def test_logits_that_nobody_asked_for_are_let_go_at_once(*, keep_logits: bool) -> None:
    stopping = Stopping(prompt_length=2, max_new_tokens=6, context_length=64)
    decoding = engine.Decoding(random_ouro(), [1, 2], ar.AR(4, stopping), keep_logits=keep_logits)
    while not decoding.is_finished:
        decoding.step()
    verdicts = [verdict for _, verdict in decoding._committed]  # noqa: SLF001 - nothing else shows what is held
    assert verdicts
    assert all((verdict.logits is not None) is keep_logits for verdict in verdicts)
