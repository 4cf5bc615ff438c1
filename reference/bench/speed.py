"""Wall-clock speed of AR, DtV and WFD beside their ticks, and of our AR beside the baseline.

Every decoder decodes the same prompts, one after the other within a repeat, so that slow moments of the machine meet
all of them; figures are medians over repeats and ratios are taken between medians of the same run. Only decoding is
timed, not the prompt pass, since ticks do not count it either.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from reference import ar, dtv, models, wfd
from reference.bench.baseline import Baseline
from reference.engine import Output
from reference.models.protocol import LoopedModel
from reference.models.shipped import default_prompts, folder_of
from reference.models.tokenizer import load_tokenizer
from reference.schedule import default_draft_depth

_BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is measured, and how often."""

    draft_depth: int
    """d."""
    draft_length: int
    """gamma of DtV."""
    max_new_tokens: int
    """Tokens per prompt; stop ids are ignored."""
    repeats: int
    """Timed runs of every decoder on every prompt."""
    threads: int
    """Threads of the tensor library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One decoder on all prompts."""

    decoder: str
    """`baseline`, `ar`, `dtv` or `wfd`."""
    tokens_per_second: float
    """Decoded tokens over the median time."""
    ticks_per_token: float | None
    """Recurrent calls per decoded token; None for the baseline."""
    acceptance_rate: float | None
    """Accepted over judged drafts; None where nothing is judged."""
    speedup_in_time: float
    """Time of AR over time of this decoder; see `measure`."""
    speedup_in_ticks: float | None
    """Ticks of AR over ticks of this decoder."""

    @property
    def kept(self) -> float | None:
        """The share of the speedup in ticks that is left in time."""
        return None if self.speedup_in_ticks is None else self.speedup_in_time / self.speedup_in_ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All rows of one model."""

    model: str
    """Shipped name or folder."""
    settings: Settings
    """What was measured."""
    num_prompts: int
    """How many prompts."""
    rows: tuple[Row, ...]
    """One per decoder."""


class _Clock:
    """Notes when the prompt pass ended."""

    def __init__(self) -> None:
        self._start: float | None = None

    def tick(self, *_: object) -> None:
        """Is called at every event; the first comes right after the prompt pass."""
        if self._start is None:
            self._start = time.perf_counter()

    def seconds(self) -> float:
        """Gives the seconds since the first event."""
        assert self._start is not None
        return time.perf_counter() - self._start


def measure(name: str, settings: Settings, *, on_progress: Callable[[str], None] = lambda _: None) -> Report:
    """Times all decoders on a model's prompts.

    On each prompt the decoders take turns, so that a machine whose speed changes soon changes it for all. What
    is compared are the times of one turn: a prompt's figure is the median over the repeats, a model's the mean over its
    prompts.

    Args:
        name: A shipped name, or a folder in official format.
        settings: What to measure.
        on_progress: Receives a line before each repeat.
    """
    torch.set_num_threads(settings.threads)
    model = models.load(name)
    baseline = Baseline(folder_of(name))
    prompts = _prompts(name, model, longest=model.context_length - settings.max_new_tokens)
    runs = _decoders(model, settings)
    seconds: dict[str, list[list[float]]] = {decoder: [[] for _ in prompts] for decoder in (_BASELINE, *runs)}
    outputs: dict[str, list[Output]] = {}
    for repeat in range(-1, settings.repeats):  # the first round warms up
        on_progress(f"{name}: {'warming up' if repeat < 0 else f'repeat {repeat + 1} of {settings.repeats}'}")
        outputs = {decoder: [] for decoder in runs}
        for index, prompt in enumerate(prompts):
            times = {_BASELINE: _time_baseline(baseline, prompt, settings)}
            for decoder, decode in runs.items():
                clock = _Clock()
                # The initial state is zero, as the baseline's is.
                out = decode(
                    prompt,
                    max_new_tokens=settings.max_new_tokens,
                    eos_token_id=None,
                    state_scale=0.0,
                    tracer=clock.tick,
                )
                times[decoder] = clock.seconds()
                outputs[decoder].append(out)
            if repeat >= 0:
                for decoder, spent in times.items():
                    seconds[decoder][index].append(spent)
    return _report(name, settings, seconds, outputs)


def _decoders(model: LoopedModel, settings: Settings) -> dict[str, Callable[..., Output]]:
    """Gives the decoders by name, each waiting for a prompt and what `measure` asks of all alike."""
    depth, length = settings.draft_depth, settings.draft_length
    return {
        "ar": partial(ar.generate, model),
        "dtv": partial(dtv.generate, model, draft_depth=depth, draft_length=length),
        "wfd": partial(wfd.generate, model, draft_depth=depth),
    }


def _time_baseline(baseline: Baseline, prompt: Sequence[int], settings: Settings) -> float:
    clock = _Clock()
    baseline.generate(prompt, max_new_tokens=settings.max_new_tokens, on_token=clock.tick)
    return clock.seconds()


def _prompts(name: str, model: LoopedModel, *, longest: int) -> list[list[int]]:
    """Gives the shipped prompts, or random ids for a model without a tokenizer."""
    tokenizer = load_tokenizer(name)
    if tokenizer is not None:
        return [tokenizer.encode(text).ids[-longest:] for text in default_prompts().values()]
    draw = random.Random(0)  # noqa: S311 - any prompts will do, as long as they stay the same
    return [[draw.randrange(model.vocab_size) for _ in range(16)] for _ in range(4)]


def _report(
    name: str, settings: Settings, seconds: dict[str, list[list[float]]], outputs: dict[str, list[Output]]
) -> Report:
    """Sums up.

    Args:
        name: The model.
        settings: What was measured.
        seconds: For every decoder and prompt the times of the repeats.
        outputs: For every decoder of ours the results of one repeat.
    """
    decoded = sum(out.counts.committed - 1 for out in outputs["ar"])
    ticks = {decoder: sum(out.counts.ticks for out in outs) for decoder, outs in outputs.items()}
    rows = []
    for decoder, spent in seconds.items():
        judged = accepted = 0
        for out in outputs.get(decoder, []):
            accepted += out.counts.accepted
            judged += out.counts.accepted + out.counts.rejected
        has_ticks = decoder in ticks
        rows.append(
            Row(
                decoder=decoder,
                tokens_per_second=decoded / sum(map(statistics.median, spent)),
                ticks_per_token=ticks[decoder] / decoded if has_ticks else None,
                acceptance_rate=accepted / judged if judged else None,
                speedup_in_time=1 / statistics.mean(map(_median_ratio, spent, seconds["ar"])),
                speedup_in_ticks=ticks["ar"] / ticks[decoder] if has_ticks else None,
            )
        )
    return Report(model=name, settings=settings, num_prompts=len(outputs["ar"]), rows=tuple(rows))


def _median_ratio(spent: Sequence[float], others: Sequence[float]) -> float:
    """Gives the median over turns of one time over the other."""
    return statistics.median(one / other for one, other in zip(spent, others, strict=True))


def _print(report: Report, console: Console) -> None:
    settings = report.settings
    table = Table(
        title=f"{report.model}: d = {settings.draft_depth}, gamma = {settings.draft_length}, "
        f"{report.num_prompts} prompts x {settings.max_new_tokens} tokens, "
        f"median of {settings.repeats}, {settings.threads} thread(s)"
    )
    table.add_column("decoder")
    for column in ("tokens/s", "ticks/token", "acceptance", "speedup, ticks", "speedup, time", "kept"):
        table.add_column(column, justify="right")
    for row in report.rows:
        numbers = (
            row.tokens_per_second,
            row.ticks_per_token,
            row.acceptance_rate,
            row.speedup_in_ticks,
            row.speedup_in_time,
            row.kept,
        )
        table.add_row(row.decoder, *("" if number is None else f"{number:.3g}" for number in numbers))
    console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark from the command line; gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="wfd bench",
        description="Time AR, DtV and WFD against each other and AR against plain torch.nn modules.",
    )
    parser.add_argument("--model", action="append", help="shipped name or folder; may be repeated (default: shipped)")
    parser.add_argument("--draft-depth", type=int, help="d (default: an eighth of T, at least 1)")
    parser.add_argument("--draft-length", type=int, default=8, help="gamma of DtV (default: 8)")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="tokens per prompt (default: 128)")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs (default: 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of the tensor library (default: 2)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    console = Console()
    reports = []
    for name in arguments.model or models.SHIPPED:
        depth = models.load(name).recurrence_depth
        settings = Settings(
            draft_depth=default_draft_depth(depth) if arguments.draft_depth is None else arguments.draft_depth,
            draft_length=arguments.draft_length,
            max_new_tokens=arguments.max_new_tokens,
            repeats=arguments.repeats,
            threads=arguments.threads,
        )
        with console.status("") as status:
            report = measure(name, settings, on_progress=status.update)
        _print(report, console)
        reports.append(report)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(report) for report in reports], indent=2) + "\n")
    return 0
