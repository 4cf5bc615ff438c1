"""What holds for both families: what a row depends on, the cells it fills, types, devices, and that nothing is kept."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from reference.kv import KVCache
from reference.models import Huginn, Ouro
from reference.provenance import Part
from tests.models_for_tests import huginn_config, ouro_config, random_huginn, random_model, random_ouro, random_tensors
from tests.running import Running

DTYPES: Final = (torch.float64, torch.float32, torch.bfloat16)
TOKENS: Final = (5, 2, 7, 7, 0, 12, 3, 9, 1, 4, 11, 6, 8, 10, 2, 5)

any_family = pytest.mark.parametrize("family", ["ouro", "huginn"])
any_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def running(model: Ouro | Huginn, *, scale: float = 1.0, depth: int | None = None) -> Running:
    return Running(model, num_positions=len(TOKENS), state_scale=scale, recurrence_depth=depth)


def all_cells(model: Ouro | Huginn, cache: KVCache, positions: slice) -> list[Tensor]:
    """Gives the keys of every (layer, recurrence), then those of prelude and coda."""
    shapes = model.kv_shapes
    keys = [
        cache.cells(Part.RECURRENT, positions, recurrence=recurrence)[0][layer]
        for recurrence in range(cache.recurrence_depth)
        for layer in range(shapes.recurrent_layers)
    ]
    keys += list(cache.cells(Part.PRELUDE, positions)[0])
    return keys + list(cache.cells(Part.CODA, positions)[0])


@pytest.mark.spec("AR-03")
@any_family
def test_sixteen_tokens_give_the_same_logits_cached_and_recomputed(family: str) -> None:
    model = random_model(family)
    cached = running(model)
    for length, token in enumerate(TOKENS, start=1):
        step = cached.logits([token])
        torch.testing.assert_close(step[0], running(model).logits(TOKENS[:length])[-1], rtol=0, atol=1e-10)


@pytest.mark.spec("AR-03", "MOD-05")
@any_family
@pytest.mark.parametrize("chunks", [(16,), (1, 15), (5, 1, 10), (3, 3, 3, 3, 4)])
def test_a_prompt_gives_the_same_logits_and_cells_in_one_call_and_in_chunks(
    family: str, chunks: tuple[int, ...]
) -> None:
    model = random_model(family)
    whole, parts = running(model), running(model)
    expected = whole.logits(TOKENS)
    logits = [parts.logits(TOKENS[parts.length : parts.length + size]) for size in chunks]
    torch.testing.assert_close(torch.cat(logits), expected, rtol=0, atol=1e-10)
    everywhere = slice(0, len(TOKENS))
    for mine, theirs in zip(
        all_cells(model, parts.cache, everywhere), all_cells(model, whole.cache, everywhere), strict=True
    ):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-10)


@pytest.mark.spec("MOD-03")
@any_family
def test_a_row_does_not_depend_on_later_tokens(family: str) -> None:
    model = random_model(family)
    changed = (*TOKENS[:9], 0, 0, *TOKENS[11:])
    _, states = running(model).extend(TOKENS)
    _, others = running(model).extend(changed)
    for state, other in zip(states, others, strict=True):
        assert torch.equal(state[:9], other[:9])
    assert not torch.equal(states[-1][9:], others[-1][9:])


@pytest.mark.spec("MOD-03")
@any_family
@torch.inference_mode()
def test_rows_of_mixed_depths_compute_together_what_they_compute_alone(family: str) -> None:
    model = random_model(family)
    depth = model.recurrence_depth
    positions = range(depth)
    _, alone = running(model).extend(TOKENS[:depth])
    cache = KVCache(
        model.kv_shapes,
        recurrence_depth=depth,
        num_positions=depth,
        dtype=model.dtype,
        device=model.device,
        provenance=True,
    )
    cache.begin(positions)
    injected = model.prelude(torch.tensor(TOKENS[:depth]), cache.rows(Part.PRELUDE, positions, [0] * depth))
    initial = model.initial_states(positions, seed=0, scale=1.0)
    states = list((injected if initial is None else initial).chunk(depth))
    # Position p starts at tick p: a diagonal, with as many depths in flight as the model has.
    for tick in range(2 * depth - 1):
        lanes = [position for position in positions if 0 <= tick - position < depth]
        rows = cache.rows(Part.RECURRENT, lanes, [tick - lane for lane in lanes])
        after = model.recur(torch.cat([states[lane] for lane in lanes]), injected[lanes[0] : lanes[-1] + 1], rows)
        for lane, state in zip(lanes, after.chunk(len(lanes)), strict=True):
            states[lane] = state
            torch.testing.assert_close(state[0], alone[tick - lane + 1][lane], rtol=0, atol=1e-12)


@pytest.mark.spec("MOD-04")
@any_family
def test_a_readout_changes_no_state_and_no_later_recurrence(family: str) -> None:
    model = random_model(family)
    with_readouts, without = running(model), running(model)
    _, states = with_readouts.extend(TOKENS[:6])
    kept = [state.clone() for state in states]
    for depth, state in enumerate(states[1:], start=1):
        with_readouts.read_out(state, depth=depth)
    without.extend(TOKENS[:6])
    assert all(torch.equal(*pair) for pair in zip(states, kept, strict=True))
    _, after = with_readouts.extend(TOKENS[6:])
    _, expected = without.extend(TOKENS[6:])
    assert all(torch.equal(*pair) for pair in zip(after, expected, strict=True))


@pytest.mark.spec("MOD-02")
@any_family
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_depth_given_at_call_time_computes_what_a_model_of_that_depth_does(family: str, depth: int) -> None:
    if family == "ouro":
        model: Ouro | Huginn = random_ouro()
        other: Ouro | Huginn = random_ouro(replace(ouro_config(), recurrence_depth=depth))
    else:
        model, other = random_huginn(), random_huginn(replace(huginn_config(), recurrence_depth=depth))
    own = model.recurrence_depth
    assert torch.equal(running(model, depth=depth).logits(TOKENS), running(other).logits(TOKENS))
    assert model.recurrence_depth == own != depth


@pytest.mark.spec("KV-01")
@any_family
def test_no_two_slots_share_a_cell(family: str) -> None:
    model = random_model(family)
    full = running(model)
    full.logits(TOKENS)
    keys = all_cells(model, full.cache, slice(0, len(TOKENS)))
    assert len(keys) == model.kv_shapes.num_slots(model.recurrence_depth)
    for one, other in combinations(keys, 2):
        assert not torch.equal(one, other)


@pytest.mark.spec("KV-01", "KV-02")
@any_family
@any_dtype
def test_bytes_allocated_are_bytes_computed_in_the_model_s_type(family: str, dtype: torch.dtype) -> None:
    model = random_model(family, dtype=dtype)
    cache = running(model).cache
    per_position = model.kv_shapes.bytes_per_position(model.recurrence_depth, bytes_per_element=dtype.itemsize)
    assert cache.num_bytes == per_position * len(TOKENS)
    assert all(cells.dtype == dtype for cells in all_cells(model, cache, slice(0, 1)))


@pytest.mark.spec("CONF-02")
@any_family
@any_dtype
def test_a_row_alone_computes_the_same_bits_whatever_was_computed_before(family: str, dtype: torch.dtype) -> None:
    model = random_model(family, dtype=dtype)
    first, second = running(model), running(model)
    expected = [first.logits([token]) for token in TOKENS]
    for token, logits in zip(TOKENS, expected, strict=True):
        running(model).logits(TOKENS[:3])  # somebody else's work in between
        assert torch.equal(second.logits([token]), logits)


class SeenTypes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the floating-point types of all tensors that operations give, and the devices."""

    def __init__(self) -> None:
        """Starts with none."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtypes: set[torch.dtype] = set()
        self.devices: set[torch.device] = set()

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> object:
        """Runs the operation."""
        del types
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        self.dtypes |= {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
        self.devices |= {tensor.device for tensor in tensors}
        return result


@pytest.mark.spec("CONF-04")
@any_family
@pytest.mark.parametrize(
    "dtype,expected",
    [
        (torch.float64, {torch.float64}),
        (torch.float32, {torch.float32}),
        (torch.bfloat16, {torch.bfloat16, torch.float32}),
    ],
    ids=["float64", "float32", "bfloat16"],  # not the sets: their order changes from process to process
)
def test_nothing_is_computed_in_a_narrower_type_than_the_model_s(
    family: str, dtype: torch.dtype, expected: set[torch.dtype]
) -> None:
    model = random_model(family, dtype=dtype)
    with SeenTypes() as seen:
        logits = running(model, scale=0.0).logits(TOKENS)
    assert logits.dtype == dtype
    assert seen.dtypes == expected


@any_family
def test_everything_but_the_drawing_of_noise_happens_on_the_model_s_device(family: str) -> None:
    meta = torch.device("meta")
    model = random_ouro(device=meta) if family == "ouro" else random_huginn(device=meta)
    assert model.device == meta
    steps = Running(model, num_positions=4, provenance=False)
    with SeenTypes() as seen:
        assert steps.logits(TOKENS[:3]).shape == (3, 13)
        assert steps.logits(TOKENS[3:4]).shape == (1, 13)
    assert seen.devices == {meta}


@any_family
def test_a_model_keeps_copies_of_the_weights_it_was_given(family: str) -> None:
    cpu = torch.device("cpu")
    tensors = random_tensors(ouro_config() if family == "ouro" else huginn_config())
    model: Ouro | Huginn
    if family == "ouro":
        model = Ouro(ouro_config(), tensors, dtype=torch.float32, device=cpu)
    else:
        model = Huginn(huginn_config(), tensors, dtype=torch.float32, device=cpu)
    expected = running(model).logits(TOKENS)
    for tensor in tensors.values():
        tensor.zero_()
    assert torch.equal(running(model).logits(TOKENS), expected)


@any_family
def test_decoding_leaves_the_weights_as_they_are(family: str) -> None:
    model = random_model(family)
    before = running(model).logits(TOKENS)
    running(model, depth=2).logits(TOKENS[::-1])
    assert torch.equal(running(model).logits(TOKENS), before)


@any_family
def test_random_models_of_different_seeds_differ(family: str) -> None:
    one, other = random_model(family, seed=1), random_model(family, seed=2)
    assert not torch.equal(running(one).logits(TOKENS), running(other).logits(TOKENS))
