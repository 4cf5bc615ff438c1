"""Shows a comparison: as text, tables and pictures for people, or as one object for machines."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Final, TypeAlias

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reference.cli.arguments import Arguments
from reference.cli.compare import Comparison, Sharing
from reference.cli.inputs import Inputs, Texts
from reference.cost.closed_forms import exact_ticks
from reference.figures import scenes, terminal
from reference.schedule import Accept, Reject, Start

MOST_TICKS: Final = 24
"""Ticks shown of a run."""
_MOST_LINES: Final = 8
"""Lines shown of a prompt."""
_NAMES: Final = MappingProxyType({"ar": "AR", "dtv": "DtV", "wfd": "WFD"})
_QUIET: Final = "dim"

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None


def show(console: Console, arguments: Arguments, inputs: Inputs, comparisons: Sequence[Comparison]) -> None:
    """Writes one comparison in full and the others in a line each."""
    comparison = most_telling(comparisons)
    others = [other for other in comparisons if other is not comparison]
    console.print(_setting(arguments, inputs, comparison))
    console.print()
    token_ids = comparison.runs["ar"].output.token_ids
    for name, ids, text in (
        ("prompt", comparison.prompt.token_ids, shortened(comparison.prompt.text)),
        ("text", token_ids, inputs.texts.text(token_ids)),
    ):
        console.print(Text(f"{name}, {_counted(len(ids), 'token')}", style=_QUIET))
        console.print(Text(_indented(text, console.width)))
        console.print()
    console.print(_agreement(comparison, inputs.texts))
    console.print()
    console.print(_table(comparison))
    console.print()
    if comparison.sharing is not None:
        console.print(_sharing_table(comparison, comparison.sharing))
        console.print()
    console.print(_remarks(comparison))
    if comparison.runs["wfd"].num_tokens:
        _draw(console, comparison, inputs.texts)
    if others:
        console.print(Text("\nThe other default prompts\n", style="bold"))
        console.print(_overview(others))


def as_json(arguments: Arguments, inputs: Inputs, comparisons: Sequence[Comparison]) -> Json:
    """Gives everything that was measured as one object; what does not exist is null."""
    model = inputs.model
    return {
        "model": arguments.model,
        "dtype": str(model.dtype).removeprefix("torch."),
        "arithmetic": arguments.arithmetic,
        "seed": arguments.seed,
        "kv_slots": arguments.kv_slots,
        "threads": torch.get_num_threads(),
        "comparisons": [_comparison_as_json(one, inputs.texts) for one in comparisons],
    }


def most_telling(comparisons: Sequence[Comparison]) -> Comparison:
    """Gives the first comparison whose picture shows a rejection, or the first of all."""

    def tells(comparison: Comparison) -> bool:
        rejection = scenes.first_rejection(comparison.runs["wfd"].output.events)
        return rejection is not None and rejection.tick < MOST_TICKS

    return next((one for one in comparisons if tells(one)), comparisons[0])


def _start(comparison: Comparison, decoder: str) -> Start:
    start = comparison.runs[decoder].output.events[0]
    assert isinstance(start, Start)
    return start


def _setting(arguments: Arguments, inputs: Inputs, comparison: Comparison) -> Text:
    wave, rounds = _start(comparison, "wfd"), _start(comparison, "dtv")
    flavour = f", {comparison.prompt.flavour}" if comparison.prompt.flavour else ""
    text = Text(f"{arguments.model}{flavour}", style="bold")
    how = (
        f"  T = {wave.recurrence_depth}, d = {wave.draft_depth}, gamma = {rounds.draft_length}, "
        f"{arguments.arithmetic}, {str(inputs.model.dtype).removeprefix('torch.')}"
        f"{'' if arguments.kv_slots is None else f', KV slots {arguments.kv_slots}'}"
    )
    return text.append(how, style="not bold")


def shortened(text: str) -> str:
    """Gives a text with its middle left out if it has many lines."""
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES:
        return "\n".join(lines)
    half = _MOST_LINES // 2
    return "\n".join((*lines[:half], f"... ({len(lines) - 2 * half} lines) ...", *lines[-half:]))


def _indented(text: str, width: int) -> str:
    lines = (
        textwrap.fill(line, width, initial_indent="  ", subsequent_indent="  ", drop_whitespace=False)
        for line in text.splitlines()
    )
    return "\n".join(line.rstrip() for line in lines)


def _agreement(comparison: Comparison, texts: Texts) -> Text:
    reference = comparison.runs["ar"].output
    difference = comparison.difference
    if difference is None:
        tokens = _counted(len(reference.token_ids), "token")
        if comparison.sharing is not None:
            return _agreement_with_sharing(comparison.sharing).append(f" {tokens} of AR.", style="default not bold")
        return Text("AR, DtV and WFD agree token by token", style="bold green").append(
            f": {tokens}, finish reason {reference.finish_reason}.", style="default not bold"
        )
    name = _NAMES[difference.decoder]
    text = Text(f"{name} and AR differ", style="bold red")
    text.append(
        f" at new token {difference.index}: AR gives {_quoted(difference.expected, texts)}, "
        f"{name} {_quoted(difference.found, texts)}. ",
        style="default not bold",
    )
    if difference.is_near_tie:
        text.append(f"A near tie: AR's choice is ahead by {difference.margin:.2g}, which rounding can undo (CONF-05).")
    else:
        text.append(f"Wrong: AR's choice is ahead by {difference.margin:.2g} (CONF-05).")
    return text


def _agreement_with_sharing(sharing: Sharing) -> Text:
    leaving = [_NAMES[name] for name, found in sharing.with_same_slots.items() if found.first_divergence is not None]
    if not leaving:
        return Text("AR, DtV and WFD agree token by token under the same sharing.", style="bold green")
    names = " and ".join(leaving)
    return Text(f"{names} and AR differ under the same sharing, as they may (SHR-08, SHR-09).", style="bold yellow")


def _sharing_table(comparison: Comparison, sharing: Sharing) -> Table:
    """Shows how far every decoder agrees with AR with the same slots, and with AR with slots of its own."""
    table = _empty_table()
    table.add_column("")
    for heading in ("agrees with AR,\nsame slots", "first\ndiffers", "agrees with AR,\nown slots", "first\ndiffers"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("KV bytes,\nof own", justify="right", no_wrap=True)
    for decoder, run in comparison.runs.items():
        cells: list[str] = []
        for found in (sharing.with_same_slots[decoder], sharing.with_own_slots[decoder]):
            first = "-" if found.first_divergence is None else str(found.first_divergence)
            cells += [f"{found.num_equal} of {found.num_tokens}", first]
        of_own = run.output.kv_bytes / sharing.own.kv_bytes if sharing.own.kv_bytes else math.nan
        table.add_row(_NAMES[decoder], *cells, f"{run.output.kv_bytes} ({_number(of_own)})")
    return table


def _quoted(token: int | None, texts: Texts) -> str:
    return "nothing" if token is None else f"{token} ({texts.label(token)!r})"


def _table(comparison: Comparison) -> Table:
    table = _empty_table()
    table.add_column("")
    for heading in (
        "\nticks",
        "ticks/\ntoken",
        "closed\nform",
        "\nexpected",
        "accep-\ntance",
        "lanes\nflushed",
        "rows/\ntick",
        "\ntime",
        "speedup\nticks",
        "speedup\ntime",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for decoder, run in comparison.runs.items():
        counts = run.output.counts
        table.add_row(
            _NAMES[decoder],
            str(counts.ticks),
            _number(run.ticks_per_token),
            _number(run.exact_ticks_per_token),
            _number(run.expected_ticks_per_token),
            _number(run.output.acceptance_rate),
            str(counts.flushed),
            _number(run.rows_per_tick),
            _time(run.seconds),
            _number(comparison.speedup_in_ticks(decoder)),
            _number(comparison.speedup_in_time(decoder)),
        )
    return table


def _remarks(comparison: Comparison) -> Text:
    wave = comparison.runs["wfd"]
    start = _start(comparison, "wfd")
    full, draft = start.recurrence_depth, start.draft_depth
    lines = ["Counts and times begin after the prefill, which gives the first token."]
    if comparison.sharing is not None:
        lines += [
            f"{_NAMES[decoder]}: {run.output.exactness}. {run.output.exactness_reason}."
            for decoder, run in comparison.runs.items()
            if run.output.exactness_reason
        ]
    if draft < full and wave.num_tokens:
        # The verdict on the last token decides no tick: after it there is nothing left to wait for.
        verdicts = [isinstance(event, Accept) for event in wave.output.events if isinstance(event, Accept | Reject)]
        accepted = sum(verdicts[: wave.num_tokens - 1])
        rejected = len(verdicts[: wave.num_tokens - 1]) - accepted
        rate = wave.output.acceptance_rate
        lines.append(
            f"Closed form of WFD (WFD-12): T + {accepted} d + {rejected} T = {full} + {accepted} x {draft} + "
            f"{rejected} x {full} = {exact_ticks(wave.output.events)} ticks for {_counted(wave.num_tokens, 'token')}."
        )
        if not math.isnan(rate):
            lines.append(
                f"Expected in a long run at this acceptance (COST-06): {rate:.2f} d + {1 - rate:.2f} T = "
                f"{wave.expected_ticks_per_token:.2f} ticks per token."
            )
    lines.append(
        f"Times: median of {_counted(comparison.num_timed, 'run')} after one to warm up, "
        f"{_counted(torch.get_num_threads(), 'thread')}."
    )
    return Text("\n".join(lines), style=_QUIET)


def _overview(comparisons: Sequence[Comparison]) -> Table:
    table = _empty_table()
    table.add_column("")
    table.add_column("\nthe three")
    # Over three columns: ticks per token.
    for heading in (
        "\ntokens",
        "accep-\ntance",
        "ticks\nAR",
        "per\nDtV",
        "token\nWFD",
        "speedup\nticks",
        "of WFD\ntime",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in comparisons:
        wave = one.runs["wfd"]
        table.add_row(
            one.prompt.flavour or "",
            "agree" if one.difference is None else Text("differ", style="bold red"),
            str(wave.output.counts.committed),
            _number(wave.output.acceptance_rate),
            *(_number(run.ticks_per_token) for run in one.runs.values()),
            _number(one.speedup_in_ticks("wfd")),
            _number(one.speedup_in_time("wfd")),
        )
    return table


def _empty_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)


def _draw(console: Console, comparison: Comparison, texts: Texts) -> None:
    events = comparison.runs["wfd"].output.events
    slots = (comparison.sharing.slots.by_recurrence if comparison.sharing else None) or ()
    glyphs = terminal.glyphs_for(console.encoding)
    console.print(Text("\nThe wavefront", style="bold").append(": position across, depth down\n", style="not bold"))
    console.print(terminal.states(scenes.key_scenes(events), width=console.width, glyphs=glyphs, slots=slots))
    console.print()
    console.print(terminal.legend(glyphs, has_shared_slots=bool(slots)))
    console.print(Text("\nTick by tick", style="bold").append(": how deep each position has come\n", style="not bold"))
    opening = scenes.opening(events, most_ticks=MOST_TICKS)
    console.print(terminal.history(opening, texts.label, width=console.width, glyphs=glyphs))


def _comparison_as_json(comparison: Comparison, texts: Texts) -> Json:
    output = comparison.runs["ar"].output
    start = _start(comparison, "dtv")
    difference = comparison.difference
    return {
        "flavour": comparison.prompt.flavour,
        "prompt": comparison.prompt.text,
        "prompt_ids": list(comparison.prompt.token_ids),
        "recurrence_depth": start.recurrence_depth,
        "draft_depth": start.draft_depth,
        "draft_length": start.draft_length,
        "max_new_tokens": start.max_new_tokens,
        "text": texts.text(output.token_ids),
        "agree": difference is None,
        "difference": None if difference is None else _without_nan(asdict(difference)),
        "timed_runs": comparison.num_timed,
        "sharing": None if comparison.sharing is None else _sharing_as_json(comparison.sharing),
        "decoders": {
            decoder: _without_nan(
                {
                    "token_ids": list(run.output.token_ids),
                    "finish_reason": str(run.output.finish_reason),
                    **asdict(run.output.counts),
                    "exactness": str(run.output.exactness),
                    "exactness_reason": run.output.exactness_reason,
                    "kv_bytes": run.output.kv_bytes,
                    "acceptance_rate": run.output.acceptance_rate,
                    "ticks_per_token": run.ticks_per_token,
                    "closed_form_ticks_per_token": run.exact_ticks_per_token,
                    "expected_ticks_per_token": run.expected_ticks_per_token,
                    "rows_per_tick": run.rows_per_tick,
                    "seconds": run.seconds,
                    "speedup_in_ticks": comparison.speedup_in_ticks(decoder),
                    "speedup_in_time": comparison.speedup_in_time(decoder),
                }
            )
            for decoder, run in comparison.runs.items()
        },
    }


def _sharing_as_json(sharing: Sharing) -> Json:
    return {
        "slots": sharing.slots.num_slots,
        "steps": len(sharing.slots.by_step),
        "slot_of_recurrence": None if sharing.slots.by_recurrence is None else list(sharing.slots.by_recurrence),
        "own_slots": {"token_ids": list(sharing.own.token_ids), "kv_bytes": sharing.own.kv_bytes},
        "agreement_with_ar_same_slots": {name: asdict(found) for name, found in sharing.with_same_slots.items()},
        "agreement_with_ar_own_slots": {name: asdict(found) for name, found in sharing.with_own_slots.items()},
    }


def _without_nan(record: dict[str, Json]) -> Json:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in record.items()}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
