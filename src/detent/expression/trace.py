"""How a template came to its result: one entry per pair of braces, secrets hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from detent.expression.meter import Meter, keep, new_meter, spend
from detent.expression.redaction import REDACTED, redacted
from detent.expression.template import Broken, Part, parts_of, slots_at_most
from detent.expression.values import MISSING, kind_of, text_bytes, text_of
from detent.model.errors import ExpressionError
from detent.model.limits import PAYLOAD_DEPTH

if TYPE_CHECKING:
    from detent.expression.scope import Scope
    from detent.expression.slots import Slot

Entry = dict[str, Any]


class Trace(NamedTuple):
    """Entries in order, and the result unless there is an error."""

    entries: list[Entry]
    result: Any
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """Give the trace as the wire has it: without a result when there is an error."""
        if self.error is not None:
            return {"entries": self.entries, "error": self.error}
        return {
            "result": self.result,
            "result_type": kind_of(self.result),
            "entries": self.entries,
        }


def trace_template(value: Any, scope: Scope) -> Trace:
    """Render a template while noting where each value came from; never raises."""
    tracer = _Tracer(scope)
    try:
        result = redacted(tracer.value(value, "", 0))
    except ExpressionError as error:
        return Trace(tracer.entries, None, error.message)
    if tracer.error is not None:
        return Trace(tracer.entries, None, tracer.error)
    return Trace(tracer.entries, result, None)


class _Tracer:
    """One walk over a template value."""

    __slots__ = ("_meter", "_scope", "entries", "error")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._meter: Meter = new_meter()
        self.entries: list[Entry] = []
        self.error: str | None = None

    def value(self, value: Any, path: str, depth: int) -> Any:
        if depth > PAYLOAD_DEPTH:
            raise ExpressionError(
                "expression.limit", f"The template is nested deeper than {PAYLOAD_DEPTH} levels."
            )
        prefix = f"{path}." if path else ""
        if isinstance(value, dict):
            return {
                key: self.value(item, f"{prefix}{key}", depth + 1) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self.value(item, f"{prefix}{at}", depth + 1) for at, item in enumerate(value)]
        if isinstance(value, str) and "{{" in value:
            return self._text(value, path or "_")
        return value

    def _text(self, text: str, path: str) -> Any:
        spend(self._meter, slots_at_most(text))
        parts = parts_of(text, strict=False, roots=None)
        if len(parts) == 1:
            return self._part(parts[0], path, embedded=False)
        texts = [text_of(self._part(part, path, embedded=True), self._meter) for part in parts]
        keep(self._meter, sum(text_bytes(part) for part in texts))
        return "".join(texts)

    def _part(self, part: Part, path: str, *, embedded: bool) -> Any:
        if isinstance(part, str):
            return part
        entry: Entry = {"param_path": path, "expression": part.text, "status": "error"}
        self.entries.append(entry)
        try:
            if isinstance(part, Broken):
                raise part.error
            return self._slot(part, entry, embedded=embedded)
        except ExpressionError as error:
            entry |= {
                "fallback_used": False,
                "coerced_to_string": False,
                "error": error.message,
            }
            self.error = self.error or error.message
            return None

    def _slot(self, slot: Slot, entry: Entry, *, embedded: bool) -> Any:
        found = slot.find(self._scope, self._meter)
        value = slot.filtered(found.value, self._scope, self._meter)
        leaf = entry["param_path"].rpartition(".")[2]
        shown = redacted(value, leaf)
        if value is None:
            status = "null" if self._first_is_there(slot, found.source) else "missing"
        else:
            status = "redacted" if shown == REDACTED != value else "ok"
        entry |= {"status": status, "value": shown, "result_type": kind_of(value)}
        if found.source is not None:
            entry["source"] = found.source
        entry["fallback_used"] = found.fallback_used
        entry["coerced_to_string"] = embedded and not isinstance(value, str)
        return shown

    def _first_is_there(self, slot: Slot, source: str | None) -> bool:
        first = slot.alternatives[0]
        return source is not None or first.find(self._scope, self._meter) is not MISSING
