"""Payloads that cannot be stored: each is refused with a code, and nothing is written."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step, wait
from detent.model import limits
from tests.acceptance.stage import digest, refused, state, virtual

DOOR = sequence("door", wait("w", signal="go"))
SURROGATE = "\ud800"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def engine(path):
    with virtual(path) as engine:
        yield engine


@pytest.fixture
def waiting(engine):
    """An instance that stands at its wait."""
    return engine.start(DOOR)


def cyclic():
    value = []
    value.append(value)
    return value


def deep(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


UNSTORABLE = {
    "an object": object(),
    "not a number": float("nan"),
    "infinity": [float("-inf")],
    "65 bits": 2**63,
    "66 bits below zero": -(2**63) - 1,
    "a NUL": "a\x00b",
    "a NUL in a key": {"\x00": 1},
    "a lone surrogate": SURROGATE,
    "a number as key": {1: "one"},
    "null as key": {None: 1},
    "a cycle": cyclic(),
    "too deep": deep(limits.PAYLOAD_DEPTH + 1),
    "far too deep": deep(100_000),
}
unstorable = pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE.keys())


@unstorable
@pytest.mark.parametrize("section", ["data", "config", "metadata"])
def test_a_start_with_what_json_cannot_hold_is_refused_and_leaves_nothing(
    engine, path, section, value
):
    before = digest(path)
    with refused("payload.invalid"):
        engine.start(DOOR, **{section: value})
    assert digest(path) == before


@unstorable
def test_a_signal_with_what_json_cannot_hold_is_refused_and_leaves_nothing(
    engine, path, waiting, value
):
    before = digest(path)
    with refused("payload.invalid"):
        engine.signal(waiting, "go", value)
    with refused("payload.invalid"):
        engine.resolve(waiting, "no-effect", "happened", value)
    assert digest(path) == before
    assert state(engine, waiting) == "waiting"


@unstorable
def test_one_bad_item_refuses_the_whole_batch(engine, path, value):
    engine.deploy(DOOR)
    before = digest(path)
    with refused("payload.invalid"):
        engine.start_many(DOOR, [{"n": 1}, value, {"n": 3}])
    assert digest(path) == before


@unstorable
def test_a_fork_with_what_json_cannot_hold_is_refused_and_leaves_nothing(
    engine, path, waiting, value
):
    before = digest(path)
    with refused("payload.invalid"):
        engine.fork(waiting, seq=1, data={"x": value})
    assert digest(path) == before


def test_values_at_the_edges_of_json_come_back_as_they_were(engine):
    edges = {
        "high": 2**63 - 1,
        "low": -(2**63),
        "tiny": 5e-324,
        "deep": deep(limits.PAYLOAD_DEPTH - 1),
        "": "an empty key",
        "text": "snow \u2603, music \U0001d11e, \u202eright to left, e\u0301, \u2028, \ufffd",
        "null": None,
    }
    shown = engine.inspect.show(engine.start(DOOR, edges))
    assert shown.data == edges


class Size:
    """Payloads around a limit, by their size as JSON."""

    def __init__(self, limit):
        self.limit = limit

    def text(self, over=0):
        """A text whose JSON has the limit's size, or is over it by so much."""
        return "x" * (self.limit - 2 + over)


CONTEXT = Size(limits.CONTEXT_BYTES)
PAYLOAD = Size(limits.PAYLOAD_BYTES)


def assert_names_the_size(error, size):
    assert error.details == {"size": size.limit + 1, "limit": size.limit, "path": "$"}
    assert f"{size.limit:,}" in error.message
    assert f"{size.limit + 1:,}" in error.message


@pytest.mark.parametrize("section", ["data", "config", "metadata"])
def test_a_start_may_be_as_large_as_the_limit_and_not_larger(engine, path, section):
    kept = engine.inspect.show(engine.start(DOOR, **{section: CONTEXT.text()}))
    assert getattr(kept, section) == CONTEXT.text()
    before = digest(path)
    with refused("payload.too_large") as refusal:
        engine.start(DOOR, **{section: CONTEXT.text(over=1)})
    assert_names_the_size(refusal.value, CONTEXT)
    assert refusal.value.message.startswith(section)
    assert digest(path) == before


def test_a_signal_may_be_as_large_as_the_limit_and_not_larger(engine, path, waiting):
    before = digest(path)
    with refused("payload.too_large") as refusal:
        engine.signal(waiting, "go", PAYLOAD.text(over=1))
    assert_names_the_size(refusal.value, PAYLOAD)
    assert digest(path) == before
    engine.signal(waiting, "go", PAYLOAD.text())
    assert engine.wait_for(waiting) == "completed"
    assert engine.inspect.show(waiting).outputs["w"] == PAYLOAD.text()


def test_update_context_may_fill_data_to_the_limit_and_not_over_it(engine, waiting):
    room = limits.CONTEXT_BYTES - len('{"text":""}')
    with refused("payload.too_large"):
        engine.signal(waiting, "update_context", {"text": "x" * (room + 1)})
    assert engine.inspect.show(waiting).data is None
    engine.signal(waiting, "update_context", {"text": "x" * room})
    assert engine.inspect.show(waiting).data == {"text": "x" * room}


def test_a_result_over_the_limit_fails_its_step_with_size_limit_and_path(engine):
    results = [PAYLOAD.text(), PAYLOAD.text(over=1)]

    @detent.handler
    def large(n: int):
        return results[n]

    engine.register(large)
    fits = engine.start(sequence("fits", step("s", large, params={"n": 0})))
    over = engine.start(sequence("over", step("s", large, params={"n": 1})))
    assert engine.wait_for(fits) == "completed"
    assert engine.inspect.show(fits).outputs["s"] == results[0]
    assert engine.wait_for(over) == "failed"
    error = engine.inspect.show(over).error
    assert error["code"] == "payload.too_large"
    assert error["details"]["size"] == limits.PAYLOAD_BYTES + 1
    assert error["details"]["limit"] == limits.PAYLOAD_BYTES
    assert error["details"]["path"] == "$"
    assert "large" in error["message"]


@unstorable
def test_a_result_json_cannot_hold_fails_its_step_and_harms_nobody_else(engine, value):
    @detent.handler
    def odd():
        return value

    engine.register(odd)
    bystander = engine.start(sequence("bystander", step("s", "noop")))
    broken = engine.start(sequence("broken", step("s", odd)))
    assert engine.wait_for(broken) == "failed"
    assert engine.inspect.show(broken).error["code"] == "payload.invalid"
    assert engine.wait_for(bystander) == "completed"
