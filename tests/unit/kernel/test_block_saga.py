"""saga: forward, and on failure or cancel backward, when nothing is in doubt any more."""

from __future__ import annotations

import pytest

from tests.unit.kernel.blocks import attempt, call, fails, noop, saga, sleep, wait
from tests.unit.kernel.driver import run


def trip(**handlers):
    return run(
        saga(
            (call("book"), call("unbook")),
            (call("pay"), call("refund")),
            (call("mail"), call("recall")),
        ),
        noop("after"),
        handlers=handlers,
    )


@pytest.mark.req("SEQ-BLK-5")
def test_actions_run_in_order_and_no_compensation_on_success():
    world = trip()
    for name in ("book", "pay", "mail"):
        assert [order.block for order in world.orders] == [name]
        world.apply(name)
    assert world.state == "completed"
    assert world.executed == ["sg/book", "sg/pay", "sg/mail", "after"]


@pytest.mark.req("SEQ-BLK-5")
def test_an_empty_saga_completes():
    assert run(saga()).state == "completed"


@pytest.mark.req("SEQ-BLK-5")
def test_on_failure_the_completed_ones_are_compensated_in_reverse_and_the_block_fails():
    world = trip()
    world.apply("book")
    world.apply("pay")
    world.fail("mail", "full", retryable=False)
    assert [order.block for order in world.orders] == ["refund"]
    world.apply("refund")
    world.apply("unbook")
    assert world.state == "failed"
    assert world.executed == ["sg/book", "sg/pay", "sg/refund", "sg/unbook"]
    assert world.error["block"] == "mail"
    error = world.data["_error"]
    assert (error["failed_step"], error["source"], error["block_id"]) == ("mail!", "saga", "sg")


@pytest.mark.req("SEQ-BLK-5")
def test_the_first_action_failing_has_nothing_to_compensate():
    world = trip()
    world.fail("book", retryable=False)
    assert world.state == "failed"
    assert world.executed == []


@pytest.mark.req("SEQ-BLK-5")
def test_a_failing_compensation_is_noted_and_the_rest_still_runs():
    world = trip()
    world.apply("book")
    world.apply("pay")
    world.fail("mail", retryable=False)
    world.fail("refund", "closed", retryable=False)
    world.apply("unbook")
    assert world.state == "failed"
    assert world.entries("saga.uncompensated")[0][2] == {"step": "pay!", "why": "closed"}
    assert world.error["block"] == "mail"


@pytest.mark.req("SEQ-BLK-5")
def test_a_step_without_compensation_is_passed_over():
    world = run(saga((noop("a"), noop("undo")), (noop("b"), None), (fails("bad"), None)))
    assert world.executed == ["sg/a", "sg/b", "sg/undo"]


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_cancel_compensates_what_was_done_and_ends_cancelled():
    world = run(saga((noop("a"), call("undo")), (wait("w", signal="x"), None)), noop("never"))
    world.signal("cancel")
    assert world.state == "running"
    world.apply("undo")
    assert world.state == "cancelled"
    assert world.executed == ["sg/a", "sg/undo"]


@pytest.mark.req("SEQ-BLK-5", "SEQ-SIG-1")
def test_a_cancel_while_compensating_lets_it_finish():
    world = run(saga((noop("a"), sleep("undo", 500)), (fails("bad"), None)))
    world.signal("cancel")
    assert world.state == "running"
    world.after(500)
    assert world.state == "cancelled"
    assert world.executed == ["sg/a", "sg/undo"]


@pytest.mark.req("CORE-EFF-3", "SEQ-BLK-5")
def test_compensation_waits_until_a_call_in_flight_is_settled():
    world = trip(pay={"doubt": "queryable"})
    world.apply("book")
    world.mark("pay")
    world.signal("cancel")
    assert not world.has("unbook"), "the payment may still happen"
    world.apply("pay", {"paid": True})
    assert [order.block for order in world.orders] == ["unbook"]
    world.apply("unbook")
    assert world.state == "cancelled"


@pytest.mark.req("CORE-EFF-3", "SEQ-BLK-5")
def test_compensation_waits_through_reconciliation():
    world = trip(pay={"doubt": "queryable"})
    world.apply("book")
    world.mark("pay")
    world.signal("cancel")
    world.doubt("pay")
    assert not world.has("unbook")
    world.reconciled("pay", "retry")
    assert not world.has("unbook")
    world.due()
    world.reconciled("pay", "failed")
    assert world.has("unbook")


@pytest.mark.req("CORE-EFF-3", "SEQ-BLK-5")
def test_compensation_goes_on_once_the_doubt_is_handed_to_a_person():
    world = trip(pay={"doubt": "once"})
    world.apply("book")
    world.mark("pay")
    world.signal("cancel")
    assert not world.has("unbook")
    world.doubt("pay")
    assert world.has("unbook")
    world.apply("unbook")
    assert world.state == "cancelled"
    assert world.snap().effects[0].state == "indeterminate"


@pytest.mark.req("CORE-EFF-3", "SEQ-BLK-5")
def test_a_deadline_that_disowns_a_call_delays_compensation_until_it_is_settled():
    world = run(
        saga((noop("a"), noop("undo")), (call("slow", deadline=1000), None)),
        handlers={"slow": {"doubt": "keyed"}},
    )
    world.mark("slow")
    world.after(1000)
    assert world.executed == ["sg/a"]
    world.apply("slow")
    assert world.executed == ["sg/a", "sg/undo"]
    assert world.state == "failed"


@pytest.mark.req("SEQ-BLK-5")
def test_an_effect_elsewhere_does_not_delay_compensation():
    world = run(
        attempt([call("other", deadline=100)]),
        saga((noop("a"), noop("undo")), (fails("bad"), None), id="sg"),
    )
    world.after(100)
    assert world.state == "failed"
    assert world.executed == ["sg/a", "sg/undo"]


@pytest.mark.req("SEQ-BLK-5")
def test_a_compensated_saga_starts_over_on_retry():
    world = trip()
    world.apply("book")
    world.fail("pay", retryable=False)
    world.apply("unbook")
    world.command("retry")
    assert [order.block for order in world.orders] == ["book"]
    world.finish()
    assert world.state == "completed"
    assert len({order.key for order in world.history}) == len(world.history)
