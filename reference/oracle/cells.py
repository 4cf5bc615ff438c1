"""Whether the KV cells that a row says it read are the ones it had to read (KV-03).

A row at position i that runs recurrence r reads the cells of that recurrence at the positions 0 to i, its own included,
each written by the lane that its position has now. Who wrote a cell is told by two numbers, the recurrence and how many
lanes were started at the position before the one that wrote; so a cell that a flush should have made void is seen.
"""

from collections.abc import Callable

from reference.oracle.rules import NotAllowedError
from reference.schedule import CellsRead, Lane


def check_cells(
    rows: tuple[Lane, ...], reads: tuple[tuple[CellsRead, ...], ...], incarnation_of: Callable[[int], int]
) -> None:
    """Holds that the rows of a call read the cells they had to, and no others.

    Args:
        rows: The rows, as they are after the call.
        reads: What each of them says it read, in any order.
        incarnation_of: Gives, for a position, how many lanes were started there before the one it has now.

    Raises:
        NotAllowedError: If a cell is stale, of another recurrence, behind its row, read twice or left out.
    """
    if len(reads) != len(rows):
        raise NotAllowedError("NOT-03", f"reads of {len(reads)} rows in a call of {len(rows)} rows")
    for row, runs in zip(rows, reads, strict=True):
        _check_row(row, runs, incarnation_of)


def _check_row(row: Lane, runs: tuple[CellsRead, ...], incarnation_of: Callable[[int], int]) -> None:
    recurrence = row.depth - 1
    who = f"position {row.position}, in recurrence {recurrence},"
    seen: set[int] = set()
    for run in runs:
        for position in range(run.start, run.stop):
            whose = f"{who} reads a cell of position {position}"
            if not 0 <= position <= row.position:
                raise NotAllowedError("KV-03", f"{whose}, which is none of its own or before it")
            if position in seen:
                raise NotAllowedError("KV-03", f"{whose} a second time")
            seen.add(position)
            if run.recurrence < 0:
                raise NotAllowedError("KV-03", f"{whose} that nobody has written")
            if run.recurrence != recurrence:
                raise NotAllowedError("KV-03", f"{whose} that recurrence {run.recurrence} wrote last")
            present = incarnation_of(position)
            if run.incarnation != present:
                what = f"{whose} that is stale: its lane {run.incarnation} wrote it, and now it has lane {present}"
                raise NotAllowedError("KV-03", what)
    missing = sorted(set(range(row.position + 1)) - seen)
    if missing:
        raise NotAllowedError("KV-03", f"{who} does not read the cell of position {missing[0]}")
