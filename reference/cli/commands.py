"""The subcommands: each reads its inputs, decodes, and writes to standard output."""

import json
import sys
from contextlib import closing

from rich.console import Console

from reference import trace
from reference.cli import report
from reference.cli.arguments import Arguments
from reference.cli.compare import compare
from reference.cli.decoding import decode, request
from reference.cli.inputs import Inputs, read
from reference.cli.progress import Watch
from reference.engine import Output


def run(arguments: Arguments) -> int:
    """Runs a subcommand.

    Returns:
        The exit code.

    Raises:
        ParameterError: If an argument breaks a rule.
        CheckpointError: If the model's folder is at fault.
        NumericsError: If the model computes NaN.
        OSError: If a file cannot be read.
    """
    inputs = read(arguments)
    match arguments.command:
        case "compare":
            return _compare(arguments, inputs)
        case "generate":
            output = _decode(arguments, inputs)
            sys.stdout.write(inputs.texts.text(output.token_ids) + "\n")
        case _:
            output = _decode(arguments, inputs)
            sys.stdout.write(trace.to_jsonl(output.events))
    return 0


def _decode(arguments: Arguments, inputs: Inputs) -> Output:
    asked = request(arguments, inputs.model, inputs.prompts[0])
    with closing(Watch(f"decoding with {arguments.decoder}", asked.max_new_tokens)) as watch:
        watch.expect(1.0)
        return decode(arguments.decoder, asked, tracer=watch)


def _compare(arguments: Arguments, inputs: Inputs) -> int:
    share = 1 / len(inputs.prompts)
    with closing(Watch("comparing", arguments.max_new_tokens)) as watch:
        comparisons = [
            compare(request(arguments, inputs.model, prompt), watch, share=share) for prompt in inputs.prompts
        ]
    if arguments.json:
        sys.stdout.write(json.dumps(report.as_json(arguments, inputs, comparisons), indent=2, allow_nan=False) + "\n")
    else:
        report.show(Console(highlight=False), arguments, inputs, comparisons)
    return 1 if any(one.difference for one in comparisons) else 0
