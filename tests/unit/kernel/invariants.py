"""What must hold after every step, whatever the definition and the inputs were.

The tables here are copied from the requirements by hand, not imported: a change of the engine's own
table must be seen.
"""

from __future__ import annotations

import msgspec

from detent.kernel.survey import next_due
from detent.model.snapshot import decode_snapshot, encode_snapshot

TERMINAL = ("completed", "failed", "cancelled")

# CORE-STM-1, word by word
MOVES = {
    "scheduled": ("running", "paused", "cancelled"),
    "running": ("scheduled", "waiting", "paused", "completed", "failed", "cancelled"),
    "waiting": ("running", "scheduled", "failed", "cancelled"),
    "paused": ("scheduled", "cancelled"),
    "failed": ("scheduled",),
    "completed": (),
    "cancelled": (),
}

# Waits that an input ends: an answer, an outcome, a decision, or a change of what is configured.
RELEASED = ("signal", "human", "child", "effect", "decision", "worker", "cron", "service")


def journal_of(decision):
    """The journal row as plain data; an input kept as a blob stands as its reference."""
    return msgspec.json.decode(decision.journal)


def transitions_of(entries):
    """Every change of state among entries, as (from, to)."""
    return [
        (entry[2]["from"], entry[2]["to"])
        for entry in entries
        if entry[0].startswith("run.") and len(entry) == 3 and "to" in entry[2]
    ]


def frames_of(frame):
    """Every open frame at or below one, in tree order."""
    if frame is None:
        return
    yield frame
    for lane in frame.lanes:
        if lane.open is not None and not lane.end:
            yield from frames_of(lane.open)


def check(before, decision, again, inputs, tick):
    """Check one decision against the snapshot it was made from (None at birth)."""
    check_same(decision, again)
    check_version(before, decision, inputs)
    after = decode_snapshot(decision.snapshot)
    assert encode_snapshot(after) == decision.snapshot
    entries = []
    if decision.journal:
        row = journal_of(decision)
        assert len(row["in"]) == len(inputs)
        entries = row["entries"]
        assert all(len(entry) in (2, 3) and entry[0] for entry in entries)
    check_moves(before, after, entries)
    check_still(before, after, entries)
    check_waits(after)
    check_effects(after, decision)
    check_end(before, after)
    check_due(after, decision, tick)


def check_same(decision, again):
    """The same arguments give the same bytes."""
    assert not isinstance(again, list)
    for name in decision.__struct_fields__:
        mine, other = getattr(decision, name), getattr(again, name)
        assert msgspec.json.encode(mine) == msgspec.json.encode(other), name


def check_version(before, decision, inputs):
    was = 0 if before is None else decode_snapshot(before).version
    if decision.journal:
        assert decision.version == was + 1
    else:
        assert not inputs
        assert decision.version == was
        assert decision.snapshot == before, "a turn without a row changed something"
        assert not decision.orders
        assert not decision.messages


def check_moves(before, after, entries):
    """Every change of state is legal, journaled, and nothing is passed over."""
    state = "scheduled" if before is None else decode_snapshot(before).state
    for source, target in transitions_of(entries):
        assert source == state, f"the journal says {source}, the instance was {state}"
        assert target in MOVES[source], f"{source} -> {target} is not in the table"
        state = target
    assert state == after.state, f"{state} became {after.state} without an entry"


def check_still(before, after, entries):
    """An instance that was and stays paused begins nothing."""
    if before is None or after.state != "paused" or transitions_of(entries):
        return
    if decode_snapshot(before).state == "paused":
        begun = [entry for entry in entries if entry[0] in ("effect.planned", "step.entered")]
        assert begun == [], "a paused instance began something"


def check_waits(after):
    tokens = [frame.wait.token for frame in frames_of(after.root) if frame.wait is not None]
    assert all(0 < token <= after.tokens for token in tokens), "a wait has no token"
    assert len(tokens) == len(set(tokens)), "two waits share a token"


def check_effects(after, decision):
    keys = [effect.key for effect in after.effects]
    assert len(keys) == len(set(keys)), "two open effects share a key"
    assert decision.busy == bool(keys)
    for order in decision.orders:
        assert order.key in keys or order.key in settled_later(decision), "an order of no effect"
    assert not set(decision.withdrawn) & set(keys)
    made = [item.effect for item in decision.work]
    assert set(made) <= {*keys, *decision.called_off}, "a work item of no effect"
    assert not set(decision.called_off) & set(keys)
    waited = {frame.wait.name for frame in frames_of(after.root) if frame.wait is not None}
    for effect in after.effects:
        if effect.token:
            assert effect.key in waited, f"nobody waits for {effect.node}"
    for frame in frames_of(after.root):
        if frame.wait is not None and frame.wait.kind in ("effect", "decision", "worker"):
            assert frame.wait.name in keys, f"{frame.b} waits for a settled effect"


def settled_later(decision):
    """Keys ordered and taken back within one turn."""
    return {*decision.withdrawn, *decision.recalled, *decision.settled}


def check_end(before, after):
    if after.state not in TERMINAL:
        assert after.root is not None
        assert after.ended is None
        return
    assert after.ended is not None
    assert after.signals == []
    assert not after.pause_requested
    assert not after.more
    if after.state == "failed":
        assert after.root is not None, "a failed instance keeps its place for a retry"
        assert after.error
        assert list(frames_of(after.root)) == [after.root], "a failed instance still runs"
    else:
        assert after.root is None
    if after.state == "cancelled" and (before is None or decode_snapshot(before).ended is None):
        assert all(effect.state == "indeterminate" for effect in after.effects)


def check_due(after, decision, tick):
    """What was due has fired, and an instance that stands is released by something."""
    assert decision.more == after.more
    assert decision.due == next_due(after, tick), "the due tick is not that of the snapshot"
    if decision.due is not None and not decision.more:
        assert decision.due > tick, "something due was not fired"
    if after.state in TERMINAL or after.state == "paused" or after.more:
        return
    waits = [frame.wait for frame in frames_of(after.root) if frame.wait is not None]
    released = [wait for wait in waits if wait.due is not None or wait.kind in RELEASED]
    assert len(released) == len(waits), "a wait that nothing can end"
    assert waits or after.effects, "the instance stands and nothing can release it"
    for effect in after.effects:
        if effect.state != "indeterminate" and not effect.worker:
            assert effect.deadline is not None or effect.next_try is not None, (
                "an open effect without any due tick"
            )
