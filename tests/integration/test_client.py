"""The engine's verbs through three doors: each behaves, answers and refuses the same."""

from __future__ import annotations

import datetime as dt

import pytest

import detent
from detent import retry, sequence, step, wait
from detent.ports.store import Page
from tests.integration.doors import doors, fresh


@detent.handler
def greet(name: str) -> dict:
    return {"hello": name}


@detent.handler(on_doubt="once")
def charge(order: str) -> dict:
    raise TimeoutError(order)  # so nobody knows whether it happened


@detent.handler
def broken() -> dict:
    raise detent.Failed("no such thing")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    path = tmp_path_factory.mktemp("client") / "s.db"
    with doors(path, handlers=[greet, charge, broken]) as made:
        yield made


@pytest.fixture(params=["engine", "client", "awaited"])
def door(request, house):
    return getattr(house, request.param)


def greeting(version=1, **fields):
    return sequence(
        fresh("greeting"),
        step("hi", greet, params={"name": "{{ data.name }}"}),
        wait("w", signal="go"),
        version=version,
        **fields,
    )


def refusal(call):
    with pytest.raises(detent.DetentError) as found:
        call()
    return type(found.value), found.value.code


# starting ----------------------------------------------------------------------------------------


def test_a_definition_that_is_started_is_stored_and_run(door):
    made = greeting()
    id = door.start(made, {"name": "Ada"}, metadata={"who": "test"}, timezone="Europe/Berlin")
    assert door.wait_for(id, "waiting") == "waiting"
    view = door.inspect.show(id)
    assert view.summary.name == made.name
    assert view.summary.definition == made.hash
    assert view.outputs["hi"] == {"hello": "Ada"}
    assert (view.timezone, view.metadata) == ("Europe/Berlin", {"who": "test"})
    assert view.data == {"name": "Ada", "hello": "Ada"}
    assert door.definition(made.name) == made


def test_a_stored_definition_is_started_by_its_name_and_version(door):
    made = greeting(version=3)
    door.deploy(made)
    for name in (made.name, f"{made.name}@3"):
        id = door.start(name, {"name": "Bo"})
        assert door.inspect.show(id).summary.version == 3
    assert refusal(lambda: door.start(f"{made.name}@4")) == (
        detent.RequestError,
        "definition.unknown",
    )
    assert refusal(lambda: door.start(f"{made.name}@x")) == (
        detent.RequestError,
        "request.invalid",
    )


@pytest.mark.req("SEQ-3")
def test_a_key_starts_one_instance_however_often_it_is_used(door):
    made, key = greeting(), fresh("order")
    first = door.start(made, {"name": "C"}, key=key)
    assert door.start(made, {"name": "C"}, key=key) == first
    assert door.start(made, {"name": "C"}) != first
    assert refusal(lambda: door.start(made, key="")) == (detent.RequestError, "request.invalid")


def test_an_instance_begins_later_by_a_span_or_at_an_instant(door):
    made = greeting()
    late = door.start(made, {"name": "D"}, at=dt.timedelta(hours=2))
    then = dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    dated = door.start(made, {"name": "D"}, at=then)
    dues = [door.inspect.show(id).summary.due_ms for id in (late, dated)]
    assert abs(dues[0] - dues[1]) < 60_000
    assert refusal(lambda: door.start(made, at=dt.datetime(2030, 1, 1))) == (  # noqa: DTZ001
        detent.RequestError,
        "request.invalid",
    )


@pytest.mark.req("SEQ-3")
def test_a_batch_is_started_whole_and_its_ids_are_in_order(door):
    made = greeting()
    ids = door.start_many(made, [{"name": str(n)} for n in range(5)])
    for n, id in enumerate(ids):
        door.wait_for(id, "waiting")
        assert door.inspect.show(id).data["name"] == str(n)
    assert door.start_many(made, []) == []
    assert refusal(lambda: door.start_many(made, "ab")) == (
        detent.RequestError,
        "request.invalid",
    )


WRONG = {
    "priority": ({"priority": "Urgent"}, "request.invalid"),
    "timezone": ({"timezone": "Mars/Base"}, "calendar.zone"),
    "dry_run": ({"dry_run": "yes"}, "request.invalid"),
    "config": ({"config": object()}, "payload.invalid"),
    "tenant": ({"tenant": ""}, "request.invalid"),
    "namespace": ({"namespace": "detent"}, "request.invalid"),
    "concurrency": ({"max_concurrency": 0}, "request.invalid"),
    "budget": ({"budget": {"max_steps": -1}}, "request.invalid"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_start_with_a_wrong_option_is_refused_with_the_same_code(door, name):
    options, code = WRONG[name]
    assert refusal(lambda: door.start(greeting(), {"name": "E"}, **options)) == (
        detent.RequestError,
        code,
    )


def test_data_that_does_not_fit_its_schema_is_refused_with_what_is_wrong(door):
    made = greeting(input_schema={"type": "object", "required": ["name"]})
    with pytest.raises(detent.RequestError) as found:
        door.start(made, {})
    assert found.value.code == "payload.schema"
    assert found.value.details["faults"][0]["pointer"] == "/"


def test_an_unknown_handler_is_refused_with_its_name(door):
    made = sequence(fresh("nobody"), step("s", "nobody_does_this"))
    with pytest.raises(detent.RequestError) as found:
        door.start(made)
    assert found.value.code == "handler.unknown"
    assert found.value.details["handlers"] == ["nobody_does_this"]


# telling and asking ------------------------------------------------------------------------------


def test_a_signal_moves_an_instance_and_one_id_counts_once(door):
    made = sequence(fresh("twice"), wait("a", signal="go"), wait("b", signal="go"))
    id, told = door.start(made), fresh("signal")
    assert door.signal(id, "go", {"n": 1}, id=told) == told
    assert door.signal(id, "go", {"n": 2}, id=told) == told
    door.wait_for(id, "waiting")
    assert door.signal(id, "custom:go", {"n": 3})
    assert door.wait_for(id) == "completed"
    outputs = {row.block: row.output for row in door.inspect.outputs(id)}
    assert outputs == {"a": {"n": 1}, "b": {"n": 3}}
    assert refusal(lambda: door.signal(id, "go")) == (detent.RequestError, "instance.terminal")


def test_a_signal_that_cannot_be_one_is_refused(door):
    id = door.start(greeting(), {"name": "F"})
    assert refusal(lambda: door.signal(id, "")) == (detent.RequestError, "request.invalid")
    assert refusal(lambda: door.signal(id, "update_context", 7)) == (
        detent.RequestError,
        "payload.invalid",
    )
    assert refusal(lambda: door.signal(id, "go", float("nan")))[1] == "payload.invalid"


def test_pause_resume_and_cancel_are_asked_and_may_be_refused(door):
    id = door.start(greeting(), {"name": "G"}, at=dt.timedelta(hours=1))
    assert refusal(lambda: door.resume(id)) == (detent.RequestError, "instance.transition")
    door.pause(id)
    assert door.inspect.show(id).summary.state == "paused"
    door.resume(id)
    assert door.command(id, "cancel", id=fresh("ask")).result["state"] == "cancelled"
    assert door.wait_for(id) == "cancelled"
    assert refusal(lambda: door.cancel(id)) == (detent.RequestError, "instance.transition")
    assert refusal(lambda: door.command(id, "explode")) == (
        detent.RequestError,
        "request.invalid",
    )


def test_a_failed_instance_is_retried_from_where_it_failed(door):
    id = door.start(sequence(fresh("fails"), step("s", broken)))
    assert door.wait_for(id) == "failed"
    door.retry(id)
    assert door.wait_for(id) == "failed"
    assert [each.target for each in door.inspect.timeline(id).transitions].count("failed") == 2


def test_an_effect_in_doubt_is_listed_and_decided(door):
    made = sequence(fresh("charges"), step("pay", charge, params={"order": "9"}, retry=retry(1)))
    id = door.start(made)
    door.wait_for(id, ["waiting", "paused", "failed"])
    (open_call,) = door.inspect.doubts(id)
    assert open_call.state == "indeterminate"
    door.resolve(id, open_call.effect, "happened", {"paid": True})
    assert door.wait_for(id) == "completed"
    assert door.inspect.doubts(id) == []
    (receipt,) = door.inspect.effects(id)
    assert (receipt.key, receipt.state) == (open_call.effect, "applied")
    assert refusal(lambda: door.resolve(id, "nope", "skip")) == (
        detent.RequestError,
        "effect.not_found",
    )


def test_an_instance_moves_to_another_version_and_back(door):
    old = greeting()
    new = sequence(
        old.name,
        step("hi", greet, params={"name": "{{ data.name }}"}),
        wait("w", signal="go"),
        step("bye", greet, params={"name": "bye"}),
        version=2,
    )
    id = door.start(old, {"name": "H"})
    door.wait_for(id, "waiting")
    assert door.inspect.preview_migration(id, new) == []
    door.migrate(id, new)
    assert door.inspect.show(id).summary.version == 2
    door.migrate(id, undo=True)
    assert door.inspect.show(id).summary.version == 1
    door.migrate(id, f"{old.name}@2")
    door.signal(id, "go")
    assert door.wait_for(id) == "completed"
    assert "bye" in door.inspect.show(id).outputs
    assert refusal(lambda: door.migrate(id, old))[0] is detent.RequestError


def test_who_waits_too_long_is_told_so(door):
    id = door.start(greeting(), {"name": "I"})
    assert refusal(lambda: door.wait_for(id, "failed", timeout=0.05)) == (
        detent.RequestError,
        "request.timeout",
    )
    assert refusal(lambda: door.wait_for(id, "asleep")) == (
        detent.RequestError,
        "request.invalid",
    )


# definitions -------------------------------------------------------------------------------------


def test_a_version_is_deployed_once_and_never_changed(door):
    made = greeting()
    other = sequence(made.name, wait("else", signal="go"))
    assert door.deploy(made) == made.hash
    assert door.deploy(made) == made.hash
    with pytest.raises(detent.DefinitionError) as found:
        door.deploy(other)
    assert found.value.code == "definition.conflict"
    assert found.value.faults[0].path == "version"
    assert door.definition(made.name, 1).hash == made.hash


def test_a_deprecated_version_is_left_out_by_name(door):
    first = greeting()
    second = sequence(first.name, wait("w", signal="go"), version=2)
    door.deploy(first)
    door.deploy(second)
    door.deprecate(first.name, 2)
    assert door.definition(first.name).version == 1
    assert door.definition(first.name, 2) == second
    for call in (lambda: door.deprecate(first.name, 9), lambda: door.definition("nowhere")):
        assert refusal(call) == (detent.RequestError, "definition.unknown")


def test_tenants_do_not_see_each_other(door):
    made, tenant = greeting(), fresh("acme")
    id = door.start(made, {"name": "J"}, tenant=tenant)
    assert door.inspect.show(id, tenant=tenant).summary.tenant == tenant
    for call in (
        lambda: door.inspect.show(id, tenant="other"),
        lambda: door.inspect.tree(id, tenant="other"),
    ):
        assert refusal(call) == (detent.RequestError, "instance.not_found")
    assert [each.id for each in door.inspect.instances(tenant=tenant).items] == [id]
    assert refusal(lambda: door.definition(made.name)) == (
        detent.RequestError,
        "definition.unknown",
    )


NOBODY = ("01a1ee28-56ee-7e9b-abcc-544bcf47cf0a", "nobody", "", "a/b", "../limits", 7, None)


@pytest.mark.parametrize("id", NOBODY)
def test_an_instance_that_is_not_there_is_not_found_by_any_verb(door, id):
    for call in (
        lambda: door.inspect.show(id),
        lambda: door.explain(id),
        lambda: door.signal(id, "go"),
        lambda: door.pause(id),
        lambda: door.wait_for(id, timeout=1),
    ):
        assert refusal(call) == (detent.RequestError, "instance.not_found")


# looking -----------------------------------------------------------------------------------------


def test_every_view_is_the_same_struct_through_every_door(house):
    id = house.engine.start(greeting(), {"name": "K"})
    house.engine.wait_for(id, "waiting")
    looks = {
        "show": lambda door: door.inspect.show(id),
        "tree": lambda door: door.inspect.tree(id),
        "outputs": lambda door: door.inspect.outputs(id),
        "timeline": lambda door: door.inspect.timeline(id),
        "audit": lambda door: door.inspect.audit(id, action="run."),
        "effects": lambda door: door.inspect.effects(id),
        "doubts": lambda door: door.inspect.doubts(id),
        "approvals": lambda door: door.inspect.approvals(),
        "replay": lambda door: door.replay(id),
        "recompute": lambda door: door.inspect.recompute(id),
        "explain": lambda door: door.explain(id),
        "tenants": lambda door: door.inspect.gated_tenants(),
        "list": lambda door: door.inspect.instances(Page(states=("waiting",), limit=1)),
        "called": lambda door: door.inspect.calls([id, "nobody"]),
    }
    for name, look in looks.items():
        expected = look(house.engine)
        assert look(house.client) == expected, name
        assert look(house.awaited) == expected, name


def test_a_question_for_a_person_is_shown_and_answered(door):
    tenant = fresh("people")
    made = sequence(
        fresh("asks"),
        step("ok", "human_review", wait_for_input={"prompt": "Ship it?", "store_as": "answer"}),
    )
    id = door.start(made, tenant=tenant)
    door.wait_for(id, "waiting")
    (question,) = door.inspect.approvals(tenant=tenant)
    assert (question.instance, question.block, question.prompt) == (id, "ok", "Ship it?")
    assert question.choices == (("Yes", "yes"), ("No", "no"))


def test_now_is_the_engines_now(house):
    for door in (house.client, house.awaited):
        assert abs(door.now() - house.engine.now()) < dt.timedelta(seconds=30)


def test_one_step_of_every_list_leads_to_the_next(door):
    tenant = fresh("many")
    ids = door.start_many(greeting(), [{"name": str(n)} for n in range(3)], tenant=tenant)
    found, page = [], Page(limit=2)
    while True:
        listing = door.inspect.instances(page, tenant=tenant)
        found += [each.id for each in listing.items]
        if listing.next is None:
            break
        page = page._replace(after=listing.next)
    assert sorted(found) == sorted(ids)
    assert len(door.inspect.instances(Page(tenant=tenant)).items) == 3
    assert door.inspect.instances(Page(tenant="other"), tenant=tenant).items == ()
    assert refusal(lambda: door.inspect.instances(Page(limit=0))) == (
        detent.RequestError,
        "request.invalid",
    )
