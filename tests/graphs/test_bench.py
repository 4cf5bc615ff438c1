"""The benchmark of the static path runs on a CPU with toy shapes; its rows say what is counted."""

import json
from pathlib import Path

import pytest
import torch

from reference import bench
from reference.bench.gpu import FULL, TOY, Bench, _part_of
from reference.errors import ParameterError
from reference.models import OuroConfig


def test_the_command_prints_rows_and_saves_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "gpu.json"
    assert bench.main(["gpu", "--device", "cpu", "--json", str(file)]) == 0
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 16
    printed = capsys.readouterr().out
    for row in rows:
        plan = row["plan"]
        assert plan["model"] in printed
        depth = TOY.models[plan["model"]].recurrence_depth
        if plan["decoder"] == "ar":
            assert row["ratio_to_ar"] == row["tick_ratio_to_ar"] == 1.0
        elif plan["decoder"] == "wfd" and plan["acceptance"] == 1.0:
            assert row["tick_ratio_to_ar"] == depth  # d = 1, steady state
            assert row["accepted"] == 1.0
        assert row["tokens_per_second"] > 0
        assert row["roofline"] > 0


def test_what_there_is_no_time_for_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["gpu", "--device", "cpu", "--seconds", "0", "--json", str(tmp_path / "gpu.json")]) == 0
    assert capsys.readouterr().out.count("out of time") == 16


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ParameterError, match="torch finds no CUDA device"):
        bench.main(["gpu", "--device", "cuda"])


def test_weights_are_counted_where_they_are_read() -> None:
    for config in FULL.models.values():
        parts = {_part_of(name) for name in config.tensor_shapes()}
        rest = {"unread"} if isinstance(config, OuroConfig) else {"prelude", "coda"}
        assert parts == {"head", "recurrent"} | rest


def test_every_group_of_rows_opens_with_ar() -> None:
    plans = Bench(TOY, torch.device("cpu")).plans()
    for first in range(0, len(plans), 4):
        assert [plan.decoder for plan in plans[first : first + 4]] == ["ar", "dtv", "wfd", "wfd"]
