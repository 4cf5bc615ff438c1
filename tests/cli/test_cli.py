"""The command line: what it prints, how it ends, and how it says no."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from rich.text import Text
from tokenizers import AddedToken, Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel

from reference import cli, models, trace
from reference.cli import arguments, commands, compare, inputs, progress, report
from reference.cli.decoding import Request, Tracer, decode, request
from reference.counts import count
from reference.engine import Output, ignore
from reference.errors import NumericsError
from reference.models.scripted import ScriptedModel
from reference.models.shipped import default_prompts
from reference.schedule import Commit
from reference.training.tokenizer import user_text
from tests.commands import Run
from tests.project.sources import REPOSITORY

OURO = str(REPOSITORY / "tests" / "golden" / "ouro-tiny")
WORDS = ("the", " cat", " sat", " on", "\n", " mat", "<end>", " gardener")


class Spelled(inputs.Texts):
    """The words of the scripted model."""

    def text(self, token_ids: Sequence[int]) -> str:
        """Gives the words."""
        return "".join(WORDS[token] for token in token_ids)

    def label(self, token: int) -> str:
        """Gives the word."""
        return WORDS[token]


def says_next(prefix: tuple[int, ...], depth: int) -> list[float]:
    """Counts on; at shallow depth it says 0 after 3."""
    token = 0 if depth < 4 and prefix[-1] == 3 else (prefix[-1] + 1) % 8
    return [float(token == other) for other in range(8)]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Puts the scripted model behind the command; `flavours` are its default prompts."""
    table = SimpleNamespace(function=says_next, eos=frozenset(), dtype=torch.float64)
    prompts = [inputs.Prompt([0] * size, "say " * size, name) for size, name in ((1, "chat"), (2, "rag"))]

    def read(given: arguments.Arguments) -> inputs.Inputs:
        model = ScriptedModel(
            table=table.function, vocab_size=8, recurrence_depth=4, eos_token_ids=table.eos, dtype=table.dtype
        )
        wanted = [prompt for prompt in prompts if given.flavour in {None, prompt.flavour}]
        return inputs.Inputs(model, Spelled(None), tuple(wanted))

    table.read = read
    monkeypatch.setattr(commands, "read", read)
    monkeypatch.setattr(compare, "_MOST_TIMED", 1)
    return table


@pytest.fixture
def speaking_folder(tmp_path: Path) -> str:
    """Makes a folder of the tiny Ouro checkpoint with a tokenizer of a few words."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(Path(OURO, name))
    tokenizer = Tokenizer(WordLevel({"[unk]": 0, "a": 1, "b": 2, "c": 3}, unk_token="[unk]"))  # noqa: S106 - no password
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([AddedToken("<s>", special=True)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path)


@pytest.mark.usefixtures("scripted")
def test_compare_shows_text_agreement_numbers_and_the_wavefront(wfd: Run) -> None:
    code, out, err = wfd("compare", "--flavour", "chat", "--max-new-tokens", "20")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("tiny-ouro, chat  T = 4, d = 1, gamma = 8, batched, float64")
    assert "   cat sat on" in lines
    assert "AR, DtV and WFD agree token by token: 20 tokens, finish reason length." in lines
    rows = {line.split()[0]: line.split() for line in lines if line.startswith(("AR ", "DtV ", "WFD "))}
    assert rows["AR"][1:8] == ["76", "4.00", "4.00", "4.00", "-", "0", "1.00"]
    assert rows["DtV"][1:8] == ["35", "1.84", "1.84", "2.04", "0.89", "7", "2.97"]
    assert rows["WFD"][1:8] == ["28", "1.47", "1.47", "1.33", "0.89", "6", "3.14"]
    assert rows["WFD"][10] == "2.71"
    assert "T + 16 d + 2 T = 4 + 16 x 1 + 2 x 4 = 28 ticks" in " ".join(out.split())
    assert "0.89 d + 0.11 T = 1.33 ticks per token" in " ".join(out.split())
    assert "tick 4: 4 rows            tick 6: 3 flushed         tick 7: 1 row" in lines
    assert "   4  ■4     ◆3     ●2     ●1     ·      ·      ·        ✓ sat" in lines


@pytest.mark.spec("SHR-11")
def test_compare_with_shared_slots_shows_both_agreements_and_what_is_overwritten(wfd: Run) -> None:
    code, out, _ = wfd(
        "compare", "--model", OURO, "--ids", "5 6 7", "--kv-slots", "1", "--max-new-tokens", "12", columns=120
    )
    assert code == 0
    assert "KV slots 1" in out
    assert "agrees with AR,   first agrees with AR,   first" in out
    assert "same slots differs       own slots differs" in out
    assert "~ overwritten: recurrences with the same letter share a KV slot" in out
    assert "AR: approximate. 3 KV slots instead of 12 in the recurrent block (SHR-11): equals AR" in out
    shares = [line.split()[-1] for line in out.splitlines() if line.endswith("(0.25)")]
    assert len(shares) == 3  # AR, DtV and WFD each hold a quarter of the cells


@pytest.mark.spec("SHR-08", "SHR-11")
@pytest.mark.parametrize("depth,claimed", [("3", True), ("1", False)])
def test_json_tells_agreement_with_ar_on_the_same_slots_and_on_its_own(wfd: Run, depth: str, *, claimed: bool) -> None:
    words = ("--model", OURO, "--ids", "5 6 7", "--kv-slots", "1", "--draft-depth", depth, "--max-new-tokens", "12")
    _, out, _ = wfd("compare", *words, "--json")
    said = json.loads(out)
    assert said["kv_slots"] == 1
    (one,) = said["comparisons"]
    sharing = one["sharing"]
    assert (sharing["slots"], sharing["steps"], sharing["slot_of_recurrence"]) == (3, 12, [0, 0, 0, 0])
    same, own = sharing["agreement_with_ar_same_slots"], sharing["agreement_with_ar_own_slots"]
    assert same["ar"] == {"num_equal": 12, "first_divergence": None, "num_tokens": 12}
    texts = {name: run["token_ids"] for name, run in one["decoders"].items()}
    for name, found in own.items():
        equal = [mine == other for mine, other in zip(sharing["own_slots"]["token_ids"], texts[name], strict=True)]
        assert found["num_equal"] == sum(equal)
        assert found["first_divergence"] == (None if all(equal) else equal.index(False))
    wave = one["decoders"]["wfd"]
    assert wave["exactness"] == "approximate"
    assert ("equals AR under the same sharing" in wave["exactness_reason"]) == (claimed or wave["accepted"] == 0)
    assert wave["kv_bytes"] * 4 == sharing["own_slots"]["kv_bytes"]
    if claimed:
        assert same["wfd"]["first_divergence"] is None


@pytest.mark.spec("SHR-01")
def test_slots_that_are_none_are_refused_in_one_line(wfd: Run) -> None:
    code, _, err = wfd("generate", "--model", OURO, "--ids", "5", "--kv-slots", "0")
    assert (code, err) == (2, "wfd: error: kv_slots=0 is below 1 (SHR-01)\n")
    code, _, err = wfd("trace", "--model", OURO, "--ids", "5", "--kv-slots", "half")
    assert code == 2
    assert "kv_slots='half' is no strategy" in err


def test_a_strategy_is_named_on_the_command_line(wfd: Run) -> None:
    words = ("--model", OURO, "--ids", "5 6", "--max-new-tokens", "8", "--arithmetic", "exact", "--decoder", "ar")
    by_name, by_number = (wfd("generate", *words, "--kv-slots", slots) for slots in ("compress-s3", "1"))
    assert by_name == by_number


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_of_compare_is_wider_than_the_terminal(wfd: Run, columns: int) -> None:
    _, out, _ = wfd("compare", "--max-new-tokens", "20", columns=columns)
    assert max(len(line) for line in out.splitlines()) <= columns


@pytest.mark.usefixtures("scripted")
def test_compare_without_a_prompt_shows_one_default_prompt_and_lists_the_others(wfd: Run) -> None:
    code, out, _ = wfd("compare", "--max-new-tokens", "20")
    assert code == 0
    assert "tiny-ouro, chat" in out
    overview = out[out.index("The other default prompts") :]
    assert [line.split()[:4] for line in overview.splitlines()[-1:]] == [["rag", "agree", "20", "0.89"]]


def test_the_prompt_shown_in_full_is_the_first_with_a_rejection_to_see(wfd: Run, scripted: SimpleNamespace) -> None:
    def wrong_for_long_prompts(prefix: tuple[int, ...], depth: int) -> list[float]:
        return says_next(prefix, 4 if prefix[:2] != (0, 0) else depth)

    scripted.function = wrong_for_long_prompts
    _, out, _ = wfd("compare", "--max-new-tokens", "20")
    assert "tiny-ouro, rag" in out


@pytest.mark.usefixtures("scripted")
def test_output_to_a_pipe_has_no_colour(wfd: Run) -> None:
    _, out, _ = wfd("compare", "--max-new-tokens", "9")
    assert "\x1b" not in out


@pytest.mark.usefixtures("scripted")
def test_json_is_one_object_and_says_null_where_there_is_no_number(wfd: Run) -> None:
    code, out, err = wfd("compare", "--json", "--max-new-tokens", "20")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert [one["flavour"] for one in said["comparisons"]] == ["chat", "rag"]
    one = said["comparisons"][0]
    assert one["agree"] is True
    assert one["difference"] is None
    assert one["decoders"]["ar"]["acceptance_rate"] is None
    wave = one["decoders"]["wfd"]
    assert (wave["ticks"], wave["accepted"], wave["rejected"], wave["flushed"]) == (28, 16, 2, 6)
    assert wave["ticks_per_token"] == wave["closed_form_ticks_per_token"] == 28 / 19
    assert wave["speedup_in_ticks"] == 76 / 28


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("budget", ["0", "1", "2"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_compare_works_where_there_is_hardly_anything_to_compare(wfd: Run, budget: str, form: tuple[str, ...]) -> None:
    code, out, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", budget, *form)
    assert code == 0
    assert "nan" not in out.lower()


@pytest.mark.usefixtures("scripted")
def test_compare_draws_nothing_wrong_at_full_draft_depth(wfd: Run) -> None:
    code, out, _ = wfd("compare", "--flavour", "chat", "--draft-depth", "4", "--max-new-tokens", "3")
    assert code == 0
    assert "Closed form" not in out
    assert "= sat" in out


def test_decoders_that_disagree_end_with_code_1_and_the_place(
    wfd: Run, scripted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    del scripted

    def other_from_the_third_token(decoder: str, asked: Request, *, tracer: Tracer = ignore) -> Output:
        output = decode(decoder, asked, tracer=tracer)
        if decoder == "wfd":
            output.token_ids[2:] = [7] * len(output.token_ids[2:])
        return output

    monkeypatch.setattr(compare, "decode", other_from_the_third_token)
    code, out, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", "9")
    assert code == 1
    assert (
        "WFD and AR differ at new token 2: AR gives 3 (' on'), WFD 7 (' gardener'). Wrong: AR's choice is ahead by 1"
        in (" ".join(out.split()))
    )
    code, out, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", "9", "--json")
    assert code == 1
    assert json.loads(out)["comparisons"][0]["difference"] == {
        "decoder": "wfd",
        "index": 2,
        "expected": 3,
        "found": 7,
        "margin": 1.0,
        "is_near_tie": False,
    }


def test_a_difference_that_rounding_can_make_is_called_a_near_tie(
    wfd: Run, scripted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.function = lambda prefix, depth: [1.0, 1.0 - 1e-12, *says_next(prefix, depth)[2:]]

    def other_and_shorter(decoder: str, asked: Request, *, tracer: Tracer = ignore) -> Output:
        output = decode(decoder, asked, tracer=tracer)
        if decoder == "dtv":
            output.token_ids[:] = [1]
        return output

    monkeypatch.setattr(compare, "decode", other_and_shorter)
    code, out, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", "4")
    assert code == 1
    assert "A near tie: AR's choice is ahead by 1e-12" in " ".join(out.split())


@pytest.mark.parametrize("longer", ["ar", "wfd"])
def test_a_decoder_that_ends_elsewhere_disagrees(
    wfd: Run, scripted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, longer: str
) -> None:
    del scripted

    def cut(decoder: str, asked: Request, *, tracer: Tracer = ignore) -> Output:
        output = decode(decoder, asked, tracer=tracer)
        if (decoder == "ar") != (longer == "ar"):
            del output.token_ids[3:]
        return output

    monkeypatch.setattr(compare, "decode", cut)
    code, out, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", "6")
    assert code == 1
    assert "AR gives nothing" in out or "WFD nothing" in out or "DtV nothing" in out


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("decoder", arguments.DECODERS)
def test_generate_prints_the_text_alone(wfd: Run, decoder: str) -> None:
    code, out, err = wfd("generate", "--decoder", decoder, "--max-new-tokens", "3")
    assert (code, out, err) == (0, " cat sat on\n", "")


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize("decoder", arguments.DECODERS)
def test_trace_prints_events_that_can_be_read_back(wfd: Run, decoder: str) -> None:
    code, out, err = wfd("trace", "--decoder", decoder, "--max-new-tokens", "9")
    assert (code, err) == (0, "")
    events = trace.from_jsonl(out)
    assert count(events).committed == 9
    assert events[0] == trace.from_jsonl(out.splitlines()[0])[0]


def test_ids_need_no_tokenizer(wfd: Run) -> None:
    code, out, _ = wfd("generate", "--model", OURO, "--ids", "1, 2 3", "--max-new-tokens", "4")
    assert code == 0
    assert len(out.split()) == 4
    assert all(word.isdigit() for word in out.split())
    code, out, _ = wfd("compare", "--model", OURO, "--ids", "1 2 3", "--max-new-tokens", "4", "--arithmetic", "exact")
    assert code == 0
    assert "gamma = 8, exact, float32" in out


def test_a_folder_with_a_tokenizer_reads_and_writes_text(wfd: Run, speaking_folder: str) -> None:
    code, out, _ = wfd("compare", "<s> a b", "--model", speaking_folder, "--max-new-tokens", "2", "--json")
    said = json.loads(out)["comparisons"][0]
    assert code == 0
    assert said["prompt_ids"] == [4, 1, 2]
    code, piped, _ = wfd(
        "compare", "-", "--model", speaking_folder, "--max-new-tokens", "2", "--json", stdin="<s> a b\n"
    )
    assert code == 0
    assert json.loads(piped)["comparisons"][0]["prompt_ids"] == [4, 1, 2]


def test_a_model_deeper_than_trained_is_warned_about_once(wfd: Run) -> None:
    words = ("compare", "--model", OURO, "--ids", "1", "--recurrence-depth", "5", "--max-new-tokens", "2")
    code, _, err = wfd(*words)
    assert code == 0
    assert err == "wfd: warning: recurrence_depth=5 is deeper than the model was trained for (4)\n"


@pytest.mark.parametrize(
    "words,complaint",
    [
        (("compare", "--model", OURO, "--ids", "1", "--draft-depth", "5"), "draft_depth=5 exceeds recurrence_depth=4"),
        (("compare", "--model", OURO, "--ids", "1", "--draft-length", "0"), "draft_length=0 is below 1 (DTV-02)"),
        (("compare", "--model", OURO, "--ids", "1 256"), "outside the vocabulary of 256 tokens (SMP-07)"),
        (("compare", "--model", OURO, "--ids", ""), "the prompt is empty (SMP-05)"),
        (("generate", "--model", OURO, "--ids", "1", "--max-new-tokens", "-1"), "max_new_tokens=-1 is below 0"),
        (("generate", "--model", OURO, "--ids", "1", "--seed", "-1"), "state_seed=-1"),
        (("generate", "--model", OURO, "hello"), "no tokenizer.json: give the prompt as --ids"),
        (("generate", "--model", OURO), "no default prompt: give a PROMPT, --ids or --flavour"),
        (("generate", "--model", "no-such-model", "--ids", "1"), "no-such-model"),
        (("generate", "--model", OURO, "--flavour", "sonnet"), "flavour='sonnet' is none of"),
        (("compare", "--draft-depth", "x"), "invalid int value: 'x' (try: wfd compare --help)"),
        (("compare", "--ids", "1 x"), "not a list of whole numbers: '1 x' (try: wfd compare --help)"),
        (("compare", "a", "--ids", "1"), "not allowed with argument PROMPT"),
        (("generate", "--decoder", "beam"), "invalid choice: 'beam'"),
        (("contrast",), "invalid choice: 'contrast'"),
        ((), "the following arguments are required: COMMAND (try: wfd --help)"),
    ],
)
def test_a_mistake_ends_with_code_2_and_one_line(wfd: Run, words: tuple[str, ...], complaint: str) -> None:
    code, out, err = wfd(*words)
    assert (code, out) == (2, "")
    assert err.startswith("wfd: error: ")
    assert complaint in err
    assert err.count("\n") == 1
    assert err.endswith("\n")


def test_a_broken_tokenizer_is_a_mistake(wfd: Run, speaking_folder: str) -> None:
    Path(speaking_folder, "tokenizer.json").write_text("{}", encoding="utf-8")
    code, _, err = wfd("generate", "a", "--model", speaking_folder)
    assert code == 2
    assert "tokenizer.json: not a tokenizer" in err


def test_standard_input_that_is_no_text_is_a_mistake(
    wfd: Run, speaking_folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xff"), encoding="utf-8")
    monkeypatch.setattr(inputs, "sys", SimpleNamespace(stdin=binary))
    code, _, err = wfd("generate", "-", "--model", speaking_folder)
    assert code == 2
    assert "standard input is not text" in err


def test_a_model_that_computes_nan_is_reported(wfd: Run, scripted: SimpleNamespace) -> None:
    scripted.function = lambda prefix, depth: [float("nan")] * 8  # noqa: ARG005 - a table's signature
    code, _, err = wfd("generate", "--flavour", "chat")
    assert code == 2
    assert "SMP-02" in err
    assert issubclass(NumericsError, ArithmeticError)


def test_an_interrupt_ends_with_code_130(wfd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(given: arguments.Arguments) -> int:
        del given
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "run", interrupted)
    assert wfd("generate", "hello") == (130, "", "")


def test_a_reader_who_leaves_early_is_no_error() -> None:
    program = """
import sys
from reference import cli
from reference.cli import commands

def endless(given):
    while True:
        print("a line")

commands.run = endless
sys.exit(cli.main(["generate", "hello"]))
"""
    with subprocess.Popen(  # noqa: S603 - our own text
        [sys.executable, "-c", program], cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "a line\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 141


def test_what_is_left_to_write_goes_nowhere_once_the_reader_has_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(given: arguments.Arguments) -> int:
        sys.stdout.write(given.command)
        raise BrokenPipeError

    monkeypatch.setattr(commands, "run", broken)
    with (tmp_path / "output").open("w", encoding="utf-8") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert cli.main(["trace"]) == 141
    assert (tmp_path / "output").read_text(encoding="utf-8") == ""


def test_an_output_without_unicode_gets_letters(
    wfd: Run, scripted: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    del scripted
    ascii_output = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", ascii_output)
    code, _, _ = wfd("compare", "--flavour", "chat", "--max-new-tokens", "9")
    assert code == 0
    buffer = ascii_output.buffer
    assert isinstance(buffer, io.BytesIO)
    assert "D drafting   V verifying   # committed   x flushed" in buffer.getvalue().decode("ascii")


@pytest.mark.parametrize("words", [(), ("compare",), ("generate",), ("trace",)])
def test_help_explains_itself_in_80_columns(wfd: Run, words: tuple[str, ...]) -> None:
    code, out, err = wfd(*words, "--help")
    assert (code, err) == (0, "")
    assert "exit codes:" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_help_needs_no_model(monkeypatch: pytest.MonkeyPatch, wfd: Run) -> None:
    monkeypatch.setitem(sys.modules, "reference.cli.commands", None)
    assert wfd("--help")[0] == 0
    assert wfd("--version") == (0, "wfd 0.1.0\n", "")


def test_bench_gets_its_own_arguments(wfd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def bench(words: list[str]) -> int:
        asked.append(words)
        return 0

    monkeypatch.setitem(sys.modules, "reference.bench", SimpleNamespace(main=bench))
    monkeypatch.setattr("reference.bench", SimpleNamespace(main=bench), raising=False)
    assert wfd("bench", "--quick", "x") == (0, "", "")
    assert asked == [["--quick", "x"]]


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Says so."""
        return True


def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Puts a terminal where output and errors go; gives that of the errors."""
    errors = Screen()
    monkeypatch.setattr(sys, "stdout", Screen())
    monkeypatch.setattr(sys, "stderr", errors)
    monkeypatch.setenv("TERM", "xterm")
    return errors


def test_a_long_run_shows_its_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = screen(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    with closing(progress.Watch("decoding", 2)) as watch:
        watch.expect(0.5)
        watch(Commit(0, 1, 1))
        watch.expect(0.5)
        watch(Commit(0, 1, 1))
        assert watch.done == 0.75
    assert "decoding" in errors.getvalue()


def test_a_short_run_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = screen(monkeypatch)
    with closing(progress.Watch("decoding", 2)) as watch:
        watch.expect(1.0)
        watch(Commit(0, 1, 1))
    assert errors.getvalue() == ""


def test_nothing_but_a_terminal_shows_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    with closing(progress.Watch("decoding", 2)) as watch:
        watch.expect(1.0)
        watch(Commit(0, 1, 1))
    assert capsys.readouterr() == ("", "")


def test_a_default_prompt_is_read_as_it_stands(monkeypatch: pytest.MonkeyPatch, speaking_folder: str, wfd: Run) -> None:
    monkeypatch.setattr(inputs, "default_prompts", lambda: {"chat": "<s> c", "qa": "b"})
    _, out, _ = wfd("compare", "--model", speaking_folder, "--flavour", "chat", "--json", "--max-new-tokens", "1")
    assert json.loads(out)["comparisons"][0]["prompt_ids"] == [4, 3]


@pytest.mark.parametrize("text,is_raw", [("a b", False), ("<s> a", True)])
def test_a_shipped_model_takes_plain_text_as_a_message(
    monkeypatch: pytest.MonkeyPatch, speaking_folder: str, text: str, *, is_raw: bool
) -> None:
    monkeypatch.setattr(models, "SHIPPED", (speaking_folder,))
    monkeypatch.setattr(inputs, "load_tokenizer", lambda name: Tokenizer.from_file(f"{name}/tokenizer.json"))
    model = ScriptedModel(table=says_next, vocab_size=8, recurrence_depth=4)
    monkeypatch.setattr(models, "load", lambda name: model)  # noqa: ARG005 - the name of a shipped model
    read = inputs.read(arguments.parse(["generate", text, "--model", speaking_folder]))
    assert read.prompts[0].text == (text if is_raw else user_text(text))


def test_long_prompts_are_shown_without_their_middle() -> None:
    text = "\n".join(map(str, range(20)))
    assert report.shortened(text).splitlines() == ["0", "1", "2", "3", "... (12 lines) ...", "16", "17", "18", "19"]
    assert report.shortened("a\nb") == "a\nb"


def test_colour_says_nothing_that_is_not_said_without_it(scripted: SimpleNamespace) -> None:
    given = arguments.parse(["compare", "--flavour", "chat", "--max-new-tokens", "9"])
    read = scripted.read(given)
    compared = compare.compare(request(given, read.model, read.prompts[0]), progress.Watch("", 9))
    plain, coloured = io.StringIO(), io.StringIO()
    report.show(Console(file=plain, width=100), given, read, [compared])
    report.show(
        Console(file=coloured, width=100, color_system="truecolor", force_terminal=True), given, read, [compared]
    )
    assert "\x1b[" in coloured.getvalue()
    assert Text.from_ansi(coloured.getvalue()).plain.split() == plain.getvalue().split()


def test_without_a_tokenizer_no_token_is_special() -> None:
    assert not inputs.Texts(None).has_special_tokens("<s>")


@pytest.mark.spec("WFD-11", "DTV-07")
@pytest.mark.parametrize("model", models.SHIPPED)
def test_the_shipped_models_answer_every_default_prompt(wfd: Run, model: str) -> None:
    code, out, err = wfd("compare", "--model", model, "--max-new-tokens", "6", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)["comparisons"]
    assert [one["flavour"] for one in said] == list(default_prompts())
    assert all(one["agree"] and one["decoders"]["ar"]["committed"] for one in said)
