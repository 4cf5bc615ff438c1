"""Configurations are read strictly: what is missing, mistyped, contradictory or unsupported is listed at once."""

from collections.abc import Callable, Mapping

import pytest
import torch

from reference.errors import CheckpointError
from reference.models import HuginnConfig, OuroConfig
from tests.models_for_tests import huginn_config, huginn_values, ouro_config, ouro_values

pytestmark = pytest.mark.spec("MOD-11")

MISSING = object()
"""Stands for a key that is taken out."""


def changed(values: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    """Gives a configuration with some keys changed or taken out."""
    return {key: value for key, value in {**values, **changes}.items() if value is not MISSING}


def read_ouro(**changes: object) -> OuroConfig:
    return OuroConfig.read(changed(ouro_values(ouro_config()), changes))


def read_huginn(**changes: object) -> HuginnConfig:
    return HuginnConfig.read(changed(huginn_values(huginn_config()), changes))


Reader = Callable[..., OuroConfig | HuginnConfig]


def faults(read: Reader, **changes: object) -> list[str]:
    """Gives the lines of the error that a changed configuration causes."""
    with pytest.raises(CheckpointError) as error:
        read(**changes)
    title, *lines = str(error.value).splitlines()
    assert title.startswith("config.json")
    assert "(MOD-11)" in title
    return [line.strip() for line in lines]


def test_an_official_ouro_configuration_is_read() -> None:
    assert read_ouro() == ouro_config()
    assert read_ouro(eos_token_id=3).eos_token_ids == {3}
    assert read_ouro(eos_token_id=[3, 5, 3]).eos_token_ids == {3, 5}
    assert read_ouro(eos_token_id=None).eos_token_ids == frozenset()
    assert read_ouro(eos_token_id=MISSING).eos_token_ids == frozenset()


def test_an_official_huginn_configuration_is_read() -> None:
    assert read_huginn() == huginn_config()
    assert read_huginn(eos_token_id=0).eos_token_ids == {0}


def test_absent_ouro_keys_take_the_defaults_of_the_official_class() -> None:
    required = ("model_type", "hidden_act", "tie_word_embeddings")
    config = OuroConfig.read({key: ouro_values(ouro_config())[key] for key in required})
    assert config == OuroConfig(
        vocab_size=151_936,
        hidden_size=4096,
        intermediate_size=22_016,
        num_layers=32,
        num_heads=32,
        num_kv_heads=32,
        head_dim=128,
        context_length=32_768,
        rope_theta=10_000.0,
        eps=1e-6,
        recurrence_depth=4,
        exit_threshold=1.0,
    )


def test_huginn_keys_may_have_the_names_that_the_official_class_maps() -> None:
    renamed = {"n_embd": "hidden_size", "n_heads": "num_attention_heads", "n_layers": "num_hidden_layers"}
    values = huginn_values(huginn_config())
    changes = dict.fromkeys(renamed, MISSING) | {new: values[old] for old, new in renamed.items()}
    assert read_huginn(**changes) == huginn_config()
    assert read_huginn(**{new: values[old] for old, new in renamed.items()}) == huginn_config()


def test_derived_huginn_keys_may_be_there() -> None:
    derived = {"head_dim": 4, "padded_vocab_size": 13, "effective_expected_depth": 10, "init_values": {"std": 0.1}}
    assert read_huginn(**derived, test_time_noise=0.0) == huginn_config()
    assert read_huginn(padding_multiple=MISSING) == huginn_config()


@pytest.mark.parametrize(
    "key,value,message",
    [
        ("model_type", "qwen2", 'model_type: expected "ouro", found "qwen2"'),
        ("hidden_act", "gelu", 'hidden_act: expected "silu", found "gelu"'),
        ("hidden_act", MISSING, 'hidden_act: expected "silu", but it is missing'),
        ("tie_word_embeddings", True, "tie_word_embeddings: expected false, found true"),
        ("tie_word_embeddings", 0, "tie_word_embeddings: expected false, found 0"),
        ("tie_word_embeddings", MISSING, "tie_word_embeddings: expected false, but it is missing"),
        ("rope_scaling", {"factor": 2.0}, 'rope_scaling: expected null, found {"factor": 2.0}'),
        ("rope_parameters", {"rope_theta": 1}, 'rope_parameters: expected null, found {"rope_theta": 1}'),
        ("use_sliding_window", True, "use_sliding_window: expected false, found true"),
        ("attention_bias", True, "attention_bias: expected false, found true"),
        ("early_exit_step", 2, "early_exit_step: expected null, found 2"),
        ("hidden_size", "12", 'hidden_size: expected a whole number of at least 1, found "12"'),
        ("hidden_size", 0, "hidden_size: expected a whole number of at least 1, found 0"),
        ("num_hidden_layers", 2.0, "num_hidden_layers: expected a whole number of at least 1, found 2.0"),
        ("total_ut_steps", True, "total_ut_steps: expected a whole number of at least 1, found true"),
        ("total_ut_steps", None, "total_ut_steps: expected a whole number of at least 1, found null"),
        ("rope_theta", 0, "rope_theta: expected a finite number above 0, found 0"),
        ("rope_theta", float("inf"), "rope_theta: expected a finite number above 0, found Infinity"),
        ("rms_norm_eps", "tiny", 'rms_norm_eps: expected a finite number above 0, found "tiny"'),
        ("rms_norm_eps", True, "rms_norm_eps: expected a finite number above 0, found true"),
        ("head_dim", 3, "head_dim=3 is odd, but RoPE turns pairs"),
        ("num_key_value_heads", 4, "num_attention_heads=2 is not divisible by num_key_value_heads=4"),
        (
            "layer_types",
            ["full_attention", "sliding_attention"],
            'layer_types: expected ["full_attention", "full_attention"], since every layer sees all positions, found',
        ),
        (
            "eos_token_id",
            13,
            "eos_token_id: expected null, one token id below vocab_size=13, or a list of them, found 13",
        ),
        (
            "eos_token_id",
            [1, "1"],
            'eos_token_id: expected null, one token id below vocab_size=13, or a list of them, found [1, "1"]',
        ),
        (
            "torch_dtype",
            "int8",
            'torch_dtype: expected "float64" or "float32" or "bfloat16" or "float16", found "int8"',
        ),
        ("dtype", "float64", 'torch_dtype: expected the same in torch_dtype and dtype, found "float32"'),
    ],
)
def test_each_fault_of_an_ouro_configuration_is_named(key: str, value: object, message: str) -> None:
    assert any(line.startswith(message) for line in faults(read_ouro, **{key: value}))


def test_without_head_dim_the_heads_must_divide_the_width() -> None:
    assert read_ouro(head_dim=MISSING).head_dim == 6
    expected = "hidden_size=12 is not divisible by num_attention_heads=5, and without head_dim it must be"
    assert expected in faults(read_ouro, head_dim=MISSING, num_attention_heads=5)


@pytest.mark.parametrize(
    "key,value,message",
    [
        ("model_type", "ouro", 'model_type: expected "huginn_raven", found "ouro"'),
        ("block_class_name", "PreNormBlock", 'block_class_name: expected "SandwichBlock", found "PreNormBlock"'),
        ("norm_class_name", "LayerNorm", 'norm_class_name: expected "RMSNorm_llama", found "LayerNorm"'),
        ("mlp_class_name", MISSING, 'mlp_class_name: expected "GatedMLP", but it is missing'),
        ("nonlin_name", "GELU", 'nonlin_name: expected "SiLU", found "GELU"'),
        ("injection_type", "add", 'injection_type: expected "linear", found "add"'),
        ("state_init", "zero", 'state_init: expected "like-init", found "zero"'),
        ("init_strategy", "small", 'init_strategy: expected "takase", found "small"'),
        ("qk_bias", False, "qk_bias: expected true, found false"),
        ("bias", True, "bias: expected false, found true"),
        ("tie_embeddings", False, "tie_embeddings: expected true, found false"),
        ("tie_word_embeddings", False, "tie_word_embeddings: expected true, found false"),
        ("architecture_class_name", "GPT", 'architecture_class_name: expected "RecurrentGPT", found "GPT"'),
        ("test_time_noise", 0.1, "test_time_noise: expected 0, found 0.1"),
        ("n_embd", MISSING, "n_embd: expected a whole number of at least 1, but it is missing"),
        ("hidden_size", 9, "hidden_size: expected 8, as n_embd says, found 9"),
        ("num_attention_heads", 9, "num_attention_heads: expected 2, as n_heads says, found 9"),
        ("num_hidden_layers", 9, "num_hidden_layers: expected 4, as n_layers says, found 9"),
        ("n_embd", 10, "n_embd=10 does not split into n_heads=2 heads of even size"),
        (
            "n_layers",
            5,
            "n_layers: expected 4, the sum of n_layers_in_prelude, n_layers_in_recurrent_block, n_layers_in_coda",
        ),
        (
            "n_layers_in_recurrent_block",
            0,
            "n_layers_in_recurrent_block: expected a whole number of at least 1, found 0",
        ),
        ("n_layers_in_coda", -1, "n_layers_in_coda: expected a whole number of at least 0, found -1"),
        ("num_key_value_heads", 1, "num_key_value_heads: expected 2, the number of heads, found 1"),
        ("head_dim", 5, "head_dim: expected 4, n_embd / n_heads, found 5"),
        ("padding_multiple", 4, "vocab_size=13 is not divisible by padding_multiple=4"),
        ("padded_vocab_size", 16, "padded_vocab_size: expected 13, as vocab_size says, found 16"),
        ("rope_base", MISSING, "rope_base: expected a finite number above 0, but it is missing"),
        ("mean_recurrence", MISSING, "mean_recurrence: expected a whole number of at least 1, but it is missing"),
    ],
)
def test_each_fault_of_a_huginn_configuration_is_named(key: str, value: object, message: str) -> None:
    assert any(line.startswith(message) for line in faults(read_huginn, **{key: value}))


@pytest.mark.parametrize("key", ["vocab_size", "intermediate_size", "block_size", "norm_eps", "n_layers", "qk_bias"])
def test_huginn_keys_have_no_defaults(key: str) -> None:
    assert any(line.startswith(key) and "missing" in line for line in faults(read_huginn, **{key: MISSING}))


def test_all_faults_are_listed_at_once_and_none_twice() -> None:
    lines = faults(read_ouro, hidden_act="gelu", total_ut_steps=0, rope_theta="big", hidden_size=MISSING, head_dim=3)
    assert [line.split(":")[0].split("=")[0] for line in lines] == [
        "hidden_act",
        "head_dim",
        "rope_theta",
        "total_ut_steps",
    ]


def test_a_key_at_fault_is_not_blamed_for_contradicting_another() -> None:
    assert len(faults(read_huginn, n_embd="wide")) == 1


@pytest.mark.parametrize(
    "key,name,dtype",
    [
        ("torch_dtype", "bfloat16", torch.bfloat16),
        ("torch_dtype", "float64", torch.float64),
        ("torch_dtype", None, None),
        ("dtype", "float32", torch.float32),
    ],
)
def test_the_type_of_the_weights_goes_by_its_old_and_its_new_name(
    key: str, name: str | None, dtype: torch.dtype | None
) -> None:
    assert read_ouro(**{"torch_dtype": MISSING, key: name}).dtype == dtype
