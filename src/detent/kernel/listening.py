"""The waiting side of correlation: a step tells the correlator of its key that it waits, or left.

The correlator is an instance of its own, started with the first wait or event of its key. Its
definition is a fact, told by the runtime, which keeps it in the store.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from detent.kernel.run import Run
from detent.model.decision import Birth, Message
from detent.model.ids import SYSTEM, derived_id
from detent.model.inputs import EventsMatched, Started, WaitLeft, WaitRegistered, encode_input
from detent.model.snapshot import Frame

HANDLER = "wait_for_event"
DEFINITION = "detent.events"
PRIORITY = 2  # ahead of what waits for it


class Listen(NamedTuple):
    """What a step waits for; as many events as `most`, 0 for one of each name."""

    names: tuple[str, ...]
    key: str
    most: int


def correlator_id(tenant: str, key: str) -> str:
    """The instance that brings events and waits of a correlation key together."""
    return derived_id(tenant, "events", key)


def event_id(tenant: str, name: str, producer: str) -> str:
    """The id of an event: the same one told twice has the same."""
    return derived_id(tenant, "event", f"{name}\x00{producer}")


def correlator_start(tenant: str, key: str, definition: str, seed: str) -> tuple[Started, Birth]:
    """How a correlator is started; a second start finds it there."""
    id = correlator_id(tenant, key)
    started = Started(
        instance=id,
        tenant=tenant,
        namespace=SYSTEM,
        definition=definition,
        priority=PRIORITY,
        data={"key": key},
        key=key,
        seed=seed,
        id=f"start:{id}",
    )
    birth = Birth(
        id=id, tenant=tenant, namespace=SYSTEM, definition=definition, priority=PRIORITY, key=key
    )
    return started, birth


def stand(run: Run, frame: Frame, path: str, listen: Listen, due: int | None) -> None:
    """Register the wait of a frame, which stands until it is answered or its time is over."""
    snapshot = run.snapshot
    definition = run.fact("system", DEFINITION)
    token = snapshot.tokens + 1
    wait = derived_id(snapshot.tenant, "wait", f"{snapshot.id}:{token}")
    heard = {"wait": wait, "key": listen.key, "names": list(listen.names)}
    frame.v = {**(frame.v or {}), "heard": heard}
    run.wait(frame, path, "event", due, wait)
    started, birth = correlator_start(snapshot.tenant, listen.key, definition, snapshot.seed)
    told = WaitRegistered(
        wait=wait,
        instance=snapshot.id,
        token=token,
        names=listen.names,
        count=listen.most,
        id=f"wait:{wait}",
    )
    run.messages += (
        Message(id=started.id, to=birth.id, body=encode_input(started), start=birth),
        Message(id=told.id, to=birth.id, body=encode_input(told)),
    )


def leave(run: Run, frame: Frame) -> None:
    """The frame waits for its events no longer: whatever was kept for it is free again."""
    heard = frame.v.pop("heard", None) if isinstance(frame.v, dict) else None
    if heard is not None:
        _send_left(run, heard["wait"], correlator_id(run.snapshot.tenant, heard["key"]))


def refuse(run: Run, told: EventsMatched) -> None:
    """Nobody waits for these events any more: they go back."""
    _send_left(run, told.wait, told.correlator)


def output_of(frame: Frame, told: EventsMatched) -> dict[str, Any]:
    """The output of a step whose events have come."""
    heard = frame.v["heard"]
    return {
        "wait_id": told.wait,
        "events": {each["event_name"]: each for each in told.events},
        "all": list(told.events),
        "waiting_for": heard["names"],
        "correlation_key": heard["key"],
        "satisfied": True,
        "matched": len(told.events),
    }


def listen_again(frame: Frame | None) -> None:
    """A fork has waits of its own: every frame that waits for events registers once more."""
    if frame is None:
        return
    if frame.wait is not None and frame.wait.kind == "event":
        frame.wait = None
        frame.phase = "answered"
        frame.v = {name: value for name, value in frame.v.items() if name != "heard"} or None
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            listen_again(lane.open)


def _send_left(run: Run, wait: str, correlator: str) -> None:
    told = WaitLeft(wait=wait, id=f"left:{wait}")
    run.messages.append(Message(id=told.id, to=correlator, body=encode_input(told)))
