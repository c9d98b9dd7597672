"""The verbs that ask an instance for a change, or many: each gets the kernel's verdict.

Arguments are checked here by the rules of the verb itself, and sent as the kernel takes them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from msgspec import Raw, Struct
from msgspec.structs import asdict

from detent.client.sequences import Definitions
from detent.client.talking import Talk
from detent.client.verb import D, known_id, of_instance, verb
from detent.model import limits
from detent.model.decision import Verdict
from detent.model.definition import Definition
from detent.model.payload import encode_payload
from detent.service import bulk, sending, steering
from detent.service.bulk import BulkOptions, BulkResult, Where
from detent.service.clock import ClockView
from detent.service.instances import InstanceView
from detent.service.starting import Moment

_ANY_MOMENT = Moment(tick=0, epoch_ms=0, resolution_ms=1, fresh_id="", seed="")


class Id(Struct, frozen=True):
    """What was started."""

    id: str


class Steers(Definitions[D]):
    """Pause, resume, cancel … one instance or many; and start one from another's record."""

    # asking --------------------------------------------------------------------------------------

    @verb
    def pause(self, instance: str) -> Talk[None]:
        """Pause; in a wait the pause is held until the wait ends."""
        yield from self._command(instance, "pause")

    @verb
    def resume(self, instance: str) -> Talk[None]:
        """Go on from a pause, or withdraw one that is held."""
        yield from self._command(instance, "resume")

    @verb
    def cancel(self, instance: str) -> Talk[None]:
        """Cancel; protected parts and clean-up run first."""
        yield from self._command(instance, "cancel")

    @verb
    def retry(self, instance: str) -> Talk[None]:
        """Go on from the failed nodes of a failed instance."""
        yield from self._command(instance, "retry")

    @verb
    def resolve(self, instance: str, effect: str, action: str, result: Any = None) -> Talk[None]:
        """Decide an indeterminate effect: happened (with its result), failed, skip, or again."""
        args = {"key": effect, "action": action, "result": result}
        yield from self._command(instance, "resolve", args)

    @verb
    def migrate(
        self, instance: str, definition: Definition | str | None = None, *, undo: bool = False
    ) -> Talk[None]:
        """Move a standing instance to another version, or undo the last move."""
        if undo or definition is None:
            yield from self._command(instance, "migrate", {"undo": True})
            return
        found = yield from self._get(f"/inspect{of_instance(instance)}", InstanceView)
        place = (found.summary.tenant, found.summary.namespace)
        target, _known = yield from self._sequence(definition, *place)
        body = {"instance_id": known_id(instance), "target_sequence_id": target}
        yield from self._tell("POST", "/sequences/migrate-instance", body)

    @verb
    def command(
        self, instance: str, verb: sending.Verb, args: Any = None, *, id: str | None = None
    ) -> Talk[Verdict]:
        """Ask for a state change; the kernel's verdict, and the same one for the same `id`."""
        return (yield from self._command(instance, verb, args, id))

    # steering ------------------------------------------------------------------------------------

    @verb
    def set_data(self, instance: str, data: Any) -> Talk[None]:
        """Replace the data of an instance, whatever its state."""
        yield from self._command(instance, "set_data", steering.set_data(data))

    @verb
    def set_state(
        self, instance: str, state: str, *, at: dt.datetime | dt.timedelta | None = None
    ) -> Talk[str]:
        """Set the state as the life cycle allows; `at` is when one that is scheduled goes on."""
        now = yield from self._moment(at)
        args = steering.set_state(state, at, now)
        return str((yield from self._command(instance, "set_state", args)).result["state"])

    @verb
    def reschedule(self, instance: str, offset: dt.timedelta | int) -> Talk[None]:
        """Move the due time of a scheduled instance by a span, which may be negative."""
        yield from self._command(instance, "reschedule", steering.reschedule(offset))

    @verb
    def resume_from(
        self, instance: str, block: str, *, data: Any = None, signals: Sequence[Any] = ()
    ) -> Talk[dict[str, Any]]:
        """Repeat a block of the top level and all that follow it, from a failure or a pause."""
        args = steering.resume_from(block, data, signals)
        return dict((yield from self._command(instance, "resume_from", args)).result)

    @verb
    def inject(
        self, instance: str, blocks: Sequence[Any], *, position: int | None = None
    ) -> Talk[dict[str, Any]]:
        """Put blocks into one instance, after those of its definition."""
        args = steering.sent_blocks(blocks, position)
        return dict((yield from self._command(instance, "inject", args)).result)

    @verb
    def bulk(
        self, action: str, where: Where, args: Any = None, **options: Unpack[BulkOptions]
    ) -> Talk[BulkResult]:
        """Ask every instance that a filter finds, and count the verdicts."""
        now = yield from self._moment(args.get("at") if isinstance(args, Mapping) else None)
        asked, wanted = bulk.bulk_action(action, "", args, now), bulk.bulk_filter(where)
        limit = options.get("limit", limits.BULK_DEFAULT)
        bulk.check_limit(limit)
        body = {
            "action": asked.action,
            "where": asdict(wanted),
            "args": asked.args,
            "limit": limit,
            "dry_run": bool(options.get("dry_run")),
        }
        return (yield from self._send("POST", "/instances/bulk", body, BulkResult))

    @verb
    def fork(
        self,
        instance: str,
        *,
        seq: int = 0,
        before: str = "",
        data: Any = None,
        dry_run: bool = False,
    ) -> Talk[str]:
        """Start a new instance from another's record, after row `seq` or short of node `before`."""
        body = {
            "seq": seq,
            "from_block_id": before,
            "context": Raw(encode_payload(data, where="data", limit=limits.CONTEXT_BYTES)),
            "dry_run": dry_run,
        }
        return (yield from self._send("POST", of_instance(instance, "/fork"), body, Id)).id

    # inside --------------------------------------------------------------------------------------

    def _command(
        self, instance: str, verb: sending.Verb, args: Any = None, id: str | None = None
    ) -> Talk[Verdict]:
        path = of_instance(instance, "/commands")
        sending.command_submission(instance, verb, args, "id" if id is None else id, 0)
        body = {
            "verb": verb,
            "args": Raw(encode_payload(args, where="arguments")),
            "id": id,
        }
        return (yield from self._send("POST", path, body, Verdict))

    def _moment(self, at: Any) -> Talk[Moment]:
        """Now at the server, where an instant is to become a tick."""
        if at is None:
            return _ANY_MOMENT
        clock = yield from self._get("/inspect/clock", ClockView)
        return Moment(
            tick=max(0, (clock.now_ms - clock.epoch_ms) // clock.resolution_ms),
            epoch_ms=clock.epoch_ms,
            resolution_ms=clock.resolution_ms,
            fresh_id="",
            seed="",
        )
