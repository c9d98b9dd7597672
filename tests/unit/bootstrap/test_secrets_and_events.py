"""A whole engine: credentials reach handlers and nothing else, events start instances once."""

from __future__ import annotations

from pathlib import Path

import pytest

import detent
from detent.model.errors import RequestError
from detent.service.credentials import (
    CredentialPatch,
    NewCredential,
    create_credential,
    patch_credential,
)
from detent.service.triggers import NewTrigger, create_trigger, enable_trigger
from detent.service.vault import Safe, Vault

KEY = bytes(range(32))
SAFE = Safe(Vault([KEY]))
SECRET = "s3cret-canary"


@detent.handler
def echo(key, note="none"):
    return {"key": key, "note": note}


@detent.handler
async def breaks(key):
    raise detent.Failed(f"provider refused {key}", retryable=False)


@pytest.fixture
def engine(tmp_path):
    with detent.Engine(
        tmp_path / "store.db",
        clock="virtual",
        seed="one",
        handlers=[echo, breaks],
        vault_key=KEY.hex(),
    ) as engine:
        yield engine


def write(engine, use):
    return engine._parts.write(use)


def give(engine, id="mail", tenant="default", value=SECRET):
    new = NewCredential(id=id, name="Mail", value=value)
    write(engine, lambda store: create_credential(store, SAFE, tenant, new, 0))


class Seen:
    """An instance as its views show it."""

    def __init__(self, engine, instance):
        view = engine.inspect.show(instance)
        self.id, self.state, self.error = instance, view.summary.state, view.error
        self.data, self.metadata, self.outputs = view.data, view.metadata, view.outputs


def run(engine, *steps, tenant="default"):
    instance = engine.start(detent.sequence("s", *steps), tenant=tenant)
    engine.run_until_idle()
    return Seen(engine, instance)


def bytes_of(engine):
    engine._parts.write(lambda store: store.checkpoint())
    return Path(engine._parts.settings.path).read_bytes()


@pytest.mark.req("CORE-EFF-1", "SEQ-HND-5")
def test_a_handler_gets_the_secret_and_the_store_only_the_reference(engine):
    give(engine)
    found = run(engine, detent.step("a", "echo", params={"key": "credentials://mail"}))
    assert found.state == "completed"
    assert found.outputs["a"] == {"key": "[REDACTED]", "note": "none"}
    held = bytes_of(engine)
    assert b"credentials://mail" in held
    assert SECRET.encode() not in held


@pytest.mark.req("SEQ-HND-5")
def test_an_error_with_the_secret_in_it_is_stored_without(engine):
    give(engine)
    found = run(engine, detent.step("a", "breaks", params={"key": "credentials://mail"}))
    assert found.state == "failed"
    assert "provider refused [REDACTED]" in str(found.error)
    assert SECRET.encode() not in bytes_of(engine)


@pytest.mark.parametrize("case", ["missing", "foreign", "disabled", "field"])
def test_a_credential_that_cannot_be_used_fails_the_step_for_good(engine, case):
    if case == "foreign":
        give(engine, tenant="beta")
    elif case != "missing":
        give(engine)
    if case == "disabled":
        off = CredentialPatch(enabled=False)
        write(engine, lambda store: patch_credential(store, SAFE, None, "mail", off, 0))
    reference = "credentials://mail/nothing" if case == "field" else "credentials://mail"
    retry = {"max_attempts": 5, "initial_backoff": 1000, "max_backoff": 1000}
    step = detent.step("a", "echo", params={"key": reference}, retry=retry)
    found = run(engine, step)
    assert found.state == "failed"
    assert "credential.unusable" in str(found.error)
    planned = [
        entry for entry in engine.inspect.audit(found.id) if entry.action == "effect.planned"
    ]
    assert len(planned) == 1


def test_a_vault_key_that_is_none_is_refused_and_not_shown(tmp_path):
    with pytest.raises(RequestError) as refused:
        detent.Engine(tmp_path / "s.db", vault_key="mist-yped-key")
    assert refused.value.code == "vault.key"
    assert "mist-yped" not in str(refused.value)


def trigger(engine, slug="hello", sequence="child", tenant="default", **fields):
    child = detent.sequence(sequence, detent.step("c", "log", params={"message": "{{data.n}}"}))
    engine.deploy(child, tenant=tenant)
    new = NewTrigger(slug=slug, sequence_name=sequence, tenant_id=tenant, **fields)
    write(engine, lambda store: create_trigger(store, SAFE, tenant, new, 0))


def emit(id="emit", **params):
    return detent.step(id, "emit_event", params={"trigger_slug": "hello", **params})


@pytest.mark.req("SEQ-HND-1", "SEQ-WHK-2")
def test_an_event_starts_what_its_trigger_names_with_the_data_it_carries(engine):
    trigger(engine, trigger_type="event")
    parent = run(engine, emit(data={"n": 7}, meta={"why": "test"}))
    output = parent.outputs["emit"]
    assert (output["sequence_name"], output["deduped"]) == ("child", False)
    child = Seen(engine, output["instance_id"])
    assert child.state == "completed"
    assert child.data == {"n": 7}
    assert child.metadata == {
        "_trigger": "hello",
        "_trigger_type": "event",
        "_trigger_event": {
            "source": "emit_event",
            "parent_instance_id": parent.id,
            "meta": {"why": "test"},
        },
    }


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize(("scope", "one"), [("parent", False), ("tenant", True)])
def test_a_dedupe_key_makes_events_one_in_its_scope(engine, scope, one):
    trigger(engine)
    told = {"dedupe_key": "order-1", "dedupe_scope": scope}
    first = run(engine, emit(**told), emit("again", **told))
    assert first.outputs["again"] == {**first.outputs["emit"], "deduped": True}
    second = run(engine, emit(**told), emit("again", **told))
    same = second.outputs["emit"]["instance_id"] == first.outputs["emit"]["instance_id"]
    assert (same, second.outputs["emit"]["deduped"]) == (one, one)


@pytest.mark.req("SEQ-HND-1")
@pytest.mark.parametrize("case", ["missing", "disabled", "foreign"])
def test_an_event_for_a_trigger_that_takes_none_fails_the_instance(engine, case):
    if case != "missing":
        trigger(engine, tenant="beta" if case == "foreign" else "default")
    if case == "disabled":
        write(engine, lambda store: enable_trigger(store, None, "hello", 0, enabled=False))
    found = run(engine, emit())
    assert found.state == "failed"
    assert "trigger." in str(found.error)


def test_an_event_is_one_whoever_performs_it_and_however_often(tmp_path):
    with detent.Engine(tmp_path / "wall.db", vault_key=KEY.hex()) as engine:
        trigger(engine)
        parents = [
            engine.start(detent.sequence("p", emit(dedupe_key="k", dedupe_scope="tenant")))
            for _ in range(20)
        ]
        for parent in parents:
            assert engine.wait_for(parent, timeout=30) == "completed"
        outputs = [Seen(engine, parent).outputs["emit"] for parent in parents]
    assert len({output["instance_id"] for output in outputs}) == 1
    assert [output["deduped"] for output in outputs].count(False) == 1


@pytest.mark.parametrize(
    "brought",
    ["credentials://mail", "Bearer credentials://mail", {"deep": ["credentials://mail/field"]}],
)
def test_what_data_brings_is_never_a_reference_to_a_credential(engine, brought):
    give(engine)
    sequence = detent.sequence(
        "s", detent.step("a", echo, params={"key": 1, "note": "{{ data.note }}"})
    )
    instance = engine.start(sequence, {"note": brought})
    engine.run_until_idle()
    seen = Seen(engine, instance)
    assert (seen.state, seen.error["code"]) == ("failed", "credential.foreign")
    assert seen.error["message"].startswith("params.note")
    assert engine.inspect.effects(instance) == []  # nothing was called
    assert engine.replay(instance).identical


def test_data_may_fill_in_a_reference_that_the_definition_writes(engine):
    give(engine)
    params = {"key": "credentials://{{ data.which }}", "note": "see {{ data.note }}"}
    sequence = detent.sequence("s", detent.step("a", echo, params=params))
    given = {"which": "mail", "note": "credentials://mail"}
    instance = engine.start(sequence, given)
    engine.run_until_idle()
    seen = Seen(engine, instance)
    assert seen.state == "completed"
    assert seen.outputs["a"]["note"] == "see credentials://mail"  # text like any other
