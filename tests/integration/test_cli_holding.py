"""What holds an instance is said wherever it is shown, in one form of time."""

from __future__ import annotations

import re

import pytest

from detent import Engine, Failed, handler, sequence, step
from detent.cli.invocation import Invocation
from detent.cli.reader import reading
from detent.cli.watching import Watch, mark
from tests.unit.cli.commands import detent

LETTER = sequence("letter", step("send", "noop", rate_limit_key="mailbox"))


@handler("held_busy")
def busy() -> None:
    raise Failed("too many", retry_after=60)


@pytest.fixture
def held(tmp_path):
    """One letter was sent; two stand in line, an hour each."""
    path = tmp_path / "held.db"
    with Engine(path, clock="virtual", seed="held") as engine:
        engine.limits.set("mailbox", max=1, window="1h")
        letters = [engine.start(LETTER) for _ in range(3)]
        engine.advance(60_000)

    def run(*arguments):
        return detent("--db", path, *arguments)

    run.path, run.letters = path, letters
    return run


def test_the_tree_names_the_rule_and_the_instant(held):
    shown = held("instance", "tree", held.letters[1]).out
    assert "is deferred by the rate limit 'mailbox', until " in shown
    assert "(in 59 min)" in shown
    assert "deferred" not in held("instance", "tree", held.letters[0]).out


def test_the_list_and_one_instance_say_when_the_gate_calls(held):
    listed = held("instance", "list", "-o", "json").json["instances"]
    explained = [
        held("instance", "explain", each, "-o", "json").json["earliest_ms"] for each in held.letters
    ]
    assert [each["due_ms"] for each in listed] == explained
    assert explained[0] is None
    assert 0 < explained[1] < explained[2]
    assert "in 1 h 59 min" in held("instance", "list").out
    shown = held("instance", "show", held.letters[2], "-o", "json").json["summary"]
    assert shown["due_ms"] == explained[2]


def test_a_watch_counts_its_own_instances_and_says_what_holds_the_first(held):
    own = held.letters[1:]
    with reading(Invocation(db=str(held.path))) as reader:
        watch = Watch(reader, own, "letters", mark(reader))
        assert watch.finished() is False
        assert watch.counts() == {"scheduled": 2}  # not the letter that was sent before
        assert list(watch.held()) == ["send"]
        assert Watch(reader, None, "all", mark(reader)).held() == {}


def test_a_run_that_a_limit_holds_names_the_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.yaml").write_text(
        "name: letter\nversion: 1\nblocks:\n"
        "- {type: step, id: send, handler: noop, rate_limit_key: mailbox}\n"
    )
    detent("limit", "set", "mailbox", "--max", "1", "--window", "1h")
    shown = detent("run", "letter.yaml", "--count", "2", "--timeout", "1.5")
    lines = [line for line in shown.out.splitlines() if line.startswith("scheduled")]
    assert "send is deferred by the rate limit 'mailbox', until " in lines[-1]


def test_a_schedule_is_explained_under_its_own_name(tmp_path):
    path = tmp_path / "cron.db"
    with Engine(path, clock="virtual", seed="held") as engine:
        engine.deploy(LETTER)
        engine.crons.create("letter", "0 9 * * *", id="morning")
    shown = detent("--db", path, "instance", "explain", "morning")
    assert shown.code == 0, shown.err
    assert "Schedule 'morning' waits for its next fire" in shown.out
    assert "morning  schedule" in shown.out
    assert "cron  cron" not in shown.out
    assert detent("--db", path, "instance", "timeline", "morning").code == 0
    unknown = detent("--db", path, "instance", "explain", "evening")
    assert unknown.code == 3
    assert "there is no instance or schedule 'evening'" in unknown.err


def test_one_output_has_one_form_of_time(held, tmp_path):
    shown = held("instance", "explain", held.letters[1]).out
    assert len(re.findall(r"T[0-9:]{8}[+-][0-9:]{5}", shown)) >= 4
    assert not re.search(r"T[0-9:]{8}\.[0-9]{3}Z", shown)
    path = tmp_path / "busy.db"
    ask = sequence("ask", step("ask", busy, rate_limit_key="api"))
    with Engine(path, clock="virtual", seed="held", handlers=[busy]) as engine:
        instance = engine.start(ask)
        engine.advance(1_000)
    closed = detent("--db", path, "instance", "timeline", instance).out
    line = next(line for line in closed.splitlines() if "gate.closed" in line)
    assert re.search(r"api until 20[0-9-]+T[0-9:]{8}[+-]", line)


def test_fields_that_are_ignored_are_told_where_a_definition_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(
        "name: w\nversion: 1\nblocks:\n- type: step\n  id: a\n  handler: noop\n"
        "  send_window: {start: '00:00', end: '24:00', timezon: Europe/Berlin}\n"
    )
    for command in (("run", "w.yaml", "--timeout", "5"), ("cron", "create", "w.yaml", "0 9 * * *")):
        told = detent(*command)
        assert told.code == 0, told.err
        assert "warning: w.yaml: " in told.err
        assert "did you mean" in told.err
    assert "timezon" in detent("definition", "validate", "w.yaml").out
