"""A handler's parameters: compiled once from its signature, then bound to each request.

The names and annotations of a function become one msgspec Struct, and the request's JSON is decoded
straight into it: names, types and defaults are checked by the decoder in a fraction of a
microsecond. The same Struct gives the JSON Schema that constant params are checked against at
start. A request that is no object is bound to the only parameter, when there is just one.
"""

from __future__ import annotations

import inspect
import re
import typing
from copy import copy
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec
from msgspec import Raw, Struct, structs

from detent.handlers.context import context_of
from detent.model.errors import RequestError
from detent.model.payload import clean_text

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from detent.model.decision import Order

_CTX = "ctx"
_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>[^`]*)`)?$", re.DOTALL)
_EXPECTED = re.compile(r"^Expected (?P<expected>.*), got (?P<got>.*)$", re.DOTALL)
_NAMED = re.compile(r"^Object (?P<what>missing required|contains unknown) field `(?P<name>.*)`$")

_decode_any = msgspec.json.Decoder().decode


class Parameters:
    """What a function takes; `arguments` turns an order into its keyword arguments."""

    __slots__ = ("_decoder", "_function", "_names", "_rest", "_shape", "schema", "takes_ctx")

    def __init__(self, function: Callable[..., Any], label: str, *, subset: bool = False) -> None:
        """Read the signature; with `subset` the function may leave out names of the request."""
        self._function = label
        fields, rest, self.takes_ctx = _read(function, label)
        self._names = [field[0] for field in fields]
        self._rest = rest
        strict = not subset and rest is None
        try:
            self._shape = msgspec.defstruct(
                "parameters", fields, forbid_unknown_fields=strict, kw_only=True
            )
            self.schema: Any = _schema(self._shape)
            # null is the request of a step without params
            self._decoder = msgspec.json.Decoder(self._shape | None)
        except (TypeError, ValueError) as error:
            problem = f"its annotations cannot be checked against JSON: {error}"
            raise _bad_signature(label, problem) from error

    def arguments(self, order: Order) -> dict[str, Any]:
        """The keyword arguments for one call; raises `request.invalid` naming the parameter."""
        if self._rest is not None:
            arguments = self._with_rest(order.request)
        else:
            try:
                bound = self._decoder.decode(order.request)
                if bound is None:
                    bound = msgspec.convert({}, self._shape)
                arguments = structs.asdict(bound)
            except msgspec.MsgspecError as error:
                arguments = self._single(order.request, error)
        if self.takes_ctx:
            arguments[_CTX] = context_of(order)
        return arguments

    def _single(self, request: Raw, error: msgspec.MsgspecError) -> dict[str, Any]:
        if bytes(request).lstrip()[:1] in (b"{", b"n"):
            self._refuse(str(error))
        if len(self._names) != 1:
            names = ", ".join(self._names) or "none"
            got = type(_decode_any(request)).__name__
            self._refuse(f"Expected `object` with parameters {names}, got `{got}`")
        try:
            whole = msgspec.convert({self._names[0]: _decode_any(request)}, self._shape)
        except msgspec.ValidationError as wrong:
            self._refuse(str(wrong))
        return structs.asdict(whole)

    def _with_rest(self, request: Raw) -> dict[str, Any]:
        given = _decode_any(request)
        if given is None:
            given = {}
        if not isinstance(given, dict):
            if len(self._names) != 1:
                self._refuse(f"Expected `object`, got `{type(given).__name__}`")
            given = {self._names[0]: given}
        try:
            arguments = structs.asdict(msgspec.convert(given, self._shape))
        except msgspec.ValidationError as error:
            self._refuse(str(error))
        for name, value in given.items():
            if name == _CTX and self.takes_ctx:
                self._refuse(f"Object contains unknown field `{_CTX}`")
            if name not in arguments:
                arguments[name] = self._one_more(name, value)
        return arguments

    def _one_more(self, name: str, value: Any) -> Any:
        try:
            return msgspec.convert(value, self._rest)
        except msgspec.ValidationError as error:
            self._refuse(f"{error} - at `$.{name}`")

    def _refuse(self, text: str) -> NoReturn:
        path, expected, got = _explain(text, self._names)
        raise RequestError(
            "request.invalid",
            clean_text(
                f"{self._function}, parameter {path or '(all)'}: expected {expected}, got {got}"
            ),
            path=clean_text(path),
            expected=clean_text(expected),
            got=clean_text(got),
        )


def _read(
    function: Callable[..., Any], label: str
) -> tuple[list[tuple[str, Any] | tuple[str, Any, Any]], Any, bool]:
    """The fields of the Struct, the type of `**params` or None, and whether ctx is taken."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        raise _bad_signature(label, f"its signature cannot be read: {error}") from error
    types = _types(function, signature.parameters, label)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    rest: Any = None
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            problem = f"parameter {name!r} cannot be given by name; take it without / and *"
            raise _bad_signature(label, problem)
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = types.get(name, Any)
        elif name != _CTX:
            kind = types.get(name, Any)
            if parameter.default is parameter.empty:
                fields.append((name, kind))
            else:
                fields.append((name, kind, _default(parameter.default)))
    return fields, rest, _CTX in signature.parameters


def _types(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], label: str
) -> dict[str, Any]:
    """The annotations that matter: what ctx and the result are named may stay unresolvable."""
    wanted = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if name != _CTX and parameter.annotation is not parameter.empty
    }
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(
            SimpleNamespace(__annotations__=wanted), globalns=names, include_extras=True
        )
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        problem = f"an annotation cannot be resolved: {error}; define the type at module level"
        raise _bad_signature(label, problem) from error


def _default(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    return msgspec.field(default_factory=lambda: copy(value))  # each call has its own list


def _schema(shape: type[Struct]) -> Any:
    plain = msgspec.json.schema(shape)
    definitions = plain["$defs"]
    own = definitions.pop(plain["$ref"].rpartition("/")[2])
    own.pop("title", None)
    for member in own["properties"].values():
        member.pop("default", None)
    if definitions:
        own["$defs"] = definitions
    return own


def _explain(text: str, names: list[str]) -> tuple[str, str, str]:
    """The parameter path, what was expected and what came, out of the decoder's sentence."""
    located = _AT.match(text)
    problem, path = (located["problem"], located["path"] or "") if located else (text, "")
    named = _NAMED.match(problem)
    if named:
        inner = ".".join(part for part in (path, named["name"]) if part)
        if named["what"] == "missing required":
            return inner, "a value", "nothing"
        known = (
            "no such name" if path else f"one of {', '.join(names)}" if names else "no parameter"
        )
        return inner, known, "an unknown name"
    typed = _EXPECTED.match(problem)
    if typed:
        return path, typed["expected"].replace("`", ""), typed["got"].replace("`", "")
    return path, "valid JSON", problem


def _bad_signature(label: str, problem: str) -> RequestError:
    return RequestError("handler.signature", f"{label}: {problem}")
