"""What README and the pages say is true: their code runs, their commands exist, their links lead somewhere."""

import re
import shlex
import sys
from collections.abc import Iterator
from doctest import ELLIPSIS, DocTestParser, DocTestRunner
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.project.sources import REPOSITORY

PAGES = tuple(
    sorted(
        path
        for pattern in ("*.md", "docs/**/*.md", "spec/**/*.md", "reference/**/*.md", "examples/**/*.md")
        for path in REPOSITORY.glob(pattern)
    )
)
"""Every page of text in the repository."""

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
"""A fenced block, inside a list or a box too."""

TITLE = re.compile(r'title="([^"]+)"')
"""In the first line of a block: the file of the repository that the block shows."""

INLINE = re.compile(r"`((?:make|wfd) [^`\n]+)`")
"""A command quoted in a sentence."""

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)|<(?:img|a)\s[^>]*(?:src|href)=\"([^\"]+)\"|`[^`\n]*`")
"""A link or picture, in Markdown or in HTML; or code in a sentence, where brackets make no link."""

PYTHON = frozenset({"py", "pycon", "python"})
SHELL = frozenset({"bash", "console", "sh", "shell"})


def blocks(text: str, languages: frozenset[str]) -> Iterator[str]:
    """Gives the fenced blocks of some languages, without their indentation; not those that show a file."""
    for fence in FENCE.finditer(text):
        if fence["language"] in languages and not TITLE.search(fence["info"]):
            yield re.sub(rf"^{fence['indent']}", "", fence["body"], flags=re.MULTILINE)


def other_than_their_files(text: str) -> list[str]:
    """Names the files that a page shows otherwise than they are."""
    return [
        title[1]
        for fence in FENCE.finditer(text)
        if (title := TITLE.search(fence["info"]))
        if not (REPOSITORY / title[1]).is_file() or (REPOSITORY / title[1]).read_text(encoding="utf-8") != fence["body"]
    ]


def commands(text: str) -> Iterator[list[str]]:
    """Gives every `make` and `wfd` command of a page, as words: those in shell blocks and those in sentences.

    In a `console` block only lines after a `$` prompt are commands.
    """
    lines = [
        line.removeprefix("$ ")
        for fence in FENCE.finditer(text)
        if fence["language"] in SHELL
        for line in re.sub(r"\\\n\s*", "", fence["body"]).splitlines()
        if fence["language"] != "console" or line.lstrip().startswith("$ ")
    ]
    lines += INLINE.findall(FENCE.sub("", text))
    for line in lines:
        for part in re.split(r"&&|\|\|?|;", line):
            words = shlex.split(part.strip().removeprefix("$ "), comments=True)
            if words[:1] in (["make"], ["wfd"]):
                yield words


def broken_links(page: Path) -> list[str]:
    """Names the links of a page that lead to no file. Addresses elsewhere and anchors in a page are not followed."""
    return [
        target
        for groups in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if (target := groups[0] or groups[1]) and not re.match(r"[a-z]+:|#", target)
        if not (page.parent / target.partition("#")[0]).exists()
    ]


def make_targets() -> set[str]:
    """Gives the targets of the Makefile that `make help` lists."""
    return set(re.findall(r"^([a-z]+):.*## ", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def wfd_help(*subcommand: str) -> str:
    """Gives what `wfd [subcommand] --help` prints.

    Raises:
        SystemExit: With another code than 0, if there is no such subcommand.
    """
    main = import_module("reference.cli").main
    with pytest.MonkeyPatch.context() as patch:
        written: list[str] = []
        patch.setattr(sys, "argv", ["wfd", *subcommand, "--help"])
        patch.setattr(sys.stdout, "write", written.append)
        patch.setenv("COLUMNS", "200")
        try:
            main()
        except SystemExit as stopped:
            if stopped.code:
                raise
    return "".join(written)


def wrong_command(words: list[str]) -> str | None:
    """Tells what is wrong with a command, or gives None: its target, subcommand and options exist."""
    program, *arguments = words
    if program == "make":
        unknown = [word for word in arguments if "=" not in word and word not in make_targets()]
        return f"no such target: {' '.join(unknown)}" if unknown else None
    subcommand = [] if not arguments or arguments[0].startswith("-") else arguments[:1]
    try:
        described = wfd_help(*subcommand)
    except SystemExit:
        return f"no such subcommand: {' '.join(subcommand)}"
    options = {word.partition("=")[0] for word in arguments if re.match(r"-{1,2}[a-z]", word)} - {"--help"}
    unknown = sorted(option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", described))
    return f"no such option: {' '.join(unknown)}" if unknown else None


def run_code(page: Path, text: str) -> None:
    """Runs the Python blocks of a page one after another, as a reader would who types them into one session.

    A block with `>>>` must print what the page shows.
    """
    session: dict[str, object] = {"__name__": "__main__"}
    for number, block in enumerate(blocks(text, PYTHON), start=1):
        name = f"{page.name}, Python block {number}"
        if ">>>" in block:
            example = DocTestParser().get_doctest(block, {}, name, str(page), 0)
            example.globs = session
            runner = DocTestRunner(optionflags=ELLIPSIS)
            report: list[str] = []
            assert runner.run(example, out=report.append, clear_globs=False).failed == 0, "".join(report)
        else:
            exec(compile(block, name, "exec"), session)  # noqa: S102 - our own pages


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def _pages_with(languages: frozenset[str]) -> list[Path]:
    return [page for page in PAGES if any(blocks(page.read_text(encoding="utf-8"), languages))]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_command_named_exists(page: Path) -> None:
    wrong = [(words, wrong_command(words)) for words in commands(page.read_text(encoding="utf-8"))]
    assert [(words, fault) for words, fault in wrong if fault] == []


@pytest.mark.parametrize("page", _pages_with(PYTHON), ids=_name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page: Path) -> None:
    run_code(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_block_that_shows_a_file_shows_it_as_it_is(page: Path) -> None:
    assert other_than_their_files(page.read_text(encoding="utf-8")) == []


def test_a_block_that_has_drifted_from_its_file_is_found() -> None:
    path = "examples/outside-engine/test_engine.py"
    body = (REPOSITORY / path).read_text(encoding="utf-8")
    page = f'```python title="{path}"\n{body}```\n'
    assert other_than_their_files(page) == []
    assert list(blocks(page, PYTHON)) == []
    assert other_than_their_files(page.replace("Answer", "Reply")) == [path]
    assert other_than_their_files(page.replace(path, "gone.py")) == ["gone.py"]


def test_readme_names_the_main_commands() -> None:
    named = {tuple(words[:2]) for words in commands((REPOSITORY / "README.md").read_text(encoding="utf-8"))}
    assert {("make", "demo"), ("make", "test"), ("make", "check"), ("wfd", "compare")} <= named


def test_commands_are_read_from_blocks_and_sentences() -> None:
    text = """
Say `make demo`, then `wfd compare --json`, not `makefile` or `wfd`.

```sh
git clone somewhere && make test JOBS=4   # twice
OTHER=1; wfd trace \\
    --model tiny-ouro | head
```

```console
$ wfd generate "a b"
make no difference, this is output
```

```text
make nothing
```
"""
    assert list(commands(text)) == [
        ["make", "test", "JOBS=4"],
        ["wfd", "trace", "--model", "tiny-ouro"],
        ["wfd", "generate", "a b"],
        ["make", "demo"],
        ["wfd", "compare", "--json"],
    ]


def test_a_target_that_does_not_exist_is_found() -> None:
    assert wrong_command(["make", "test", "JOBS=2"]) is None
    assert wrong_command(["make", "tests", "JOBS=2"]) == "no such target: tests"


def test_a_subcommand_and_an_option_that_do_not_exist_are_found() -> None:
    assert wrong_command(["wfd", "compare", "--draft-depth", "1"]) is None
    assert wrong_command(["wfd", "compare", "--draft-dept", "1"]) == "no such option: --draft-dept"
    assert wrong_command(["wfd", "contrast"]) == "no such subcommand: contrast"


def test_a_link_to_a_missing_file_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "there.md").touch()
    page.write_text(
        "[a](there.md#part) [b](https://example.org) [c](#here) [d](gone.md) ![e](gone.svg)\n"
        '<img alt="f" src="gone.png">\n```text\n[g](only-an-example.md)\n```\n`h[i](r)` [`i`](gone.py)\n',
        encoding="utf-8",
    )
    assert broken_links(page) == ["gone.md", "gone.svg", "gone.png", "gone.py"]


def test_code_that_fails_or_prints_something_else_is_found() -> None:
    page = Path("page.md")
    run_code(page, "```python\nx = 2\n```\n1. Then\n\n   ```python\n   >>> x + x\n   4\n\n   ```\n")
    with pytest.raises(NameError):
        run_code(page, "```python\ny\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_code(page, "```python\n>>> 2 + 2\n5\n\n```\n")
