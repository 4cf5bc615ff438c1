"""Pictures show what happened: the data behind them, the terminal's lines, and the SVG."""

import pytest

from reference.figures import canvas, scenes, svg, terminal
from reference.figures.grid import Cell, Mark, Snapshot, heads, short, snapshots
from reference.schedule import Event, Flush
from tests.driving import Case, Lap, make_dtv, make_wfd, play
from tests.pictures import classes, label, parsed


def lap(*, recurrence_depth: int = 4, draft_depth: int = 1, prompt: tuple[int, ...] = (0,)) -> Case:
    return Case(
        table=Lap(),
        prompt=prompt,
        recurrence_depth=recurrence_depth,
        draft_depth=draft_depth,
        draft_length=4,
        max_new_tokens=20,
    )


WAVE = play(make_wfd, lap()).events


def after(events: tuple[Event, ...], tick: int) -> Snapshot:
    return next(one for one in snapshots(events) if one.tick == tick)


def marks(cells: tuple[Cell, ...]) -> list[Mark]:
    return [cell.mark for cell in cells]


def test_cells_are_those_of_the_present_incarnation() -> None:
    column = after(WAVE, 5).between(3, 4)[0]
    assert (column.depth, column.mark) == (3, Mark.VERIFYING)
    assert marks(column.cells(4)) == [Mark.VERIFYING] * 3 + [Mark.EMPTY]
    assert [cell.is_new for cell in column.cells(4)] == [False, False, True, False]


def test_a_flushed_lane_shows_its_cells_once() -> None:
    rejected = after(WAVE, 6).between(4, 7)
    assert [marks(column.cells(4)).count(Mark.FLUSHED) for column in rejected] == [3, 2, 1]
    assert [column.token for column in rejected] == [4, None, None]
    assert marks(after(WAVE, 7).between(4, 5)[0].cells(4)) == [Mark.VERIFYING] + [Mark.EMPTY] * 3


def test_the_last_token_has_no_cells() -> None:
    last = list(snapshots(WAVE))[-1]
    assert (last.columns[-1].mark, last.columns[-1].depth) == (Mark.COMMITTED, 0)
    assert last.first_unfinished == last.columns[-1].position + 1


def test_a_picture_needs_a_whole_trace() -> None:
    with pytest.raises(ValueError, match="begins with a start event"):
        list(snapshots(WAVE[1:]))
    with pytest.raises(ValueError, match="not with None"):
        list(snapshots(()))


def test_a_trace_that_breaks_off_is_drawn_as_far_as_it_goes() -> None:
    cut = next(index for index, event in enumerate(WAVE) if isinstance(event, Flush))
    assert list(snapshots(WAVE[:cut]))[:-1] == list(snapshots(WAVE))[:6]


@pytest.mark.parametrize(
    "text,width,shown",
    [
        (" cat", 8, "cat"),
        (" gardener", 5, "gard…"),
        ("\n", 4, "↵"),
        ("\t", 4, "⇥"),
        ("  ", 4, "␣"),
        ("", 4, ""),
        ("a\x1b[31m", 9, "a�[31m"),
        (" a b ", 4, "a b"),
    ],
)
def test_tokens_are_shown_in_little_space(text: str, width: int, shown: str) -> None:
    assert short(text, width) == shown


def test_key_scenes_are_the_full_wave_the_rejection_and_the_fresh_start() -> None:
    shown = scenes.key_scenes(WAVE)
    assert [scene.snapshot.tick for scene in shown] == [4, 6, 7]
    assert [(scene.first, scene.width, len(scene.columns)) for scene in shown] == [(0, 7, 7), (2, 7, 7), (2, 7, 7)]


def test_a_run_without_rejections_has_one_scene() -> None:
    assert [scene.snapshot.tick for scene in scenes.key_scenes(play(make_wfd, lap(draft_depth=4)).events)] == [1]


def test_the_opening_ends_soon_after_the_first_rejection() -> None:
    assert [one.tick for one in scenes.opening(WAVE, most_ticks=24)] == list(range(10))
    assert [one.tick for one in scenes.opening(WAVE, most_ticks=3)] == [0, 1, 2, 3]


HISTORY = """\
      1    2    3    4    5    6    7
tick  cat  sat  on   ↵    <ma… <|i… gar…
   0  ·    ·    ·    ·    ·    ·    ·      = cat
   1  ◆1   ·    ·    ·    ·    ·    ·
   2  ◆2   ●1   ·    ·    ·    ·    ·
   3  ◆3   ●2   ●1   ·    ·    ·    ·
   4  ■4   ◆3   ●2   ●1   ·    ·    ·      ✓ sat
   5  ·    ■4   ◆3   ●2   ●1   ·    ·      ✓ on
   6  ·    ·    ■4   ✕3   ✕2   ✕1   ·      ✗ the → ↵
   7  ·    ·    ·    ◆1   ·    ·    ·
   8  ·    ·    ·    ◆2   ●1   ·    ·
   9  ·    ·    ·    ◆3   ●2   ●1   ·"""

STATES = """\
tick 4: 4 rows            tick 6: 3 flushed         tick 7: 1 row
  0  1  2  3  4  5  6       2  3  4  5  6  7  8       2  3  4  5  6  7  8
1 ▪  ▪  ◇  ○  ●  ·  ·     1 ▪  ▪  ✕  ✕  ✕  ·  ·     1 ▪  ▪  ◆  ·  ·  ·  ·
2 ▪  ▪  ◇  ●  ·  ·  ·     2 ▪  ▪  ✕  ✕  ·  ·  ·     2 ▪  ▪  ·  ·  ·  ·  ·
3 ▪  ▪  ◆  ·  ·  ·  ·     3 ▪  ▪  ✕  ·  ·  ·  ·     3 ▪  ▪  ·  ·  ·  ·  ·
4 ▪  ■  ·  ·  ·  ·  ·     4 ▪  ■  ·  ·  ·  ·  ·     4 ▪  ▪  ·  ·  ·  ·  ·"""


def test_the_terminal_shows_ticks_one_below_the_other() -> None:
    drawn = terminal.history(scenes.opening(WAVE, most_ticks=24), label, width=62, glyphs=terminal.UNICODE)
    assert drawn.plain == HISTORY


def test_the_terminal_shows_moments_side_by_side() -> None:
    drawn = terminal.states(scenes.key_scenes(WAVE), width=80, glyphs=terminal.UNICODE)
    assert drawn.plain == STATES


def test_a_narrow_terminal_shows_fewer_moments_and_ticks() -> None:
    states = terminal.states(scenes.key_scenes(WAVE), width=50, glyphs=terminal.UNICODE)
    assert states.plain.splitlines()[0] == "tick 4: 4 rows            tick 6: 3 flushed"
    history = terminal.history(scenes.opening(WAVE, most_ticks=24), label, width=40, glyphs=terminal.UNICODE)
    assert history.plain.splitlines()[1:4] == [
        "tick  cat sat on  the",
        "   0  ·   ·   ·   ·     = cat",
        "   1  ◆1  ·   ·   ·",
    ]


def test_a_terminal_without_unicode_shows_the_same_in_letters() -> None:
    states = terminal.states(scenes.key_scenes(WAVE)[1:2], width=80, glyphs=terminal.ASCII)
    assert states.plain.splitlines()[2] == "1 #  #  x  x  x  .  ."
    assert terminal.legend(terminal.ASCII).plain == "D drafting   V verifying   # committed   x flushed"


SHARED = """\
tick 4: 4 rows
   0  1  2  3  4  5  6
1a ~  ~  ~  ○  ●  ·  ·
2b ~  ~  ◇  ●  ·  ·  ·
3a ▪  ▪  ◆  ·  ·  ·  ·
4b ▪  ■  ·  ·  ·  ·  ·"""


@pytest.mark.spec("SHR-05")
def test_recurrences_that_share_a_slot_have_one_letter_and_all_but_the_last_written_are_overwritten() -> None:
    states = terminal.states(scenes.key_scenes(WAVE)[:1], width=80, glyphs=terminal.UNICODE, slots=(0, 1, 0, 1))
    assert states.plain == SHARED
    legend = terminal.legend(terminal.ASCII, has_shared_slots=True).plain
    assert legend.splitlines()[1] == "~ overwritten: recurrences with the same letter share a KV slot"


def test_slots_beyond_the_alphabet_have_two_letters() -> None:
    states = terminal.states(scenes.key_scenes(WAVE)[:1], width=80, glyphs=terminal.UNICODE, slots=(0, 25, 26, 28))
    assert [line.split()[0] for line in states.plain.splitlines()[2:]] == ["1a", "2z", "3aa", "4ac"]


def test_every_mark_has_a_glyph_of_its_own() -> None:
    for glyphs in (terminal.UNICODE, terminal.ASCII):
        assert len(set(glyphs.new.values())) == len(Mark)
        assert set(glyphs.new) == set(glyphs.old) == set(terminal.STYLES) == set(Mark)


@pytest.mark.parametrize("encoding,glyphs", [("utf-8", "UNICODE"), ("ascii", "ASCII"), ("no such", "ASCII")])
def test_glyphs_fit_the_encoding(encoding: str, glyphs: str) -> None:
    assert terminal.glyphs_for(encoding) is getattr(terminal, glyphs)


def test_a_tick_of_several_commits_names_them_all() -> None:
    events = play(make_dtv, lap()).events
    line = terminal.history([after(events, 0), after(events, 8)], label, width=90, glyphs=terminal.UNICODE)
    assert line.plain.splitlines()[-1].endswith("✓ sat ✓ on ✗ the → ↵")


def test_the_end_of_a_run_is_shown() -> None:
    shown = tuple(snapshots(WAVE))
    drawn = terminal.history((shown[0], shown[-1]), label, width=200, glyphs=terminal.UNICODE)
    assert drawn.plain.endswith("[length]")


def test_a_lane_dropped_for_good_stays_above_the_history() -> None:
    cut = tuple(snapshots(WAVE))[:7]
    assert [(column.position, column.token, column.dropped is None) for column in heads(cut)] == [
        (1, 1, True),
        (2, 2, True),
        (3, 3, True),
        (4, 4, False),
        (5, None, False),
        (6, None, False),
    ]
    assert terminal.history(cut, label, width=90, glyphs=terminal.UNICODE).plain.splitlines()[1] == (
        "tick  cat sat on  ↵   cat sat"
    )


def test_a_state_is_drawn_cell_by_cell() -> None:
    root = parsed(svg.states(scenes.key_scenes(WAVE)[1:2], label, canvas.Words("t", "d")))
    boxes = classes(root, "rect")
    assert boxes["flushed"] == 6 + 2 + 1  # cells, tokens, legend
    assert boxes["committed"] == 1 + 2 + 1
    assert boxes["committed old"] == 7
    said = " ".join(root.itertext())
    assert "“the” rejected, “↵” committed, 3 lanes flushed" in said
    assert "Tick 6, 4 rows" in said


def test_one_of_anything_is_named_in_the_singular() -> None:
    case = lap(recurrence_depth=6, draft_depth=4)
    said = " ".join(parsed(svg.states(scenes.key_scenes(play(make_wfd, case).events), label, WORDLESS)).itertext())
    assert "1 lane flushed" in said
    assert ", 1 row" in said


WORDLESS = canvas.Words("t", "d")


def test_a_figure_says_how_a_run_ends() -> None:
    shown = tuple(snapshots(WAVE))
    assert "[length]" in svg.history(shown, label, WORDLESS)
    assert "the run ends: length" in svg.states([scenes.scene(shown[-1])], label, WORDLESS)


def test_equal_runs_give_equal_bytes() -> None:
    again = play(make_wfd, lap()).events
    assert svg.history(tuple(snapshots(WAVE)), label, WORDLESS) == svg.history(tuple(snapshots(again)), label, WORDLESS)


def test_a_figure_fetches_nothing_and_knows_light_and_dark() -> None:
    document = svg.states(scenes.key_scenes(WAVE), label, WORDLESS)
    assert "prefers-color-scheme: dark" in document
    assert document.count("http") == 1  # the name space
    assert "url(" not in document
    assert parsed(document).get("role") == "img"


def test_the_first_column_stands_for_the_prompt() -> None:
    assert ">prompt</text>" in svg.states(scenes.key_scenes(WAVE)[:1], label, WORDLESS)
