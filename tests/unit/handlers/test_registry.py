"""Declaring and registering handlers."""

from __future__ import annotations

import types

import pytest

from detent.handlers import Registry, Retry, handler, policy
from detent.handlers.names import RESERVED
from detent.kernel.builtin import MOVES
from detent.model.errors import RequestError
from detent.model.limits import DURATION_MS, KEY_CHARS
from tests.unit.handlers.calling import order_for, perform, registry_of


def unsure():
    return Retry()


def test_the_decorator_works_bare_and_with_a_name_and_leaves_the_function_callable():
    @handler
    def one(a: int):
        return a + 1

    @handler("second")
    async def two():
        return None

    @handler(name="third", on_doubt="once", timeout_ms=5)
    def three():
        return None

    registry = registry_of(one, two, three)
    assert list(registry.specs()) == ["one", "second", "third"]
    assert one(1) == 2
    assert two.detent_name == "second"
    spec = registry.specs()["third"]
    assert (spec.doubt, spec.timeout_ms, spec.marked) == ("once", 5, True)


@pytest.mark.req("CORE-EFF-1")
def test_only_repeatable_and_keyed_handlers_that_cannot_be_withdrawn_skip_the_start_mark():
    declared = [
        handler("a")(lambda: None),
        handler("b", on_doubt="keyed")(lambda: None),
        handler("c", on_doubt="keyed", withdrawable=False)(lambda: None),
        handler("d", on_doubt="queryable", reconcile=unsure)(lambda: None),
        handler("e", on_doubt="once", withdrawable=False)(lambda: None),
    ]
    marked = {name: spec.marked for name, spec in registry_of(*declared).specs().items()}
    assert marked == {"a": False, "b": True, "c": False, "d": True, "e": True}


@pytest.mark.parametrize(
    "options",
    [
        {"on_doubt": "maybe"},
        {"on_doubt": "queryable"},
        {"on_doubt": "once", "reconcile": unsure},
        {"reconcile": unsure},
        {"timeout_ms": 0},
        {"timeout_ms": True},
        {"timeout_ms": DURATION_MS + 1},
        {"name": ""},
        {"name": "a\nb"},
        {"name": "x" * (KEY_CHARS + 1)},
    ],
)
def test_options_that_contradict_themselves_are_refused_at_once(options):
    with pytest.raises(RequestError) as caught:

        @handler(**options)
        def some():
            return None

    assert caught.value.code == "handler.signature"


def test_the_longest_name_and_timeout_are_accepted():
    accepted = handler(name="x" * KEY_CHARS, timeout_ms=DURATION_MS)(lambda: None)
    assert registry_of(accepted).get("x" * KEY_CHARS) is not None


def test_a_lambda_needs_a_name():
    with pytest.raises(RequestError, match=r"handler\.signature"):
        handler(lambda: None)


def test_the_same_function_twice_is_one_and_another_of_its_name_is_refused():
    first = handler("pay")(lambda: 1)
    registry = registry_of(first, first)
    with pytest.raises(RequestError) as caught:
        registry.add(handler("pay")(lambda: 2))
    assert caught.value.code == "handler.duplicate"
    assert perform(registry, order_for("pay")).result == 1


def test_the_names_of_built_in_handlers_cannot_be_taken():
    assert set(MOVES) <= set(RESERVED)
    registry = Registry()
    for name in RESERVED:
        with pytest.raises(RequestError, match=r"handler\.duplicate"):
            registry.add(handler(name)(lambda: None))
    assert registry.specs() == {}


def test_a_plain_function_is_not_registered():
    with pytest.raises(RequestError, match="put @handler before it"):
        registry_of(unsure)


def test_a_module_a_list_and_a_nested_list_are_collected():
    module = types.ModuleType("steps")
    module.one = handler("one")(lambda: 1)
    module.rule = policy("rule")(lambda: None)
    module.other = 5
    module.helper = unsure
    registry = Registry()
    assert registry.collect([module, [handler("two")(lambda: 2)]]) == ["one", "rule", "two"]
    for wrong in (5, "steps", [5]):
        with pytest.raises(RequestError, match=r"handler\.signature"):
            registry.collect(wrong)


def test_a_bound_method_is_called_on_its_own_object():
    class Till:
        def __init__(self, name):
            self.name = name

        @handler
        def open_till(self, code: int):
            return f"{self.name}:{code}"

    registry = registry_of(Till("left").open_till)
    assert perform(registry, order_for("open_till", {"code": 7})).result == "left:7"
    with pytest.raises(RequestError, match=r"handler\.duplicate"):
        registry.add(Till("right").open_till)


def test_an_object_with_an_async_call_is_an_async_handler():
    class Mailer:
        async def __call__(self, to: str):
            return to

    mailer = handler("mail")(Mailer())
    assert perform(registry_of(mailer), order_for("mail", {"to": "x"})).result == "x"


def test_a_handler_without_reconcile_performs_no_reconcile_order():
    registry = registry_of(handler("pay")(lambda: 1))
    assert registry.performer("pay", "call") is not None
    assert registry.performer("pay", "reconcile") is None
    assert registry.performer("other", "call") is None


def test_context_wanted_by_reconcile_alone_is_sent_with_the_order():
    def asks(ctx):
        return Retry(ctx.key)

    registry = registry_of(handler("pay", on_doubt="queryable", reconcile=asks)(lambda: 1))
    assert registry.specs()["pay"].ctx is True
    order = order_for("pay", mode="reconcile", doubt="queryable")
    assert perform(registry, order).message == "k1"
