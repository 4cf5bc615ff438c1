"""Machines, seconds of a call, and the measurement of one's own machine."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from reference.bench.calibrate import calibrate, read, write
from reference.cost.fleet import Decoder, Decoding, Load, fleet, prefill_seconds
from reference.cost.latency import FUSED, REFERENCE, RESEARCH, SOFTWARE, seconds_of, software_of
from reference.cost.machines import MACHINES, FewRows, Overheads, machine, seconds_per_byte
from reference.cost.measure import CELL_ROWS, CPU, WEIGHT_ROWS, Effort, Probe, from_json, measure, medians, to_json
from reference.cost.shapes import Part
from reference.cost.work import Call, Group, precision_of, prefill_work, work_of
from reference.errors import ParameterError
from tests.cost.models import MODELS, shape, tally
from tests.cost.settings import setting
from tests.models_for_tests import huginn_config

ONE = setting("ouro-2.6b")


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_names_its_sources_and_has_a_ridge_point(name: str) -> None:
    one = machine(name)
    assert len(one.source) > 20
    assert one.overheads.origin
    for dtype, peak in one.peak_flops_per_second.items():
        assert one.ridge_flops_per_byte(dtype) == peak / one.bandwidth_bytes_per_second > 1
        assert 0 < one.overheads.bandwidth_efficiency <= 1
    with pytest.raises(ParameterError, match="only the peak for"):
        one.peak("int4")


# Units, operations of a unit in a cycle, GHz: of fp32 and of bf16 accumulated in fp32; bits of the memory bus, Gbit/s
# of each. Units and clocks as reports of the cards list them; of data centre GPUs the bandwidth alone is published.
CHIPS = {
    "a6000": ((10_752, 2, 1.80), (336, 256, 1.80), (384, 16.0)),
    "a100": ((6912, 2, 1.41), (432, 512, 1.41), None),
    "h100": ((16_896, 2, 1.98), (528, 1024, 1.83), None),
    "h200": ((16_896, 2, 1.98), (528, 1024, 1.83), None),
    "rtx4090": ((16_384, 2, 2.52), (512, 128, 2.52), (384, 21.0)),
    "rtx5090": ((21_760, 2, 2.407), (680, 128, 2.407), (512, 28.0)),
}


@pytest.mark.parametrize("name", CHIPS)
def test_published_figures_are_units_times_clock(name: str) -> None:
    one, (fp32, bf16, memory) = machine(name), CHIPS[name]
    for dtype, (units, operations, gigahertz) in (("fp32", fp32), ("bf16", bf16)):
        assert one.peak(dtype) == pytest.approx(units * operations * gigahertz * 1e9, rel=2e-3)
    if memory is not None:
        bits, gigabits = memory
        assert one.bandwidth_bytes_per_second == bits * gigabits * 1e9 / 8


@pytest.mark.parametrize("give", [machine, software_of])
def test_an_unknown_name_is_refused(give: object) -> None:
    assert callable(give)
    with pytest.raises(ParameterError, match="is none of"):
        give("abacus")
    assert set(SOFTWARE) == {"research", "fused", "reference"}


def with_overheads(*, launch: float, kernel: float = 0.0, is_asynchronous: bool = True) -> Overheads:
    return Overheads(
        bandwidth_efficiency=1.0,
        compute_efficiency=1.0,
        kernel_seconds=kernel,
        launch_seconds=launch,
        is_asynchronous=is_asynchronous,
        origin="a test",
    )


def test_a_call_takes_the_larger_of_memory_and_compute_and_the_host() -> None:
    call = Call(Part.READOUT, (Group(3.0, 7.0),))
    work = work_of(call, ONE.shape, ONE.precision)
    streaming = (work.weight_bytes + work.activation_bytes) / 768e9
    for launch, is_asynchronous, captured, expected in (
        (0.0, True, False, streaming),
        (1e-9, True, False, streaming),  # hidden behind the device
        (1.0, True, False, 10.0),  # the host is the slower one
        (1.0, True, True, streaming),
        (1.0, False, False, streaming + 10.0),  # on a CPU both add up
    ):
        device = replace(ONE.machine, overheads=with_overheads(launch=launch, is_asynchronous=is_asynchronous))
        one = replace(ONE, machine=device, software=replace(RESEARCH, is_captured=captured))
        assert seconds_of(call, one).total == pytest.approx(expected)
    slow = replace(ONE.machine, peak_flops_per_second={"bf16": 1e9}, overheads=with_overheads(launch=0.0, kernel=1e-3))
    found = seconds_of(call, replace(ONE, machine=slow))
    assert found.weights + found.compute == pytest.approx(work.linear_flops / 1e9)
    assert found.kernels == pytest.approx(10e-3)


def test_copied_cells_move_three_times_and_captured_ones_to_the_end_of_the_buffer() -> None:
    own, together = (4.0, 1.0), (1.0, 4.0)
    copied = ONE.call(Part.RECURRENT, own).cells
    in_place = replace(ONE, software=FUSED).call(Part.RECURRENT, own).cells
    shared = ONE.call(Part.RECURRENT, together).cells
    assert copied == pytest.approx(3 * in_place, rel=0.01)  # less the four cells that are written
    assert in_place == pytest.approx(4 * shared, rel=0.01)
    two, one = (ONE.call(Part.RECURRENT, (slots, 1.0)).cells for slots in (2.0, 1.0))
    assert two == pytest.approx(6 * one, rel=0.01)  # a single slot is read where it is
    padded = replace(ONE, software=replace(FUSED, captured_cells=4 * ONE.context)).call(Part.RECURRENT, own).cells
    assert padded == pytest.approx(4 * in_place, rel=0.01)


@pytest.mark.parametrize("family", MODELS)
def test_the_kernels_of_this_library_are_about_those_counted(family: str) -> None:
    model = MODELS[family]
    ignored = ("promote_types",)  # asks for a type, computes nothing
    for positions, depths, groups in (
        ([7], [1], (Group(1.0, 8.0),)),
        ([5, 6, 7], [2, 1, 0], (Group(1.0, 8.0, count=3.0),)),
    ):
        kernels = [name for name in tally(model, Part.RECURRENT, positions, depths).kernels if name not in ignored]
        assumed = REFERENCE.num_kernels(Call(Part.RECURRENT, groups), shape(model))
        assert assumed == pytest.approx(len(kernels), rel=0.1)


EFFORT = Effort(seconds=0.0, matrix_bytes=2**20)


def test_a_measured_machine_survives_being_written_down(tmp_path: Path) -> None:
    mine = measure(EFFORT, threads=1)
    assert mine.bandwidth_bytes_per_second > 1e8
    assert set(mine.peak_flops_per_second) == set(mine.few_rows) == {"fp32", "bf16"}
    assert mine.overheads.launch_seconds > 0
    for one in mine.few_rows.values():
        assert tuple(one.weight_bytes_per_second) == WEIGHT_ROWS
        assert tuple(one.cell_bytes_per_second) == CELL_ROWS
        rates = (*one.weight_bytes_per_second.values(), *one.cell_bytes_per_second.values())
        assert 0 < min(rates) <= max(rates) <= mine.bandwidth_bytes_per_second
    path = tmp_path / "mine.json"
    path.write_text(to_json(mine), encoding="utf-8")
    assert to_json(from_json(path)) == to_json(mine)
    assert (
        from_json(path).few_rows["bf16"].weight_bytes_per_second[1] == mine.few_rows["bf16"].weight_bytes_per_second[1]
    )
    old = {field: value for field, value in json.loads(to_json(mine)).items() if field != "few_rows"}
    path.write_text(json.dumps(old), encoding="utf-8")
    assert not from_json(path).few_rows  # written before there were any
    for broken in ("{}", "[]", "no json", json.dumps({**json.loads(to_json(mine)), "more": 1})):
        path.write_text(broken, encoding="utf-8")
        with pytest.raises(ParameterError, match="is not a machine"):
            from_json(path)


def test_measurements_take_turns_and_the_median_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = [0.0], []
    durations = {"a": iter([9.0, 0.5, 1.0, 7.0, 1.0, 1.0]), "b": iter([9.0, 3.0, 2.0, 2.0, 2.0, 2.0])}

    def run(name: str) -> None:
        order.append(name)
        now[0] += next(durations[name])

    monkeypatch.setattr("time.process_time", lambda: now[0])  # one thread, as all tests
    probes = {name: Probe(partial(run, name)) for name in durations}
    assert medians(probes, seconds=0.0, device=CPU) == {"a": 1.0, "b": 2.0}
    assert order == ["a", "b"] * 6  # the first of each only warms up


def test_between_measured_numbers_of_rows_time_is_on_a_line() -> None:
    rates = {1: 10.0, 2: 5.0, 8: 2.0}
    found = [seconds_per_byte(rates, rows) for rows in (0.5, 1.0, 1.5, 2.0, 5.0, 8.0, 100.0)]
    assert found == pytest.approx([0.1, 0.1, 0.15, 0.2, 0.35, 0.5, 0.5])


def test_weights_and_cells_take_at_least_what_few_rows_took() -> None:
    few = FewRows(weight_bytes_per_second={1: 1e9, 3: 0.5e9}, cell_bytes_per_second={1: 2e9, 2: 1e9})
    slow = replace(ONE, machine=replace(ONE.machine, few_rows={"bf16": few}))
    call = Call(Part.RECURRENT, (Group(1.0, 100.0), Group(2.0, 300.0)))
    work = work_of(call, ONE.shape, ONE.precision)
    found = seconds_of(call, slow)
    assert found.weights == pytest.approx(work.weight_bytes / 0.5e9)
    assert found.cells == pytest.approx(work.kv_read_bytes * (100 / 2e9 + 300 / 1e9) / 400)
    assert found.compute == 0  # hidden behind them
    fast = FewRows(weight_bytes_per_second={1: 1e15}, cell_bytes_per_second={1: 1e15})
    assert seconds_of(call, replace(ONE, machine=replace(ONE.machine, few_rows={"bf16": fast}))) == seconds_of(
        call, ONE
    )
    other = replace(ONE, machine=replace(ONE.machine, few_rows={"fp32": few}))
    assert seconds_of(call, other) == seconds_of(call, ONE)


def test_a_calibration_times_every_kind_of_call_and_is_read_back(tmp_path: Path) -> None:
    tiny = huginn_config(prelude_layers=0, core_layers=1, coda_layers=0)
    found = calibrate(EFFORT, threads=1, config=tiny, context=4, rows=(1, 3))
    assert [(call.dtype, call.rows, call.is_shared) for call in found.calls] == [
        (dtype, rows, is_shared)
        for dtype in ("fp32", "bf16")
        for rows, is_shared in ((1, False), (3, False), (3, True))
    ]
    for call in found.calls:
        assert call.measured_seconds > 0
        assert call.predicted_seconds >= call.roofline_seconds > 0
        assert call.error == call.predicted_seconds / call.measured_seconds - 1
        assert call.roofline_error == call.roofline_seconds / call.measured_seconds - 1
    write(found, tmp_path / "found.json")
    assert read(tmp_path / "found.json") == found


def test_a_fleet_is_seconds_multiplied() -> None:
    load = Load(requests_per_second=10.0, prompt_tokens=100, new_tokens=200)
    way = Decoding(decoder=Decoder.AR, draft_depth=1, draft_length=8, acceptance_rate=0.9)
    needed = fleet(ONE, way, load)
    at_mean_context = replace(ONE, context=200)
    per_token = way.cost(at_mean_context).seconds.total
    assert needed.seconds_per_token == per_token
    assert needed.seconds_per_request == pytest.approx(200 * per_token + prefill_seconds(ONE, num_tokens=100))
    assert needed.devices == -int(-10.0 * needed.seconds_per_request // 1)
    assert needed.joules_per_token == pytest.approx(300 * needed.seconds_per_request / 200)
    waves = fleet(ONE, replace(way, decoder=Decoder.WFD), load)
    rounds = fleet(ONE, replace(way, decoder=Decoder.DTV), load)
    assert waves.devices < rounds.devices < needed.devices
    eight = fleet(replace(ONE, batch=8), way, load)
    assert eight.devices < needed.devices
    with pytest.raises(ParameterError, match=r"requests_per_second=0\.0 is not a finite number above 0"):
        replace(load, requests_per_second=0.0)
    with pytest.raises(ParameterError, match="a request needs 300"):
        fleet(replace(ONE, batch=1000), way, load)
    unmetered = replace(ONE, machine=replace(ONE.machine, power_watts=None))
    assert fleet(unmetered, way, load).joules_per_token is None


def test_a_prompt_takes_at_least_its_arithmetic() -> None:
    work = prefill_work(ONE.shape, precision_of("bf16"), num_tokens=2000)
    peak = ONE.machine.peak("bf16") * ONE.machine.overheads.compute_efficiency
    assert prefill_seconds(ONE, num_tokens=2000) >= work.flops / peak
    assert prefill_seconds(ONE, num_tokens=2000) < 1.5 * work.flops / peak
