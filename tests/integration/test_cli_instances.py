"""Looking at a store and steering what is in it, with nobody else there."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from detent import Engine, Failed, handler, sequence, step, wait
from detent.bootstrap.stores import open_reader
from tests.unit.cli.commands import detent, process

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@handler("greet_for_cli")
def greet(name: str) -> dict[str, str]:
    return {"greeting": f"hello {name}"}


@handler("pay_for_cli", on_doubt="once")
def pay(n: int) -> dict[str, int]:
    raise ConnectionError(f"lost after {n}")


@handler("break_for_cli")
def break_down() -> None:
    raise Failed("no luck", retryable=False)


GREETING = sequence(
    "greeting",
    step("greet", greet, params={"name": "{{data.name}}"}),
    wait("answer", signal="go"),
    step("end", "noop"),
)
PAYMENT = sequence("payment", step("pay", pay, params={"n": 3}), step("end", "noop"))
BREAKDOWN = sequence("breakdown", step("break", break_down))


class World:
    def __init__(self, path):
        self.db = path
        with Engine(path, handlers=[greet, pay, break_down], clock="virtual", seed="cli") as engine:
            self.waiting = engine.start(GREETING, {"name": "Ada"}, key="k1")
            self.doubtful = engine.start(PAYMENT)
            self.failed = engine.start(BREAKDOWN)
            self.other = engine.start(GREETING, {"name": "Eve"}, tenant="other")
            engine.run_until_idle()

    def __call__(self, *arguments):
        return detent("--db", self.db, *arguments)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "s.db")


def test_the_list_shows_all_and_can_be_narrowed(world):
    found = world("instance", "list", "-o", "json").json["instances"]
    assert {each["id"] for each in found} == {
        world.waiting,
        world.doubtful,
        world.failed,
        world.other,
    }
    narrowed = world("instance", "list", "--state", "failed", "-o", "json").json["instances"]
    assert [each["id"] for each in narrowed] == [world.failed]
    named = world("instance", "list", "--definition", "payment@1", "-o", "json").json["instances"]
    assert [each["id"] for each in named] == [world.doubtful]


def test_a_list_goes_on_where_the_last_one_ended(world):
    first = world("instance", "list", "--limit", "3", "-o", "json").json
    rest = world("instance", "list", "--after", first["next"], "-o", "json").json
    assert len(first["instances"]) == 3
    assert len(rest["instances"]) == 1
    assert rest["next"] is None


def test_a_tenant_sees_its_own_and_nothing_of_others(world):
    own = world("--tenant", "other", "instance", "list", "-o", "json").json["instances"]
    assert [each["id"] for each in own] == [world.other]
    assert world("--tenant", "other", "instance", "show", world.other).code == 0
    for verb in ("show", "tree", "timeline", "explain", "replay", "pause", "cancel"):
        shown = world("--tenant", "other", "instance", verb, world.waiting)
        assert shown.code == 3, verb
        assert "[instance.not_found]" in shown.err


def test_a_migration_of_another_tenants_instance_stores_nothing(world, tmp_path):
    file = tmp_path / "planted.yaml"
    file.write_text("name: planted\nversion: 9\nblocks:\n  - {type: step, id: a, handler: noop}\n")
    shown = world("--tenant", "other", "instance", "migrate", world.waiting, "--to", file)
    assert shown.code == 3
    store = open_reader(world.db)
    names = {row.name for row in store.definitions("default", "default")}
    store.close()
    assert "planted" not in names


def test_one_instance_is_shown_with_its_data_tree_and_timeline(world):
    assert '"greeting": "hello Ada"' in world("instance", "show", world.waiting).out
    tree = world("instance", "tree", world.waiting, "-o", "json").json
    states = {node["id"]: node["state"] for node in tree["nodes"]}
    assert states == {"greet": "completed", "answer": "waiting", "end": "pending"}
    text = world("instance", "timeline", world.waiting).out
    assert '{"greeting":"hello Ada"}' in text
    short = world("instance", "timeline", world.waiting, "-o", "json").json["events"]
    full = world("instance", "timeline", world.waiting, "--all", "-o", "json").json["events"]
    assert len(full) > len(short)


@pytest.mark.req("CORE-EXP-1")
def test_explain_names_what_would_release_a_standing_instance(world):
    found = world("instance", "explain", world.waiting, "-o", "json").json
    assert found["waits"][0]["node"] == "answer"
    assert "go" in world("instance", "explain", world.waiting).out


@pytest.mark.req("CORE-RPL-1")
def test_a_record_replays_identically_and_a_changed_one_is_not_called_so(world):
    assert world("instance", "replay", world.waiting, "-o", "json").json["identical"] is True
    connection = apsw.Connection(str(world.db))
    connection.execute("UPDATE journal SET snapshot_digest = zeroblob(32) WHERE seq = 1")
    connection.close()
    changed = world("instance", "replay", world.waiting)
    assert changed.code == 1
    assert "different" in changed.out


@pytest.mark.req("CORE-AUD-3")
def test_the_chain_verifies_until_a_byte_is_changed(world, tmp_path):
    assert world("audit", "verify").code == 0
    anchor = tmp_path / "anchor.json"
    assert world("audit", "anchor", "--to", anchor).code == 0
    assert world("audit", "verify", "--anchor", anchor).code == 0
    connection = apsw.Connection(str(world.db))
    connection.execute("UPDATE journal SET body = CAST(body || ' ' AS BLOB) WHERE pos = 1")
    connection.close()
    broken = world("audit", "verify", "-o", "json")
    assert broken.code == 1
    assert broken.json["valid"] is False
    assert broken.json["broken"]["where"]


def test_the_audit_is_exported_for_one_or_for_all(world, tmp_path):
    one = world("audit", "export", world.failed)
    assert "run.failed" in one.out
    file = tmp_path / "all.jsonl"
    assert world("audit", "export", "--to", file).code == 0
    assert all(each in file.read_text() for each in (world.waiting, world.other))


def test_a_request_is_carried_out_here_when_nobody_owns_the_store(world):
    assert world("instance", "signal", world.waiting, "go", '{"by": "cli"}').code == 0
    assert world("instance", "show", world.waiting, "-o", "json").json["summary"]["state"] == (
        "completed"
    )
    late = world("instance", "signal", world.waiting, "go")
    assert late.code == 4
    assert "[instance.terminal]" in late.err


def test_an_illegal_move_is_refused_and_changes_nothing(world):
    before = world("instance", "timeline", world.doubtful, "-o", "json").json
    shown = world("instance", "retry", world.doubtful)
    assert shown.code == 4
    assert "[instance.transition]" in shown.err
    state = world("instance", "show", world.doubtful, "-o", "json").json["summary"]["state"]
    assert state == "waiting"
    after = world("instance", "timeline", world.doubtful, "-o", "json").json
    kept = [each for each in after["events"] if each["action"] != "command.refused"]
    assert kept == before["events"]


def test_a_person_decides_an_effect_in_doubt_by_the_beginning_of_its_key(world):
    (doubt,) = world("effect", "list", "-o", "json").json["effects"]
    assert doubt["state"] == "indeterminate"
    key = doubt["effect"]
    assert world("effect", "resolve", key[:3], "--skip").code == 2
    assert world("effect", "resolve", key, "--skip", "--again").code == 2
    assert world("effect", "resolve", "ffff0000", "--skip").code == 3
    assert world("effect", "resolve", key[:8], "--happened", '{"paid": 3}').code == 0
    assert world("effect", "list", "-o", "json").json["effects"] == []
    shown = world("instance", "show", world.doubtful, "-o", "json").json
    assert shown["summary"]["state"] == "completed"
    assert shown["outputs"]["pay"] == {"paid": 3}


@pytest.mark.req("CORE-EFF-4")
def test_a_handler_that_is_not_here_is_still_planned_by_its_own_class(tmp_path):
    """The command line has no handlers: without their specs `once` would become repeatable."""
    path = tmp_path / "s.db"
    waits = sequence("waits", wait("w", signal="go"), step("pay", pay, params={"n": 1}))
    with Engine(path, handlers=[pay], clock="virtual", seed="x") as engine:
        instance = engine.start(waits)
        engine.run_until_idle()
    assert detent("--db", path, "instance", "signal", instance, "go").code == 0
    with Engine(path, handlers=[pay], clock="virtual", seed="x") as engine:
        engine.run_until_idle()
    (doubt,) = detent("--db", path, "effect", "list", "-o", "json").json["effects"]
    assert doubt["state"] == "indeterminate"


def test_a_fork_goes_its_own_way_and_leaves_the_origin_alone(world):
    before = world("instance", "timeline", world.waiting, "-o", "json").json
    assert world("instance", "fork", world.waiting).code == 2
    made = world("instance", "fork", world.waiting, "--at", "2", "-o", "json").json["fork"]
    assert world("instance", "show", made).code == 0
    assert world("instance", "timeline", world.waiting, "-o", "json").json == before
    assert world("instance", "fork", world.waiting, "--at", "99").code == 4


def test_an_instance_moves_to_another_version_and_back_though_no_handler_is_here(world, tmp_path):
    newer = tmp_path / "newer.py"
    newer.write_text(
        "from detent import sequence, step, wait\n"
        "d = sequence('greeting', step('greet', 'greet_for_cli', params={'name': '{{data.name}}'}),"
        " wait('answer', signal='go'), step('more', 'noop'), step('end', 'noop'), version=2)\n"
    )
    moved = world("instance", "migrate", world.waiting, "--to", newer)
    assert moved.code == 0, moved.err
    assert world("instance", "show", world.waiting, "-o", "json").json["summary"]["version"] == 2
    assert world("instance", "migrate", world.waiting, "--undo").code == 0
    assert world("instance", "show", world.waiting, "-o", "json").json["summary"]["version"] == 1


def test_the_doctor_finds_a_store_well_and_says_what_to_do_about_the_rest(world, tmp_path):
    found = world("doctor", "-o", "json")
    assert found.code == 0
    levels = {each["name"]: each["level"] for each in found.json["findings"]}
    assert levels["integrity"] == "ok"
    assert levels["effects"] == "warn"
    none = detent("--db", tmp_path / "none.db", "doctor")
    assert none.code == 5
    assert "fail" in none.out


@pytest.mark.parametrize(
    ("file", "more", "data", "code"),
    [
        ("approval.yaml", ("--handlers", EXAMPLES / "office.py"), '{"who": "Ada", "days": 3}', 0),
        ("shipping.json", ("--handlers", EXAMPLES / "warehouse.py"), '{"order": 7}', 0),
        ("travel.py", (), '{"city": "Oslo", "sold_out": false}', 0),
        ("travel.py", (), '{"city": "Oslo", "sold_out": true}', 1),
    ],
)
def test_every_example_runs_as_it_stands(tmp_path, file, more, data, code):
    shown = process("run", EXAMPLES / file, *more, "--data", data, "--virtual", cwd=tmp_path)
    assert shown.code == code, shown.err
    assert detent("--db", tmp_path / "detent-virtual.db", "audit", "verify").code == 0
