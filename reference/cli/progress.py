"""A progress bar for those who wait: on standard error, after a second, and only where somebody can see it."""

import sys
import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from reference.schedule import Commit, Event

_PATIENCE: Final = 1.0
"""Seconds without a bar."""


class Watch:
    """Knows how much of the work is done; give it to `generate` as its tracer."""

    def __init__(self, name: str, most_tokens: int) -> None:
        """Shows nothing yet.

        Args:
            name: What is going on.
            most_tokens: The most tokens that a run may commit.
        """
        self._name = name
        self._most_tokens = most_tokens
        self._done = 0.0
        self._share = 0.0
        self._num_tokens = 0
        self._began = time.perf_counter()
        self._bar: Progress | None = None
        # Both: a bar would spoil the screen of a pager that reads standard output.
        self._is_watched = sys.stderr.isatty() and sys.stdout.isatty()

    def close(self) -> None:
        """Removes the bar."""
        if self._bar is not None:
            self._bar.stop()

    @property
    def done(self) -> float:
        """How much of the work is done, from 0 to 1."""
        return self._done + self._share * self._num_tokens / max(self._most_tokens, 1)

    def expect(self, share: float) -> None:
        """Takes note that a run begins, and the one before it has ended.

        Args:
            share: How much of all the work it is; the shares of all runs make 1.
        """
        self._done += self._share
        self._share = share
        self._num_tokens = 0

    def __call__(self, event: Event) -> None:
        """Takes note of an event."""
        if not self._is_watched or not isinstance(event, Commit):
            return
        self._num_tokens += 1
        if self._bar is None and time.perf_counter() - self._began > _PATIENCE:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._name, total=1.0)
            self._bar.start()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)
