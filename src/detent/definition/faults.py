"""The faults a definition can have: one table of codes, and the list that collects them."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from detent.model.errors import DefinitionError, Fault, invariant
from detent.model.limits import DEFINITION_FAULTS


class FaultClass(NamedTuple):
    """How a fault is answered over HTTP (422: does not decode, 400: means nothing) and why."""

    status: Literal[400, 422]
    meaning: str


FAULTS: dict[str, FaultClass] = {
    # the text
    "definition.syntax": FaultClass(400, "The text is not JSON or YAML."),
    "definition.duplicate_key": FaultClass(422, "An object names the same key twice."),
    "definition.key": FaultClass(422, "A key of an object is not text."),
    "definition.number": FaultClass(422, "A number is not finite or needs more than 64 bits."),
    "definition.text": FaultClass(422, "A text holds half of a surrogate pair."),
    "definition.value": FaultClass(422, "A value has no JSON form."),
    # one field
    "definition.missing": FaultClass(422, "A required field is absent or null."),
    "definition.type": FaultClass(422, "A value is of another JSON type than the field takes."),
    "definition.unknown_type": FaultClass(422, "There is no block kind of that name."),
    "definition.choice": FaultClass(422, "A value is none of those the field can take."),
    "definition.duration": FaultClass(422, "A duration is negative or too long."),
    "definition.blank": FaultClass(400, "A text is empty or only spaces where words are needed."),
    "definition.range": FaultClass(400, "A number or the length of a text is out of bounds."),
    "definition.date": FaultClass(400, "A date or a local time cannot be read."),
    "definition.timezone": FaultClass(400, "There is no time zone of that name."),
    "definition.country": FaultClass(400, "The holidays of a country cannot be found out."),
    "definition.expression": FaultClass(400, "An expression or a template cannot be compiled."),
    "definition.schema": FaultClass(400, "A JSON Schema is no object, or it does not compile."),
    "definition.policy": FaultClass(400, "A policy names no kind or handler, both, or none known."),
    # fields together
    "definition.exclusive": FaultClass(400, "Fields that replace each other are given together."),
    "definition.empty": FaultClass(400, "A list must have at least one member."),
    "definition.block_id": FaultClass(400, "A block id holds what node paths are written with."),
    "definition.duplicate_id": FaultClass(400, "Two blocks of one tree have the same id."),
    "definition.duplicate_name": FaultClass(400, "Two members of one list have the same name."),
    "definition.depth": FaultClass(400, "Blocks or values are nested too deep."),
    "definition.size": FaultClass(400, "There are too many blocks, branches, values or bytes."),
    # graphs
    "definition.node": FaultClass(400, "A graph names a node that it does not have."),
    "definition.goto": FaultClass(400, "A goto stands outside a graph or has no such target."),
    "definition.unreachable": FaultClass(400, "No way leads from the start to a node."),
    "definition.cycle": FaultClass(400, "Nodes lead round with no way out."),
    # plans
    "definition.default": FaultClass(400, "A branch has no default, or one that is not its last."),
    "definition.step": FaultClass(400, "A condition asks about a step that the plan lacks."),
    "definition.face": FaultClass(400, "What only plans have is elsewhere, or a plan has more."),
    # the engine
    "definition.unsupported": FaultClass(
        400, "The option or handler is known, but nothing performs it."
    ),
    "definition.more": FaultClass(400, "There are more faults than are listed."),
}

_INDEX = re.compile(r"\[(\d+)\]")
_ALONE = ("definition.syntax", "definition.unsupported")


class Faults:
    """Collects faults, keeping the first `DEFINITION_FAULTS`."""

    __slots__ = ("_hidden", "_kept")

    def __init__(self) -> None:
        self._kept: list[Fault] = []
        self._hidden = 0

    def __bool__(self) -> bool:
        return bool(self._kept)

    def add(self, path: str, code: str, message: str) -> None:
        """Note one fault."""
        invariant(code in FAULTS, f"fault code {code!r} is not in FAULTS")
        if len(self._kept) < DEFINITION_FAULTS:
            self._kept.append(Fault(path or "$", code, message))
        else:
            self._hidden += 1

    def listed(self) -> list[Fault]:
        """Give the faults in the order of their paths."""
        kept = sorted(self._kept, key=lambda fault: (path_order(fault.path), fault.code))
        if not self._hidden:
            return kept
        rest = f"{self._hidden + 1} more faults are not listed; correct these first"
        return [*kept[: DEFINITION_FAULTS - 1], Fault("$", "definition.more", rest)]

    def raise_if_any(self) -> None:
        """Raise `DefinitionError` with all faults, if there are any."""
        if self._kept:
            faults = self.listed()
            first = faults[0].code
            alone = first in _ALONE and all(fault.code == first for fault in faults)
            raise DefinitionError(faults, first if alone else "definition.invalid")


def refuse(path: str, code: str, message: str) -> DefinitionError:
    """Make the error for a fault after which nothing more can be looked at."""
    invariant(code in FAULTS, f"fault code {code!r} is not in FAULTS")
    whole = code if code in _ALONE else "definition.invalid"
    return DefinitionError([Fault(path or "$", code, message)], whole)


def status_of(error: DefinitionError) -> Literal[400, 422]:
    """Give the HTTP status of the contract: 422 as soon as one fault is of decoding."""
    return max((FAULTS[fault.code].status for fault in error.faults), default=400)


def path_order(path: str) -> list[Any]:
    """Give a key that sorts `blocks[10]` after `blocks[2]`."""
    parts: list[Any] = _INDEX.split(path)  # text and number in turn, so that lists compare
    parts[1::2] = [int(digits) for digits in parts[1::2]]
    return parts
