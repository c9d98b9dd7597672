"""Server-sent events (contract §27); `tests/integration/web/test_following.py` has the corners."""

from __future__ import annotations

import pytest

from tests.integration.web.following import following
from tests.integration.web.house import step

pytestmark = pytest.mark.contract("27")

NOBODY = "00000000-0000-7000-8000-000000000000"


def seen(server, instance, query=""):
    with following(server, f"/instances/{instance}/stream{query}") as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        return list(stream.seen)


def test_states_outputs_and_done_last_then_it_closes(server):
    waits = {"type": "wait", "id": "w", "signal": "go"}
    instance = server.instance(server.sequence(waits, *[step(f"s{n}") for n in range(3)]))
    server.settle(instance, "waiting")
    with following(server, f"/instances/{instance}/stream?poll_ms=100") as stream:
        first = next(stream.seen)
        assert (first[0], first[1]) == ("state", {"instance_id": instance, "state": "waiting"})
        server.signal(instance, "go")
        rest = list(stream.seen)
    names = [name for name, *_ in rest]
    assert names[-1] == "done"
    assert rest[-1][1] == {"state": "completed"}
    outputs = [data for name, data, *_ in rest if name == "output"]
    assert [row["block_id"] for row in outputs] == ["w", "s0", "s1", "s2"]
    assert {"id", "instance_id", "block_id", "output", "output_ref", "attempt"} <= set(outputs[0])
    states = [data["state"] for name, data, *_ in rest if name == "state"]
    assert states[-1] == "completed"


@pytest.mark.parametrize("poll", ["?poll_ms=1", "?poll_ms=99999", ""])
def test_one_that_has_ended_tells_all_and_closes(server, poll):
    instance = server.instance(server.sequence(*[step(f"s{n}") for n in range(3)]))
    server.settle(instance)
    events = seen(server, instance, poll)
    assert [name for name, *_ in events if name == "output"] == ["output"] * 3
    assert events[-1][0] == "done"


def test_nobody_has_no_stream(server):
    assert server.get(f"/instances/{NOBODY}/stream").status_code == 404
    assert server.get(f"/instances/{NOBODY}/stream?poll_ms=soon").status_code == 400
