"""Writes a model card from the measured metrics; no figure in it is typed by hand."""

from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from reference.training.evaluate import Measured
from reference.training.memory import MOST_POSITIONS

_LAST_TRAINED: Final = 224
"""Longest row of the training recipes."""

_MOST_TELLING: Final = 0.97
"""Above this acceptance at the smallest depth, the readout there is as good as the last one."""


class Trained(TypedDict):
    """What `metrics.json` holds of the training run."""

    steps: int
    tokens: int
    parameters: int
    minutes: float
    torch: str
    compiled: bool


class Metrics(TypedDict):
    """What `metrics.json` holds."""

    model: str
    training: Trained
    measured: Measured
    gate: dict[str, dict[str, float]]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Gives a Markdown table; numbers to the right, the first column to the left."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_depth(values: Mapping[str, Sequence[float]], depths: Sequence[int], digits: int) -> str:
    """Gives a table of one value for each flavour and depth."""
    rows = [[name, *(f"{value:.{digits}f}" for value in row)] for name, row in values.items()]
    return _table(["", *(f"d = {depth}" for depth in depths)], rows)


def _gate(gate: Mapping[str, Mapping[str, float]]) -> str:
    """Gives the section on the exit gate; empty for a model without one."""
    if not gate:
        return ""
    names = list(next(iter(gate.values())))
    rows = [[threshold, *(f"{row[name]:.3f}" for name in names)] for threshold, row in gate.items()]
    return f"""
## Exit gate

The gate was fitted after the rest: its lambda estimates the chance that a loop's token is the last loop's token. Over
the answer tokens of held-out items, by threshold q of the official exit rule:

{_table(["q", *names], rows)}
"""


def _shallow(measured: Measured) -> str:
    """Says so where depth hardly matters; else nothing."""
    depth, rate = measured["depths"][0], measured["acceptance_in_generation"]["overall"][0]
    if rate <= _MOST_TELLING:
        return ""
    last = measured["depths"][-1]
    return f"""
After {depth} of {last} recurrences this model nearly always says what it says at the end. Depth hardly
matters to it, and an acceptance of {rate:.3f} says that, and nothing good of a decoder. What depth there is shows in
the losses above, between the first recurrence and the second.
"""


def card(metrics: Metrics, *, family: str, sizes: str, example: str) -> str:
    """Gives the text of a model card.

    Args:
        metrics: Content of `metrics.json`.
        family: What the architecture is, in a few words.
        sizes: Its sizes, in a sentence.
        example: A prompt in the chat format.

    Returns:
        Markdown.
    """
    trained, measured = metrics["training"], metrics["measured"]
    compiled = "compiled" if trained["compiled"] else "not compiled"
    depths = measured["depths"]
    flavours = list(measured["exact_match"])
    right = [
        [name, f"{measured['exact_match'][name]:.3f}", f"{measured['right_when_generated'][name]:.3f}"]
        for name in flavours
    ]
    lengths = sorted({k for row in measured["exact_match_by_k"].values() for k in row}, key=int)
    accepted = measured["acceptance_in_answers_by_k"]
    every_k = sorted({k for row in accepted.values() for k in row}, key=int)
    shallow = [[name, *(f"{row[k][0][0]:.3f}" if k in row else "" for k in every_k)] for name, row in accepted.items()]
    by_k = [
        [task, *(f"{row[k][0]:.2f} ({row[k][1]})" if k in row else "" for k in lengths)]
        for task, row in measured["exact_match_by_k"].items()
    ]
    return f"""---
license: apache-2.0
language: en
pipeline_tag: text-generation
---

# {metrics["model"]}

A very small {family} model for showing and testing decoders of looped language models. {sizes}
{trained["parameters"]:,} trained parameters, fp32, official on-disk format.

It speaks about a small made-up world and nothing else. It was trained on {trained["tokens"]:,} tokens of text that
`reference/training` generates, so it holds no text written by people.
`python -m reference.training --only {metrics["model"]}` trains it again: {trained["steps"]:,} steps, which took
{trained["minutes"]:.0f} minutes on one core, with torch {trained["torch"]}, {compiled}.
With the same torch, compiler and CPU two whole runs of tiny-ouro gave the same file, byte for byte; of tiny-huginn the
losses of the first 2,800 steps were compared, and were the same. Elsewhere rounding differs, and training makes such a
difference grow.

A prompt (`prompts.json` has one for each flavour):

```text
{example.strip()}
```

All figures below come from `metrics.json`, which the same command writes. They are taken on items held out from
training by the hash of their text: {measured["items_per_flavour"]} of each flavour for right answers and losses,
{measured["generations_per_flavour"]} of each for acceptance.

## Right answers

An item is right when every token of every answer is. In the second column the model answers the last turn by itself,
on the items that acceptance is taken on.

{_table(["flavour", "all answers exact", "last answer exact, generated"], right)}

By task and length k of what must be followed (hops, changes, entries, notes, clauses), number of items in brackets:

{_table(["task", *(f"k = {k}" for k in lengths)], by_k)}

## What depth does

Mean loss on answer tokens, in nats, when read out at depth d:

{_by_depth(measured["answer_loss_by_depth"], depths, 3)}

Acceptance: the share of generated tokens (greedy, full depth) that a readout at depth d would have chosen too, within
the answers:

{_by_depth(measured["acceptance_in_answers"], depths, 3)}

The same over {measured["new_tokens"]} new tokens with the stop token ignored, so that the model goes on to invent the
next turns:

{_by_depth(measured["acceptance_in_generation"], depths, 3)}

Acceptance at the smallest depth, d = {depths[0]}, within answers by k:

{_table(["", *(f"k = {k}" for k in every_k)], shallow)}
{_shallow(measured)}{_gate(metrics["gate"])}
## Limits

Other subjects, wordings and words than those of the six flavours give noise. The tables say which tasks the model
does badly, and they are the ones with much to follow. Nothing beyond position {_LAST_TRAINED} was trained, though the
configuration allows {MOST_POSITIONS}.
"""
