"""Sessions (contract §22): instances that belong together, paused and resumed together."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.model.errors import RequestError
from detent.model.limits import INSTANCES_PER_TURN, LIST_MOST
from detent.service import sessions as service
from detent.service.arguments import invalid
from detent.service.reading import still_there
from detent.service.sending import command_submission
from detent.service.sessions import NewSession, Session, State, Steering
from detent.web.api import instance_shape
from detent.web.api.call import Call
from detent.web.api.reply import empty_reply, json_reply, utc
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.ports.store import Store

table = Table("sessions")

# An instance that ended or moved meanwhile is not to be told any more.
_TOO_LATE = ("instance.terminal", "instance.transition", "instance.not_found")


class SessionData(Struct):
    """Data that replaces what was there."""

    data: Any


class SessionState(Struct):
    """The state to move to."""

    state: State


class MemberQuery(Struct):
    """Which part of the instances to list."""

    offset: int = 0
    limit: int = LIST_MOST


@table.route("POST", "/sessions", takes=NewSession, gives={201: Session})
async def create(call: Call, body: NewSession) -> Response:
    """Open a session under a key of the tenant's own."""
    new = replace(body, expires_at=utc(body.expires_at))
    id, now_ms = call.fresh_id(), call.desk.wall_ms()
    made = await call.desk.write(
        lambda store: service.create_session(store, call.tenant, new, id, now_ms)
    )
    return json_reply(made, 201)


@table.route("GET", "/sessions/{id:uuid}", gives={200: Session})
async def show(call: Call) -> Response:
    """One session."""
    now_ms = call.desk.wall_ms()
    return json_reply(
        await call.desk.look(
            lambda store: service.get_session(store, call.tenant, call.path["id"], now_ms)
        )
    )


@table.route("GET", "/sessions/by-key/{tenant}/{key}", gives={200: Session})
async def by_key(call: Call) -> Response:
    """The session that a tenant has under a key."""
    now_ms, named, key = call.desk.wall_ms(), call.path["tenant"], call.path["key"]
    return json_reply(
        await call.desk.look(
            lambda store: service.session_by_key(store, call.tenant, named, key, now_ms)
        )
    )


@table.route("PATCH", "/sessions/{id:uuid}/data", takes=SessionData, gives={200: None})
async def set_data(call: Call, body: SessionData) -> Response:
    """Replace the data as a whole."""
    now_ms, id = call.desk.wall_ms(), call.path["id"]
    await call.desk.write(
        lambda store: service.set_session_data(store, call.tenant, id, body.data, now_ms)
    )
    return empty_reply(200)


@table.route("PATCH", "/sessions/{id:uuid}/state", takes=SessionState, gives={200: None})
async def set_state(call: Call, body: SessionState) -> Response:
    """Move to a state; pausing pauses the instances in it, activating resumes those again."""
    await steer(call, call.tenant, call.path["id"], body.state)
    return empty_reply(200)


@table.route("GET", "/sessions/{id:uuid}/instances", query=MemberQuery, gives={200: list[Any]})
async def members(call: Call) -> Response:
    """The instances in a session, in the order of joining, each followed by what it started."""
    asked: MemberQuery = call.query
    if asked.offset < 0 or not asked.limit > 0:
        raise invalid("limit", "above 0, and offset not negative", asked.limit)
    end = asked.offset + min(asked.limit, LIST_MOST)

    def read(store: Store) -> list[dict[str, Any]]:
        rows = service.session_instances(store, call.tenant, call.path["id"])
        return instance_shape.shown(store, still_there(store, rows)[asked.offset : end])

    return json_reply(await call.desk.look(read))


async def join(call: Call, tenant: str, members: list[tuple[str, str]]) -> None:
    """Let instances that are about to be started belong to sessions: pairs of session, instance.

    One that is there already was started before, and stays where it is.
    """
    now_ms = call.desk.wall_ms()

    def write(store: Store) -> None:
        for session, instance in members:
            if store.instance(instance) is None:
                service.join_session(store, tenant, session, instance, now_ms)

    await call.desk.write(write)


async def catch_up(call: Call, tenant: str, session: str) -> None:
    """Pause what was started in a session while that was being paused."""
    now_ms = call.desk.wall_ms()
    found = await call.desk.look(lambda s: service.get_session(s, tenant, session, now_ms))
    if found.state == "paused":
        await steer(call, tenant, session, "paused")


async def steer(call: Call, tenant: str | None, session: str, state: State) -> None:
    """Move a session to a state, and its instances with it."""
    desk, now_ms = call.desk, call.desk.wall_ms()
    told: Steering = await desk.write(
        lambda store: service.set_session_state(store, tenant, session, state, now_ms)
    )
    for at in range(0, len(told.instances), INSTANCES_PER_TURN):
        some = told.instances[at : at + INSTANCES_PER_TURN]
        await asyncio.gather(*(_command(call, told, instance) for instance in some))
    if told.verb == "resume":
        await desk.write(lambda store: service.note_resumed(store, told, now_ms))


async def _command(call: Call, told: Steering, instance: str) -> None:
    made = command_submission(instance, told.verb or "pause", None, call.fresh_id(), 0)
    try:
        await call.desk.ask(lambda ack: replace(made, ack=ack))
    except RequestError as error:
        if error.code not in _TOO_LATE:
            raise
