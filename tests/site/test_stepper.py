"""The stepper plays the published traces and judges the reader's own."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from docs.generate import DOCS
from docs.generate.traces import SCENES
from reference import oracle, trace
from reference.counts import count
from reference.schedule import Event, Flush
from tests.driving import make_wfd, play
from tests.oracle.test_traces import LAP
from tests.site.conftest import Opened
from tests.site.requirements import needs_browser

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = needs_browser
FILE = json.loads((DOCS / "assets" / "traces" / SCENES[0].file).read_text(encoding="utf-8"))
WAVE = list(play(make_wfd, LAP).events)
NAMES = ("ar", "dtv", "wfd")


def panel(page: "Page", decoder: str) -> "Locator":
    return page.locator(f"article[data-decoder={decoder}]")


def clock(page: "Page") -> str:
    return page.locator("#stepper-clock").inner_text()


def number(page: "Page", decoder: str, name: str) -> float:
    return float(panel(page, decoder).locator(f"dl div:has(dt:text-is('{name}')) dd").inner_text())


def drop(page: "Page", text: str, name: str = "mine.jsonl") -> None:
    """Drops a file on the stepper."""
    file = page.evaluate_handle(
        "([text, name]) => { const d = new DataTransfer(); d.items.add(new File([text], name)); return d; }",
        [text, name],
    )
    page.dispatch_event("#stepper", "drop", {"dataTransfer": file})
    page.wait_for_selector("#stepper-verdict:not([hidden])")


def verdict(page: "Page") -> str:
    return page.locator("#stepper-verdict").inner_text()


def shown_runs() -> dict[str, list[Event]]:
    """Gives the runs that the stepper shows when it opens: the first text, with the smallest d and gamma."""
    runs = [trace.from_jsonl("\n".join(map(json.dumps, run))) for run in FILE["runs"]]
    return {
        name: next(run for run in runs if getattr(run[0], "decoder", None) == name) for name in ("ar", "dtv", "wfd")
    }


def test_three_decoders_play_one_text(opened: Opened) -> None:
    page = opened.stepper()
    assert page.locator("#stepper article").count() == 3
    assert clock(page).startswith("tick 0 of ")
    page.click("#stepper-last")
    texts = [panel(page, name).locator(".stepper-tokens").inner_text() for name in NAMES]
    assert texts[0] == texts[1] == texts[2] != ""


def test_the_numbers_at_the_end_are_those_that_the_library_counts(opened: Opened) -> None:
    page = opened.stepper()
    page.click("#stepper-last")
    for name, events in shown_runs().items():
        counts = count(events)
        shown = {key: number(page, name, key) for key in ("ticks", "tokens", "accepted", "rejected", "flushed")}
        assert shown == {
            "ticks": counts.ticks,
            "tokens": counts.committed,
            "accepted": counts.accepted,
            "rejected": counts.rejected,
            "flushed": counts.flushed,
        }


def test_it_steps_on_and_back_and_every_step_names_its_clause(opened: Opened) -> None:
    page = opened.stepper()
    page.click("#stepper-step")
    page.click("#stepper-step")
    assert clock(page).startswith("tick 2 of ")
    after_two = page.locator(".stepper-panels").inner_html()
    advance = panel(page, "wfd").locator("li.advance a")
    assert advance.inner_text() == "WFD-03"
    page.click("#stepper-step")
    assert page.locator(".stepper-panels").inner_html() != after_two
    page.click("#stepper-back")
    assert page.locator(".stepper-panels").inner_html() == after_two
    advance.click()
    page.wait_for_selector("#wfd-03")
    assert page.url.endswith("spec/60-wfd.html#wfd-03")


def test_a_flush_is_shown_where_it_happens(opened: Opened) -> None:
    flush = next(event for event in shown_runs()["wfd"] if isinstance(event, Flush))
    page = opened.stepper()
    page.locator("#stepper-tick").fill(str(flush.tick))
    wave = panel(page, "wfd")
    assert "flushes" in (wave.get_attribute("class") or "")
    assert wave.locator("li.flush a").inner_text() == "SMP-13"
    assert wave.locator("svg path.flushed").count() >= len(flush.positions)
    assert " flushed" in page.locator("#stepper-spoken").inner_text()


def test_it_plays_by_itself_until_the_end(opened: Opened) -> None:
    page = opened.page("glossary.html")
    page.clock.install()
    page.goto(opened.address + "stepper.html")
    page.wait_for_selector("#stepper[data-ready]")
    page.click("#stepper-play")
    page.clock.run_for(3000)
    assert not clock(page).startswith("tick 0 of ")
    page.clock.run_for(1_000_000)
    _, at, _, end = clock(page).split()
    assert at == end
    assert "Play" in page.locator("#stepper-play").inner_text()


def test_the_keyboard_is_enough(opened: Opened) -> None:
    page = opened.stepper()
    page.focus("#stepper")
    for key, tick in (("ArrowRight", "1"), ("ArrowRight", "2"), ("ArrowLeft", "1"), ("Home", "0")):
        page.keyboard.press(key)
        assert clock(page).split()[1] == tick
    page.keyboard.press("End")
    assert len(set(clock(page).split()[1::2])) == 1
    page.keyboard.press(" ")
    assert "Pause" in page.locator("#stepper-play").inner_text()
    page.keyboard.press(" ")
    assert "Play" in page.locator("#stepper-play").inner_text()
    seen = []
    for _ in range(13):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
    controls = ("text", "recurrences", "depth", "length", "file", "play", "tick")
    assert {f"stepper-{name}" for name in controls} <= set(seen)


def test_text_depth_and_length_can_be_chosen(opened: Opened) -> None:
    page = opened.stepper()
    page.select_option("#stepper-depth", index=1)
    page.select_option("#stepper-length", index=1)
    depth, length = SCENES[0].draft_depths[1], SCENES[0].draft_lengths[1]
    assert f"d = {depth}, \N{GREEK SMALL LETTER GAMMA} = {length}" in panel(page, "dtv").locator("h3").inner_text()
    page.select_option("#stepper-text", index=len(SCENES) - 1)
    page.wait_for_function("document.querySelectorAll('article svg rect').length > 200")
    assert page.locator("#stepper article").count() == 3


def test_the_number_of_recurrences_can_be_chosen(opened: Opened) -> None:
    page = opened.stepper()
    scene = SCENES[0]
    chosen = page.locator("#stepper-recurrences")
    assert chosen.input_value() == str(scene.recurrence_depths[0])
    rows = panel(page, "ar").locator("svg rect").count()
    for depth in scene.recurrence_depths[1:]:
        chosen.select_option(str(depth))
        page.wait_for_function(
            f"document.querySelector('article[data-decoder=ar] h3').innerText.includes('T = {depth}')"
        )
        assert panel(page, "ar").locator("svg rect").count() < rows
        drafted = page.locator("#stepper-depth option").all_inner_texts()
        assert drafted == [str(d) for d in sorted(scene.draft_depths) if d < depth]
        assert page.locator("#stepper article").count() == 3


def test_a_right_trace_of_ones_own_is_called_exact_and_shown(opened: Opened) -> None:
    page = opened.stepper()
    drop(page, trace.to_jsonl(WAVE))
    assert verdict(page).startswith(f"exact mine.jsonl: all {len(WAVE)} events")
    assert page.locator("#stepper article").count() == 1
    page.click("#stepper-examples")
    page.wait_for_selector("#stepper-verdict", state="hidden")
    assert page.locator("#stepper article").count() == 3


def test_a_wrong_trace_is_stopped_at_the_event_that_the_oracle_names(opened: Opened) -> None:
    place = next(k for k, event in enumerate(WAVE) if isinstance(event, Flush))
    wrong: Sequence[Event] = [*WAVE[:place], *WAVE[place + 1 :]]
    objection = oracle.check_trace(wrong).objection
    assert objection is not None
    page = opened.stepper()
    drop(page, trace.to_jsonl(wrong))
    assert verdict(page).startswith(f"wrong mine.jsonl: event {objection.index}, line {objection.index + 1}:")
    link = page.locator("#stepper-verdict a")
    assert link.inner_text() == objection.clause
    assert (link.get_attribute("href") or "").endswith(f"#{objection.clause.lower()}")
    assert len(set(clock(page).split()[1::2])) == 1


def test_what_is_no_trace_is_said_to_be_none(opened: Opened) -> None:
    page = opened.stepper()
    drop(page, trace.to_jsonl(WAVE[:1]) + '{"event": "comit"}', name="<b>x</b>")
    assert verdict(page).startswith('wrong <b>x</b>: line 2 is not an event of trace format 1 or 2: no event "comit"')
    assert page.locator("#stepper article").count() == 0


@pytest.mark.parametrize("opened", [390], indirect=True)
def test_a_phone_shows_it_without_scrolling_sideways(opened: Opened) -> None:
    page = opened.stepper()
    for index in range(len(SCENES)):
        page.select_option("#stepper-text", index=index)
        page.click("#stepper-last")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    drop(page, trace.to_jsonl(WAVE))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
