"""What shared KV slots change: the text of every flavour, and the bytes and time of a tick.

Agreement is counted on held-out items of the shipped models' training data, against AR with the same slots and
against AR with slots of its own. A tick's time is that of one recurrent call of a full wavefront on cells that are
there already, own and shared slots in turn, so that slow moments of the machine meet all of them; only ratios of one
run mean anything.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Final

import torch

from reference import ar, dtv, models, wfd
from reference.bench.drawn import DrawnTensors
from reference.engine import Output
from reference.kv import KVCache
from reference.models import Huginn, HuginnConfig, Ouro
from reference.models.shipped import folder_of
from reference.models.tokenizer import load_tokenizer
from reference.provenance import Part
from reference.schedule import default_draft_depth
from reference.sharing import SlotMap, slot_map
from reference.training.data import FLAVOURS, held_out_items
from reference.training.tokenizer import prompt_text

DECODERS: Final = ("ar", "dtv", "wfd")
"""In the order of the report."""

_SEED: Final = 5
_DRAFT_LENGTH: Final = 8
_MAX_NEW_TOKENS: Final = 96
_LONGEST: Final = 8192
"""Most positions of the model with random weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One decoder with some number of slots on all items of a flavour."""

    model: str
    """Shipped name."""
    flavour: str
    """Of the items."""
    kv_slots: int
    """s."""
    decoder: str
    """`ar`, `dtv` or `wfd`."""
    num_items: int
    """Items decoded."""
    num_right: int
    """Items answered word for word."""
    same_slots: tuple[int, int]
    """Tokens equal to those of AR with the same slots, of how many; places behind the shorter text count as unequal."""
    own_slots: tuple[int, int]
    """The same for AR without sharing."""
    first_divergence_same: tuple[int, ...]
    """For every item that leaves AR with the same slots: the new token, from 0, at which it does."""
    first_divergence_own: tuple[int, ...]
    """The same for AR without sharing."""
    acceptance_rate: float | None
    """Accepted over judged drafts; None where none is judged."""
    ticks: int
    """Of all items."""
    equals_ar: bool
    """Whether every result claims to equal AR under the same sharing, or is exact (SHR-11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Ticks of a full wavefront."""

    model: str
    """Which model."""
    context: int
    """Positions whose cells are read."""
    draft_depth: int
    """d."""
    rows: int
    """Rows of a tick."""
    kv_slots: int
    """s."""
    kv_bytes_read: float
    """Bytes of cells that a tick reads in the recurrent block, on average over the ticks timed."""
    weight_bytes_read: int
    """Bytes of weights that it reads there."""
    bytes_of_own: float
    """Bytes read, weights included, over those with own slots."""
    time_of_own: float
    """Best time over the best with own slots, of the same run."""


def agreement(
    name: str, *, items_per_flavour: int, on_progress: Callable[[str], None] = lambda _: None
) -> list[Counted]:
    """Decodes held-out items with 1, 2, 4 and T slots.

    Args:
        name: A shipped model.
        items_per_flavour: Items of each flavour.
        on_progress: Receives a line before each flavour.
    """
    model, tokenizer = models.load(name), load_tokenizer(name)
    assert tokenizer is not None, name
    found = []
    for flavour in FLAVOURS:
        on_progress(f"{name}: {flavour}")
        items = held_out_items(flavour, items_per_flavour, Random(_SEED))  # noqa: S311 - any items, but the same ones
        prompts = [tokenizer.encode(prompt_text(item.turns)).ids for item in items]
        answers = [tokenizer.encode(f"{item.turns[-1].assistant}<|im_end|>").ids for item in items]
        own = [_decode("ar", model, prompt, None) for prompt in prompts]
        for kv_slots in budgets(model.recurrence_depth):
            outputs = {
                decoder: [_decode(decoder, model, prompt, kv_slots) for prompt in prompts] for decoder in DECODERS
            }
            found += [
                _counted(name, flavour, kv_slots, decoder, outputs[decoder], outputs["ar"], own, answers)
                for decoder in DECODERS
            ]
    return found


def weights_digest(name: str) -> str:
    """Gives the SHA-256 of a shipped model's weights, so that figures can be told to be of other ones."""
    files = sorted(folder_of(name).glob("*.safetensors"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def budgets(recurrence_depth: int) -> list[int]:
    """Gives the numbers of slots of the report: 1, 2, 4 and T, as far as they are below T."""
    return [*(slots for slots in (1, 2, 4) if slots < recurrence_depth), recurrence_depth]


def _decode(decoder: str, model: Ouro | Huginn, prompt: Sequence[int], kv_slots: int | None) -> Output:
    depth, budget = default_draft_depth(model.recurrence_depth), _MAX_NEW_TOKENS
    match decoder:
        case "ar":
            return ar.generate(model, prompt, max_new_tokens=budget, kv_slots=kv_slots)
        case "dtv":
            return dtv.generate(
                model, prompt, max_new_tokens=budget, draft_depth=depth, draft_length=_DRAFT_LENGTH, kv_slots=kv_slots
            )
        case _:
            return wfd.generate(model, prompt, max_new_tokens=budget, draft_depth=depth, kv_slots=kv_slots)


def _counted(
    name: str,
    flavour: str,
    kv_slots: int,
    decoder: str,
    outputs: Sequence[Output],
    same: Sequence[Output],
    own: Sequence[Output],
    answers: Sequence[Sequence[int]],
) -> Counted:
    with_same, with_own = (_equal(outputs, references) for references in (same, own))
    accepted = sum(output.counts.accepted for output in outputs)
    judged = accepted + sum(output.counts.rejected for output in outputs)
    return Counted(
        model=name,
        flavour=flavour,
        kv_slots=kv_slots,
        decoder=decoder,
        num_items=len(outputs),
        num_right=sum(output.token_ids == list(answer) for output, answer in zip(outputs, answers, strict=True)),
        same_slots=with_same[0],
        own_slots=with_own[0],
        first_divergence_same=with_same[1],
        first_divergence_own=with_own[1],
        acceptance_rate=accepted / judged if judged else None,
        ticks=sum(output.counts.ticks for output in outputs),
        equals_ar=all("may differ" not in output.exactness_reason for output in outputs),
    )


def _equal(outputs: Iterable[Output], references: Iterable[Output]) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Counts equal tokens and all tokens, and notes where texts part."""
    equal = total = 0
    parted = []
    for output, reference in zip(outputs, references, strict=True):
        same = [mine == other for mine, other in zip_longest(output.token_ids, reference.token_ids)]
        equal += sum(same)
        total += len(same)
        if not all(same):
            parted.append(same.index(False))
    return (equal, total), tuple(parted)


def random_huginn() -> Huginn:
    """Gives a Huginn-like model with random weights: 32 recurrences of 4 layers, 2 heads of 64, long contexts."""
    config = HuginnConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=352,
        num_heads=2,
        prelude_layers=2,
        core_layers=4,
        coda_layers=2,
        context_length=_LONGEST,
        rope_base=50000.0,
        eps=1e-6,
        recurrence_depth=32,
        dtype=torch.float32,
    )
    dtype, device = torch.float32, torch.device("cpu")
    return Huginn(config, DrawnTensors(config.tensor_shapes(), dtype=dtype, device=device), dtype=dtype, device=device)


@torch.inference_mode()
def ticks(name: str, model: Ouro | Huginn, *, contexts: Sequence[int], draft_depth: int, repeats: int) -> list[Timed]:
    """Times one recurrent call of a full wavefront at the end of each context.

    Args:
        name: What the model is called in the report.
        model: The model.
        contexts: Numbers of positions.
        draft_depth: d.
        repeats: Timed rounds; in each, every number of slots has `draft_depth` ticks or a multiple.
    """
    found = []
    for context in contexts:
        slots = {number: _slots(model, number) for number in budgets(model.recurrence_depth)}
        caches = {number: _filled(model, sharing, context, draft_depth) for number, sharing in slots.items()}
        seconds: dict[int, list[float]] = {number: [] for number in caches}
        for repeat in range(-1, repeats):  # the first round warms up
            for number, cache in caches.items():
                waves = _waves(model, draft_depth, context) * max(1, _LONGEST // context)  # short ticks in numbers
                spent = sum(_tick(model, cache, context, depths) for depths in waves)
                if repeat >= 0:
                    seconds[number].append(spent)
        own = model.recurrence_depth
        weights = weight_bytes(model)
        read = {number: kv_bytes_read(model, sharing, context, draft_depth) for number, sharing in slots.items()}
        found += [
            Timed(
                model=name,
                context=context,
                draft_depth=draft_depth,
                rows=max(map(len, _waves(model, draft_depth, context))),
                kv_slots=number,
                kv_bytes_read=read[number],
                weight_bytes_read=weights,
                bytes_of_own=(read[number] + weights) / (read[own] + weights),
                time_of_own=min(seconds[number]) / min(seconds[own]),
            )
            for number in caches
        ]
    return found


def kv_bytes_read(model: Ouro | Huginn, slots: SlotMap, context: int, draft_depth: int) -> float:
    """Computes the bytes of cells that a tick of a full wavefront reads, on average over `draft_depth` ticks.

    Every slot that some row reads is read once, up to the youngest row that reads it (SHR-05).
    """
    shapes = model.kv_shapes
    assert slots.by_recurrence is not None
    cells = 0
    waves = _waves(model, draft_depth, context)
    for depths in waves:
        reach: dict[int, int] = {}
        for row, depth in enumerate(depths):
            reach[slots.by_recurrence[depth]] = context - len(depths) + row + 1
        cells += sum(reach.values())
    per_cell = shapes.recurrent_layers * 2 * shapes.kv_heads * shapes.head_dim * model.dtype.itemsize
    return cells * per_cell / len(waves)


def weight_bytes(model: Ouro | Huginn) -> int:
    """Counts the bytes of the recurrent block's matrices."""
    block = ("transformer.core_block", "transformer.adapter", "model.layers")
    shapes = model.config.tensor_shapes()
    sizes = [torch.Size(shape).numel() for name, shape in shapes.items() if name.startswith(block)]
    return sum(sizes) * model.dtype.itemsize


def _slots(model: Ouro | Huginn, number: int) -> SlotMap:
    layers = model.kv_shapes.recurrent_layers
    return slot_map(number, recurrence_depth=model.recurrence_depth, recurrent_layers=layers)


def _waves(model: Ouro | Huginn, draft_depth: int, context: int) -> list[list[int]]:
    """Gives the recurrences of the rows of `draft_depth` ticks in a row, oldest first."""
    deepest = range(model.recurrence_depth - draft_depth, model.recurrence_depth)
    return [list(range(first, -1, -draft_depth))[:context] for first in deepest]


def _filled(model: Ouro | Huginn, sharing: SlotMap, context: int, draft_depth: int) -> KVCache:
    """Allocates cells and writes all of them: memory that was never written is not read from where it would be."""
    cache = KVCache(
        model.kv_shapes,
        recurrence_depth=model.recurrence_depth,
        num_positions=context,
        dtype=model.dtype,
        device=model.device,
        spacing=draft_depth,
        sharing=sharing if sharing.is_shared else None,
    )
    cache.fill(range(context), 0.5)
    return cache


def _tick(model: Ouro | Huginn, cache: KVCache, context: int, depths: Sequence[int]) -> float:
    """Gives the seconds of one recurrent call."""
    states = torch.full((len(depths), model.hidden_size), 0.5, dtype=model.dtype)
    positions = range(context - len(depths), context)
    began = time.perf_counter()
    model.recur(states, states, cache.rows(Part.RECURRENT, positions, depths))
    return time.perf_counter() - began


def main(argv: Sequence[str] | None = None) -> int:
    """Measures from the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="wfd bench sharing", description="Measure what shared KV slots change, and write it to a JSON file."
    )
    parser.add_argument("what", choices=("agreement", "ticks"), help="texts on the shipped models, or bytes and times")
    parser.add_argument("--json", type=Path, required=True, help="the file; its other part is kept")
    parser.add_argument("--items", type=int, default=8, help="items per flavour (default: 8)")
    parser.add_argument("--repeats", type=int, default=7, help="timed rounds (default: 7)")
    parser.add_argument("--longest", type=int, default=_LONGEST, help="longest context timed (default: 8192)")
    parser.add_argument("--threads", type=int, default=1, help="threads of the tensor library (default: 1)")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    found: list[Counted] | list[Timed]
    if arguments.what == "agreement":
        found = [
            row
            for name in models.SHIPPED
            for row in agreement(name, items_per_flavour=arguments.items, on_progress=_say)
        ]
    else:
        found = _all_ticks(longest=arguments.longest, repeats=arguments.repeats)
    kept: Mapping[str, object] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    written = {**kept, arguments.what: [asdict(row) for row in found]}
    if arguments.what == "agreement":
        written["weights"] = {name: weights_digest(name) for name in models.SHIPPED}
    arguments.json.write_text(_one_row_a_line(written), encoding="utf-8")
    return 0


def _one_row_a_line(figures: Mapping[str, object]) -> str:
    """Writes JSON that a person can compare: a line for every row of a table."""
    parts = []
    for name, content in figures.items():
        rows = ",\n".join(f"  {json.dumps(row)}" for row in content) if isinstance(content, list) else None
        parts.append(f'"{name}": ' + (f"[\n{rows}\n]" if rows else json.dumps(content)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _all_ticks(*, longest: int, repeats: int) -> list[Timed]:
    """Times the shipped models at their longest context, and the one with random weights at 1,024 and its doubles."""
    found = []
    for name in models.SHIPPED:
        model, depth = models.load(name), default_draft_depth(models.load(name).recurrence_depth)
        context = min(longest, model.context_length)
        found += ticks(name, model, contexts=[context], draft_depth=depth, repeats=repeats)
    contexts = [context for context in (1024, 2048, 4096, 8192) if context <= longest]
    return found + ticks("random Huginn", random_huginn(), contexts=contexts, draft_depth=4, repeats=repeats)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
