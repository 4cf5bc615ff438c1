"""Holds the training networks: official names, and a memory that changes nothing."""

import pytest
import torch

from reference.training.generation import generate
from reference.training.huginn_net import HuginnShape, huginn_parameters
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
