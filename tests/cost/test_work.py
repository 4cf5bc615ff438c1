"""Counted work is what the networks really compute and touch."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from reference import engine
from reference.ar import AR
from reference.bench.shapes import config_of, shape_of
from reference.cost.memory import kv_bytes, weight_bytes
from reference.cost.shapes import PRESETS, Part, preset
from reference.cost.work import PRECISIONS, Call, Group, Precision, Work, precision_of, prefill_work, work_of
from reference.errors import ParameterError
from reference.stopping import Stopping
from tests.cost.models import MODELS, shape, tally
from tests.models_for_tests import huginn_config, ouro_config, random_tensors

FP64 = Precision("fp64", 8.0, 8.0)

every_family = pytest.mark.parametrize("family", MODELS)

CALLS = {
    "a single row": (Part.RECURRENT, [7], [1], (Group(1.0, 8.0),)),
    "a wavefront, padded to its longest row": (Part.RECURRENT, [5, 6, 7], [2, 1, 0], (Group(1.0, 8.0, count=3.0),)),
    "rows of one slot": (Part.RECURRENT, [5, 6, 7], [1, 1, 1], (Group(3.0, 8.0),)),
    "rows far apart": (Part.RECURRENT, [2, 7], [2, 0], (Group(1.0, 3.0), Group(1.0, 8.0))),
    "a new lane": (Part.PRELUDE, [4], [0], (Group(1.0, 5.0),)),
    "two readouts": (Part.READOUT, [4, 6], [3, 1], (Group(2.0, 7.0),)),
}


@every_family
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_computes_and_touches_what_is_counted(
    family: str, call: tuple[Part, list[int], list[int], tuple[Group, ...]]
) -> None:
    model = MODELS[family]
    part, positions, depths, groups = call
    counted = tally(model, part, positions, depths)
    work = work_of(Call(part, groups), shape(model), FP64)
    assert work.linear_flops == counted.linear_flops
    assert work.attention_flops == counted.attention_flops
    assert work.kv_read_bytes == counted.attended_bytes
    assert work.activation_bytes == counted.activation_bytes
    vectors = shape(model).num_layers(part) * shape(model).layer_vector_elements
    vectors += shape(model).outer_vector_elements(part)
    vectors += len(positions) * model.hidden_size if part is Part.PRELUDE else 0
    assert work.weight_bytes == counted.matrix_bytes + 8 * vectors


@every_family
def test_a_whole_run_computes_what_its_calls_add_up_to(family: str) -> None:
    model = MODELS[family]
    prompt, num_new = [1, 2, 3, 4], 3
    sizes, depth = shape(model), model.recurrence_depth
    with FlopCounterMode(display=False) as counter:
        out = engine.generate(model, prompt, AR, max_new_tokens=num_new)
    assert len(out.token_ids) == num_new
    work = prefill_work(sizes, FP64, num_tokens=len(prompt))
    for position in range(len(prompt), len(prompt) + num_new - 1):
        row = (Group(1.0, float(position + 1)),)
        work = work + work_of(Call(Part.PRELUDE, row), sizes, FP64) + work_of(Call(Part.READOUT, row), sizes, FP64)
        work = work + work_of(Call(Part.RECURRENT, row), sizes, FP64) * float(depth)
    assert work.flops == counter.get_total_flops()


@every_family
def test_the_cells_of_a_sequence_take_the_bytes_that_are_allocated(family: str) -> None:
    model = MODELS[family]
    stopping = Stopping(prompt_length=3, max_new_tokens=5, context_length=model.context_length)
    schedule = AR(recurrence_depth=model.recurrence_depth, stopping=stopping)
    decoding = engine.Decoding(model, [1, 2, 3], schedule)
    assert kv_bytes(shape(model), FP64, num_positions=stopping.end - 1) == decoding.kv.num_bytes


@pytest.mark.parametrize("config", [ouro_config(num_heads=4, num_kv_heads=2), huginn_config()], ids=["ouro", "huginn"])
def test_parameters_are_those_of_the_official_layout(config: object) -> None:
    assert isinstance(config, type(ouro_config()) | type(huginn_config()))
    tensors = random_tensors(config)
    assert shape_of(config, name="tiny").num_parameters == sum(tensor.numel() for tensor in tensors.values())


def test_parameters_of_the_published_models() -> None:
    # Sizes of the published files: 2 bytes an element, less the header.
    assert preset("ouro-1.4b").num_parameters == 1_434_652_673
    assert preset("ouro-2.6b").num_parameters == 2_667_974_657
    huginn = preset("huginn-3.5b")
    # The file holds the tied head a second time, in fp32: about 15.65 GB.
    assert 4 * (huginn.num_parameters + huginn.vocab_size * huginn.hidden_size) == pytest.approx(15.65e9, rel=2e-3)


@pytest.mark.parametrize("name", ["ouro-1.4b", "ouro-2.6b", "huginn-3.5b"])
def test_a_shape_comes_back_from_its_configuration(name: str) -> None:
    assert shape_of(config_of(preset(name), context_length=64), name=name) == preset(name)


def test_rows_share_weights_but_own_slots_are_read_one_by_one() -> None:
    sizes, bf16 = preset("ouro-2.6b"), precision_of("bf16")
    one = work_of(Call(Part.RECURRENT, (Group(1.0, 500.0),)), sizes, bf16)
    own = work_of(Call(Part.RECURRENT, (Group(1.0, 500.0, count=4.0),)), sizes, bf16)
    together = work_of(Call(Part.RECURRENT, (Group(4.0, 500.0),)), sizes, bf16)
    assert own.weight_bytes == together.weight_bytes == one.weight_bytes
    assert own.flops == together.flops == 4 * one.flops
    assert own.kv_read_bytes == 4 * one.kv_read_bytes
    assert together.kv_read_bytes == one.kv_read_bytes
    assert own.kv_write_bytes == together.kv_write_bytes == 4 * one.kv_write_bytes


def test_sequences_of_a_batch_share_weights_and_nothing_else() -> None:
    sizes, bf16 = preset("huginn-3.5b"), precision_of("bf16")
    rows = (Group(2.0, 100.0), Group(1.0, 99.0))
    one, three = (work_of(Call(Part.RECURRENT, rows, batch=b), sizes, bf16) for b in (1.0, 3.0))
    assert three.weight_bytes == one.weight_bytes
    assert three.flops == 3 * one.flops
    assert three.kv_read_bytes == 3 * one.kv_read_bytes


def test_works_add_up_and_multiply() -> None:
    one = work_of(Call(Part.READOUT, (Group(1.0, 10.0),)), preset("huginn-3.5b"), precision_of("bf16"))
    assert one + one == one * 2.0
    assert one + Work() == one
    assert one.intensity_flops_per_byte == pytest.approx(one.flops / one.total_bytes)
    assert math.isclose(weight_bytes(preset("ouro-2.6b"), precision_of("bf16")), 2 * 2_667_974_657)


@pytest.mark.parametrize("give", [preset, precision_of])
def test_an_unknown_name_is_refused_with_the_known_ones(give: object) -> None:
    assert callable(give)
    with pytest.raises(ParameterError, match="is none of"):
        give("gpt-2")
    assert "bf16" in PRECISIONS
    assert "ouro-2.6b" in PRESETS
    assert torch.finfo(torch.float64).bits == 8 * precision_of("fp64").weight_bytes
