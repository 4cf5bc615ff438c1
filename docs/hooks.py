"""Publishes pages that live outside docs/, where they are read on their own as well: spec/ and two root files.

Every page links to files by their place in the repository, so that links work wherever the page is read. Here they are
turned to places on the site. Where the site does not show the file (source code, say), the link's text stays and the
link goes. A clause that is named anywhere, in a docstring too, becomes a link to where it is stated.
"""

import io
import json
import logging
import os
import re
import sys
import tomllib
from contextlib import redirect_stdout, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the pure functions are tested where MkDocs is not installed
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_LOG: Final = logging.getLogger("mkdocs.hooks")

_ROOT_PAGES: Final = ("CHANGELOG.md", "CONTRIBUTING.md")
"""Pages at the root of the repository that the site shows."""

_CODE_OR_LINK: Final = re.compile(
    r"""
    ^\ *```.*?^\ *```                        # a fenced block
    | \[(?P<text>[^\]]*)\]                   # a link: its text, which may hold code,
      \((?P<path>[^)\s\#:]+)(?P<anchor>\#[^)\s]*)?\)  # and a file; a colon would make it an address elsewhere
    | `[^`\n]*`                              # code in a sentence
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)

_CLAUSE_START: Final = re.compile(r"^\*\*([A-Z]+-\d\d)\*\*", re.MULTILINE)
"""The id that opens a clause in spec/."""

_CLAUSE_OPENING: Final = re.compile(r"^\*\*([A-Z]+-\d\d)\*\* (.*?)\.(?=\s)", re.MULTILINE | re.DOTALL)
"""The id of a clause and its first sentence."""

_CLAUSE_ID: Final = re.compile(r"\b[A-Z]+-\d\d\b")
"""An id that may be one of a clause, wherever it is mentioned."""

_HELP: Final = re.compile(r"^<!-- wfd (.*?) ?--help -->$", re.MULTILINE)
"""Where the page on the command line shows what a command says of itself."""

HEAVIEST_PAGE: Final = 1_000_000
"""Most bytes of a page. Those of the API come near, since they show their source; a test keeps all others far below."""

_TAG: Final = re.compile(r"(</?(\w+)[^>]*>)")
_LEFT_ALONE: Final = frozenset({"a", "code", "pre", "script", "strong", "style", "title"})
"""Elements in whose text no link is made: code, what is a link already, and the bold id that opens a clause."""


def clause_places(root: Path) -> dict[str, str]:
    """Gives the place on the site of every clause, by its id."""
    return {
        identifier: f"spec/{page.stem}.html#{identifier.lower()}"
        for page in sorted((root / "spec").glob("*.md"))
        for identifier in _CLAUSE_START.findall(page.read_text(encoding="utf-8"))
    }


def clause_index(root: Path) -> dict[str, dict[str, str]]:
    """Gives the place on the site and the first sentence of every clause, by its id."""
    places = clause_places(root)
    return {
        identifier: {"place": places[identifier], "opening": " ".join(opening.replace("`", "").split())}
        for page in sorted((root / "spec").glob("*.md"))
        for identifier, opening in _CLAUSE_OPENING.findall(page.read_text(encoding="utf-8"))
    }


def with_clause_links(html: str, url: str, places: dict[str, str]) -> str:
    """Turns every mention of a clause into a link.

    Args:
        html: The content of a page.
        url: Its place on the site.
        places: The place of every clause, as `clause_places` gives it.
    """
    here = PurePosixPath(url).parent

    def linked(mention: re.Match[str]) -> str:
        place = places.get(mention[0])
        return f'<a href="{os.path.relpath(place, here)}">{mention[0]}</a>' if place else mention[0]

    pieces = []
    end = depth = 0  # depth: how many elements that are left alone are open
    for tag in _TAG.finditer(html):
        text = html[end : tag.start()]
        pieces += [text if depth else _CLAUSE_ID.sub(linked, text), tag[0]]
        if tag[2] in _LEFT_ALONE:
            depth += -1 if tag[0].startswith("</") else 1
        end = tag.end()
    return "".join(pieces) + html[end:]


def site_paths(root: Path) -> dict[str, str]:
    """Gives the place on the site of every published file, by its path in the repository."""
    published = {name: name.lower() for name in _ROOT_PAGES}
    published |= {f"spec/{page.name}": f"spec/{page.name}" for page in sorted((root / "spec").glob("*.md"))}
    docs = root / "docs"
    published |= {
        path.relative_to(root).as_posix(): path.relative_to(docs).as_posix()
        for path in sorted(docs.rglob("*"))
        if path.is_file()
    }
    return published


def with_help(markdown: str, root: Path) -> str:
    """Puts what `wfd ... --help` prints where a page asks for it."""
    if not _HELP.search(markdown):
        return markdown
    sys.path.insert(0, str(root))
    from reference.cli import main  # noqa: PLC0415 - only for this page

    def said(asked: re.Match[str]) -> str:
        written = io.StringIO()
        before = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = "74"  # argparse asks for the width of the terminal
        with redirect_stdout(written), suppress(SystemExit):
            main([*asked[1].split(), "--help"])
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
        return f"```text\n{written.getvalue().rstrip()}\n```"

    return _HELP.sub(said, markdown)


def with_site_links(markdown: str, source: str, published: dict[str, str]) -> str:
    """Turns the links of a page from places in the repository to places on the site; code is left alone.

    Args:
        markdown: The page.
        source: Its path in the repository.
        published: What the site shows, as `site_paths` gives it.
    """
    here = PurePosixPath(published[source]).parent

    def turned(found: re.Match[str]) -> str:
        if found["path"] is None:
            return found[0]
        target = os.path.normpath(PurePosixPath(source).parent / found["path"])
        if target not in published:
            return found["text"]
        return f"[{found['text']}]({os.path.relpath(published[target], here)}{found['anchor'] or ''})"

    return _CODE_OR_LINK.sub(turned, markdown)


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Says at the foot of every page which version of the package it describes."""
    with (_root(config) / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    config.copyright = f"{project['name']} {project['version']}, {project['license']}"
    return config


def on_files(files: "Files", *, config: "MkDocsConfig") -> "Files":
    """Adds the pages from outside docs/ to the site, and an index of the clauses."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - see above

    root = _root(config)
    for source, place in site_paths(root).items():
        if not source.startswith("docs/"):
            files.append(File.generated(config, place, abs_src_path=str(root / source)))
    # For scripts: what a clause says and where.
    files.append(File.generated(config, "assets/clauses.json", content=json.dumps(clause_index(root))))
    return files


def on_page_markdown(markdown: str, *, page: "Page", config: "MkDocsConfig", files: "Files") -> str:  # noqa: ARG001 - MkDocs's signature
    """Turns the links of every page, gives every clause an anchor, and shows what commands say of themselves."""
    root = _root(config)
    assert page.file.abs_src_path is not None
    source = Path(page.file.abs_src_path).relative_to(root).as_posix()
    if source.startswith("spec/"):
        markdown = _CLAUSE_START.sub(lambda start: f"{start[0]}{{ #{start[1].lower()} }}", markdown)
    return with_site_links(with_help(markdown, root), source, site_paths(root))


def on_page_content(html: str, *, page: "Page", config: "MkDocsConfig", files: "Files") -> str:  # noqa: ARG001 - MkDocs's signature
    """Links every mention of a clause to the clause."""
    return with_clause_links(html, page.url, clause_places(_root(config)))


def on_post_page(output: str, *, page: "Page", config: "MkDocsConfig") -> str:  # noqa: ARG001 - MkDocs's signature
    """Warns of a page that has become too heavy to load on a phone; a strict build then fails."""
    if len(output.encode()) > HEAVIEST_PAGE:
        _LOG.warning("%s has %d bytes, more than %d: split it", page.url, len(output.encode()), HEAVIEST_PAGE)
    return output


def _root(config: "MkDocsConfig") -> Path:
    return Path(config.docs_dir).parent
