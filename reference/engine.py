"""Runs a schedule on a looped model: ticks become recurrent calls, readouts become tokens.

The engine knows no decoder: it does what `Schedule.plan` says and hands the tokens to `Schedule.observe`. It works on
one sequence at a time and in two arithmetics (CONF-02, CONF-03):

- `exact`: every row of a call is computed alone, with the shapes that AR would use, so AR, DtV and WFD agree bit for
  bit in every dtype;
- `batched`: one call per tick. Rows share matrix products, so the last bits may depend on what else is in flight.
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias, TypedDict, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from reference import prefill
from reference.axes import Hidden, Logits, TokenIds
from reference.counts import Counts, count
from reference.errors import ParameterError, check_whole_number
from reference.kv import KVCache
from reference.models.protocol import LoopedModel
from reference.provenance import Part
from reference.sampling import check_state_options, greedy
from reference.schedule import Commit, Event, Events, Flush, Inject, Lane, Schedule, begin
from reference.sharing import KVSlots, SlotMap, approximation, slot_map
from reference.states import LaneRows
from reference.stopping import FinishReason, Stopping


class Arithmetic(StrEnum):
    """How the rows of a call are computed (CONF-01)."""

    EXACT = "exact"
    """Every row alone: bit-identical whatever else is in flight."""
    BATCHED = "batched"
    """All rows in one call: fast, identical up to rounding."""


class Exactness(StrEnum):
    """Whether a result may differ from AR's with the model's own KV cells (KV-09, SHR-11)."""

    EXACT = "exact"
    """Nothing was approximated."""
    APPROXIMATE = "approximate"
    """Something was; `Output.exactness_reason` says what."""


EosTokenId: TypeAlias = int | Collection[int] | Tensor | str | None
"""Stop ids as callers give them (SMP-09): none, one, several, or `"model"`: those that the checkpoint declares."""


PromptIds: TypeAlias = Sequence[int] | Tensor
"""A prompt as callers give it: token ids, or a tensor of them with one axis (SMP-05 to SMP-07)."""

DECLARED_BY_MODEL: Final = "model"
"""Stands for the stop ids that the model's checkpoint declares."""


def ignore(event: Event) -> None:
    """Does nothing with an event: the tracer of those who do not watch."""


class Options(TypedDict, total=False):
    """Keyword arguments that every decoder's `generate` accepts."""

    recurrence_depth: int | None
    """T for this call; None, the default, is the model's own (MOD-01, MOD-02)."""
    eos_token_id: EosTokenId
    """Stop ids: an int, a list, set or tensor of them; None never stops; by default the model's own (SMP-09)."""
    arithmetic: str
    """`"batched"`, the default, or `"exact"` (CONF-01)."""
    state_seed: int
    """Seed of the random initial state of Huginn-type models; 0 by default (MOD-08)."""
    state_scale: float
    """Factor on that state; 1.0 by default, 0 gives zeros (MOD-07)."""
    kv_dtype: torch.dtype | None
    """Type of the KV cells; None, the default, is the model's own. Any other makes the result approximate (KV-09)."""
    kv_slots: KVSlots
    """Slots that a layer's recurrences share, taken in turn, or the name of a strategy of Huginn's code (SHR-02). None,
    the default, is one for each recurrence; fewer make the result approximate (SHR-11)."""
    provenance: bool
    """Records who wrote each KV cell and raises on a stale read; off by default, slow."""
    keep_logits: bool
    """Whether the result holds the full-depth logits of every committed token; off by default."""
    tracer: Callable[[Event], None]
    """Receives every event when it happens; by default nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The result of decoding one sequence."""

    token_ids: list[int]
    """The committed tokens, without the prompt; a stop token that ended the text is included."""
    finish_reason: FinishReason
    """`"eos"`, `"length"` or `"context"`."""
    counts: Counts
    """What was computed and what became of the drafts."""
    events: list[Event]
    """Everything that happened, in order; see `reference.trace` for the JSON lines format."""
    margins: list[float]
    """For every committed token: its logit minus the best logit of any other id."""
    logits: Float[Tensor, "tokens vocab"] | None
    """The full-depth logits from which each token was chosen, if `keep_logits` was set."""
    kv_bytes: int
    """Bytes allocated for KV cells."""
    exactness: Exactness
    """`"exact"`, or `"approximate"` if the run saved memory at the price of accuracy (KV-09, SHR-11)."""
    exactness_reason: str
    """What was approximated, and whether the result is that of AR with the same cells; empty if nothing was."""

    @property
    def acceptance_rate(self) -> float:
        """Accepted drafts over judged drafts; NaN where none was judged (COST-03)."""
        return self.counts.acceptance_rate


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What the latest readout of a position said of its successor."""

    margin: float
    """Logit of the chosen id minus the best logit of any other."""
    logits: Logits | None
    """One row, if it may be asked for: a view of it would keep the whole readout in memory."""


class Decoding:
    """One sequence in the making. `step` runs one tick; between ticks everything may be looked at."""

    def __init__(  # noqa: PLR0913 - each is a choice of the caller, passed through by `generate`
        self,
        model: LoopedModel,
        prompt_ids: Sequence[int],
        schedule: Schedule,
        *,
        arithmetic: Arithmetic = Arithmetic.BATCHED,
        state_seed: int = 0,
        state_scale: float = 1.0,
        kv_dtype: torch.dtype | None = None,
        sharing: SlotMap | None = None,
        provenance: bool = False,
        keep_logits: bool = False,
        tracer: Callable[[Event], None] = ignore,
    ) -> None:
        """Allocates the KV cells and computes the prompt; the first token is committed here."""
        self._model = model
        self._schedule = schedule
        self._arithmetic = arithmetic
        self._keep_logits = keep_logits
        self._sharing = sharing if sharing is not None and sharing.is_shared else None  # else as without (SHR-06)
        self._tracer = tracer
        self._verdicts: dict[int, _Verdict] = {}
        self._committed: list[tuple[int, _Verdict]] = []
        # Every id once: a slice of it costs a tenth of a new tensor.
        self._ids = torch.arange(model.vocab_size, device=model.device)
        self.events: list[Event] = []
        stopping = schedule.stopping
        has_budget = stopping.end > stopping.prompt_length
        num_positions = stopping.end - 1 if has_budget else 0  # the last token needs no cells: it is never fed back
        self.kv = KVCache(
            model.kv_shapes,
            recurrence_depth=schedule.recurrence_depth,
            num_positions=num_positions,
            dtype=model.dtype if kv_dtype is None else kv_dtype,
            device=model.device,
            spacing=schedule.draft_depth,
            sharing=self._sharing,
            provenance=provenance,
        )
        self._rows = LaneRows(num_positions, model.hidden_size, dtype=model.dtype, device=model.device)
        with torch.inference_mode():
            # Drawn here for all positions: drawing one at a time would cost as much as a layer of a small model.
            self._initial_states = model.initial_states(range(num_positions), seed=state_seed, scale=state_scale)
            self.state, events = begin(schedule, self._prefill(prompt_ids) if has_budget else None)
            self._carry_out(events)

    @property
    def is_finished(self) -> bool:
        """Whether the last token was committed."""
        return self.state.finish_reason is not None

    @torch.inference_mode()
    def step(self) -> Events:
        """Runs one tick: one recurrent call, the readouts that are due, and what follows from them.

        Returns:
            What happened, in order.
        """
        tick = self._schedule.plan(self.state)
        self._advance(tick.lanes)
        tokens = self._read_out([readout.lane for readout in tick.readouts])
        self.state, events = self._schedule.observe(self.state, tokens)
        self._carry_out(events)
        return events

    def output(self) -> Output:
        """Gives the result of a finished decoding."""
        assert self.state.finish_reason is not None, "step until is_finished"
        counts = count(self.events)
        approximations = [] if self.kv.dtype == self._model.dtype else [f"KV cells are {self.kv.dtype} (KV-09)"]
        if self._sharing is not None and counts.ticks:
            decoder, draft_depth = self._schedule.name, self._schedule.draft_depth
            approximations.append(
                approximation(self._sharing, decoder=decoder, draft_depth=draft_depth, num_accepted=counts.accepted)
            )
        kept = [verdict.logits for _, verdict in self._committed if verdict.logits is not None]
        no_logits = torch.empty(0, self._model.vocab_size, dtype=self._model.dtype, device=self._model.device)
        return Output(
            token_ids=[token for token, _ in self._committed],
            finish_reason=self.state.finish_reason,
            counts=counts,
            events=self.events,
            margins=[verdict.margin for _, verdict in self._committed],
            logits=torch.cat([no_logits, *kept]) if self._keep_logits else None,
            kv_bytes=self.kv.num_bytes,
            exactness=Exactness.APPROXIMATE if approximations else Exactness.EXACT,
            exactness_reason="; ".join(approximations),
        )

    def _prefill(self, prompt_ids: Sequence[int]) -> int:
        """Computes the whole prompt at full depth, alike for every decoder and in both arithmetics (SMP-11)."""
        positions = range(len(prompt_ids))
        states, injected_inputs = self._start(torch.tensor(prompt_ids, device=self._model.device), positions)
        for climbed in prefill.climb(self._model, self.kv, positions, states, injected_inputs):
            states = climbed
        full_depth = self._schedule.recurrence_depth
        hidden = self._model.coda(states, self.kv.rows(Part.CODA, positions, [full_depth] * len(positions)))
        (token,) = self._choose(hidden[-1:], positions[-1:])
        return token

    def _start(self, token_ids: TokenIds, positions: Sequence[int]) -> tuple[Hidden, Hidden]:
        """Runs the prelude on tokens at `positions`, a run, and gives their states at depth 0 and injected inputs."""
        drawn = self._initial_states
        states = None if drawn is None else drawn[positions[0] : positions[-1] + 1]
        return prefill.start(self._model, self.kv, token_ids, positions, states)

    def _calls(self, lanes: Sequence[Lane]) -> Iterable[Sequence[Lane]]:
        """Splits lanes into calls: all together, or each alone. Oldest first, since the younger may read the older."""
        if self._arithmetic is Arithmetic.BATCHED:
            return (lanes,) if lanes else ()
        return ((lane,) for lane in lanes)

    def _advance(self, lanes: Sequence[Lane]) -> None:
        """Takes every lane one recurrence further."""
        for call in self._calls(lanes):
            positions = [lane.position for lane in call]
            rows = self.kv.rows(Part.RECURRENT, positions, [lane.depth for lane in call])
            at = self._rows.at(positions)
            states = self._model.recur(self._rows.states(at), self._rows.injected_inputs(at), rows)
            self._rows.advance(at, states)

    def _read_out(self, lanes: Sequence[Lane]) -> tuple[int, ...]:
        """Runs coda and head on the lanes that are due, whatever their depth, and chooses their tokens."""
        tokens: tuple[int, ...] = ()
        for call in self._calls(lanes):
            positions = [lane.position for lane in call]
            rows = self.kv.rows(Part.CODA, positions, [lane.depth for lane in call])
            tokens += self._choose(self._model.coda(self._rows.states(self._rows.at(positions)), rows), positions)
        return tokens

    def _choose(self, coda_output: Hidden, positions: Sequence[int]) -> tuple[int, ...]:
        """Chooses the token behind each position and remembers the verdict, for the case that it is committed."""
        logits = self._model.head(coda_output)
        tokens, margins = greedy(logits)
        kept = logits.chunk(len(positions)) if self._keep_logits else [None] * len(positions)
        self._verdicts.update(zip(positions, map(_Verdict, margins, kept), strict=True))
        return tokens

    def _carry_out(self, events: Events) -> None:
        """Does to tensors what the schedule decided about integers."""
        for event in events:
            match event:
                case Commit():
                    self._committed.append((event.token, self._verdicts.pop(event.position - 1)))
                case Flush():
                    self.kv.end(event.positions)
                case Inject():
                    state, injected_input = self._start(self._ids[event.token : event.token + 1], [event.position])
                    self._rows.start(event.position, state=state, injected_input=injected_input)
                case _:
                    pass
            self.events.append(event)
            self._tracer(event)


@runtime_checkable  # for the tests, which check annotations at run time
class MakeSchedule(Protocol):
    """Makes a schedule once the engine knows the depth and the limits; may refuse its other parameters."""

    def __call__(self, *, recurrence_depth: int, stopping: Stopping) -> Schedule:
        """Gives the schedule."""


def generate(  # noqa: PLR0913 - the options of `Options`, each by name
    model: LoopedModel,
    prompt_ids: PromptIds,
    make_schedule: MakeSchedule,
    *,
    max_new_tokens: int,
    recurrence_depth: int | None = None,
    eos_token_id: EosTokenId = DECLARED_BY_MODEL,
    arithmetic: str = Arithmetic.BATCHED,
    state_seed: int = 0,
    state_scale: float = 1.0,
    kv_dtype: torch.dtype | None = None,
    kv_slots: KVSlots = None,
    provenance: bool = False,
    keep_logits: bool = False,
    tracer: Callable[[Event], None] = ignore,
) -> Output:
    """Decodes one sequence with any schedule; what `ar.generate`, `dtv.generate` and `wfd.generate` call.

    Args:
        model: Any looped model; read, never changed.
        prompt_ids: Token ids of the prompt.
        make_schedule: The decoder.
        max_new_tokens: Most tokens to commit.
        recurrence_depth: See `Options`, as for all that follow.
        eos_token_id: Stop ids.
        arithmetic: `"batched"` or `"exact"`.
        state_seed: Seed of the initial state.
        state_scale: Scale of the initial state.
        kv_dtype: Type of the KV cells.
        kv_slots: KV slots that recurrences share.
        provenance: Whether to check every read of KV cells.
        keep_logits: Whether to keep the logits of committed tokens.
        tracer: Receives every event.

    Returns:
        The result.

    Raises:
        ParameterError: If an argument breaks a rule of the specification; before any computation (NOT-04).
    """
    prompt = token_ids_of("prompt_ids", prompt_ids, model, clause="SMP-07")
    if arithmetic not in tuple(Arithmetic):
        raise ParameterError(f"arithmetic={arithmetic!r} is none of {[str(name) for name in Arithmetic]} (CONF-01)")
    check_state_options(seed=state_seed, scale=state_scale)
    _check_kv_dtype(kv_dtype)
    depth = model.recurrence_depth if recurrence_depth is None else recurrence_depth
    stopping = Stopping(
        prompt_length=len(prompt),
        max_new_tokens=max_new_tokens,
        context_length=model.context_length,
        stop_ids=stop_ids_of(eos_token_id, model),
    )
    schedule = make_schedule(recurrence_depth=depth, stopping=stopping)
    sharing = slot_map(kv_slots, recurrence_depth=depth, recurrent_layers=model.kv_shapes.recurrent_layers)
    if depth > model.recurrence_depth:
        message = f"recurrence_depth={depth} is deeper than the model was trained for ({model.recurrence_depth})"
        warnings.warn(message, UserWarning, stacklevel=3)  # at the caller of `wfd.generate`
    decoding = Decoding(
        model,
        prompt,
        schedule,
        arithmetic=Arithmetic(arithmetic),
        state_seed=state_seed,
        state_scale=state_scale,
        kv_dtype=kv_dtype,
        sharing=sharing,
        provenance=provenance,
        keep_logits=keep_logits,
        tracer=tracer,
    )
    while not decoding.is_finished:
        decoding.step()
    return decoding.output()


def _check_kv_dtype(kv_dtype: object) -> None:
    if kv_dtype is not None and not (isinstance(kv_dtype, torch.dtype) and kv_dtype.is_floating_point):
        raise ParameterError(f"kv_dtype={kv_dtype!r} is not a floating type of torch (KV-09)")


def token_ids_of(name: str, ids: Iterable[int] | Tensor, model: LoopedModel, *, clause: str) -> list[int]:
    """Gives token ids as plain integers.

    Raises:
        ParameterError: If these are no ids, or one is not a whole number or not in the model's vocabulary; the message
            names `clause`.
    """
    if not isinstance(ids, Iterable):
        raise ParameterError(f"{name}={ids!r} is neither a sequence nor a tensor of token ids ({clause})")
    if isinstance(ids, Tensor) and ids.dim() > 1:
        raise ParameterError(f"{name} has shape {tuple(ids.shape)}; one sequence is one axis ({clause})")
    numbers = list(ids.reshape(-1).tolist() if isinstance(ids, Tensor) else ids)
    for number in numbers:
        check_whole_number(name, number, minimum=0, clause=clause)
    strangers = sorted({number for number in numbers if number >= model.vocab_size})
    if strangers:
        raise ParameterError(f"{name}={strangers} outside the vocabulary of {model.vocab_size} tokens ({clause})")
    return numbers


def stop_ids_of(eos_token_id: EosTokenId, model: LoopedModel) -> frozenset[int]:
    """Gives the set of stop ids in any of the forms that callers use (SMP-08, SMP-09)."""
    match eos_token_id:
        case None:
            return frozenset()
        case str():
            if eos_token_id != DECLARED_BY_MODEL:
                raise ParameterError(f"eos_token_id={eos_token_id!r} is neither ids nor 'model' (SMP-09)")
            return model.eos_token_ids
        case int():
            return frozenset(token_ids_of("eos_token_id", [eos_token_id], model, clause="SMP-08"))
        case _:
            return frozenset(token_ids_of("eos_token_id", eos_token_id, model, clause="SMP-08"))
