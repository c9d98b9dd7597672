"""correlator: the events and waits of one correlation key, as an instance; its `kv` keeps them.

It stands for ever, and costs a row while nothing is kept. Events, registered waits and waits that
were left are its inputs, so whoever comes first is decided by their order alone. A wait that has
its events is answered by a message; what expires does so at its due tick.
"""

from __future__ import annotations

from detent.kernel.correlation import (
    Correlation,
    Event,
    Registered,
    arrive,
    has_all,
    kept_correlation,
    leave,
    next_sweep,
    read_correlation,
    register,
    standings,
    sweep,
    take_satisfied,
)
from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.kernel.walk import WAIT
from detent.model.decision import EventStanding, Message, Verdict
from detent.model.errors import RequestError
from detent.model.inputs import (
    EventArrived,
    EventsMatched,
    WaitLeft,
    WaitRegistered,
    encode_input,
)
from detent.model.snapshot import Frame

Told = EventArrived | WaitRegistered | WaitLeft


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Take the key out of the data, where a signal could reach it, and stand."""
    data = run.snapshot.data
    key = data.get("key", "") if isinstance(data, dict) else ""
    run.snapshot.data = None
    run.snapshot.kv = kept_correlation(Correlation(key=str(key)))
    run.wait(frame, path, "service", None, "events")
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Let expire what is due to."""
    if frame is run.woken:
        run.woken = None
        correlation = read_correlation(run.snapshot.kv)
        before = standings(correlation)
        for event in sweep(correlation, run.now_ms()):
            run.note("event.expired", path, {"event": event.id, "name": event.name})
        run.wait(frame, path, "service", None, "events")
        _keep(run, frame, correlation, before)
    return WAIT


def take(run: Run, told: Told, index: int) -> None:
    """Take in an event, a wait, or the end of one, and answer every wait that has its events."""
    root = run.snapshot.root
    frame = root.lanes[0].open if root is not None and root.lanes else None
    if frame is None or run.program.nodes[frame.b].kind != "correlator":
        text = "this instance brings no events together"
        run.note("event.ignored", "", {"in": index, "why": text})
        _answer(run, told, RequestError("request.invalid", text))
        return
    path = run.program.nodes[frame.b].id
    correlation = read_correlation(run.snapshot.kv)
    before = standings(correlation)
    try:
        match told:
            case EventArrived():
                _event(run, correlation, told, path, index)
            case WaitRegistered():
                _wait(run, correlation, told, path, index)
            case WaitLeft():
                _left(run, correlation, told, path, index)
    except RequestError as error:
        run.note("command.refused", path, {"in": index, "code": error.code})
        _answer(run, told, error)
        return
    for ready in take_satisfied(correlation):
        _match(run, correlation, ready, path)
    _keep(run, frame, correlation, before)


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """It is never ended: events to come would be lost without a word."""
    return False


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """It never fails."""
    return False


def _event(run: Run, correlation: Correlation, told: EventArrived, path: str, index: int) -> None:
    known = correlation.known(told.event_id)
    if known is not None:
        run.note("event.ignored", path, {"in": index, "why": "told before", "event": known.id})
        _tell(run, correlation, told, known, duplicate=True)
        return
    event = Event(
        id=told.event_id,
        name=told.event_name,
        producer=told.producer_event_id,
        payload=told.payload,
        at=run.now_ms(),
    )
    wait = arrive(correlation, event)
    detail = {"in": index, "name": event.name, "event": event.id}
    run.note("event.received", path, {**detail, "wait": wait.wait} if wait else detail)
    _tell(run, correlation, told, event, duplicate=False)


def _tell(
    run: Run, correlation: Correlation, told: EventArrived, event: Event, *, duplicate: bool
) -> None:
    """The verdict of an event; by `call` a caller knows whether its own telling was the first."""
    result = {
        "event_id": event.id,
        "duplicate": duplicate,
        "matched_wait": event.wait or None,
        "satisfied": event.wait != "" and has_all(correlation, event.wait),
        "correlator": run.snapshot.id,
        "call": told.call,
    }
    run.verdicts.append(Verdict(id=told.id, result=result))


def _wait(run: Run, correlation: Correlation, told: WaitRegistered, path: str, index: int) -> None:
    detail = {"in": index, "wait": told.wait, "instance": told.instance}
    run.note("wait.registered", path, detail)
    wait = Registered(
        wait=told.wait,
        instance=told.instance,
        token=told.token,
        names=list(told.names),
        count=told.count,
    )
    try:
        register(correlation, wait)
    except RequestError as error:
        _send(run, wait, (), error.message)
        raise
    _answer(run, told)


def _left(run: Run, correlation: Correlation, told: WaitLeft, path: str, index: int) -> None:
    freed = leave(correlation, told.wait)
    run.note("wait.left", path, {"in": index, "wait": told.wait, "freed": [e.id for e in freed]})
    _answer(run, told)


def _match(run: Run, correlation: Correlation, wait: Registered, path: str) -> None:
    events = correlation.kept_for(wait.wait)
    detail = {"wait": wait.wait, "instance": wait.instance, "events": [e.id for e in events]}
    run.note("wait.matched", path, detail)
    _send(run, wait, tuple(event.shown() for event in events))


def _send(run: Run, wait: Registered, events: tuple[object, ...], error: str = "") -> None:
    told = EventsMatched(
        wait=wait.wait,
        token=wait.token,
        events=events,
        correlator=run.snapshot.id,
        error=error,
        id=f"matched:{wait.wait}",
    )
    run.messages.append(Message(id=told.id, to=wait.instance, body=encode_input(told)))


def _keep(
    run: Run, frame: Frame, correlation: Correlation, before: dict[str, tuple[str, int]]
) -> None:
    """Keep what is there now, and tell lists what has changed since `before`."""
    run.snapshot.kv = kept_correlation(correlation)
    after = standings(correlation)
    changed = [(id, *now) for id, now in after.items() if before.get(id) != now]
    gone = [(id, "", at) for id, (_status, at) in before.items() if id not in after]
    run.events += [EventStanding(*each) for each in (*changed, *gone)]
    due = next_sweep(correlation, run.now_ms())
    if frame.wait is not None:
        frame.wait.due = None if due is None else run.at_ms(due)


def _answer(run: Run, told: Told, error: RequestError | None = None) -> None:
    if error is not None:
        verdict = Verdict(id=told.id, ok=False, code=error.code, message=error.message)
        run.verdicts.append(verdict)
    else:
        run.verdicts.append(Verdict(id=told.id))
