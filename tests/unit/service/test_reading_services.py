"""The use cases that only read, over a real store: what they show, and to whom."""

from __future__ import annotations

import msgspec
import pytest

from detent.definition import normalize
from detent.kernel.fork import ForkRequest
from detent.kernel.whatif import Changes
from detent.model.decision import HandlerSpec
from detent.model.errors import RequestError
from detent.model.inputs import EffectDoubted, SignalReceived
from detent.ports.store import Page
from detent.service import explaining, histories, instances, proving
from tests.unit.service.keeper import EPOCH_MS, Keeper

BLOCKS = [
    {"type": "step", "id": "a", "handler": "work"},
    {"type": "wait", "id": "w", "duration": 1_000},
    {"type": "step", "id": "b", "handler": "work"},
]
ASKING = [
    {
        "type": "step",
        "id": "ask",
        "handler": "work",
        "wait_for_input": {
            "prompt": "Send it?",
            "timeout": 60_000,
            "store_as": "answer",
            "choices": [{"label": "Go", "value": "go"}],
        },
    }
]
HANDLERS = {"pay": HandlerSpec(name="pay", doubt="once")}


def a_definition(name, blocks):
    return normalize({"name": name, "version": 1, "blocks": blocks})


@pytest.fixture
def keeper():
    made = Keeper(handlers=HANDLERS)
    yield made
    made.close()


@pytest.fixture
def done(keeper):
    """A completed instance of tenant default."""
    made = keeper.define(a_definition("story", BLOCKS))
    id = keeper.start(made, "one", {"k": 1}, tick=1)
    keeper.finish(id)
    return id


def everything(keeper, id, tenant):
    """Every function that looks at one instance, as (name, call)."""
    store = keeper.store
    fork = ForkRequest(instance="fork", seq=2)
    return {
        "show": lambda: instances.show_instance(store, id, tenant),
        "children": lambda: instances.children_of(store, id, tenant),
        "definition": lambda: instances.instance_definition(store, id, tenant),
        "tree": lambda: histories.instance_tree(store, id, tenant),
        "outputs": lambda: histories.instance_outputs(store, id, tenant),
        "timeline": lambda: histories.instance_timeline(store, id, tenant),
        "audit": lambda: histories.instance_audit(store, id, tenant),
        "context": lambda: histories.instance_context(store, id, tenant, "a"),
        "effects": lambda: histories.instance_effects(store, id, tenant),
        "export": lambda: list(histories.export_audit(store, id, tenant)),
        "explain": lambda: explaining.explain_instance(store, id, tenant),
        "doubts": lambda: explaining.doubts(store, tenant, instance=id),
        "replay": lambda: proving.replay_instance(store, id, tenant),
        "recompute": lambda: proving.recompute_instance(store, id, tenant),
        "what_if": lambda: proving.what_if_instance(store, id, tenant, Changes()),
        "debug": lambda: proving.debug_instance(store, id, tenant),
        "fork": lambda: proving.fork_input(store, id, tenant, fork),
    }


def test_an_unknown_instance_is_refused_everywhere_with_its_id(keeper, done):
    for name, call in everything(keeper, "nobody", None).items():
        with pytest.raises(RequestError) as refused:
            call()
        assert refused.value.code == "instance.not_found", name
        assert "nobody" in refused.value.message


@pytest.mark.req("SEQ-OPS-1")
def test_an_instance_of_another_tenant_does_not_exist(keeper, done):
    for name, call in everything(keeper, done, "other").items():
        with pytest.raises(RequestError) as refused:
            call()
        assert refused.value.code == "instance.not_found", name
    for call in everything(keeper, done, "default").values():
        call()
    for call in everything(keeper, done, None).values():
        call()


def test_an_empty_tenant_is_refused_and_never_means_all(keeper, done):
    for call in (
        lambda: instances.show_instance(keeper.store, done, ""),
        lambda: instances.list_instances(keeper.store, Page(), ""),
        lambda: explaining.approvals(keeper.store, ""),
        lambda: explaining.doubts(keeper.store, ""),
    ):
        with pytest.raises(RequestError) as refused:
            call()
        assert refused.value.code == "request.invalid"


def test_lists_are_pages_that_do_not_overlap_and_end(keeper):
    made = keeper.define(a_definition("story", BLOCKS))
    ids = [keeper.start(made, f"i{i}") for i in range(5)]
    first = instances.list_instances(keeper.store, Page(limit=3), "default")
    second = instances.list_instances(keeper.store, Page(limit=3, after=first.next), "default")
    assert [item.id for item in (*first.items, *second.items)] == ids
    assert second.next is None
    assert first.items[0].name == "story"
    exact = instances.list_instances(keeper.store, Page(limit=5), "default")
    assert (len(exact.items), exact.next) == (5, None)


def test_lists_show_a_tenant_its_own_and_the_operator_all(keeper):
    made = keeper.define(a_definition("story", BLOCKS))
    keeper.define(made, tenant="other")
    mine, theirs = keeper.start(made, "x"), keeper.start(made, "x", tenant="other")
    listed = {
        tenant: [item.id for item in instances.list_instances(keeper.store, Page(), tenant).items]
        for tenant in ("default", "other", None)
    }
    assert listed == {"default": [mine], "other": [theirs], None: [mine, theirs]}
    asked = instances.list_instances(keeper.store, Page(tenant="other"), "default")
    assert asked.items == ()


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_out_of_bounds_is_refused(keeper, limit):
    with pytest.raises(RequestError) as refused:
        instances.list_instances(keeper.store, Page(limit=limit), None)
    assert refused.value.code == "request.invalid"


def test_an_instance_is_shown_with_its_context(keeper, done):
    shown = instances.show_instance(keeper.store, done, "default")
    assert shown.summary.state == "completed"
    assert shown.data["k"] == 1
    assert set(shown.outputs) == {"a", "w", "b"}
    assert shown.started_ms == EPOCH_MS + 100
    assert shown.ended_ms > shown.started_ms
    assert shown.open_effects == 0


def test_the_views_of_one_instance_agree(keeper, done):
    store = keeper.store
    assert [n.state for n in histories.instance_tree(store, done, None).nodes] == ["completed"] * 3
    assert [o.block for o in histories.instance_outputs(store, done, None)] == ["a", "w", "b"]
    told = histories.instance_timeline(store, done, None)
    assert told.transitions[-1].target == "completed"
    receipts = histories.instance_effects(store, done, None)
    assert [(r.block, r.state, r.attempt) for r in receipts] == [
        ("a", "applied", 1),
        ("b", "applied", 1),
    ]


@pytest.mark.req("CORE-AUD-4")
def test_the_audit_exports_as_json_lines(keeper, done):
    lines = list(histories.export_audit(keeper.store, done, None))
    assert all(line.endswith(b"\n") for line in lines)
    head, *entries = [msgspec.json.decode(line) for line in lines]
    assert head["instance"] == done
    assert entries[0]["id"] == "1.0"
    assert entries[0]["at_ms"] == EPOCH_MS + 100
    assert len(entries) == len(histories.instance_audit(keeper.store, done, None))


@pytest.mark.req("CORE-EXP-1")
def test_a_standing_instance_is_explained_by_the_store_s_own_clock(keeper):
    made = keeper.define(a_definition("story", BLOCKS))
    id = keeper.start(made, "one", tick=1)
    keeper.apply(id, {}, tick=2)
    told = explaining.explain_instance(keeper.store, id, "default")
    assert told.earliest == 12
    assert told.earliest_ms == EPOCH_MS + 1_200
    assert "2023-11-14T22:13:20.200Z" in told.waits[0].text


def test_an_instance_that_was_only_accepted_is_explained_too(keeper):
    """A child is a row and an arrival until the engine takes it in."""
    child = keeper.define(a_definition("child", BLOCKS))
    block = {"type": "sub_sequence", "id": "s", "sequence_name": "child"}
    parent = keeper.start(keeper.define(a_definition("parent", [block])), "one")
    [summary] = instances.children_of(keeper.store, parent, None)
    assert summary.definition == child.hash
    told = explaining.explain_instance(keeper.store, summary.id, None)
    assert "accepted" in told.summary
    assert not instances.show_instance(keeper.store, summary.id, None).taken
    assert {n.state for n in histories.instance_tree(keeper.store, summary.id, None).nodes} == {
        "pending"
    }
    assert proving.verify_store(keeper.store).valid


def test_approvals_list_open_questions_until_they_are_answered(keeper):
    made = keeper.define(a_definition("asking", ASKING))
    id = keeper.start(made, "one", tick=5, metadata={"who": "me"})
    [item] = explaining.approvals(keeper.store, "default")
    assert (item.instance, item.block, item.prompt, item.name) == (id, "ask", "Send it?", "asking")
    assert item.choices == (("Go", "go"),)
    assert (item.store_as, item.timeout_ms, item.metadata) == ("answer", 60_000, {"who": "me"})
    assert item.since_ms == EPOCH_MS + 500
    assert item.deadline_ms == EPOCH_MS + 60_500
    assert explaining.approvals(keeper.store, "other") == []
    assert explaining.approvals(keeper.store, None, namespace="elsewhere") == []
    assert explaining.approvals(keeper.store, None, offset=1) == []
    keeper.tell(id, SignalReceived(name="custom:human_input:ask", payload={"value": "go"}))
    assert explaining.approvals(keeper.store, "default") == []


def test_a_question_without_choices_takes_yes_and_no(keeper):
    blocks = [{"type": "step", "id": "q", "handler": "work", "wait_for_input": {}}]
    keeper.start(keeper.define(a_definition("asking", blocks)), "one")
    [item] = explaining.approvals(keeper.store, None)
    assert item.choices == (("Yes", "yes"), ("No", "no"))
    assert item.deadline_ms is None


def test_doubts_name_what_a_person_must_decide(keeper):
    blocks = [{"type": "step", "id": "p", "handler": "pay"}]
    id = keeper.start(keeper.define(a_definition("paying", blocks)), "one")
    [key] = keeper.orders
    assert explaining.doubts(keeper.store, None) == []
    [call] = explaining.doubts(keeper.store, None, instance=id)
    assert call.state == "planned"
    keeper.mark(key)
    [call] = explaining.doubts(keeper.store, None, instance=id)
    assert call.state == "in_flight"
    keeper.tell(id, EffectDoubted(key=key, dispatch=1, reason="the line was cut"))
    [call] = explaining.doubts(keeper.store, "default")
    assert (call.effect, call.state, call.reason) == (key, "indeterminate", "the line was cut")
    assert len(call.resolutions) == 4
    assert explaining.doubts(keeper.store, "other") == []


@pytest.mark.req("CORE-RPL-1")
def test_a_stored_instance_replays_and_recomputes(keeper):
    child = keeper.define(a_definition("child", BLOCKS))
    block = {"type": "sub_sequence", "id": "s", "sequence_name": "child"}
    parent = keeper.start(keeper.define(a_definition("parent", [block])), "one")
    assert proving.replay_instance(keeper.store, parent, None).identical
    assert proving.recompute_instance(keeper.store, parent, None) == []
    newer = normalize({"name": "child", "version": 2, "blocks": BLOCKS})
    keeper.define(newer)
    [changed] = proving.recompute_instance(keeper.store, parent, None)
    assert (changed.recorded, changed.now) == (child.hash, newer.hash)


@pytest.mark.req("CORE-RPL-2")
def test_a_fork_of_a_stored_instance_is_born_and_verifies(keeper, done):
    request = ForkRequest(instance="fork-1", seq=0, before="b")
    told = proving.fork_input(keeper.store, done, None, request)
    assert told.origin == done
    row = keeper.store.instance(done)
    keeper.turn({"fork-1": [told]}, births={"fork-1": row.definition})
    [order] = [order for order in keeper.orders.values() if order.instance == "fork-1"]
    assert order.node == "b"
    keeper.finish("fork-1")
    assert instances.show_instance(keeper.store, "fork-1", None).summary.state == "completed"
    assert proving.verify_store(keeper.store).valid
    assert proving.replay_instance(keeper.store, "fork-1", None).identical


def test_a_debugging_session_and_a_what_if_leave_the_store_as_it_was(keeper, done):
    before = proving.make_anchor(keeper.store)
    session = proving.debug_instance(keeper.store, done, None)
    while session.step() is not None:
        pass
    assert proving.what_if_instance(keeper.store, done, None, Changes()).same
    assert proving.make_anchor(keeper.store) == before
