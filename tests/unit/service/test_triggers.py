"""Triggers: made, listed, removed and fired."""

from __future__ import annotations

import msgspec
import pytest

from detent.model import limits
from detent.service.triggers import (
    NewTrigger,
    create_trigger,
    delete_trigger,
    emit_to_trigger,
    enable_trigger,
    fire_trigger,
    get_trigger,
    list_triggers,
)
from tests.unit.service.shelf import (
    NO_VAULT,
    NOW,
    SAFE,
    a_store,
    define,
    refusal,
)

pytestmark = pytest.mark.req("SEQ-WHK-2")


@pytest.fixture
def store():
    store = a_store()
    define(store, "greet")
    yield store
    store.close()


def create(store, slug="hello", tenant="acme", safe=SAFE, **fields):
    new = NewTrigger(**{"slug": slug, "sequence_name": "greet", "tenant_id": "", **fields})
    return create_trigger(store, safe, tenant, new, NOW)


def test_a_trigger_is_made_enabled_and_its_secret_is_redacted(store):
    made = create(store, secret="s3cret", config={"a": 1})
    wire = msgspec.json.decode(msgspec.json.encode(made))
    assert wire == {
        "slug": "hello",
        "sequence_name": "greet",
        "tenant_id": "acme",
        "namespace": "default",
        "enabled": True,
        "secret": "[REDACTED]",
        "trigger_type": "webhook",
        "config": {"a": 1},
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
    }
    assert get_trigger(store, "acme", "hello") == made
    assert b"s3cret" not in store.record("trigger", "hello").body
    assert "s3cret" not in repr(
        NewTrigger(slug="a", sequence_name="b", tenant_id="c", secret="s3cret")
    )
    plain = msgspec.json.decode(msgspec.json.encode(create(store, "plain", version=1)))
    assert "secret" not in plain
    assert (plain["version"], plain["config"]) == (1, None)


@pytest.mark.parametrize(
    "body",
    [
        b'{"slug":"a","sequence_name":"b"}',
        b'{"slug":"a","tenant_id":"b"}',
        b'{"slug":"a","sequence_name":"b","tenant_id":"c","trigger_type":"x"}',
    ],
)
def test_a_missing_field_or_unknown_type_does_not_decode(body):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=NewTrigger)


@pytest.mark.parametrize(
    "fields",
    [
        {"slug": ""},
        {"sequence_name": ""},
        {"namespace": ""},
        {"slug": "x" * 256},
        {"sequence_name": "x" * 256},
        {"secret": ""},
        {"secret": "x" * 513},
        {"trigger_type": "carrier_pigeon"},
        {"namespace": "detent"},
    ],
)
def test_a_field_that_is_wrong_is_refused(store, fields):
    refusal("trigger.invalid", create, store, **fields)
    assert list_triggers(store, None) == []


def test_a_sequence_that_is_not_there_is_not_found(store):
    refusal("definition.unknown", create, store, sequence_name="nothing")
    refusal("definition.unknown", create, store, version=2)
    refusal("definition.unknown", create, store, namespace="other")
    refusal("definition.unknown", create, store, tenant="beta")


def test_a_config_that_is_too_large_is_refused(store):
    refusal("payload.too_large", create, store, config="x" * limits.TRIGGER_CONFIG_BYTES)


def test_a_slug_is_taken_whoever_has_it(store):
    define(store, "greet", tenant="beta")
    create(store)
    refusal("trigger.exists", create, store, tenant="beta")
    assert get_trigger(store, None, "hello").tenant_id == "acme"


def test_a_secret_needs_a_vault_and_a_trigger_without_one_does_not(store):
    refusal("vault.locked", create, store, safe=NO_VAULT, secret="s3cret")
    create(store, safe=NO_VAULT)
    assert fire_trigger(store, NO_VAULT, "acme", "hello", {}).slug == "hello"


def test_triggers_of_other_tenants_are_not_seen_but_by_the_operator(store):
    define(store, "greet", tenant="beta")
    create(store, "own")
    create(store, "foreign", tenant="beta")
    assert [each.slug for each in list_triggers(store, "acme")] == ["own"]
    assert [each.slug for each in list_triggers(store, None)] == ["own", "foreign"]
    assert [each.slug for each in list_triggers(store, None, 1)] == ["own"]
    assert get_trigger(store, None, "foreign").tenant_id == "beta"
    for slug in ("foreign", "nothing", "a\x00b"):
        refusal("trigger.not_found", get_trigger, store, "acme", slug)
        refusal("trigger.not_found", delete_trigger, store, "acme", slug)
        refusal("trigger.not_found", fire_trigger, store, SAFE, "acme", slug, {})
    refusal("tenant.foreign", create, store, "x", tenant_id="beta")


def test_a_deleted_trigger_is_gone(store):
    create(store)
    delete_trigger(store, "acme", "hello")
    refusal("trigger.not_found", delete_trigger, store, "acme", "hello")
    refusal("trigger.not_found", fire_trigger, store, SAFE, None, "hello", {})


def test_firing_starts_the_sequence_with_what_came(store):
    create(store)
    fired = fire_trigger(store, SAFE, "acme", "hello", {"n": 1})
    assert (fired.slug, fired.sequence_name, fired.definition.name) == ("hello", "greet", "greet")
    asked = fired.request
    assert (asked.data, asked.tenant, asked.namespace) == ({"n": 1}, "acme", "default")
    assert (asked.priority, asked.timezone) == ("Normal", "UTC")
    assert asked.metadata == {
        "_trigger": "hello",
        "_trigger_type": "webhook",
        "_trigger_event": {"source": "http_fire"},
    }


def test_the_version_is_found_when_it_fires_and_a_pinned_one_stays(store):
    create(store)
    create(store, "pinned", version=1)
    define(store, "greet", 2)
    newest = define(store, "greet", 3)
    assert fire_trigger(store, SAFE, "acme", "hello", {}).definition.version == 3
    assert fire_trigger(store, SAFE, "acme", "pinned", {}).definition.version == 1
    store.deprecate_definition(newest.hash, "acme", "default")
    assert fire_trigger(store, SAFE, "acme", "hello", {}).definition.version == 2


def test_a_trigger_with_a_secret_fires_for_who_knows_it(store):
    create(store, secret="s3cret")
    assert fire_trigger(store, SAFE, "acme", "hello", {}, "s3cret").slug == "hello"
    for wrong in (None, "", "s3cre", "s3cret ", "S3CRET", "\ud800"):
        assert "s3cret" not in refusal(
            "trigger.refused", fire_trigger, store, SAFE, "acme", "hello", {}, wrong
        )


def test_a_disabled_trigger_fires_for_nobody_until_it_is_enabled(store):
    create(store)
    assert enable_trigger(store, "acme", "hello", NOW, enabled=False).enabled is False
    refusal("trigger.disabled", fire_trigger, store, SAFE, "acme", "hello", {})
    refusal("trigger.disabled", emit_to_trigger, store, "acme", "hello", {}, {})
    enable_trigger(store, "acme", "hello", NOW, enabled=True)
    assert fire_trigger(store, SAFE, "acme", "hello", {}).slug == "hello"
    refusal("trigger.not_found", enable_trigger, store, "beta", "hello", NOW, enabled=True)


def test_an_instance_fires_a_trigger_of_its_tenant_without_the_secret(store):
    create(store, secret="s3cret", trigger_type="event")
    about = {"parent_instance_id": "i-1", "source": "forged"}
    event = emit_to_trigger(store, "acme", "hello", [1], about).request.metadata["_trigger_event"]
    assert event == {"source": "emit_event", "parent_instance_id": "i-1"}
    refusal("trigger.not_found", emit_to_trigger, store, "beta", "hello", [1], {})
