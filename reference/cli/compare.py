"""The three decoders on one prompt: do they agree, what did each compute, how long did it take."""

import math
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from types import MappingProxyType
from typing import Final

from reference.cli.arguments import DECODERS
from reference.cli.decoding import Request, decode
from reference.cli.inputs import Prompt
from reference.cli.progress import Watch
from reference.cost.closed_forms import exact_ticks, expected_ticks_per_token
from reference.engine import Options, Output
from reference.oracle.tolerance import near_tie_tolerances
from reference.schedule import Event, Finish, Start
from reference.sharing import SlotMap, equality_with_ar, slot_map

_MOST_TIMED: Final = 5
"""Timed runs of each decoder, if they are short."""
_PATIENCE: Final = 3.0
"""Seconds that all timed runs of a decoder may take; if they would take longer there are fewer, but one a prompt."""


@dataclass(frozen=True, slots=True)
class Run:
    """One decoder on the prompt."""

    output: Output
    """What it gave."""
    seconds: float
    """Time from the end of the prefill to the last token; median of the timed runs."""

    @property
    def num_tokens(self) -> int:
        """Tokens that took ticks: all but the first, which the prefill gives."""
        return max(self.output.counts.committed - 1, 0)

    @property
    def ticks_per_token(self) -> float:
        """Ticks for every token after the first, as measured."""
        return _ratio(float(self.output.counts.ticks), float(self.num_tokens))

    @property
    def exact_ticks_per_token(self) -> float:
        """The same from the closed form for this run's verdicts (AR-02, DTV-08, WFD-12)."""
        return _ratio(float(exact_ticks(self.output.events)), float(self.num_tokens))

    @property
    def expected_ticks_per_token(self) -> float:
        """The same for a long run of independent drafts with this run's acceptance rate (COST-06)."""
        start = self.output.events[0]
        assert isinstance(start, Start)
        return expected_ticks_per_token(start, self.output.acceptance_rate)

    @property
    def rows_per_tick(self) -> float:
        """Rows of a recurrent call, on average."""
        return _ratio(float(self.output.counts.lane_ticks), float(self.output.counts.ticks))


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a decoder's result is not AR's."""

    decoder: str
    """Which decoder."""
    index: int
    """Which new token, from 0."""
    expected: int | None
    """AR's token; None if AR had ended."""
    found: int | None
    """The decoder's token; None if it had ended."""
    margin: float
    """How far AR's token was ahead of any other; NaN if AR had ended."""
    is_near_tie: bool
    """Whether rounding may decide between the two (CONF-05)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far a text goes along with another one."""

    num_equal: int
    """Places at which both have the same token."""
    first_divergence: int | None
    """The first new token, from 0, at which they differ; None if they are the same."""
    num_tokens: int
    """Tokens of the longer one."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """What shared KV slots have changed (SHR-11)."""

    slots: SlotMap
    """Which recurrences share a slot."""
    own: Output
    """AR with a slot for every recurrence."""
    with_same_slots: Mapping[str, Agreement]
    """Of every decoder with AR under the same sharing."""
    with_own_slots: Mapping[str, Agreement]
    """Of every decoder with AR without sharing."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The three decoders on one prompt."""

    prompt: Prompt
    """The prompt."""
    runs: Mapping[str, Run]
    """One for every decoder, AR first."""
    num_timed: int
    """Timed runs of each decoder, after one that is not timed."""
    difference: Difference | None
    """Where they disagree though they should not (CONF-02, CONF-03, SHR-11); None if they do not."""
    sharing: Sharing | None = None
    """What shared KV slots have changed; None if none are shared."""

    def speedup_in_ticks(self, decoder: str) -> float:
        """Gives AR's ticks over those of `decoder`."""
        ticks = self.runs["ar"].output.counts.ticks
        return _ratio(float(ticks), float(self.runs[decoder].output.counts.ticks))

    def speedup_in_time(self, decoder: str) -> float:
        """Gives AR's time over that of `decoder`."""
        return _ratio(self.runs["ar"].seconds, self.runs[decoder].seconds)


def compare(asked: Request, watch: Watch, *, share: float = 1.0) -> Comparison:
    """Runs the three decoders, first once to warm up, then in turns for the clock.

    Args:
        asked: What to decode.
        watch: Is told what happens.
        share: How much of all the work this is.
    """
    began = time.perf_counter()
    outputs = {}
    for decoder in DECODERS:
        watch.expect(share / 2 / len(DECODERS))
        outputs[decoder] = decode(decoder, asked, tracer=watch)
    average = (time.perf_counter() - began) / len(DECODERS)
    num_timed = max(1, min(_MOST_TIMED, int(_PATIENCE * share / average)))
    seconds: dict[str, list[float]] = {decoder: [] for decoder in DECODERS}
    for _ in range(num_timed):
        for decoder in DECODERS:
            watch.expect(share / 2 / len(DECODERS) / num_timed)
            seconds[decoder].append(_seconds(decoder, asked, watch))
    runs = {decoder: Run(outputs[decoder], statistics.median(seconds[decoder])) for decoder in DECODERS}
    shared = _sharing(asked, outputs)
    differences = (
        _difference(asked, outputs["ar"], decoder, outputs[decoder])
        for decoder in DECODERS[1:]
        if shared is None or _is_claimed(shared.slots, decoder, outputs[decoder])
    )
    return Comparison(
        asked.prompt,
        MappingProxyType(runs),
        num_timed,
        next((difference for difference in differences if difference is not None), None),
        shared,
    )


def agreement(expected: Sequence[int], found: Sequence[int]) -> Agreement:
    """Compares two texts place by place."""
    same = [mine == other for mine, other in zip_longest(expected, found)]
    return Agreement(sum(same), next((index for index, equal in enumerate(same) if not equal), None), len(same))


def _sharing(asked: Request, outputs: Mapping[str, Output]) -> Sharing | None:
    """Compares with AR under the same sharing and with AR without any; None if no slots are shared."""
    start = outputs["ar"].events[0]
    assert isinstance(start, Start)
    layers = asked.model.kv_shapes.recurrent_layers
    slots = slot_map(asked.options.get("kv_slots"), recurrence_depth=start.recurrence_depth, recurrent_layers=layers)
    if not slots.is_shared:
        return None
    own = decode("ar", replace(asked, options=Options(**{**asked.options, "kv_slots": None})))
    same, unshared = (
        MappingProxyType(
            {decoder: agreement(reference.token_ids, output.token_ids) for decoder, output in outputs.items()}
        )
        for reference in (outputs["ar"], own)
    )
    return Sharing(slots, own, same, unshared)


def _is_claimed(slots: SlotMap, decoder: str, output: Output) -> bool:
    """Tells whether a run with shared slots must equal AR with the same slots (SHR-08 to SHR-10)."""
    start = output.events[0]
    assert isinstance(start, Start)
    accepted = output.counts.accepted
    return equality_with_ar(slots, decoder=decoder, draft_depth=start.draft_depth, num_accepted=accepted) is not None


def _seconds(decoder: str, asked: Request, watch: Watch) -> float:
    """Times one run from the end of its prefill, as the counts do."""
    moments: list[float] = []

    def note(event: Event) -> None:
        if isinstance(event, Start | Finish):
            moments.append(time.perf_counter())
        watch(event)

    decode(decoder, asked, tracer=note)
    return moments[-1] - moments[0]


def _difference(asked: Request, expected: Output, decoder: str, found: Output) -> Difference | None:
    pairs = zip_longest(expected.token_ids, found.token_ids)
    index = next((index for index, (mine, other) in enumerate(pairs) if mine != other), None)
    if index is None:
        return None
    ended = index == len(expected.token_ids)
    return Difference(
        decoder,
        index,
        None if ended else expected.token_ids[index],
        None if index == len(found.token_ids) else found.token_ids[index],
        math.nan if ended else expected.margins[index],
        is_near_tie=not ended and _is_near_tie(asked, index),
    )


def _is_near_tie(asked: Request, index: int) -> bool:
    """Tells whether rounding may decide the choice of AR's token (CONF-05)."""
    output = decode("ar", replace(asked, options=Options(**asked.options, keep_logits=True)))
    assert output.logits is not None
    (tolerance,) = near_tie_tolerances(output.logits[index : index + 1], asked.model.dtype)
    return output.margins[index] <= tolerance


def _ratio(numerator: float, denominator: float) -> float:
    """Divides; NaN where there is nothing to divide by."""
    return numerator / denominator if denominator else math.nan
