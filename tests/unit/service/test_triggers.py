"""Triggers: made, listed, removed and fired; calls from outside, signed and taken once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading

import msgspec
import pytest

from detent.model import limits
from detent.ports.records import RecordQuery
from detent.service.inbound import (
    Call,
    PeerRates,
    accept_webhook,
    instance_of,
    verify_webhook,
)
from detent.service.triggers import (
    NewTrigger,
    create_trigger,
    delete_trigger,
    emit_to_trigger,
    enable_trigger,
    fire_trigger,
    get_trigger,
    list_triggers,
    reseal_triggers,
)
from detent.service.vault import Safe, Vault
from tests.unit.service.shelf import (
    KEY,
    NO_VAULT,
    NOW,
    SAFE,
    a_store,
    define,
    instances,
    refusal,
)

pytestmark = pytest.mark.req("SEQ-WHK-2")
NONCE = "n-0123456789abcdef"


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


def test_a_new_key_reseals_the_secrets(store):
    create(store, secret="s3cret")
    create(store, "plain")
    both = Safe(Vault([bytes(32), KEY]))
    assert reseal_triggers(store, both, NOW) == 1
    assert reseal_triggers(store, both, NOW) == 0
    alone = Safe(Vault([bytes(32)]))
    assert fire_trigger(store, alone, "acme", "hello", {}, "s3cret").slug == "hello"


# calls from outside


def sign(secret, stamp, nonce, body):
    signed = f"{stamp}.{nonce}.".encode() + body
    digest = hmac.new(secret.encode(), signed, hashlib.sha256).digest()
    return "v1=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def a_call(
    body=b'{"n": 1}',
    secret="s3cret",
    stamp=NOW // 1000,
    nonce=NONCE,
    header="x-orch8-signature",
    **headers,
):
    given = {
        "x-trigger-timestamp": str(stamp),
        "x-trigger-nonce": nonce,
        header: sign(secret, stamp, nonce, body),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return Call({name: value for name, value in given.items() if value is not None}, body)


def receive(store, call, slug="hello", now_ms=NOW):
    return accept_webhook(store, verify_webhook(store, SAFE, slug, call, now_ms), now_ms)


def take(store, call, slug="hello"):
    """Receive a call and start what it starts."""
    receive(store, call, slug)
    instances(store, instance_of(verify_webhook(store, SAFE, slug, call, NOW)))


def refused(store, call, code="trigger.refused", **more):
    before = store.count_records(RecordQuery("trigger_nonce"))
    message = refusal(code, receive, store, call, **more)
    assert store.count_records(RecordQuery("trigger_nonce")) == before
    return message


@pytest.mark.parametrize("header", ["x-orch8-signature", "x-detent-signature"])
def test_a_signed_call_fires_under_both_names_of_the_header(store, header):
    create(store, secret="s3cret")
    fired = receive(store, a_call(header=header))
    assert fired.request.data == {"n": 1}
    assert fired.request.metadata["_trigger_event"] == {"source": "public_webhook"}


def test_a_missing_disabled_or_other_trigger_is_not_found(store):
    create(store, secret="s3cret")
    create(store, "event", secret="s3cret", trigger_type="event")
    refused(store, a_call(), "trigger.not_found", slug="nothing")
    refused(store, a_call(), "trigger.not_found", slug="event")
    enable_trigger(store, "acme", "hello", NOW, enabled=False)
    refused(store, a_call(), "trigger.not_found")


def test_a_trigger_without_a_secret_takes_no_call(store):
    create(store)
    assert "no secret" in refused(store, a_call(secret=""))


@pytest.mark.parametrize("age_s", [-60, 0, 300])
def test_a_timestamp_in_the_window_is_taken(store, age_s):
    create(store, secret="s3cret")
    assert receive(store, a_call(stamp=NOW // 1000 - age_s))


@pytest.mark.parametrize(
    "stamp", [NOW // 1000 - 301, NOW // 1000 + 61, "", "soon", "-1", "1e9", "१२३", "9" * 40]
)
def test_a_timestamp_outside_the_window_or_none_is_refused(store, stamp):
    create(store, secret="s3cret")
    refused(store, a_call(stamp=stamp))
    refused(store, a_call(x_trigger_timestamp=None))


@pytest.mark.parametrize(
    "nonce",
    ["", "x" * 15, "x" * 129, "with a space in it", "ümlaut-ümlaut-ümlaut", "tab\tin-the-middle"],
)
def test_a_nonce_of_another_form_is_refused(store, nonce):
    create(store, secret="s3cret")
    refused(store, a_call(nonce=nonce))


@pytest.mark.parametrize("nonce", ["x" * 16, "!" * 128])
def test_a_nonce_of_16_to_128_printable_characters_is_taken(store, nonce):
    create(store, secret="s3cret")
    assert receive(store, a_call(nonce=nonce))


def test_a_signature_that_is_missing_or_of_anything_else_is_refused(store):
    create(store, secret="s3cret")
    good = a_call()
    signature = good.headers["x-orch8-signature"]
    wrong = [
        a_call(secret="other"),
        good._replace(body=b'{"n": 2}'),
        a_call(x_trigger_nonce="another-0123456789"),
        a_call(x_trigger_timestamp=str(NOW // 1000 - 1)),
        a_call(x_orch8_signature=None),
        a_call(x_orch8_signature=signature.removeprefix("v1=")),
        a_call(x_orch8_signature=signature + "="),
        a_call(x_orch8_signature="v2=" + signature[3:]),
        a_call(x_orch8_signature="\udcff"),
    ]
    for call in wrong:
        assert "s3cret" not in refused(store, call)
    assert receive(store, good)


def test_a_call_that_was_taken_is_not_taken_again(store):
    create(store, secret="s3cret")
    create(store, "other", secret="s3cret")
    take(store, a_call())
    assert "used before" in refused(store, a_call())
    assert "used before" in refused(store, a_call(body=b"{}"))
    assert receive(store, a_call(), slug="other")
    assert receive(store, a_call(nonce=NONCE + "2"))


def test_a_nonce_is_kept_as_long_as_its_timestamp_could_be_taken(store):
    create(store, secret="s3cret")
    early = a_call(stamp=NOW // 1000 + 60)
    take(store, early)
    last_ms = NOW + 360_000
    receive(store, a_call(stamp=last_ms // 1000, nonce="next-0123456789abcdef"), now_ms=last_ms)
    assert "used before" in refused(store, early, now_ms=last_ms)
    over_ms = last_ms + 1_000
    receive(store, a_call(stamp=over_ms // 1000, nonce="last-0123456789abcdef"), now_ms=over_ms)
    assert "timestamp" in refused(store, early, now_ms=over_ms)
    kept = store.records(RecordQuery("trigger_nonce"))
    assert [each.id.partition("\n")[2][:4] for each in kept] == ["next", "last"]


def test_a_call_whose_start_was_lost_may_come_again_and_starts_the_same_instance(store):
    create(store, secret="s3cret")
    create(store, "other", secret="s3cret")
    ids = [
        instance_of(verify_webhook(store, SAFE, slug, call, NOW))
        for slug, call in (
            ("hello", a_call()),
            ("hello", a_call()),
            ("hello", a_call(nonce=NONCE + "2")),
            ("other", a_call()),
        )
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert receive(store, a_call()) == receive(store, a_call())
    take(store, a_call())
    assert "used before" in refused(store, a_call())


def test_a_body_that_is_no_json_is_invalid(store):
    create(store, secret="s3cret")
    refusal("payload.invalid", receive, store, a_call(b"n=1"))
    assert receive(store, a_call(b"1", nonce=NONCE + "2")).request.data == 1


def test_a_body_that_is_too_large_is_refused_before_anything_is_computed(store):
    create(store, secret="s3cret")
    body = json.dumps("x" * limits.WEBHOOK_BYTES).encode()
    refused(store, a_call(body), "payload.too_large")


def test_of_many_that_bring_a_call_again_none_is_taken(tmp_path):
    first = a_store(tmp_path / "store.db")
    define(first, "greet")
    create(first, secret="s3cret")
    take(first, a_call())
    outcomes = []

    def send():
        store = a_store(tmp_path / "store.db")
        try:
            outcomes.append(receive(store, a_call()).slug)
        except Exception as error:  # noqa: BLE001 - counted below
            outcomes.append(getattr(error, "code", repr(error)))
        store.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first.close()
    assert outcomes == ["trigger.refused"] * 8


def test_a_peer_calls_a_trigger_300_times_a_second():
    rates = PeerRates()
    for _ in range(300):
        rates.check("1.2.3.4", "hello", NOW)
    refusal("trigger.rate", rates.check, "1.2.3.4", "hello", NOW + 999)
    rates.check("1.2.3.5", "hello", NOW)
    rates.check("1.2.3.4", "other", NOW)
    rates.check("1.2.3.4", "hello", NOW + 1_000)


def test_only_so_many_peers_are_counted_at_once(monkeypatch):
    monkeypatch.setattr(limits, "WEBHOOK_PEERS", 2)
    rates = PeerRates()
    rates.check("a", "hello", NOW)
    rates.check("b", "hello", NOW)
    refusal("trigger.rate", rates.check, "c", "hello", NOW)
    rates.check("a", "hello", NOW)
    rates.check("c", "hello", NOW + 1_000)
