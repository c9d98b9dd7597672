"""The turn: take in, pick, load, step, commit, tell; this module only says in which order.

    submissions, arrivals, due waits -> ready queue -> load -> step -> ONE commit -> Decided

Nothing here waits or sleeps. A turn that meets an unusable store holds and is tried again later;
what it had taken is back in its place.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING

from detent.model.errors import StoreError
from detent.model.figures import note_time
from detent.runtime.calls import take_calls
from detent.runtime.commit import commit, settle_unsure
from detent.runtime.controls import answer_watchers, has_work, read_mail
from detent.runtime.decide import decide
from detent.runtime.foreign import answer_asked, leave_foreign
from detent.runtime.holdings import look_around, step_down, take_over
from detent.runtime.intake import take_arrivals, take_due, take_submissions
from detent.runtime.load import load
from detent.runtime.recovery import recover
from detent.runtime.standstill import go_on, refuse_callers, stand_still

if TYPE_CHECKING:
    from detent.model.link import Decided
    from detent.runtime.parts import Parts

FORGET_EVERY_TURNS = 1_000
FORGET_ROWS = 5_000
CLOCK_ACCEPTED = "clock.accepted"  # a setting: the tick up to which a jump was accepted


def turn(parts: Parts) -> Decided | None:
    """One turn; None when there was nothing to do and nothing to tell."""
    began_ns = perf_counter_ns()
    read_mail(parts)
    if parts.hold.standing(parts.clock.elapsed_ms()):
        refuse_callers(parts)
    else:
        began = parts.clock.begin()
        if began is not None:
            try:
                _take_turn(parts, max(began, parts.lease.tick))
            except StoreError as error:
                stand_still(parts, error.code, error.message)
    if parts.watchers:
        answer_watchers(parts)
    if parts.out.counts:
        note_time(parts.out.counts, "turn", (perf_counter_ns() - began_ns) // 1_000)
    return parts.out.take(parts.hold.code, lease_until(parts))


def lease_until(parts: Parts) -> int:
    """Until when calls may start; 0 where time does not run by itself."""
    return 0 if parts.clock.mode == "virtual" else parts.lease.until_ms


def _take_turn(parts: Parts, tick: int) -> None:
    if not _may_write(parts, tick):
        return
    tick = max(tick, parts.lease.tick)
    parts.queue.round += 1
    take_arrivals(parts, tick)
    take_submissions(parts, tick)
    if parts.settings.errand:
        parts.gates.begin_turn(tick)
    else:
        take_due(parts, tick)
        take_calls(parts, tick)
    leave_foreign(parts, tick)
    answer_asked(parts)
    alone = bool(parts.groups)
    if alone:
        picked = parts.queue.take(parts.groups.pop())
    else:
        picked = parts.queue.pick(parts.settings.max_instances_per_turn)
    done = decide(parts, load(parts, picked), tick)
    held = parts.hold.begun
    wrote = commit(parts, done, tick, alone=alone)
    if parts.hold.begun != held:
        return
    if not parts.settings.errand:
        recover(parts)
    if wrote:
        parts.turns += 1
        _forget(parts, tick)
    elif parts.hold.code and not _renewed(parts, tick):
        return
    go_on(parts)
    parts.out.news |= wrote or has_work(parts)


def _may_write(parts: Parts, tick: int) -> bool:
    """Whether the lease, the clock and the last commit allow a turn."""
    if parts.lost:
        take_over(parts)
    if not settle_unsure(parts):
        return False
    if parts.lease.look_due():
        look_around(parts)
    if jumped(parts, tick):
        return False
    return not parts.lease.renewal_due() or _renewed(parts, tick)


def _renewed(parts: Parts, tick: int) -> bool:
    """Renew the lease; the same write shows whether a held store can be written again."""
    if parts.lease.renew(max(tick, parts.lease.tick)):
        parts.out.news = True
        return True
    if step_down(parts):
        return False  # the next turn goes on with the rest
    parts.lost = True
    stand_still(parts, "store.fenced", "another writer has taken a partition over")
    return False


def jumped(parts: Parts, tick: int) -> bool:
    """Whether the wall clock went further than allowed since the tick last written."""
    if parts.clock.mode != "wall":
        return False
    allowed = parts.settings.max_clock_jump_ms // parts.meta.resolution_ms
    if tick - max(parts.lease.tick, parts.accepted_tick) <= allowed or parts.lease.unused:
        return False
    accepted = parts.store.setting(CLOCK_ACCEPTED)
    if accepted is not None and accepted.isdecimal() and tick - int(accepted) <= allowed:
        return False
    days = (tick - parts.lease.tick) * parts.meta.resolution_ms / 86_400_000
    text = f"the clock is {days:.1f} days past the last turn; see `detent clock accept`"
    stand_still(parts, "clock.jump", text)
    return True


def _forget(parts: Parts, tick: int) -> None:
    """Drop ids older than the dedupe window, now and then."""
    if parts.turns % FORGET_EVERY_TURNS and not parts.forgetting:
        return
    before = tick - parts.settings.dedupe_window_ms // parts.meta.resolution_ms
    gone = parts.store.forget(before, FORGET_ROWS) if before > 0 else 0
    parts.forgetting = gone >= FORGET_ROWS
