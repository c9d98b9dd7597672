"""Write the pages of the reference that are made from the program itself.

`python tools/generate_docs.py` writes them, `--check` only says which are out of date. Each module
of `pages` makes one page from tables of the engine, from the command line or from the tests, and
gives the same bytes for the same tree. No network and no service is needed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pages import commands, coverage, errors, figures, lifecycles, limits

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = "docs/reference"

# path from the root -> what makes its text
PAGES = {
    f"{REFERENCE}/errors.md": errors.page,
    f"{REFERENCE}/limits.md": limits.page,
    f"{REFERENCE}/cli.md": commands.page,
    f"{REFERENCE}/life-cycles.md": lifecycles.page,
    f"{REFERENCE}/coverage.md": coverage.page,
    "README.md": figures.page,
}


def generated(root: Path) -> dict[str, str]:
    """Make every page, by its path from the root."""
    return {path: make(root) for path, make in PAGES.items()}


def outdated(root: Path) -> list[str]:
    """List the pages that are not what the program would write now."""
    return [path for path, text in generated(root).items() if stored(root, path) != text]


def stored(root: Path, path: str) -> str:
    """Read a page as it stands; one that is not there is empty."""
    file = root / path
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def main() -> int:
    """Write the pages, or with `--check` name those that are out of date."""
    parser = argparse.ArgumentParser(description="Generate the reference pages.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is old")
    old = outdated(ROOT)
    if parser.parse_args().check:
        for path in old:
            print(f"{path} is out of date; run `make docs`")
        return 1 if old else 0
    for path, text in generated(ROOT).items():
        if path in old:
            (ROOT / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
