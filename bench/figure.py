"""A figure: a value, its budget, and what it is compared with in the same run."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

import detent


@dataclass(frozen=True)
class Figure:
    """One line of the results."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    lower: bool = False  # lower is better
    floor: float | None = None
    peer: str | None = None
    peer_value: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the budget holds; None when there is none."""
        if self.budget is None:
            return None
        return self.value <= self.budget if self.lower else self.value >= self.budget

    def line(self, machine: str) -> dict[str, Any]:
        """The figure as JSON."""
        row: dict[str, Any] = {"figure": self.name, "value": _short(self.value), "unit": self.unit}
        if self.budget is not None:
            row |= {"budget": self.budget, "met": self.met}
        if self.floor:
            row |= {"floor": round(self.floor), "floor_ratio": round(self.value / self.floor, 3)}
        if self.peer and self.peer_value:
            row |= {
                "peer": self.peer,
                "peer_value": round(self.peer_value),
                "peer_ratio": round(self.value / self.peer_value, 1),
            }
        return {**row, **self.extra, "machine": machine}


def _short(value: float) -> float:
    return round(value) if abs(value) >= 100 else round(value, 3)


def machine() -> str:
    """What this was measured on, in one line."""
    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, "
        f"detent {detent.__version__}"
    )
