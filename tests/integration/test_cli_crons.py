"""`detent cron`: schedules from the command line, with nobody else there and beside an owner."""

from __future__ import annotations

import datetime as dt
import time

import pytest

from detent import Engine, handler, sequence, step
from detent.bootstrap.visitor import Visitor
from detent.ports.store import Page
from tests.unit.cli.commands import detent


@handler("report_for_cron")
def report() -> None:
    return None


REPORT = sequence("report", step("work", report))


@pytest.fixture
def cli(tmp_path):
    path = tmp_path / "s.db"
    with Engine(path, handlers=[report], clock="virtual", seed="cli") as engine:
        engine.deploy(REPORT)
        engine.deploy(REPORT, tenant="acme")

    def run(*arguments):
        return detent("--db", path, "cron", *arguments)

    run.path = path
    return run


def made(cli, *arguments):
    return cli("create", "report", "0 9 * * MON-FRI", *arguments, "-o", "json").json


def test_a_schedule_is_made_shown_changed_and_deleted(cli):
    assert "no schedules" in cli("list").out
    told = cli(
        "create", "report", "0 9 * * MON-FRI", "--id", "weekdays", "--timezone", "Europe/Berlin"
    )
    assert told.code == 0
    assert told.out.startswith("done  create weekdays  report  next fire ")
    shown = cli("show", "weekdays", "-o", "json").json
    assert (shown["cron_expr"], shown["timezone"]) == ("0 9 * * MON-FRI", "Europe/Berlin")
    assert shown["next_fire_ms"] == 1_767_254_400_000
    assert "0 9 * * MON-FRI  (Europe/Berlin)" in cli("show", "weekdays").out
    changed = cli("update", "weekdays", "--expr", "0 10 * * *", "--overlap", "skip", "-o", "json")
    assert (changed.json["cron_expr"], changed.json["overlap_policy"]) == ("0 10 * * *", "skip")
    assert cli("disable", "weekdays").out == "done  disable weekdays  report  fires nothing\n"
    assert "disabled" in cli("list").out
    assert cli("enable", "weekdays", "-o", "json").json["enabled"] is True
    assert cli("delete", "weekdays").out == "done  delete weekdays\n"
    assert cli("list", "-o", "json").json == {"crons": []}


def test_every_setting_has_an_option(cli):
    told = made(
        cli,
        "--missed",
        "all",
        "--missed-limit",
        "3",
        "--priority",
        "High",
        "--metadata",
        '{"team": "ops"}',
        "--data",
        "[1]",
        "--config",
        '{"k": 2}',
        "--namespace",
        "default",
        "--disabled",
    )
    assert (told["missed_policy"], told["missed_limit"], told["priority"]) == ("all", 3, "High")
    assert (told["metadata"], told["data"], told["config"]) == ({"team": "ops"}, [1], {"k": 2})
    assert (told["enabled"], told["next_fire_ms"]) == (False, None)


def test_a_file_pins_its_definition(cli, tmp_path):
    file = tmp_path / "again.yaml"
    file.write_text("name: again\nversion: 1\nblocks:\n- {type: step, id: a, handler: noop}\n")
    told = cli("create", file, "0 0 * * *", "-o", "json").json
    assert (told["sequence"], told["version"], len(told["definition"])) == ("again", 1, 64)
    other = cli("update", told["id"], "--definition", "report", "-o", "json").json
    assert (other["sequence"], other["version"], other["definition"]) == ("report", None, None)


def test_the_next_times_are_told_in_the_zone_of_the_schedule(cli):
    told = made(cli, "--timezone", "America/New_York", "--disabled")
    said = cli("next", told["id"], "-n", "2")
    lines = said.out.splitlines()
    assert lines[0].startswith("2026-01-01 09:00:00 America/New_York")
    assert lines[1].startswith("2026-01-02 09:00:00 America/New_York")
    assert lines[2] == "it is disabled: none of them happens"
    known = cli("next", told["id"], "-n", "2", "-o", "json").json
    assert known["fires_ms"] == [1_767_276_000_000, 1_767_362_400_000]
    assert cli("next", told["id"], "-n", "51").code == 2


def test_tenants_have_schedules_of_their_own(cli):
    mine = made(cli)
    theirs = made(cli, "--tenant", "acme")
    assert [each["id"] for each in cli("list", "-o", "json").json["crons"]] == [
        mine["id"],
        theirs["id"],
    ]
    (listed,) = cli("list", "--tenant", "acme", "-o", "json").json["crons"]
    assert listed["id"] == theirs["id"]
    assert cli("show", mine["id"], "--tenant", "acme").code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("create", "report", "0 0 30 2 *"), 2, "calendar.cron"),
        (("create", "report", "0 9 * * *", "--timezone", "Europe/Atlantis"), 2, "calendar.zone"),
        (("create", "nobody", "0 9 * * *"), 3, "definition.unknown"),
        (("create", "report", "0 9 * * *", "--missed-limit", "0"), 2, "usage"),
        (("create", "report", "0 9 * * *", "--overlap", "queue"), 2, "usage"),
        (("create", "report", "0 9 * * *", "--data", "{"), 2, "payload.invalid"),
        (("update", "nobody"), 2, "usage"),
        (("update", "nobody", "--expr", "0 9 * * *"), 3, "cron.not_found"),
        (("show", "nobody"), 3, "cron.not_found"),
        (("delete", "nobody"), 3, "cron.not_found"),
        (("next", "nobody"), 3, "cron.not_found"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence_and_a_code(cli, arguments, code, said):
    told = cli(*arguments)
    assert (told.code, told.out) == (code, "")
    assert told.err.startswith("error: ")
    assert f"[{said}]" in told.err
    assert cli("list", "-o", "json").json == {"crons": []}


def test_beside_an_owner_the_owner_carries_it_out(tmp_path):
    """The owner's clock is the wall: within a few seconds an every-second schedule has fired."""
    path = tmp_path / "owned.db"
    with Engine(path, handlers=[report]) as engine:
        engine.deploy(REPORT)
        told = detent("--db", path, "cron", "create", "report", "* * * * * *", "-o", "json").json
        with Visitor(path) as visitor:
            assert visitor.crons.show(told["id"]).cron_expr == "* * * * * *"
            visitor.wait_for(_first(engine, told["instance"]))
            assert visitor.crons.disable(told["id"]).enabled is False
            now = engine.now()
            (fire,) = visitor.crons.preview("0 0 * * *", n=1)
            assert now < fire <= now + dt.timedelta(days=1)
            visitor.crons.delete(told["id"])
            assert visitor.crons.list() == ()
        assert engine.inspect.verify().valid


def _first(engine, schedule):
    """The first instance of a schedule, when it is there."""
    deadline = time.monotonic() + 20
    while not (found := engine.inspect.instances(Page(parent=schedule)).items):
        assert time.monotonic() < deadline, "it never fired"
        time.sleep(0.02)
    return found[0].id
