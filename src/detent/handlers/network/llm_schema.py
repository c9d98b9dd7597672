"""Structured output: a model's text must hold JSON that fits a schema, or it is asked to repair it.

The schema comes from a definition and must not make the engine look outside: a reference to
another document is refused when it is compiled.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

import jsonschema_rs
import msgspec
from msgspec.structs import replace

from detent.handlers.network.llm_ask import Ask
from detent.handlers.network.outside import wrong

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_SHOWN: Final = 20
_REASON_CHARS: Final = 300


class Schema:
    """A compiled schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._plain = schema
        try:
            self._validator = jsonschema_rs.validator_for(schema, retriever=_stay_inside)
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            reason = str(getattr(error, "message", error)).splitlines()[0][:_REASON_CHARS]
            raise wrong(f"response_schema does not compile: {reason}") from None

    def ask_for(self, ask: Ask) -> Ask:
        """The question, with the wish for JSON in it."""
        wish = "Answer with one JSON value and nothing else. It must fit this JSON Schema:\n"
        wish += msgspec.json.encode(self._plain).decode()
        system = wish if not ask.system else f"{ask.system}\n\n{wish}"
        options = ask.options
        if self._plain.get("type") == "object" and ask.provider != "anthropic":
            options = {"response_format": {"type": "json_object"}, **options}
        return replace(ask, system=system, options=options)

    def read(self, text: str) -> tuple[Any, list[str]]:
        """The value in a text and what is wrong with it; nothing wrong: it fits."""
        faults = ["the answer holds no JSON"]
        for candidate in _candidates(text):
            try:
                value = msgspec.json.decode(candidate)
            except (msgspec.DecodeError, RecursionError):
                continue
            faults = [
                f"/{'/'.join(map(str, fault.instance_path))}: {fault.message}"[:_REASON_CHARS]
                for fault in self._validator.iter_errors(value)
            ][:_SHOWN]
            if not faults:
                return value, []
        return None, faults


def repaired(ask: Ask, text: str, faults: list[str]) -> Ask:
    """The question once more, with the answer that did not fit and why."""
    listed = "\n".join(f"- {fault}" for fault in faults)
    wish = f"That does not fit the schema:\n{listed}\nAnswer again, with the corrected JSON only."
    return replace(
        ask,
        messages=[
            *ask.messages,
            {"role": "assistant", "content": text or "(empty)"},
            {"role": "user", "content": wish},
        ],
    )


def _candidates(text: str) -> list[str]:
    """Where the JSON may stand: alone, between fences, or amid prose."""
    found = [text.strip(), *(block.strip() for block in _FENCED.findall(text))]
    for first, last in (("{", "}"), ("[", "]")):
        begin, end = text.find(first), text.rfind(last)
        if 0 <= begin < end:
            found.append(text[begin : end + 1])
    return [candidate for candidate in dict.fromkeys(found) if candidate]


def _stay_inside(uri: str) -> NoReturn:
    raise ValueError(f"{uri} is outside of the schema, put its content under $defs")
