"""Failpoints: nothing unless armed; then the end of the process, at the hit that was named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from detent.model.errors import RequestError
from detent.runtime import failpoints


def run(arm, code, *arguments):
    environment = {**os.environ, "DETENT_FAILPOINT": arm, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
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
from detent.runtime import failpoints
rig = Rig(sys.argv[1], owner=sys.argv[2]).open()
rig.register(HandlerSpec(name="pay", doubt="once"))
start = rig.start(rig.define(blocks=[step("a", "pay")]), key="one")
rig.store.before_commit(failpoints.point("before_commit"))
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
        ("before_commit:1", [], 0, None),
        ("before_commit:3", ["called"], 1, "running"),
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
    died = run(arm, CRASH, path, "one")
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


RECOVER = """
import sys
from tests.unit.runtime.writer_rig import Rig
rig = Rig(sys.argv[1], owner=sys.argv[2]).open()
rig.settle()
print("recovered", flush=True)
"""


@pytest.mark.req("CORE-REC-1", "CORE-REC-3")
@pytest.mark.parametrize(
    ("crash", "state"), [("after_commit:1", "running"), ("after_mark:1", None)]
)
def test_killed_while_it_recovers_the_next_one_recovers_as_if_it_were_the_first(
    tmp_path, crash, state
):
    from tests.unit.runtime.writer_rig import Rig

    path = str(tmp_path / "s.db")
    assert run(crash, CRASH, path, "one").returncode == -signal.SIGKILL
    for life in ("two", "three"):
        died = run("during_recovery:1", RECOVER, path, life)
        assert (died.returncode, died.stdout) == (-signal.SIGKILL, ""), died.stderr
    rig = Rig(path, owner="four").open()
    orders = rig.orders(rig.settle())
    instance = rig.start(rig.define(blocks=[step_a()]), key="one").instance
    if state is not None:  # certainly not called: ordered again
        assert [order.instance for order in orders] == [instance]
        assert rig.check_chain() == 1
    else:  # perhaps called, so a person decides; the deaths on the way are not counted
        assert orders == []
        assert rig.row(instance).state == "waiting"
        assert rig.check_chain() == 2


WRITE = """
import sys
from detent.bootstrap.engine import Engine
from detent.definition import sequence, wait
with Engine(sys.argv[1]) as engine:
    print("open", flush=True)
    engine.start(sequence("s", wait("a", duration=10_000)), key="one")
    print("started", flush=True)
"""


def test_an_engines_writer_passes_the_point_inside_its_transactions(tmp_path):
    path = str(tmp_path / "s.db")
    died = run("before_commit:2", WRITE, path)  # the first one acquires
    assert (died.returncode, died.stdout.split()) == (-signal.SIGKILL, ["open"]), died.stderr
    calm = run("", WRITE, path)
    assert calm.stdout.split() == ["open", "started"], calm.stderr
