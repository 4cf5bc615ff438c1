"""The host's side: it prefills, repeats the captured calls, and looks at the ledger now and then."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference.graphs.ledger import Field, Ledger


@dataclass(frozen=True, slots=True)
class Look:
    """What the ledger said at one moment."""

    totals: tuple[int, ...]
    """By `Field`."""
    ring: tuple[int, ...]
    """The latest tokens."""


class Watcher:
    """Copies the ledger out without making the device wait.

    A copy is queued behind the work whose result it takes. The host waits for a copy, never the device for the host:
    with `ahead` = 1 there is always one more batch of work queued behind the copy that the host waits for.
    """

    def __init__(self, ledger: Ledger, *, ahead: int) -> None:
        """Allocates host memory for the copies that may be under way at once; pinned where the device is a GPU."""
        self._ledger = ledger
        self._ahead = ahead
        self._on_gpu = ledger.ring.device.type == "cuda"
        source = torch.cat((ledger.totals, ledger.ring))
        self._free = deque(torch.empty_like(source, device="cpu", pin_memory=self._on_gpu) for _ in range(ahead + 1))
        self._under_way: deque[tuple[Tensor, torch.cuda.Event | None]] = deque()

    def look(self) -> Look | None:
        """Queues a copy and gives the one that was queued `ahead` copies ago; None while there is none yet."""
        ledger, copy = self._ledger, self._free.popleft()
        num_totals = len(Field)
        copy[:num_totals].copy_(ledger.totals, non_blocking=True)
        copy[num_totals:].copy_(ledger.ring, non_blocking=True)
        event = None
        if self._on_gpu:
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no types for it
            event.record()
        self._under_way.append((copy, event))
        if len(self._under_way) <= self._ahead:
            return None
        copy, event = self._under_way.popleft()
        if event is not None:
            event.synchronize()
        numbers = copy.tolist()
        self._free.append(copy)
        return Look(tuple(numbers[:num_totals]), tuple(numbers[num_totals:]))


@dataclass(frozen=True, slots=True)
class Run:
    """What the device decoded after the prefill."""

    tokens: list[int]
    """Committed tokens."""
    totals: tuple[int, ...]
    """By `Field`, when it was finished."""
    seconds: float
    """From the first call to the look that saw the end."""


def run(calls: Sequence[Callable[[], object]], ledger: Ledger, *, looks_every: int, ahead: int) -> Run:
    """Repeats calls until the ledger says that decoding is finished. What runs after that changes nothing.

    Args:
        calls: One cycle of captured calls.
        ledger: What they report to.
        looks_every: Cycles between two looks.
        ahead: See `Watcher`.
    """
    watcher = Watcher(ledger, ahead=ahead)
    tokens: list[int] = []
    begin = time.perf_counter()
    while True:
        for _ in range(looks_every):
            for call in calls:
                call()
        seen = watcher.look()
        if seen is None:
            continue
        tokens += [seen.ring[k % ledger.ring_size] for k in range(len(tokens), seen.totals[Field.COMMITTED])]
        if seen.totals[Field.FINISH] or seen.totals[Field.NANS]:
            return Run(tokens, seen.totals, time.perf_counter() - begin)
