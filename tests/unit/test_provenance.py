"""The record of writers catches every planted violation, and nothing else."""

import pytest

from reference.errors import SlotConflictError, StaleReadError
from reference.models.protocol import KVShapes
from reference.provenance import Part, Provenance

SHAPES = KVShapes(prelude_layers=1, recurrent_layers=2, coda_layers=1, kv_heads=1, head_dim=2)
PRELUDE, RECURRENT, CODA = Part.PRELUDE, Part.RECURRENT, Part.CODA


def record() -> Provenance:
    """Gives the record of a run with T = 3 in which positions 0 and 1 are final and 2 and 3 are in flight."""
    kept = Provenance(SHAPES, recurrence_depth=3, num_positions=6)
    kept.begin([0, 1])
    for recurrence in range(3):
        kept.write(RECURRENT, 0, positions=[0, 1], depths=[recurrence] * 2)
    kept.write(CODA, 0, positions=[0, 1], depths=[3, 3])
    kept.begin([2, 3])
    return kept


def write(kept: Provenance, part: Part, position: int, depth: int) -> None:
    kept.write(part, 0, positions=[position], depths=[depth])


def read(kept: Provenance, part: Part, position: int, depth: int) -> None:
    kept.read(part, 0, positions=[position], depths=[depth])


@pytest.mark.spec("KV-03", "KV-04", "KV-07")
def test_an_orderly_wave_passes() -> None:
    kept = record()
    for position, recurrence in ((2, 0), (2, 1), (3, 0), (2, 2), (3, 1), (3, 2)):
        write(kept, RECURRENT, position, recurrence)
        read(kept, RECURRENT, position, recurrence)
    for position, depth in ((2, 1), (3, 1), (2, 3), (3, 3)):
        write(kept, CODA, position, depth)
        read(kept, CODA, position, depth)
    kept.end([3])
    kept.begin([3])
    write(kept, RECURRENT, 3, 0)
    read(kept, RECURRENT, 3, 0)


@pytest.mark.spec("KV-04")
def test_a_cell_is_not_written_twice() -> None:
    kept = record()
    write(kept, RECURRENT, 2, 0)
    with pytest.raises(SlotConflictError, match=r"recurrent layer 0, position 2, depth 0: written twice .*\(KV-04\)"):
        write(kept, RECURRENT, 2, 0)


@pytest.mark.spec("KV-04")
def test_recurrences_are_written_in_order_and_none_is_left_out() -> None:
    kept = record()
    with pytest.raises(SlotConflictError, match=r"depth 1: written twice or out of order .*\(KV-04\)"):
        write(kept, RECURRENT, 2, 1)
    write(kept, RECURRENT, 2, 0)
    write(kept, RECURRENT, 2, 1)
    with pytest.raises(SlotConflictError, match="KV-04"):
        write(kept, RECURRENT, 2, 0)


@pytest.mark.spec("KV-04")
@pytest.mark.parametrize("part", [PRELUDE, RECURRENT, CODA])
def test_nothing_is_written_where_nobody_is(part: Part) -> None:
    kept = record()
    with pytest.raises(SlotConflictError, match=r"position 4, .*not in flight \(KV-04\)"):
        write(kept, part, 4, 0)
    kept.end([3])
    with pytest.raises(SlotConflictError, match=r"position 3, .*not in flight \(KV-04\)"):
        write(kept, part, 3, 0)


@pytest.mark.spec("KV-04")
def test_a_prelude_cell_is_written_once() -> None:
    kept = record()
    write(kept, PRELUDE, 2, 0)
    with pytest.raises(SlotConflictError, match="prelude"):
        write(kept, PRELUDE, 2, 0)


@pytest.mark.spec("KV-04", "KV-07")
@pytest.mark.parametrize("first,second", [(1, 1), (3, 1), (3, 3)])
def test_coda_entries_are_written_at_rising_depth(first: int, second: int) -> None:
    kept = record()
    write(kept, CODA, 2, first)
    with pytest.raises(SlotConflictError, match="coda"):
        write(kept, CODA, 2, second)


@pytest.mark.spec("KV-03")
def test_a_cell_of_an_earlier_incarnation_is_stale() -> None:
    kept = record()
    write(kept, RECURRENT, 2, 0)
    kept.end([2, 3])
    kept.begin([2])
    with pytest.raises(StaleReadError, match=r"position 2 at depth 0 reads stale cells of positions \[2\] \(KV-03\)"):
        read(kept, RECURRENT, 2, 0)


@pytest.mark.spec("KV-03")
def test_a_cell_that_an_older_lane_has_not_written_yet_is_stale() -> None:
    kept = record()
    write(kept, RECURRENT, 3, 0)
    with pytest.raises(StaleReadError, match=r"stale cells of positions \[2\]"):
        read(kept, RECURRENT, 3, 0)
    write(kept, RECURRENT, 2, 0)
    read(kept, RECURRENT, 3, 0)


@pytest.mark.spec("KV-03")
def test_a_cell_of_nobody_is_stale() -> None:
    kept = Provenance(SHAPES, recurrence_depth=3, num_positions=2)
    with pytest.raises(StaleReadError, match=r"positions \[0\]"):
        read(kept, PRELUDE, 0, 0)


@pytest.mark.spec("KV-07")
def test_a_verification_may_not_see_a_provisional_entry_and_a_draft_may() -> None:
    kept = record()
    write(kept, CODA, 2, 1)
    write(kept, CODA, 3, 3)
    with pytest.raises(
        StaleReadError, match=r"verification of position 3 .* provisional cells of positions \[2\] \(KV-07\)"
    ):
        read(kept, CODA, 3, 3)
    kept.end([3])
    kept.begin([3])
    write(kept, CODA, 3, 1)
    read(kept, CODA, 3, 1)


@pytest.mark.spec("KV-04")
def test_layers_are_recorded_apart() -> None:
    kept = record()
    kept.write(RECURRENT, 0, positions=[2], depths=[0])
    kept.write(RECURRENT, 1, positions=[2], depths=[0])
    with pytest.raises(SlotConflictError, match="layer 1"):
        kept.write(RECURRENT, 1, positions=[2], depths=[0])


# ---- shared slots ----------------------------------------------------------------------------------------------------


def shared_record() -> Provenance:
    """Gives the record of a run with T = 3 and two slots, in which position 0 is final and 1 and 2 are in flight."""
    kept = Provenance(SHAPES, recurrence_depth=3, num_positions=4, slots=(0, 1, 0))
    kept.begin([0])
    for recurrence in range(3):
        write(kept, RECURRENT, 0, recurrence)
    kept.begin([1, 2])
    return kept


@pytest.mark.spec("SHR-05")
def test_a_shared_slot_may_hold_a_later_recurrence() -> None:
    kept = shared_record()
    for position, recurrence in ((1, 0), (1, 1), (2, 0), (1, 2), (2, 1), (2, 2)):
        write(kept, RECURRENT, position, recurrence)
        read(kept, RECURRENT, position, recurrence)


@pytest.mark.spec("SHR-05", "KV-03")
def test_a_shared_slot_may_not_hold_an_earlier_recurrence() -> None:
    kept = shared_record()
    for position in (1, 2):
        write(kept, RECURRENT, position, 0)
        write(kept, RECURRENT, position, 1)
    write(kept, RECURRENT, 2, 2)
    with pytest.raises(StaleReadError, match=r"position 2 at depth 2 reads stale cells of positions \[1\]"):
        read(kept, RECURRENT, 2, 2)


@pytest.mark.spec("SHR-05", "KV-04")
def test_with_shared_slots_recurrences_are_written_in_order_and_once() -> None:
    kept = shared_record()
    write(kept, RECURRENT, 1, 0)
    for recurrence in (0, 2):
        with pytest.raises(SlotConflictError, match=r"position 1, depth \d"):
            write(kept, RECURRENT, 1, recurrence)
