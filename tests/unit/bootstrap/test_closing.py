"""Closing an engine: once, whoever asks, with nothing left behind, and at the latest at exit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from detent import Engine, handler, sequence, step
from detent.bootstrap import farewell
from detent.model.errors import RequestError, StoreError

ROOT = Path(__file__).resolve().parents[3]


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("writer", ["thread", "process"])
def test_a_store_in_memory_of_a_running_clock_leaves_no_files_behind(writer):
    with Engine(writer=writer) as engine:
        directory = Path(engine._parts.settings.path).parent
        assert directory.is_dir()
    assert not directory.exists()


def test_one_that_could_not_be_opened_leaves_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = threading.enumerate()
    with pytest.raises(RequestError):
        Engine(handlers=["no handler"])
    for writer in ("thread", "process"):  # found out by the writer, when all the rest is up
        with pytest.raises(RequestError):
            Engine(seal_key=str(tmp_path / "no-key"), writer=writer)
    monkeypatch.setattr("detent.store.sqlite.opening.migrations", lambda: ["no SQL"])
    with pytest.raises(StoreError):
        Engine()
    assert list(tmp_path.iterdir()) == []
    assert [each for each in threading.enumerate() if each not in before] == []


def test_closing_from_many_threads_closes_once_and_all_wait_until_it_is_done(tmp_path):
    engine = Engine(tmp_path / "s.db")
    started, found = threading.Barrier(8), []

    def close():
        started.wait()
        engine.close()
        found.append(engine._parts._closed)

    threads = [threading.Thread(target=close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
    engine.close()
    Engine(tmp_path / "s.db").close()


def test_whatever_cannot_be_closed_the_rest_is(tmp_path, monkeypatch):
    engine = Engine(tmp_path / "s.db")
    close = engine._parts._dispatcher.close

    def failing():
        close()
        raise ValueError("a fault of ours")

    monkeypatch.setattr(engine._parts._dispatcher, "close", failing)
    with pytest.raises(ValueError, match="a fault of ours"):
        engine.close()
    engine.close()
    Engine(tmp_path / "s.db").close()


LEFT_OPEN = """
import sys, threading
from detent import Engine, handler, sequence, step
from detent.runtime.dispatcher import Dispatcher

entered = threading.Event()
Dispatcher.close.__defaults__ = (100,)  # a stuck call is waited for as long as at any close


@handler
def stuck():
    entered.set()
    threading.Event().wait()


engine = Engine(sys.argv[1], handlers=[stuck], writer=sys.argv[2])
if sys.argv[3] == "stuck":
    engine.start(sequence("s", step("a", "stuck")))
    entered.wait()
if sys.argv[3] == "collected":
    import gc

    del engine
    gc.collect()
print("open")
"""


@pytest.mark.parametrize("how", ["idle", "collected", "stuck"])
@pytest.mark.parametrize("writer", ["thread", "process"])
def test_an_engine_left_open_is_closed_when_the_program_ends(tmp_path, writer, how):
    path = tmp_path / "s.db"
    assert run(LEFT_OPEN, path, writer, how) == ["open"]
    with Engine(path, handlers=[handler("stuck")(harmless)]) as engine:
        for each in engine.inspect.instances().items:
            assert engine.wait_for(each.id) == "completed"
            assert engine.inspect.audit(each.id, action="error.retried") == []  # closed, no crash


def harmless():
    return {}


FORKED = """
import os, sys
from detent import Engine, sequence, step

engine = Engine(sys.argv[1], writer="process")
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(engine.wait_for(engine.start(sequence("s", step("a", "noop")))))
engine.close()
"""


def test_a_forked_child_that_ends_does_not_close_its_parents_engine(tmp_path):
    assert run(FORKED, tmp_path / "s.db") == ["completed"]


def test_a_closed_engine_is_not_remembered(tmp_path):
    before = len(farewell._left)
    engine = Engine(tmp_path / "s.db")
    assert len(farewell._left) == before + 1
    engine.close()
    assert len(farewell._left) == before


def test_one_that_cannot_be_closed_at_exit_does_not_keep_the_others_from_it(monkeypatch, caplog):
    monkeypatch.setattr(farewell, "_left", {})
    closed = []

    class Left:
        def __init__(self, name):
            self.name = name
            farewell.close_at_exit(self)

        def close(self):
            if self.name == "bad":
                raise ValueError(self.name)
            closed.append(self.name)

    kept = [Left("first"), Left("bad"), Left("last")]
    farewell.close_left()
    assert closed == ["last", "first"]
    assert len(kept) == 3
    assert "could not be closed" in caplog.text


def test_a_wait_is_answered_though_nobody_told_of_the_move(tmp_path, monkeypatch):
    with Engine(tmp_path / "s.db") as engine:
        monkeypatch.setattr(engine._parts.watch, "moved", lambda _moves: None)
        assert engine.wait_for(engine.start(sequence("s", step("a", "noop")))) == "completed"
