"""What if: the record run again with other inputs, or against another definition.

Nothing is called. An effect that the record knows (by its key, else by its node and attempt) ends
as it ended then; where the record does not tell, the run stops and says so.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from detent.kernel.recording import body_of, detail_of
from detent.kernel.rerun import Changes, InputChange, Made, Rerun
from detent.model import limits

if TYPE_CHECKING:
    from detent.kernel.recording import Recording

__all__ = ["Changes", "EntryChange", "InputChange", "WhatIf", "what_if"]

_encode = msgspec.json.Encoder(order="sorted").encode


class EntryChange(Struct, frozen=True, kw_only=True):
    """An entry that only the record has (removed) or only the other run (added)."""

    kind: Literal["removed", "added"]
    tick: int
    action: str
    node: str
    detail: Any = None


class WhatIf(Struct, frozen=True, kw_only=True):
    """How it would have gone."""

    same: bool
    changes: tuple[EntryChange, ...]
    state: str
    data: Any
    outputs: dict[str, Any]
    tick: int
    stopped: str  # why it goes no further, "" when it ended
    unused: int  # recorded outcomes that nothing asked for


def what_if(recording: Recording, changes: Changes) -> WhatIf:
    """Run the record with the changes and compare; `request.invalid` for a change of nothing."""
    rerun = Rerun(recording, changes)
    stopped = rerun.run()
    recorded = [
        Made(row.tick, entry[0], entry[1], detail_of(entry))
        for row in recording.rows
        for entry in body_of(row).entries
    ]
    found = _compare(recorded, rerun.made)
    snapshot = rerun.standing()
    return WhatIf(
        same=not found,
        changes=tuple(found),
        state=snapshot.state,
        data=snapshot.data,
        outputs=snapshot.outputs,
        tick=rerun.tick,
        stopped=stopped,
        unused=len(rerun.held),
    )


def _compare(recorded: list[Made], made: list[Made]) -> list[EntryChange]:
    """What was removed and what was added, aligned where both are short enough."""
    old = [_encode(each[1:]) for each in recorded]
    new = [_encode(each[1:]) for each in made]
    start = 0
    while start < len(old) and start < len(new) and old[start] == new[start]:
        start += 1
    left, right = recorded[start:], made[start:]
    if max(len(left), len(right)) > limits.ENTRIES_COMPARED:
        return [_change("removed", each) for each in left] + [_change("added", e) for e in right]
    found: list[EntryChange] = []
    matcher = SequenceMatcher(None, old[start:], new[start:], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += [_change("removed", each) for each in left[a:b]]
            found += [_change("added", each) for each in right[c:d]]
    return found


def _change(kind: Literal["removed", "added"], made: Made) -> EntryChange:
    return EntryChange(
        kind=kind, tick=made.tick, action=made.action, node=made.node, detail=made.detail
    )
