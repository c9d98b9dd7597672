"""What holds an instance, in few words beside its nodes, and when it moves."""

from __future__ import annotations

from msgspec.structs import replace

from detent.cli.reader import Reader
from detent.model.errors import RequestError
from detent.service.crons import find_cron
from detent.service.explaining import explain_instance, gate_calls
from detent.service.instances import InstanceSummary
from detent.service.reading import find_instance


def holding(reader: Reader, instance: str) -> dict[str, str]:
    """Why each node that waits does so, and until when: `is deferred by … until …`."""
    found = explain_instance(reader.store, instance, None)
    return {wait.node: _told(reader, wait.why, wait.due) for wait in found.waits if wait.why}


def _told(reader: Reader, why: str, due: int | None) -> str:
    return why if due is None else f"{why}, until {reader.at(due)}"


def with_calls(reader: Reader, found: list[InstanceSummary]) -> list[InstanceSummary]:
    """The instances with when their gate calls them, for those that stand in line there."""
    waiting = [each for each in found if each.due_ms is None and each.state != "paused"]
    calls: dict[str, int] = {}
    for tenant in sorted({each.tenant for each in waiting}):
        ids = frozenset(each.id for each in waiting if each.tenant == tenant)
        calls |= gate_calls(reader.store, tenant, ids)
    return [
        replace(each, due_ms=reader.ms_of(calls[each.id])) if each.id in calls else each
        for each in found
    ]


def instance_or_schedule(reader: Reader, id: str) -> str:
    """The id of an instance; a schedule's own id names the instance that carries it out."""
    try:
        return find_instance(reader.store, id, reader.tenant).id
    except RequestError as error:
        if error.code != "instance.not_found":
            raise
    try:
        return find_cron(reader.store, id, reader.tenant).id
    except RequestError as error:
        if error.code != "cron.not_found":
            raise
    raise RequestError("instance.not_found", f"there is no instance or schedule {id!r}")
