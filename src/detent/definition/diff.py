"""What changed between two definitions, block by block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from detent.definition.places import below, item
from detent.definition.wire import to_wire

if TYPE_CHECKING:
    from detent.model.definition import Definition


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class Change(NamedTuple):
    """One difference; blocks are named by their id: `blocks[charge].retry.max_attempts`."""

    path: str
    kind: Literal["added", "removed", "changed"]
    before: Any
    after: Any


def diff(a: Definition, b: Definition) -> list[Change]:
    """List what is different in `b`; empty if and only if the hashes are equal."""
    changes: list[Change] = []
    if a.hash != b.hash:
        _compare("", to_wire(a), to_wire(b), changes)
    return changes


def _compare(path: str, before: Any, after: Any, changes: list[Change]) -> None:
    if type(before) is dict and type(after) is dict:
        _compare_members(path, before, after, changes)
    elif type(before) is list and type(after) is list:
        old, new = _by_id(before), _by_id(after)
        if old is not None and new is not None:
            _compare_by_id(path, old, new, changes)
        else:
            _compare_by_index(path, before, after, changes)
    elif type(before) is not type(after) or before != after:  # 1, 1.0 and true are three values
        changes.append(Change(path, "changed", before, after))


def _compare_members(
    path: str, before: dict[str, Any], after: dict[str, Any], changes: list[Change]
) -> None:
    for name in [*before, *(name for name in after if name not in before)]:
        _one(below(path, name), name, (before, after), changes)


def _one(
    path: str, name: str, sides: tuple[dict[str, Any], dict[str, Any]], changes: list[Change]
) -> None:
    before, after = sides
    if name not in after:
        changes.append(Change(path, "removed", before[name], None))
    elif name not in before:
        changes.append(Change(path, "added", None, after[name]))
    else:
        _compare(path, before[name], after[name], changes)


def _compare_by_id(
    path: str, before: dict[str, Any], after: dict[str, Any], changes: list[Change]
) -> None:
    for name in [*before, *(name for name in after if name not in before)]:
        _one(f"{path}[{name}]", name, (before, after), changes)
    stayed = [name for name in before if name in after]
    order = [name for name in after if name in before]
    if stayed != order:
        changes.append(Change(path, "changed", stayed, order))


def _compare_by_index(
    path: str, before: list[Any], after: list[Any], changes: list[Change]
) -> None:
    common = min(len(before), len(after))
    for index in range(common):
        _compare(item(path, index), before[index], after[index], changes)
    for index, value in enumerate(before[common:], common):
        changes.append(Change(item(path, index), "removed", value, None))
    for index, value in enumerate(after[common:], common):
        changes.append(Change(item(path, index), "added", None, value))


def _by_id(members: list[Any]) -> dict[str, Any] | None:
    """Give the members by their ids, if each has one of its own; a date is its own id."""
    named = {}
    for member in members:
        name = member.get("id") if type(member) is dict else member
        if type(name) is not str or (name is member and not _DATE.fullmatch(name)):
            return None
        named[name] = member
    return named if len(named) == len(members) else None
