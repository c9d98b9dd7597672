"""The command line: `detent …`, also as `python -m detent.cli`."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; click and rich are only loaded here."""
    from detent.cli.program import run

    return run(arguments)
