"""Pictures of cells and of time: what a coda holds, what shared slots hold, how long a bar is."""

import pytest

from reference.figures import scenes, slots
from reference.figures.bars import Bar, bars
from reference.figures.canvas import Words
from reference.figures.grid import Mark, snapshots
from reference.sharing import slot_map
from tests.driving import Case, Lap, make_wfd, play
from tests.pictures import SVG, classes, label, parsed

WORDLESS = Words("t", "d")


def lap(*, recurrence_depth: int = 4, draft_depth: int = 1) -> Case:
    return Case(
        table=Lap(),
        prompt=(0,),
        recurrence_depth=recurrence_depth,
        draft_depth=draft_depth,
        draft_length=4,
        max_new_tokens=20,
    )


WAVE = play(make_wfd, lap()).events


def test_an_entry_that_a_flush_leaves_is_nobodys_until_its_position_is_read_out_again() -> None:
    left = [
        {position for position, entry in entries.items() if entry.mark is Mark.FLUSHED}
        for entries in slots.coda_entries(WAVE)
    ]
    assert left[6] == {4, 5}
    assert left[7] == {5}  # position 4 has a draft of its own again
    assert left[8] == set()


def test_every_tick_with_a_readout_is_a_row_of_the_codas_picture() -> None:
    root = parsed(slots.coda(WAVE, label, WORDLESS, last_tick=5, framed=5))
    said = list(root.itertext())
    assert [text for text in said if "drafts" in text] == [
        "1 drafts",
        "2 drafts",
        "3 drafts",
        "1 verifies, 4 drafts",
        "2 verifies, 5 drafts",
    ]
    assert classes(root, "rect")["read"] == 2  # the prompt and position 1
    assert classes(root, "rect")["written"] == 1


@pytest.mark.parametrize("recurrence_depth", [2, 4])
@pytest.mark.spec("SHR-08")
def test_a_wave_finds_what_ar_would_find_in_shared_slots_exactly_from_the_bound_on(recurrence_depth: int) -> None:
    for draft_depth in range(1, recurrence_depth):
        run = play(make_wfd, lap(recurrence_depth=recurrence_depth, draft_depth=draft_depth)).events
        shown = [scenes.Scene(one, 0, 30) for one in snapshots(run) if one.tick and not one.rejects]
        for number in range(1, recurrence_depth + 1):
            shared = slot_map(number, recurrence_depth=recurrence_depth, recurrent_layers=1)
            assert shared.by_recurrence is not None
            finds = [one.is_ars for scene in shown for one in slots.found(scene, shared.by_recurrence)[2]]
            assert all(finds) == (draft_depth >= shared.least_draft_depth), (draft_depth, number)


def test_a_slot_holds_the_deepest_recurrence_that_uses_it() -> None:
    assert slots.held(0, (0, 1, 0, 1)) == (None, None)
    assert slots.held(3, (0, 1, 0, 1)) == (2, 1)
    assert slots.held(4, (0, 1, 2, 0)) == (3, 1, 2)


def test_shared_slots_are_framed_by_what_ar_would_find() -> None:
    full = scenes.scene(next(one for one in snapshots(WAVE) if one.tick == 4))
    root = parsed(slots.shared([(full, "a wave")], label, WORDLESS, slots=(0, 1, 0, 1)))
    num_explained = 1
    assert classes(root, "rect")["read"] == 3 + num_explained
    assert classes(root, "rect")["other"] == 1 + num_explained
    assert classes(root, "rect")["written"] == 1 + num_explained


def test_bars_are_as_long_as_what_they_stand_for() -> None:
    calls = {
        "a": [Bar("1 row", {"weights": 8.0, "waiting": 2.0})],
        "b": [Bar("2 rows", {"weights": 8.0, "waiting": 0})],
    }
    root = parsed(bars(calls, WORDLESS, unit="ms", every=5.0))
    boxes = [(one.get("class"), float(one.get("width", ""))) for one in root.iter(SVG + "rect") if one.get("y")]
    assert boxes[:3] == [("kind0", 383.0), ("kind1", 95.0), ("kind0", 383.0)]
    said = list(root.itertext())
    assert {"a", "b", "1 row", "2 rows", "10.0", "8.0", "2.0", "weights", "waiting", "ms", "5"} <= set(said)
