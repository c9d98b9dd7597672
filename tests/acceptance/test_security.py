"""What must not be possible: reaching other tenants, smuggling values, breaking out of data."""

from __future__ import annotations

import pytest

import detent
from detent import for_each, sequence, step, sub_sequence, wait
from detent.kernel.rerun import Changes
from detent.ports.store import Page
from tests.acceptance.stage import digest, finished, opened, refused, state, virtual

DOOR = sequence("door", wait("w", signal="go"), step("after", "noop"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


# tenants ------------------------------------------------------------------------------------------


@pytest.mark.req("SEQ-HND-1", "SEQ-1")
@pytest.mark.parametrize("kind", ["cancel", "pause", "update_context", {"custom": "go"}])
def test_send_signal_cannot_reach_another_tenant(engine, path, kind):
    target = engine.start(DOOR, {"secret": 1}, tenant="theirs")
    before = engine.inspect.show(target)
    params = {"instance_id": target, "signal_type": kind, "payload": {"x": 1}}
    retry = detent.retry(3, initial_backoff="1s")
    definition = sequence("s", step("s", "send_signal", params=params, retry=retry))
    shown = finished(engine, definition, tenant="mine")
    assert shown.summary.state == "failed"
    assert shown.error["code"] == "instance.not_found"
    assert engine.inspect.show(target) == before
    same = finished(engine, definition, tenant="theirs")
    assert same.summary.state == "completed"


@pytest.mark.req("SEQ-HND-1", "SEQ-1")
def test_query_instance_cannot_tell_another_tenant_s_instance_from_none(engine):
    target = engine.start(DOOR, {"secret": 1}, tenant="theirs")
    nobody = "019b76da-a800-7dc0-9869-bd9e49907eb8"
    told = []
    for asked in (target, nobody):
        params = {"instance_id": asked}
        definition = sequence(f"q-{asked}", step("s", "query_instance", params=params))
        told.append(finished(engine, definition, tenant="mine").outputs["s"])
    assert told == [{"found": False}, {"found": False}]


@pytest.mark.req("SEQ-1")
def test_no_view_shows_an_instance_of_another_tenant(engine):
    target = engine.start(DOOR, {"secret": 1}, tenant="theirs")
    looks = engine.inspect
    for look in (
        lambda: looks.show(target, tenant="mine"),
        lambda: looks.tree(target, tenant="mine"),
        lambda: looks.outputs(target, tenant="mine"),
        lambda: looks.timeline(target, tenant="mine"),
        lambda: looks.audit(target, tenant="mine"),
        lambda: looks.effects(target, tenant="mine"),
        lambda: looks.explain(target, tenant="mine"),
        lambda: looks.doubts(target, tenant="mine"),
        lambda: looks.replay(target, tenant="mine"),
        lambda: looks.recompute(target, tenant="mine"),
        lambda: looks.debug(target, tenant="mine"),
        lambda: looks.what_if(target, Changes(), tenant="mine"),
    ):
        with refused("instance.not_found") as refusal:
            look()
        assert "theirs" not in refusal.value.message
    assert looks.show(target, tenant="theirs").data == {"secret": 1}


@pytest.mark.req("SEQ-1")
def test_lists_questions_and_doubts_are_those_of_the_tenant(engine):
    @detent.handler(on_doubt="once")
    def lose():
        raise TimeoutError

    engine.register(lose)
    asking = sequence("ask", step("q", "noop", wait_for_input={"prompt": "?"}))
    losing = sequence("lose", step("l", lose))
    for tenant in ("mine", "theirs"):
        engine.start(asking, tenant=tenant)
        engine.start(losing, tenant=tenant)
    engine.run_until_idle()
    looks = engine.inspect
    assert {each.tenant for each in looks.instances(tenant="mine").items} == {"mine"}
    assert looks.instances(Page(tenant="theirs"), tenant="mine").items == ()
    assert [each.tenant for each in looks.approvals(tenant="mine")] == ["mine"]
    assert [each.tenant for each in looks.doubts(tenant="mine")] == ["mine"]
    assert len(looks.instances().items) == 4
    for look in (looks.instances, looks.approvals, looks.doubts):
        with refused("request.invalid"):
            look(tenant="")


@pytest.mark.req("SEQ-1", "SEQ-BLK-6")
def test_children_and_definitions_stay_within_their_tenant(engine):
    engine.deploy(sequence("child", step("s", "noop")), tenant="theirs")
    shown = finished(engine, sequence("p", sub_sequence("c", "child")), tenant="mine")
    assert shown.summary.state == "failed"
    for call in (
        lambda: engine.start("child", tenant="mine"),
        lambda: engine.definition("child", tenant="mine"),
        lambda: engine.deprecate("child", 1, tenant="mine"),
    ):
        with refused("definition.unknown"):
            call()
    assert engine.definition("child", tenant="theirs")


@pytest.mark.req("SEQ-3")
def test_a_key_of_one_tenant_never_gives_another_s_instance(engine):
    """Also where the names are put together so that they might run into one another."""
    pairs = [("a", "b:c"), ("a:b", "c"), ("ab", "c"), ("a", "bc"), ("a\nb", "c"), ("a", "\nbc")]
    made = [engine.start(DOOR, tenant=tenant, key=key) for tenant, key in pairs]
    assert len(set(made)) == len(pairs)


# smuggling ----------------------------------------------------------------------------------------

DIGEST = "0" * 64
LOOKALIKES = {
    "a blob": {"$blob": DIGEST},
    "a blob deep down": {"a": [{"b": {"$blob": DIGEST}}]},
    "a blob of many": {"x": {"$blob": "not hex"}, "y": {"$blob": None}},
    "an input": {"t": "started", "instance": "x", "id": "y"},
    "a snapshot": {"version": 9, "state": "completed", "root": None, "kv": {}},
    "a template": {"text": "{{ config.secret }} {{ data.x }}"},
    "an expression": {"text": "1 == 1 || true"},
    "sql": {"'; DROP TABLE instance; --": "'); DELETE FROM journal; --"},
    "a failure": {"_error": {"message": "x"}, "__error__": True},
    "python": {"__class__": "x", "__dict__": {}, "constructor": 1},
}


@pytest.mark.parametrize("data", LOOKALIKES.values(), ids=LOOKALIKES.keys())
@pytest.mark.parametrize("large", [False, True], ids=["small", "beside a blob"])
def test_data_that_looks_like_something_of_ours_is_only_data(path, data, large):
    @detent.handler
    def echo(value: dict):
        return {"echoed": value}

    data = {"value": data, "pad": "x" * 40_000} if large else {"value": data}
    definition = sequence(
        "s",
        wait("w", signal="go", store_as="signalled"),
        step("e", echo, params={"value": "{{ data.value }}"}),
        step("k", "set_state", params={"key": "kept", "value": "{{ data.value }}"}),
        wait("x", "1h"),
        step("t", "transform", params={"again": "{{ outputs.e.echoed }}"}),
    )
    with virtual(path, [echo]) as engine:
        instance = engine.start(definition, data, metadata=data, config={"secret": "s3cret"})
        engine.signal(instance, "go", data["value"])
        engine.advance(0)
    with virtual(path, [echo]) as engine:
        assert engine.wait_for(instance) == "completed"
        shown = engine.inspect.show(instance)
        expected = data["value"]
        assert shown.data["value"] == shown.data["echoed"] == shown.data["signalled"] == expected
        assert shown.metadata == data
        assert shown.kv["kept"] == expected
        assert shown.outputs["t"] == {"again": expected}
        assert engine.replay(instance).identical
        assert engine.inspect.verify().valid
        assert len(engine.inspect.instances().items) == 1


def test_a_template_in_data_is_not_filled_when_data_is_put_into_a_template(engine):
    definition = sequence(
        "s",
        step("t", "transform", params={"out": "{{ data.text }}"}),
        step("u", "transform", params={"out": "<{{ outputs.t.out }}>"}),
        for_each("e", "items", step("v", "transform", params={"out": "{{ data.item }}"})),
    )
    data = {"text": "{{ config.secret }}", "items": ["{{ config.secret }}"]}
    shown = finished(engine, definition, data, config={"secret": "s3cret"})
    assert shown.outputs["t"] == {"out": "{{ config.secret }}"}
    assert shown.outputs["u"] == {"out": "<{{ config.secret }}>"}
    assert shown.outputs["v"] == {"out": "{{ config.secret }}"}


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('x')",
        "data.__class__",
        "().__class__.__bases__",
        "open('/etc/passwd')",
        "data['x']",
        "lambda: 1",
        "exec('x')",
    ],
)
def test_an_expression_reaches_nothing_but_its_data(engine, expression):
    definition = sequence(
        "s",
        detent.router(
            "r", detent.route(expression, step("bad", "noop")), default=step("ok", "noop")
        ),
    )
    shown = finished(engine, definition, {"x": 1})
    assert shown.summary.state == "completed"
    assert list(shown.outputs) == ["ok"]


BOMBS = {
    "deep": "(" * 5_000 + "1" + ")" * 5_000,
    "long": "1 + " * 50_000 + "1",
    "chained": "!" * 20_000 + "true",
    "nested calls": "len(" * 2_000 + "'x'" + ")" * 2_000,
}


@pytest.mark.parametrize("expression", BOMBS.values(), ids=BOMBS.keys())
def test_an_expression_without_measure_is_refused_or_false_and_never_hangs(engine, expression):
    try:
        definition = sequence(
            "s",
            detent.router(
                "r", detent.route(expression, step("bad", "noop")), default=step("ok", "noop")
            ),
        )
    except detent.DetentError as error:
        assert error.code in ("definition.invalid", "expression.limit")  # noqa: PT017
        return
    assert finished(engine, definition).summary.state in ("completed", "failed")


@pytest.mark.parametrize(
    "params",
    [
        {"x": "{{ data.text | replace('x', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx') }}"},
        {"x": "{{ data.text }}" * 40},
        {f"k{n}": "{{ data.text }}" for n in range(40)},
    ],
    ids=["filter", "text", "members"],
)
def test_a_template_that_swells_fails_its_step_with_a_clear_code(engine, params):
    definition = sequence("s", step("t", "transform", params=params), step("after", "noop"))
    shown = finished(engine, definition, {"text": "x" * 200_000})
    assert shown.summary.state == "failed"
    assert shown.error["code"] in ("payload.too_large", "expression.limit")
    assert state(engine, engine.start(DOOR)) == "waiting"


# the record ---------------------------------------------------------------------------------------


@pytest.mark.req("CORE-AUD-1")
def test_the_salt_makes_equal_journals_of_two_instances_look_different(path):
    with virtual(path) as engine:
        for _ in range(2):
            engine.start(DOOR, {"vote": "yes"})
    with opened(path) as connection:
        salts = connection.execute("SELECT DISTINCT salt FROM instance").fetchall()
        digests = connection.execute("SELECT DISTINCT digest FROM journal").fetchall()
    assert len(salts) == len(digests) == 2
    assert all(len(salt) == 16 for (salt,) in salts)


def test_an_error_does_not_repeat_the_whole_payload_that_caused_it(engine, path):
    secret = "hunter2" * 2_000
    before = digest(path)
    for call in (
        lambda: engine.start(DOOR, key=secret),
        lambda: engine.start(DOOR, tenant=secret),
        lambda: engine.start(DOOR, priority=secret),
        lambda: engine.signal(secret, "go"),
        lambda: engine.start(secret),
        lambda: engine.start(DOOR, {"a": secret, "b": float("nan")}),
    ):
        with pytest.raises(detent.DetentError) as refusal:
            call()
        assert len(str(refusal.value)) < 1_000
    assert digest(path) == before
