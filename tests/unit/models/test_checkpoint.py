"""Loading: the official layouts are read, anything else is one clear error, and nothing in a folder is ever run."""

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from reference import ar, models
from reference.errors import CheckpointError, ParameterError
from tests.golden.data import HERE as GOLDEN
from tests.models_for_tests import (
    huginn_config,
    huginn_values,
    ouro_config,
    ouro_values,
    random_tensors,
    write_folder,
    write_json,
)

OURO = ouro_values(ouro_config())
HUGINN = huginn_values(huginn_config())
TENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def ouro_tensors() -> dict[str, Tensor]:
    return random_tensors(ouro_config())


def huginn_tensors() -> dict[str, Tensor]:
    return random_tensors(huginn_config())


def rotary_table(dtype: torch.dtype = torch.float32) -> Tensor:
    """Gives the `freqs_cis` of the tiny Huginn, computed by hand."""
    angles = torch.outer(torch.arange(64.0), 1000.0 ** -torch.tensor([0.0, 0.5]))
    return torch.stack((angles.cos(), angles.sin()), dim=-1)[None, :, None].to(dtype)


def fault(folder: Path) -> list[str]:
    """Gives the lines of the error that loading a folder causes."""
    with pytest.raises(CheckpointError) as error:
        models.load(folder)
    return [line.strip() for line in str(error.value).splitlines()]


def logits(model: models.LoopedModel) -> Tensor:
    out = ar.generate(model, [1, 2], max_new_tokens=3, eos_token_id=None, keep_logits=True)
    assert out.logits is not None
    return out.logits


def shard(folder: Path, tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Writes tensors in two files with an index, and gives the index's map."""
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in files.items():
        save_file({name: tensors[name] for name in part}, folder / file)
    weight_map = {name: file for file, part in files.items() for name in part}
    write_json(folder / INDEX, {"metadata": {"total_size": 1}, "weight_map": weight_map})
    (folder / TENSORS).unlink(missing_ok=True)
    return weight_map


@pytest.mark.spec("MOD-09")
def test_a_folder_of_either_family_loads(tmp_path: Path) -> None:
    ouro = models.load(write_folder(tmp_path / "ouro", OURO, ouro_tensors()))
    assert isinstance(ouro, models.Ouro)
    assert ouro.config == ouro_config()
    huginn = models.load(str(write_folder(tmp_path / "huginn", HUGINN, huginn_tensors())))
    assert isinstance(huginn, models.Huginn)
    assert huginn.config == huginn_config()


@pytest.mark.spec("MOD-09")
@pytest.mark.parametrize("family,values", [("ouro", OURO), ("huginn", HUGINN)])
def test_shards_with_an_index_load_as_one_file_does(family: str, values: Mapping[str, object], tmp_path: Path) -> None:
    tensors = ouro_tensors() if family == "ouro" else huginn_tensors()
    folder = write_folder(tmp_path, values, tensors)
    expected = logits(models.load(folder))
    shard(folder, tensors)
    assert torch.equal(logits(models.load(folder)), expected)


@pytest.mark.spec("MOD-09")
def test_every_layout_of_huginns_redundant_tensors_loads_alike(tmp_path: Path) -> None:
    tensors = huginn_tensors()
    head = {"lm_head.weight": tensors["transformer.wte.weight"].clone()}
    layouts = [{}, head, {"freqs_cis": rotary_table()}, {"freqs_cis": rotary_table(torch.bfloat16), **head}]
    loaded = [models.load(write_folder(tmp_path / str(n), HUGINN, tensors | extra)) for n, extra in enumerate(layouts)]
    for model in loaded[1:]:
        assert torch.equal(logits(model), logits(loaded[0]))


@pytest.mark.spec("MOD-09")
def test_missing_surplus_misshaped_and_integer_tensors_are_listed_at_once_with_their_shapes(tmp_path: Path) -> None:
    tensors = ouro_tensors()
    del tensors["model.norm.weight"]
    tensors["model.norm.bias"] = torch.zeros(12)
    tensors["lm_head.weight"] = torch.zeros(13, 11)
    tensors["model.layers.1.mlp.up_proj.weight"] = torch.zeros(20, 12, dtype=torch.int64)
    title, *lines = fault(write_folder(tmp_path, OURO, tensors))
    assert "(MOD-09)" in title
    assert lines == [
        "lm_head.weight: expected [13, 12], found [13, 11]",
        "model.layers.1.mlp.up_proj.weight: expected floating-point numbers, found I64",
        "model.norm.bias: not expected, found [12]",
        "model.norm.weight: expected [12], but it is missing",
    ]


@pytest.mark.spec("MOD-09")
def test_redundant_tensors_of_a_wrong_shape_are_listed(tmp_path: Path) -> None:
    _, line = fault(write_folder(tmp_path, HUGINN, huginn_tensors() | {"freqs_cis": torch.zeros(64, 2, 2)}))
    assert line == "freqs_cis: expected [1, 64, 1, 2, 2], found [64, 2, 2]"


@pytest.mark.spec("MOD-09")
def test_redundant_tensors_that_contradict_the_rest_are_listed(tmp_path: Path) -> None:
    head = huginn_tensors()["transformer.wte.weight"]
    head[3, 3] += 1
    wrong = {"lm_head.weight": head, "freqs_cis": rotary_table().flip(1)}
    _, *lines = fault(write_folder(tmp_path, HUGINN, huginn_tensors() | wrong))
    assert lines == [
        "lm_head.weight: differs from transformer.wte.weight, to which it is tied",
        "freqs_cis: is not the rotary table of rope_base=1000.0",
    ]


@pytest.mark.spec("MOD-09")
def test_an_index_that_names_missing_files_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    shard(folder, ouro_tensors())
    (folder / "model-00002-of-00002.safetensors").unlink()
    _, line = fault(folder)
    assert line == f"model-00002-of-00002.safetensors: listed in {INDEX} but missing"


@pytest.mark.spec("MOD-09")
def test_an_index_that_disagrees_with_its_files_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    weight_map = shard(folder, ouro_tensors())
    moved, gone = "lm_head.weight", "model.norm.weight"
    first, second = sorted(set(weight_map.values()))
    assert weight_map[moved] == first
    weight_map[moved] = second
    unlisted_in = weight_map.pop(gone)
    write_json(folder / INDEX, {"weight_map": weight_map})
    _, *lines = fault(folder)
    assert sorted(lines) == [
        f"{moved}: in {first} but {INDEX} does not say so",
        f"{moved}: listed in {INDEX} but not in {second}",
        f"{gone}: in {unlisted_in} but {INDEX} does not say so",
    ]


@pytest.mark.spec("MOD-09", "MOD-10")
@pytest.mark.parametrize("file", ["../elsewhere.safetensors", "/elsewhere.safetensors", "model.bin", 3])
def test_an_index_cannot_lead_out_of_its_folder_or_to_another_format(file: object, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", OURO, {})
    (folder / TENSORS).unlink()
    save_file(ouro_tensors(), tmp_path / "elsewhere.safetensors")
    write_json(folder / INDEX, {"weight_map": {"lm_head.weight": file}})
    _, line = fault(folder)
    assert line == f"lm_head.weight: expected the name of a safetensors file in the same folder, found {file!r}"


@pytest.mark.spec("MOD-09")
@pytest.mark.parametrize("index", [{}, {"weight_map": None}, {"weight_map": ["lm_head.weight"]}])
def test_an_index_without_a_map_is_refused(index: object, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, {})
    (folder / TENSORS).unlink()
    write_json(folder / INDEX, index)
    assert fault(folder) == [f"{folder / INDEX} has no weight_map (MOD-09)"]


@pytest.mark.spec("MOD-09")
def test_two_answers_to_where_the_tensors_are_is_one_too_many(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    shard(folder, ouro_tensors())
    save_file(ouro_tensors(), folder / TENSORS)
    (line,) = fault(folder)
    assert f"holds both {TENSORS} and {INDEX}" in line


@pytest.mark.spec("MOD-09")
def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    (folder / TENSORS).write_bytes(b"not tensors at all")
    title, line = fault(folder)
    assert "(MOD-09)" in title
    assert line.startswith(f"{TENSORS}: cannot be read as safetensors: ")


@pytest.mark.spec("MOD-09")
def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    content = (folder / TENSORS).read_bytes()
    (folder / TENSORS).write_bytes(content[:-100])
    assert fault(folder)[1].startswith(f"{TENSORS}: cannot be read as safetensors: ")


@pytest.mark.spec("MOD-09")
def test_a_folder_without_tensors_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", OURO)
    assert fault(tmp_path) == [f"{tmp_path} holds neither {TENSORS} nor {INDEX} (MOD-09)"]


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        """Remembers where."""
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[[Path, str], int], tuple[Path, str]]:
        """Says what to call when unpickled."""
        return Path.write_text, (self.mark, "boom")


@pytest.mark.spec("MOD-10")
@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "model.ckpt", "model.pkl"])
def test_a_pickle_is_refused_and_never_opened(name: str, tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", OURO)
    (tmp_path / name).write_bytes(pickle.dumps(Bomb(tmp_path / "mark")))
    (line,) = fault(tmp_path)
    assert f"holds its tensors as {name} only; reading a pickle can execute code" in line
    assert line.endswith("(MOD-10)")
    assert not (tmp_path / "mark").exists()


@pytest.mark.spec("MOD-10")
def test_a_pickle_beside_safetensors_is_ignored(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(tmp_path / "mark")))
    models.load(folder)
    assert not (tmp_path / "mark").exists()


@pytest.mark.spec("MOD-10")
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_case_18_loading_and_decoding_run_no_python_of_the_folder_no_network_and_no_transformers(
    family: str, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(GOLDEN / f"{family}-tiny", folder)
    for name in ("__init__", "configuration_ouro", "modeling_ouro", "raven_config_minimal", "raven_modeling_minimal"):
        (folder / f"{name}.py").write_text("raise SystemExit('this file must never be run')\n", encoding="utf-8")
    program = f"""
import sys

def refuse(event, _arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise SystemExit(event)

sys.addaudithook(refuse)
sys.path.insert(0, {str(folder)!r})
from reference import ar, dtv, models, wfd

model = models.load({str(folder)!r})
assert wfd.generate(model, [5, 6], max_new_tokens=2, draft_depth=1).token_ids
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded & {{"transformers", "huggingface_hub", "requests"}}))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder.parent)  # noqa: S603 - ours
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.spec("MOD-11")
@pytest.mark.parametrize(
    "text,message",
    [
        ("{", "is not JSON: "),
        ("[1]", "holds no JSON object (MOD-11)"),
        ('{"model_type": "llama"}', "model_type: expected ouro or huginn_raven, found llama (MOD-11)"),
        ("{}", "model_type: expected ouro or huginn_raven, found None (MOD-11)"),
    ],
)
def test_a_configuration_of_no_known_model_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    (line,) = fault(tmp_path)
    assert message in line


@pytest.mark.spec("MOD-11")
def test_a_key_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    text = json.dumps(OURO)[:-1] + ', "total_ut_steps": 9}'
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    title, line = fault(tmp_path)
    assert "contradicts itself (MOD-11)" in title
    assert line == "total_ut_steps: given more than once"


@pytest.mark.spec("MOD-11")
def test_a_configuration_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    assert "is not JSON" in fault(tmp_path)[0]


@pytest.mark.spec("MOD-11")
def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    assert fault(tmp_path) == [f"{tmp_path / 'config.json'} does not exist (MOD-11)"]


@pytest.mark.spec("MOD-11")
def test_faults_of_the_configuration_are_listed_with_its_path(tmp_path: Path) -> None:
    title, *lines = fault(write_folder(tmp_path, OURO | {"hidden_act": "relu", "vocab_size": 0}, ouro_tensors()))
    assert title.startswith(str(tmp_path / "config.json"))
    assert len(lines) == 2


@pytest.mark.spec("MOD-09")
@pytest.mark.parametrize("name", ["no-such-model", "tiny-oura"])
def test_a_name_that_is_neither_shipped_nor_a_folder_is_refused(name: str) -> None:
    with pytest.raises(CheckpointError, match="is neither a folder nor a shipped model"):
        models.load(name)


@pytest.mark.spec("SMP-09")
@pytest.mark.parametrize(
    "declared,generation,expected",
    [
        (None, None, set()),
        (3, None, {3}),
        (3, {"eos_token_id": [5, 6]}, {3, 5, 6}),
        (None, {"eos_token_id": 0}, {0}),
        ([1, 2], {"eos_token_id": None}, {1, 2}),
        ([1, 2], {"temperature": 0.7}, {1, 2}),
    ],
)
def test_stop_ids_of_both_configuration_files_count(
    declared: object, generation: object, expected: set[int], tmp_path: Path
) -> None:
    folder = write_folder(tmp_path, OURO | {"eos_token_id": declared}, ouro_tensors())
    if generation is not None:
        write_json(folder / "generation_config.json", generation)
    assert models.load(folder).eos_token_ids == expected


@pytest.mark.spec("MOD-11")
def test_a_stop_id_outside_the_vocabulary_is_refused_in_either_file(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO, ouro_tensors())
    write_json(folder / "generation_config.json", {"eos_token_id": [2, 13]})
    title, line = fault(folder)
    assert title.startswith(str(folder / "generation_config.json"))
    assert line.startswith("eos_token_id: ")


@pytest.mark.spec("CONF-04")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_a_model_computes_in_the_type_asked_for(family: str, dtype: torch.dtype) -> None:
    model = models.load(GOLDEN / f"{family}-tiny", dtype=dtype)
    assert model.dtype == dtype
    assert logits(model).dtype == dtype


@pytest.mark.parametrize("name,dtype", [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_by_default_a_model_computes_in_the_type_that_its_configuration_names(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    assert models.load(write_folder(tmp_path, OURO | {"torch_dtype": name}, ouro_tensors())).dtype == dtype


def test_stored_weights_of_another_type_are_converted(tmp_path: Path) -> None:
    halves = {name: tensor.half() for name, tensor in ouro_tensors().items()}
    stored = models.load(write_folder(tmp_path / "half", OURO, halves), dtype=torch.float64)
    wide = {name: tensor.float() for name, tensor in halves.items()}
    assert torch.equal(
        logits(stored), logits(models.load(write_folder(tmp_path / "wide", OURO, wide), dtype=torch.float64))
    )


@pytest.mark.spec("MOD-11")
@pytest.mark.parametrize("name,message", [(None, "names no torch_dtype"), ("float16", "names torch.float16")])
def test_without_a_type_to_compute_in_one_must_be_given(name: str | None, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, OURO | {"torch_dtype": name}, ouro_tensors())
    (line,) = fault(folder)
    assert message in line
    assert models.load(folder, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64])
def test_a_type_that_no_model_computes_in_is_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ParameterError, match=r"is none of torch.float64, torch.float32, torch.bfloat16"):
        models.load(GOLDEN / "ouro-tiny", dtype=dtype)


def test_a_loaded_model_needs_its_folder_no_longer(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "model", OURO, ouro_tensors())
    model = models.load(folder)
    before = logits(model)
    content = bytearray((folder / TENSORS).read_bytes())
    (folder / TENSORS).write_bytes(bytes(len(content)))
    shutil.rmtree(folder)
    assert torch.equal(logits(model), before)


def test_a_folder_may_be_loaded_onto_another_device(tmp_path: Path) -> None:
    model = models.load(write_folder(tmp_path, HUGINN, huginn_tensors()), device="meta")
    assert model.device == torch.device("meta")


def test_the_golden_checkpoints_hold_all_redundant_tensors() -> None:
    stored = load_file(GOLDEN / "huginn-tiny" / TENSORS)
    assert {"lm_head.weight", "freqs_cis"} <= stored.keys()


@pytest.mark.parametrize("name", models.SHIPPED)
def test_a_shipped_model_loads_by_its_name_and_decodes(name: str) -> None:
    model = models.load(name)
    out = ar.generate(model, [1, 2, 3], max_new_tokens=4, eos_token_id=None)
    assert len(out.token_ids) == 4
