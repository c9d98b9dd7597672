"""`detent credential reseal`: the key of a store is changed, beside a server or without one."""

from __future__ import annotations

import json
import os
import uuid

import pytest

from detent.bootstrap.server_settings import load_settings
from detent.cli.serving import open_engine
from detent.service.handing_out import secret_of
from detent.service.vault import Vault
from tests.integration.web.house import VAULT, house
from tests.unit.cli.commands import detent as run
from tests.unit.cli.commands import process

NEW, OTHER = "a1" * 32, "b2" * 32
NAME = {key: Vault([bytes.fromhex(key)]).keys[0] for key in (VAULT, NEW, OTHER)}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A store with secrets of every kind, sealed with the first key."""
    for name in [name for name in os.environ if name.startswith("DETENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.db"
    with house(path) as server:
        for n in range(3):
            body = {"id": f"c{n}", "name": "n", "value": f"s3cret-{n}"}
            made = server.post("/credentials", body, headers={"idempotency-key": uuid.uuid4().hex})
            assert made.status_code == 201, made.text
        name = server.get(f"/sequences/{server.sequence()}").json()["name"]
        hook = {"slug": "hook", "sequence_name": name, "tenant_id": "acme", "secret": "s3cret-hook"}
        assert server.post("/triggers", hook).status_code == 201
    return path


@pytest.fixture
def keys(monkeypatch):
    """Set the keys of the environment."""

    def put(key, *old):
        monkeypatch.setenv("DETENT_ENCRYPTION_KEY", key)
        monkeypatch.setenv("DETENT_ENCRYPTION_KEYS_OLD", ",".join(old))

    return put


def reseal(path, *words):
    return run("credential", "reseal", "--db", path, *words)


def value(path, key, id="c1"):
    """What a server with this key alone hands out."""
    settings = load_settings({"db": str(path), "writer": "thread"}, {"DETENT_ENCRYPTION_KEY": key})
    with open_engine(settings, [], None) as engine:
        parts = engine._parts
        return parts.read(lambda store: secret_of(store, parts.safe, "acme", id, parts.now_ms()))


def stored(path):
    """The records as they are on the disk."""
    import apsw

    with apsw.Connection(str(path)) as connection:
        return list(connection.execute("SELECT kind, id, body, rev FROM record ORDER BY n"))


def test_every_secret_is_sealed_again_and_the_old_key_is_not_needed_any_more(kept, keys):
    keys(NEW, VAULT)
    counted = reseal(kept, "--dry-run", "-o", "json")
    expected = {"credentials": 3, "triggers": 1, "answers": 3, "targets": 0, "damaged": []}
    told = {"key": NAME[NEW], "total": 7, **expected}
    assert (counted.code, counted.json) == (0, {**told, "dry_run": True})
    assert value(kept, VAULT) == "s3cret-1"
    done = reseal(kept, "-o", "json")
    assert (done.code, done.json) == (0, {**told, "dry_run": False})
    again = reseal(kept)
    assert (again.code, "nothing sealed again" in again.out) == (0, True)
    keys(NEW)
    assert reseal(kept, "--dry-run", "-o", "json").json["total"] == 0
    assert [value(kept, NEW, f"c{n}") for n in range(3)] == ["s3cret-0", "s3cret-1", "s3cret-2"]
    for shown in (counted, done, again):
        assert "s3cret" not in shown.out + shown.err
        assert NEW not in shown.out + shown.err


def test_what_was_sealed_is_said_to_people(kept, keys):
    keys(NEW, VAULT)
    assert "3 credentials, 1 trigger, 3 kept answers to be sealed" in reseal(kept, "--dry-run").out
    shown = reseal(kept).out
    assert f"3 credentials, 1 trigger, 3 kept answers sealed again with key {NAME[NEW]}" in shown
    assert "no stored secret needs an old key" in shown


@pytest.mark.parametrize("old", [(), (OTHER,)], ids=["none", "another"])
def test_a_wrong_old_key_is_told_by_name_and_nothing_is_written(kept, keys, old):
    before = stored(kept)
    keys(NEW, *old)
    refused = reseal(kept)
    assert (refused.code, "vault.locked" in refused.err) == (5, True)
    assert NAME[VAULT] in refused.err
    assert "nothing was changed" in refused.err
    for secret in ("s3cret", NEW, OTHER, VAULT):
        assert secret not in refused.out + refused.err
    assert stored(kept) == before
    assert value(kept, VAULT) == "s3cret-1"


@pytest.mark.parametrize(
    ("key", "old", "words"),
    [
        ("", "", "DETENT_ENCRYPTION_KEY"),
        ("", VAULT, "encryption_key"),
        ("too-short", VAULT, "32 bytes"),
        (NEW, "no-key-and-no-file", "32 bytes"),
        (NEW, f"{VAULT},,nowhere.key", "no file of that name"),
    ],
    ids=["none", "old ones only", "too short", "no key", "no file"],
)
def test_keys_that_are_none_are_refused_and_not_told(kept, monkeypatch, key, old, words):
    before = stored(kept)
    monkeypatch.setenv("DETENT_ENCRYPTION_KEY", key)
    monkeypatch.setenv("DETENT_ENCRYPTION_KEYS_OLD", old)
    refused = reseal(kept)
    assert (refused.code, "vault.key" in refused.err) == (5, True), refused
    assert words in refused.err
    for secret in filter(None, (key, *old.split(","))):
        assert secret not in refused.err
    assert stored(kept) == before


def test_keys_come_from_files_and_from_detent_toml_too(kept, monkeypatch):
    (kept.parent / "new.key").write_text(NEW + "\n")
    (kept.parent / "old.key").write_bytes(bytes.fromhex(VAULT))
    told = 'encryption_key_file = "new.key"\nencryption_keys_old = ["old.key"]\n'
    (kept.parent / "other.toml").write_text(told)
    done = reseal(kept, "--config", "other.toml", "-o", "json")
    assert (done.code, done.json["total"]) == (0, 7)
    assert value(kept, NEW) == "s3cret-1"


def test_a_server_without_the_new_key_keeps_its_secrets_until_it_has_it(kept, keys):
    keys(NEW, VAULT)
    before = stored(kept)
    with house(kept) as server:
        refused = reseal(kept)
        assert (refused.code, "vault.locked" in refused.err) == (5, True)
        assert str(os.getpid()) in refused.err
        assert NAME[NEW] in refused.err
        assert server.post("/triggers/hook/fire", {}).status_code == 401  # its secret opens
    assert stored(kept) == before
    with house(kept, vault_key=NEW, vault_old_keys=(VAULT,)) as server:
        assert server.post("/triggers/hook/fire", {}).status_code == 401
        assert process("credential", "reseal", "--db", kept, cwd=kept.parent).code == 0
        assert server.post("/triggers/hook/fire", {}).status_code == 401
        made = server.post("/credentials", {"id": "later", "name": "n", "value": "s3cret-9"})
        assert made.status_code == 201
        assert reseal(kept, "--dry-run", "-o", "json").json["total"] == 0
    assert value(kept, NEW, "later") == "s3cret-9"


def test_a_damaged_secret_is_named_and_the_answer_is_no(kept, keys):
    import apsw

    with apsw.Connection(str(kept)) as connection:
        connection.execute(
            "UPDATE record SET body = (SELECT body FROM record WHERE id = 'c0') WHERE id = 'c1'"
        )
    keys(NEW, VAULT)
    shown = reseal(kept, "-o", "json")
    assert (shown.code, shown.json["damaged"]) == (1, ["credential 'c1'"])
    assert "damaged: credential 'c1'" in shown.err
    assert value(kept, NEW, "c2") == "s3cret-2"


def test_a_store_that_is_not_there_is_not_made(tmp_path, keys):
    keys(NEW)
    assert reseal(tmp_path / "none.db").code == 5
    assert not (tmp_path / "none.db").exists()


def test_a_server_opens_with_old_keys_and_seals_with_the_present_one(kept):
    environment = {"DETENT_ENCRYPTION_KEY": NEW, "DETENT_ENCRYPTION_KEYS_OLD": f"{OTHER}, {VAULT}"}
    settings = load_settings({"db": str(kept), "writer": "thread"}, environment)
    with open_engine(settings, [], None) as engine:
        parts = engine._parts
        assert parts.safe.vault.keys == (NAME[NEW], NAME[OTHER], NAME[VAULT])
        assert parts.read(lambda s: secret_of(s, parts.safe, "acme", "c1", 0)) == "s3cret-1"
    assert json.dumps(settings.encryption_keys_old) == json.dumps([OTHER, VAULT])
