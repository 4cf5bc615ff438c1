"""Cases 9, 19, 20, 23 and 31: initial states, slots, what a rejection leaves behind, and the memory of a run."""

import math
from dataclasses import replace

import pytest
import torch

from reference.engine import Arithmetic, Output
from reference.errors import ParameterError, StaleReadError
from reference.models.protocol import KVShapes
from reference.provenance import Part
from reference.schedule import Flush
from tests.cases.decoders import decode, every_decoder
from tests.laws import engine
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_ouro
from tests.running import Running
from tests.runs import Job, start, tiny_model
from tests.runs import decode as decode_job

HUGINN_JOB = Job(
    network=tiny_model("huginn", 7, torch.float64),
    prompt=(1, 2, 3),
    recurrence_depth=4,
    draft_depth=1,
    draft_length=3,
    max_new_tokens=12,
    state_seed=3,
)


@pytest.mark.spec("MOD-05", "CONF-02")
def test_case_9_with_a_random_initial_state_ar_twice_and_all_three_are_equal() -> None:
    first, again = (decode_job(HUGINN_JOB, "ar").output() for _ in range(2))
    engine.outputs_are_identical(again, first)
    for decoder in ("dtv", "wfd"):
        output = decode_job(HUGINN_JOB, decoder).output()
        assert output.counts.flushed > 0
        engine.outputs_are_identical(output, first)


@pytest.mark.spec("KV-03")
@pytest.mark.parametrize("decoder", ["dtv", "wfd"])
def test_a_flushed_cell_is_stale_at_once_and_not_only_when_its_position_starts_again(decoder: str) -> None:
    decoding = start(replace(HUGINN_JOB, draft_length=3), decoder)
    behind: tuple[int, ...] = ()
    while not behind:  # the first of the flushed positions starts again in the same tick
        behind = next((event.positions[1:] for event in decoding.step() if isinstance(event, Flush)), ())
    assert decoding.kv.provenance is not None
    with pytest.raises(StaleReadError, match=rf"of positions \[{behind[0]}"):
        decoding.kv.provenance.read(Part.PRELUDE, 0, positions=behind, depths=[0] * len(behind))


@pytest.mark.spec("MOD-05")
def test_case_9_a_prompt_in_one_call_or_in_chunks_is_the_same() -> None:
    whole = Running(HUGINN_JOB.model, num_positions=6, state_seed=3, state_scale=1.0)
    chunks = Running(HUGINN_JOB.model, num_positions=6, state_seed=3, state_scale=1.0)
    logits = whole.logits([1, 2, 3, 4, 5, 6])
    chunks.logits([1, 2])
    chunks.logits([3, 4, 5])
    torch.testing.assert_close(chunks.logits([6])[-1], logits[-1], rtol=0, atol=1e-10)


@pytest.mark.spec("MOD-05", "MOD-07")
@every_decoder
def test_case_9_the_seed_matters_to_a_huginn_and_the_scale_0_silences_it(decoder: str) -> None:
    model = random_huginn(seed=7)
    options = {"max_new_tokens": 2, "keep_logits": True}
    logits = [
        decode(decoder, model, [1, 2], state_seed=seed, state_scale=scale, **options).logits
        for seed, scale in ((3, 1.0), (4, 1.0), (3, 0.0), (4, 0.0))
    ]
    assert all(row is not None for row in logits)
    first, second, silent, silent_too = (row for row in logits if row is not None)
    assert not torch.equal(first, second)
    assert torch.equal(silent, silent_too)
    assert not torch.equal(first, silent)


@pytest.mark.spec("AR-03", "KV-01")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_case_19_decoding_with_cells_is_decoding_by_full_recomputation(family: str) -> None:
    model = tiny_model(family, 5, torch.float64)
    output = decode("ar", model, [1, 2], max_new_tokens=16, state_scale=0.0, keep_logits=True, eos_token_id=None)
    assert output.logits is not None
    for place in range(16):
        prefix = [1, 2, *output.token_ids[:place]]
        recomputed = Running(model, num_positions=len(prefix)).logits(prefix)[-1]
        torch.testing.assert_close(output.logits[place], recomputed, rtol=0, atol=1e-10)


@pytest.mark.spec("KV-01")
def test_case_19_an_ouro_has_t_times_layers_slots_and_a_huginn_adds_prelude_and_coda() -> None:
    ouro = random_ouro(ouro_config(num_layers=3)).kv_shapes
    huginn = random_huginn(huginn_config(prelude_layers=2, core_layers=3, coda_layers=1)).kv_shapes
    assert ouro.num_slots(4) == 4 * 3
    assert huginn.num_slots(5) == 2 + 5 * 3 + 1


@pytest.mark.spec("KV-05", "KV-06")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("decoder", ["dtv", "wfd"])
@pytest.mark.parametrize("draft_depth", [1, 2, 3])
def test_case_20_after_every_tick_finished_cells_are_those_of_ar_and_nan_elsewhere_changes_nothing(
    family: str, decoder: str, draft_depth: int
) -> None:
    job = Job(
        network=tiny_model(family, 7, torch.float32),
        prompt=(1, 2),
        recurrence_depth=4,
        draft_depth=draft_depth,
        draft_length=3,
        max_new_tokens=12,
    )
    reference = decode_job(job, "ar")
    decoding = engine.decode_amid_nan(job, decoder, range(1000), reference=reference)
    assert decoding.output().counts.flushed > 0
    engine.outputs_are_identical(decoding.output(), reference.output())


@pytest.mark.spec("KV-05")
def test_case_20_nan_written_into_live_cells_is_noticed() -> None:
    decoding = start(HUGINN_JOB, "ar")
    decoding.kv.fill([0], math.nan)
    for _ in range(HUGINN_JOB.recurrence_depth - 1):
        decoding.step()
    with pytest.raises(ArithmeticError, match="SMP-02"):
        decoding.step()


@pytest.mark.spec("KV-02")
@every_decoder
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_case_23_the_cells_are_of_the_models_type_on_its_device_and_of_the_size_reported(
    decoder: str, dtype: torch.dtype
) -> None:
    job = Job(
        network=tiny_model("huginn", 0, dtype),
        prompt=(1, 2, 3),
        recurrence_depth=2,
        draft_depth=1,
        max_new_tokens=5,
    )
    decoding = decode_job(job, decoder)
    keys, values = decoding.kv.cells(Part.RECURRENT, slice(0, 7))
    assert keys.dtype == values.dtype == dtype
    assert keys.device == job.model.device
    bytes_held = 0
    for part, recurrences in ((Part.PRELUDE, 1), (Part.RECURRENT, 2), (Part.CODA, 1)):
        for recurrence in range(recurrences):
            for cells in decoding.kv.cells(part, slice(0, decoding.kv.num_positions), recurrence=recurrence):
                bytes_held += cells.numel() * cells.element_size()
    assert decoding.output().kv_bytes == bytes_held == 7 * (1 + 2 * 1 + 1) * 2 * 2 * 4 * dtype.itemsize


@pytest.mark.spec("KV-09")
@every_decoder
@pytest.mark.parametrize("arithmetic", list(Arithmetic))
def test_case_23_cells_of_another_type_are_allowed_and_make_the_result_approximate(
    decoder: str, arithmetic: Arithmetic
) -> None:
    model = tiny_model("huginn", 0, torch.float64)

    def run(decoder: str, kv_dtype: torch.dtype | None) -> Output:
        return decode(
            decoder,
            model,
            [1, 2, 3],
            max_new_tokens=8,
            recurrence_depth=4,
            arithmetic=arithmetic,
            kv_dtype=kv_dtype,
            keep_logits=True,
        )

    own, same, rounded = run(decoder, None), run(decoder, torch.float64), run(decoder, torch.bfloat16)
    for output in (own, same):
        assert (output.exactness, output.exactness_reason) == ("exact", "")
    assert rounded.exactness == "approximate"
    assert rounded.exactness_reason == "KV cells are torch.bfloat16 (KV-09)"
    assert rounded.kv_bytes == own.kv_bytes / 4
    # Rounded cells are seen in the logits, by all decoders alike.
    assert own.logits is not None
    assert rounded.logits is not None
    assert not torch.equal(rounded.logits[0], own.logits[0])
    assert rounded.token_ids == run("ar", torch.bfloat16).token_ids


@pytest.mark.spec("KV-09", "NOT-04")
@pytest.mark.parametrize("kv_dtype", [torch.int8, "float32"], ids=str)
def test_case_23_cells_hold_floating_types_of_torch_alone(kv_dtype: object) -> None:
    with pytest.raises(ParameterError, match=r"kv_dtype=.* is not a floating type of torch \(KV-09\)"):
        decode("ar", tiny_model("ouro", 0, torch.float64), [1], max_new_tokens=1, kv_dtype=kv_dtype)


@pytest.mark.spec("KV-01", "KV-02")
@pytest.mark.parametrize(
    "shapes,recurrence_depth,expected",
    [
        ((0, 24, 0, 16, 128), 4, 786_432),
        ((0, 48, 0, 16, 128), 4, 1_572_864),
        ((2, 4, 2, 55, 96), 32, 2_787_840),
    ],
    ids=["Ouro-1.4B", "Ouro-2.6B", "Huginn"],
)
def test_case_31_bytes_per_token_in_16_bit(
    shapes: tuple[int, int, int, int, int], recurrence_depth: int, expected: int
) -> None:
    prelude_layers, recurrent_layers, coda_layers, kv_heads, head_dim = shapes
    kv_shapes = KVShapes(
        prelude_layers=prelude_layers,
        recurrent_layers=recurrent_layers,
        coda_layers=coda_layers,
        kv_heads=kv_heads,
        head_dim=head_dim,
    )
    assert kv_shapes.bytes_per_position(recurrence_depth, bytes_per_element=2) == expected
