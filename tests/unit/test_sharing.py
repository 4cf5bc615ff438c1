"""Slot maps: the formulas of the spec, the names of Huginn's strategies, and what may be claimed of a decoder."""

import pytest

from reference.errors import ParameterError
from reference.sharing import SlotMap, approximation, equality_with_ar, slot_map


def slots(kv_slots: int | str | None, *, recurrence_depth: int = 8, recurrent_layers: int = 4) -> SlotMap:
    return slot_map(kv_slots, recurrence_depth=recurrence_depth, recurrent_layers=recurrent_layers)


@pytest.mark.spec("SHR-02")
@pytest.mark.parametrize("recurrence_depth,recurrent_layers,num_slots", [(4, 3, 1), (4, 3, 2), (5, 1, 3), (8, 4, 4)])
def test_a_number_of_slots_takes_them_in_turn_and_every_layer_has_its_own(
    recurrence_depth: int, recurrent_layers: int, num_slots: int
) -> None:
    found = slots(num_slots, recurrence_depth=recurrence_depth, recurrent_layers=recurrent_layers)
    assert found.by_recurrence == tuple(r % num_slots for r in range(recurrence_depth))
    assert found.num_slots == num_slots * recurrent_layers
    for r in range(recurrence_depth):
        for layer in range(recurrent_layers):
            assert found.by_step[r * recurrent_layers + layer] == (r % num_slots) * recurrent_layers + layer


@pytest.mark.spec("SHR-02")
@pytest.mark.parametrize(
    "name,expected",
    [
        ("compress-s4", [t % 4 for t in range(32)]),
        ("compress-s6", [t % 6 for t in range(32)]),
        ("compress-s1", [0] * 32),
        ("compress-r4", [t // 4 for t in range(32)]),
        ("compress-r12", [t // 12 for t in range(32)]),
        ("compress-anchor", list(range(32))),
        ("full", list(range(32))),
    ],
)
def test_a_strategy_of_huginn_is_its_formula(name: str, expected: list[int]) -> None:
    assert list(slots(name).by_step) == expected


@pytest.mark.spec("SHR-02")
def test_the_anchor_keeps_eight_recurrences_and_lets_the_rest_share() -> None:
    found = slots("compress-anchor", recurrence_depth=11)
    assert found.by_recurrence == (0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8)


@pytest.mark.spec("SHR-02")
@pytest.mark.parametrize("lookup", ["latest-m4", "available-m4", "always-last-m4", "skip"])
def test_a_lookup_changes_nothing(lookup: str) -> None:
    assert slots(lookup) == slots(None)
    assert slots(f"{lookup}-compress-s8") == slots("compress-s8")


@pytest.mark.spec("SHR-02")
@pytest.mark.parametrize("name,number", [("compress-s4", 1), ("compress-s8", 2), ("compress-s16", 4)])
def test_huginns_numbers_count_layers(name: str, number: int) -> None:
    assert slots(name) == slots(number)


@pytest.mark.spec("SHR-01", "NOT-04")
@pytest.mark.parametrize(
    "kv_slots,message",
    [
        (0, r"kv_slots=0 is below 1 \(SHR-01\)"),
        (-3, r"kv_slots=-3 is below 1 \(SHR-01\)"),
        (True, r"kv_slots=True is not a whole number \(SHR-01\)"),
        ("4", r"kv_slots='4' is no strategy: .* \(SHR-01\)"),
        ("", r"kv_slots='' is no strategy"),
        ("compress-s0", r"kv_slots='compress-s0' is no strategy"),
        ("compress-s4x", r"is no strategy"),
        ("latest-m4-", r"is no strategy"),
        ("-compress-s4", r"is no strategy"),
        ("full-compress-s4", r"is no strategy"),
    ],
)
def test_anything_else_is_refused(kv_slots: int | str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        slots(kv_slots)


@pytest.mark.parametrize("name", ["compress-s1", "compress-r8", "compress-s6", "compress-s2"])
def test_slots_that_layers_have_in_common_are_not_numbered_by_recurrence(name: str) -> None:
    assert slots(name).by_recurrence is None


def test_layers_that_share_unlike_are_not_numbered_by_recurrence() -> None:
    assert SlotMap(2, (0, 1, 0, 2)).by_recurrence is None


@pytest.mark.spec("SHR-08")
def test_the_least_draft_depth_for_slots_in_turn_follows_the_formula() -> None:
    for depth in range(1, 33):
        for number in range(1, depth + 3):
            for layers in (1, 3):
                found = slots(number, recurrence_depth=depth, recurrent_layers=layers)
                assert found.least_draft_depth == max(1, number * ((depth - 1) // number))


@pytest.mark.spec("SHR-08")
def test_where_layers_share_a_slot_the_least_draft_depth_reaches_the_last_layer() -> None:
    assert slots("compress-s1", recurrence_depth=3).least_draft_depth == 3  # 11 steps of 4 a recurrence
    assert slots("compress-r4", recurrence_depth=3).least_draft_depth == 1  # the last layer of the same recurrence
    assert slots("compress-r8", recurrence_depth=4).least_draft_depth == 2


@pytest.mark.spec("SHR-09")
def test_only_slots_of_their_own_settle_a_verification() -> None:
    for depth in range(1, 9):
        for number in range(1, depth + 2):
            found = slots(number, recurrence_depth=depth)
            for draft_depth in range(1, depth + 1):
                assert found.is_settled_after(draft_depth) == (number >= depth or draft_depth == depth)
    assert SlotMap(1, (0, 0, 1, 2)).is_settled_after(2)
    assert not SlotMap(1, (0, 1, 1, 2)).is_settled_after(2)


@pytest.mark.spec("SHR-06")
@pytest.mark.parametrize(
    "kv_slots,is_shared", [(None, False), (8, False), (9, False), (7, True), ("compress-r4", True)]
)
def test_enough_slots_are_no_sharing(kv_slots: int | str | None, *, is_shared: bool) -> None:
    assert slots(kv_slots).is_shared == is_shared


@pytest.mark.spec("SHR-08", "SHR-09", "SHR-10", "SHR-11")
@pytest.mark.parametrize(
    "decoder,draft_depth,num_accepted,reason",
    [
        ("ar", 4, 0, "this is AR"),
        ("wfd", 4, 9, "with draft_depth = T there are no drafts"),
        ("wfd", 2, 9, "draft_depth=2 is at least 2, SHR-08"),
        ("wfd", 1, 9, None),
        ("wfd", 1, 0, "no draft was accepted, SHR-10"),
        ("dtv", 2, 9, None),
        ("dtv", 3, 9, None),
        ("dtv", 4, 9, "with draft_depth = T there are no drafts"),
        ("dtv", 3, 0, "no draft was accepted, SHR-10"),
        ("another", 2, 0, None),
    ],
)
def test_equality_with_ar_is_claimed_where_it_is_proved(
    decoder: str, draft_depth: int, num_accepted: int, reason: str | None
) -> None:
    shared = slots(2, recurrence_depth=4)
    found = equality_with_ar(shared, decoder=decoder, draft_depth=draft_depth, num_accepted=num_accepted)
    assert found == reason
    said = approximation(shared, decoder=decoder, draft_depth=draft_depth, num_accepted=num_accepted)
    assert said.startswith("8 KV slots instead of 16 in the recurrent block (SHR-11): ")
    assert ("equals AR under the same sharing" in said) == (reason is not None)


@pytest.mark.spec("SHR-09", "SHR-11")
def test_dtv_with_a_verification_of_its_own_slots_is_claimed_to_be_ar() -> None:
    found = equality_with_ar(SlotMap(1, (0, 0, 1, 2)), decoder="dtv", draft_depth=2, num_accepted=5)
    assert found == "no recurrence of the verification shares its slot, SHR-09"
