"""The description of the API as a page for people; it needs nothing from any network."""

from __future__ import annotations

from html import escape
from typing import Any

from starlette.responses import HTMLResponse, Response

from detent.web.api.call import Call
from detent.web.api.routes import Table

table = Table("description")

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--mono:monospace}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:0}
h2{margin-top:2.5rem;text-transform:capitalize;border-bottom:1px solid var(--line)}
details{border:1px solid var(--line);border-radius:.4rem;margin:.4rem 0}
details[open]{background:var(--soft)}
summary{cursor:pointer;padding:.5rem .8rem;display:flex;gap:.8rem}
summary::-webkit-details-marker{display:none}
.m{font:600 .8rem var(--mono);width:4rem;padding-top:.15rem}
.get{color:#2a7}
.post{color:#27c}
.put,.patch{color:#a70}
.delete{color:#c33}
.p{font-family:var(--mono)}
.s{margin-left:auto;opacity:.75;text-align:right}
.b{padding:0 1rem .8rem}
table{border-collapse:collapse;width:100%}
td,th{
  text-align:left;
  padding:.25rem .6rem .25rem 0;
  border-bottom:1px solid var(--line);
  vertical-align:top;
}
code{font-family:var(--mono);font-size:.9em}
nav a{margin-right:.8rem}
"""


@table.route(
    "GET",
    "/swagger-ui",
    tenantless=True,
    root_only=True,
    public=True,
    gives={200: str},
    media="text/html",
)
async def page(call: Call) -> Response:
    """The description of the API for people."""
    return HTMLResponse(render(call.description.document()))


def render(document: dict[str, Any]) -> str:
    """The whole page as HTML."""
    sections: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tag = operation["tags"][0]
            sections.setdefault(tag, []).append(_operation(path, method, operation, document))
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in sections)
    parts = "".join(
        f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(rows)}'
        for tag, rows in sections.items()
    )
    info = document["info"]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])} API"
        f"</title><meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} API</h1><p>Release {escape(info['version'])}. "
        f"{escape(info['description'])} The same as a document: "
        f'<a href="/api-docs/openapi.json">openapi.json</a></p><nav>{links}</nav>{parts}</html>'
    )


def _operation(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    rows = [
        _row(each["name"], each["in"], each["required"], each["schema"])
        for each in operation["parameters"]
    ]
    body = operation.get("requestBody")
    if body is not None:
        schema = next(iter(body["content"].values()))["schema"]
        rows += _members(schema, document)
    answers = ", ".join(
        f"<code>{escape(status)}</code> {escape(answer['description'])}"
        for status, answer in operation["responses"].items()
    )
    table_rows = f"<table>{''.join(rows)}</table>" if rows else ""
    return (
        f"<details><summary><span class='m {method}'>{method.upper()}</span>"
        f"<span class=p>{escape(path)}</span><span class=s>{escape(operation['summary'])}</span>"
        f"</summary><div class=b>{table_rows}<p>Answers: {answers}</p></div></details>"
    )


def _members(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    shape = _resolved(schema, document)
    required = shape.get("required", ())
    return [
        _row(name, "body", name in required, each)
        for name, each in shape.get("properties", {}).items()
    ]


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document["components"]["schemas"].get(name, schema)
    return found


def _row(name: str, place: str, required: bool, schema: dict[str, Any]) -> str:  # noqa: FBT001
    need = " <b>required</b>" if required else ""
    default = f", default {escape(repr(schema['default']))}" if "default" in schema else ""
    kind = f"{escape(_kind(schema))}{default}"
    return f"<tr><td><code>{escape(name)}</code>{need}<td>{place}<td>{kind}</tr>"


def _kind(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    return str(schema.get("format") or schema.get("type") or "anything")
