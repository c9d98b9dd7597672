"""The audit of one instance as a PDF for people: who, how it ended, the timeline, and the proof.

Set by typst (extra `pdf`), which brings its fonts along. Everything of the instance reaches it as
data, never as text of the document, so nothing in a payload can be taken for markup.
"""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

from detent.model.errors import RequestError
from detent.ports.store import Store
from detent.service.histories import export_audit
from detent.service.instances import show_instance
from detent.service.proving import replay_instance, verify_store

_DETAIL_CHARS = 240

_PAGE = """
#let told = json(bytes(sys.inputs.told))
#set page(paper: "a4", margin: 18mm, numbering: "1 / 1")
#set text(size: 9pt)
#set document(title: "Audit of " + told.id)
= Audit of #told.id
#table(columns: (auto, 1fr), stroke: none, inset: 3pt,
  ..told.facts.map(row => (strong(row.at(0)), row.at(1))).flatten())
== Timeline
#set text(size: 7.5pt)
#table(columns: (auto, auto, auto, 1fr), stroke: 0.3pt + gray, inset: 3pt,
  table.header([*time*], [*node*], [*action*], [*detail*]),
  ..told.entries.flatten())
"""


def audit_pdf(store: Store, instance: str, tenant: str | None) -> bytes:
    """The report of an instance; `request.invalid` where typst is not installed."""
    try:
        import typst  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise RequestError(
            "request.invalid",
            "a PDF needs the package typst; install it with pip install 'detent[pdf]'",
        ) from None
    told = {
        "id": instance,
        "facts": _facts(store, instance, tenant),
        "entries": _entries(store, instance, tenant),
    }
    made: bytes = typst.compile(_PAGE.encode(), sys_inputs={"told": json.dumps(told)})
    return made


def _facts(store: Store, instance: str, tenant: str | None) -> list[tuple[str, str]]:
    shown = show_instance(store, instance, tenant)
    chain = verify_store(store)
    replayed = replay_instance(store, instance, tenant)
    proof = f"valid, {chain.rows} rows in {chain.turns} turns" if chain.valid else "BROKEN"
    return [
        ("State", shown.summary.state),
        ("Tenant, namespace", f"{shown.summary.tenant}, {shown.summary.namespace}"),
        ("Definition", shown.summary.definition),
        ("Chain of the store", proof),
        ("Replay", "identical" if replayed.identical else "DIFFERENT"),
    ]


def _entries(store: Store, instance: str, tenant: str | None) -> list[tuple[str, str, str, str]]:
    rows = []
    for line in export_audit(store, instance, tenant):
        entry: dict[str, Any] = json.loads(line)
        if "action" not in entry:
            continue  # the first line is the instance itself
        at = dt.datetime.fromtimestamp(entry["at_ms"] / 1000, dt.UTC)
        detail = entry.get("detail")
        text = "" if detail is None else json.dumps(detail, ensure_ascii=False)
        if len(text) > _DETAIL_CHARS:
            text = text[:_DETAIL_CHARS] + " …"
        rows.append((at.strftime("%Y-%m-%d %H:%M:%S"), entry["node"], entry["action"], text))
    return rows
