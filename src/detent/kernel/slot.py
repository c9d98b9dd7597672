"""Concurrency keys: an instance moves only while it holds its key, and cannot forget to return it.

The key is asked for when the instance starts to move and given back by `settle`, with the very
state that ends the move: terminal or `waiting`. While it stands in line the root waits with kind
"slot" and everything below is held, as in a pause.
"""

from __future__ import annotations

from detent.kernel import asking
from detent.kernel.gate.asks import Answer, Ask
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.run import Run, in_line
from detent.kernel.survey import waits_of
from detent.model.snapshot import Frame, Wait


def wake_up(run: Run, why: str) -> None:
    """Let a standing instance move, unless it is put off or must wait for its concurrency key."""
    snapshot = run.snapshot
    if snapshot.state not in ("scheduled", "waiting"):
        return
    free = snapshot.concurrency is None or snapshot.dry_run
    if not in_line(snapshot) and (free or snapshot.slot or _admitted(run)):
        run.set_moving(why)
    else:
        run.held = True


def called(run: Run, token: int) -> bool:
    """The gate called the instance itself: take the key; True when it may move."""
    return granted(run, asking.take(run, token))


def granted(run: Run, answer: Answer) -> bool:
    """What the gate said; True when the instance holds its key and may move."""
    root = run.snapshot.root
    if root is None or answer.state != "granted":
        return False
    run.snapshot.slot = True
    root.wait = None
    run.note("wait.completed", "", {"kind": "slot"})
    if run.snapshot.pause_requested:  # the wait is over, which the pause was held for
        run.set_moving("called by the gate")
        run.held = True
        return False
    run.held = run.snapshot.state == "paused"
    return not run.held


def settle(run: Run) -> None:
    """Give back what the instance's state entitles it to no longer."""
    snapshot = run.snapshot
    if snapshot.state == "paused" and snapshot.root is not None:
        step_out(snapshot.root)
    if snapshot.tickets:
        _leave_unwanted(run)
    if snapshot.slot and (snapshot.state in TERMINAL or snapshot.state == "waiting"):
        asking.let_go(run)


def _leave_unwanted(run: Run) -> None:
    """Give up every place in line that nothing waits for: it was cancelled or has ended."""
    snapshot = run.snapshot
    standing = {wait.token for wait in waits_of(snapshot.root) if wait.kind in ("gate", "slot")}
    standing.update(effect.asked for effect in snapshot.effects)
    for token in list(snapshot.tickets):
        if token not in standing:
            asking.leave(run, token)


def _admitted(run: Run) -> bool:
    snapshot = run.snapshot
    root = snapshot.root
    if root is None or in_line(snapshot):
        return root is None
    key, most = snapshot.concurrency["key"], snapshot.concurrency["max"]
    wanted = Ask(
        instance=snapshot.id,
        token=run.token(),
        priority=snapshot.priority,
        slot=key,
        slots=most,
        back=snapshot.started is not None,
    )
    answer = asking.ask(run, wanted)
    if answer.state == "granted":
        snapshot.slot = True
        return True
    root.wait = Wait(kind="slot", token=wanted.token, since=run.tick, name=f"key:{key}")
    run.note("wait.started", "", {"kind": "slot", "for": root.wait.name})
    return False


def step_out(frame: Frame) -> None:
    """A paused instance stands in nobody's way: it asks again when it is resumed.

    It goes to the end of the line then, unless it was called before.
    """
    if frame.wait is not None and frame.wait.kind in ("gate", "slot"):
        frame.wait = None
        if frame.b:
            frame.phase = "answered"
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            step_out(lane.open)
