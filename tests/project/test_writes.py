"""State has its places: nothing mutable at module level, no global randomness, writes in place in few modules alone.

The last rule is checked by what can be seen in the text: methods that end in `_`, results put into `out=`,
assignments to slices, and, for names that a function evidently binds to tensors, to any index of them and by `+=`.
"""

import ast
from collections.abc import Iterator, Mapping

import pytest

from tests.project.sources import REPOSITORY, lies_in, modules, parsed

MUTABLE_TYPES = frozenset({"bytearray", "Counter", "defaultdict", "deque", "dict", "list", "OrderedDict", "set"})
"""Calls of these names make a value that can change."""

WRITERS = (
    "reference.kv",
    "reference.states",
    "reference.provenance",
    "reference.graphs",
    "reference.training",
    "reference.bench.baseline",
    "reference.bench.gpu",
)
"""Who may write tensors in place: the two stores of all state, the debug record of one, the static path, since a graph
knows nothing but addresses, training, whose optimiser must, the straightforward decoder that ours is measured against,
and the benchmark of the static path, which fills cells with noise."""

TENSOR_WORDS = frozenset({"Bool", "Float", "Inexact", "Int", "Integer", "Num", "Shaped", "Tensor", "UInt"})
"""Names that make an annotation one of a tensor; so does every name imported from `reference.axes`."""


_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def mutable_state(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names every module-level container that can change and every `global`.

    A constant may be a list, dict or set if its name is in upper case and its annotation says `Final`; better is
    a tuple, a frozenset or a `MappingProxyType`, whose argument is not counted.
    """
    faults = []
    for name, tree in trees.items():
        faults += [f"{name}:{node.lineno} global" for node in ast.walk(tree) if isinstance(node, ast.Global)]
        for node in _statements_run_on_import(tree):
            match node:
                case ast.Assign(targets=targets, value=value) if _can_change(value):
                    faults += [
                        f"{name}:{node.lineno} {ast.unparse(target)}"
                        for target in targets
                        if not (isinstance(target, ast.Name) and target.id == "__all__")
                    ]
                case ast.AnnAssign(target=ast.Name(id=target), annotation=annotation, value=ast.expr() as value) if (
                    _can_change(value)
                ):
                    if not (target.isupper() and "Final" in _names(annotation)):
                        faults.append(f"{name}:{node.lineno} {target}")
                case _:
                    pass
    return faults


def global_randomness(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names every use of Python's global generator: whatever is taken from `random` but its class of generators."""
    return [
        f"{name}:{line} {taken}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        for taken, line in _taken_from_random(node)
        if taken != "Random"
    ]


def writes_in_place(trees: Mapping[str, ast.Module]) -> list[str]:
    """Names every visible write to a tensor outside `WRITERS`."""
    faults = []
    for name, tree in trees.items():
        if any(lies_in(name, writer) for writer in WRITERS):
            continue
        aliases = frozenset(
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "reference.axes"
            for alias in node.names
        )
        faults += [f"{name}:{node.lineno} {ast.unparse(node)}" for node in _writes(tree, TENSOR_WORDS | aliases)]
    return faults


def _statements_run_on_import(tree: ast.Module) -> Iterator[ast.stmt]:
    """Gives the module's own statements, those under `if`, `try`, `with` and loops included."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if isinstance(child, ast.stmt) and not isinstance(
                child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            ):
                yield child
                waiting.append(child)


def _taken_from_random(node: ast.AST) -> Iterator[tuple[str, int]]:
    match node:
        case ast.ImportFrom(module="random", names=names):
            yield from ((alias.name, node.lineno) for alias in names)
        case ast.Attribute(value=ast.Name(id="random"), attr=taken):
            yield taken, node.lineno
        case _:
            pass


def _can_change(value: ast.expr) -> bool:
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)):
            return called in MUTABLE_TYPES
        case _:
            return False


def _names(expression: ast.expr) -> frozenset[str]:
    """Gives every name and attribute in an expression."""
    return frozenset(node.id for node in ast.walk(expression) if isinstance(node, ast.Name)) | frozenset(
        node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)
    )


def _writes(
    scope: ast.AST, words: frozenset[str], outer: frozenset[str] = frozenset()
) -> Iterator[ast.expr | ast.stmt]:
    """Gives the writes of a module or function, with those of the functions inside it.

    Args:
        scope: The module or function.
        words: Names that make an annotation one of a tensor.
        outer: Names that the functions around it bind to tensors.
    """
    own = list(_walk_scope(scope))
    tensors = outer.union(*(_bound_to_tensors(node, words) for node in own))
    for node in own:
        if isinstance(node, ast.expr | ast.stmt) and _is_write(node, tensors):
            yield node
        if isinstance(node, _FUNCTIONS):
            yield from _writes(node, words, tensors)


def _walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Gives all nodes of a module or function, of the functions inside it only themselves."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, _FUNCTIONS):
            waiting += ast.iter_child_nodes(node)


def _bound_to_tensors(node: ast.AST, words: frozenset[str]) -> frozenset[str]:
    """Gives the name that a node annotates as a tensor or assigns from a call like `torch.zeros(...)`."""
    match node:
        case ast.arg(arg=bound, annotation=ast.expr() as annotation) if _names(annotation) & words:
            return frozenset({bound})
        case ast.AnnAssign(target=ast.Name(id=bound), annotation=annotation) if _names(annotation) & words:
            return frozenset({bound})
        case ast.Assign(targets=[ast.Name(id=bound)], value=ast.Call(func=ast.Attribute(value=ast.Name(id="torch")))):
            return frozenset({bound})
        case _:
            return frozenset()


def _is_write(node: ast.AST, tensors: frozenset[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=method)) if method.endswith("_") and not method.startswith("_"):
            return True
        case ast.Call(keywords=keywords) if any(keyword.arg == "out" for keyword in keywords):
            return True
        case ast.Subscript(value=target, slice=index, ctx=ast.Store() | ast.Del()):
            is_slice = any(
                isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value in {None, ...})
                for part in (index.elts if isinstance(index, ast.Tuple) else (index,))
            )
            return is_slice or (isinstance(target, ast.Name) and target.id in tensors)
        case ast.AugAssign(target=ast.Name(id=target)):
            return target in tensors
        case _:
            return False


REFERENCE = modules(REPOSITORY / "reference")


def test_no_module_holds_mutable_state() -> None:
    assert mutable_state(REFERENCE) == []


def test_no_module_uses_global_randomness() -> None:
    assert global_randomness(REFERENCE) == []


def test_tensors_are_written_in_place_by_the_writers_alone() -> None:
    assert writes_in_place(REFERENCE) == []


@pytest.mark.parametrize(
    "source",
    [
        "seen = []",
        "SEEN = {}",
        "SEEN: dict[int, int] = {}",
        "seen: Final = {1, 2}",
        "if True:\n    seen = [x for x in y]",
        "a = b = collections.defaultdict(int)",
        "def f():\n    global x\n    x = 1",
    ],
)
def test_mutable_state_is_found(source: str) -> None:
    assert mutable_state(parsed(reference__kv=source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "__all__ = ['a']",
        "NAMES: Final = {'a': 1}",
        "NAMES: typing.Final[Mapping[str, int]] = MappingProxyType({'a': 1})",
        "names = ('a', frozenset({1}))",
        "def f():\n    seen = []",
        "class A:\n    x: list[int] = field(default_factory=list)",
    ],
)
def test_constants_and_local_state_are_no_module_state(source: str) -> None:
    assert mutable_state(parsed(reference__kv=source)) == []


def test_global_randomness_is_found() -> None:
    trees = parsed(reference__sampling="from random import Random, gauss\nrandom.seed(random.Random(3).random())")
    assert global_randomness(trees) == ["reference.sampling:1 gauss", "reference.sampling:2 seed"]


@pytest.mark.parametrize(
    "source",
    [
        "x.add_(1)",
        "torch.matmul(a, b, out=c)",
        "x[2:] = y",
        "x[..., 0] = y",
        "x[None] = y",
        "del x[1:]",
        "def f(states: Float[Tensor, 'lane hidden']):\n    states[i] = 0",
        "from reference.axes import Logits\ndef f(x: Logits):\n    x += 1",
        "x = torch.zeros(3)\nx[i, j] = 1",
        "x: Tensor = g()\nx *= 2",
        "def f(x: Tensor | None):\n    def g():\n        x[0] = 1",
    ],
)
def test_a_write_in_place_is_found(source: str) -> None:
    assert writes_in_place(parsed(reference__engine=source)) != []
    assert writes_in_place(parsed(reference__kv=source, reference__training__nets=source)) == []


@pytest.mark.parametrize(
    "source",
    [
        "count += 1",
        "counts[position] = 3",
        "x.__init__()",
        "x = x + y",
        "a._f_()",
        "def f(x: Tensor): ...\ndef g(x: list[int]):\n    x += [1]",
    ],
)
def test_ordinary_assignments_are_no_writes_in_place(source: str) -> None:
    assert writes_in_place(parsed(reference__engine=source)) == []
