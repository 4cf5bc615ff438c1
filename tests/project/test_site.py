"""The site shows the repository's own pages; docs/hooks.py turns their links."""

import ast
import re
import runpy
import sys
from types import SimpleNamespace

import pytest

from tests.project.sources import REPOSITORY, lies_in, modules
from tests.project.test_clauses import STATED

HOOKS = runpy.run_path(str(REPOSITORY / "docs" / "hooks.py"))

NOT_IN_THE_API = ("reference.bench", "reference.cli", "reference.training")
"""Programs: what they do is described by their `--help`."""

PUBLISHED = {
    "CHANGELOG.md": "changelog.md",
    "spec/00-notation.md": "spec/00-notation.md",
    "spec/50-wfd.md": "spec/50-wfd.md",
    "docs/index.md": "index.md",
    "docs/figures/wave.svg": "figures/wave.svg",
}


def test_the_pages_of_the_repository_are_published() -> None:
    published = HOOKS["site_paths"](REPOSITORY)
    assert published["CHANGELOG.md"] == "changelog.md"
    assert published["docs/index.md"] == "index.md"
    assert published["spec/00-notation.md"] == "spec/00-notation.md"


def test_every_module_that_defines_something_is_in_the_api() -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted((REPOSITORY / "docs").glob("api/*.md"))]
    described = [name for page in pages for name in re.findall(r"^::: (\S+)$", page, re.MULTILINE)]
    trees = modules(REPOSITORY / "reference")
    owed = {
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AnnAssign) for node in tree.body)
        and not any(lies_in(name, program) for program in NOT_IN_THE_API)
    }
    assert sorted(owed - set(described)) == []
    assert sorted(set(described) - set(trees)) == []


@pytest.mark.parametrize(
    "source,written,shown",
    [
        ("docs/index.md", "[a](../spec/50-wfd.md#wfd-07)", "[a](spec/50-wfd.md#wfd-07)"),
        ("docs/index.md", "[`a`](../CHANGELOG.md)", "[`a`](changelog.md)"),
        ("docs/index.md", "![a](figures/wave.svg)", "![a](figures/wave.svg)"),
        ("spec/50-wfd.md", "[a](00-notation.md)", "[a](00-notation.md)"),
        ("spec/50-wfd.md", "[a](../docs/figures/wave.svg)", "[a](../figures/wave.svg)"),
        ("CHANGELOG.md", "[a](docs/index.md) [b](spec/50-wfd.md)", "[a](index.md) [b](spec/50-wfd.md)"),
        ("CHANGELOG.md", "see [`wfd.py`](reference/wfd.py).", "see `wfd.py`."),
        ("CHANGELOG.md", "[a](https://example.org) [b](#added)", "[a](https://example.org) [b](#added)"),
        ("CHANGELOG.md", "`h[i](r)`", "`h[i](r)`"),
        ("CHANGELOG.md", "```\nh[i](r)\n```\n[a](docs/index.md)", "```\nh[i](r)\n```\n[a](index.md)"),
    ],
)
def test_a_link_leads_to_its_place_on_the_site(source: str, written: str, shown: str) -> None:
    assert HOOKS["with_site_links"](written, source, PUBLISHED) == shown


def test_every_clause_has_a_place_on_the_site() -> None:
    places = HOOKS["clause_places"](REPOSITORY)
    assert set(places) == set(STATED)
    assert places["WFD-01"] == "spec/60-wfd.html#wfd-01"


@pytest.mark.parametrize(
    "written,shown",
    [
        ("<p>as WFD-01 says</p>", '<p>as <a href="60-wfd.html#wfd-01">WFD-01</a> says</p>'),
        ("WFD-77 and UTF-16", "WFD-77 and UTF-16"),
        ('<p><strong id="wfd-01">WFD-01</strong> One.</p>', '<p><strong id="wfd-01">WFD-01</strong> One.</p>'),
        ("<pre><code>WFD-01 <em>WFD-01</em></code></pre>", "<pre><code>WFD-01 <em>WFD-01</em></code></pre>"),
        ('<a href="x" title="WFD-01">WFD-01</a>', '<a href="x" title="WFD-01">WFD-01</a>'),
    ],
)
def test_a_clause_that_is_mentioned_is_linked(written: str, shown: str) -> None:
    places = {"WFD-01": "spec/60-wfd.html#wfd-01"}
    assert HOOKS["with_clause_links"](written, "spec/50-dtv.html", places) == shown


def test_scripts_learn_of_every_clause_where_it_is_and_how_it_opens() -> None:
    index = HOOKS["clause_index"](REPOSITORY)
    assert set(index) == set(STATED)
    assert index["WFD-07"]["place"] == "spec/60-wfd.html#wfd-07"
    assert index["WFD-07"]["opening"] == "Spacing"
    assert index["SMP-05"]["opening"] == "The prompt is not empty"


def test_what_a_command_says_of_itself_is_put_where_a_page_asks_for_it() -> None:
    before = sys.path.copy()
    shown = HOOKS["with_help"]("a\n<!-- wfd check trace --help -->\nb", REPOSITORY)
    sys.path[:] = before
    assert shown.startswith("a\n```text\nusage: wfd check trace ")
    assert shown.endswith("\n```\nb")
    assert HOOKS["with_help"]("<!-- another remark -->", REPOSITORY) == "<!-- another remark -->"


def test_a_page_that_is_too_heavy_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    page = SimpleNamespace(url="api/models.html")
    HOOKS["on_post_page"]("x" * HOOKS["HEAVIEST_PAGE"], page=page, config=None)
    assert caplog.messages == []
    HOOKS["on_post_page"]("x" * HOOKS["HEAVIEST_PAGE"] + "y", page=page, config=None)
    assert caplog.messages == ["api/models.html has 1000001 bytes, more than 1000000: split it"]


def test_the_page_on_the_command_line_shows_every_command() -> None:
    page = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
    named = re.findall(r"^    (\w+) +\S", HOOKS["with_help"]("<!-- wfd --help -->", REPOSITORY), re.MULTILINE)
    assert {"compare", "trace"} <= set(named)
    for command in named:
        assert f"<!-- wfd {command} " in page, f"docs/cli.md does not show `wfd {command}`"
    for command in ("bench sharing", "bench gpu"):  # `wfd bench --help` names none
        assert f"## wfd {command}\n\n<!-- wfd {command} --help -->" in page
        assert f"usage: wfd {command} " in HOOKS["with_help"](f"<!-- wfd {command} --help -->", REPOSITORY)
