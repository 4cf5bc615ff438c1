"""Engines, caches and samplers with one fault each, every one caught by the laws that the right ones obey.

The jobs are a fixed handful on which the right engine passes. A mutant must fail a law on at least one of them, and
where the debug record of KV cells is meant to see the fault, it must.
"""
# ruff: noqa: SLF001 - a mutant is a change of something inside

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import pytest
import torch
from torch import Tensor

from reference import engine as engines
from reference import sampling
from reference.engine import Arithmetic, Decoding
from reference.errors import NumericsError, SlotConflictError, StaleReadError
from reference.kv import KVCache, Rows
from reference.models.huginn import Huginn
from reference.provenance import Part, Provenance
from reference.schedule import Events, Flush, Inject, Lane
from tests.driving import Case, Lap
from tests.laws import engine
from tests.runs import Job, decode, tiny_model

Plant: TypeAlias = Callable[[pytest.MonkeyPatch], None]


LAP = Case(table=Lap(), recurrence_depth=4, draft_depth=1, draft_length=3, max_new_tokens=12)


def jobs(arithmetic: Arithmetic) -> Iterator[Job]:
    """Gives runs with acceptances, rejections and flushes of two lanes, d dividing T and not, on all three models."""
    for recurrence_depth, draft_depth in ((4, 1), (5, 2)):
        for family in ("ouro", "huginn"):
            yield Job(
                network=tiny_model(family, 7, torch.float64),
                prompt=(1, 2),
                recurrence_depth=recurrence_depth,
                draft_depth=draft_depth,
                draft_length=3,
                max_new_tokens=12,
                state_seed=3,
                arithmetic=arithmetic,
            )
        case = replace(LAP, recurrence_depth=recurrence_depth, draft_depth=draft_depth)
        yield Job.of(case, arithmetic=arithmetic, with_ties=True)


@pytest.fixture
def without_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns the debug record off, so that only tokens, logits and cells can betray a fault."""
    monkeypatch.setattr(Provenance, "write", _see_nothing)
    monkeypatch.setattr(Provenance, "read", _see_nothing)


def _see_nothing(*_: object, **__: object) -> None:
    pass


def goes_on_from_the_flushed_state(patch: pytest.MonkeyPatch) -> None:
    """A position that starts again keeps the tensors of its flushed lane."""
    carry_out = Decoding._carry_out

    def wrong(self: Decoding, events: Events) -> None:
        kept = self._rows._states.clone()
        flushed = {position for event in events if isinstance(event, Flush) for position in event.positions}
        carry_out(self, events)
        for event in events:
            if isinstance(event, Inject) and event.position in flushed:
                self._rows._states[event.position] = kept[event.position]

    patch.setattr(Decoding, "_carry_out", wrong)


def keeps_the_prelude_of_the_flushed_token(patch: pytest.MonkeyPatch) -> None:
    """A position that starts again is not embedded again."""
    started = Decoding._start

    def wrong(self: Decoding, token_ids: Tensor, positions: Sequence[int]) -> object:
        row = started(self, token_ids, positions)
        memory: dict[int, object] = self.__dict__.setdefault("memory", {})
        return memory.setdefault(positions[0], row) if len(positions) == 1 else row

    patch.setattr(Decoding, "_start", wrong)


def writes_one_slot_too_deep(patch: pytest.MonkeyPatch) -> None:
    """Recurrence r uses slot r + 1; the last one its own."""
    rows = KVCache.rows

    def wrong(self: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int]) -> Rows:
        if part is Part.RECURRENT and len(positions) == 1:
            depths = [min(depth + 1, self.recurrence_depth - 1) for depth in depths]
        return rows(self, part, positions, depths)

    patch.setattr(KVCache, "rows", wrong)


def shares_one_slot_among_recurrences(patch: pytest.MonkeyPatch) -> None:
    """All recurrences use slot 0."""
    init = KVCache.__init__

    def wrong(self: KVCache, *args: object, **options: object) -> None:
        init(self, *args, **options)  # type: ignore[arg-type]
        self._slot_of_recurrence = (0,) * self.recurrence_depth

    patch.setattr(KVCache, "__init__", wrong)


def looks_one_cell_ahead(patch: pytest.MonkeyPatch) -> None:
    """A row may see the cell behind its own position."""

    def wrong(_: KVCache, positions: Sequence[int]) -> Tensor:
        own = torch.tensor(positions).unsqueeze(-1)
        return (torch.arange(positions[0], positions[-1] + 1) > own + 1)[None, :, None]

    patch.setattr(KVCache, "mask", wrong)


def does_not_see_itself(patch: pytest.MonkeyPatch) -> None:
    """A row of several does not see its own cell, unless it is the first."""

    def wrong(_: KVCache, positions: Sequence[int]) -> Tensor:
        own = torch.tensor(positions).clamp(min=1).unsqueeze(-1)
        return (torch.arange(positions[0], positions[-1] + 1) >= own)[None, :, None]

    patch.setattr(KVCache, "mask", wrong)


def lets_a_wavefront_look_one_cell_ahead(patch: pytest.MonkeyPatch) -> None:
    """A row on a diagonal may see the cell behind its own position, which its slot does not hold yet."""
    right = KVCache.wavefront_bias

    def wrong(self: KVCache, size: int, length: int) -> Tensor:
        bias = right(self, size, length)
        return torch.cat((torch.zeros_like(bias[..., :1]), bias[..., :-1]), -1)

    patch.setattr(KVCache, "wavefront_bias", wrong)


def _clears_only(patch: pytest.MonkeyPatch, kept: str) -> None:
    begin = KVCache.begin

    def wrong(self: KVCache, positions: Sequence[int]) -> None:
        cells = getattr(self, kept)[Part.RECURRENT]
        leftovers = cells.clone()
        begin(self, positions)
        cells.copy_(leftovers)

    patch.setattr(KVCache, "begin", wrong)


def leaves_old_keys_where_a_lane_starts(patch: pytest.MonkeyPatch) -> None:
    """The keys at a fresh position are not cleared, so a forbidden score of NaN stays NaN."""
    _clears_only(patch, "_keys")


def leaves_old_values_where_a_lane_starts(patch: pytest.MonkeyPatch) -> None:
    """The values at a fresh position are not cleared, so 0 times NaN is NaN."""
    _clears_only(patch, "_values")


def never_starts_an_incarnation(patch: pytest.MonkeyPatch) -> None:
    """A position that was flushed starts again under its old incarnation, its stale cells looking fresh."""
    begin = Provenance.begin

    def wrong(self: Provenance, positions: Sequence[int]) -> None:
        seen: set[int] = self.__dict__.setdefault("seen", set())
        begin(self, [position for position in positions if position not in seen])
        seen.update(positions)

    patch.setattr(Provenance, "begin", wrong)
    patch.setattr(Provenance, "end", _see_nothing)


def starts_each_incarnation_from_another_state(patch: pytest.MonkeyPatch) -> None:
    """The initial state depends on how often the position was started."""
    started = Decoding._start

    def wrong(self: Decoding, token_ids: Tensor, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        states, injected_inputs = started(self, token_ids, positions)
        seen: set[int] = self.__dict__.setdefault("seen", set())
        again = len(positions) == 1 and positions[0] in seen
        seen.update(positions)
        return states + 0.1 if again else states, injected_inputs

    patch.setattr(Decoding, "_start", wrong)


def draws_noise_from_the_end(patch: pytest.MonkeyPatch) -> None:
    """The initial state of a position depends on how many positions there are room for."""
    initial_noise = sampling.initial_noise

    def wrong(seed: int, positions: Sequence[int], width: int) -> Tensor:
        return initial_noise(seed, [positions[-1] - position for position in positions], width)

    patch.setattr(sampling, "initial_noise", wrong)


def gives_ties_to_the_highest_id(patch: pytest.MonkeyPatch) -> None:
    """Among equal logits the last one wins, in batches of several rows."""
    greedy = sampling.greedy

    def wrong(logits: Tensor) -> tuple[tuple[int, ...], tuple[float, ...]]:
        if len(logits) == 1:
            return greedy(logits)
        tokens, margins = greedy(logits.flip(-1))
        return tuple(logits.shape[-1] - 1 - token for token in tokens), margins

    patch.setattr(engines, "greedy", wrong)


def gives_verified_ties_to_the_highest_id(patch: pytest.MonkeyPatch) -> None:
    """Only where a draft is verified beside another readout does the last of equal logits win."""
    read_out = Decoding._read_out
    rows: list[Tensor] = []

    def watched(logits: Tensor) -> tuple[tuple[int, ...], tuple[float, ...]]:
        rows.extend(logits)
        return sampling.greedy(logits)

    def wrong(self: Decoding, lanes: Sequence[Lane]) -> tuple[int, ...]:
        rows.clear()
        tokens = read_out(self, lanes)
        return tokens if len(lanes) < 2 else tuple(len(row) - 1 - int(row.flip(0).argmax()) for row in rows)

    patch.setattr(engines, "greedy", watched)
    patch.setattr(Decoding, "_read_out", wrong)


def swaps_the_answers_of_two_lanes(patch: pytest.MonkeyPatch) -> None:
    """The readouts of a call come back youngest first."""
    read_out = Decoding._read_out

    def wrong(self: Decoding, lanes: Sequence[Lane]) -> tuple[int, ...]:
        return tuple(reversed(read_out(self, lanes)))

    patch.setattr(Decoding, "_read_out", wrong)


def reads_the_youngest_lane_out_of_the_wrong_row(patch: pytest.MonkeyPatch) -> None:
    """The coda of a readout runs on the state of the lane behind."""
    read_out = Decoding._read_out

    def wrong(self: Decoding, lanes: Sequence[Lane]) -> tuple[int, ...]:
        states = self._rows._states
        kept = states.clone()
        in_flight = {lane.position for lane in self.state.lanes}
        for lane in lanes:
            if lane.position + 1 in in_flight:
                states[lane.position] = kept[lane.position + 1]
        tokens = read_out(self, lanes)
        states.copy_(kept)
        return tokens

    patch.setattr(Decoding, "_read_out", wrong)


def verifies_on_provisional_coda_entries(patch: pytest.MonkeyPatch) -> None:
    """A verification leaves the coda cell of its own position as the draft wrote it."""
    rows = KVCache.rows

    def wrong(self: KVCache, part: Part, positions: Sequence[int], depths: Sequence[int]) -> Rows:
        made = rows(self, part, positions, depths)
        written: set[int] = self.__dict__.setdefault("written", set())
        if part is Part.PRELUDE:
            written.difference_update(positions)
        if part is not Part.CODA or len(positions) > 1 or positions[0] not in written:
            written.update(positions if part is Part.CODA else ())
            return made
        return _Unwriting(self, positions[0], made)

    patch.setattr(KVCache, "rows", wrong)


class _Unwriting:
    """Rows that put their coda cell back as it was."""

    def __init__(self, cache: KVCache, position: int, rows: Rows) -> None:
        self._cache, self._position, self._rows = cache, position, rows

    @property
    def positions(self) -> Tensor:
        """Where the rows are."""
        return self._rows.positions

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor, *, scale: float) -> Tensor:
        """Attends, then undoes the write."""
        keys, values = self._cache._keys[Part.CODA], self._cache._values[Part.CODA]
        old_key = keys[layer, 0, :, :, self._position].clone()
        old_value = values[layer, 0, :, self._position].clone()
        attended = self._rows.attend(layer, query, key, value, scale=scale)
        keys[layer, 0, :, :, self._position] = old_key
        values[layer, 0, :, self._position] = old_value
        return attended


def leaves_the_coda_entry_of_a_draft_in_place(patch: pytest.MonkeyPatch) -> None:
    """As the record sees it, a verification writes no coda entry where a draft wrote one."""
    write = Provenance.write

    def wrong(self: Provenance, part: Part, layer: int, *, positions: Sequence[int], depths: Sequence[int]) -> None:
        if part is Part.CODA and len(positions) == 1:
            position = positions[0]
            if self._writer[part][layer, 0, position] == self._current[position]:
                return
        write(self, part, layer, positions=positions, depths=depths)

    patch.setattr(Provenance, "write", wrong)


def commits_the_margin_of_the_draft(patch: pytest.MonkeyPatch) -> None:
    """The first verdict on a position stays, so a drafted position reports its draft's margin and logits."""
    choose = Decoding._choose

    def wrong(self: Decoding, coda_output: Tensor, positions: Sequence[int]) -> tuple[int, ...]:
        before = dict(self._verdicts)
        tokens = choose(self, coda_output, positions)
        self._verdicts.update({position: before[position] for position in positions if position in before})
        return tokens

    patch.setattr(Decoding, "_choose", wrong)


def gives_every_token_of_a_round_the_first_verdict(patch: pytest.MonkeyPatch) -> None:
    """Where several tokens are committed in one tick, all get the margin and logits of the first."""
    carry_out = Decoding._carry_out

    def wrong(self: Decoding, events: Events) -> None:
        before = len(self._committed)
        carry_out(self, events)
        for place in range(before + 1, len(self._committed)):
            self._committed[place] = (self._committed[place][0], self._committed[before][1])

    patch.setattr(Decoding, "_carry_out", wrong)


def advances_the_youngest_lane_first(patch: pytest.MonkeyPatch) -> None:
    """In exact arithmetic a younger row of a round reads what an older one has yet to write."""
    calls = Decoding._calls

    def wrong(self: Decoding, lanes: Sequence[Lane]) -> object:
        return tuple(reversed(tuple(calls(self, lanes))))

    patch.setattr(Decoding, "_calls", wrong)


WRONG = (AssertionError, NumericsError, SlotConflictError, StaleReadError, KeyError)


def fails(law: Callable[[Job], None], arithmetic: Arithmetic) -> bool:
    """Tells whether a law fails on one of the jobs."""
    for job in jobs(arithmetic):
        try:
            law(job)
        except WRONG:
            return True
    return False


def identity(job: Job) -> None:
    """The law of exact arithmetic, with NaN in free cells from the start."""
    engine.everything_is_that_of_ar(job)


def nearness(job: Job) -> None:
    """The law of batched arithmetic, with NaN in free cells now and then."""
    engine.everything_is_near_that_of_exact_ar(job, moments={2, 3, 5, 8})


LAWS = {Arithmetic.EXACT: identity, Arithmetic.BATCHED: nearness}


@pytest.mark.spec("CONF-02", "CONF-03")
@pytest.mark.parametrize("arithmetic", Arithmetic)
def test_the_right_engine_passes_on_every_job(arithmetic: Arithmetic) -> None:
    assert not fails(LAWS[arithmetic], arithmetic)


@pytest.mark.spec("CONF-02")
def test_the_jobs_accept_reject_and_flush_several_lanes() -> None:
    num_behind = {"dtv": 0, "wfd": 0}
    for job in jobs(Arithmetic.EXACT):
        for decoder in num_behind:
            counts = decode(job, decoder).output().counts
            assert counts.accepted > 0
            assert counts.rejected > 0
            num_behind[decoder] += counts.flushed - counts.rejected
    assert min(num_behind.values()) > 5


@pytest.mark.spec("CONF-02", "KV-04", "KV-05", "KV-06", "KV-07", "MOD-05")
@pytest.mark.usefixtures("without_the_record")
@pytest.mark.parametrize(
    "plant",
    [
        goes_on_from_the_flushed_state,
        keeps_the_prelude_of_the_flushed_token,
        starts_each_incarnation_from_another_state,
        verifies_on_provisional_coda_entries,
        commits_the_margin_of_the_draft,
        swaps_the_answers_of_two_lanes,
        advances_the_youngest_lane_first,
        reads_the_youngest_lane_out_of_the_wrong_row,
        gives_every_token_of_a_round_the_first_verdict,
    ],
)
def test_bit_identity_with_ar_catches(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert fails(identity, Arithmetic.EXACT)


@pytest.mark.spec("CONF-03", "CONF-04", "KV-03", "KV-05", "SMP-01")
@pytest.mark.usefixtures("without_the_record")
@pytest.mark.parametrize(
    "plant",
    [
        goes_on_from_the_flushed_state,
        shares_one_slot_among_recurrences,
        looks_one_cell_ahead,
        does_not_see_itself,
        lets_a_wavefront_look_one_cell_ahead,
        leaves_old_keys_where_a_lane_starts,
        leaves_old_values_where_a_lane_starts,
        swaps_the_answers_of_two_lanes,
        reads_the_youngest_lane_out_of_the_wrong_row,
    ],
)
def test_nearness_to_exact_ar_catches(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert fails(nearness, Arithmetic.BATCHED)


def decode_all(decoder: str) -> None:
    """Runs every job, with the record of cells on."""
    for job in jobs(Arithmetic.EXACT):
        decode(job, decoder)


@pytest.mark.spec("SMP-01")
@pytest.mark.parametrize("plant", [gives_ties_to_the_highest_id, gives_verified_ties_to_the_highest_id])
def test_the_schedule_answered_by_a_table_with_ties_catches(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    law = partial(engine.events_are_those_of_the_schedule, LAP, Arithmetic.BATCHED)
    law()
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        law()


@pytest.mark.spec("KV-03", "KV-04", "KV-07")
@pytest.mark.parametrize(
    "plant,decoder,error",
    [
        (writes_one_slot_too_deep, "ar", SlotConflictError),
        (never_starts_an_incarnation, "wfd", SlotConflictError),
        (advances_the_youngest_lane_first, "dtv", StaleReadError),
        (leaves_the_coda_entry_of_a_draft_in_place, "wfd", StaleReadError),
        (leaves_the_coda_entry_of_a_draft_in_place, "dtv", StaleReadError),
    ],
)
def test_the_record_of_cells_catches(
    plant: Plant, decoder: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(error):
        decode_all(decoder)


@pytest.mark.spec("AR-03", "MOD-05")
@pytest.mark.parametrize("plant", [draws_noise_from_the_end])
def test_recomputation_from_nothing_catches(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    job = next(job for job in jobs(Arithmetic.EXACT) if isinstance(job.model, Huginn))
    output = decode(job, "ar").output()
    longer = Job(
        network=job.model,
        prompt=(*job.prompt, *output.token_ids[:-1]),
        recurrence_depth=job.recurrence_depth,
        draft_depth=job.draft_depth,
        max_new_tokens=2,
        state_seed=job.state_seed,
    )
    again = decode(longer, "ar").output()
    assert output.logits is not None
    assert again.logits is not None
    assert float((again.logits[0] - output.logits[-1]).abs().max()) > 1e-6
