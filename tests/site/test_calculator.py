"""The calculator says what the cost model says, for every model and machine, and tells what it cannot answer."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from itertools import count, product
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from docs.generate.calculator import HARDWARE, record
from reference.cost import analysis, decoding, memory
from reference.cost.latency import SOFTWARE, Setting
from reference.cost.shapes import PRESETS
from reference.cost.work import PRECISIONS
from reference.schedule import default_draft_depth
from tests.commands import Run
from tests.site.conftest import Opened
from tests.site.requirements import needs_browser

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = needs_browser

Question = dict[str, str]
"""What is in each field."""

FIRST: Question = {
    "model": "ouro-2.6b",
    "recurrence-depth": "4",
    "slots": "",
    "hardware": "a6000",
    "dtype": "bf16",
    "software": "research",
    "launch": "eager",
    "context": "500",
    "batch": "1",
    "alpha": "0.9",
    "draft-depth": "1",
    "draft-length": "8",
}
"""What the page asks by itself."""

VARIED: tuple[Question, ...] = (
    {},
    {"alpha": "1", "context": "1"},
    {"alpha": "0", "draft-length": "1"},
    {"draft-depth": "T"},
    {"draft-depth": "3", "draft-length": "32", "slots": "2"},
    {"recurrence-depth": "11", "draft-depth": "2", "slots": "4", "batch": "3", "alpha": "0.37"},
    {"batch": "64", "context": "4096", "draft-depth": "2"},
    {"context": "100000000", "slots": "1", "draft-length": "128"},
    {"recurrence-depth": "1", "draft-depth": "1"},
)
"""What is asked of every model on every machine; T is the model's own depth."""

NUM_SLOW = 12
"""How many settings share one whose search for a batch and a context is repeated here."""


def grid() -> Iterator[Question]:
    """Asks everything in every type that the machine knows, of each software in turn."""
    turn = count()
    for (model, shape), (hardware, machine), changes in product(PRESETS.items(), HARDWARE.items(), VARIED):
        number = next(turn)
        known = [name for name in PRECISIONS if name in machine.peak_flops_per_second]
        software = list(SOFTWARE)[number % len(SOFTWARE)]
        own = {
            "model": model,
            "hardware": hardware,
            "recurrence-depth": str(shape.recurrence_depth),
            "draft-depth": str(default_draft_depth(shape.recurrence_depth)),
            "dtype": known[number % len(known)],
            "software": software,
            "launch": "captured" if software == "fused" or number % 2 else "eager",
        }
        question = {**FIRST, **own, **changes}
        yield {name: question["recurrence-depth"] if text == "T" else text for name, text in question.items()}


GRID = tuple(grid())


def setting_of(question: Question) -> Setting:
    software = SOFTWARE[question["software"]]
    return Setting(
        shape=PRESETS[question["model"]].with_depth(int(question["recurrence-depth"])),
        machine=HARDWARE[question["hardware"]],
        precision=PRECISIONS[question["dtype"]],
        software=replace(software, is_captured=software.is_captured or question["launch"] == "captured"),
        context=int(question["context"]),
        batch=int(question["batch"]),
        recurrence_slots=int(question["slots"]) if question["slots"] else None,
    )


def expected(question: Question, *, with_crossings: bool) -> dict[str, Any]:
    """Gives the numbers of the page as the cost model computes them."""
    setting = setting_of(question)
    depth, length, rate = int(question["draft-depth"]), int(question["draft-length"]), float(question["alpha"])
    costs = {
        "ar": decoding.ar(setting),
        "dtv": decoding.dtv(setting, draft_depth=depth, draft_length=length, acceptance_rate=rate),
        "wfd": decoding.wfd(setting, draft_depth=depth, acceptance_rate=rate),
    }
    plain = costs["ar"].seconds.total
    price = decoding.wave(setting, draft_depth=depth)
    slots = setting.recurrence_slots
    longest = setting.longest_context
    cells = memory.kv_bytes(setting.shape, setting.precision, num_positions=setting.context, recurrence_slots=slots)
    numbers: dict[str, Any] = {
        "running": price.running.seconds.total,
        "restart": price.restart.seconds.total,
        "breakEven": analysis.break_even_rate(setting, draft_depth=depth),
        "bestLength": analysis.best_draft_length(setting, draft_depth=depth, acceptance_rate=rate),
        "weightBytes": memory.weight_bytes(setting.shape, setting.precision),
        "cellBytes": setting.batch * cells,
        "longest": longest,
        "fits": setting.context <= longest,
    }
    for name, cost in costs.items():
        total = cost.seconds.total
        numbers |= {f"{name}.{part}": seconds for part, seconds in asdict(cost.seconds).items()}
        numbers |= {f"{name}.total": total, f"{name}.speedup": plain / total}
        numbers |= {f"{name}.ticks": cost.ticks, f"{name}.rows": cost.rows}
    if with_crossings:
        for search in (analysis.batch_crossover, analysis.context_crossover):
            crossing = search(setting, draft_depth=depth, acceptance_rate=rate)
            numbers["batchCrossover" if search is analysis.batch_crossover else "contextCrossover"] = crossing.value
    return numbers


def flat(answer: dict[str, Any]) -> dict[str, Any]:
    """Gives the numbers of the page's own answer under the same names."""
    numbers = {name: value for name, value in answer.items() if not isinstance(value, dict)}
    for decoder, told in answer["decoders"].items():
        numbers |= {f"{decoder}.{part}": seconds for part, seconds in told.pop("seconds").items()}
        numbers |= {f"{decoder}.{name}": value for name, value in told.items()}
    return numbers


def calculator(opened: Opened) -> "Page":
    """Goes to the calculator."""
    page = opened.page("calculator.html")
    page.wait_for_selector("#calculator[data-ready]")
    return page


def ask(page: "Page", question: Question) -> None:
    """Asks by the address, as a link does; what is left out is as at first."""
    page.evaluate(
        """address => new Promise((answered, failed) => {
          if (location.hash === address) return answered();
          addEventListener("hashchange", answered, { once: true });
          setTimeout(failed, 60_000);
          location.hash = address;
        }).then(() => undefined)""",
        f"#{urlencode({'alpha': FIRST['alpha'], **question})}",
    )


def answered(page: "Page", questions: list[Question]) -> list[dict[str, Any]]:
    """Gives what the page's script answers, all at once."""
    answers: list[dict[str, Any]] = page.evaluate(
        """questions => {
          const tables = JSON.parse(document.getElementById("calculator-tables").textContent);
          return questions.map((question) => ({ ...answers(question, tables), problems: problems(question, tables) }));
        }""",
        questions,
    )
    return answers


def text(page: "Page", name: str) -> str:
    return page.locator(f"#calculator-{name}").inner_text()


def asked(page: "Page") -> Question:
    return dict(page.eval_on_selector_all("#calculator :is(select, input)", "all => all.map(x => [x.name, x.value])"))


def test_the_script_gives_the_numbers_of_the_cost_model(opened: Opened) -> None:
    answers = answered(calculator(opened), list(GRID))
    assert {question["model"] for question in GRID} == set(PRESETS)
    assert {question["hardware"] for question in GRID} == set(HARDWARE)
    for number, (question, answer) in enumerate(zip(GRID, answers, strict=True)):
        assert answer.pop("problems") == {}, question
        want = expected(question, with_crossings=number % NUM_SLOW == 0)
        got = {name: value for name, value in flat(answer).items() if name in want}
        none = {name for name, value in want.items() if value is None}
        assert {name for name, value in got.items() if value is None} == none, question
        numbers = {name: value for name, value in want.items() if name not in none}
        assert {name: got[name] for name in numbers} == pytest.approx(numbers, rel=1e-9, abs=0), question
    assert {answer["fits"] for answer in answers} == {True, False}


COMMANDED: tuple[Question, ...] = (
    {},
    {"model": "huginn-3.5b", "slots": "4", "batch": "2"},
    {"launch": "captured"},
    {"software": "fused", "hardware": "h100"},
)
"""What is asked of the page and of the command line."""


def test_the_command_that_the_page_shows_says_the_same(opened: Opened, wfd: Run) -> None:
    page = calculator(opened)
    for changes in COMMANDED:
        ask(page, {**changes, "alpha": "0.8"})
        program, *words = text(page, "command").split()
        code, out, _ = wfd(*words, "--json")
        assert (program, code) == ("wfd", 0)
        times = [f"{1000 * told['seconds_per_token']:.2f}" for told in json.loads(out)["decoders"].values()]
        row = page.locator("#calculator-table tr:has(th:text-is('time')) td")
        assert row.all_inner_texts() == times


def test_a_change_is_answered_and_kept_in_the_address(opened: Opened) -> None:
    page = calculator(opened)
    assert asked(page) == FIRST
    before = text(page, "verdict")
    page.get_by_label("Context").fill("16384")
    page.get_by_label("Acceptance alpha").fill("0.7")
    assert text(page, "verdict") != before
    assert text(page, "verdict").startswith("WFD is slower than AR here")
    assert "context=16384" in page.url
    again = opened.page(page.url.removeprefix(opened.address))
    again.wait_for_selector("#calculator[data-ready]")
    assert text(again, "verdict") == text(page, "verdict")
    assert asked(again) == asked(page) != FIRST


def test_another_model_brings_its_own_depths(opened: Opened) -> None:
    page = calculator(opened)
    page.get_by_label("Shape").select_option("huginn-3.5b")
    assert (asked(page)["recurrence-depth"], asked(page)["draft-depth"]) == ("32", "4")
    page.get_by_label("Software").select_option("fused")
    assert asked(page)["launch"] == "captured"
    assert page.get_by_label("Calls are").is_disabled()
    page.get_by_label("Software").select_option("research")
    assert asked(page)["launch"] == "eager"


TOLD: tuple[tuple[Question, str, str], ...] = (
    ({}, "WFD takes ", "It fits: "),
    ({"context": "16384", "alpha": "0.7"}, "WFD is slower than AR here", "It fits: "),
    ({"draft-depth": "4"}, "With d = T nothing is drafted", "It fits: "),
    ({"alpha": "1", "context": "100000"}, "WFD is slower than AR here", "It does not fit: "),
)
"""How the two sentences on a setting begin."""


def test_what_is_gained_and_whether_it_fits_is_said_plainly(opened: Opened) -> None:
    page = calculator(opened)
    for changes, verdict, fit in TOLD:
        ask(page, changes)
        assert text(page, "verdict").startswith(verdict)
        assert text(page, "memory").startswith(fit)


PROBLEMS = (
    ("draft-depth", "5", "5 exceeds T = 4: a draft is read out at or before full depth."),
    ("slots", "5", "5 exceeds T = 4, the slots that there are without sharing."),
    ("slots", "1.5", "Needs a whole number of at least 1."),
    ("alpha", "1.01", "Needs a rate from 0 to 1."),
    ("alpha", "", "Needs a rate from 0 to 1."),
    ("context", "0", "Needs a whole number of at least 1."),
    ("recurrence-depth", "1000", "1000 exceeds 256, the most that this page prices."),
    ("hardware", "abacus", "Choose one of the list."),
)
"""What is wrong with a field."""


def test_what_cannot_be_is_told_beside_its_field(opened: Opened) -> None:
    page = calculator(opened)
    for field, value, problem in PROBLEMS:
        ask(page, {field: value})
        assert text(page, f"{field}-problem") == problem
        assert page.locator("#calculator [aria-invalid=true]").get_attribute("name") == field
        assert not page.locator("#calculator-rest").is_visible()


def test_what_is_mended_is_answered_again(opened: Opened) -> None:
    page = calculator(opened)
    name, machine = next(entry for entry in HARDWARE.items() if set(entry[1].peak_flops_per_second) == {"fp32"})
    page.get_by_label("Hardware").select_option(name)
    assert text(page, "dtype-problem") == f"Of {machine.name} only the peak for fp32 is known."
    assert name not in page.url
    page.get_by_label("Type of numbers").select_option("fp32")
    assert page.locator("#calculator [aria-invalid=true]").count() == 0
    assert page.locator("#calculator-rest").is_visible()
    assert name in page.url
    page.locator("#calculator-slots").press_sequentially("e")
    assert text(page, "slots-problem") == "Needs a whole number of at least 1, or nothing."


FUSED = {**FIRST, "software": "fused", "launch": "captured"}
BINDING = (
    (FIRST, "launches"),
    (FUSED, "weights"),
    ({**FUSED, "context": "1000000"}, "cells"),
    ({**FUSED, "batch": "2048", "context": "1", "dtype": "fp32"}, "arithmetic"),
    ({**FIRST, "hardware": "h200", "launch": "captured"}, "kernels"),
    ({**FIRST, "hardware": "cpu-2-cores", "dtype": "fp32"}, "weights"),
)
"""What binds a recurrence of AR."""


def test_where_the_weights_alone_do_not_fit_no_position_does(opened: Opened) -> None:
    page = calculator(opened)
    shape, precision = PRESETS["ouro-2.6b"], PRECISIONS["bf16"]
    given = [record(shape), record(precision)]
    script = "([shape, precision, memoryBytes]) => cost.longestContext(shape, precision, { memoryBytes })"
    needed = memory.weight_bytes(shape, precision)
    assert page.evaluate(script, [*given, needed - 1e6]) == 0
    assert page.evaluate(script, [*given, needed + 1e9]) > 0


def test_what_binds_a_call_is_named(opened: Opened) -> None:
    answers = answered(calculator(opened), [question for question, _ in BINDING])
    assert [answer["bounds"]["ar"]["binds"] for answer in answers] == [binds for _, binds in BINDING]


@pytest.mark.parametrize("opened", [390], indirect=True)
def test_a_phone_shows_every_example_without_scrolling_sideways(opened: Opened) -> None:
    page = calculator(opened)
    seen = set()
    for link in page.locator("#calculator .examples a").all():
        link.click()
        page.wait_for_function("link => location.hash === link.hash", arg=link.element_handle())
        assert page.locator("#calculator [aria-invalid=true]").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        seen.add(text(page, "verdict"))
    assert len(seen) == page.locator("#calculator .examples a").count() > 1


def test_it_also_works_where_the_site_is_opened_as_files(browser: "Browser", site: "Path") -> None:
    page = browser.new_page()
    page.goto(f"{(site / 'calculator.html').as_uri()}#alpha=1")
    page.wait_for_selector("#calculator[data-ready]")
    assert text(page, "verdict").startswith("WFD takes")
    assert asked(page)["alpha"] == "1"
    page.close()


def test_every_field_has_a_name_and_every_bar_a_line_in_the_table(opened: Opened) -> None:
    page = calculator(opened)
    named = page.eval_on_selector_all("#calculator :is(select, input)", "all => all.map(x => x.labels.length)")
    assert named == [1] * len(FIRST)
    bars = {title.split(":")[0] for title in page.locator("#calculator svg title").all_text_contents()}
    lines = set(page.locator("#calculator-table tbody th").all_inner_texts())
    assert len(bars) > 1
    assert bars <= lines
    assert page.locator("#calculator [aria-live=polite] #calculator-verdict").count() == 1
