"""A commit that fails anywhere leaves nothing behind, and a store that still works."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detent.model.decision import Doubt, Verdict
from detent.model.errors import StoreError
from detent.ports.due import DueQuery
from detent.ports.store import Flight, Seal
from tests.conformance.adapters import ADAPTER_ERRORS
from tests.conformance.world import World, a_birth, a_change, an_arrival, an_item, everything

LONE_SURROGATE = "\ud800"


def prepared(store):
    """A writer over a store in which every kind of row of the next commit meets an older one."""
    world = World(store)
    world.commit(
        a_change("old", p=0, due=5, busy=True),
        a_change("slept", p=1, due=6),
        marks=[Flight("effect-1", "d", 1, 1), Flight("effect-2", "d", 1, 1)],
        tombstones=["effect-6"],
        doubts=[("old", Doubt(effect="effect-3", state="indeterminate"))],
        blobs=[("old", "blob-1", b"kept")],
        work=[an_item("work-1", tenant="acme")],
    )
    store.enqueue([an_arrival("arrival-1", "old"), an_arrival("arrival-2", "old")], 1)
    return world


def a_full_turn(world):
    """A commit with every kind of row, enough of them for several statements each."""
    changes = [world.next_change("old", due=9, busy=False)]
    changes += [a_change(f"new-{i}", p=i % 4, due=i, busy=True) for i in range(70)]
    return world.turn(
        changes,
        arrivals=[
            an_arrival("arrival-3", "child", 2, b"x", a_birth("child")),
            an_arrival("arrival-4", "old"),
        ],
        taken=[("arrival-1", Verdict(id="arrival-1", result=[1])), ("arrival-5", None)],
        marks=[Flight("effect-0", "d", 1, 1), Flight("effect-1", "e", 2, 2)],
        tombstones=["effect-6", "effect-4"],
        settled=["effect-1"],
        doubts=[
            ("old", Doubt(effect="effect-3", state="")),
            ("old", Doubt(effect="effect-5", state="indeterminate")),
        ],
        blobs=[("old", "blob-2", b"b" * 9_000)],
        seal=Seal(1, 1, b"roots", b"digest", b"signature"),
        dues=[(world.numbers["slept"], 44)],
        work=[an_item("work-2", previous="work-1")],
        called_off=["work-1"],
    )


def code_of(call):
    """The code of the error a call raises, empty when it raises none."""
    try:
        call()
    except StoreError as error:
        return error.code
    return ""


def test_a_failure_at_every_statement_rolls_everything_back(store_factory):
    store = store_factory()
    commit = a_full_turn(prepared(store))
    before = everything(store)
    for number in range(1, 200):
        with store_factory.failing(store, number) as seen:
            code = code_of(lambda: store.commit(commit))
        if not code:
            break
        assert code == "store.unavailable", seen[-1]
        assert everything(store) == before, seen[-1]
    assert number - 1 == len(seen) > store_factory.statements
    after = everything(store)
    assert after["journal"][-1].body == b"journal 1 of new-69"
    kept = {"effect-0", "effect-1", "effect-2", "effect-4", "effect-6"}
    assert set(after["flights"]) == kept
    assert after["flights"]["effect-1"].dispatcher == "e"


def test_a_commit_broken_off_at_any_moment_leaves_nothing(store_factory):
    store = store_factory()
    commit = a_full_turn(prepared(store))
    before = everything(store)
    for steps in range(1, 4_000, 131):
        with (
            store_factory.interrupted(store, steps),
            pytest.raises(StoreError, match=r"store\.unavailable"),
        ):
            store.commit(commit)
        assert everything(store) == before, steps
    store.commit(commit)
    assert everything(store) != before


POISON = {
    "an id that is not text": {"changes": [replace(a_change("bad"), id=LONE_SURROGATE)]},
    "a snapshot that is not bytes": {"changes": [replace(a_change("bad"), snapshot="text")]},
    "a journal row without a digest": {"changes": [replace(a_change("bad"), digest=None)]},
    "a due tick wider than the column": {"changes": [a_change("bad", due=2**63)]},
    "a due tick that is not a number": {"changes": [a_change("bad", due="soon")]},
    "a tenant of no known type": {"changes": [a_change("bad", birth={"tenant": object()})]},
    "an arrival without a body": {"arrivals": [an_arrival("bad", "x")._replace(body=7)]},
    "a taken id that is not text": {"taken": [(LONE_SURROGATE, None)]},
    "a mark without a dispatcher": {"marks": [Flight("effect-1", None, 1, 1)]},
    "a tombstone that is not text": {"tombstones": [b"effect"]},
    "a doubt of nobody": {"doubts": [(None, Doubt(effect="effect-1", state="indeterminate"))]},
    "a blob that is not bytes": {"blobs": [("good", "blob-1", 7)]},
    "a seal without a digest": {"seal": Seal(1, 1, b"", None, b"")},
}


@pytest.mark.req("CORE-REC-3")
@pytest.mark.parametrize("rows", POISON.values(), ids=POISON)
def test_a_row_that_cannot_be_stored_is_refused_with_the_turn_it_is_in(store_factory, rows):
    store = store_factory()
    world = prepared(store)
    before = everything(store)
    good = [a_change("good"), world.next_change("old")]
    rest = {name: value for name, value in rows.items() if name != "changes"}
    with pytest.raises(StoreError) as refusal:
        store.commit(world.turn([*good, *rows.get("changes", ())], **rest))
    assert refusal.value.code == "store.refused"
    assert refusal.value.details[store_factory.said]
    assert everything(store) == before
    world.commit(*good)


def test_an_enqueue_that_fails_leaves_neither_birth_nor_arrival(store_factory):
    store = store_factory()
    prepared(store)
    before = everything(store)
    batch = [an_arrival("arrival-3", "child", 2, b"x", a_birth("child"))]
    for number in range(1, 50):
        with store_factory.failing(store, number) as seen:
            code = code_of(lambda: store.enqueue(batch, 1))
        if not code:
            break
        assert everything(store) == before, seen[-1]
    assert number > 4
    assert store.instance("child") is not None


def test_no_error_of_the_database_gets_out(store_factory):
    store = store_factory()
    world = World(store)
    calls = {
        "commit": lambda: store.commit(world.turn([a_change("x")])),
        "enqueue": lambda: store.enqueue([an_arrival("a")], 1),
        "mark": lambda: store.mark([Flight("e", "d", 1, 1)]),
        "load": lambda: store.load(["x"]),
        "due": lambda: store.due([0], 1, [DueQuery("acme", 1, (0, ""), 1)]),
        "stretches": lambda: store.stretches([0]),
        "put_setting": lambda: store.put_setting("a", "b"),
        "acquire": lambda: store.acquire(world.owner, [0], 0, 1),
        "renew": lambda: store.renew(world.owner, [(0, 1)], 1),
        "release": lambda: store.release("nobody"),
        "forget": lambda: store.forget(1, 1),
    }
    for name, call in calls.items():
        with store_factory.failing(store, 1), pytest.raises(StoreError) as refusal:
            call()
        assert not isinstance(refusal.value, ADAPTER_ERRORS), name
        assert refusal.value.code == "store.unavailable", name
