"""`detent run --forever`: hosts schedules and starts from elsewhere until it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from detent.bootstrap.owners import living_owner
from detent.bootstrap.stores import open_reader
from tests.unit.cli.commands import SOURCE, detent

REPORT = "name: report\nversion: 1\nblocks:\n- {type: step, id: a, handler: forever_note}\n"
HANDLERS = """
from detent import handler

@handler("forever_note")
def note() -> dict:
    return {"noted": True}
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DETENT_DB", raising=False)
    (tmp_path / "report.yaml").write_text(REPORT)
    (tmp_path / "handlers.py").write_text(HANDLERS)
    return tmp_path


class Host:
    """An engine in a process of its own, that has said that it works."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "detent.cli", "run", *arguments, "--forever"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        self.first = self.process.stdout.readline()

    def stop(self, number):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@pytest.fixture
def host():
    started = []

    def begin(*arguments):
        started.append(Host(*arguments))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.stop(signal.SIGTERM)


def fired(id):
    """How often a schedule has fired, once it has."""
    end = time.monotonic() + 30
    while not (shown := detent("cron", "show", id, "-o", "json").json)["fires"]:
        assert time.monotonic() < end, "it never fired"
        time.sleep(0.05)
    return shown["fires"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_hosts_a_schedule_until_it_is_told_to_stop(place, host, number):
    hosting = host("report.yaml", "--handlers", "handlers.py")
    assert "until it is stopped" in hosting.first
    made = detent("cron", "create", "report", "* * * * * *", "--id", "often")
    assert made.code == 0, made.err
    assert fired("often") > 0
    assert "nobody runs" not in detent("cron", "list").out
    code, _out, err = hosting.stop(number)
    assert (code, err) == (0, "")
    store = open_reader("detent.db")
    try:
        assert living_owner(store) is None
    finally:
        store.close()
    for asked in (("list",), ("show", "often")):
        assert "nobody runs this store, so nothing fires" in detent("cron", *asked).out


def test_without_a_file_it_works_on_what_is_in_the_store(place, host):
    hosting = host("--handlers", "handlers.py")
    started = detent("instance", "start", "report.yaml", "-o", "json").json
    end = time.monotonic() + 30
    state = ""
    while state != "completed":
        assert time.monotonic() < end, state
        state = detent("instance", "show", started["instance"], "-o", "json").json["summary"][
            "state"
        ]
    assert hosting.stop(signal.SIGTERM)[0] == 0


def test_it_starts_nothing_by_itself_but_what_is_asked_for(place):
    arguments = ("run", "report.yaml", "--handlers", "handlers.py", "--forever", "--timeout", "0.5")
    assert detent(*arguments, "-o", "json").json["instances"] == []
    assert len(detent(*arguments, "--count", "2", "-o", "json").json["instances"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--count", "0"),
        ("--forever", "--data", "{}"),
        ("report.yaml", "--forever", "--virtual"),
    ],
)
def test_a_run_of_nothing_is_a_wrong_command_line(place, arguments):
    told = detent("run", *arguments)
    assert (told.code, told.out) == (2, "")
    assert not (place / "detent.db").exists()
