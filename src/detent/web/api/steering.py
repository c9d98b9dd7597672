"""Steering one instance (contract §10.4, §12 and §31): another state, other data, other blocks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.kernel.fork import ForkRequest
from detent.model.decision import ANYBODY, HandlerSpec, Verdict
from detent.service import sending, steering
from detent.service.forking import fork_signals, plan_fork
from detent.service.reading import find_instance
from detent.web.api.bodies import aware
from detent.web.api.call import Call
from detent.web.api.refusals import Refusal
from detent.web.api.reply import empty_reply, json_reply
from detent.web.api.routes import Table
from detent.web.api.signals import NewSignal, commanded, known, signal_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from detent.ports.store import Store

table = Table("steering")

State = Literal["scheduled", "running", "waiting", "paused", "completed", "failed", "cancelled"]


class NewState(Struct):
    """The state to set; with `scheduled`, when the instance goes on."""

    state: State
    next_fire_at: dt.datetime | None = None


class ContextData(Struct):
    """The part of a context that callers write; the other sections are the engine's."""

    data: Any = None


class NewContext(Struct):
    """A context whose data replaces what was there."""

    context: ContextData


class ResumeFrom(Struct):
    """Data to merge, and signals to find there."""

    context: dict[str, Any] | None = None
    signals: list[NewSignal] = []


class Resumed(Struct):
    """Where an instance goes on."""

    id: str
    state: str
    resumed_from: str
    outputs_deleted: int
    signals_enqueued: int


class NewFork(Struct):
    """Where a fork begins and what differs in it; by default nothing outside is touched.

    It begins before a block or a node, or after a row of the journal by its number.
    """

    from_block_id: str | None = None
    seq: int | None = None
    context: dict[str, Any] | None = None
    dry_run: bool = True
    signals: list[NewSignal] = []


class Forked(Struct):
    """A fork, how many blocks have their output copied, and which run again."""

    id: str
    forked_from: str
    state: str
    copied_blocks: int
    rerun_blocks: list[str]
    dry_run: bool


class NewBlocks(Struct):
    """Blocks for one instance; `position` is among those that were put in before."""

    blocks: list[Any]
    position: int | None = None


class Injected(Struct):
    """What was put in."""

    injected_block_ids: list[str]
    position: int | None
    total_injected: int


@table.route("PATCH", "/instances/{id:uuid}/state", takes=NewState, gives={200: None})
async def set_state(call: Call, body: NewState) -> Response:
    """Set the state, as the life cycle allows."""
    args = steering.set_state(body.state, aware(body.next_fire_at), call.desk.moment())
    await _ask(call, "set_state", args)
    return empty_reply()


@table.route("PATCH", "/instances/{id:uuid}/context", takes=NewContext, gives={200: None})
async def set_context(call: Call, body: NewContext) -> Response:
    """Replace the data, whatever the state; config, audit and runtime stay."""
    await _ask(call, "set_data", steering.set_data(body.context.data))
    return empty_reply()


@table.route("POST", "/instances/{id:uuid}/pause", gives={200: Any})
async def pause(call: Call) -> Response:
    """Hold an instance before its next step."""
    return await commanded(call, "pause")


@table.route("POST", "/instances/{id:uuid}/resume", gives={200: Any})
async def resume(call: Call) -> Response:
    """Let a paused instance go on."""
    return await commanded(call, "resume")


@table.route("POST", "/instances/{id:uuid}/cancel", gives={200: Any})
async def cancel(call: Call) -> Response:
    """Cancel an instance; what must not be interrupted ends first."""
    return await commanded(call, "cancel")


@table.route(
    "POST",
    "/instances/{id:uuid}/resume-from/{block}",
    takes=ResumeFrom,
    optional_body=True,
    gives={200: Resumed},
)
async def resume_from(call: Call, body: ResumeFrom) -> Response:
    """Repeat a block of the top level and all that follow it."""
    args = steering.resume_from(call.path["block"], body.context, _plain(body.signals))
    verdict = await _ask(call, "resume_from", args)
    return json_reply({"id": call.path["id"], **verdict.result})


@table.route("POST", "/instances/{id:uuid}/fork", takes=NewFork, gives={201: Forked})
async def fork(call: Call, body: NewFork) -> Response:
    """Start a new instance from the record of one: before a block of it, or after a row."""
    if body.from_block_id is None and body.seq is None:
        raise Refusal(422, "missing field `from_block_id`, or the number `seq` of a row")
    moment, origin = call.desk.moment(), call.path["id"]
    request = ForkRequest(
        instance=call.fresh_id(),
        seq=body.seq or 0,
        before=body.from_block_id or "",
        data=body.context,
        dry_run=body.dry_run,
        signals=fork_signals(_plain(body.signals)),
        seed=moment.seed,
    )
    plan = await call.desk.look(lambda store: plan_fork(store, origin, call.tenant, request))
    await call.desk.ask(lambda ack: replace(plan.submission, ack=ack))
    row = await call.desk.look(lambda store: find_instance(store, request.instance, call.tenant))
    made = Forked(
        id=row.id,
        forked_from=origin,
        state=row.state,
        copied_blocks=plan.copied,
        rerun_blocks=list(plan.rerun),
        dry_run=body.dry_run,
    )
    return json_reply(made, 201)


@table.route("POST", "/instances/{id:uuid}/inject-blocks", takes=NewBlocks, gives={200: Injected})
async def inject_blocks(call: Call, body: NewBlocks) -> Response:
    """Put blocks into one instance, after those of its sequence."""
    handlers = handlers_of(call)

    def check(store: Store) -> dict[str, Any]:
        return steering.inject(
            store, call.path["id"], call.tenant, body.blocks, body.position, handlers
        )

    verdict = await _ask(call, "inject", await call.desk.look(check))
    told = verdict.result
    return json_reply({name: told[name] for name in Injected.__struct_fields__})


async def _ask(call: Call, verb: sending.Verb, args: Any) -> Verdict:
    instance = await known(call)
    made = sending.command_submission(instance, verb, args, call.fresh_id(), 0)
    return await call.desk.ask(lambda ack: replace(made, ack=ack))


def _plain(signals: Sequence[NewSignal]) -> list[dict[str, Any]]:
    return [{"name": signal_name(each.signal_type), "payload": each.payload} for each in signals]


def handlers_of(call: Call) -> Mapping[str, HandlerSpec]:
    """Who may perform a step: this process, and anybody where workers are let in."""
    known_here = call.desk.handlers()
    if not call.desk.workers():
        return known_here
    return {**known_here, ANYBODY: HandlerSpec(name=ANYBODY, worker=True)}
