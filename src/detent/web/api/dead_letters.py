"""Dead letters (contract §10.3): the failed instances, one by one or by what they died of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import Response

from detent.service.dead_letters import Dead, dead_letter_groups
from detent.service.instances import SequenceIds
from detent.service.reading import timing_of
from detent.web.api.call import Call
from detent.web.api.instances import LIST_MOST, ListInstances, list_query, page
from detent.web.api.reply import instant, json_reply
from detent.web.api.routes import Table

if TYPE_CHECKING:
    from detent.kernel.recording import Timing
    from detent.ports.store import Store

table = Table("dead_letters")


class DeadGroup(Struct):
    """Failed instances of one sequence with the same error in the same block."""

    fingerprint: str
    tenant_id: str
    namespace: str
    sequence_id: str | None
    block_id: str
    error_code: str
    message: str
    count: int
    first_failed_at: str | None
    last_failed_at: str | None
    instance_ids: list[str]


@table.route("GET", "/instances/dlq", query=ListInstances, gives={200: list[Any]})
async def listing(call: Call) -> Response:
    """The failed instances, which a retry can bring back."""
    asked = replace(call.query, state="failed")
    items, _more = await call.desk.look(lambda store: page(store, call, asked))
    return json_reply(items)


@table.route("GET", "/instances/dlq/groups", query=ListInstances, gives={200: list[DeadGroup]})
async def grouped(call: Call) -> Response:
    """The failed instances by what they died of: one sequence, block and error each."""

    def read(store: Store) -> list[DeadGroup]:
        query = list_query(store, call, call.query)
        found = [] if query is None else dead_letter_groups(store, query)
        ids, timing = SequenceIds(store), timing_of(store)
        asked: ListInstances = call.query
        some = found[asked.offset : asked.offset + min(asked.limit, LIST_MOST)]
        return [_group(each, ids, timing) for each in some]

    return json_reply(await call.desk.look(read))


def _group(each: Dead, ids: SequenceIds, timing: Timing) -> DeadGroup:
    return DeadGroup(
        fingerprint=each.fingerprint,
        tenant_id=each.tenant,
        namespace=each.namespace,
        sequence_id=ids.of(each.tenant, each.namespace, each.definition),
        block_id=each.block,
        error_code=each.code,
        message=each.message,
        count=each.count,
        first_failed_at=None if each.first is None else instant(timing.ms_of(each.first)),
        last_failed_at=None if each.last is None else instant(timing.ms_of(each.last)),
        instance_ids=each.instances,
    )
