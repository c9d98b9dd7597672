"""What holds an instance, in few words beside its nodes, and when it moves."""

from __future__ import annotations

from msgspec.structs import replace

from detent.cli.reader import Reader
from detent.model.errors import RequestError
from detent.service.instances import InstanceSummary


def holding(reader: Reader, instance: str) -> dict[str, str]:
    """Why each node that waits does so, and until when: `is deferred by … until …`."""
    found = reader.views.inspect.explain(instance)
    return {wait.node: _told(reader, wait.why, wait.due) for wait in found.waits if wait.why}


def _told(reader: Reader, why: str, due: int | None) -> str:
    return why if due is None else f"{why}, until {reader.at(due)}"


def with_calls(reader: Reader, found: list[InstanceSummary]) -> list[InstanceSummary]:
    """The instances with when their gate calls them, for those that stand in line there."""
    waiting = [each for each in found if each.due_ms is None and each.state != "paused"]
    calls = reader.views.inspect.calls([each.id for each in waiting], tenant=reader.tenant)
    return [replace(each, due_ms=calls[each.id]) if each.id in calls else each for each in found]


def instance_or_schedule(reader: Reader, id: str) -> str:
    """The id of an instance; a schedule's own id names the instance that carries it out."""
    try:
        return reader.views.inspect.show(id, tenant=reader.tenant).summary.id
    except RequestError as error:
        if error.code != "instance.not_found":
            raise
    try:
        return reader.views.crons.show(id, tenant=reader.tenant).instance
    except RequestError as error:
        if error.code != "cron.not_found":
            raise
    raise RequestError("instance.not_found", f"there is no instance or schedule {id!r}")
