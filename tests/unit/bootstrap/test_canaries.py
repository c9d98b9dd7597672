"""A thousand secrets, each through another door: none is found in the file, an error or an output.

Every canary is different. Whatever a caller or a handler is told is collected; at the end that and
the bytes of the store, its log included, are searched for every canary.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from pathlib import Path

import msgspec
import pytest

import detent
from detent.model.errors import DetentError
from detent.service.api_keys import NewApiKey, create_api_key, list_api_keys, verify_api_key
from detent.service.credentials import (
    CredentialPatch,
    NewCredential,
    create_credential,
    list_credentials,
    patch_credential,
)
from detent.service.inbound import Call, accept_webhook, signature, verify_webhook
from detent.service.refreshing import refresh_credentials
from detent.service.resealing import reseal
from detent.service.triggers import (
    NewTrigger,
    create_trigger,
    fire_trigger,
    list_triggers,
)
from detent.service.vault import Safe, Vault

KEY, NEW_KEY = bytes(range(32)), bytes(32)
SAFE = Safe(Vault([KEY]))
ROTATED = Vault([NEW_KEY, KEY])
NOW = 1_767_225_600_000
BEGIN = "cAnaRy-"
SOON = dt.datetime(2026, 1, 1, 0, 1, tzinfo=dt.UTC)


@detent.handler
def returns(key):
    return {"key": key, "in": [f"<{key}>", json.dumps({"k": key})]}


@detent.handler
async def raises(key):
    raise ValueError(f"cannot log in with {key!r}")


@detent.handler
def fails(key):
    raise detent.Failed("x" * 1_990 + key, retryable=False, details={"sent": key}, code=key[:30])


@detent.handler(on_doubt="once")
def doubts(key):
    raise OSError(key)


@detent.handler
def mistakes(key: int):
    return key


HANDLERS = (returns, raises, fails, doubts, mistakes)


class Told:
    """Everything that was told to anybody, and every canary there is."""

    def __init__(self):
        self.canaries = []
        self.keys = []
        self.texts = []

    def canary(self):
        self.canaries.append(f"{BEGIN}{len(self.canaries):04d}-ü{len(self.canaries) * 7919:x}-eNd")
        return self.canaries[-1]

    def note(self, value):
        self.texts += [repr(value), msgspec.json.encode(value, enc_hook=repr).decode()]
        return value

    def refused(self, call, *args):
        with pytest.raises(DetentError) as refusal:
            call(*args)
        error = refusal.value
        self.texts += [str(error), repr(error), repr(error.details)]


class Rows:
    def __init__(self, store):
        self.store = store

    async def look(self, use):
        return use(self.store)

    write = look


def credentials(store, told):
    for n in range(100):
        new = NewCredential(
            id=f"c-{n}",
            name="C",
            value=told.canary(),
            kind="oauth2",
            expires_at=SOON,
            refresh_url="https://auth.example.com/t",
            refresh_token=told.canary(),
        )
        told.texts.append(repr(new))
        told.note(create_credential(store, SAFE, "default", new, NOW))
        told.refused(create_credential, store, SAFE, "default", new, NOW)
        wrong = msgspec.structs.replace(new, id="not allowed", value=told.canary())
        told.refused(create_credential, store, SAFE, "default", wrong, NOW)
        odd = msgspec.structs.replace(new, id=f"odd-{n}", value=told.canary() + "\x00")
        told.refused(create_credential, store, SAFE, "default", odd, NOW)
        locked = msgspec.structs.replace(new, id=f"locked-{n}", refresh_token=told.canary())
        told.refused(create_credential, store, Safe(), "default", locked, NOW)
        if n % 2:
            edit = CredentialPatch(value=told.canary())
            told.texts.append(repr(edit))
            told.note(patch_credential(store, SAFE, "default", f"c-{n}", edit, NOW))


def refreshes(store, told):
    class Answer:
        status_code = 200
        content = b""

    async def post(_url, form):
        answer = Answer()
        if len(told.canaries) % 3 == 0:
            raise OSError(f"cannot send {form}")
        tokens = {"access_token": told.canary(), "refresh_token": told.canary(), "expires_in": 9}
        answer.status_code = 200 if len(told.canaries) % 2 else 401
        answer.content = json.dumps(tokens).encode()
        return answer

    told.note(asyncio.run(refresh_credentials(Rows(store), SAFE, post, lambda: NOW)))


def triggers(store, told):
    for n in range(50):
        secret = told.canary()
        new = NewTrigger(slug=f"t-{n}", sequence_name="child", tenant_id="default", secret=secret)
        told.texts.append(repr(new))
        told.note(create_trigger(store, SAFE, "default", new, NOW))
        told.refused(create_trigger, store, SAFE, "default", new, NOW)
        told.refused(create_trigger, store, Safe(), "default", new, NOW)
        told.note(fire_trigger(store, SAFE, "default", new.slug, {}, secret).request)
        told.refused(fire_trigger, store, SAFE, "default", new.slug, {}, told.canary())
        stamp, nonce = str(NOW // 1000), "nonce-0123456789"
        headers = {
            "x-trigger-timestamp": stamp,
            "x-trigger-nonce": nonce,
            "x-detent-signature": signature(secret, stamp, nonce, b"{}"),
        }
        verified = verify_webhook(store, SAFE, new.slug, Call(headers, b"{}"), NOW)
        told.note(accept_webhook(store, verified, NOW).request)
        told.note(accept_webhook(store, verified, NOW).request)  # its start was lost: once more
        forged = {**headers, "x-detent-signature": secret}
        told.refused(verify_webhook, store, SAFE, new.slug, Call(forged, b"{}"), NOW)


def api_keys(store, told):
    for n in range(50):
        made = create_api_key(store, NewApiKey(tenant_id="default", name=f"k-{n}"), NOW)
        told.keys.append(made.secret)
        told.texts.append(repr(made))
        told.note(verify_api_key(store, made.secret, NOW))
        told.refused(verify_api_key, store, made.secret + "x", NOW)


def steps(engine, told):
    store = engine._parts.write
    started = []
    for n in range(100):
        secret = told.canary()
        if n % 4 == 0:
            secret = json.dumps({"user": "u", "password": secret})
        new = NewCredential(id=f"s-{n}", name="S", value=secret)
        store(lambda store, new=new: create_credential(store, SAFE, "default", new, NOW))
        field = "/password" if n % 4 == 0 else ""
        step = detent.step(
            "a",
            HANDLERS[n % len(HANDLERS)].detent_name,
            params={"key": f"credentials://s-{n}{field}"},
        )
        started.append(engine.start(detent.sequence(f"q-{n}", step)))
    engine.run_until_idle()
    states = set()
    for instance in started:
        view = told.note(engine.inspect.show(instance))
        states.add(view.summary.state)
        told.note(engine.inspect.outputs(instance))
        told.note(list(engine.inspect.audit(instance)))
        told.note(engine.inspect.explain(instance))
        told.note(engine.inspect.doubts(instance))
    assert {"completed", "failed"} <= states


@pytest.mark.req("SEQ-HND-5", "CORE-EFF-1")
def test_of_a_thousand_secrets_none_is_found(tmp_path):
    told = Told()
    path = tmp_path / "store.db"
    with detent.Engine(
        path, clock="virtual", seed="one", handlers=HANDLERS, vault_key=KEY.hex()
    ) as engine:
        engine.deploy(detent.sequence("child", detent.step("c", "noop")))
        steps(engine, told)
        for part in (credentials, refreshes, triggers, api_keys):
            engine._parts.write(lambda store, part=part: part(store, told))
        while len(told.canaries) < 1_000:
            edit = CredentialPatch(value=told.canary())
            engine._parts.write(
                lambda store, edit=edit: patch_credential(store, SAFE, None, "c-1", edit, NOW)
            )

        def resealed(store):
            done = reseal(store, ROTATED, NOW)
            assert (done.credentials, done.triggers, done.damaged) == (200, 50, ())
            for listed in (list_credentials, list_triggers, list_api_keys):
                told.note(listed(store, None, 1_000))

        engine._parts.write(resealed)
        held = b"".join(file.read_bytes() for file in sorted(Path(tmp_path).iterdir()))
    held += path.read_bytes()
    text = "\n".join(told.texts)
    assert len(told.canaries) == 1_000
    assert b"credentials://s-1" in held
    assert "[REDACTED]" in text
    assert BEGIN.encode() not in held  # every canary begins with it
    assert BEGIN not in text
    for secret in told.keys:
        assert secret[-43:].encode() not in held
        assert secret[-43:] not in text
