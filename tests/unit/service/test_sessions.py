"""Sessions: a key of the tenant's own, its data, and the instances that belong to it."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from detent.model import limits
from detent.service.sessions import (
    NewSession,
    create_session,
    get_session,
    join_session,
    note_resumed,
    session_by_key,
    session_instances,
    session_of,
    set_session_data,
    set_session_state,
)
from tests.conformance.world import a_change
from tests.unit.service.shelf import NOW, a_store, instances, refusal

pytestmark = pytest.mark.req("SEQ-OPS-1")
SOON = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


@pytest.fixture
def store():
    store = a_store()
    yield store
    store.close()


def create(store, id="s-1", key="alice", tenant="acme", **fields):
    new = NewSession(tenant_id="", session_key=key, **fields)
    return create_session(store, tenant, new, id, NOW)


def join(store, *ids, session="s-1", now_ms=NOW):
    for id in ids:
        join_session(store, "acme", session, id, now_ms)


def test_a_session_is_opened_active_and_found_by_id_and_by_key(store):
    made = create(store, data={"n": 1}, expires_at=SOON)
    assert msgspec.json.decode(msgspec.json.encode(made)) == {
        "id": "s-1",
        "tenant_id": "acme",
        "session_key": "alice",
        "data": {"n": 1},
        "state": "active",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    assert get_session(store, "acme", "s-1", NOW) == made
    assert session_by_key(store, "acme", "acme", "alice", NOW) == made
    assert session_by_key(store, None, "acme", "alice", NOW) == made
    plain = msgspec.to_builtins(create(store, "s-2", "bob"))
    assert plain["data"] is None
    assert "expires_at" not in plain


def test_a_key_is_one_in_its_tenant_and_another_tenant_may_have_it_too(store):
    create(store)
    refusal("session.exists", create, store, "s-2")
    assert create(store, "s-2", tenant="beta").tenant_id == "beta"


@pytest.mark.parametrize("key", ["", "x" * 513, "a\x00b", "\ud800"])
def test_a_key_of_another_length_is_refused(store, key):
    refusal("session.invalid", create, store, key=key)
    assert create(store, key="x" * 512).session_key == "x" * 512


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        ("payload.too_large", {"data": "x" * limits.CONTEXT_BYTES}),
        ("payload.invalid", {"data": float("nan")}),
        ("session.invalid", {"expires_at": 7}),
        ("tenant.foreign", {"tenant_id": "beta"}),
    ],
)
def test_a_field_that_is_wrong_is_refused(store, code, fields):
    new = NewSession(**{"tenant_id": "", "session_key": "alice", **fields})
    refusal(code, create_session, store, "acme", new, "s-1", NOW)
    refusal("session.not_found", get_session, store, None, "s-1", NOW)


def test_a_session_of_another_tenant_is_not_found(store):
    create(store)
    assert get_session(store, None, "s-1", NOW).id == "s-1"
    for call, *args in (
        (get_session, "s-1", NOW),
        (set_session_data, "s-1", {}, NOW),
        (set_session_state, "s-1", "paused", NOW),
        (join_session, "s-1", "i-1", NOW),
        (session_instances, "s-1"),
        (session_by_key, "acme", "alice", NOW),
        (session_by_key, "beta", "alice", NOW),
        (get_session, "nothing", NOW),
        (get_session, "a\x00b", NOW),
    ):
        refusal("session.not_found", call, store, "beta", *args)
    assert get_session(store, "acme", "s-1", NOW).state == "active"


def test_data_is_replaced_as_a_whole(store):
    create(store, data={"a": 1, "b": 2})
    changed = set_session_data(store, "acme", "s-1", {"c": 3}, NOW + 1_000)
    assert changed.data == {"c": 3}
    assert changed.updated_at > changed.created_at
    refusal("payload.too_large", set_session_data, store, "acme", "s-1", "x" * 300_000, NOW)
    assert get_session(store, "acme", "s-1", NOW).data == {"c": 3}


@pytest.mark.parametrize("one", ["active", "paused", "completed", "expired"])
@pytest.mark.parametrize("other", ["active", "paused", "completed", "expired"])
def test_every_state_leads_to_every_other(store, one, other):
    create(store)
    set_session_state(store, "acme", "s-1", one, NOW)
    assert set_session_state(store, "acme", "s-1", other, NOW).session.state == other
    refusal("session.invalid", set_session_state, store, "acme", "s-1", "asleep", NOW)


def test_a_session_past_its_end_is_expired(store):
    create(store, expires_at=SOON)
    at = int(SOON.timestamp() * 1000)
    assert get_session(store, "acme", "s-1", at - 1).state == "active"
    assert get_session(store, "acme", "s-1", at).state == "expired"
    assert "expired" in refusal("session.closed", join_session, store, "acme", "s-1", "i-1", at)


def test_instances_join_before_they_are_created_and_are_then_listed(store):
    create(store)
    join(store, "i-1", "i-2", "never-started")
    instances(store, "i-2", "i-1")
    assert [row.id for row in session_instances(store, "acme", "s-1")] == ["i-1", "i-2"]
    assert session_of(store, "i-1") == "s-1"
    assert session_of(store, "i-9") is None
    join(store, "i-1")  # a start that is told twice joins once
    create(store, "s-2", "bob")
    refusal("session.invalid", join_session, store, "acme", "s-2", "i-1", NOW)


@pytest.mark.parametrize("state", ["paused", "completed", "expired"])
def test_a_session_that_is_not_active_takes_no_instances(store, state):
    create(store)
    set_session_state(store, "acme", "s-1", state, NOW)
    refusal("session.closed", join_session, store, "acme", "s-1", "i-1", NOW)
    assert session_of(store, "i-1") is None


def test_a_session_has_only_so_many_instances(store, monkeypatch):
    monkeypatch.setattr(limits, "SESSION_INSTANCES", 2)
    create(store)
    join(store, "i-1", "i-2")
    refusal("record.limit", join_session, store, "acme", "s-1", "i-3", NOW)


def test_what_an_instance_starts_belongs_to_its_session(store):
    create(store)
    join(store, "i-1")
    world = instances(store, "i-1")
    world.commit(a_change("child", birth={"parent": "i-1"}))
    world.commit(a_change("grandchild", birth={"parent": "child"}))
    world.commit(a_change("stranger"))
    found = [row.id for row in session_instances(store, "acme", "s-1")]
    assert found == ["i-1", "child", "grandchild"]
    assert session_of(store, "grandchild") == "s-1"
    assert session_of(store, "stranger") is None


def test_pausing_a_session_pauses_its_instances_and_activating_resumes_just_those(store):
    create(store)
    join(store, "moving", "asleep", "ended", "by-hand")
    world = instances(store, "moving", state="running")
    world.commit(
        a_change("asleep", state="waiting"),
        a_change("ended", state="completed"),
        a_change("by-hand", state="paused"),
    )
    told = set_session_state(store, "acme", "s-1", "paused", NOW)
    assert (told.verb, told.instances) == ("pause", ("moving", "asleep"))
    world.commit(
        world.next_change("moving", state="paused"), world.next_change("asleep", state="paused")
    )
    assert set_session_state(store, "acme", "s-1", "paused", NOW).instances == ()
    world.commit(world.next_change("asleep", state="cancelled"))
    told = set_session_state(store, "acme", "s-1", "active", NOW)
    assert (told.verb, told.instances) == ("resume", ("moving",))
    assert set_session_state(store, "acme", "s-1", "active", NOW) == told
    note_resumed(store, told, NOW)
    assert set_session_state(store, "acme", "s-1", "active", NOW).verb == ""


def test_what_a_session_holds_is_not_forgotten_when_it_was_paused_again_meanwhile(store):
    create(store)
    join(store, "moving")
    world = instances(store, "moving", state="running")
    set_session_state(store, "acme", "s-1", "paused", NOW)
    world.commit(world.next_change("moving", state="paused"))
    told = set_session_state(store, "acme", "s-1", "active", NOW)
    set_session_state(store, "acme", "s-1", "paused", NOW)
    note_resumed(store, told, NOW)
    assert set_session_state(store, "acme", "s-1", "active", NOW).instances == ("moving",)


def test_completing_a_session_commands_nobody(store):
    create(store)
    join(store, "i-1")
    instances(store, "i-1", state="running")
    told = set_session_state(store, "acme", "s-1", "completed", NOW)
    assert (told.verb, told.instances) == ("", ())
