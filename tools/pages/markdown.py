"""The few pieces of Markdown that generated pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

NOTICE = (
    "<!-- Made by tools/generate_docs.py. Change what it is made from, then run `make docs`. -->"
)


def document(title: str, *parts: str) -> str:
    """Make a whole page."""
    return "\n\n".join([NOTICE, f"# {title}", *(part for part in parts if part)]) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make a table; bars in cells are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def code(text: object) -> str:
    """Make a piece of code within a line."""
    return f"`{text}`"


def fenced(text: str, language: str = "text") -> str:
    """Make a block of code."""
    return f"```{language}\n{text}\n```"
