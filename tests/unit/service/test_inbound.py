"""Calls from outside to a trigger: signed, in time, and taken once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading

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
from detent.service.triggers import NewTrigger, create_trigger, enable_trigger
from tests.unit.service.shelf import NOW, SAFE, a_store, define, instances, refusal

pytestmark = pytest.mark.req("SEQ-WHK-2")
NONCE = "n-0123456789abcdef"


@pytest.fixture
def store():
    store = a_store()
    define(store, "greet")
    yield store
    store.close()


def create(store, slug="hello", tenant="acme", **fields):
    new = NewTrigger(**{"slug": slug, "sequence_name": "greet", "tenant_id": "", **fields})
    return create_trigger(store, SAFE, tenant, new, NOW)


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
