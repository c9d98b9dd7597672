"""What a change frees is served by whoever owns the store next, though nobody else comes by."""

from __future__ import annotations

import pytest

import detent


@detent.handler
def send(ctx) -> dict[str, str]:
    """An act on a resource."""
    return {"by": ctx.resource}


MAIL = detent.sequence("mail", detent.step("send", send, pool="senders"))


def opened(path) -> detent.Engine:
    return detent.Engine(path, handlers=[send], clock="virtual")


@pytest.mark.req("SEQ-LIM-2")
def test_a_resource_added_just_before_the_end_serves_those_who_waited(tmp_path):
    path = tmp_path / "store.db"
    with opened(path) as engine:
        engine.pools.create("senders")
        instance = engine.start(MAIL)
        engine.run_until_idle()
        assert engine.explain(instance).earliest is None
        assert "pool 'senders'" in engine.explain(instance).summary
        engine.pools.add("senders", "a@example.com")
    with opened(path) as engine:
        engine.run_until_idle()
        assert engine.explain(instance).state == "completed"
        assert engine.replay(instance).identical


@pytest.mark.req("SEQ-LIM-1")
def test_a_place_in_line_is_kept_over_a_restart(tmp_path):
    path = tmp_path / "store.db"
    limited = detent.sequence("mail", detent.step("send", send, rate_limit_key="box"))
    with opened(path) as engine:
        engine.limits.set("box", max=1, window="1h")
        ids = [engine.start(limited) for _ in range(3)]
        engine.advance(0)
        promised = [engine.explain(instance).earliest for instance in ids[1:]]
    ended = {}
    with opened(path) as engine:
        engine.run_until_idle()
        for instance in ids:
            assert engine.explain(instance).state == "completed"
            ended[instance] = engine.inspect.timeline(instance).transitions[-1].tick
    assert [ended[instance] for instance in ids[1:]] == promised
    assert promised == [36_001, 72_002]
