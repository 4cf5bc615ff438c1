"""The files of vectors: what the generator makes, what their schemas and the specification say, and no more."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reference.errors import ParameterError
from reference.oracle import vectors
from reference.oracle.vectors import form, kinds, layout
from reference.oracle.vectors.form import FLAGS, FOLDER, Vector
from reference.oracle.vectors.kind import Kind
from spec.clauses import clauses, read
from tests.oracle.test_schema import fits

VECTORS = vectors.load()
STATED = clauses(read("spec/*.md"))

any_kind = pytest.mark.parametrize("kind", vectors.KINDS.values(), ids=list(vectors.KINDS))
any_vector = pytest.mark.parametrize("vector", VECTORS, ids=[vector.id for vector in VECTORS])


def differences(one: object, other: object, tolerance: float, place: str = "") -> list[str]:
    """Names the places where two JSON values are not the same, numbers up to a distance."""
    match one, other:
        case dict(), dict():
            return [f"{place}: {list(one)} and {list(other)}"] * (list(one) != list(other)) + [
                found
                for name in [name for name in one if name in other]
                for found in differences(one[name], other[name], tolerance, f"{place}.{name}")
            ]
        case list(), list():
            return [f"{place}: {len(one)} and {len(other)} entries"] * (len(one) != len(other)) + [
                found
                for number, (item, its) in enumerate(zip(one, other, strict=False))
                for found in differences(item, its, tolerance, f"{place}[{number}]")
            ]
        case float(), float():
            return [] if abs(one - other) <= tolerance else [f"{place}: {one} and {other}"]
        case _:
            return [] if one == other and type(one) is type(other) else [f"{place}: {one!r} and {other!r}"]


@any_kind
def test_the_generator_makes_the_files(kind: Kind) -> None:
    made = list(kind.make())
    again = "run: make vectors"
    assert [vector.id for vector in made] == [vector.id for vector in vectors.load(kind.name)], again
    for vector in made:
        text = vector.path.read_text(encoding="utf-8")
        if kind.tolerance:
            assert differences(json.loads(vector.written()), json.loads(text), kind.tolerance) == [], again
        else:
            assert vector.written() == text, again


def test_there_is_no_file_that_nobody_makes() -> None:
    loaded = {name: vectors.load(name) for name in vectors.KINDS}
    made = {str(path): text for path, text in kinds.files(loaded)}
    found = {path.relative_to(FOLDER).as_posix(): path for path in FOLDER.rglob("*") if path.is_file()}
    assert set(found) == set(made)
    for name, text in made.items():
        assert found[name].read_text(encoding="utf-8") == text, f"{name}: run: make vectors"


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 1_500_000


@any_vector
def test_a_vector_fits_its_schema(vector: Vector) -> None:
    schema = json.loads((FOLDER / f"{vector.kind}.schema.json").read_text(encoding="utf-8"))
    written = json.loads(vector.written())
    assert fits(written, schema)
    for name in ("format", "clauses", "input", "expected"):
        assert not fits({key: value for key, value in written.items() if key != name}, schema)
    assert not fits(written | {"input": written["input"] | {"more": 1}}, schema)
    assert not fits(written | {"flag": "none"}, schema)
    assert fits({"id": vector.id} | some_answer(vector), schema["$defs"]["answer"])


def some_answer(vector: Vector) -> dict[str, Any]:
    """Gives the solution as an answer."""
    kind = vectors.KINDS[vector.kind]
    return {name: value for name, value in vector.expected.items() if name in kind.answer}


@any_vector
def test_a_vector_names_binding_clauses_and_what_it_means_to_fail_it(vector: Vector) -> None:
    assert vector.clauses
    assert [name for name in vector.clauses if name not in STATED or STATED[name].is_withdrawn] == []
    assert list(vector.clauses) == sorted(set(vector.clauses))
    assert vector.flag in FLAGS
    assert vector.comment.endswith(".")


def test_every_flag_is_used_and_every_id_is_one_vector() -> None:
    assert {vector.flag for vector in VECTORS} == set(FLAGS)
    assert len({vector.id for vector in VECTORS}) == len(VECTORS)


def test_no_number_is_too_large_for_a_double() -> None:
    def numbers(value: object) -> list[int]:
        match value:
            case dict():
                return [number for item in value.values() for number in numbers(item)]
            case list():
                return [number for item in value for number in numbers(item)]
            case int():
                return [value]
            case _:
                return []

    assert all(abs(number) <= 2**53 for vector in VECTORS for number in numbers(json.loads(vector.written())))


def test_an_unknown_kind_and_another_version_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"kind='riddle' is none of schedule, tokens"):
        vectors.load("riddle")
    with pytest.raises(ParameterError, match=r"format=2 of a/b is not 1"):
        form.read('{"format": 2, "id": "a/b"}')


def test_writing_leaves_nothing_of_an_earlier_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few: Mapping[str, Kind] = {name: vectors.KINDS[name] for name in ("sampling", "schedule")}
    monkeypatch.setattr(kinds, "KINDS", few)
    monkeypatch.setattr(kinds, "FOLDER", tmp_path)
    (tmp_path / "schedule").mkdir()
    (tmp_path / "schedule" / "old.json").touch()
    kinds.main()
    assert not (tmp_path / "schedule" / "old.json").exists()
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")}
    assert written == {"index.json", "sampling.schema.json", "schedule.schema.json"} | {
        f"{vector.id}.json" for name in few for vector in vectors.load(name)
    }
    assert capsys.readouterr().out.startswith(f"{len(written)} files, ")


@pytest.mark.parametrize(
    "value,text",
    [
        ({"a": 1, "b": [1, 2]}, '{"a": 1, "b": [1, 2]}'),
        (list(range(100, 140)), None),
        ({"a": [{"b": list(range(60))}], "c": "d" * 130}, None),
        ([], "[]"),
    ],
)
def test_the_layout_changes_no_value(value: object, text: str | None) -> None:
    written = layout.pretty(value)
    assert json.loads(written) == value
    assert text in {None, written}
    assert max(len(line) for line in written.splitlines() if "ddd" not in line) <= 120


def test_a_difference_is_found_wherever_it_is() -> None:
    one = {"a": [1.0, 2, "x"], "b": {"c": 1}}
    assert differences(one, {"a": [1.05, 2, "x"], "b": {"c": 1}}, 0.1) == []
    assert differences(one, {"a": [1.2, 3, "x"], "b": {"c": 1.0}}, 0.1) == [
        ".a[0]: 1.0 and 1.2",
        ".a[1]: 2 and 3",
        ".b.c: 1 and 1.0",
    ]
    assert differences(one, {"a": [1.0, 2]}, 0.1) == [": ['a', 'b'] and ['a']", ".a: 3 and 2 entries"]
