"""What the entries of a row have to tell to webhooks."""

from __future__ import annotations

from detent.kernel.webhooks import happened


def told(*entries):
    return [tuple(each) for each in happened([list(entry) for entry in entries])]


def test_ends_and_breaches_are_told_by_their_place_in_the_row():
    error = {"message": "no", "kind": "logic", "block": "s", "attempt": 3}
    assert told(
        ("run.started", ""),
        ("run.failed", "", {"to": "failed"}),
        ("error.occurred", "", {"instance": error}),
        ("run.retried", ""),
        ("run.failed", "", {"to": "failed"}),
        ("error.occurred", "", {"instance": None}),
        ("sla.breached", "s", {"kind": "max_step_runtime", "limit_ms": 5, "elapsed_ms": 7}),
        ("run.completed", "", {"to": "completed"}),
    ) == [
        (1, "instance.failed", {"error": "no", "attempts": 3, "block_id": "s"}, ""),
        (4, "instance.failed", {}, ""),
        (
            6,
            "instance.sla_breached",
            {"type": "max_step_runtime", "limit_ms": 5, "elapsed_ms": 7},
            "s",
        ),
        (7, "instance.completed", {}, ""),
    ]


def test_nothing_else_is_told():
    assert told(("run.cancelled", ""), ("run.paused", ""), ("step.executed", "run.failed")) == []
