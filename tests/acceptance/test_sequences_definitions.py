"""Definitions and instances: versions, keys, batches, moves to another version (SEQ-1 to SEQ-4)."""

from __future__ import annotations

import pytest

import detent
from detent import parallel, sequence, step, sub_sequence, wait
from detent.model import limits
from tests.acceptance.stage import digest, finished, refused, rows, state, virtual


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


def saying(text, version=1, name="greet"):
    return sequence(name, step("say", "log", params={"message": text}), version=version)


def door(version=1, *more):
    return sequence("door", wait("w", "1d", signal="go"), *more, version=version)


@pytest.mark.req("SEQ-1")
def test_one_definition_has_many_instances_each_with_its_own_everything(path):
    definition = sequence(
        "own", wait("w", signal="go"), step("s", "set_state", params={"key": "k", "value": 1})
    )
    with virtual(path) as engine:
        one = engine.start(
            definition,
            {"n": 1},
            config={"c": 1},
            metadata={"m": 1},
            priority="High",
            timezone="Asia/Tokyo",
            key="one",
        )
        two = engine.start(definition, {"n": 2}, config={"c": 2}, timezone="America/Lima")
        engine.signal(one, "go", {"told": 1})
    with virtual(path) as engine:
        first, second = engine.inspect.show(one), engine.inspect.show(two)
        assert (first.data, first.config, first.metadata) == ({"n": 1}, {"c": 1}, {"m": 1})
        assert (first.summary.priority, first.timezone, first.summary.key) == (
            2,
            "Asia/Tokyo",
            "one",
        )
        assert (first.summary.state, first.kv) == ("completed", {"k": 1})
        assert (second.data, second.config, second.metadata) == ({"n": 2}, {"c": 2}, None)
        assert (second.summary.state, second.kv) == ("waiting", {})
        assert first.summary.definition == second.summary.definition == definition.hash


@pytest.mark.req("SEQ-1")
def test_definitions_are_kept_apart_by_tenant_and_namespace(engine):
    engine.deploy(saying("a"), tenant="one")
    engine.deploy(saying("b"), tenant="two")
    engine.deploy(saying("c"), tenant="one", namespace="other")
    said = {}
    for tenant, namespace in (("one", "default"), ("two", "default"), ("one", "other")):
        instance = engine.start("greet", tenant=tenant, namespace=namespace)
        said[tenant, namespace] = engine.inspect.show(instance).outputs["say"]["message"]
    assert list(said.values()) == ["a", "b", "c"]
    for tenant, namespace in (("two", "other"), ("three", "default")):
        with refused("definition.unknown"):
            engine.start("greet", tenant=tenant, namespace=namespace)


@pytest.mark.req("SEQ-1")
def test_the_same_name_and_version_cannot_mean_something_else(engine, path):
    assert engine.deploy(saying("a")) == engine.deploy(saying("a"))
    before = digest(path)
    with refused("definition.conflict") as refusal:
        engine.deploy(saying("b"))
    assert "version" in refusal.value.message
    with refused("definition.conflict"):
        engine.start(saying("b"))
    assert digest(path) == before


@pytest.mark.req("SEQ-1")
def test_a_definition_is_the_same_from_python_json_and_yaml(engine):
    text = """
{"name": "greet", "version": 1, "blocks": [
  {"type": "step", "id": "say", "handler": "log", "params": {"message": "hi"}}
]}
"""
    yaml = """
name: greet
version: 1
blocks:
  - {type: step, id: say, handler: log, params: {message: hi}}
"""
    parsed = {detent.parse(text).hash, detent.parse(yaml).hash, saying("hi").hash}
    assert len(parsed) == 1
    assert detent.normalize({**detent.definition.to_wire(saying("hi"))}).hash in parsed


@pytest.mark.req("SEQ-1")
@pytest.mark.parametrize("handler", ["nobody", "mcp_call", "embed"])
def test_a_start_whose_handler_nobody_has_is_refused_and_leaves_nothing(engine, path, handler):
    before = digest(path)
    with refused("handler.unknown" if handler == "nobody" else "definition.unsupported") as refusal:
        engine.start(sequence("s", step("a", "noop"), step("b", handler)))
    assert handler in refusal.value.message
    assert digest(path) == before


@pytest.mark.req("SEQ-1")
def test_an_invalid_definition_names_every_fault_with_its_path():
    with refused("definition.invalid") as refusal:
        sequence(
            "bad",
            step("a", ""),
            step("a", "noop", retry={"max_attempts": 0}),
            {"type": "step", "id": "", "handler": "noop"},
            {"type": "nonsense", "id": "n"},
            parallel("p"),
        )
    faults = refusal.value.faults
    assert len(faults) >= 5
    assert all(fault.path and fault.message and fault.code for fault in faults)


@pytest.mark.req("SEQ-3")
@pytest.mark.parametrize("end", ["running", "ended", "restarted"])
def test_a_known_key_gives_the_first_instance_whatever_became_of_it(path, end):
    with virtual(path) as engine:
        first = engine.start(door(), {"n": 1}, key="order-7")
        if end == "ended":
            engine.cancel(first)
        before = rows(path, "instance")
        if end != "restarted":
            assert engine.start(door(), {"n": 2}, key="order-7") == first
            assert rows(path, "instance") == before
            assert engine.inspect.show(first).data == {"n": 1}
    with virtual(path) as engine:
        assert engine.start(door(), {"n": 3}, key="order-7") == first
        assert engine.inspect.show(first).data == {"n": 1}
        assert rows(path, "instance", "id") == [(first,)]


@pytest.mark.req("SEQ-3")
def test_keys_of_other_tenants_and_of_dry_runs_are_other_keys(engine):
    made = {
        engine.start(door(), key="k"),
        engine.start(door(), key="k", tenant="other"),
        engine.start(door(), key="k", dry_run=True),
        engine.start(door(), key="K"),
    }
    assert len(made) == 4
    assert engine.start(door(), key="k", dry_run=True) in made


@pytest.mark.req("SEQ-3")
def test_a_batch_is_started_whole(engine):
    made = engine.start_many(saying("x"), [{"n": n} for n in range(100)])
    engine.run_until_idle()
    assert len(set(made)) == 100
    assert [engine.inspect.show(id).data["n"] for id in made] == list(range(100))
    assert {state(engine, id) for id in made} == {"completed"}


@pytest.mark.req("SEQ-3")
def test_a_batch_with_one_bad_item_is_not_started_at_all(engine, path):
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    definition = sequence("s", step("a", "noop"), input_schema=schema)
    engine.deploy(definition)
    before = digest(path)
    for bad in ({"n": "text"}, {}, None):
        with refused("payload.schema") as refusal:
            engine.start_many(definition, [{"n": 1}, bad, {"n": 2}])
        assert refusal.value.details["faults"]
    assert digest(path) == before
    assert len(engine.start_many(definition, [{"n": 1}, {"n": 2}])) == 2


@pytest.mark.req("SEQ-4")
def test_the_latest_version_that_is_not_deprecated_is_taken_by_name(engine):
    for version in (1, 3, 2):
        engine.deploy(saying(f"v{version}", version))

    def said(name):
        return engine.inspect.show(engine.start(name)).outputs["say"]["message"]

    assert said("greet") == "v3"
    assert said("greet@1") == "v1"
    engine.deprecate("greet", 3)
    assert said("greet") == "v2"
    assert said("greet@3") == "v3"
    engine.deprecate("greet", 3)
    engine.deprecate("greet", 2)
    engine.deprecate("greet", 1)
    with refused("definition.unknown"):
        said("greet")
    with refused("definition.unknown"):
        engine.deprecate("greet", 9)


@pytest.mark.req("SEQ-4", "SEQ-1")
def test_deploying_and_deprecating_never_touch_a_running_instance(engine):
    instance = engine.start(door(1, step("s", "log", params={"message": "old"})))
    engine.deploy(door(2, step("s", "log", params={"message": "new"})))
    engine.deprecate("door", 1)
    engine.run_until_idle()
    assert engine.inspect.show(instance).outputs["s"] == {"message": "old"}
    assert engine.inspect.show(instance).summary.version == 1


@pytest.mark.req("SEQ-4")
def test_a_standing_instance_moves_to_another_version_and_back(engine):
    instance = engine.start(door(1, step("s", "log", params={"message": "old"})))
    newer = door(2, step("s", "log", params={"message": "new"}), step("t", "noop"))
    engine.migrate(instance, newer)
    assert engine.inspect.show(instance).summary.version == 2
    engine.migrate(instance, undo=True)
    assert engine.inspect.show(instance).summary.version == 1
    with refused("migration.refused"):
        engine.migrate(instance, undo=True)
    engine.migrate(instance, "door@2")
    engine.run_until_idle()
    assert engine.inspect.show(instance).outputs["s"] == {"message": "new"}
    assert "t" in engine.inspect.show(instance).outputs
    assert engine.replay(instance).identical
    assert len(engine.inspect.audit(instance, action="migration.applied")) == 3


@pytest.mark.req("SEQ-4")
def test_a_move_that_does_not_fit_is_refused_and_the_instance_goes_on_as_it_was(engine):
    instance = engine.start(door(1, step("s", "noop")))
    for other, code in (
        (sequence("door", step("w", "noop"), version=2), "migration.refused"),
        (sequence("door", wait("x", "1d"), version=3), "migration.refused"),
        (sequence("door", step("n", "nobody"), version=4), "handler.unknown"),
        ("door@9", "definition.unknown"),
    ):
        with refused(code):
            engine.migrate(instance, other)
        assert engine.inspect.show(instance).summary.version == 1
    engine.signal(instance, "go")
    assert engine.wait_for(instance) == "completed"
    with refused("migration.refused"):
        engine.migrate(instance, door(5))


@pytest.mark.req("SEQ-4")
def test_a_move_cannot_be_undone_once_a_new_effect_was_made(engine):
    @detent.handler
    def act():
        return {}

    engine.register(act)
    instance = engine.start(door(1, step("a", act), wait("x", "1d")))
    engine.migrate(instance, door(2, step("a", act), wait("x", "2d")))
    engine.signal(instance, "go")
    engine.advance(0)
    assert state(engine, instance) == "waiting"
    with refused("migration.refused"):
        engine.migrate(instance, undo=True)


@pytest.mark.req("SEQ-1")
def test_unicode_is_kept_everywhere(path):
    name, key, text = "größe 漢字 🎼", "schlüssel-🔑", "\u202eإلى اليسار é \u2028 \ufeff"
    definition = sequence(
        name,
        wait("warte-⏳", signal="löse 🚀", store_as="übergeben"),
        step("sag-ä", "log", params={"message": "{{ data.übergeben }}"}),
        step("merke", "set_state", params={"key": "ключ", "value": text}),
    )
    with virtual(path) as engine:
        instance = engine.start(
            definition, {"ñ": text}, key=key, tenant="tenänt", namespace="räum", metadata={"м": "й"}
        )
        engine.signal(instance, "löse 🚀", text, id="id-ß")
    with virtual(path) as engine:
        shown = engine.inspect.show(instance, tenant="tenänt")
        assert shown.summary.name == name
        assert shown.summary.key == key
        assert shown.data == {"ñ": text, "übergeben": text}
        assert shown.outputs["sag-ä"] == {"message": text}
        assert shown.kv == {"ключ": text}
        assert engine.inspect.verify().valid
        assert engine.replay(instance).identical


@pytest.mark.req("SEQ-BLK-6", "SEQ-4")
def test_a_child_takes_the_latest_version_unless_one_is_named(engine):
    for version in (1, 2):
        engine.deploy(saying(f"v{version}", version))
    engine.deprecate("greet", 2)
    latest = sequence("latest", sub_sequence("c", "greet"))
    pinned = sequence("pinned", sub_sequence("c", "greet", version=2))
    outputs = [
        finished(engine, each).outputs["c"][0]["output"]["message"] for each in (latest, pinned)
    ]
    assert outputs == ["v1", "v2"]


def test_limits_of_batches_are_the_contract_s():
    assert limits.BATCH_STARTS == 10_000
