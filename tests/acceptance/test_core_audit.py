"""The journal and its chain: complete, ordered, and any change is found (CORE-AUD)."""

from __future__ import annotations

import shutil

import pytest

import detent
from detent import (
    a_b_split,
    for_each,
    parallel,
    race,
    router,
    sequence,
    step,
    sub_sequence,
    try_catch,
    variant,
    wait,
)
from tests.acceptance.stage import (
    DAY_MS,
    HOUR_MS,
    actions,
    finished,
    opened,
    refused,
    rows,
    virtual,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def lived(path, instances=3):
    """A store in which something of everything has happened."""

    @detent.handler
    def act(n: int, ctx: detent.HandlerContext):
        if ctx.attempt == 1:
            raise detent.Failed("not yet")
        return {"n": n, "large": "x" * 40_000}

    @detent.handler(on_doubt="once")
    def pay():
        raise TimeoutError

    definition = sequence(
        "everything",
        step("a", act, params={"n": "{{ data.n }}"}, retry=detent.retry(2, initial_backoff="1s")),
        parallel("p", wait("w", "1h"), [sub_sequence("c", "child")]),
        try_catch("t", do=step("f", "fail"), catch=step("k", "log", params={"message": "caught"})),
        race("r", wait("r1", "5s"), wait("r2", "1d")),
        router("o", detent.route("data.n > 100", step("no", "noop")), default=step("yes", "noop")),
        a_b_split("ab", variant("x", 1, step("vx", "noop")), variant("y", 1, step("vy", "noop"))),
        for_each("e", "items", step("each", "noop")),
        step("skipped", "noop", when="false"),
        step("asked", "human_review", wait_for_input={"prompt": "?"}),
        step("pay", pay),
        step("last", "noop"),
    )
    with virtual(path, [act, pay]) as engine:
        engine.deploy(sequence("child", step("x", "set_state", params={"key": "a", "value": 1})))
        made = [engine.start(definition, {"n": n, "items": [1, 2]}) for n in range(instances)]
        engine.run_until_idle()
        for instance in made:
            engine.pause(instance)
            engine.signal(instance, "human_input:asked", {"value": "yes"})
            engine.resume(instance)
            engine.run_until_idle()
            (doubt,) = engine.inspect.doubts(instance)
            engine.resolve(instance, doubt.effect, "happened", {"paid": 1})
            engine.run_until_idle()
            with refused("instance.terminal"):
                engine.signal(instance, "late")
        return made


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "store.db"
    made = lived(path)
    with virtual(path) as engine:
        anchor = engine.inspect.anchor()
    return path, made, anchor


@pytest.fixture
def copy(original, path):
    shutil.copy(original[0], path)
    return path


@pytest.mark.req("CORE-AUD-1", "CORE-AUD-2")
def test_everything_that_happened_has_its_entry(original):
    path, (instance, *_), _anchor = original
    with virtual(path) as engine:
        seen = set(actions(engine, instance))
    assert seen >= {
        "run.created",
        "run.started",
        "run.completed",
        "run.paused",
        "run.resumed",
        "step.entered",
        "step.evaluated",
        "step.executed",
        "step.skipped",
        "wait.started",
        "wait.completed",
        "event.received",
        "effect.planned",
        "effect.applied",
        "effect.failed",
        "effect.escalated",
        "error.occurred",
        "error.retried",
        "child.started",
        "child.completed",
    }


@pytest.mark.req("CORE-AUD-2")
def test_failure_cancellation_ignored_events_and_moves_are_entries_too(path):
    first = sequence("s", wait("w", "1d"), step("a", "fail"))
    second = sequence("s", wait("w", "1d"), step("a", "fail"), step("b", "noop"), version=2)
    with virtual(path) as engine:
        failed = engine.start(first)
        engine.migrate(failed, second)
        engine.run_until_idle()
        cancelled = engine.start(first)
        engine.cancel(cancelled)
        with refused("instance.transition"):
            engine.cancel(cancelled)
        assert {"run.failed", "migration.applied"} <= set(actions(engine, failed))
        assert {"run.cancelled", "command.refused"} <= set(actions(engine, cancelled))


@pytest.mark.req("CORE-AUD-1")
def test_an_entry_says_when_where_what_and_by_which_input(original):
    path, (instance, *_), _anchor = original
    with virtual(path) as engine:
        entries = engine.inspect.audit(instance)
        ids = [entry.id for entry in entries]
        assert len(set(ids)) == len(ids)
        assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)
        assert [entry.tick for entry in entries] == sorted(entry.tick for entry in entries)
        (applied,) = engine.inspect.audit(instance, action="effect.applied", node="a")
        assert applied.input["result"]["n"] == 0
        (answered,) = engine.inspect.audit(instance, action="event.received")[:1]
        assert answered.input["payload"] == {"value": "yes"}


@pytest.mark.req("CORE-AUD-3")
def test_an_untouched_store_is_valid_and_its_span_is_told(original):
    path, made, anchor = original
    with virtual(path) as engine:
        found = engine.inspect.verify(anchor)
    assert found.valid
    assert found.broken is None
    assert found.instances == len(made) * 2
    assert found.rows == len(rows(path, "journal"))
    assert (found.first_tick, found.last_tick) == (0, (HOUR_MS + 1_000 + 5_000) // 100)


def forged(value):
    """The same value with one bit of its middle flipped, or another number."""
    if isinstance(value, bytes):
        middle = len(value) // 2
        return value[:middle] + bytes([value[middle] ^ 1]) + value[middle + 1 :]
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return value + 1_000


COVERED = {
    "journal": ("seq", "tick", "snapshot_digest", "digest", "body", "head", "inst"),
    "turn": ("p", "n", "tick", "heads", "root"),
    "snapshot": ("version", "body"),
    "partition": ("turn", "root"),
    "instance": ("id", "p", "salt", "tenant", "ns", "definition", "state"),
    "blob": ("body",),
    "definition": ("body",),
}
FORGERIES = [(table, column) for table, columns in COVERED.items() for column in columns]


@pytest.mark.req("CORE-AUD-3")
@pytest.mark.parametrize(("table", "column"), FORGERIES)
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_changed_value_is_found_and_named(copy, table, column, place):
    with opened(copy, write=True) as connection:
        order = "ASC" if place == "first" else "DESC"
        at, value = connection.execute(
            f"SELECT rowid, {column} FROM {table} ORDER BY rowid {order}"
        ).fetchone()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (forged(value), at))
    with virtual(copy) as engine:
        found = engine.inspect.verify()
    assert not found.valid
    assert found.broken.where
    assert found.broken.expected != found.broken.found


@pytest.mark.req("CORE-AUD-3")
@pytest.mark.parametrize("table", ["journal", "turn", "snapshot", "instance", "blob", "definition"])
@pytest.mark.parametrize("place", ["first", "middle"])
def test_a_missing_row_is_found(copy, table, place):
    with opened(copy, write=True) as connection:
        ids = [at for (at,) in connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
        gone = ids[0] if place == "first" else ids[len(ids) // 2]
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (gone,))
    with virtual(copy) as engine:
        assert not engine.inspect.verify().valid


@pytest.mark.req("CORE-AUD-1", "CORE-AUD-3")
def test_a_whole_instance_that_is_gone_is_found(copy, original):
    with opened(copy, write=True) as connection:
        number = connection.execute(
            "SELECT n FROM instance WHERE id = ?", (original[1][1],)
        ).fetchone()[0]
        for table, column in (("journal", "inst"), ("snapshot", "n"), ("instance", "n")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
    with virtual(copy) as engine:
        assert not engine.inspect.verify().valid


@pytest.mark.req("CORE-AUD-3")
def test_two_rows_that_were_swapped_are_found(copy):
    with opened(copy, write=True) as connection:
        (one, two) = connection.execute(
            "SELECT pos FROM journal WHERE inst = 1 ORDER BY seq LIMIT 2"
        ).fetchall()
        body = "SELECT body FROM journal WHERE pos = ?"
        first, second = (connection.execute(body, at).fetchone()[0] for at in (one, two))
        for at, text in ((one, second), (two, first)):
            connection.execute("UPDATE journal SET body = ? WHERE pos = ?", (text, *at))
    with virtual(copy) as engine:
        assert not engine.inspect.verify().valid


@pytest.mark.req("CORE-AUD-3")
def test_an_inserted_row_is_found(copy):
    with opened(copy, write=True) as connection:
        connection.execute(
            "INSERT INTO journal SELECT (SELECT max(pos) + 1 FROM journal), inst, seq + 1, turn,"
            " tick, snapshot_digest, digest, body, head, moved FROM journal"
            " ORDER BY pos DESC LIMIT 1"
        )
    with virtual(copy) as engine:
        assert not engine.inspect.verify().valid


@pytest.mark.req("CORE-AUD-1", "CORE-AUD-3")
def test_a_tail_cut_off_with_all_its_traces_is_found_against_an_anchor(tmp_path):
    """An older copy of the whole file is a store with its tail cut off cleanly."""
    early, late = tmp_path / "early.db", tmp_path / "late.db"
    definition = sequence("s", wait("w", "1h"))
    with virtual(late) as engine:
        engine.start(definition)
    shutil.copy(late, early)
    with virtual(late) as engine:
        engine.advance(DAY_MS)
        finished(engine, definition)
        anchor = engine.inspect.anchor()
        assert engine.inspect.verify(anchor).valid
    with virtual(early) as engine:
        assert engine.inspect.verify().valid
        assert not engine.inspect.verify(anchor).valid


@pytest.mark.req("CORE-AUD-4")
def test_entries_are_found_by_instance_action_and_node(original):
    path, (instance, other, *_), _anchor = original
    with virtual(path) as engine:
        audit = engine.inspect.audit
        everything = audit(instance)
        assert {entry.node for entry in audit(instance, node="a")} == {"a"}
        assert {entry.action for entry in audit(instance, action="step.entered")} == {
            "step.entered"
        }
        runs = audit(instance, action="run.")
        assert {entry.action.split(".")[0] for entry in runs} == {"run"}
        assert len(runs) < len(everything)
        assert audit(instance, action="no.such") == []
        assert [e.action for e in audit(other, node="a")] == [
            e.action for e in audit(instance, node="a")
        ]


@pytest.mark.req("CORE-AUD-4", "CORE-STM-3")
def test_the_context_a_node_saw_can_be_read_afterwards(path):
    definition = sequence(
        "s",
        wait("w", signal="go", store_as="told"),
        step("a", "transform", params={"x": "{{ data.told }}"}),
        step("b", "noop"),
    )
    with virtual(path) as engine:
        instance = engine.start(definition, {"n": 1})
        engine.signal(instance, "update_context", {"n": 2})
        engine.signal(instance, "go", "hello")
        session = engine.inspect.debug(instance)
        while session.step() is not None:
            pass
        assert session.context_at("w").data == {"n": 1}
        assert session.context_at("a").data == {"n": 2, "told": "hello"}
        assert session.context_at("b").outputs["a"] == {"x": "hello"}
