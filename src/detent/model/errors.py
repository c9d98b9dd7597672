"""The one error tree, by who must act: author, caller, operator, us.

Every error carries a stable `code` (`area.reason`), the same in the API, the CLI and the docs.
Codes are registered in `CODES` with one sentence each; the reference page is generated from it,
and raising an unregistered code is itself an error. The failure of an effect is data
(`model.values.Failure`), never one of these.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CODES: dict[str, str] = {
    # author: the definition or an expression in it
    "definition.invalid": "The definition has faults; each one is listed with its path and code.",
    "definition.syntax": "The text is not JSON or YAML.",
    "definition.unsupported": "The option or handler is known, but nothing performs it.",
    "definition.unknown": "No such definition is stored for the tenant and namespace.",
    "definition.conflict": "The name and version is stored with other content; raise the version.",
    "expression.syntax": "The expression or template cannot be parsed.",
    "expression.limit": "The expression is too long, too deep, or needs too many operations.",
    "expression.type": "Strict mode: an operator or function got a value it cannot take.",
    "expression.unknown": "An unknown root, function or filter is named.",
    # caller: the request
    "request.invalid": "An argument is of the wrong type or out of range.",
    "request.timeout": "No verdict arrived in time; asking again with the same id is safe.",
    "request.forbidden": "The caller may not do that, or not for that tenant.",
    "payload.too_large": "The payload is larger than the limit.",
    "payload.invalid": "The payload holds a value that cannot be stored as JSON.",
    "payload.schema": "The data does not match the definition's input schema.",
    "instance.not_found": "There is no such instance.",
    "instance.terminal": "The instance has ended; nothing can be sent to it.",
    "instance.transition": "The life cycle has no such move from the present state.",
    "instance.key_reused": "The key was used to start another definition or with other data.",
    "block.not_found": "The instance runs no step of that id.",
    "effect.not_found": "The instance has no such open effect.",
    "effect.unsettled": "An effect of the blocks concerned is not settled yet.",
    "effect.state": "The effect is not in a state that can be resolved this way.",
    "effect.crash_loop": "The process died too often while this effect was being performed.",
    "handler.unknown": "No handler of that name is registered and no worker queue is named.",
    "handler.signature": "The handler's parameters or annotations cannot be used.",
    "handler.duplicate": "A handler of that name is registered already.",
    "handler.import": "The Python file or module with the handlers cannot be imported.",
    "network.refused": "The URL, or an address its host has, must not be called from here.",
    "network.unreachable": "The host has no address, or none of them took the connection.",
    "network.timeout": "The other side did not answer in time.",
    "network.protocol": "What came back is not what the protocol allows.",
    "network.too_large": "The answer is larger than the limit.",
    "model.key": "The language model's API key is missing, or its variable may not be read.",
    "model.answer": "The language model's answer does not fit the schema, or cannot be read.",
    "model.failed": "Every provider that was to be tried has failed.",
    "file.missing": "The file cannot be read.",
    "file.exists": "A file is there already; nothing was overwritten.",
    "work.not_found": "There is no such work item.",
    "work.lost": "The claim is not held: it was given to another, reported already, or never made.",
    "work.checkpoint": "The checkpoint's number is not the stored one; read it and write again.",
    "engine.reentrant": "A blocking engine call was made inside a handler.",
    "engine.closed": "The engine is closed.",
    "engine.running": "The call needs virtual time, or an engine that is not running.",
    "migration.refused": "The instance cannot be moved to that version now.",
    "calendar.zone": "The name is no IANA time zone; a near one is named.",
    "calendar.date": "The text is no date, or the instant lies outside the years 1 to 9999.",
    "calendar.window": "A window's span is wrong, or windows leave no instant to act in.",
    "calendar.cron": "The cron expression cannot be read, or no date can ever match it.",
    "calendar.country": "The country or its part is unknown, or its holidays are not installed.",
    "limit.invalid": "The rate limit's key, number, window or closing time is out of range.",
    "limit.unknown": "The tenant has no rate limit of that key.",
    "breaker.unknown": "The tenant has no circuit breaker for that handler: it never failed.",
    "pool.invalid": "A pool, or a resource in one, has a field that is wrong or out of range.",
    "pool.exists": "The tenant has a pool of that name already.",
    "pool.unknown": "The tenant has no pool of that name.",
    "resource.unknown": "The pool has no resource of that id.",
    "plan.expected": "A verb of plans was given something that is no plan, or runs none.",
    "plan.enrolled": "The contact is in the plan already.",
    "plan.send_repeatable": "A handler that sends to people may not be repeated blindly.",
    "cron.not_found": "There is no such schedule.",
    "cron.exists": "A schedule of that id is there already, or was; ids are not used again.",
    "tenant.foreign": "The request names another tenant than the one its caller belongs to.",
    "credential.not_found": "There is no such credential.",
    "credential.exists": "A credential of that id is there already; ids are the same for all.",
    "credential.invalid": "A field of the credential is missing, wrong or out of range.",
    "credential.unusable": "A step names a credential that is missing, disabled or expired.",
    "credential.foreign": "What came from outside would be a reference to a credential.",
    "credential.refresh": "The provider did not give a new token for a credential.",
    "api_key.not_found": "There is no such API key.",
    "api_key.invalid": "A field of the API key is wrong or out of range.",
    "api_key.refused": "The API key is unknown, revoked or expired.",
    "trigger.not_found": "There is no such trigger.",
    "trigger.exists": "A trigger of that slug is there already; slugs are the same for all.",
    "trigger.invalid": "A field of the trigger is missing, wrong or out of range.",
    "trigger.disabled": "The trigger is disabled; nothing was started.",
    "trigger.refused": "The secret or signature is missing, wrong, too old or used before.",
    "trigger.rate": "Too many calls from one peer within a second; try again later.",
    "session.not_found": "There is no such session.",
    "session.exists": "The tenant has a session of that key already.",
    "session.invalid": "A field of the session is wrong or out of range.",
    "session.closed": "The session takes no new instances: it is paused, completed or expired.",
    "checkpoint.not_found": "The instance has no checkpoint.",
    "record.not_found": "The tenant has no such rule, pin, push target or command.",
    "record.exists": "There is one for the same handler, queue or id already.",
    "record.limit": "The tenant, or the owner, has as many of these as there may be.",
    "artifact.not_found": "No instance of the tenant has brought the bytes of that artifact.",
    "webhook.invalid": "A webhook's URL, events, secret or number in the settings cannot be used.",
    "webhook.not_found": "There is no such delivery of a webhook.",
    "webhook.state": "The delivery is not in a state in which that can be asked of it.",
    "webhook.undelivered": "A delivery that was tried again did not arrive; it says why.",
    "event.invalid": "A field of an event is missing, blank or too long.",
    "event.not_found": "There is no such event, or it is kept no longer.",
    "event.full": "The correlation key keeps as many events or waits as it can.",
    "fork.refused": "The instance cannot be forked at that entry.",
    "definition.exists": "A definition of that id, or of that name and version, is there already.",
    "definition.in_use": "Instances of the definition have not ended; it cannot be removed.",
    "request.unauthorized": "The key or signature is missing, wrong, revoked or expired.",
    "request.tenant": "The call names no tenant; send the header X-Tenant-Id.",
    "request.route": "There is no such path, or it does not take that method.",
    "request.key_reused": "The Idempotency-Key was used before with another request.",
    "request.in_progress": "The first request with this Idempotency-Key is still being answered.",
    "request.spent": "What the Idempotency-Key stands for is done, but its answer was not kept.",
    "request.rate": "Too many requests came from this caller at once.",
    "stream.full": "As many streams are open as the server allows; try again later.",
    "cursor.invalid": "The cursor is none that this server gave out.",
    "replay.differs": "The replay gave another result than the journal.",
    "replay.erased": "The bodies of this instance were erased; nothing is left to replay.",
    # operator: the store, the clock, the machine
    "store.owned": "Another engine owns this store.",
    "store.newer": "The store was written by a newer release.",
    "store.corrupt": "The file is not a Detent store, or it is damaged.",
    "store.full": "The disk is full; nothing is lost, outcomes are held until there is room.",
    "store.unavailable": "The store cannot be opened or written.",
    "store.fenced": "Another writer has taken over; this one cannot commit any more.",
    "store.conflict": "Rows of the commit contradict what is stored; nothing was written.",
    "store.refused": "The database cannot hold a row of the transaction; nothing was written.",
    "store.address": "The address is none of a store, or names a database that does not exist.",
    "store.driver": "The package that speaks to this kind of database is not installed.",
    "store.unreachable": "The database server cannot be reached: it is down, or elsewhere.",
    "store.login": "The database server does not let this user in, or not with this password.",
    "store.rights": "The database user may not do what the store needs; grant it the rights.",
    "store.outdated": "The database server is older than what the store needs; upgrade it.",
    "store.crowded": "The database server has no connection left for us.",
    "store.readonly": "The database server takes no writes: it is a replica; name the primary.",
    "store.settings": "A setting that is fixed in the store differs from the one asked for.",
    "vault.locked": "A secret cannot be sealed or opened: the key for it is not configured.",
    "vault.broken": "A sealed secret was damaged, or moved from where it was sealed.",
    "vault.key": "The vault's key is not 32 bytes as hex or base64, nor a file that holds one.",
    "clock.jump": "The wall clock moved too far; accept it with `detent clock accept`.",
    "server.unreachable": "The server cannot be reached, or went away before it had answered.",
    "server.answer": "What answered is no Detent server, or one of another release; check the URL.",
    "server.exposed": "Without an API key the server listens on its own machine only.",
    "server.isolation": "The key would see every tenant; the settings must say that this is meant.",
    "server.address": "The server cannot listen on that address.",
    "audit.broken": "The chain is not intact; the first broken entry is named.",
    # us
    "invariant.broken": "A rule the engine relies on does not hold; the instance is quarantined.",
}


_SHOWN = 20  # faults spelled out in the message; all of them are in `faults`


class Fault(NamedTuple):
    """One thing wrong with a definition: where, which code, and a sentence."""

    path: str
    code: str
    message: str


class DetentError(Exception):
    """Root of all errors; `code` is stable, `details` is data for programs."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        if code not in CODES:
            raise KeyError(f"error code {code!r} is not registered in detent.model.errors.CODES")
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.code, self.message, self.details)


def _rebuild(kind: type[DetentError], code: str, message: str, details: dict[str, Any]) -> Any:
    error = kind.__new__(kind)
    DetentError.__init__(error, code, message, **details)
    return error


class DefinitionError(DetentError):
    """The author must act: all faults of a definition at once."""

    def __init__(self, faults: list[Fault], code: str = "definition.invalid") -> None:
        lines = "; ".join(f"{f.path}: {f.message} ({f.code})" for f in faults[:_SHOWN])
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        super().__init__(code, lines + more, faults=[tuple(f) for f in faults])

    @property
    def faults(self) -> list[Fault]:
        """The faults in the order of their paths."""
        return [Fault(*f) for f in self.details["faults"]]


class ExpressionError(DetentError):
    """The author must act: an expression or template cannot be parsed or evaluated."""


class RequestError(DetentError):
    """The caller must act: not found, conflict, invalid."""


class StoreError(DetentError):
    """The operator must act: the store, its disk, its owner, the clock."""


class InvariantViolation(DetentError):
    """We must act: a rule the engine relies on does not hold."""

    def __init__(self, message: str) -> None:
        super().__init__("invariant.broken", message)


_OPERATOR = ("store", "clock", "server", "vault", "audit")


def error_of(code: str, message: str, details: dict[str, Any] | None = None) -> DetentError:
    """The error of a code that came from elsewhere, of the class that is raised here."""
    told, area = details or {}, code.partition(".")[0]
    if code == "invariant.broken":
        return InvariantViolation(message)
    kind: type[DetentError] = RequestError
    if area == "definition" and "faults" in told:
        kind = DefinitionError
    elif area == "expression":
        kind = ExpressionError
    elif area in _OPERATOR:
        kind = StoreError
    made: DetentError = _rebuild(kind, code, message, told)
    return made


def invariant(condition: object, sentence: str) -> None:
    """Raise `InvariantViolation` with the sentence unless the condition holds."""
    if not condition:
        raise InvariantViolation(sentence)
