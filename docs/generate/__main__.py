"""Writes every generated file of the site."""

import sys

from docs.generate import DOCS, architecture, calculator, cost, sharing, traces, walk


def main() -> None:
    """Writes the files and names each."""
    files = {
        **walk.pages(walk.find_story(), DOCS),
        **traces.files(DOCS),
        **calculator.files(DOCS),
        **architecture.files(DOCS),
        **cost.files(),
        **sharing.files(),
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")


if __name__ == "__main__":
    main()
