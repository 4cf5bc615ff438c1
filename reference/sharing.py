"""Which recurrences share a KV slot, and when a decoder with shared slots still is AR with the same slots.

The recurrent block's work on one position is a sequence of *steps*: layer `l` in recurrence `r` is step `r * L + l` of
`T * L`. A slot map gives every step a slot; the last write wins. Nothing here touches a tensor: `reference.kv` asks
where a step's cells lie, the engine asks what may be claimed of the result. Source of the rule: arXiv 2609.23033; of
the named maps: `raven_modeling_minimal.py` of Huginn, whose step index is 2 more. Clauses SHR-01 to SHR-11.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

from reference.errors import ParameterError, check_whole_number

KVSlots: TypeAlias = int | str | None
"""How many slots a recurrent layer has, taken in turn; or a strategy of Huginn's code; None for one each (SHR-01)."""

_LOOKUPS: Final = ("latest-m4", "available-m4", "always-last-m4", "skip")
"""What Huginn's code reads where a slot lacks an entry; at one depth for all positions none does (SHR-02)."""

_STRATEGY: Final = re.compile(
    rf"full|(?:{'|'.join(_LOOKUPS)})"
    rf"|(?:(?:{'|'.join(_LOOKUPS)})-)?compress-(?:s(?P<period>[1-9]\d*)|r(?P<length>[1-9]\d*)|(?P<anchor>anchor))"
)
"""The names of strategies."""

_ANCHORED_STEPS: Final = 32
"""Steps with a slot of their own under `compress-anchor`: the first 8 recurrences of Huginn's 4 layers."""
_ANCHOR_PERIOD: Final = 4
"""Slots that all later steps share."""


@dataclass(frozen=True)
class SlotMap:
    """The slot of every step of the recurrent block (SHR-02)."""

    recurrent_layers: int
    """L."""
    by_step: tuple[int, ...]
    """Slots of the `T * L` steps, numbered from 0 in order of first use."""

    @property
    def recurrence_depth(self) -> int:
        """T."""
        return len(self.by_step) // self.recurrent_layers

    @property
    def num_slots(self) -> int:
        """Slots of all layers together; without sharing there are `T * L`."""
        return len(set(self.by_step))

    @property
    def is_shared(self) -> bool:
        """Whether any two steps have the same slot."""
        return self.num_slots < len(self.by_step)

    @cached_property
    def by_recurrence(self) -> tuple[int, ...] | None:
        """The slot of every recurrence, numbered within a layer, if all layers have alike slots and none in common."""
        layers = [self.by_step[layer :: self.recurrent_layers] for layer in range(self.recurrent_layers)]
        patterns = {_renumbered(slots) for slots in layers}
        if len(patterns) > 1 or sum(len(set(slots)) for slots in layers) > self.num_slots:
            return None
        return patterns.pop()

    @cached_property
    def reach(self) -> int:
        """The most steps from any step to the last one with its slot."""
        last = {slot: step for step, slot in enumerate(self.by_step)}
        return max(last[slot] - step for step, slot in enumerate(self.by_step))

    @property
    def least_draft_depth(self) -> int:
        """The least draft depth at which WFD is AR under the same sharing whatever is accepted (SHR-08).

        For `s` slots in turn it is `s * floor((T - 1) / s)`, and 1 where nothing is shared.
        """
        return max(1, -(-self.reach // self.recurrent_layers))

    def is_settled_after(self, draft_depth: int) -> bool:
        """Tells whether no step from `draft_depth` on shares its slot; then DtV is AR with the same slots (SHR-09)."""
        late = self.by_step[draft_depth * self.recurrent_layers :]
        return all(self.by_step.count(slot) == 1 for slot in late)


def slot_map(kv_slots: KVSlots, *, recurrence_depth: int, recurrent_layers: int) -> SlotMap:
    """Gives the slot map that a caller asks for.

    Args:
        kv_slots: A number of slots, the name of a strategy, or None.
        recurrence_depth: T.
        recurrent_layers: L.

    Raises:
        ParameterError: If it is neither a whole number of at least 1 nor a known name (SHR-01).
    """
    steps = range(recurrence_depth * recurrent_layers)
    slot_of = _rule(kv_slots, recurrent_layers)
    return SlotMap(recurrent_layers, _renumbered([slot_of(step) for step in steps]))


def equality_with_ar(slots: SlotMap, *, decoder: str, draft_depth: int, num_accepted: int) -> str | None:
    """Says why a run equals AR under the same sharing, or gives None where that is not claimed (SHR-11).

    Args:
        slots: The slot map.
        decoder: Name of the schedule.
        draft_depth: d.
        num_accepted: Drafts that the run has accepted.
    """
    if decoder == "ar":
        return "this is AR"
    if draft_depth == slots.recurrence_depth:
        return "with draft_depth = T there are no drafts"
    if decoder == "wfd" and draft_depth >= slots.least_draft_depth:
        return f"draft_depth={draft_depth} is at least {slots.least_draft_depth}, SHR-08"
    if decoder == "dtv" and slots.is_settled_after(draft_depth):
        return "no recurrence of the verification shares its slot, SHR-09"
    if decoder in ("dtv", "wfd") and num_accepted == 0:
        return "no draft was accepted, SHR-10"
    return None


def approximation(slots: SlotMap, *, decoder: str, draft_depth: int, num_accepted: int) -> str:
    """Says what sharing has made approximate, and whether the result is that of AR under the same sharing (SHR-11).

    Args:
        slots: The slot map, of which some are shared.
        decoder: Name of the schedule.
        draft_depth: d.
        num_accepted: Drafts that the run has accepted.
    """
    why = equality_with_ar(slots, decoder=decoder, draft_depth=draft_depth, num_accepted=num_accepted)
    claim = "may differ from AR under the same sharing" if why is None else f"equals AR under the same sharing ({why})"
    return f"{slots.num_slots} KV slots instead of {len(slots.by_step)} in the recurrent block (SHR-11): {claim}"


def _rule(kv_slots: KVSlots, recurrent_layers: int) -> Callable[[int], int]:
    """Gives the function from a step to its slot."""
    match kv_slots:
        case None:
            return int
        case str():
            return _named_rule(kv_slots)
        case _:
            check_whole_number("kv_slots", kv_slots, minimum=1, clause="SHR-01")
            period = kv_slots * recurrent_layers
            return lambda step: step % period


def _named_rule(name: str) -> Callable[[int], int]:
    """Gives the function from a step to its slot that a strategy of Huginn's code stands for."""
    found = _STRATEGY.fullmatch(name)
    if found is None:
        message = (
            f"kv_slots={name!r} is no strategy: those are 'full', {', '.join(_LOOKUPS)}, compress-s<n>, compress-r<n> "
            "and compress-anchor, and a lookup and a compression joined by '-' (SHR-01)"
        )
        raise ParameterError(message)
    if found["period"]:
        period = int(found["period"])
        return lambda step: step % period
    if found["length"]:
        length = int(found["length"])
        return lambda step: step // length
    return _anchored if found["anchor"] else int


def _anchored(step: int) -> int:
    return step if step < _ANCHORED_STEPS else _ANCHORED_STEPS + step % _ANCHOR_PERIOD


def _renumbered(slots: Sequence[int]) -> tuple[int, ...]:
    """Numbers slots from 0 in order of first use."""
    numbers = {slot: number for number, slot in enumerate(dict.fromkeys(slots))}
    return tuple(numbers[slot] for slot in slots)
