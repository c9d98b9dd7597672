"""YAML text to raw data, by the rules of YAML 1.2 and with bounds.

libyaml gives events; the tree is built here, because its own loader speaks YAML 1.1 (`no` is
false, `010` is eight, dates become objects), keeps the last of repeated keys in silence and
recurses on the C stack. An alias shares the value of its anchor; its size counts each time it is
used, so that a few lines cannot become a billion values.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

import yaml

from detent.definition.faults import refuse
from detent.definition.json_text import with_repeated
from detent.definition.places import quoted
from detent.model.limits import DEFINITION_NESTING, DEFINITION_NODES

_NULL = ("", "~", "null", "Null", "NULL")
_TRUE = ("true", "True", "TRUE")
_FALSE = ("false", "False", "FALSE")
_WHOLE = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
_NAN = (".nan", ".NaN", ".NAN")
_INT_DIGITS = 24
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_CONTAINER_TAGS = (None, "!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class _Open:
    """A list or object whose end has not come yet."""

    __slots__ = ("anchor", "key", "mapping", "pairs", "size")

    def __init__(self, *, mapping: bool, anchor: str | None) -> None:
        self.mapping = mapping
        self.anchor = anchor
        self.pairs: list[tuple[Any, Any]] = []
        self.key: list[Any] = []  # the key waiting for its value, if any
        self.size = 1

    def take(self, value: Any) -> None:
        if not self.mapping:
            self.pairs.append((None, value))
        elif self.key:
            self.pairs.append((self.key.pop(), value))
        else:
            self.key.append(value)

    def close(self) -> Any:
        if not self.mapping:
            return [value for _, value in self.pairs]
        members = dict(self.pairs)
        return members if len(members) == len(self.pairs) else with_repeated(self.pairs)


class _Tree:
    """Builds the document from events."""

    def __init__(self) -> None:
        self.open: list[_Open] = [_Open(mapping=False, anchor=None)]
        self.anchors: dict[str, tuple[Any, int]] = {}

    def add(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._value(_scalar(event), 1, event.anchor, event)
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.tag not in _CONTAINER_TAGS:
                _stop(event, f"the tag {quoted(event.tag)} is not allowed; leave it out")
            if len(self.open) > DEFINITION_NESTING:
                message = f"expected at most {DEFINITION_NESTING} levels; make it flatter"
                raise refuse("$", "definition.depth", message)
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.open.append(_Open(mapping=mapping, anchor=event.anchor))
        elif isinstance(event, yaml.CollectionEndEvent):
            done = self.open.pop()
            self._value(done.close(), done.size, done.anchor, event)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                _stop(event, f"the alias *{event.anchor} has no anchor before it, or is within it")
            value, size = self.anchors[event.anchor]
            self._value(value, size, None, event)

    def _value(self, value: Any, size: int, anchor: str | None, event: Any) -> None:
        parent = self.open[-1]
        parent.size += size
        if parent.size > DEFINITION_NODES:
            message = f"expected at most {DEFINITION_NODES} values, aliases expanded; split it"
            raise refuse("$", "definition.size", message)
        if anchor is not None:
            self.anchors[anchor] = (value, size)
        if parent.mapping and not parent.key:
            _check_key(value, event)
        parent.take(value)


def read_yaml(text: str) -> Any:
    """Read one YAML 1.2 document; repeated keys and numbers out of range become faults later."""
    tree = _Tree()
    documents = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if documents > 1:
                _stop(event, "a second document begins; keep one definition per file")
            tree.add(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        _refuse(f"{where}{error.problem or error.context}")
    except yaml.YAMLError as error:
        _refuse(str(error).splitlines()[0])
    return tree.open[0].close()[0] if tree.open[0].pairs else None


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if event.tag is not None:
        if event.tag not in _TEXT_TAGS:
            _stop(event, f"the tag {quoted(event.tag)} is not allowed; leave it out")
        return text
    return plain_scalar(text) if event.implicit[0] else text


def plain_scalar(text: str) -> Any:
    """Give the value of an unquoted scalar by the core schema of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        digits = text.lstrip("+-").lstrip("0")[:_INT_DIGITS] or "0"
        return -int(digits) if text[0] == "-" else int(digits)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _OCTAL.fullmatch(text):
        return int(text[2:].lstrip("0")[:_INT_DIGITS] or "0", 8)
    if _HEX.fullmatch(text):
        return int(text[2:].lstrip("0")[:_INT_DIGITS] or "0", 16)
    if _ENDLESS.fullmatch(text):
        return float("-inf" if text[0] == "-" else "inf")
    return float("nan") if text in _NAN else text


def _check_key(key: Any, event: Any) -> None:
    if not isinstance(key, str):
        _stop(event, "a key must be text; put it in quotes")
    if key == "<<":
        _stop(event, "merge keys are not part of YAML 1.2; write the members out")


def _stop(event: Any, what: str) -> NoReturn:
    mark = event.start_mark
    _refuse(f"line {mark.line + 1}, column {mark.column + 1}: {what}")


def _refuse(what: str) -> NoReturn:
    raise refuse("$", "definition.syntax", f"expected YAML 1.2, found at {what}")
