"""The auditor of a simulation: after a run, do the engine's books and the world's books agree?

It looks at three things that the run itself did not make for it: the chain, the replay of every
record, and the `Outside`, where doubles and losses are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from detent.kernel.recording import detail_of, inputs_of, read_body
from detent.kernel.replay import replay
from detent.model.inputs import EffectDoubted, decode_input
from detent.ports.store import Page
from detent.service.proving import verify_store
from detent.service.reading import StoredBlobs, journal_of, read_snapshot, recording_of
from detent.testing.outside import Wrong

if TYPE_CHECKING:
    from detent.ports.store import InstanceRow, Store
    from detent.testing.outside import Outside

MARKED = ("post", "pay")  # every order of these handlers is marked; those that query are not
SETTLED = ("effect.applied", "effect.failed", "effect.skipped", "effect.withdrawn")


class Ending(NamedTuple):
    """How a run ended: what must be the same with and without a crash."""

    instances: dict[str, dict[str, Any]]
    applied: dict[str, int]  # by place, for the classes that never double


class Figures(NamedTuple):
    """What is reported of a run."""

    once_calls: int
    decided_by_people: int


def audit(store: Store, outside: Outside, *, replayed: bool = True) -> Ending:
    """Check everything that must hold after any run; how it ended."""
    found = verify_store(store)
    if found.broken is not None:
        raise Wrong(f"the chain is broken: {found.broken}")
    rows = store.instances(Page(limit=10_000))
    settled: dict[str, str] = {}
    for row in rows:
        settled |= _settled(store, row)
        if replayed:
            _check_replay(store, row)
    _check_flights(store)
    _check_books(outside, settled)
    return Ending({row.id: _ended(store, row) for row in rows}, _applied(outside))


def compare(expected: Ending, got: Ending) -> None:
    """Raise unless both runs ended alike."""
    for name, one, two in (
        ("instances", expected.instances, got.instances),
        ("effects", expected.applied, got.applied),
    ):
        for key in [*one, *(key for key in two if key not in one)]:
            if one.get(key) != two.get(key):
                raise Wrong(
                    f"{name} end differently: {key}\n"
                    f"  without crash: {_difference(one.get(key), two.get(key))}\n"
                    f"  with crash:    {_difference(two.get(key), one.get(key))}"
                )


def figures(outside: Outside) -> Figures:
    """How often once-only handlers were called, and people had to decide."""
    once = sum(deed.what == "call" and deed.doubt == "once" for deed in outside.deeds)
    people = sum(
        deed.what == "person" and deed.key.startswith("resolve:") for deed in outside.deeds
    )
    return Figures(once, people)


def _difference(one: Any, two: Any) -> Any:
    """The members of one mapping that are not those of another."""
    if isinstance(one, dict) and isinstance(two, dict):
        return {k: _difference(v, two.get(k)) for k, v in one.items() if v != two.get(k)}
    return one


def _ended(store: Store, row: InstanceRow) -> dict[str, Any]:
    snapshot = read_snapshot(store, row)
    if snapshot is None:
        return {"state": row.state}
    error = snapshot.error if isinstance(snapshot.error, dict) else {}
    return {
        "state": snapshot.state,
        "data": _without_texts(snapshot.data),
        "outputs": {block: _in_order(output) for block, output in snapshot.outputs.items()},
        "kv": snapshot.kv,
        "definition": snapshot.definition,
        "error": error.get("block"),
        "generation": snapshot.generation,
        "open": len(snapshot.effects),
    }


def _without_texts(data: Any) -> Any:
    """A caught error by its place alone: after a crash a provider is told of in other words."""
    if isinstance(data, dict) and isinstance(data.get("_error"), dict):
        return {**data, "_error": data["_error"].get("block")}
    return data


def _in_order(output: Any) -> Any:
    """A child's outputs by block: branches that end within one tick may change places."""
    if isinstance(output, list) and all(isinstance(each, dict) for each in output):
        return sorted(output, key=lambda each: str(each.get("block_id")))
    return output


def _settled(store: Store, row: InstanceRow) -> dict[str, str]:
    """The last word of the journal on each effect key."""
    last: dict[str, str] = {}
    marked: dict[str, None] = {}
    for journal in journal_of(store, row):
        body = read_body(journal.body or b"{}")
        for entry in body.entries:
            if entry[0] in SETTLED:
                last[detail_of(entry)["key"]] = entry[0].partition(".")[2]
            elif entry[0] == "effect.planned" and detail_of(entry)["handler"] in MARKED:
                marked[detail_of(entry)["key"]] = None
        for told in map(decode_input, inputs_of(body, StoredBlobs(store, row.id))):
            if isinstance(told, EffectDoubted) and not told.dispatch and told.key in marked:
                raise Wrong(f"effect {told.key} is doubted, and it never had a start mark")
    return last


def _check_replay(store: Store, row: InstanceRow) -> None:
    told = replay(recording_of(store, row))
    if not told.identical:
        raise Wrong(f"{row.id} does not run again as recorded: {told.first_difference}")


def _check_flights(store: Store) -> None:
    left = store.statistics()
    if left["doubts"]:
        raise Wrong(f"{left['doubts']} doubts are left over")


def _applied(outside: Outside) -> dict[str, int]:
    counts: dict[str, int] = {}
    for deed in outside.deeds:
        if deed.what == "applied" and deed.doubt != "repeatable":
            counts[deed.place] = counts.get(deed.place, 0) + 1
    return counts


def _check_books(outside: Outside, settled: dict[str, str]) -> None:
    """The ledger and the providers' books must tell the same story about every key."""
    classes = {deed.key: deed.doubt for deed in outside.deeds if deed.what == "call"}
    allowed: dict[str, int] = {}
    asked = [deed.key for deed in outside.deeds if deed.what == "asked" and deed.handler == "again"]
    for id in dict.fromkeys(asked):  # asked again after a crash it is still one permission
        key = id.split(":")[1]
        allowed[key] = allowed.get(key, 0) + 1
    for key, doubt in classes.items():
        calls, applied = outside.count("call", key), outside.count("applied", key)
        if doubt in ("once", "queryable") and calls > 1 + allowed.get(key, 0):
            raise Wrong(f"doubled: the {doubt} effect {key} was called {calls} times")
        if doubt != "repeatable" and applied > 1:
            raise Wrong(f"doubled: the {doubt} effect {key} took effect {applied} times")
        if doubt != "repeatable" and applied and settled.get(key) != "applied":
            raise Wrong(f"lost: {doubt} effect {key} happened; the journal says {settled.get(key)}")
        if settled.get(key) == "withdrawn":
            raise Wrong(f"the withdrawn effect {key} was called")
        if settled.get(key) == "applied" and not applied:
            raise Wrong(f"lost: the effect {key} is settled as applied and never happened")
