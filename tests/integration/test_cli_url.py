"""The commands against a server: `--url` instead of `--db`, with the same output."""

from __future__ import annotations

import json

import click
import pytest

import detent
from detent.cli.invocation import NEEDS_FILE
from detent.cli.program import program
from detent.testing.serving import serving
from detent.web.api.settings import ApiSettings
from tests.integration.doors import ROOT, fresh
from tests.integration.fickle import fickle, say
from tests.unit.cli.commands import detent as run

SHOP = """
name: {name}
version: 1
blocks:
  - {{type: step, id: ask, handler: noop, wait_for_input: {{prompt: "Ship?", store_as: answer}}}}
  - {{type: wait, id: hold, signal: go}}
"""


@detent.handler(on_doubt="once")
def charge() -> dict:
    raise TimeoutError("nobody knows")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("url") / "s.db"
    api = ApiSettings(api_key=ROOT, require_tenant_header=False)
    with detent.Engine(path, handlers=[charge]) as engine, serving(engine, api) as url:
        yield engine, url, path


@pytest.fixture
def far(server, monkeypatch):
    """Run a command against the server; it must go well, and its JSON is read."""
    monkeypatch.setenv("DETENT_API_KEY", ROOT)

    def call(*words):
        shown = run(*words, "--url", server[1], "-o", "json")
        assert shown.code == 0, shown
        return json.loads(shown.out)

    return call


@pytest.fixture
def near(server):
    """The same command on the store itself."""

    def call(*words):
        shown = run(*words, "--db", str(server[2]), "-o", "json")
        assert shown.code == 0, shown
        return json.loads(shown.out)

    return call


@pytest.fixture
def shop(tmp_path):
    name = fresh("shop")
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP.format(name=name))
    return name, str(file)


def test_a_definition_is_deployed_listed_and_shown(far, near, shop):
    name, file = shop
    made = far("definition", "deploy", file)
    assert far("definition", "deploy", file) == made
    assert far("definition", "show", name)["hash"] == made["hash"]
    assert far("definition", "show", f"{name}@1") == near("definition", "show", name)
    assert far("definition", "list") == near("definition", "list")
    assert name in [each["name"] for each in far("definition", "list")["definitions"]]


def test_an_instance_is_started_steered_and_looked_at(server, far, near, shop):
    engine, name = server[0], shop[0]
    id = far("instance", "start", shop[1], "--data", '{"n": 1}', "--key", name)["instance"]
    assert far("instance", "start", name, "--data", '{"n": 1}', "--key", name)["instance"] == id
    engine.wait_for(id, "waiting")
    for words in (("show",), ("tree",), ("timeline",), ("timeline", "--all"), ("replay",)):
        assert far("instance", words[0], id, *words[1:]) == near(
            "instance", words[0], id, *words[1:]
        ), words
    assert far("instance", "explain", id)["summary"] == near("instance", "explain", id)["summary"]
    listed = far("instance", "list", "--definition", name)
    assert listed == near("instance", "list", "--definition", name)
    assert [each["id"] for each in listed["instances"]] == [id]
    assert far("instance", "pause", id)["owner"] is True
    far("instance", "resume", id)
    told = far("instance", "signal", id, "human_input:ask", '{"value": "yes"}', "--id", name)
    assert told["signal"] == name
    assert far("instance", "cancel", id)["state"] == "cancelled"
    refused = run("instance", "retry", id, "--url", server[1])
    assert (refused.code, "instance.transition" in refused.err) == (4, True)


def test_an_instance_is_moved_to_another_version(server, far, shop, tmp_path):
    id = far("instance", "start", shop[1])["instance"]
    server[0].wait_for(id, "waiting")
    newer = tmp_path / "newer.yaml"
    newer.write_text(SHOP.format(name=shop[0]).replace("version: 1", "version: 2"))
    assert far("instance", "migrate", id, "--to", str(newer), "--preview")["possible"] is True
    far("instance", "migrate", id, "--to", str(newer))
    assert far("instance", "show", id)["summary"]["version"] == 2
    far("instance", "migrate", id, "--undo")
    assert far("instance", "show", id)["summary"]["version"] == 1


def test_an_effect_in_doubt_is_listed_and_resolved(server, far, near):
    made = detent.sequence(fresh("pays"), detent.step("pay", charge))
    id = server[0].start(made)
    server[0].wait_for(id, ["waiting", "paused"])
    assert far("effect", "list") == near("effect", "list")
    (effect,) = [each for each in far("effect", "list")["effects"] if each["instance"] == id]
    far("effect", "resolve", effect["effect"][:12], "--happened", '{"paid": true}')
    assert server[0].wait_for(id) == "completed"


def test_limits_pools_and_schedules_are_set_and_shown(far, near, shop):
    tenant = ("--tenant", fresh("acme"))
    far("limit", "set", "mail/x", "--max", "3", "--window", "1h", *tenant)
    far("limit", "close", "mail/x", "--for", "5m", *tenant)
    assert far("limit", "show", "mail/x", *tenant) == near("limit", "show", "mail/x", *tenant)
    far("limit", "open", "mail/x", *tenant)
    assert far("limit", "list") == near("limit", "list")
    far("limit", "delete", "mail/x", *tenant)
    far("pool", "create", "boxes", *tenant)
    far("pool", "add", "boxes", "a@x.org", "--weight", "2", *tenant)
    far("pool", "update", "boxes", "a@x.org", "--daily-cap", "9", *tenant)
    assert far("pool", "show", "boxes", *tenant) == near("pool", "show", "boxes", *tenant)
    assert far("pool", "list") == near("pool", "list")
    far("pool", "remove", "boxes", "a@x.org", *tenant)
    far("pool", "delete", "boxes", *tenant)
    id = far("cron", "create", shop[1], "0 9 * * *", *tenant)["id"]
    far("cron", "update", id, "--expr", "30 9 * * *", *tenant)
    far("cron", "disable", id, *tenant)
    assert far("cron", "show", id, *tenant) == near("cron", "show", id, *tenant)
    assert far("cron", "list") == near("cron", "list")
    assert len(far("cron", "next", id, "-n", "3", *tenant)["fires"]) == 3
    far("cron", "enable", id, *tenant)
    far("cron", "delete", id, *tenant)


def test_a_journal_is_exported_as_from_the_store(server, far, near, shop, monkeypatch):
    monkeypatch.setenv("DETENT_API_KEY", ROOT)
    id = far("instance", "start", shop[1])["instance"]
    server[0].wait_for(id, "waiting")
    away = run("audit", "export", id, "--url", server[1])
    here = run("audit", "export", id, "--db", str(server[2]))
    assert (away.code, away.out) == (0, here.out)
    assert len(away.out.splitlines()) > 2
    everything = run("audit", "export", "--url", server[1])
    assert id in everything.out


def test_an_instance_is_forked_at_the_server(server, far, shop):
    id = far("instance", "start", shop[1], "--data", '{"n": 1}')["instance"]
    server[0].wait_for(id, "waiting")
    made = far("instance", "fork", id, "--before", "ask", "--data", '{"n": 2}', "--dry-run")
    assert (made["request"], made["owner"]) == ("fork", True)
    view = server[0].inspect.show(made["fork"])
    assert (view.data["n"], view.dry_run) == (2, True)
    assert server[0].inspect.show(id).data["n"] == 1
    refused = run("instance", "fork", id, "--at", "99", "--url", server[1])
    assert (refused.code, "fork.refused" in refused.err) == (4, True)


ID = "01a1ee28-56ee-7e9b-abcc-544bcf47cf0a"
# What each command needs beside a URL to be carried out by a server.
WORDS = {
    "definition deploy": ("{file}",),
    "definition list": (),
    "definition show": ("shop",),
    "instance cancel": (ID,),
    "instance explain": (ID,),
    "instance fork": (ID, "--at", "1"),
    "instance list": (),
    "instance migrate": (ID, "--undo"),
    "instance pause": (ID,),
    "instance replay": (ID,),
    "instance resume": (ID,),
    "instance retry": (ID,),
    "instance show": (ID,),
    "instance signal": (ID, "go"),
    "instance start": ("shop",),
    "instance timeline": (ID,),
    "instance tree": (ID,),
    "effect list": (),
    "effect resolve": ("abcd", "--skip"),
    "limit close": ("k", "--for", "1h"),
    "limit delete": ("k",),
    "limit list": (),
    "limit open": ("k",),
    "limit set": ("k", "--max", "1", "--window", "1h"),
    "limit show": ("k",),
    "pool add": ("p", "k"),
    "pool create": ("p",),
    "pool delete": ("p",),
    "pool disable": ("p", "k"),
    "pool enable": ("p", "k"),
    "pool list": (),
    "pool remove": ("p", "k"),
    "pool show": ("p",),
    "pool update": ("p", "k", "--weight", "2"),
    "cron create": ("shop", "0 9 * * *"),
    "cron delete": ("c",),
    "cron disable": ("c",),
    "cron enable": ("c",),
    "cron list": (),
    "cron next": ("c",),
    "cron show": ("c",),
    "cron update": ("c", "--expr", "0 9 * * *"),
    "audit export": (),
}
# Those that look at no store at all, and the one that has its own way to a server.
NO_STORE = {
    "demo",
    "init",
    "definition diff",
    "definition validate",
    "calendar cron",
    "calendar preview",
    "plan validate",
    "plan preview",
    "audit keygen",
    "worker",
}
FILE_WORDS = {
    "run": ("x.yaml",),
    "audit report": ("x", "--to", "x.pdf"),
}


def every_command():
    """The name of each command, as it is typed."""
    found, open_ = [], [("", program)]
    while open_:
        name, command = open_.pop()
        if not isinstance(command, click.Group):
            found.append(name)
            continue
        context = click.Context(command)
        open_ += [
            (f"{name} {each}".strip(), command.get_command(context, each))
            for each in command.list_commands(context)
        ]
    return set(found)


def test_every_command_reaches_a_server_or_says_why_not():
    assert every_command() == {*WORDS, *NO_STORE, *NEEDS_FILE}
    assert len(every_command()) == len(WORDS) + len(NO_STORE) + len(NEEDS_FILE)


@pytest.mark.parametrize("name", WORDS)
def test_a_command_speaks_to_the_server_that_it_is_given(shop, name):
    words = [each.format(file=shop[1]) for each in WORDS[name]]
    with fickle("", *[say(418, b"teapot")] * 3) as there:
        shown = run(*name.split(), *words, "--url", there.url)
        assert (shown.code, "server.answer" in shown.err) == (5, True), shown
        assert len(there.calls) == 1


@pytest.mark.parametrize("name", NEEDS_FILE)
def test_what_needs_the_file_itself_says_so_and_why(name):
    words = FILE_WORDS.get(name, ())
    shown = run(*name.split(), *words, "--url", "http://127.0.0.1:1")
    assert shown.code == 2
    assert "--db" in shown.err
    assert "http://127.0.0.1:1" in shown.err
    assert NEEDS_FILE[name] in shown.err


def test_the_url_comes_from_the_environment_unless_the_command_line_names_a_store(
    server, monkeypatch, tmp_path
):
    monkeypatch.setenv("DETENT_API_KEY", ROOT)
    monkeypatch.setenv("DETENT_URL", server[1])
    assert run("instance", "list").code == 0
    assert run("instance", "list", "--db", str(tmp_path / "none.db")).code == 5
    assert run("doctor").code == 2
    monkeypatch.setenv("DETENT_URL", "http://127.0.0.1:1")
    assert run("--url", server[1], "instance", "list").code == 0
    both = run("instance", "list", "--url", server[1], "--db", "x.db")
    assert (both.code, "not both" in both.err) == (2, True)


def test_a_server_that_is_gone_and_a_wrong_key_have_their_own_exit_codes(server, monkeypatch):
    monkeypatch.setenv("DETENT_API_KEY", "a-guess")
    refused = run("instance", "list", "--url", server[1])
    assert (refused.code, "request.unauthorized" in refused.err) == (4, True)
    assert "a-guess" not in refused.err
    gone = run("instance", "list", "--url", "http://127.0.0.1:1")
    assert (gone.code, "server.unreachable" in gone.err) == (5, True)
    wrong = run("instance", "list", "--url", "127.0.0.1")
    assert (wrong.code, "http" in wrong.err) == (1, True)


def test_a_server_that_wants_a_tenant_gets_one_by_its_option(server, monkeypatch):
    monkeypatch.setenv("DETENT_API_KEY", ROOT)
    with serving(server[0], ApiSettings(api_key=ROOT)) as url:
        shown = run("instance", "list", "--url", url)
        assert (shown.code, "--tenant" in shown.err) == (1, True)
        assert run("instance", "list", "--url", url, "--tenant", "default").code == 0


@pytest.mark.parametrize("name", sorted(every_command()))
def test_no_command_takes_the_key_on_its_command_line(name):
    shown = run(*name.split(), "--api-key", "s3cret-s3cret")
    assert shown.code == 2, shown
    assert "DETENT_API_KEY" in shown.err
    assert "s3cret" not in shown.err + shown.out
    assert "--api-key" not in run(*name.split(), "--help").out


def test_a_key_before_or_within_the_command_is_refused_as_well():
    for words in (("--api-key=s3cret", "worker"), ("instance", "--api-key", "s3cret", "list")):
        shown = run(*words, "-o", "json") if words[0] == "instance" else run(*words)
        assert (shown.code, "DETENT_API_KEY" in shown.err) == (2, True)
        assert "s3cret" not in shown.err + shown.out
