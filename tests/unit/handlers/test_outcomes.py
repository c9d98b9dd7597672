"""How the end of a handler becomes an outcome, by its class of doubt."""

from __future__ import annotations

import asyncio

import pytest

from detent.handlers import Applied, Failed, NotApplied, Retry, handler
from detent.model.errors import RequestError
from detent.model.inputs import EffectApplied, EffectDoubted, EffectFailed, EffectReconciled
from detent.model.limits import PAYLOAD_BYTES
from tests.unit.handlers.calling import call, order_for, perform, registry_of


def unsure():
    return Retry()


def declared(doubt, function):
    options = {"reconcile": unsure} if doubt == "queryable" else {}
    return handler(f"acting_{doubt}", on_doubt=doubt, **options)(function)


def raising(error, *, is_async=False):
    def plain():
        raise error

    async def awaited():
        raise error

    return awaited if is_async else plain


DOUBTFUL = pytest.mark.parametrize("doubt", ["keyed", "queryable", "once"])
BOTH = pytest.mark.parametrize("is_async", [False, True])


@BOTH
@pytest.mark.req("CORE-EFF-4")
def test_a_plain_exception_is_a_retryable_failure_of_a_repeatable_handler(is_async):
    outcome = call(declared("repeatable", raising(ValueError("no"), is_async=is_async)))
    assert outcome == EffectFailed(key="k1", dispatch=7, message="ValueError: no", retryable=True)


@BOTH
@DOUBTFUL
@pytest.mark.req("CORE-EFF-4")
def test_a_plain_exception_is_doubt_for_every_other_class(doubt, is_async):
    outcome = call(declared(doubt, raising(ValueError("no"), is_async=is_async)))
    assert outcome == EffectDoubted(key="k1", dispatch=7, reason="ValueError: no")


@DOUBTFUL
@pytest.mark.req("CORE-EFF-4")
def test_failed_states_that_nothing_happened_whatever_the_class(doubt):
    error = Failed("card refused", retryable=False, details={"status": 402}, code="card")
    for kind in ("repeatable", doubt):
        outcome = call(declared(kind, raising(error)))
        assert outcome == EffectFailed(
            key="k1",
            dispatch=7,
            message="card refused",
            retryable=False,
            details={"code": "card", "status": 402},
        )


def test_details_of_a_failure_that_cannot_be_stored_do_not_hide_the_failure():
    outcome = call(declared("once", raising(Failed("no", details={"x": object()}))))
    assert (outcome.message, outcome.retryable) == ("no", True)
    assert outcome.details["code"] == "payload.invalid"


def test_an_exception_without_readable_text_is_told_by_its_type():
    class Broken(Exception):
        def __str__(self):
            raise RuntimeError

    assert call(declared("once", raising(Broken()))).reason.startswith("Broken: ")
    assert call(declared("once", raising(KeyError()))).reason == "KeyError"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_no_exception_of_a_handler_leaves_its_performer(error):
    for is_async in (False, True):
        outcome = call(declared("repeatable", raising(error, is_async=is_async)))
        assert outcome.message.startswith(type(error).__name__)


def test_an_error_of_the_engine_keeps_its_code_in_the_details():
    error = RequestError("engine.reentrant", "no")
    assert call(declared("repeatable", raising(error))).details == {"code": "engine.reentrant"}


@pytest.mark.req("CORE-EFF-4")
@DOUBTFUL
def test_a_result_that_cannot_be_stored_fails_a_repeatable_handler_and_leaves_others_in_doubt(
    doubt,
):
    for result, code in ((object(), "payload.invalid"), ("x" * PAYLOAD_BYTES, "payload.too_large")):
        failed = call(declared("repeatable", lambda result=result: result))
        assert (failed.retryable, failed.kind) == (False, "definition")
        assert failed.details["code"] == code
        assert failed.details["path"] == "$"
        doubted = call(declared(doubt, lambda result=result: result))
        assert isinstance(doubted, EffectDoubted)
        assert doubted.reason.startswith("it was called, but the result of handler")


@DOUBTFUL
@pytest.mark.req("CORE-EFF-4")
def test_a_timeout_is_a_retryable_failure_of_a_repeatable_handler_and_else_doubt(doubt):
    from detent.model.inputs import decode_input

    for kind in ("repeatable", doubt):
        name = f"acting_{kind}"
        performer = registry_of(declared(kind, lambda: None)).performer(name, "call")
        order = order_for(name, doubt=kind, timeout_ms=250)
        told = decode_input(performer.timed_out(order, 9))
        if kind == "repeatable":
            assert told == EffectFailed(
                key="k1", dispatch=9, message="timeout after 250 ms", retryable=True, kind="timeout"
            )
        else:
            assert told == EffectDoubted(key="k1", dispatch=9, reason="timeout after 250 ms")


def test_a_dry_run_tells_what_would_be_called_and_calls_nothing():
    called = []

    @handler
    def charge(amount: int):
        called.append(amount)

    outcome = call(charge, {"amount": 3}, dry_run=True)
    assert outcome.result == {"dry_run": True, "handler": "charge", "would": {"amount": 3}}
    assert isinstance(call(charge, {"amount": "3"}, dry_run=True), EffectFailed)
    assert called == []


def reconciling(answer, *, is_async=False):
    def plain(order_id: str):
        if isinstance(answer, Exception):
            raise answer
        return answer(order_id) if callable(answer) else answer

    async def awaited(order_id: str):
        return plain(order_id)

    @handler(on_doubt="queryable", reconcile=awaited if is_async else plain)
    def pay(order_id: str, amount: int):
        raise AssertionError("reconciling must not call")

    order = order_for(
        "pay", {"order_id": "o1", "amount": 2}, mode="reconcile", doubt="queryable", timeout_ms=50
    )
    return registry_of(pay), order


@BOTH
@pytest.mark.parametrize(
    ("answer", "verdict", "result", "message"),
    [
        (lambda order_id: Applied({"id": order_id}), "applied", {"id": "o1"}, ""),
        (NotApplied("unknown order"), "failed", None, "unknown order"),
        (Retry(), "retry", None, ""),
        (Retry("still settling"), "retry", None, "still settling"),
        (ValueError("down"), "retry", None, "ValueError: down"),
    ],
)
@pytest.mark.req("CORE-EFF-4")
def test_reconcile_says_what_it_found_and_an_exception_is_retry(
    answer, verdict, result, message, is_async
):
    registry, order = reconciling(answer, is_async=is_async)
    assert perform(registry, order) == EffectReconciled(
        key="k1", dispatch=7, verdict=verdict, result=result, message=message
    )


@pytest.mark.parametrize("answer", [None, True, {"applied": True}, Applied(object())])
def test_an_unclear_answer_of_reconcile_is_retry(answer):
    outcome = perform(*reconciling(answer))
    assert outcome.verdict == "retry"
    assert outcome.message


def test_reconcile_that_gives_no_answer_in_time_is_retry():
    from detent.model.inputs import decode_input

    registry, order = reconciling(None)
    told = decode_input(registry.performer("pay", "reconcile").timed_out(order, 1))
    assert (told.verdict, told.message) == ("retry", "reconcile gave no answer within 50 ms")


def test_a_request_that_reconcile_cannot_take_is_retry():
    registry, order = reconciling(Retry())
    wrong = order_for("pay", {"order_id": 1}, mode="reconcile", doubt="queryable")
    assert perform(registry, wrong).verdict == "retry"
    assert isinstance(perform(registry, order), EffectReconciled)


def test_a_result_is_none_when_nothing_is_returned():
    assert call(declared("once", lambda: None)) == EffectApplied(key="k1", dispatch=7, result=None)
