"""A fresh directory: what configures makes the store, and everything else names the way to one."""

from __future__ import annotations

import pytest

from detent import Engine, handler
from detent.cli import exits
from tests.unit.cli.commands import detent

REPORT = "name: report\nversion: 1\nblocks:\n- {type: step, id: a, handler: noop}\n"


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DETENT_DB", raising=False)
    (tmp_path / "report.yaml").write_text(REPORT)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("limit", "set", "mailbox", "--max", "10", "--window", "1h"),
        ("pool", "create", "mailboxes"),
        ("cron", "create", "report.yaml", "0 9 * * MON-FRI"),
    ],
)
def test_a_command_that_configures_makes_the_store_and_says_so(fresh, arguments):
    first = detent(*arguments)
    assert (first.code, first.err) == (exits.OK, "made the store detent.db\n")
    assert (fresh / "detent.db").exists()
    assert detent("pool", "create", "second").err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("limit", "list"),
        ("limit", "close", "mailbox", "--for", "1h"),
        ("pool", "disable", "mailboxes", "a"),
        ("cron", "create", "report", "0 9 * * *"),
        ("cron", "list"),
        ("instance", "start", "report.yaml"),
    ],
)
def test_every_other_command_names_the_way_to_a_store_and_makes_none(fresh, arguments):
    told = detent(*arguments)
    assert (told.code, told.out) == (exits.OPERATOR, "")
    assert "there is no store at detent.db; `detent run FILE`" in told.err
    assert "--db names another" in told.err
    assert not (fresh / "detent.db").exists()


def test_a_wrong_value_makes_no_store(fresh):
    assert detent("cron", "create", "report.yaml", "every day").code != exits.OK
    assert detent("limit", "set", "mailbox", "--max", "1", "--window", "soon").code != exits.OK
    assert not (fresh / "detent.db").exists()


def test_a_directory_is_called_a_directory(fresh):
    told = detent("limit", "list", "--db", ".")
    assert told.code == exits.OPERATOR
    assert "is a directory; name a file in it" in told.err


def test_a_name_that_is_not_stored_asks_for_its_file(fresh):
    detent("pool", "create", "mailboxes")
    told = detent("cron", "create", "report", "0 9 * * *")
    assert told.code == exits.NOT_FOUND
    assert "there is no definition 'report'; name its FILE instead" in told.err
    assert "name its FILE" in detent("instance", "start", "report@2").err


def test_a_handler_that_nobody_has_had_says_how_it_becomes_known(fresh):
    (fresh / "mail.yaml").write_text(REPORT.replace("noop", "send").replace("report", "mail"))
    told = detent("cron", "create", "mail.yaml", "0 9 * * *")
    assert "[handler.unknown]" in told.err
    assert "detent run --forever --handlers MODULE" in told.err


def test_an_instance_is_started_through_the_engine_that_owns_the_store(fresh):
    done = []

    @handler("note_fresh")
    def note(n: int) -> None:
        done.append(n)

    file = fresh / "note.yaml"
    file.write_text(
        "name: note\nversion: 1\nblocks:\n"
        "- {type: step, id: a, handler: note_fresh, params: {n: '{{data.n}}'}}\n"
    )
    with Engine("detent.db", handlers=[note]) as engine:
        refused = detent("run", file)
        assert (refused.code, "`detent instance start FILE`" in refused.err) == (5, True)
        more = ("--key", "k", "-o", "json")
        made = detent("instance", "start", file, "--data", '{"n": 7}', *more)
        assert made.json["owner"] is True
        assert engine.wait_for(made.json["instance"]) == "completed"
        again = detent(
            "instance", "start", "note", "--data", '{"n": 8}', "--key", "k", "-o", "json"
        )
        assert again.json["instance"] == made.json["instance"]
    assert done == [7]


def test_without_an_owner_a_start_waits_for_one_and_says_so(fresh):
    detent("pool", "create", "mailboxes")
    told = detent("instance", "start", "report.yaml")
    assert told.code == exits.OK
    assert "nobody runs this store: `detent run --forever" in told.out
    assert len(detent("instance", "list", "-o", "json").json["instances"]) == 1
