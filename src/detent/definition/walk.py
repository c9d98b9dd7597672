"""The private state of one walk through a definition: faults, ids seen, depth, open graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from detent.definition.faults import Faults
from detent.model.limits import DEFINITION_FAULTS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Nothing:
    """Stands for a value that is left out of the canonical form: faulty, unset or not hashed."""


NOTHING: Final = Nothing()

Check = Callable[["Walk", str, Any], Any]
"""Look at the value at a path; give its canonical form, or `NOTHING` after noting a fault."""


Rule = Callable[["Walk", str, dict[str, Any], dict[str, Any]], None]
"""Look at the checked members of an object together; the last argument holds them as given."""


class Field(NamedTuple):
    """One member of an object; a value equal to the default is left out of the canonical form."""

    name: str
    check: Check
    required: bool = False
    default: Any = None


class Shape(NamedTuple):
    """An object: its members, and a rule for what they must be together."""

    name: str
    fields: tuple[Field, ...]
    rule: Rule | None = None


class OpenGraph:
    """The graph whose nodes are being looked at."""

    __slots__ = ("gotos", "names", "node")

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.node = ""
        self.gotos: list[tuple[str, str]] = []


class Walk:
    """One pass over a definition; with `lint` it also gathers what only deserves a warning."""

    __slots__ = (
        "blocks",
        "calendars",
        "clean",
        "countries",
        "depth",
        "face",
        "faults",
        "graphs",
        "handlers",
        "ids",
        "kinds",
        "lint",
        "roots",
        "steps",
        "strict",
        "unknown",
        "warnings",
    )

    def __init__(self, kinds: Mapping[str, Shape], *, lint: bool = False) -> None:
        self.kinds = kinds
        self.lint = lint
        self.strict = False
        self.face = "sequence"
        self.roots: frozenset[str] = frozenset()  # what its scopes add to those of every definition
        self.steps: tuple[str, ...] = ()  # of a plan, which its conditions may ask about
        self.clean = True  # no faulty value inside user data, so it can be handed to compilers
        self.faults = Faults()
        self.ids: dict[str, str] = {}
        self.blocks = 0
        self.depth = 0
        self.graphs: list[OpenGraph] = []
        self.unknown: list[tuple[str, str, Shape]] = []
        self.calendars: dict[str, list[str]] = {}  # given with the definition
        self.countries: dict[str, list[str] | str] = {}  # named in it: dates, or why none
        self.warnings: list[tuple[str, str]] = []
        self.handlers: list[tuple[str, str]] = []

    def fault(self, path: str, code: str, message: str) -> Nothing:
        """Note a fault; gives `NOTHING`, so that a check can return it."""
        self.faults.add(path, code, message)
        return NOTHING

    def warn(self, path: str, message: str) -> None:
        """Note what is allowed but looks like a mistake."""
        if len(self.warnings) < DEFINITION_FAULTS:
            self.warnings.append((path, message))

    def note_unknown(self, path: str, raw: dict[str, Any], shape: Shape) -> None:
        """Remember members that no field takes."""
        known = [field.name for field in shape.fields]
        for name in raw:
            if name not in known and len(self.unknown) < DEFINITION_FAULTS:
                self.unknown.append((path, name, shape))
