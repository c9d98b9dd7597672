"""The figures of the README: tables between two marks, from what `make bench` left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pages.markdown import table

START = "<!-- figures -->"
END = "<!-- /figures -->"
RESULTS = "bench/results"
_NONE = (
    "No figures are recorded yet. `make bench` measures them and leaves them in `bench/results`."
)
_MET = {True: "met", False: "**missed**", None: ""}


def page(root: Path) -> str:
    """Make the README with its figures replaced; everything else stays as it is."""
    text = (root / "README.md").read_text(encoding="utf-8")
    before, start, rest = text.partition(START)
    _old, end, after = rest.partition(END)
    if not start or not end:
        return text
    return f"{before}{START}\n{figures(root)}\n{END}{after}"


def figures(root: Path) -> str:
    """Make one table per machine."""
    machines: dict[str, list[tuple[str, ...]]] = {}
    for file in sorted((root / RESULTS).glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip():
                figure = json.loads(line)
                machines.setdefault(figure.get("machine", ""), []).append(row(figure))
    parts = []
    for machine, rows in machines.items():
        parts += [
            f"Measured on {machine}:",
            table(("Figure", "Value", "Budget", "Beside it"), rows),
        ]
    return "\n\n".join(parts) or _NONE


def row(figure: dict[str, Any]) -> tuple[str, ...]:
    """Make the row of one figure."""
    budget = _plain(figure["budget"]) if "budget" in figure else ""
    judged = f"{budget}, {_MET[figure.get('met')]}" if budget else ""
    beside = []
    if "floor_ratio" in figure:
        beside.append(f"{figure['floor_ratio']:.0%} of the floor")
    if "peer_ratio" in figure:
        beside.append(f"{_plain(figure['peer_ratio'])} x {figure['peer']}")
    value = f"{_plain(figure['value'])} {figure['unit']}"
    return f"`{figure['figure']}`", value, judged, ", ".join(beside)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"  # noqa: PLR2004 - as bench does
