"""What can be shown without a GPU: a step is one list of operations, whatever its data are."""

from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator

from reference.graphs import StaticDecoder
from tests.graphs.guard import NotCapturableError, operations_of
from tests.graphs.problems import PROMPTS, eager, same, small, static

CPU, META = torch.device("cpu"), torch.device("meta")

KINDS: Final[dict[str, dict[str, Any]]] = {
    "ar": {"decoder": "ar", "depth": 4, "draft_depth": 4},
    "wfd": {"decoder": "wfd", "depth": 4, "draft_depth": 1},
    "wfd, shared slots": {"decoder": "wfd", "depth": 4, "draft_depth": 1, "kv_slots": 2},
    "wfd, one slot": {"decoder": "wfd", "depth": 4, "draft_depth": 2, "kv_slots": 1},
    "dtv": {"decoder": "dtv", "depth": 4, "draft_depth": 1, "draft_length": 2},
}


def watched(static_decoder: StaticDecoder) -> dict[Callable[[], object], list[list[str]]]:
    """Puts every execution under guard, and gives the lists of operations that will come of it, by call."""
    seen: dict[Callable[[], object], list[list[str]]] = {call: [] for call in static_decoder.calls}

    def guarded(call: Callable[[], object]) -> Callable[[], object]:
        return lambda: seen[call].append(operations_of(call, CPU))

    static_decoder.calls = tuple(guarded(call) for call in static_decoder.calls)
    return seen


@pytest.mark.parametrize(
    "kind,family",
    [
        ("ar", "huginn"),
        ("wfd", "huginn"),
        ("wfd, shared slots", "ouro"),
        ("wfd, one slot", "huginn"),
        ("dtv", "huginn"),
    ],
)
def test_every_execution_is_the_same_list_of_operations(kind: str, family: str) -> None:
    """Cases 27 and 28: at every length, with drafts right and wrong, before, at and after the end."""
    static_decoder = static(small(family, dtype=torch.float32), **KINDS[kind])
    buffers = {name: (buffer.data_ptr(), buffer.shape) for name, buffer in static_decoder.step.named_buffers()}
    lists = watched(static_decoder)
    for prompt, stop_ids in zip(PROMPTS, ((), (5,), ()), strict=True):
        static_decoder.decode(prompt, max_new_tokens=5, eos_token_id=stop_ids)
    for executions in lists.values():
        assert len(executions) > 5  # one for each round of DtV, more of all else
        assert all(operations == executions[0] for operations in executions)
    assert buffers == {name: (buffer.data_ptr(), buffer.shape) for name, buffer in static_decoder.step.named_buffers()}


@pytest.mark.parametrize("family", ["ouro", "huginn"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_touches_no_tensor_of_the_host(kind: str, family: str) -> None:
    """On the meta device a tensor on the CPU gives itself away, and a read of data raises."""
    static_decoder = static(small(family, dtype=torch.bfloat16, device="meta"), **KINDS[kind])
    for call in dict.fromkeys(static_decoder.step.cycle):
        assert operations_of(call, META)


class Calls(nn.Module):
    """A step whose `forward` is any of its calls, as `torch.export` wants it."""

    def __init__(self, step: nn.Module, call: Callable[[], object]) -> None:
        """Takes a step and one of its calls."""
        super().__init__()
        self.step = step
        self.call = call

    def forward(self) -> None:
        """Executes the call."""
        self.call()


def exported(step: nn.Module, call: Callable[[], object]) -> torch.export.ExportedProgram:
    """Traces one call without running it."""
    with torch.no_grad():
        return torch.export.export(Calls(step, call), (), strict=False)


def asks_nothing(program: torch.export.ExportedProgram) -> bool:
    """Says whether a traced program is one graph with fixed sizes and without conditions on data."""
    values = [node.meta.get("val") for node in program.graph.nodes]
    sizes = [size for value in values if isinstance(value, Tensor) for size in value.shape]
    return (
        not program.range_constraints
        and all(type(size) is int for size in sizes)
        and not any(isinstance(node.target, HigherOrderOperator) for node in program.graph.nodes)
    )


@pytest.mark.parametrize("kind,family", [("wfd", "huginn"), ("dtv", "ouro")])
def test_one_traced_execution_replayed_decodes_every_prompt(kind: str, family: str) -> None:
    """Case 27 as a graph would have it: traced once, before anything was decoded, and then only repeated."""
    sizes: dict[str, Any] = {"depth": 2, "draft_depth": 1, "draft_length": 2}
    model = small(family)
    static_decoder = static(model, kind, **sizes)
    programs = {call: exported(static_decoder.step, call) for call in dict.fromkeys(static_decoder.step.cycle)}
    assert all(asks_nothing(program) for program in programs.values())
    replays = {call: program.module() for call, program in programs.items()}
    static_decoder.calls = tuple(replays[call] for call in static_decoder.step.cycle)
    for prompt in PROMPTS:
        expected = eager(model, prompt, kind, max_new_tokens=9, stop_ids=(4,), **sizes)
        assert same(static_decoder.decode(prompt, max_new_tokens=9, eos_token_id=(4,)), expected)


def test_a_macro_step_is_traced_on_the_meta_device() -> None:
    static_decoder = static(small("huginn", device="meta"), "wfd", depth=2, draft_depth=1)
    (call,) = static_decoder.step.cycle
    assert asks_nothing(exported(static_decoder.step, call))


X: Final = torch.arange(4)


@pytest.mark.parametrize(
    "step",
    [
        lambda: X.sum().item(),
        lambda: bool(X[0] > 1),
        X.nonzero,
        lambda: X[X > 1],
        lambda: X.clone().masked_fill_(X > 1, 0)[X > 2],
        lambda: X.clone().index_put_((X > 1,), X[:1]),
        lambda: torch.masked_select(X, X > 1),
        lambda: torch.unique(X),
        lambda: torch.bincount(X),
        lambda: torch.equal(X, X),
        lambda: torch.tensor([1, 2]),
        lambda: torch.repeat_interleave(X),
        lambda: X + X.to("meta"),
    ],
)
def test_the_guard_raises_on_what_no_graph_can_hold(step: Callable[[], object]) -> None:
    with pytest.raises(NotCapturableError):
        operations_of(step, CPU)


def test_the_guard_tells_executions_apart_whose_numbers_or_shapes_differ() -> None:
    assert operations_of(lambda: X + 1, CPU) == operations_of(lambda: X + 1, CPU)
    assert operations_of(lambda: X + 1, CPU) != operations_of(lambda: X + 2, CPU)
    assert operations_of(lambda: X[:2] + 1, CPU) != operations_of(lambda: X[:3] + 1, CPU)
