"""Failpoints: nothing unless armed; then the end of the process, at the hit that was named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from detent.model.errors import RequestError
from detent.runtime import failpoints


def run(arm, code):
    environment = {**os.environ, "DETENT_FAILPOINT": arm, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )


PASS_THREE = """
from detent.runtime import failpoints
for n in range(3):
    print(n, flush=True)
    failpoints.hit("after_commit")
    failpoints.point("before_commit")()
"""


def test_an_armed_point_kills_the_process_at_the_hit_that_was_named():
    died = run("after_commit:2", PASS_THREE)
    assert died.returncode == -signal.SIGKILL
    assert died.stdout.split() == ["0", "1"]


def test_a_point_handed_to_the_store_is_the_same_point():
    died = run("before_commit", PASS_THREE)
    assert died.returncode == -signal.SIGKILL
    assert died.stdout.split() == ["0"]


def test_unarmed_points_and_others_than_the_armed_one_do_nothing():
    assert run("", PASS_THREE).stdout.split() == ["0", "1", "2"]
    assert run("after_mark:1", PASS_THREE).returncode == 0


@pytest.mark.parametrize("text", ["nowhere:1", "after_commit:x", "after_commit:-1"])
def test_a_point_that_does_not_exist_cannot_be_armed(text):
    with pytest.raises(RequestError):
        failpoints.arm(text)
    failpoints.arm("")
    failpoints.hit("after_commit")


CRASH = """
import sys
from tests.unit.runtime.writer_rig import Rig
from detent.definition import step
from detent.model.decision import HandlerSpec
rig = Rig(sys.argv[1], owner=sys.argv[2]).open()
rig.register(HandlerSpec(name="pay", doubt="once"))
start = rig.start(rig.define(blocks=[step("a", "pay")]), key="one")
rig.send(start)
(order,) = rig.orders(rig.settle())
rig.send(marks=[order.key])
number = dict(rig.turn().marked)[order.key]
print("called", flush=True)
rig.send(rig.applied(order, dispatch=number))
rig.settle()
print(rig.row(start.instance).state, flush=True)
"""


@pytest.mark.req("CORE-REC-1")
@pytest.mark.parametrize(
    ("arm", "said", "rows", "state"),
    [
        ("before_begin:1", [], 0, None),
        ("after_commit:1", [], 1, "running"),
        ("after_mark:1", [], 1, "running"),
        ("between_outcome_and_commit:3", ["called"], 1, "running"),
        ("after_commit:3", ["called"], 2, "completed"),
    ],
)
def test_killed_at_a_point_the_store_holds_exactly_what_was_committed(
    tmp_path, arm, said, rows, state
):
    from tests.unit.runtime.writer_rig import Rig

    path = str(tmp_path / "s.db")
    environment = {**os.environ, "DETENT_FAILPOINT": arm, "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run(
        [sys.executable, "-c", CRASH, path, "one"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert died.stdout.split() == said
    rig = Rig(path, owner="two").open()
    assert rig.check_chain() == rows
    if state is not None:
        instance = rig.start(rig.define(blocks=[step_a()]), key="one").instance
        assert rig.row(instance).state == state


def step_a():
    from detent.definition import step

    return step("a", "pay")
