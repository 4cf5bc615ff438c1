"""Retrains the shipped models: `python -m reference.training`."""

import argparse
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from reference.training.checkpoint import write_json
from reference.training.prompts import default_prompts
from reference.training.shipped import MODELS, Amount, make

SHIPPED_FOLDER: Final = Path(__file__).resolve().parent.parent / "models" / "pretrained"
"""Where the package keeps what it ships."""

_SMOKE: Final = Amount(num_items=4, num_generations=2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Trains the models, each in a process of its own, and writes them with the default prompts.

    Args:
        arguments: Command line without the program name; None takes the real one.

    Returns:
        Exit status: 0 if all went well.
    """
    parser = argparse.ArgumentParser(prog="python -m reference.training", description=__doc__)
    parser.add_argument("--only", choices=tuple(MODELS), help="train this model alone")
    parser.add_argument(
        "--out", type=Path, default=SHIPPED_FOLDER, help="folder to write to (default: the package's own)"
    )
    parser.add_argument("--steps-scale", type=float, default=1.0, help="share of the steps, for example 0.01 as a test")
    options = parser.parse_args(arguments)
    scale: float = options.steps_scale
    folder: Path = options.out
    amount = Amount() if scale == 1.0 else Amount(scale, _SMOKE.num_items, _SMOKE.num_generations)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "prompts.json", default_prompts())
    names = [options.only] if options.only else list(MODELS)
    context = get_context("spawn")
    processes = [context.Process(target=make, args=(name, folder, amount)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return int(any(process.exitcode != 0 for process in processes))


if __name__ == "__main__":
    raise SystemExit(main())
