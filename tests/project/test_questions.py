"""Every page of the site answers one question, and says at its end what its reader can do now."""

import re
from pathlib import Path

import pytest

from tests.project.sources import REPOSITORY

_NAVIGATION = re.search(r"^nav:\n((?: .*\n)+)", (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
assert _NAVIGATION is not None
NAMED = re.findall(r"([\w./-]+\.md)$", _NAVIGATION[1], re.MULTILINE)
"""The pages of the site in their order."""

NO_QUESTION = re.compile(
    r"spec/"  # states what must hold; its readers come by a clause's id
    r"|api/"  # lists what docstrings say; the page before them has the question
    r"|(changelog|contributing)\.md"  # files of the repository, with the names that everyone looks for
)

PAGES = [name for name in NAMED if not NO_QUESTION.match(name)]


def question_of(page: str) -> str | None:
    """Gives a page's title if it is one question."""
    titles = re.findall(r"^# (.+)$", page, re.MULTILINE)
    title = titles[0] if titles else ""
    return title if title.endswith("?") and title.count("?") == 1 else None


def says_what_one_can_do(page: str) -> bool:
    """Tells whether the last section, or the last paragraph, says what the reader can do now."""
    last_section = re.split(r"^## ", page, flags=re.MULTILINE)[-1]
    last_paragraph = page.rstrip().split("\n\n")[-1]
    return last_section.startswith("What you can do now\n") or "You can now " in last_paragraph


def text_of(name: str) -> str:
    """Gives the text of a page without what its first lines tell the builder."""
    return re.sub(r"\A---\n.*?\n---\n", "", (REPOSITORY / "docs" / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_navigation_was_read() -> None:
    assert {"index.md", "walk/time.md", "howto/decode.md", "glossary.md", "spec/README.md"} <= set(NAMED)
    written = {path.relative_to(REPOSITORY / "docs").as_posix() for path in Path(REPOSITORY / "docs").rglob("*.md")}
    assert sorted(written - set(NAMED)) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_asks_one_question_in_its_title(name: str) -> None:
    assert question_of(text_of(name))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_at_its_end_what_one_can_do_now(name: str) -> None:
    assert says_what_one_can_do(text_of(name))


def test_a_page_without_question_or_end_is_found() -> None:
    assert question_of("# Problems\n") is None
    assert question_of("# Why? And how?\n") is None
    assert question_of("# Why?\n\n# comment\n") == "Why?"
    assert says_what_one_can_do("# Why?\n\n## What you can do now\n\nRead on.\n")
    assert says_what_one_can_do("# Why?\n\nWords.\n\nSo. You can now read on.\n")
    assert not says_what_one_can_do("# Why?\n\nYou can now read on.\n\n## Limits\n\nNone.\n")
