"""The page on shared KV slots shows the figures that were measured, on the weights that are shipped."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from docs.generate import sharing
from reference import models
from reference.bench.sharing import budgets, weights_digest
from reference.models.protocol import LoopedModel
from reference.training.data import FLAVOURS
from tests.project.sources import REPOSITORY

DOCS = REPOSITORY / "docs"
FIGURES: Mapping[str, Any] = json.loads((DOCS / "sharing.json").read_text(encoding="utf-8"))


def test_the_page_is_up_to_date() -> None:
    for path, content in sharing.files().items():
        assert path.read_text(encoding="utf-8") == content, "run: make figures"


def test_the_figures_are_of_the_weights_that_are_shipped() -> None:
    shipped = {name: weights_digest(name) for name in models.SHIPPED}
    assert FIGURES["weights"] == shipped, "run: wfd bench sharing agreement --json docs/sharing.json"


@pytest.mark.parametrize("name", models.SHIPPED)
def test_every_flavour_is_measured_with_every_number_of_slots(name: str) -> None:
    model: LoopedModel = models.load(name)
    rows = [row for row in FIGURES["agreement"] if row["model"] == name]
    found = [(row["flavour"], row["kv_slots"], row["decoder"]) for row in rows]
    slots = budgets(model.recurrence_depth)
    assert found == [(flavour, s, decoder) for flavour in FLAVOURS for s in slots for decoder in ("ar", "dtv", "wfd")]


@pytest.mark.spec("SHR-06", "SHR-07", "SHR-11")
def test_what_is_claimed_to_equal_ar_does_in_the_figures() -> None:
    claimed = 0
    for row in FIGURES["agreement"]:
        parts = bool(row["first_divergence_same"])
        assert parts == (row["same_slots"][0] < row["same_slots"][1])
        if row["equals_ar"]:
            claimed += 1
            assert not parts, row
        if row["kv_slots"] >= 16 or (row["model"] == "tiny-ouro" and row["kv_slots"] == 4):
            assert not row["first_divergence_own"], row
    assert claimed >= len(FIGURES["agreement"]) / 3
