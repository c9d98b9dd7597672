"""The page of errors: every stable code, from the tables that raise them."""

from __future__ import annotations

import re
from pathlib import Path

from detent.cli import exits
from detent.definition import FAULTS
from detent.model import errors
from pages.markdown import code, document, table

_GROUP = re.compile(r"^    # (?P<who>\w+): ?(?P<what>.*)$")
_CODE = re.compile(r'^    "(?P<code>[a-z_.]+)":')

_OPENING = """\
Every error is a `DetentError` with a stable `code`, the same in Python, in the CLI and in the
journal. The class says who must act: `DefinitionError` and `ExpressionError` the author,
`RequestError` the caller, `StoreError` the operator, `InvariantViolation` the makers of Detent.
The message says what was expected, what came, where, and what to do; `details` holds the same as
data. The failure of an effect is not an error but data: it stands in the journal."""

_FAULTS_OPENING = """\
A definition that is not accepted raises one `DefinitionError` with all its faults: `error.faults`
is a list of (path, code, message), in the order of their paths. HTTP is the status with which a
server answers a fault of that code."""


def page(root: Path) -> str:
    """Make the page."""
    source = (root / "src/detent/model/errors.py").read_text(encoding="utf-8")
    parts = [_OPENING]
    for who, codes in grouped(source).items():
        rows = [(code(each), errors.CODES[each]) for each in codes]
        parts += [f"## {who}", table(("Code", "Meaning"), rows)]
    rows = [(code(each), str(fault.status), fault.meaning) for each, fault in FAULTS.items()]
    parts += [
        "## Faults of a definition",
        _FAULTS_OPENING,
        table(("Code", "HTTP", "Meaning"), rows),
    ]
    rows = [(str(number), meaning) for number, meaning in exits.MEANINGS.items()]
    parts += ["## Exit codes of the CLI", table(("Code", "Meaning"), rows)]
    return document("Errors", *parts)


def grouped(source: str) -> dict[str, list[str]]:
    """Read which codes stand under which comment of the table."""
    groups: dict[str, list[str]] = {}
    who = ""
    for line in source.partition("CODES")[2].partition("\n}\n")[0].splitlines():
        named, coded = _GROUP.match(line), _CODE.match(line)
        if named is None and line.startswith("    # "):
            who = _heading(line.removeprefix("    # "), "")
        elif named is not None:
            who = _heading(named["who"], named["what"])
        elif coded is not None:
            groups.setdefault(who, []).append(coded["code"])
    return groups


def _heading(who: str, what: str) -> str:
    must = "we must act" if who == "us" else f"the {who} must act"
    return f"{must[0].upper()}{must[1:]}" + (f" ({what})" if what else "")
