"""What an instance has done (contract §11), why it stands still, and proof of it."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from starlette.responses import Response

from detent.kernel.views import AuditEntry, OutputRow, Transition
from detent.model.ids import derived_id
from detent.service import explaining, histories, proving, work_views
from detent.service.reading import find_instance, timing_of
from detent.service.templates import resolved_input
from detent.web.api.call import Call
from detent.web.api.reply import instant, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.ports.store import Store

table = Table("histories")

AUDIT_MOST = 200
_INTERNAL = "__"
_encode = msgspec.json.Encoder().encode


class Window(Struct):
    """Which part of a history to show."""

    offset: int = 0
    limit: int = 100


class AuditQuery(Struct):
    """`all` shows every journal entry, not only changes of state."""

    all: bool = False
    limit: int = AUDIT_MOST


@table.route("GET", "/instances/{id:uuid}/outputs", gives={200: list[Any]})
async def outputs(call: Call) -> Response:
    """Every output in the order of its creation."""

    def read(store: Store) -> list[dict[str, Any]]:
        rows = histories.instance_outputs(store, call.path["id"], call.tenant)
        timing = timing_of(store)
        return [output_wire(call.path["id"], row, timing) for row in rows]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/instances/{id:uuid}/tree", gives={200: list[Any]})
async def tree(call: Call) -> Response:
    """The execution tree, parents before children."""

    def read(store: Store) -> list[dict[str, Any]]:
        instance = call.path["id"]
        found = histories.instance_tree(store, instance, call.tenant)
        timing = timing_of(store)
        return [
            {
                "id": _row_id(instance, f"node:{node.id}"),
                "instance_id": instance,
                "block_id": node.block,
                "parent_id": _row_id(instance, f"node:{node.parent}") if node.parent else None,
                "block_type": node.type,
                "branch_index": node.branch_index,
                "iteration": node.iteration,
                "path": node.id,
                "state": node.state,
                "started_at": _at(node.started, timing),
                "completed_at": _at(node.completed, timing),
            }
            for node in found.nodes
        ]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/instances/{id:uuid}/audit", query=AuditQuery, gives={200: list[Any]})
async def audit(call: Call) -> Response:
    """The changes of state, the newest first; with `all=true` every entry of the journal."""
    asked: AuditQuery = call.query

    def read(store: Store) -> list[dict[str, Any]]:
        row = find_instance(store, call.path["id"], call.tenant)
        timing = timing_of(store)
        entries = histories.instance_audit(store, row.id, call.tenant)
        made = [audit_wire(row.id, row.tenant, each, timing) for each in entries]
        wanted = [each for each in made if asked.all or each["event_type"] in _CHANGES]
        return wanted[::-1][: max(0, min(asked.limit, AUDIT_MOST if not asked.all else 10_000))]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/instances/{id:uuid}/logs", gives={200: list[Any]})
async def logs(call: Call) -> Response:
    """What log steps said and workers wrote down, the oldest first."""

    def read(store: Store) -> list[dict[str, Any]]:
        said = histories.instance_logs(store, call.path["id"], call.tenant)
        timing = timing_of(store)
        lines = [_line(each, _at(each.tick, timing)) for each in said]
        written = work_views.instance_logs(store, call.path["id"], call.tenant)
        lines += [_line(each, each.ts) for each in written]
        return sorted(lines, key=lambda line: _moment(line["ts"]))

    return json_reply(await call.desk.look(read))


def _line(said: histories.LogLine | work_views.LogLine, ts: str | None) -> dict[str, Any]:
    return {"block_id": said.block, "ts": ts, "level": said.level, "message": said.message}


def _moment(ts: str | None) -> float:
    """The instant of a line; one that does not tell when it was written comes last."""
    try:
        told = dt.datetime.fromisoformat(ts or "")
    except ValueError:
        return math.inf
    return (told if told.tzinfo is not None else told.replace(tzinfo=dt.UTC)).timestamp()


@table.route("GET", "/instances/{id:uuid}/timeline", query=Window, gives={200: Any})
async def timeline(call: Call) -> Response:
    """The changes of state and the outputs of an instance."""
    asked: Window = call.query

    def read(store: Store) -> dict[str, Any]:
        from detent.web.api.instance_shape import shown

        row = find_instance(store, call.path["id"], call.tenant)
        found = histories.instance_timeline(store, row.id, call.tenant)
        timing = timing_of(store)
        offset, limit = max(0, asked.offset), max(1, min(asked.limit, 1_000))
        page = found.outputs[offset : offset + limit]
        return {
            "instance": shown(store, [row])[0],
            "state_transitions": [_change(each, timing) for each in found.transitions],
            "entries": [_entry(each, timing) for each in page],
            "offset": offset,
            "limit": limit,
            "has_more": len(found.outputs) > offset + limit,
        }

    return json_reply(await call.desk.look(read))


@table.route("GET", "/instances/{id:uuid}/effects", gives={200: list[Any]})
async def effects(call: Call) -> Response:
    """Every effect the instance has planned, with its last state."""

    def read(store: Store) -> list[dict[str, Any]]:
        found = histories.instance_effects(store, call.path["id"], call.tenant)
        timing = timing_of(store)
        return [
            {
                "key": each.key,
                "block_id": each.block,
                "node": each.node,
                "handler": each.handler,
                "kind": "message" if each.handler == "emit_event" else each.kind,
                "attempt": each.attempt - 1,
                "state": "committed" if each.state == "applied" else each.state,
                "planned_at": _at(each.planned, timing),
                "settled_at": _at(each.settled, timing),
            }
            for each in found
        ]

    return json_reply(await call.desk.look(read))


@table.route("GET", "/instances/{id:uuid}/blocks/{block}/resolved-input", gives={200: Any})
async def input_of_block(call: Call) -> Response:
    """The params of a step filled in, and where each value came from."""
    return json_reply(
        await call.desk.look(
            lambda store: resolved_input(store, call.path["id"], call.tenant, call.path["block"])
        )
    )


@table.route("GET", "/instances/{id:uuid}/explain", gives={200: Any})
async def explain(call: Call) -> Response:
    """Why an instance stands still, what would release it, and when it can move by itself."""
    tick = call.desk.moment().tick
    found = await call.desk.look(
        lambda store: explaining.explain_instance(store, call.path["id"], call.tenant, tick)
    )
    made = msgspec.to_builtins(found)
    made["earliest_at"] = instant(found.earliest_ms)
    return json_reply(made)


@table.route("GET", "/instances/{id:uuid}/replay", gives={200: Any})
async def replay(call: Call) -> Response:
    """Run an instance again from its record and compare entry by entry."""
    found = await call.desk.look(
        lambda store: proving.replay_instance(store, call.path["id"], call.tenant)
    )
    return json_reply(found)


def output_wire(instance: str, row: OutputRow, timing: Timing) -> dict[str, Any]:
    """One output as the API shows it."""
    return {
        "id": _row_id(instance, f"output:{row.id}"),
        "instance_id": instance,
        "block_id": row.block,
        "output": row.output,
        "output_ref": row.ref,
        "output_size": len(_encode(row.output)),
        "attempt": row.attempt - 1,
        "created_at": _at(row.tick, timing),
    }


_CHANGES = ("state_transition", "batch_action")


def audit_wire(instance: str, tenant: str, entry: AuditEntry, timing: Timing) -> dict[str, Any]:
    """One journal entry as the API shows it."""
    detail = entry.detail if isinstance(entry.detail, dict) else {}
    changed = entry.action.startswith("run.") and "to" in detail
    in_bulk = entry.action == "batch.action"
    kind = "batch_action" if in_bulk else "state_transition" if changed else entry.action
    made: dict[str, Any] = {
        "id": _row_id(instance, f"entry:{entry.id}"),
        "instance_id": instance,
        "tenant_id": tenant,
        "event_type": kind,
    }
    if changed:
        made |= {"from_state": detail.get("from") or None, "to_state": detail["to"]}
    elif in_bulk:
        made["from_state"] = detail["state"]
    if entry.node:
        made["block_id"] = entry.node
    made["details"] = entry.detail
    made["created_at"] = _at(entry.tick, timing)
    return made


def _change(each: Transition, timing: Timing) -> dict[str, Any]:
    at = _at(each.tick, timing)
    return {"from_state": each.source or None, "to_state": each.target, "at": at}


def _entry(row: OutputRow, timing: Timing) -> dict[str, Any]:
    return {
        "block_id": row.block,
        "attempt": row.attempt - 1,
        "completed_at": _at(row.tick, timing),
        "output": row.output,
        "output_ref": row.ref,
        "is_sentinel": (row.ref or "").startswith(_INTERNAL),
    }


def _row_id(instance: str, key: str) -> str:
    return derived_id(instance, "request", key)


def _at(tick: int | None, timing: Timing) -> str | None:
    return None if tick is None else instant(timing.ms_of(tick))
