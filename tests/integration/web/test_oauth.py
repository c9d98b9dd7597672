"""OAuth from end to end: a real provider on loopback, a served engine, steps that need a token."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import threading
import uuid

import pytest

import detent
from detent.bootstrap import freshness
from detent.bootstrap.desk import EngineDesk
from detent.ports.work import WorkQuery
from detent.service.credentials import NewCredential, create_credential, decode
from detent.service.refreshing import refresh_credential
from detent.service.vault import Place
from tests.integration.oauth import provider
from tests.integration.web.following import until
from tests.integration.web.house import VAULT, house, step

pytestmark = pytest.mark.req("SEQ-HND-5")

PAST = "2020-01-01T00:00:00Z"
INSIDE = {"allowed_internal_hosts": ("127.0.0.1",)}


@pytest.fixture
def auth():
    with provider() as made:
        yield made


@pytest.fixture
def server(tmp_path):
    with house(tmp_path / "s.db", **INSIDE) as made:
        made.path = tmp_path / "s.db"
        yield made


def credential(server, auth, **fields):
    """A credential whose access token has expired; its id."""
    body = {
        "id": f"mail-{uuid.uuid4().hex}",
        "name": "Mail",
        "kind": "oauth2",
        "value": auth.access_token,
        "refresh_url": f"{auth.url}/token",
        "refresh_token": auth.refresh_token,
        "expires_at": PAST,
        **fields,
    }
    made = server.post("/credentials", body)
    assert made.status_code == 201, made.text
    return body["id"]


def calls(server, auth, reference, **options):
    """A sequence that calls the resource with a token."""
    params = {"url": f"{auth.url}/me", "headers": {"authorization": f"Bearer {reference}"}}
    return server.sequence(step("call", "http_request", params=params, **options))


def error_of(server, instance):
    return server.engine.inspect.show(instance).error


def stored_bytes(path):
    """Everything that is on the disk."""
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


def secrets_of(server, id):
    """What the vault opens: the value and the refresh token."""
    safe = server.engine._parts.safe

    def read(store):
        record = store.record("credential", id)
        stored = decode(record.body)
        place = Place("credential", record.tenant, id)
        token = place._replace(field="refresh_token")
        return safe.open(stored.value, place), safe.open(stored.refresh_token, token)

    return server.engine._parts.read(read)


# refreshed ---------------------------------------------------------------------------------------


def test_a_token_that_has_expired_is_refreshed_once_and_used_by_all_who_need_it(server, auth):
    id = credential(server, auth)
    sequence = calls(server, auth, f"credentials://{id}")
    made = [server.instance(sequence) for _ in range(12)]
    assert {server.settle(each) for each in made} == {"completed"}
    assert auth.forms == [{"grant_type": "refresh_token", "refresh_token": "refresh-token-0"}]
    assert auth.shown == ["Bearer access-token-1"] * 12
    shown = server.get(f"/credentials/{id}").json()
    assert (shown["expires_at"] > "2026", "refresh_error" in shown) == (True, False)


def test_the_new_tokens_are_on_the_disk_sealed_only_and_open_in_the_vault(server, auth):
    id = credential(server, auth)
    instance = server.instance(calls(server, auth, f"credentials://{id}"))
    assert server.settle(instance) == "completed"
    assert secrets_of(server, id) == ("access-token-1", "refresh-token-1")
    # the resource echoes what it was shown, and the journal keeps the answer
    assert "[REDACTED]" in server.outputs(instance)[0][1]["body"]
    assert instance.encode() in stored_bytes(server.path)
    for secret in (b"access-token", b"refresh-token"):
        assert secret not in stored_bytes(server.path)


def test_the_next_refresh_is_made_with_the_token_that_the_last_one_brought(server, auth):
    id = credential(server, auth)
    sequence = calls(server, auth, f"credentials://{id}")
    for number in (1, 2):
        assert server.settle(server.instance(sequence)) == "completed"
        assert auth.shown[-1] == f"Bearer access-token-{number}"
        assert server.patch(f"/credentials/{id}", {"expires_at": PAST}).status_code == 200
    assert [form["refresh_token"] for form in auth.forms] == ["refresh-token-0", "refresh-token-1"]


def test_a_value_that_is_an_object_keeps_the_rest_and_names_the_client(server, auth):
    value = {"access_token": "access-token-0", "client_id": "me", "client_secret": "s3cret-s3cret"}
    id = credential(server, auth, value=json.dumps(value))
    instance = server.instance(calls(server, auth, f"credentials://{id}/access_token"))
    assert server.settle(instance) == "completed"
    (form,) = auth.forms
    assert (form["client_id"], form["client_secret"]) == ("me", "s3cret-s3cret")
    assert auth.shown == ["Bearer access-token-1"]
    kept = json.loads(secrets_of(server, id)[0])
    assert kept == {**value, "access_token": "access-token-1"}


def test_an_engine_without_a_server_refreshes_what_its_steps_need(tmp_path, auth):
    with house(tmp_path / "s.db", **INSIDE) as server:
        id = credential(server, auth)
        sequence = server.get(f"/sequences/{calls(server, auth, f'credentials://{id}')}").json()
    with detent.Engine(tmp_path / "s.db", vault_key=VAULT, **INSIDE) as engine:
        instance = engine.start(f"{sequence['name']}@1", tenant="acme")
        assert engine.wait_for(instance) == "completed"
    assert len(auth.forms) == 1


def test_in_virtual_time_a_token_is_refreshed_as_well(auth):
    params = {"url": f"{auth.url}/me", "headers": {"authorization": "Bearer credentials://mail"}}
    made = detent.sequence("calls", detent.step("call", "http_request", params=params))
    with detent.Engine(clock="virtual", vault_key=VAULT, **INSIDE) as engine:
        parts = engine._parts
        new = NewCredential(
            id="mail",
            name="Mail",
            value=auth.access_token,
            kind="oauth2",
            expires_at=engine.now() + dt.timedelta(days=1),
            refresh_url=f"{auth.url}/token",
            refresh_token=auth.refresh_token,
        )
        parts.write(lambda s: create_credential(s, parts.safe, None, new, parts.now_ms()))
        engine.advance(dt.timedelta(days=2))
        instance = engine.start(made)
        engine.run_until_idle()
        assert engine.inspect.show(instance).summary.state == "completed"
    assert (len(auth.forms), auth.shown) == (1, ["Bearer access-token-1"])


def test_a_step_waits_for_a_refresh_that_somebody_else_makes(server, auth):
    id = credential(server, auth)
    auth.free.clear()
    other = threading.Thread(target=refresh_elsewhere, args=(server, id))
    other.start()
    until(lambda: auth.forms)
    instance = server.instance(calls(server, auth, f"credentials://{id}"))
    until(lambda: server.engine.inspect.effects(instance))
    auth.free.set()
    assert server.settle(instance) == "completed"
    other.join(20)
    assert (len(auth.forms), auth.shown) == (1, ["Bearer access-token-1"])


def refresh_elsewhere(server, id):
    """What another process does that looks for what is due."""
    parts = server.engine._parts
    desk = EngineDesk(server.engine)
    try:
        post = freshness.guarded_post(parts.settings)
        asyncio.run(refresh_credential(desk, parts.safe, id, post, parts.now_ms))
    finally:
        desk.close()


# not refreshed -----------------------------------------------------------------------------------


def test_a_refresh_that_is_refused_fails_the_step_for_good_and_says_why(server, auth):
    id = credential(server, auth, refresh_token="stolen-refresh-token")
    retry = {"max_attempts": 3, "initial_backoff": 1, "max_backoff": 1}
    sequence = calls(server, auth, f"credentials://{id}", retry=retry)
    made = [server.instance(sequence) for _ in range(3)]
    assert {server.settle(each) for each in made} == {"failed"}
    for instance in made:
        error = error_of(server, instance)
        assert error["details"]["code"] == "credential.refresh"
        assert "status 400 (invalid_grant)" in error["message"]
        assert "enter a new value and refresh token" in error["message"]
        assert id in error["message"]
        assert server.engine.inspect.show(instance).outputs == {}
    assert (len(auth.forms), auth.shown) == (1, [])
    shown = server.get(f"/credentials/{id}").json()
    assert shown["refresh_error"] == "it answered with status 400 (invalid_grant)"
    for secret in (b"stolen-refresh-token", b"s3cret-words", b"access-token"):
        assert secret not in stored_bytes(server.path)
    new = {"refresh_token": auth.refresh_token}
    assert "refresh_error" not in server.patch(f"/credentials/{id}", new).json()
    assert server.settle(server.instance(sequence)) == "completed"
    assert auth.shown == ["Bearer access-token-1"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, {}), "status 500"),
        ((429, {"error": "slow-down-s3cret"}), "status 429"),
        ((200, {"token": "x"}), "holds no access_token"),
        ((200, ["x"]), "holds no access_token"),
    ],
)
def test_a_provider_in_trouble_is_asked_once_and_the_step_may_be_tried_again(
    server, auth, answer, words
):
    auth.answer = answer
    id = credential(server, auth)
    retry = {"max_attempts": 2, "initial_backoff": 1, "max_backoff": 1}
    instance = server.instance(calls(server, auth, f"credentials://{id}", retry=retry))
    assert server.settle(instance) == "failed"
    error = error_of(server, instance)
    assert error["details"]["code"] == "credential.refresh"
    assert words in error["message"]
    assert "tried again" in error["message"]
    assert "s3cret" not in json.dumps(error)
    actions = [each.action for each in server.engine.inspect.audit(instance)]
    assert actions.count("effect.failed") == 2
    assert (len(auth.forms), auth.shown) == (1, [])
    assert secrets_of(server, id) == ("access-token-0", "refresh-token-0")


def test_nothing_is_sent_to_a_provider_inside_that_is_not_allowed_any_more(tmp_path, auth):
    with house(tmp_path / "s.db", **INSIDE) as server:
        id = credential(server, auth)
        sequence = calls(server, auth, f"credentials://{id}")
    with house(tmp_path / "s.db") as server:
        instance = server.instance(sequence)
        assert server.settle(instance) == "failed"
        assert "not public" in error_of(server, instance)["message"]
        body = {"id": "new", "name": "n", "value": "v", "kind": "oauth2", "refresh_token": "r"}
        refused = server.post("/credentials", {**body, "refresh_url": f"{auth.url}/token"})
        assert refused.status_code == 400
        assert "allowed_internal_hosts" in refused.json()["error"]
    assert (auth.forms, auth.shown) == ([], [])


def test_a_bearer_that_is_no_text_is_refused_before_anything_is_called(server, auth):
    id = credential(server, auth, expires_at=None, value='{"access_token": 7}')
    for reference in (f"credentials://{id}", f"credentials://{id}/access_token"):
        instance = server.instance(calls(server, auth, reference))
        assert server.settle(instance) == "failed"
        error = error_of(server, instance)
        assert (error["details"]["code"], auth.shown) == ("credential.unusable", [])


def test_a_task_whose_token_has_expired_is_tried_again_once_that_is_refreshed(server, auth):
    id, job = credential(server, auth), f"job-{uuid.uuid4().hex}"
    params = {"token": f"credentials://{id}"}
    retry = {"max_attempts": 9, "initial_backoff": 1, "max_backoff": 1}
    sequence = server.sequence(step("s", job, queue_name="q", params=params, retry=retry))
    instance = server.instance(sequence)
    server.settle(instance, "waiting")
    assert list(server.engine.work.poll(job, "w1")) == []
    refresh_elsewhere(server, id)
    tasks = []

    def polled():
        tasks.extend([] if tasks else server.engine.work.poll(job, "w1"))
        return tasks

    until(polled)  # the next attempt is there after its backoff
    assert tasks[0].params == {"token": "access-token-1"}
    (first,) = server.engine.work.list(WorkQuery(states=("failed",), handler=job))
    assert (first.retryable, "to be refreshed" in first.error) == (True, True)
