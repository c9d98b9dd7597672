"""Outbound webhooks: who is told what, signed, tried again, parked, and never lost."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools

import msgspec
import pytest

import detent
from detent.kernel.webhooks import sign, verify
from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.store import Page
from tests.acceptance.stage import actions, refused, virtual

URL = "https://hooks.example/one"
OTHER = "https://hooks.example/two"
SECRET = "whsec_" + base64.b64encode(b"a key of twenty-four byte").decode()
EPOCH_S = 1_767_225_600
FINE = detent.sequence("fine", detent.step("s", "noop"))
BAD = detent.sequence("bad", detent.step("s", "fail", params={"message": "no luck"}))


class Receiver:
    """The other side, in this process: what it was sent, and what it answers next."""

    def __init__(self):
        self.sent = []
        self.answers = {}

    async def post(self, url, headers, body, _timeout_ms):
        self.sent.append((url, dict(headers), body))
        answers = self.answers.get(url, [])
        answer = answers.pop(0) if answers else 200
        if isinstance(answer, BaseException):
            raise answer
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        return status, headers, "said the receiver"

    def bodies(self, url=URL):
        return [msgspec.json.decode(body) for to, _, body in self.sent if to == url]

    def events(self, url=URL):
        return [(body["event_type"], body["instance_id"]) for body in self.bodies(url)]


@pytest.fixture
def receiver():
    return Receiver()


def opened(receiver, path=":memory:", *, hooks=({"url": URL},), delivery=None, handlers=()):
    return virtual(
        path,
        handlers,
        webhooks=list(hooks),
        webhook_delivery=delivery or {"secrets": [SECRET]},
        webhook_post=receiver.post,
    )


@pytest.fixture
def engine(receiver):
    with opened(receiver) as engine:
        yield engine
        prove(engine)


def prove(engine):
    assert engine.inspect.verify().valid
    for page in (Page(limit=1_000), Page(namespace="detent", limit=1_000)):
        for row in engine.inspect.instances(page).items:
            replayed = engine.replay(row.id)
            assert replayed.identical, replayed


def ended(engine, definition=FINE, **options):
    instance = engine.start(definition, **options)
    engine.advance(0)
    return instance


# telling -----------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-1")
def test_an_end_is_told_in_the_body_of_the_contract_and_signed(engine, receiver):
    instance = ended(engine)
    ((url, headers, body),) = receiver.sent
    told = msgspec.json.decode(body)
    assert (url, told) == (
        URL,
        {
            "event_type": "instance.completed",
            "instance_id": instance,
            "timestamp": "2026-01-01T00:00:00.000000Z",
            "data": {},
        },
    )
    (delivery,) = engine.webhooks.list()
    assert headers["webhook-id"] == delivery.id
    assert headers["webhook-timestamp"] == headers["x-detent-timestamp"] == str(EPOCH_S)
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = hmac.digest(key, f"{delivery.id}.{EPOCH_S}.".encode() + body, hashlib.sha256)
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(signed).decode()}"
    ours = hmac.digest(key, f"{EPOCH_S}.".encode() + body, hashlib.sha256).hex()
    assert headers["x-detent-signature"] == f"sha256={ours}"
    assert (delivery.state, delivery.attempts, delivery.status) == ("delivered", 1, 200)


@pytest.mark.req("SEQ-WHK-1")
def test_a_failure_is_told_with_its_error_and_each_retry_that_fails_once_more(engine, receiver):
    instance = ended(engine, BAD)
    (body,) = receiver.bodies()
    assert (body["event_type"], body["data"]) == (
        "instance.failed",
        {"error": "no luck", "block_id": "s"},
    )
    engine.retry(instance)  # it fails in the very turn of the retry
    engine.advance(0)
    assert receiver.events() == [("instance.failed", instance)] * 2
    assert len({headers["webhook-id"] for _, headers, _ in receiver.sent}) == 2


@pytest.mark.req("SEQ-WHK-1")
def test_nobody_is_told_of_a_cancel_a_dry_run_or_the_engines_own(engine, receiver):
    waiting = detent.sequence("waiting", detent.wait("w", signal="go"))
    instance = ended(engine, waiting)
    engine.cancel(instance)
    ended(engine, dry_run=True)
    engine.limits.set("k", max=1, window="1h")
    cron = engine.crons.create(waiting, "0 * * * *")
    engine.crons.delete(cron.id)
    engine.advance(0)
    assert receiver.sent == []
    assert engine.webhooks.outbox() == []


@pytest.mark.req("SEQ-WHK-1")
def test_a_url_is_told_only_of_its_events_and_its_tenant(receiver):
    hooks = [{"url": URL, "events": ["instance.failed"]}, {"url": OTHER, "tenant": "acme"}]
    with opened(receiver, hooks=hooks) as engine:
        ended(engine)
        failed = ended(engine, BAD)
        acme = ended(engine, tenant="acme")
        assert receiver.events(URL) == [("instance.failed", failed)]
        assert receiver.events(OTHER) == [("instance.completed", acme)]
        assert [each.tenant for each in engine.webhooks.list(tenant="acme")] == ["acme"]


@pytest.mark.req("SEQ-WHK-1", "CORE-RPL-1")
def test_the_record_of_an_instance_is_the_same_with_and_without_webhooks(tmp_path, receiver):
    def record(engine):
        instance = ended(engine, BAD)
        entries = engine.inspect.audit(instance)
        return [(each.id, each.tick, each.action, each.node, each.detail) for each in entries]

    with opened(receiver) as engine:
        told = record(engine)
    with virtual() as engine:
        assert record(engine) == told
        assert engine.inspect.instances(Page(namespace="detent")).items == ()


@pytest.mark.req("SEQ-WHK-1")
def test_while_a_key_is_rotated_a_message_is_signed_by_both(receiver):
    hooks = [{"url": URL, "secrets": ["new", SECRET]}]
    with opened(receiver, hooks=hooks) as engine:
        ended(engine)
    ((_, headers, body),) = receiver.sent
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in ("new", SECRET):
        assert verify(secret, headers, body, EPOCH_S + 10)
        assert not verify(secret, headers, body + b" ", EPOCH_S)
        assert not verify(secret, headers, body, EPOCH_S + limits.WEBHOOK_TOLERANCE_S + 1)
    assert not verify("old", headers, body, EPOCH_S)


# trying again ------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-1")
@pytest.mark.parametrize("trouble", [500, 503, 408, 429, ConnectionError("down"), TimeoutError()])
def test_trouble_is_tried_again_with_the_same_id_and_rising_pauses(engine, receiver, trouble):
    receiver.answers[URL] = [trouble] * 3
    ended(engine)
    ticks = [0]
    for _ in range(3):
        (waiting,) = engine.webhooks.outbox()
        assert waiting.state == "pending"
        assert waiting.last_error
        ticks.append((waiting.next_try_ms - EPOCH_S * 1000) // 100)
        engine.advance(to=ticks[-1])
    assert len(receiver.sent) == 4
    assert len({(headers["webhook-id"], body) for _, headers, body in receiver.sent}) == 1
    pauses = [later - earlier for earlier, later in itertools.pairwise(ticks)]
    assert all(
        low <= pause <= high
        for pause, (low, high) in zip(pauses, [(3, 7), (7, 13), (15, 25)], strict=True)
    )
    (delivery,) = engine.webhooks.list(delivered=True)
    assert (delivery.attempts, delivery.state, delivery.last_error) == (4, "delivered", None)


@pytest.mark.req("SEQ-WHK-1")
@pytest.mark.parametrize("asked", ["30", "Thu, 01 Jan 2026 00:00:30 GMT"])
def test_a_receiver_says_when_it_wants_to_be_asked_again(engine, receiver, asked):
    receiver.answers[URL] = [(429, {"retry-after": asked})]
    ended(engine)
    engine.advance(29_900)
    assert len(receiver.sent) == 1
    engine.advance(100)
    assert len(receiver.sent) == 2


@pytest.mark.req("SEQ-WHK-1")
def test_a_refusal_is_final_and_parked_until_somebody_tries_it_again(engine, receiver):
    receiver.answers[URL] = [404]
    instance = ended(engine)
    (parked,) = engine.webhooks.outbox()
    assert (parked.state, parked.attempts, parked.status) == ("parked", 1, 404)
    assert (parked.error_class, parked.last_error) == ("http_4xx", "the receiver answered 404")
    assert parked.instance_id == instance
    assert engine.webhooks.preview(parked.id).body == parked.payload
    assert [each.id for each in engine.webhooks.list(error_class="http_4xx")] == [parked.id]
    assert engine.webhooks.list(error_class="gone") == []
    engine.webhooks.redeliver(parked.id)
    engine.advance(0)
    assert [headers["webhook-id"] for _, headers, _ in receiver.sent] == [parked.id] * 2
    assert engine.webhooks.outbox() == []
    with refused("webhook.state"):
        engine.webhooks.redeliver(parked.id)


@pytest.mark.req("SEQ-WHK-1")
def test_when_nothing_helps_it_is_parked_and_a_redelivery_begins_anew(engine, receiver):
    receiver.answers[URL] = [500] * 8
    ended(engine)
    engine.advance(60_000)
    (parked,) = engine.webhooks.outbox()
    assert (parked.state, parked.attempts, parked.error_class) == ("parked", 4, "http_5xx")
    engine.webhooks.redeliver(parked.id)
    engine.advance(60_000)
    assert engine.webhooks.show(parked.id).attempts == 8
    assert len(receiver.sent) == 8


@pytest.mark.req("SEQ-WHK-1")
def test_a_parked_or_pending_delivery_can_be_dropped_and_is_never_sent_then(engine, receiver):
    receiver.answers[URL] = [404, 500]
    ended(engine)
    ended(engine, BAD)
    pending, parked = engine.webhooks.outbox()
    assert (pending.state, parked.state) == ("pending", "parked")
    for each in (pending, parked):
        engine.webhooks.drop(each.id)
        with refused("webhook.state"):
            engine.webhooks.drop(each.id)
    engine.advance(60_000)
    assert len(receiver.sent) == 2
    assert engine.webhooks.outbox() == []
    assert actions(engine, parked.id, "run.dismissed", "run.cancelled") == [
        "run.dismissed",
        "run.cancelled",
    ]


@pytest.mark.req("SEQ-WHK-1")
def test_a_url_that_is_gone_gets_nothing_until_it_is_enabled(engine, receiver):
    receiver.answers[URL] = [410]
    ended(engine)
    (gone,) = engine.webhooks.disabled()
    assert (gone.url, gone.why) == (URL, "the receiver answered 410")
    ended(engine)
    assert len(receiver.sent) == 1
    skipped, parked = engine.webhooks.list()
    assert (skipped.state, skipped.error_class) == ("skipped", "disabled")
    assert (parked.state, parked.error_class) == ("parked", "gone")
    assert "step.executed" in actions(engine, skipped.id)
    assert engine.webhooks.preview(parked.id).disabled
    engine.webhooks.enable(URL)
    assert engine.webhooks.disabled() == []
    engine.webhooks.redeliver(parked.id)
    ended(engine)
    assert len(receiver.sent) == 3


@pytest.mark.req("SEQ-WHK-1")
def test_a_client_that_refuses_an_address_is_not_asked_again(engine, receiver):
    receiver.answers[URL] = [RequestError("request.invalid", "a private address")]
    ended(engine)
    (parked,) = engine.webhooks.outbox()
    assert (parked.error_class, parked.last_error) == ("refused", "a private address")


# crashes, tenants, settings ----------------------------------------------------------------------


@pytest.mark.req("SEQ-WHK-1", "CORE-REC-1")
def test_deliveries_survive_a_restart_and_changed_settings(tmp_path, receiver):
    path = tmp_path / "store.db"
    receiver.answers[URL] = [500]
    with opened(receiver, path) as engine:
        ended(engine)
        (waiting,) = engine.webhooks.outbox()
    with virtual(path) as engine:  # nobody here can deliver: it waits
        engine.advance(60_000)
        assert engine.webhooks.show(waiting.id).state == "pending"
    with opened(receiver, path, hooks=[{"url": OTHER}]) as engine:
        engine.advance(0)
        parked = engine.webhooks.show(waiting.id)
        assert (parked.state, parked.error_class) == ("parked", "not_configured")
    with opened(receiver, path) as engine:
        engine.webhooks.redeliver(waiting.id)
        engine.advance(0)
        assert engine.webhooks.show(waiting.id).delivered
        prove(engine)
    assert [headers["webhook-id"] for _, headers, _ in receiver.sent] == [waiting.id] * 2


@pytest.mark.req("SEQ-WHK-1")
def test_tenants_do_not_see_each_others_deliveries(engine, receiver):
    receiver.answers[URL] = [404]
    ended(engine, tenant="acme")
    (parked,) = engine.webhooks.outbox(tenant="acme")
    assert engine.webhooks.outbox(tenant="other") == []
    for verb in ("show", "preview", "redeliver", "drop"):
        with refused("webhook.not_found"):
            getattr(engine.webhooks, verb)(parked.id, tenant="other")
    with refused("webhook.not_found"):
        engine.webhooks.show(ended(engine))
    with refused("request.invalid"):
        engine.webhooks.outbox(0)


@pytest.mark.req("SEQ-WHK-1")
@pytest.mark.parametrize(
    ("hooks", "delivery"),
    [
        ([{"url": "ftp://x"}], {}),
        ([{"url": "https://"}], {}),
        ([{"url": "https://x:port"}], {}),
        ([{"url": "https://x/" + "y" * 2_048}], {}),
        ([{"url": URL}, {"url": URL}], {}),
        ([{"url": f"https://x/{n}"} for n in range(33)], {}),
        ([{"url": URL, "events": ["instance.cancelled"]}], {}),
        ([{"url": URL, "secrets": [""]}], {}),
        ([{"url": URL}], {"secrets": ["whsec_?"]}),
        ([{"url": URL}], {"retries": 100}),
        ([{"url": URL}], {"timeout_ms": 0}),
        ([{"url": URL}], {"backoff_ms": 0}),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(receiver, hooks, delivery):
    with refused("webhook.invalid"):
        virtual(webhooks=hooks, webhook_delivery=delivery, webhook_post=receiver.post)


@pytest.mark.req("SEQ-HND-4", "SEQ-WHK-1")
def test_the_engine_sends_by_itself_and_not_to_a_private_address():
    with virtual(webhooks=[{"url": "http://127.0.0.1:8080/hook"}]) as engine:
        ended(engine)
        (delivery,) = engine.webhooks.outbox()
        assert (delivery.state, delivery.attempts) == ("parked", 1)
        assert "not public" in delivery.last_error


@pytest.mark.req("SEQ-WHK-1")
def test_no_author_can_send_in_the_engines_name():
    with pytest.raises(detent.DefinitionError, match="engine's own"):
        detent.sequence("forged", detent.step("s", "webhook_deliver"))


@pytest.mark.req("SEQ-WHK-1")
def test_a_receiver_that_is_silent_is_given_up_after_the_time_out(receiver):
    async def silent(*_):
        await asyncio.Event().wait()

    receiver.post = silent
    with opened(receiver, delivery={"timeout_ms": 10, "retries": 0}) as engine:
        ended(engine)
        (parked,) = engine.webhooks.outbox()
        assert (parked.state, parked.error_class) == ("parked", "timeout")


def test_a_signature_is_the_one_of_the_standard():
    """The example of the Standard Webhooks specification."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    signed = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
