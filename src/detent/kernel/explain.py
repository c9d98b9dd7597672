"""Explain: why an instance stands still, in plain words, and when it can move by itself.

`earliest` is a promise: with no input, nothing happens before that tick, and at that tick something
does. It is read from the same dues that the kernel fires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from detent.kernel.blocks.person import choices_of, signal_name
from detent.kernel.cron_words import instant, schedule_words
from detent.kernel.effect_words import late_words, worker_words
from detent.kernel.explain_gate import freed, held, joining, left_to_others
from detent.kernel.gate.forecast import Forecast
from detent.kernel.ledger import effect_due
from detent.kernel.lifecycle import TERMINAL
from detent.kernel.places import frontier
from detent.kernel.program import Node, Program
from detent.kernel.recording import Timing
from detent.kernel.standing import QUARANTINED
from detent.kernel.survey import next_due
from detent.model.snapshot import Frame, OpenEffect, Snapshot, Wait

RESOLUTIONS = (
    "happened: it did happen; give its result and the step goes on with it",
    "failed: it did not happen; the step's retry or failure follows",
    "skip: leave it undecided and pass the step over",
    "again: try to find out, or call, once more",
)
_CHANGES = {"events": "an event, or a step that waits for one"}


class WaitExplained(Struct, frozen=True, kw_only=True):
    """One wait: where, since when, until when, in words, and what would end it."""

    node: str
    block: str
    kind: str
    since: int
    due: int | None
    text: str
    released_by: tuple[str, ...]
    why: str = ""  # the text without its place and its beginning


class EffectExplained(Struct, frozen=True, kw_only=True):
    """One call that is not settled: who is called, which attempt, what follows without answer."""

    key: str
    node: str
    handler: str
    kind: str
    state: str
    attempt: int
    since: int
    due: int | None
    unwanted: bool
    reason: str
    text: str
    resolutions: tuple[str, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """Why an instance stands where it stands."""

    instance: str
    state: str
    summary: str
    waits: tuple[WaitExplained, ...]
    effects: tuple[EffectExplained, ...]
    earliest: int | None  # the tick at which it moves by itself; None: only an input moves it
    earliest_ms: int | None
    not_before_ms: int | None = None  # of one that others must let go on, if that much is known
    pause_requested: bool = False
    cancel_requested: bool = False
    paused_reason: str = ""
    signals: tuple[str, ...] = ()  # kept signals that nobody has taken
    error: object = None


def explain(
    snapshot: Snapshot,
    program: Program,
    timing: Timing,
    tick: int,
    forecasts: Mapping[int, Forecast] | None = None,
) -> Explanation:
    """Explain an instance as it stands at a tick; `forecasts` tell when its tickets are called."""
    speaker = _Speaker(snapshot, program, timing, forecasts or {})
    still = snapshot.state in TERMINAL
    waits = () if still else tuple(speaker.waits())
    effects = tuple(speaker.effect(effect) for effect in snapshot.effects)
    # The ledger goes on while an instance is paused: doubts are looked into, deadlines pass.
    quarantined = snapshot.state == "paused" and snapshot.paused_reason == QUARANTINED
    earliest = None if quarantined else _earliest(snapshot, tick, forecasts or {})
    return Explanation(
        instance=snapshot.id,
        state=snapshot.state,
        summary=speaker.summary(waits, earliest),
        waits=waits,
        effects=effects,
        earliest=earliest,
        earliest_ms=None if earliest is None else timing.ms_of(earliest),
        not_before_ms=_not_before_ms(earliest, timing, forecasts or {}),
        pause_requested=snapshot.pause_requested,
        cancel_requested=snapshot.cancel_requested,
        paused_reason=snapshot.paused_reason,
        signals=tuple(kept.name for kept in snapshot.signals),
        error=snapshot.error,
    )


def _earliest(snapshot: Snapshot, tick: int, forecasts: Mapping[int, Forecast]) -> int | None:
    due = next_due(snapshot, tick)
    called = [each.at for each in forecasts.values() if each.at is not None and each.joins is None]
    return min(([] if due is None else [due]) + called, default=None)


def _not_before_ms(
    earliest: int | None, timing: Timing, forecasts: Mapping[int, Forecast]
) -> int | None:
    known = [each.not_before for each in forecasts.values() if each.not_before is not None]
    return timing.ms_of(min(known)) if known and earliest is None else None


class _Speaker:
    def __init__(
        self,
        snapshot: Snapshot,
        program: Program,
        timing: Timing,
        forecasts: Mapping[int, Forecast],
    ) -> None:
        self.forecasts = forecasts
        self.snapshot = snapshot
        self.program = program
        self.timing = timing

    def at(self, tick: int) -> str:
        """The instant of a tick."""
        return instant(self.timing.ms_of(tick))

    def summary(self, waits: tuple[WaitExplained, ...], earliest: int | None) -> str:
        """One or a few sentences."""
        snapshot = self.snapshot
        match snapshot.state:
            case "completed" | "cancelled":
                return f"It was {snapshot.state} at {self._ended()}; nothing moves it any more."
            case "failed":
                return f"It failed at {self._ended()}{self._error()}. Retry it to go on from there."
            case "paused":
                return self._paused(waits)
        if snapshot.more:
            return "It has used up its moves for this turn and goes on in the next one by itself."
        texts = [wait.text for wait in waits]
        said = "; ".join(texts[:3]) if texts else "Nothing is open"
        more = f"; and {len(texts) - 3} more" if len(texts) > 3 else ""  # noqa: PLR2004
        end = left_to_others(self.forecasts.values(), self.at) or " Only an input moves it."
        if earliest is not None:
            end = f" By itself it moves at {self.at(earliest)}."
        return f"{said[0].upper()}{said[1:]}{more}.{end}{self._requests()}"

    def _paused(self, waits: tuple[WaitExplained, ...]) -> str:
        why = f" ({self.snapshot.paused_reason})" if self.snapshot.paused_reason else ""
        then = f" Then: {waits[0].text}." if waits else ""
        return f"It is paused{why}{self._error()} and moves only when it is resumed.{then}"

    def _requests(self) -> str:
        said = ""
        if self.snapshot.pause_requested:
            said += " A pause was asked for: it pauses before the next step."
        if self.snapshot.cancel_requested:
            said += " A cancel was asked for: it ends when what may not be stopped has ended."
        return said

    def _ended(self) -> str:
        ended = self.snapshot.ended
        return "an unknown instant" if ended is None else self.at(ended)

    def _error(self) -> str:
        error = self.snapshot.error
        if not isinstance(error, dict) or not error.get("message"):
            return ""
        where = f" in {error['node']}" if error.get("node") else ""
        return f"{where}: {error['message']}"

    # waits ---------------------------------------------------------------------------------------

    def waits(self) -> Iterator[WaitExplained]:
        """Every reason to stand, in tree order."""
        root = self.snapshot.root
        if root is not None and root.wait is not None:
            yield self._wait("", "", root.wait, None)
        for path, frame, node in frontier(self.snapshot, self.program):
            if frame.wait is not None:
                yield self._wait(path, node.id, frame.wait, (frame, node))
            elif frame.phase == "gate" and node.kind == "step":
                yield self._gate(path, frame, node)
            elif frame.phase == "settle" and node.kind == "saga":
                yield self._settling(path, node.id, frame.since)
        if root is not None and root.phase == "settling":
            yield self._settling("", "", root.since)

    def _wait(
        self, path: str, block: str, wait: Wait, where: tuple[Frame, Node] | None
    ) -> WaitExplained:
        label = _label(path, where[1]) if where is not None else "it"
        if wait.kind == "cron":
            label = f"schedule {self.snapshot.kv.get('id', path)!r}"
        text, released = self._words(label, wait, where)
        if where is not None and where[0].deadline is not None:
            deadline = self.at(where[0].deadline)
            released = (*released, f"its deadline at {deadline}, which fails it")
        told = self.forecasts.get(wait.token)
        return WaitExplained(
            node=path,
            block=block,
            kind=wait.kind,
            since=wait.since,
            due=wait.due if told is None or told.joins is not None else told.at,
            text=f"{text} since {self.at(wait.since)}{joining(told, self.at)}",
            released_by=released,
            why=self._words("", wait, where)[0].strip(),
        )

    def _words(
        self, label: str, wait: Wait, where: tuple[Frame, Node] | None
    ) -> tuple[str, tuple[str, ...]]:
        due = () if wait.due is None else (f"the clock at {self.at(wait.due)}",)
        match wait.kind:
            case "start":
                enrolled = "it is enrolled and waits to be started"
                return ("it waits for its start time" if due else enrolled), due
            case "later":
                return "it was put off by a person", due
            case "delay":
                return f"{label} waits for its delay", due
            case "sleep":
                return f"{label} sleeps", due
            case "retry":
                return f"{label} failed ({wait.name}) and waits to be tried again", due
            case "poll":
                return f"{label} waits for its next look", due
            case "window":
                return f"{label} waits for its send window to open", due
            case "gate" | "slot":
                return self._line(label, wait)
            case "service":
                return "it stands ready", (
                    _CHANGES.get(wait.name, "a change of its configuration"),
                )
            case "defer":
                return f"{label} is deferred by a policy ({wait.name})", due
            case "timer":
                return f"{label} waits for a time", due
            case "signal":
                return f"{label} waits for the signal {wait.name!r}", (
                    f"the signal {wait.name!r}",
                    *due,
                )
            case "human":
                return self._human(label, where, due)
            case "event":
                return _events(label, where, due)
            case "child":
                return f"{label} waits for the child instance {wait.name}", (
                    f"the end of instance {wait.name}",
                )
            case "cron":
                return schedule_words(self.snapshot.kv, wait, due)
            case _:
                return self._call(label, wait)

    def _line(self, label: str, wait: Wait) -> tuple[str, tuple[str, ...]]:
        """In line at the gate: which rule holds it, and when it is called."""
        told = self.forecasts.get(wait.token)
        rule = told.rule if told is not None and told.rule else wait.name
        return f"{label} {held(rule, told)}", (freed(rule, told, self.at),)

    def _human(
        self, label: str, where: tuple[Frame, Node] | None, due: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        human = where[1].block.wait_for_input if where is not None else None
        if where is None or human is None:
            return f"{label} waits for an answer", due
        choices = ", ".join(repr(value) for value in choices_of(human))
        prompt = f" to {human.prompt!r}" if human.prompt else ""
        after = (
            "fails it" if human.escalation_handler is None else f"calls {human.escalation_handler}"
        )
        late = tuple(f"{each}, which {after}" for each in due)
        answer = f"the signal {signal_name(where[1].id)!r} with value {choices}"
        return f"{label} waits for a person's answer{prompt}", (answer, *late)

    def _call(self, label: str, wait: Wait) -> tuple[str, tuple[str, ...]]:
        effect = next((each for each in self.snapshot.effects if each.key == wait.name), None)
        if effect is None:
            return f"{label} waits for the outcome of a call", ("its outcome",)
        if effect.state == "indeterminate":
            text = f"{label} waits for a person's decision on its call of {effect.handler}"
            return text, RESOLUTIONS
        if effect.next_try is not None and effect.state == "planned":
            text = f"{label} waits for its send window to open before it calls {effect.handler}"
            return text, (f"the opening of its send window at {self.at(effect.next_try)}",)
        if effect.asked:
            told = self.forecasts.get(effect.asked)
            rule = "" if told is None else told.rule
            text = f"{label} {held(rule, told)} before it calls {effect.handler} once more"
            return text, (freed(rule, told, self.at),)
        if effect.worker:
            return f"{label} waits for {worker_words(effect)}", (self._report(effect),)
        due = effect_due(effect)
        outcome = f"the outcome of {effect.handler} (attempt {effect.attempt})"
        late = () if due is None else (f"{late_words(effect)} at {self.at(due)}",)
        return f"{label} waits for {outcome}", (outcome, *late)

    def _report(self, effect: OpenEffect) -> str:
        later = (
            "" if effect.available is None else f", who may have it at {self.at(effect.available)}"
        )
        return f"the report of {worker_words(effect)}{later} (attempt {effect.attempt})"

    def _gate(self, path: str, frame: Frame, node: Node) -> WaitExplained:
        return WaitExplained(
            node=path,
            block=node.id,
            kind="gate",
            since=frame.since,
            due=None,
            text=f"{_label(path, node)} is held by a policy ({self.snapshot.paused_reason})",
            released_by=("resume",),
        )

    def _settling(self, path: str, block: str, since: int) -> WaitExplained:
        open_calls = [e.handler for e in self.snapshot.effects if e.state != "indeterminate"]
        names = ", ".join(dict.fromkeys(open_calls))
        what = "before it compensates" if path else "before the cancel is complete"
        return WaitExplained(
            node=path,
            block=block,
            kind="settling",
            since=since,
            due=None,
            text=f"{path or 'it'} waits until its calls of {names} are settled, {what}",
            released_by=tuple(f"the outcome of {name}" for name in dict.fromkeys(open_calls)),
        )

    # effects -------------------------------------------------------------------------------------

    def effect(self, effect: OpenEffect) -> EffectExplained:
        """One open call."""
        due = effect_due(effect)
        text = f"{effect.handler} was asked for by {effect.node} at {self.at(effect.since)}"
        text += f" (attempt {effect.attempt})"
        if effect.state == "needs_reconcile":
            text += f"; whether it happened is not known ({effect.reason})"
        elif effect.state == "indeterminate":
            text += f"; nobody can tell whether it happened ({effect.reason}); a person must decide"
        if due is not None:
            text += f"; {late_words(effect)} at {self.at(due)}"
        if effect.unwanted:
            text += "; its node was cancelled, so its outcome resumes nothing"
        return EffectExplained(
            key=effect.key,
            node=effect.node,
            handler=effect.handler,
            kind=effect.kind,
            state=effect.state,
            attempt=effect.attempt,
            since=effect.since,
            due=due,
            unwanted=effect.unwanted,
            reason=effect.reason,
            text=text,
            resolutions=RESOLUTIONS if effect.state == "indeterminate" else (),
        )


def _events(
    label: str, where: tuple[Frame, Node] | None, due: tuple[str, ...]
) -> tuple[str, tuple[str, ...]]:
    heard = where[0].v["heard"] if where is not None else {"names": [], "key": ""}
    names = ", ".join(map(repr, heard["names"]))
    return f"{label} waits for the events {names} of {heard['key']!r}", ("the events", *due)


def _label(path: str, node: Node) -> str:
    return f"{node.kind.replace('_', ' ')} {path!r}"
