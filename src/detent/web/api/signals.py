"""Signals, approvals and decisions about an instance (contract §12 to §14)."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.model.ids import SYSTEM
from detent.service import explaining, sending
from detent.service.arguments import unknown_instance
from detent.service.instances import SequenceIds
from detent.service.reading import find_instance
from detent.web.api.call import Call
from detent.web.api.refusals import Refusal
from detent.web.api.reply import instant, json_reply, seconds
from detent.web.api.routes import Table

table = Table("signals")


class NewSignal(Struct):
    """A control word, `custom:<name>`, or `{"custom": name}`, with anything beside it."""

    signal_type: str | dict[str, str]
    payload: Any = None
    signal_id: str | None = None  # sent twice with one id, it counts once


class Sent(Struct):
    """The id of a signal that is durable."""

    signal_id: str


class Resolution(Struct):
    """What a person decides about an effect in doubt."""

    action: Literal["happened", "failed", "skip", "again"]
    result: Any = None


class Moved(Struct):
    """An instance and the state it is in now."""

    id: str
    state: str


class ApprovalQuery(Struct):
    """Which questions to list."""

    tenant_id: str | None = None
    namespace: str | None = None
    offset: int = 0
    limit: int = 100


class Approvals(Struct):
    """Questions that wait for a person."""

    items: list[Any]
    total: int


@table.route("POST", "/instances/{id:uuid}/signals", takes=NewSignal, gives={201: Sent})
async def send(call: Call, body: NewSignal) -> Response:
    """Send a signal; when this answers, it is durable."""
    name = signal_name(body.signal_type)
    instance = await known(call)
    told = call.own_id(instance, body.signal_id)
    made = sending.signal_submission(instance, name, body.payload, told, 0)
    await call.desk.ask(lambda ack: replace(made, ack=ack))
    return json_reply(Sent(told if body.signal_id is None else body.signal_id), 201)


@table.route("POST", "/instances/{id:uuid}/retry", gives={200: Moved})
async def retry(call: Call) -> Response:
    """Go on from the failed nodes; nothing completed is repeated."""
    return await commanded(call, "retry")


@table.route(
    "POST", "/instances/{id:uuid}/effects/{key}/resolve", takes=Resolution, gives={200: Moved}
)
async def resolve(call: Call, body: Resolution) -> Response:
    """Decide an effect that nobody knows the outcome of."""
    args = {"key": call.path["key"], "action": body.action, "result": body.result}
    return await commanded(call, "resolve", args)


@table.route("GET", "/approvals", query=ApprovalQuery, gives={200: Approvals})
async def approvals(call: Call) -> Response:
    """The questions that wait for a person's answer."""
    asked: ApprovalQuery = call.query

    def read(store: Any) -> list[dict[str, Any]]:
        found = explaining.approvals(
            store,
            call.scope(asked.tenant_id),
            namespace=asked.namespace or "",
            offset=asked.offset,
            limit=min(asked.limit, explaining.APPROVALS_LIMIT),
        )
        ids = SequenceIds(store)
        return [_question(each, ids) for each in found]

    items = await call.desk.look(read)
    return json_reply(Approvals(items=items, total=len(items)))


async def known(call: Call) -> str:
    """The id of the instance in the path, if it is this tenant's and not the engine's own."""
    row = await call.desk.look(lambda s: find_instance(s, call.path["id"], call.tenant))
    if row.namespace == SYSTEM:
        raise unknown_instance(row.id)
    return row.id


async def commanded(call: Call, verb: sending.Verb, args: Any = None) -> Response:
    """Ask the kernel for a change; the state the instance is in afterwards."""
    instance = await known(call)
    made = sending.command_submission(instance, verb, args, call.fresh_id(), 0)
    verdict = await call.desk.ask(lambda ack: replace(made, ack=ack))
    state = verdict.result.get("state", "") if isinstance(verdict.result, dict) else ""
    return json_reply(Moved(instance, "scheduled" if verb == "retry" else state))


def signal_name(given: str | dict[str, str]) -> str:
    """The name of a signal; an unknown word is no signal."""
    if isinstance(given, dict):
        name = given.get("custom")
        if list(given) == ["custom"] and name:
            return f"custom:{name}"
    elif given in sending.CONTROL or (given.startswith("custom:") and given != "custom:"):
        return given
    words = ", ".join(sending.CONTROL)
    raise Refusal(
        422, f'signal_type must be one of {words} or {{"custom": "name"}}; got {str(given)[:80]!r}'
    )


def _question(each: explaining.Approval, ids: SequenceIds) -> dict[str, Any]:
    return {
        "instance_id": each.instance,
        "tenant_id": each.tenant,
        "namespace": each.namespace,
        "sequence_id": ids.of(each.tenant, each.namespace, each.definition),
        "sequence_name": each.name,
        "block_id": each.block,
        "prompt": each.prompt,
        "choices": [{"label": label, "value": value} for label, value in each.choices],
        "store_as": each.store_as,
        "timeout_seconds": seconds(each.timeout_ms),
        "escalation_handler": each.escalation_handler,
        "waiting_since": instant(each.since_ms),
        "deadline": instant(each.deadline_ms),
        "metadata": each.metadata,
        "allow_comment": each.allow_comment,
    }
