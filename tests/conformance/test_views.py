"""What people and proofs read."""

from __future__ import annotations

import pytest

from detent.model.decision import Doubt
from detent.ports.definitions import DefinitionRow
from detent.ports.listing import ListQuery
from detent.ports.own import OwnQuery
from detent.ports.store import Page, Seal
from tests.conformance.world import a_birth, a_change, an_arrival

STATES = ("scheduled", "running", "waiting", "paused", "completed", "failed", "cancelled")


@pytest.fixture
def filled(world, store):
    """Sixty instances over states, tenants, namespaces, definitions and parents, by number."""
    changes = [
        a_change(
            f"id-{i:02}",
            p=i % 4,
            state=STATES[i % 7],
            definition=f"hash-{i % 3}",
            birth={
                "tenant": ("acme", "other")[i % 5 == 0],
                "namespace": ("sales", "hr")[i % 2],
                "parent": "father" if i % 4 == 0 else None,
            },
        )
        for i in range(60)
    ]
    world.commit(*changes)
    return [store.instance(change.id) for change in changes]


FILTERS = {
    "everything": (Page(), lambda row: row.n > 0),
    "a tenant": (Page(tenant="acme"), lambda row: row.tenant == "acme"),
    "a tenant and states": (
        Page(tenant="other", states=("failed", "running", "failed")),
        lambda row: row.tenant == "other" and row.state in ("failed", "running"),
    ),
    "states of all tenants": (Page(states=("paused",)), lambda row: row.state == "paused"),
    "a namespace": (Page(namespace="hr"), lambda row: row.namespace == "hr"),
    "tenant, namespace and definition": (
        Page(tenant="acme", namespace="hr", definition="hash-2"),
        lambda row: (row.tenant, row.namespace, row.definition) == ("acme", "hr", "hash-2"),
    ),
    "all but a namespace": (Page(without="hr"), lambda row: row.namespace != "hr"),
    "a tenant without a namespace": (
        Page(tenant="acme", states=("failed", "running"), without="sales"),
        lambda row: (
            (row.tenant, row.namespace) == ("acme", "hr") and row.state in ("failed", "running")
        ),
    ),
    "the children of an instance": (
        Page(parent="father"),
        lambda row: row.parent == "father",
    ),
    "some children": (
        Page(tenant="acme", parent="father", states=("waiting", "completed")),
        lambda row: (
            (row.tenant, row.parent) == ("acme", "father") and row.state in ("waiting", "completed")
        ),
    ),
    "nothing": (Page(tenant="nobody"), lambda row: row.tenant == "nobody"),
}


def test_recent_instances_may_be_asked_for_by_whether_their_definition_is_stored(filled, store):
    greet = DefinitionRow("hash-1", "acme", "hr", "greet", 1, b"{}", False, 1_000)
    store.put_definition(greet)
    found = store.recent_instances(ListQuery(stored=True, limit=100))
    wanted = [row for row in filled if (row.tenant, row.definition) == ("acme", "hash-1")]
    assert found == wanted[::-1]
    assert len(store.recent_instances(ListQuery(limit=100))) == len(filled)


@pytest.mark.parametrize(("page", "wanted"), FILTERS.values(), ids=FILTERS)
def test_lists_are_filtered_and_paged_by_number(store, filled, page, wanted):
    expected = [row for row in filled if wanted(row)]
    assert store.instances(page) == expected
    paged, after = [], 0
    while rows := store.instances(page._replace(after=after, limit=3)):
        assert len(rows) <= 3
        paged += rows
        after = rows[-1].n
    assert paged == expected


def test_states_are_counted_per_tenant_and_for_all(store, filled):
    for tenant in ("acme", "other", ""):
        states = [row.state for row in filled if tenant in ("", row.tenant)]
        assert store.count_states(tenant) == {state: states.count(state) for state in set(states)}
    assert store.count_states("nobody") == {}


@pytest.fixture
def own(world, store, filled):
    """Twelve of the engine's own instances behind the others, by number."""
    changes = [
        a_change(
            f"own-{i:02}",
            p=i % 4,
            state=("waiting", "cancelled")[i % 2],
            definition=f"hash-{i % 3}",
            birth={"tenant": ("acme", "other")[i % 4 == 0], "namespace": "detent"},
        )
        for i in range(12)
    ]
    world.commit(*changes)
    return [store.instance(change.id) for change in changes]


OWN = {
    "all": (Page(), lambda row: row.n > 0),
    "of a tenant": (Page(tenant="acme"), lambda row: row.tenant == "acme"),
    "in a state": (Page(states=("waiting",)), lambda row: row.state == "waiting"),
    "of a tenant, a state and a definition": (
        Page(tenant="acme", states=("cancelled", "failed"), definition="hash-1"),
        lambda row: (row.tenant, row.state, row.definition) == ("acme", "cancelled", "hash-1"),
    ),
}


@pytest.mark.parametrize(("page", "wanted"), OWN.values(), ids=OWN)
def test_the_engines_own_are_listed_by_their_namespace(store, filled, own, page, wanted):
    expected = [row for row in own if wanted(row)]
    page = page._replace(namespace="detent")
    assert store.instances(page) == expected
    assert store.instances(page._replace(after=expected[0].n, limit=2)) == expected[1:3]


def test_the_engines_own_are_not_counted(store, filled, own):
    for tenant in ("acme", "other", ""):
        states = [row.state for row in filled if tenant in ("", row.tenant)]
        assert store.count_states(tenant) == {state: states.count(state) for state in set(states)}


def test_a_tenant_with_nothing_but_the_engines_own_counts_none(world, store):
    world.commit(a_change("own", birth={"tenant": "new", "namespace": "detent"}))
    assert store.count_states("new") == {}


def test_a_start_nobody_has_taken_is_listed(world, store):
    store.enqueue([an_arrival("arrival-1", "one", birth=a_birth("one"))], 3)
    assert [row.id for row in store.instances(Page(tenant="acme", states=("scheduled",)))] == [
        "one"
    ]
    assert store.count_states("acme") == {"scheduled": 1}


def test_an_unknown_instance_is_none(store):
    assert store.instance("none") is None


def test_the_journal_is_paged_by_seq_and_by_position(world, store):
    world.commit(a_change("one"), a_change("two"))
    for _ in range(9):
        world.commit(world.next_change("one"))
    n = world.numbers["one"]
    assert [row.seq for row in store.journal(n, 0, 4)] == [1, 2, 3, 4]
    assert [row.seq for row in store.journal(n, 8, 4)] == [9, 10]
    assert store.journal(n, 10, 4) == store.journal(999, 0, 4) == []
    scanned, after = [], 0
    while rows := store.journal_scan(after, 4):
        scanned += rows
        after = rows[-1].pos
    assert [row.pos for row in scanned] == sorted({row.pos for row in scanned})
    assert len(scanned) == 11
    assert [row for row in scanned if row.inst == n] == store.journal(n, 0, 100)


def test_turns_and_seals_are_paged_by_number(world, store):
    seals = [Seal(n, n, b"r", b"d", b"s") for n in range(3)]
    for seal in seals:
        world.commit(touching=[1, 2], seal=seal)
    world.commit(touching=[2])
    assert [row.n for row in store.turns(1, 0, 10)] == [1, 2, 3]
    assert [row.n for row in store.turns(2, 1, 2)] == [2, 3]
    assert {row.p for row in store.turns(2, 0, 10)} == {2}
    assert store.turns(3, 0, 10) == []
    assert store.seals(-1, 2) == seals[:2]
    assert store.seals(0, 10) == seals[1:]


def test_doubts_are_listed_by_age_and_filtered(world, store):
    world.commit(
        a_change("one"), a_change("two", birth={"tenant": "other"}),
        doubts=[("one", Doubt(effect="effect-2", state="indeterminate"))], tick=50,
    )  # fmt: skip
    doubts = [
        ("two", Doubt(effect="effect-1", state="needs_reconcile", next_try=9)),
        ("one", Doubt(effect="effect-3", state="indeterminate", reason="why")),
    ]
    world.commit(doubts=doubts, tick=60)

    def effects(*filters):
        return [row.effect for row in store.doubts(*filters)]

    assert effects("", "", 10) == ["effect-2", "effect-1", "effect-3"]
    assert effects("", "", 2) == ["effect-2", "effect-1"]
    assert effects("acme", "", 10) == ["effect-2", "effect-3"]
    assert effects("", "two", 10) == ["effect-1"]
    assert effects("acme", "two", 10) == []


def test_a_sound_store_has_no_problems(filled, store):
    assert store.check() == []


def test_figures_are_told(filled, store):
    figures = store.statistics()
    assert figures["instances"] == 60
    assert figures["journal_rows"] == 60
    assert figures["arrivals_waiting"] == 0


def test_a_store_can_be_closed_twice(store):
    store.close()
    store.close()


def test_the_engines_own_instances_of_a_kind_are_listed_newest_first(world, store):
    changes = [
        a_change(
            f"own-{i:02}",
            p=i % 4,
            state=STATES[i % 7],
            definition=f"hash-{i % 2}",
            birth={
                "tenant": ("acme", "other")[i % 3 == 0],
                "namespace": "detent" if i % 5 else "sales",
            },
        )
        for i in range(40)
    ]
    world.commit(*changes)
    rows = [store.instance(change.id) for change in changes]
    own = [row for row in reversed(rows) if row.namespace == "detent"]
    kind = [row for row in own if row.definition == "hash-1"]
    assert store.own_instances(OwnQuery("hash-1")) == kind
    assert store.own_instances(OwnQuery("hash-1", limit=3)) == kind[:3]
    assert store.own_instances(OwnQuery("hash-1", before=kind[2].n)) == kind[3:]
    found = store.own_instances(OwnQuery("hash-1", "acme", ("failed", "completed", "failed")))
    assert found == [
        row for row in kind if row.tenant == "acme" and row.state in ("failed", "completed")
    ]
    assert store.own_instances(OwnQuery("hash-9")) == []
