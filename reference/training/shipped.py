"""Trains, measures and writes the two models that the package ships."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import torch
from tokenizers import Tokenizer

from reference.training.batches import batches
from reference.training.card import Metrics, Trained, card
from reference.training.checkpoint import save_checkpoint, write_json
from reference.training.evaluate import evaluate
from reference.training.gate import fit_gate, measure_gate
from reference.training.huginn_growth import grow_core
from reference.training.huginn_net import HEAD, HuginnShape, huginn_config
from reference.training.huginn_training import HuginnTrainee
from reference.training.optimisation import Recipe, Stage, Trainee, optimise
from reference.training.ouro_net import OuroShape, ouro_config
from reference.training.ouro_training import OuroTrainee
from reference.training.prompts import default_prompts
from reference.training.readouts import DepthReader, HuginnReader, OuroReader
from reference.training.tokenizer import END_OF_TEXT_ID, END_OF_TURN_ID, train_tokenizer

OURO_SHAPE: Final = OuroShape(num_layers=3, num_kv_heads=2, intermediate_size=512)
"""Sizes of tiny-ouro."""

HUGINN_SHAPE: Final = HuginnShape(hidden_size=96, intermediate_size=288, num_core=6)
"""Sizes of tiny-huginn: a core of many narrow blocks, beside which prelude and coda cost little."""

HUGINN_FIRST_CORE: Final = 2
"""Blocks that its core starts training with."""

_SORTING: Final = (1.0, 1.0, 6.0, 5.0, 3.0, 1.0)
"""Flavour weights with more of what is learned last: sorting the entries of a list, chains of hops."""

_HOPPING: Final = (1.5, 1.0, 6.5, 7.0, 3.0, 1.0)
"""The same with more chains, which tiny-huginn is slower to learn."""

_TRANSLATING: Final = (2.0, 5.0, 3.0, 3.0, 3.0, 2.0)
"""Flavour weights with more translations, whose nouns tiny-huginn is slow to learn."""

OURO_RECIPE: Final = Recipe(
    stages=(
        Stage(3200, 10, 112, recurrences=(2,)),
        Stage(2150, 8, 112, recurrences=(4,), weights=_SORTING),
        Stage(750, 4, 224, recurrences=(4,), weights=_SORTING),
    ),
    learning_rate=5e-3,
    table_learning_rate=5e-3,
    seed=0,
)
"""How tiny-ouro is trained.

Short dialogues come first, where there is less to look at and copying is learned sooner, and with two loops, which cost
half as much; the other two then learn what two cannot do.
"""

HUGINN_FIRST_RECIPE: Final = Recipe(
    stages=(Stage(2800, 10, 112, recurrences=(1,), weights=_TRANSLATING),),
    learning_rate=1.5e-3,
    table_learning_rate=1e-3,
    seed=0,
    decay_share=0.0,
)
"""How tiny-huginn is trained while its core is shallow.

A core of eight blocks of width 64 stood at a loss of 0.44 after 1,600 such steps and at 0.50 in a second run, and never
learned to copy; two blocks of width 96 stood at 0.33, and their steps cost less. The learning rate is a third of
tiny-ouro's. Every sum in its blocks is normed, so nothing bounds what a branch adds but the size of its weights: in
another shape the loss after 600 steps was 0.65 at 5e-3 and 0.47 at 1.5e-3, in two runs that differed in the scale of
their first weights too.
"""

HUGINN_RECIPE: Final = Recipe(
    stages=(
        Stage(2000, 10, 112, recurrences=(1,), weights=_HOPPING),
        Stage(1100, 8, 112, recurrences=(2, 3), weights=_HOPPING),
        Stage(380, 4, 224, recurrences=(2, 3, 4, 6, 8, 16), weights=_HOPPING),
    ),
    learning_rate=1.5e-3,
    table_learning_rate=1e-3,
    seed=1,
    decay_share=0.8,
)
"""How it is trained once grown: few recurrences first, and any number at last, so that the state comes to rest."""

_GATE_STEPS: Final = 300
_GATE_BATCHES: Final = 20
_GATE_SEED: Final = 900


@dataclass(frozen=True, slots=True)
class Amount:
    """How much work to do; less than all of it makes a smoke test."""

    steps_scale: float = 1.0
    """Share of the training steps."""
    num_items: int = 200
    """Held-out items of each flavour for right answers and losses."""
    num_generations: int = 50
    """How many of them the model also answers freely."""


def _train(trainee: Trainee, recipe: Recipe, tokenizer: Tokenizer, label: str) -> Trained:
    """Trains and says what was done."""
    minutes = optimise(trainee, recipe.work(tokenizer), recipe, label)
    sizes = {id(tensor): tensor.numel() for tensor in trainee.parameters.values() if tensor.requires_grad}
    return Trained(
        steps=recipe.steps,
        tokens=recipe.tokens,
        parameters=sum(sizes.values()),
        minutes=round(minutes, 1),
        torch=torch.__version__,
        compiled=trainee.is_compiled,
    )


def _together(first: Trained, second: Trained) -> Trained:
    """Says what was done by two runs of which the second went on with what the first had trained."""
    return Trained(
        steps=first["steps"] + second["steps"],
        tokens=first["tokens"] + second["tokens"],
        parameters=second["parameters"],
        minutes=round(first["minutes"] + second["minutes"], 1),
        torch=second["torch"],
        compiled=first["compiled"] and second["compiled"],
    )


def _report(folder: Path, metrics: Metrics, *, family: str, sizes: str) -> None:
    """Writes metrics and card."""
    write_json(folder / "metrics.json", dict(metrics))
    text = card(metrics, family=family, sizes=sizes, example=default_prompts()["rag"])
    (folder / "README.md").write_text(text, encoding="utf-8")


def _metrics(
    folder: Path,
    reader: DepthReader,
    tokenizer: Tokenizer,
    *,
    trained: Trained,
    gate: dict[str, dict[str, float]],
    amount: Amount,
) -> Metrics:
    """Measures a model."""
    measured = evaluate(reader, tokenizer, num_items=amount.num_items, num_generations=amount.num_generations)
    return Metrics(model=folder.name, training=trained, measured=measured, gate=gate)


def make_ouro(folder: Path, tokenizer: Tokenizer, amount: Amount) -> None:
    """Trains tiny-ouro and writes it.

    Args:
        folder: Where to.
        tokenizer: What `train_tokenizer` gave.
        amount: How much work to do.
    """
    shape = OURO_SHAPE
    recipe = OURO_RECIPE.scaled(amount.steps_scale)
    trainee = OuroTrainee(shape, recipe.seed)
    trained = _train(trainee, recipe, tokenizer, folder.name)
    parameters = {name: tensor.detach() for name, tensor in trainee.tensors().items()}
    rows = recipe.stages[-1]
    fitting = batches(tokenizer, seed=_GATE_SEED, batch=rows.batch, seq=rows.seq)
    fit_gate(parameters, shape, fitting, steps=max(1, round(_GATE_STEPS * amount.steps_scale)))
    testing = batches(tokenizer, seed=_GATE_SEED, batch=rows.batch, seq=rows.seq, held_out=True)
    gate = measure_gate(parameters, shape, testing, num_batches=_GATE_BATCHES)
    config = ouro_config(shape, bos_token_id=END_OF_TEXT_ID, eos_token_id=END_OF_TURN_ID)
    save_checkpoint(folder, parameters=parameters, config=config, tokenizer=tokenizer)
    reader = OuroReader(parameters, shape)
    sizes = (
        f"Layers in the loop: {shape.num_layers}, run {shape.num_loops} times; width {shape.hidden_size}, "
        f"{shape.num_heads} heads, {shape.vocab_size} token rows, embedding and head untied;"
    )
    metrics = _metrics(folder, reader, tokenizer, trained=trained, gate=gate, amount=amount)
    _report(folder, metrics, family="Ouro", sizes=sizes)


def make_huginn(folder: Path, tokenizer: Tokenizer, amount: Amount) -> None:
    """Trains tiny-huginn and writes it.

    Args:
        folder: Where to.
        tokenizer: What `train_tokenizer` gave.
        amount: How much work to do.
    """
    shape = HUGINN_SHAPE
    recipes = [recipe.scaled(amount.steps_scale) for recipe in (HUGINN_FIRST_RECIPE, HUGINN_RECIPE)]
    first = HuginnTrainee(replace(shape, num_core=HUGINN_FIRST_CORE), recipes[0].seed)
    began = _train(first, recipes[0], tokenizer, f"{folder.name}, {HUGINN_FIRST_CORE} core blocks")
    trainee = HuginnTrainee(shape, recipes[1].seed, grow_core(first.tensors(), shape.num_core))
    trained = _together(began, _train(trainee, recipes[1], tokenizer, folder.name))
    parameters = {name: tensor.detach() for name, tensor in trainee.tensors().items()}
    config = huginn_config(shape, bos_token_id=END_OF_TEXT_ID, eos_token_id=END_OF_TURN_ID)
    # The head is the embedding; the official class writes it once as well.
    stored = {name: tensor for name, tensor in parameters.items() if name != HEAD}
    save_checkpoint(folder, parameters=stored, config=config, tokenizer=tokenizer)
    reader = HuginnReader(parameters, shape)
    sizes = (
        f"Blocks: {shape.num_prelude} in the prelude, {shape.num_core} in the core, run {shape.recurrence_depth} "
        f"times, {shape.num_coda} in the coda; the core had {HUGINN_FIRST_CORE} for the first {recipes[0].steps:,} "
        f"steps. Width {shape.hidden_size}, {shape.num_heads} heads, {shape.vocab_size} token rows;"
    )
    metrics = _metrics(folder, reader, tokenizer, trained=trained, gate={}, amount=amount)
    _report(folder, metrics, family="Huginn", sizes=sizes)


MODELS: Final[Mapping[str, Callable[[Path, Tokenizer, Amount], None]]] = MappingProxyType(
    {"tiny-ouro": make_ouro, "tiny-huginn": make_huginn}
)
"""How to make each shipped model."""


def make(name: str, folder: Path, amount: Amount) -> None:
    """Makes one model with one thread: at this size a second one would only slow down the other model's process.

    Args:
        name: A key of `MODELS`.
        folder: The checkpoint is written into a folder of that name in it.
        amount: How much work to do.
    """
    torch.set_num_threads(1)
    MODELS[name](folder / name, train_tokenizer(), amount)
