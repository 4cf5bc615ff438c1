"""The built site: links lead somewhere, nothing is fetched from elsewhere, search finds, phones can read."""

import gzip
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.project.sources import REPOSITORY
from tests.site.conftest import Opened
from tests.site.requirements import needs_browser

pytestmark = needs_browser

MAIN_PAGES = (
    "index.html",
    "walkthrough.html",
    "walk/time.html",
    "walk/drafts.html",
    "walk/wavefront.html",
    "walk/counting.html",
    "walk/slots.html",
    "walk/sharing.html",
    "walk/lossless.html",
    "howto/decode.html",
    "howto/capture-graphs.html",
    "howto/add-a-model.html",
    "architecture.html",
    "glossary.html",
    "cli.html",
    "oracle.html",
    "spec/60-wfd.html",
)
HEAVIEST = 250_000
"""Most bytes of a page with its own figures, scripts and styles, before compression. The API shows its source and is
heavier; docs/hooks.py watches it."""
OF_THE_THEME = ("assets/javascripts/", "assets/stylesheets/", "assets/images/")
"""What every page shares, and a browser loads once."""


class Links(HTMLParser):
    """What a page links to, what it fetches, and the places in it that can be linked to."""

    def __init__(self, page: Path) -> None:
        """Reads a page."""
        super().__init__()
        self.targets: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Takes a tag."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.targets.append(values["href"])
        if tag in {"script", "img", "source"} and "src" in values:
            self.fetched.append(values["src"])
        if tag == "link" and values.get("rel") in {"stylesheet", "icon"}:
            self.fetched.append(values["href"])


def dead_links(site: Path) -> list[str]:
    """Names links to files or places that do not exist, and files that are missing or come from elsewhere."""
    pages = {path: Links(path) for path in site.rglob("*.html") if path.name != "404.html"}
    dead = []
    for page, links in pages.items():
        here = page.relative_to(site)
        for target in links.targets + links.fetched:
            if re.match(r"[a-z]+:", target):
                if target in links.fetched and not target.startswith("data:"):
                    dead.append(f"{here} fetches {target}")
                continue
            path, anchor = urldefrag(unquote(target))
            file = (page.parent / path).resolve() if path else page
            if not file.is_file():
                dead.append(f"{here} -> {target}")
            elif file in pages and anchor not in pages[file].places:
                dead.append(f"{here} -> {target}, where there is no such place")
    return dead


def test_the_foot_of_a_page_names_the_version_of_the_package(opened: Opened) -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    foot = opened.page("index.html").locator(".md-copyright").inner_text()
    assert f"{project['name']} {project['version']}" in foot


def test_no_link_is_dead_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert dead_links(site) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(
        '<p id="here"><a href="#here">a</a><a href="#gone">b</a><a href="two.html">c</a>'
        '<a href="https://example.org">d</a><script src="https://example.org/x.js"></script>'
    )
    assert dead_links(tmp_path) == [
        "one.html -> #gone, where there is no such place",
        "one.html -> two.html",
        "one.html fetches https://example.org/x.js",
    ]


def weight(page: Path, site: Path) -> int:
    """Gives the bytes of a page and of what it alone makes a browser fetch."""
    files = {(page.parent / unquote(target)).resolve() for target in Links(page).fetched if ":" not in target}
    own = [file for file in files if not file.relative_to(site.resolve()).as_posix().startswith(OF_THE_THEME)]
    return page.stat().st_size + sum(file.stat().st_size for file in own)


def test_pages_are_light(site: Path) -> None:
    weights = {page: weight(page, site) for page in site.rglob("*.html") if page.name != "404.html"}
    assert {page.name: bytes_ for page, bytes_ in weights.items() if bytes_ > HEAVIEST} == {}
    index, figure = site / "index.html", site / "figures" / "wfd.svg"
    assert weights[index] > index.stat().st_size + figure.stat().st_size


def test_what_all_pages_share_is_light_as_it_is_sent(site: Path) -> None:
    shared = {(site / target).resolve() for target in Links(site / "glossary.html").fetched}
    assert len(shared) > 1
    assert sum(len(gzip.compress(file.read_bytes())) for file in shared) < HEAVIEST


@pytest.mark.parametrize("opened", [390], indirect=True)
def test_no_page_scrolls_sideways_on_a_phone(opened: Opened) -> None:
    page = opened.page("index.html")
    wide = []
    for name in MAIN_PAGES:
        page.goto(opened.address + name)
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(name)
    assert wide == []


def test_search_finds_a_word_of_the_walk(opened: Opened) -> None:
    page = opened.page("index.html")
    page.click("[data-md-component=search-query]")
    page.keyboard.type("dilemma")
    page.wait_for_selector(".md-search-result__item a[href*='drafts.html']")
