"""The page about vectors shows vectors as they are, and names every field that can be answered."""

import json
import re

import pytest

from reference.oracle import vectors
from tests.project.sources import REPOSITORY
from tests.project.test_pages import blocks

PAGE = (REPOSITORY / "docs" / "vectors.md").read_text(encoding="utf-8")
SHOWN = [json.loads(block) for block in blocks(PAGE, frozenset({"json"}))]
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_one_vector_of_every_kind_is_shown() -> None:
    assert [shown["id"].partition("/")[0] for shown in SHOWN] == list(vectors.KINDS)


@pytest.mark.parametrize("shown", SHOWN, ids=[shown["id"] for shown in SHOWN])
def test_a_vector_is_shown_as_it_is(shown: dict[str, object]) -> None:
    file = json.loads((vectors.FOLDER / f"{shown['id']}.json").read_text(encoding="utf-8"))
    if str(shown["id"]).startswith("numerics/"):  # too long for a page: the head, and the tolerance
        file["expected"] = {"tolerance": file["expected"]["tolerance"]}
    assert shown == file, "the vectors were made again: copy this one into docs/vectors.md"


@pytest.mark.parametrize("kind", vectors.KINDS.values(), ids=list(vectors.KINDS))
def test_every_field_that_can_be_answered_is_named(kind: vectors.Kind) -> None:
    section = SECTIONS[kind.name.capitalize()]
    assert [name for name in kind.answer if f"`{name}`" not in section] == []
