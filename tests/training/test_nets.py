"""Holds the training networks: official names, a memory that changes nothing, growth that changes next to nothing."""

from dataclasses import replace

import pytest
import torch

from reference.training.generation import generate
from reference.training.huginn_growth import grow_core
from reference.training.huginn_net import EMBEDDING, HEAD, HuginnShape, huginn_parameters
from reference.training.memory import MOST_POSITIONS
from reference.training.ouro_net import GATE_BIAS, GATE_WEIGHT, OuroShape, ouro_parameters
from reference.training.readouts import DepthReader, HuginnReader, OuroReader

_OURO = OuroShape(
    hidden_size=32, num_heads=4, num_kv_heads=2, intermediate_size=48, num_layers=2, num_loops=3, vocab_size=50
)
_HUGINN = HuginnShape(hidden_size=32, num_heads=2, intermediate_size=48, recurrence_depth=4, vocab_size=50)


def _reader(family: str) -> DepthReader:
    generator = torch.Generator().manual_seed(3)
    if family == "ouro":
        return OuroReader(ouro_parameters(_OURO, generator), _OURO)
    return HuginnReader(huginn_parameters(_HUGINN, generator), _HUGINN)


@pytest.mark.parametrize("family", ["ouro", "huginn"])
def test_generation_along_a_memory_is_what_the_whole_sequence_gives(family: str) -> None:
    reader = _reader(family)
    prompts = [[1, 7, 9, 30], [1, 4], [1, 8, 8, 8, 8, 2, 40]]
    generated = generate(reader, prompts, 6)
    assert generated.choices.shape == (len(reader.depths), 3, 6)
    for row, prompt in enumerate(prompts):
        text = [*prompt, *generated.tokens[row].tolist()]
        with torch.no_grad():
            logits = reader.logits(torch.tensor([text[:-1]]), None)
        # Shallow readouts of Huginn see a deeper coda along a memory, so only the last depth must agree for it.
        for depth in range(len(reader.depths)) if family == "ouro" else (-1,):
            assert logits[depth][0, len(prompt) - 1 :].argmax(-1).tolist() == generated.choices[depth, row].tolist()


def test_parameters_have_the_official_names_and_shapes() -> None:
    ouro = ouro_parameters(_OURO, torch.Generator().manual_seed(0))
    assert len(ouro) == 3 + 2 * 11 + 2
    assert ouro["model.layers.1.mlp.down_proj.weight"].shape == (32, 48)
    assert ouro["model.layers.1.self_attn.k_proj.weight"].shape == (16, 32)
    assert ouro[GATE_WEIGHT].shape == (1, 32)
    assert ouro[GATE_BIAS].shape == (1,)
    huginn = huginn_parameters(_HUGINN, torch.Generator().manual_seed(0))
    assert len(huginn) == 5 + 4 * 9
    assert huginn["transformer.core_block.1.attn.qk_bias"].shape == (2, 1, 2, 16)
    assert huginn["freqs_cis"].shape == (1, MOST_POSITIONS, 1, 8, 2)


@pytest.mark.parametrize("uneven, tolerance", [((1, 3), 1e-5), ((1, 2, 3, 4), 0.1)])
def test_a_grown_core_computes_what_the_shallow_one_did(uneven: tuple[int, ...], tolerance: float) -> None:
    generator = torch.Generator().manual_seed(5)
    shallow = huginn_parameters(_HUGINN, generator)
    for name, tensor in shallow.items():
        if name.endswith(tuple(f"norm_{number}.weight" for number in uneven)):
            tensor.uniform_(0.5, 2.0, generator=generator)
    ids = torch.randint(_HUGINN.vocab_size, (3, 20), generator=generator)
    before = HuginnReader(shallow, _HUGINN).logits(ids, None)
    after = HuginnReader(grow_core(shallow, 6), replace(_HUGINN, num_core=6)).logits(ids, None)
    assert len(before) == len(after) == _HUGINN.recurrence_depth
    for old, new in zip(before, after, strict=True):
        assert (old - new).norm() < tolerance * old.norm()


def test_a_new_block_is_a_copy_that_adds_nothing_yet() -> None:
    shallow = huginn_parameters(_HUGINN, torch.Generator().manual_seed(0))
    deep = grow_core(shallow, 4)
    assert deep[HEAD] is deep[EMBEDDING]
    for block, source in enumerate((0, 0, 1, 1)):
        is_new = block % 2 == 1
        for part in ("attn.Wqkv.weight", "mlp.fc.weight", "norm_1.weight"):
            old = shallow[f"transformer.core_block.{source}.{part}"]
            assert torch.equal(deep[f"transformer.core_block.{block}.{part}"], old)
        for part in ("attn.proj.weight", "mlp.proj.weight"):
            assert bool((deep[f"transformer.core_block.{block}.{part}"] == 0).all()) is is_new


@pytest.mark.parametrize("num_core", [0, 1, 3])
def test_a_core_grows_to_a_multiple_only(num_core: int) -> None:
    shallow = huginn_parameters(_HUGINN, torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=f"num_core must be a multiple of the 2 blocks there are, got {num_core}"):
        grow_core(shallow, num_core)
