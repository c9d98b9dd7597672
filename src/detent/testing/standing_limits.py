"""What must hold at gates when nobody moves: none waits for what is free, none was overtaken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from detent.kernel.lifecycle import TERMINAL

if TYPE_CHECKING:
    import apsw

    from detent.testing.auditing_limits import GateAudit
    from detent.testing.gate_books import Books, Use

PATIENCE = 8  # how many others one sees pass before something is kept for it

Place = tuple[str, str]  # instance, token

_OPEN = """
SELECT i.id, i.tenant, i.state, s.body FROM instance i JOIN snapshot s ON s.n = i.n
WHERE i.ns <> 'detent'
"""
_GATE = "SELECT tenant, kind, key, at, body FROM gate_row ORDER BY tenant, kind, key, at"


class Standing(NamedTuple):
    """One who stands in line."""

    instance: str
    tenant: str
    priority: int
    since: int
    keys: tuple[str, ...]
    pool: str
    resource: str  # id of the only one it may have; empty for any
    slot: str
    back: bool
    block: str = ""

    def rules(self) -> list[str]:
        """The names of what it waits for."""
        named = [f"limit {key}" for key in self.keys]
        if self.pool:
            named.append(f"pool {self.pool}")
        return [*named, *([f"key {self.slot}"] if self.slot else [])]


class Found(NamedTuple):
    """Who stands, and what is wrong about it."""

    standing: dict[Place, Standing]
    fault: str


def check_standing(
    audit: GateAudit,
    connection: apsw.Connection,
    tick: int,
    before: Mapping[Place, Standing],
) -> Found:
    """Look at everybody who stands in line, and at the rows of all gates."""
    standing: dict[Place, Standing] = {}
    held: dict[tuple[str, str], None] = {}
    tickets: dict[tuple[str, str], None] = {}
    open_: list[Any] = connection.execute(_OPEN).fetchall()
    for id, tenant, state, text in open_:
        body = json.loads(text)
        for token in body.get("tickets", ()):
            tickets[(tenant, f"{id}:{token}")] = None
        if body.get("slot"):
            held[(tenant, id)] = None
        if state not in TERMINAL and state != "paused":
            standing |= {(each.instance, token): each for token, each in _in_line(body)}
    fault = (
        _rows_differ(connection, tickets, held)
        or _counts_differ(audit, connection, tick)
        or _under_used(audit, standing, tick)
        or overtaken(
            audit.uses, standing, before, lambda each, at: audit.shut(each.instance, each.block, at)
        )
    )
    return Found(standing, fault)


def _in_line(body: dict[str, Any]) -> Iterator[tuple[str, Standing]]:
    root = body.get("root")
    frames = [root] if root else []
    while frames:
        frame = frames.pop()
        wait = frame.get("wait") or {}
        if wait.get("kind") in ("gate", "slot"):
            asked = frame.get("granted") or {}
            slot = body["concurrency"]["key"] if wait["kind"] == "slot" else ""
            yield (
                str(wait["token"]),
                Standing(
                    body["id"],
                    body.get("tenant", "default"),
                    body.get("priority", 1),
                    wait["since"],
                    () if slot else tuple(asked.get("keys", ())),
                    "" if slot else asked.get("pool", ""),
                    "" if slot else asked.get("resource", ""),
                    slot,
                    bool(frame.get("back")),
                    frame.get("b", ""),
                ),
            )
        if wait.get("kind") == "slot":
            return  # everything below is held
        frames += [lane["open"] for lane in frame.get("lanes", ()) if lane.get("open")]


def _rows_differ(
    connection: apsw.Connection,
    tickets: Mapping[tuple[str, str], None],
    held: Mapping[tuple[str, str], None],
) -> str:
    """The gates' tickets and slots are those that the instances know of."""
    rows: list[Any] = connection.execute(_GATE).fetchall()
    asks = {(tenant, key): None for tenant, kind, key, *_ in rows if kind == "ask"}
    slots = {(tenant, key): None for tenant, kind, key, *_ in rows if kind == "slot"}
    for name, one, two in (("ask", asks, tickets), ("slot", slots, held)):
        if one != two:
            extra = [key for key in one if key not in two]
            missing = [key for key in two if key not in one]
            return f"leaked: of {name} rows the gate has {extra} more, and misses {missing}"
    return ""


def _counts_differ(audit: GateAudit, connection: apsw.Connection, tick: int) -> str:
    """What the gates' rows count is what was used; less is forgotten, more is never used."""
    used: dict[tuple[str, str], int] = {}
    days: dict[tuple[str, str, int], int] = {}
    rows: list[Any] = connection.execute(_GATE).fetchall()
    for tenant, kind, key, at, body in rows:
        books = audit.books.get(tenant)
        limit = books.limits.get(key) if books is not None else None
        if kind == "use" and books is not None and limit is not None:
            if at > tick - books.clock.reach(limit["window_ms"]):
                used[(tenant, key)] = used.get((tenant, key), 0) + int(body)
        elif kind == "permit":
            for name in (name for permit in json.loads(body).values() for name in permit[0]):
                used[(tenant, name)] = used.get((tenant, name), 0) + 1
        elif kind == "day":
            days[(tenant, key, at)] = int(body)
    for tenant, books in audit.books.items():
        for key in books.limits:
            least, most = books.count(key, tick), books.count(key, tick, known=False)
            stored = used.get((tenant, key), 0)
            if not least <= stored <= most:
                return f"{tenant}'s gate counts {stored} of {key} at {tick}; used were {most}"
        for (pool, id, day), count in books.days.items():
            resource = books.pools.get(pool, {}).get(id)
            today = resource and books.clock.local(tick, resource["timezone"]).toordinal()
            stored = days.get((tenant, f"{len(pool)}:{pool}:{id}", day), 0)
            if day == today and stored != count:
                return f"{tenant}'s gate counts {stored} of {id} today; used were {count}"
    return ""


def _under_used(audit: GateAudit, standing: Mapping[Place, Standing], tick: int) -> str:
    for place, each in standing.items():
        books = audit.books[each.tenant]
        if not _all_free(audit, books, each, tick):
            continue
        if not _kept(audit, standing, place, tick):
            return f"under-used: {each.instance} stands for {each.rules()} at {tick}; all is free"
    return ""


def _all_free(audit: GateAudit, books: Books, each: Standing, tick: int) -> bool:
    if each.slot:
        place = (each.tenant, each.slot)
        return len(audit.holders.get(place, ())) < audit.most(*place)
    shut = audit.shut(each.instance, each.block, tick)
    if shut or not all(books.free(key, tick) for key in each.keys):
        return False
    if not each.pool:
        return True
    enabled = books.enabled(each.pool)
    wanted = [each.resource] if each.resource in enabled else enabled
    return each.pool not in books.pools or any(
        books.resource_free(each.pool, id, tick) for id in wanted
    )


def next_look(audit: GateAudit, standing: Mapping[Place, Standing], tick: int) -> int | None:
    """The first tick from now on at which one who stands may pass, by the auditor's books."""
    found: list[int] = []
    for each in standing.values():
        if each.slot:
            continue
        books = audit.books[each.tenant]
        at = [books.frees_at(key, tick) for key in each.keys]
        if each.pool:
            ids = books.enabled(each.pool)
            wanted = [each.resource] if each.resource in ids else ids
            free = [books.resource_frees_at(each.pool, id, tick) for id in wanted]
            at += [min(free)] if free else []
        found.append(max(at, default=tick))
    return min((at for at in found if at > tick), default=None)


def _kept(audit: GateAudit, standing: Mapping[Place, Standing], place: Place, tick: int) -> bool:
    """Whether it may be kept for another, who needs several things and saw many others pass."""
    mine = standing[place]
    books = audit.books[mine.tenant]
    for other, each in standing.items():
        if other == place or each.tenant != mine.tenant or len(each.rules()) == 1:
            continue
        if not any(rule in mine.rules() for rule in each.rules()):
            continue
        if _all_free(audit, books, each, tick):
            continue
        named = [*each.keys, *books.keys_of(each.pool)]
        passed = sum(at >= each.since for key in named for at in books.used.get(key, ()))
        if passed >= PATIENCE:
            return True
    return False


def overtaken(
    uses: list[tuple[str, Use]],
    standing: Mapping[Place, Standing],
    before: Mapping[Place, Standing],
    shut: Callable[[Standing, int], bool] = lambda _each, _tick: False,
) -> str:
    """Nobody who stands since an earlier tick saw one with equal needs and place go first.

    But for those whose send windows were `shut` then.
    """
    for tenant, use in uses:
        if use.waited and not any(place[0] == use.instance for place in before):
            continue  # it had a place, gave it up, and came back ahead
        for place, each in standing.items():
            equal = (each.tenant, each.priority) == (tenant, use.priority)
            equal &= (each.keys, each.pool) == (use.keys, use.pool) and not each.resource
            if not equal or before.get(place) != each or each.since >= use.tick or use.pinned:
                continue
            if shut(each, use.tick):
                continue
            mine = [b for p, b in before.items() if p[0] == use.instance]
            if all(b.since > each.since and not b.back for b in mine):
                return (
                    f"overtaken: {each.instance} stands for {each.rules()} since {each.since}, "
                    f"and {use.instance} passed at {use.tick}"
                )
    return ""
