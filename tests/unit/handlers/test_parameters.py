"""Parameters by name, with types checked from annotations."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Literal

import jsonschema_rs
import pytest
from msgspec import Struct

from detent.handlers import handler
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied, EffectFailed
from tests.unit.handlers.calling import call, registry_of

if TYPE_CHECKING:
    from detent.handlers import HandlerContext


class Line(Struct):
    sku: str
    count: int = 1


@handler
def charge(amount: int, currency: Literal["EUR", "USD"] = "EUR", note: str | None = None):
    return {"amount": amount, "currency": currency, "note": note}


@handler
async def ship(lines: list[Line], on: dt.date):
    return {"count": sum(line.count for line in lines), "on": on}


@handler
def shout(text: str):
    return text.upper()


@handler
def anything(a: int, **params: int):
    return {"a": a, "params": params}


@handler
def nothing():
    return "done"


def refused(outcome):
    assert isinstance(outcome, EffectFailed)
    assert (outcome.retryable, outcome.kind, outcome.dispatch) == (False, "definition", 7)
    assert outcome.details["code"] == "request.invalid"
    return outcome.details["path"], outcome.details["expected"], outcome.details["got"]


@pytest.mark.req("SEQ-HND-2")
def test_the_keys_of_the_request_are_the_parameters_of_the_function():
    outcome = call(charge, {"amount": 5, "currency": "USD"})
    assert outcome == EffectApplied(
        key="k1", dispatch=7, result={"amount": 5, "currency": "USD", "note": None}
    )


@pytest.mark.req("SEQ-HND-2")
def test_annotated_types_are_made_from_json():
    outcome = call(ship, {"lines": [{"sku": "a", "count": 2}, {"sku": "b"}], "on": "2026-05-01"})
    assert outcome.result == {"count": 3, "on": "2026-05-01"}


@pytest.mark.req("SEQ-HND-2")
@pytest.mark.parametrize(
    ("function", "request_", "told"),
    [
        (charge, {"amount": "5"}, ("amount", "int", "str")),
        (charge, {"amount": 5.5}, ("amount", "int", "float")),
        (charge, {"amount": None}, ("amount", "int", "null")),
        (charge, {}, ("amount", "a value", "nothing")),
        (charge, None, ("amount", "a value", "nothing")),
        (
            charge,
            {"amount": 1, "tip": 2},
            ("tip", "one of amount, currency, note", "an unknown name"),
        ),
        (ship, {"lines": [{"sku": 1}], "on": "2026-05-01"}, ("lines[0].sku", "str", "int")),
        (ship, {"lines": [{}], "on": "2026-05-01"}, ("lines[0].sku", "a value", "nothing")),
        (anything, {"a": 1, "b": "x"}, ("b", "int", "str")),
        (nothing, {"a": 1}, ("a", "no parameter", "an unknown name")),
    ],
)
def test_parameters_that_do_not_fit_are_a_permanent_failure_naming_the_place(
    function, request_, told
):
    assert refused(call(function, request_)) == told


def test_a_literal_that_is_not_one_of_its_values_is_refused():
    path, _expected, got = refused(call(charge, {"amount": 1, "currency": "GBP"}))
    assert path == "currency"
    assert "GBP" in got


def test_a_function_without_parameters_takes_an_absent_or_empty_request():
    assert call(nothing, None).result == "done"
    assert call(nothing, {}).result == "done"


def test_a_request_that_is_no_object_goes_to_the_only_parameter():
    assert call(shout, "hi").result == "HI"
    assert refused(call(shout, 3)) == ("text", "str", "int")


def test_a_request_that_is_no_object_is_refused_where_there_is_not_just_one_parameter():
    assert refused(call(charge, [1]))[0] == ""
    assert refused(call(nothing, "hi"))[2] == "str"


def test_a_catch_all_takes_the_names_that_are_left():
    assert call(anything, {"a": 1, "b": 2}).result == {"a": 1, "params": {"b": 2}}
    assert refused(call(anything, {"b": 2})) == ("a", "a value", "nothing")


def test_a_default_list_is_fresh_for_each_call():
    @handler
    def collect(item: int, into: list[Any] = []):  # noqa: B006 - what users write
        into.append(item)
        return into

    assert call(collect, {"item": 1}).result == [1]
    assert call(collect, {"item": 2}).result == [2]


@pytest.mark.req("SEQ-CTX-1")
def test_writing_to_the_context_has_no_effect():
    seen = []

    @handler
    def greedy(ctx: HandlerContext):
        seen.append((dict(ctx.data), dict(ctx.config)))
        ctx.data["stolen"] = True
        ctx.config["stolen"] = True
        with pytest.raises(AttributeError):
            ctx.key = "other"
        return {"key": ctx.key, "attempt": ctx.attempt, "node": ctx.node, "dry_run": ctx.dry_run}

    registry = registry_of(greedy)
    assert registry.specs()["greedy"].ctx is True
    fields = {"data": {"a": 1}, "config": {"b": 2}, "attempt": 3}
    for _ in range(2):
        outcome = call(greedy, None, **fields)
        assert outcome.result == {"key": "k1", "attempt": 3, "node": "pay", "dry_run": False}
    assert seen == [({"a": 1}, {"b": 2})] * 2


def test_the_schema_of_a_handler_checks_constant_params_at_start():
    schema = registry_of(ship).specs()["ship"].schema
    good = {"lines": [{"sku": "a"}], "on": "2026-05-01"}
    assert jsonschema_rs.is_valid(schema, good)
    assert not jsonschema_rs.is_valid(schema, {"lines": [{"sku": 1}], "on": "2026-05-01"})
    assert not jsonschema_rs.is_valid(schema, {"lines": []})
    assert not jsonschema_rs.is_valid(schema, {**good, "more": 1})
    assert jsonschema_rs.is_valid(
        registry_of(anything).specs()["anything"].schema, {"a": 1, "b": 2}
    )


def positional(a, /):
    return a


def variadic(*a):
    return a


def of_a_class_json_does_not_know(a: BaseException):
    return a


def of_a_name_nobody_knows(a: Nowhere):  # noqa: F821 - the point of the test
    return a


async def a_generator(a: int):
    yield a


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (positional, "'a' cannot be given by name"),
        (variadic, "'a' cannot be given by name"),
        (of_a_class_json_does_not_know, "BaseException"),
        (of_a_name_nobody_knows, "Nowhere"),
        (a_generator, "generator"),
    ],
)
def test_a_signature_that_cannot_be_used_is_refused_when_it_is_registered(function, words):
    with pytest.raises(RequestError, match=r"handler\.signature") as caught:
        registry_of(handler(function))
    assert words in caught.value.message


def test_an_annotation_of_ctx_or_of_the_result_need_not_be_resolvable():
    @handler
    def late(a: int, ctx: Nowhere) -> Nowhere:  # noqa: F821 - only for type checkers
        return a

    assert call(late, {"a": 1}).result == 1
