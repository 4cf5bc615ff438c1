"""How many devices a service needs: the same seconds per token, multiplied. On paper only.

No such service was run. What is missing here would make a real one larger: queues, uneven load, prompts that are
computed again after a failure, power of everything but the boards.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from reference.cost import decoding
from reference.cost.decoding import TokenCost
from reference.cost.latency import Setting, seconds_of
from reference.cost.shapes import Part
from reference.cost.work import Call, Group
from reference.errors import ParameterError, check_whole_number


class Decoder(StrEnum):
    """The decoders."""

    AR = "ar"
    """One position at a time."""
    DTV = "dtv"
    """Rounds of drafts."""
    WFD = "wfd"
    """A wavefront."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """A decoder and its parameters."""

    decoder: Decoder
    """Which one."""
    draft_depth: int
    """d; AR has none."""
    draft_length: int
    """gamma of DtV."""
    acceptance_rate: float
    """alpha."""

    def cost(self, setting: Setting) -> TokenCost:
        """Gives the cost of a token."""
        match self.decoder:
            case Decoder.AR:
                return decoding.ar(setting)
            case Decoder.DTV:
                return decoding.dtv(
                    setting,
                    draft_depth=self.draft_depth,
                    draft_length=self.draft_length,
                    acceptance_rate=self.acceptance_rate,
                )
            case Decoder.WFD:
                return decoding.wfd(setting, draft_depth=self.draft_depth, acceptance_rate=self.acceptance_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of the service."""

    requests_per_second: float
    """Requests that arrive, on average."""
    prompt_tokens: int
    """Tokens of a prompt."""
    new_tokens: int
    """Tokens of an answer."""

    def __post_init__(self) -> None:
        """Refuses what nobody can ask."""
        if not (math.isfinite(self.requests_per_second) and self.requests_per_second > 0):
            raise ParameterError(f"requests_per_second={self.requests_per_second} is not a finite number above 0")
        check_whole_number("prompt_tokens", self.prompt_tokens, minimum=1, clause="SMP-05")
        check_whole_number("new_tokens", self.new_tokens, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What it takes, on paper."""

    batch: int
    """Sequences that each device decodes together."""
    seconds_per_token: float
    """Time between two tokens of an answer."""
    seconds_per_request: float
    """Time of one device that a request takes up: its prompt, and its share of the batches it is decoded in."""
    devices: int
    """Devices that the load keeps busy, rounded up."""
    joules_per_token: float | None
    """Energy of the boards at full power for a token of an answer; None where the power is not published."""


def fleet(setting: Setting, how: Decoding, load: Load) -> Fleet:
    """Gives what a load takes on devices that are busy all the time.

    Args:
        setting: Model, device, software and batch; its context is replaced by the mean of the load.
        how: How tokens are decoded.
        load: What is asked.

    Raises:
        ParameterError: If a batch of such requests does not fit into the device's memory.
    """
    longest = load.prompt_tokens + load.new_tokens
    room = setting.longest_context
    if room < longest:
        raise ParameterError(
            f"batch={setting.batch}: {setting.machine.name} holds {room} positions each, a request needs {longest}"
        )
    setting = replace(setting, context=load.prompt_tokens + load.new_tokens // 2)
    cost = how.cost(setting)
    per_token = cost.seconds.total
    per_request = prefill_seconds(setting, num_tokens=load.prompt_tokens) + load.new_tokens * per_token / setting.batch
    watts = setting.machine.power_watts
    return Fleet(
        batch=setting.batch,
        seconds_per_token=per_token,
        seconds_per_request=per_request,
        devices=math.ceil(load.requests_per_second * per_request),
        joules_per_token=None if watts is None else watts * per_request / load.new_tokens,
    )


def prefill_seconds(setting: Setting, *, num_tokens: int) -> float:
    """Times the pass over one prompt."""
    prompt = (Group(float(num_tokens), float(num_tokens)),)
    depth = float(setting.shape.recurrence_depth)
    parts = (
        seconds_of(Call(Part.PRELUDE, prompt), setting),
        seconds_of(Call(Part.RECURRENT, prompt), setting) * depth,
        seconds_of(Call(Part.READOUT, prompt, head_rows=1.0), setting),
    )
    return sum(part.total for part in parts)
