"""The static path as a caller sees it: build once, capture once, decode any number of prompts."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch

from reference.counts import Counts
from reference.engine import DECLARED_BY_MODEL, EosTokenId, PromptIds, stop_ids_of, token_ids_of
from reference.errors import NumericsError, ParameterError, check_whole_number
from reference.graphs.capture import captured
from reference.graphs.ledger import EOS, Field
from reference.graphs.rounds import Rounds
from reference.graphs.run import Run, run
from reference.graphs.step import StepOptions
from reference.graphs.wavefront import Wavefront
from reference.models.protocol import LoopedModel
from reference.sampling import check_state_options, greedy
from reference.schedule import check_draft_depth
from reference.sharing import KVSlots, slot_map
from reference.stopping import FinishReason, Stopping

DECODERS: Final = ("ar", "dtv", "wfd")
"""What can be captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticOutput:
    """The result of decoding one sequence on the static path."""

    token_ids: list[int]
    """The committed tokens, without the prompt."""
    finish_reason: FinishReason
    """`"eos"`, `"length"` or `"context"`."""
    counts: Counts
    """What was computed for lanes, and what became of the drafts; rows without a lane are not counted."""
    kv_bytes: int
    """Bytes allocated for KV cells, spare and scratch cells included."""
    seconds: float
    """Of decoding, from the prefill's end until the host saw the end."""


class StaticDecoder:
    """One decoder on one model, with every buffer allocated and every graph captured."""

    def __init__(  # noqa: PLR0913 - each is a choice of the caller, by name
        self,
        model: LoopedModel,
        *,
        decoder: str = "wfd",
        num_positions: int,
        draft_depth: int | None = None,
        draft_length: int = 8,
        recurrence_depth: int | None = None,
        kv_slots: KVSlots = None,
        state_seed: int = 0,
        state_scale: float = 1.0,
        looks_every: int = 8,
    ) -> None:
        """Allocates, and captures on a CUDA device.

        Args:
            model: Any looped model whose methods work on the device alone, as both families' do.
            decoder: `"ar"`, `"dtv"` or `"wfd"`.
            num_positions: Positions that can be held: most that prompt and text may need, the last token not counted.
            draft_depth: d of DtV and WFD; of WFD it must divide T.
            draft_length: The gamma of DtV.
            recurrence_depth: T; None is the model's own.
            kv_slots: KV slots that recurrences share, as `reference.engine.Options` has it, but none between layers.
            state_seed: Seed of the initial state.
            state_scale: Scale of the initial state.
            looks_every: Cycles between two looks of the host at the output.

        Raises:
            ParameterError: If an argument breaks a rule; before any allocation.
        """
        depth = model.recurrence_depth if recurrence_depth is None else recurrence_depth
        check_whole_number("num_positions", num_positions, minimum=1, clause="KV-02")
        check_whole_number("looks_every", looks_every, minimum=1, clause="NOT-04")
        check_state_options(seed=state_seed, scale=state_scale)
        if num_positions > model.context_length:
            raise ParameterError(
                f"num_positions={num_positions} exceeds context_length={model.context_length} (NOT-01)"
            )
        draft_depth = _draft_depth(decoder, draft_depth, depth)
        check_whole_number("draft_length", draft_length, minimum=1, clause="DTV-02")
        slots = slot_map(
            kv_slots, recurrence_depth=depth, recurrent_layers=model.kv_shapes.recurrent_layers
        ).by_recurrence
        if slots is None:
            raise ParameterError(
                f"kv_slots={kv_slots!r} shares slots between layers, or differently in each, so the recurrences of a "
                "captured step have no slot; reference.wfd.generate decodes with any sharing (SHR-02)"
            )
        self.model = model
        self._looks_every = looks_every
        self._ahead = 1 if model.device.type == "cuda" else 0
        options: StepOptions = {
            "slots": slots,
            "num_positions": num_positions,
            "ring_size": looks_every * (draft_length + 1 if decoder == "dtv" else 1),  # committed between two looks
            "state_seed": state_seed,
            "state_scale": state_scale,
        }
        self.step: Wavefront | Rounds
        if decoder == "dtv":
            self.step = Rounds(model, draft_depth=draft_depth, draft_length=draft_length, **options)
        else:
            self.step = Wavefront(model, draft_depth=draft_depth, **options)
        begin = time.perf_counter()
        distinct = {call: captured(call, model.device) for call in dict.fromkeys(self.step.cycle)}
        self.calls: tuple[Callable[[], object], ...] = tuple(distinct[call] for call in self.step.cycle)
        self.seconds_to_capture = time.perf_counter() - begin
        """Warm-ups included."""

    @torch.no_grad()
    def decode(
        self, prompt_ids: PromptIds, *, max_new_tokens: int, eos_token_id: EosTokenId = DECLARED_BY_MODEL
    ) -> StaticOutput:
        """Decodes one prompt; any number of them, one after the other.

        Raises:
            ParameterError: If an argument breaks a rule, or prompt and budget need more positions than there are.
            NumericsError: If a readout gave NaN (SMP-02).
        """
        model, step = self.model, self.step
        prompt = token_ids_of("prompt_ids", prompt_ids, model, clause="SMP-07")
        stop_ids = stop_ids_of(eos_token_id, model)
        stopping = Stopping(
            prompt_length=len(prompt),
            max_new_tokens=max_new_tokens,
            context_length=model.context_length,
            stop_ids=stop_ids,
        )
        if stopping.end - 1 > step.num_positions:
            raise ParameterError(
                f"prompt of {len(prompt)} and max_new_tokens={max_new_tokens} need {stopping.end - 1} positions, "
                f"num_positions={step.num_positions} (KV-02)"
            )
        if stopping.end == stopping.prompt_length:
            return self._output([], stopping, Run([], (0,) * len(Field), 0.0), is_started=False)
        device = model.device
        frontier = stopping.prompt_length + 1
        step.ledger.open(
            frontier=frontier,
            end=stopping.end,
            stop_ids=torch.tensor(sorted(stop_ids), dtype=torch.int64, device=device),
        )
        (first,), _ = greedy(step.prefill(torch.tensor(prompt, device=device)))
        if stopping.reason_at(frontier, first) is not None:
            return self._output([first], stopping, Run([], (0,) * len(Field), 0.0), is_started=False)
        step.begin(torch.tensor([first], device=device), torch.tensor([frontier - 1], device=device))
        done = run(self.calls, step.ledger, looks_every=self._looks_every, ahead=self._ahead)
        if done.totals[Field.NANS]:
            raise NumericsError(f"logits of {done.totals[Field.NANS]} readouts hold NaN (SMP-02)")
        return self._output([first, *done.tokens], stopping, done, is_started=True)

    def _output(self, tokens: list[int], stopping: Stopping, done: Run, *, is_started: bool) -> StaticOutput:
        totals = done.totals
        ended_by_stop_id = bool(tokens) and tokens[-1] in stopping.stop_ids
        assert not is_started or ended_by_stop_id == (totals[Field.FINISH] == EOS)
        return StaticOutput(
            token_ids=tokens,
            finish_reason=FinishReason.EOS if ended_by_stop_id else stopping.reason_of_end(),
            counts=Counts(
                ticks=totals[Field.TICKS],
                lane_ticks=totals[Field.LANE_TICKS],
                prelude_calls=totals[Field.PRELUDE_CALLS] + is_started,
                readout_calls=totals[Field.READOUT_CALLS],
                accepted=totals[Field.ACCEPTED],
                rejected=totals[Field.REJECTED],
                flushed=totals[Field.FLUSHED],
                committed=len(tokens),
            ),
            kv_bytes=self.step.cells.num_bytes,
            seconds=done.seconds,
        )


def generate(  # noqa: PLR0913 - each is a choice of the caller, by name
    model: LoopedModel,
    prompt_ids: PromptIds,
    *,
    decoder: str = "wfd",
    max_new_tokens: int,
    eos_token_id: EosTokenId = DECLARED_BY_MODEL,
    draft_depth: int | None = None,
    draft_length: int = 8,
    recurrence_depth: int | None = None,
    kv_slots: KVSlots = None,
) -> StaticOutput:
    """Decodes one prompt on the static path. For several, keep a `StaticDecoder`: it allocates and captures once.

    Args:
        model: Any looped model whose methods work on the device alone.
        prompt_ids: Token ids of the prompt; at least one.
        decoder: `"ar"`, `"dtv"` or `"wfd"`.
        max_new_tokens: Most tokens to commit.
        eos_token_id: As `reference.engine.Options` has it.
        draft_depth: See `StaticDecoder`, as for all that follow.
        draft_length: The gamma of DtV.
        recurrence_depth: T.
        kv_slots: KV slots that recurrences share.

    Raises:
        ParameterError: If an argument breaks a rule; before any computation.
    """
    prompt = token_ids_of("prompt_ids", prompt_ids, model, clause="SMP-07")
    limits = Stopping(prompt_length=len(prompt), max_new_tokens=max_new_tokens, context_length=model.context_length)
    static = StaticDecoder(
        model,
        decoder=decoder,
        num_positions=max(1, limits.end - 1),
        draft_depth=draft_depth,
        draft_length=draft_length,
        recurrence_depth=recurrence_depth,
        kv_slots=kv_slots,
    )
    return static.decode(prompt, max_new_tokens=max_new_tokens, eos_token_id=eos_token_id)


def _draft_depth(decoder: str, draft_depth: int | None, recurrence_depth: int) -> int:
    """Gives d, which AR has not and WFD can have only of some sizes."""
    if decoder not in DECODERS:
        raise ParameterError(f"decoder={decoder!r} is none of {list(DECODERS)} (NOT-04)")
    if decoder == "ar":
        check_whole_number("recurrence_depth", recurrence_depth, minimum=1, clause="MOD-01")
        if draft_depth is not None:
            raise ParameterError(f"draft_depth={draft_depth}, but AR drafts nothing (AR-01)")
        return recurrence_depth
    if draft_depth is None:
        raise ParameterError(f"draft_depth is missing; {decoder} needs one (NOT-04)")
    check_draft_depth(draft_depth, recurrence_depth, clause="WFD-01" if decoder == "wfd" else "DTV-01")
    if decoder == "wfd" and recurrence_depth % draft_depth:
        raise ParameterError(
            f"draft_depth={draft_depth} does not divide recurrence_depth={recurrence_depth}, so the rows of a captured "
            "step have no fixed recurrence; reference.wfd.generate decodes with any draft depth (WFD-01)"
        )
    return draft_depth
