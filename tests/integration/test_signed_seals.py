"""Signed seals and anchors: a store that was made anew without the key is found out."""

from __future__ import annotations

import logging
import shutil

import apsw
import msgspec
import pytest

from detent import Engine, sequence, step, wait
from detent.bootstrap.signing import read_check, read_signer, write_keys
from detent.bootstrap.stores import open_reader
from detent.kernel.anchor import anchor_digest, read_anchor, with_signature
from detent.kernel.chain import GENESIS, seal_of
from detent.kernel.signature import split
from detent.model import limits
from detent.model.errors import RequestError
from detent.runtime.settings import WriterSettings
from detent.service.proving import verify_store
from detent.testing.tampering import tamper, tamper_signatures
from tests.unit.cli.commands import detent, process

OFTEN = WriterSettings(seal_every_turns=3)
DOOR = sequence("door", wait("w", signal="go"), step("end", "noop"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    write_keys(directory / "one")
    write_keys(directory / "two")
    return directory


@pytest.fixture(scope="module")
def signed(keys, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "signed.db"
    work(path, keys / "one")
    return path


@pytest.fixture
def store(signed, tmp_path):
    return shutil.copy(signed, tmp_path / "copy.db")


def virtual(path, key=None, **settings):
    return Engine(path, clock="virtual", seed="seals", seal_key=key, turns=OFTEN, **settings)


def work(path, key=None, instances=10):
    """Take enough turns for some seals; each instance takes two."""
    with virtual(path, key) as engine:
        for _ in range(instances):
            engine.signal(engine.start(DOOR), "go")
        engine.run_until_idle()


def seals(path):
    store = open_reader(path)
    try:
        return store.seals(0, 1_000)
    finally:
        store.close()


def verified(path, *public, anchor=None):
    with virtual(path) as engine:
        return engine.inspect.verify(anchor, public_key=list(public) or None)


def anchored(path, key=None):
    with virtual(path) as engine:
        return engine.inspect.anchor(key=key)


def write(path, sql, *values):
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def name_of(key):
    return read_signer(key).fingerprint.hex()


# seals -------------------------------------------------------------------------------------------


@pytest.mark.req("CORE-AUD-1")
def test_every_seal_is_signed_and_the_public_key_proves_it(store, keys):
    made = seals(store)
    assert len(made) >= 6
    fingerprint = read_signer(keys / "one").fingerprint
    assert all(split(seal.signature).fingerprint == fingerprint for seal in made)
    found = verified(store, keys / "one.pub")
    assert found.valid
    told = found.signatures
    assert (told.checked, told.signed, told.since) == (True, len(made), 1)
    assert told.keys == (fingerprint.hex(),)
    assert 0 <= found.unsealed < OFTEN.seal_every_turns


def test_without_a_public_key_signatures_are_counted_and_not_checked(store, keys):
    found = verified(store)
    assert found.valid
    assert not found.signatures.checked
    assert found.signatures.signed == found.seals
    write(store, "UPDATE seal SET signature = zeroblob(73)")
    assert verified(store).valid
    assert verified(store).signatures.keys == ("unknown",)


def test_the_digests_are_the_same_with_and_without_a_key(signed, tmp_path):
    """What is signed stands beside the chain and is no part of it."""
    work(tmp_path / "plain.db")
    plain = seals(tmp_path / "plain.db")
    assert [seal[:4] for seal in plain] == [seal[:4] for seal in seals(signed)]
    assert all(seal.signature == b"" for seal in plain)


@pytest.mark.req("CORE-AUD-3")
@pytest.mark.parametrize("at", [0, 1, 8, 9, 40, 72])
def test_a_changed_byte_of_a_signature_is_found(store, keys, at):
    signature = bytearray(seals(store)[2].signature)
    signature[at] ^= 1
    write(store, "UPDATE seal SET signature = ? WHERE n = 3", bytes(signature))
    assert verified(store).valid
    found = verified(store, keys / "one.pub")
    assert (found.valid, found.broken.where, found.broken.what) == (False, "seal 3", "signature")
    kinds = {0: "known version", 1: "another key", 8: "another key"}
    assert kinds.get(at, "bad signature") in found.broken.found


@pytest.mark.req("CORE-AUD-1", "CORE-AUD-3")
def test_a_chain_of_seals_made_anew_without_the_key_is_found(store, keys):
    """The intruder changes a seal and computes every later digest again: the chain is whole."""
    digest = GENESIS
    for seal in seals(store):
        tick = seal.tick + (seal.n >= 3)
        digest = seal_of(digest, seal.n, tick, [seal.roots])
        write(store, "UPDATE seal SET tick = ?, digest = ? WHERE n = ?", tick, digest, seal.n)
    assert verified(store).valid
    broken = verified(store, keys / "one.pub").broken
    assert (broken.where, broken.what) == ("seal 3", "signature")
    assert "bad signature" in broken.found


def test_another_key_is_named(store, keys):
    broken = verified(store, keys / "two.pub").broken
    assert broken.where == "seal 1"
    assert broken.found == f"a signature of another key, {name_of(keys / 'one')}"


@pytest.mark.parametrize("which", ["n = 4", "n >= 4", "n > 0"])
def test_a_removed_signature_is_found(store, keys, which):
    write(store, f"UPDATE seal SET signature = x'' WHERE {which}")
    assert verified(store).valid
    broken = verified(store, keys / "one.pub").broken
    assert (broken.what, broken.found) == ("signature", "unsigned")


def test_a_signature_removed_at_the_front_takes_no_proof_away(store, keys):
    """Every later signature covers the seals before it: a change there is found all the same."""
    write(store, "UPDATE seal SET signature = x'' WHERE n <= 2")
    found = verified(store, keys / "one.pub")
    assert found.valid
    assert found.signatures.since == 3
    digest = GENESIS
    for seal in seals(store):
        tick = seal.tick + (seal.n == 1)
        digest = seal_of(digest, seal.n, tick, [seal.roots])
        write(store, "UPDATE seal SET tick = ?, digest = ? WHERE n = ?", tick, digest, seal.n)
    assert verified(store).valid
    assert verified(store, keys / "one.pub").broken.where == "seal 3"


@pytest.mark.req("CORE-AUD-3")
@pytest.mark.parametrize("part", range(4))
def test_any_random_harm_to_a_signed_store_is_found(signed, keys, tmp_path, part):
    path = tmp_path / "harmed.db"
    for seed in range(part * 10, part * 10 + 10):
        for harm in (tamper, tamper_signatures):
            shutil.copy(signed, path)
            what = harm(path, seed)
            store = open_reader(path)
            found = verify_store(store, None, read_check(keys / "one.pub"))
            store.close()
            assert not found.valid, what


# keys come, change and go ------------------------------------------------------------------------


def test_a_store_may_begin_without_a_key(tmp_path, keys):
    path = tmp_path / "s.db"
    work(path)
    unsigned = len(seals(path))
    broken = verified(path, keys / "one.pub").broken
    assert (broken.what, broken.found) == ("signature", "unsigned")
    work(path, keys / "one")
    found = verified(path, keys / "one.pub")
    assert found.valid
    assert found.signatures.since == unsigned + 1
    assert found.signatures.signed == found.seals - unsigned


def test_a_key_can_be_changed_and_both_public_keys_prove_the_store(store, keys):
    before = len(seals(store))
    work(store, keys / "two")
    after = seals(store)
    names = [split(seal.signature).fingerprint.hex() for seal in after]
    one, two = name_of(keys / "one"), name_of(keys / "two")
    assert names == [one] * before + [two] * (len(after) - before)
    found = verified(store, keys / "one.pub", keys / "two.pub")
    assert found.valid
    assert found.signatures.keys == (one, two)
    assert verified(store, keys / "one.pub").broken.where == f"seal {before + 1}"
    assert verified(store, keys / "two.pub").broken.where == "seal 1"


def test_an_engine_without_the_key_makes_no_seal_and_says_so_once(store, keys, caplog):
    before = seals(store)
    with caplog.at_level(logging.WARNING, "detent.runtime"):
        work(store)
    assert seals(store) == before
    told = [record.getMessage() for record in caplog.records]
    assert len([each for each in told if "no key is set" in each]) == 1
    found = verified(store, keys / "one.pub")
    assert found.valid
    assert found.unsealed >= 2 * OFTEN.seal_every_turns
    work(store, keys / "one")
    found = verified(store, keys / "one.pub")
    assert found.valid
    assert found.seals > len(before)
    assert found.unsealed < OFTEN.seal_every_turns


@pytest.mark.parametrize("place", ["thread", "process"])
def test_a_running_writer_signs_in_a_thread_and_in_a_process(tmp_path, keys, place):
    path = tmp_path / "s.db"
    with Engine(path, writer=place, seal_key=keys / "one", turns=OFTEN) as engine:
        for _ in range(4):
            instance = engine.start(DOOR)
            engine.signal(instance, "go")
            engine.wait_for(instance)
        found = engine.inspect.verify(public_key=keys / "one.pub")
    assert found.valid, found.broken
    assert found.signatures.signed == found.seals >= 2


@pytest.mark.parametrize("clock", ["virtual", "thread", "process"])
def test_a_key_that_cannot_be_used_opens_no_engine_and_makes_no_store(tmp_path, clock):
    how = {"clock": "virtual"} if clock == "virtual" else {"writer": clock}
    (tmp_path / "bad").write_text("no key")
    for key, says in ((tmp_path / "none", "No such file"), (tmp_path / "bad", "6 bytes")):
        with pytest.raises(RequestError) as caught:
            Engine(tmp_path / "s.db", seal_key=key, **how)
        assert caught.value.code == "request.invalid"
        assert says in caught.value.message
        assert "detent audit keygen" in caught.value.message
    assert [each.name for each in tmp_path.iterdir()] == ["bad"]


def test_no_part_of_the_private_key_is_stored_or_sent_to_the_writer(tmp_path, keys):
    path = tmp_path / "s.db"
    work(path, keys / "one")
    secret = (keys / "one").read_bytes().splitlines()[1]
    raw = read_signer(keys / "one")._key.private_bytes_raw()
    stored = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert read_signer(keys / "one").fingerprint in stored
    with virtual(path, keys / "one") as engine:
        sent = msgspec.json.encode(engine._settings)
    assert str(keys / "one").encode() in sent
    for text in (stored, sent):
        assert secret not in text
        assert raw not in text
        assert raw.hex().encode() not in text


# anchors -----------------------------------------------------------------------------------------


def test_a_signed_anchor_travels_as_json_and_is_proved(store, keys):
    anchor = read_anchor(msgspec.json.encode(anchored(store, keys / "one")))
    assert anchor.digest == anchored(store).digest
    work(store, keys / "one")
    found = verified(store, keys / "one.pub", anchor=anchor)
    assert found.valid
    assert found.signatures.anchor == name_of(keys / "one")
    found = verified(store, anchor=anchor)
    assert found.valid
    assert not found.signatures.checked


def test_an_anchor_that_was_changed_and_digested_anew_is_found(store, keys):
    anchor = anchored(store, keys / "one")
    roots = tuple(msgspec.structs.replace(root, turn=0, root="00" * 32) for root in anchor.roots)
    assert roots != anchor.roots
    changed = msgspec.structs.replace(anchor, roots=roots)
    changed = msgspec.structs.replace(changed, digest=anchor_digest(changed))
    assert read_anchor(msgspec.json.encode(changed)) == changed
    assert verified(store, anchor=changed).valid
    broken = verified(store, keys / "one.pub", anchor=changed).broken
    assert (broken.where, broken.what) == ("anchor", "signature")
    assert "bad signature" in broken.found


def test_an_anchor_unsigned_or_of_another_key_is_not_taken_for_signed(store, keys):
    unsigned, other = anchored(store), anchored(store, keys / "two")
    for anchor, says in (
        (unsigned, "unsigned"),
        (other, f"a signature of another key, {name_of(keys / 'two')}"),
        (msgspec.structs.replace(other, signature="no hex"), "1 bytes that are no signature"),
        (with_signature(unsigned, seals(store)[-1].signature), "bad signature"),
    ):
        broken = verified(store, keys / "one.pub", anchor=anchor).broken
        assert (broken.where, broken.what) == ("anchor", "signature")
        assert says in broken.found
    assert verified(store, anchor=unsigned).valid
    assert verified(store, keys / "one.pub", keys / "two.pub", anchor=other).valid


def test_seals_cut_off_with_their_turns_are_found_against_a_signed_anchor(tmp_path, keys):
    path, old = tmp_path / "s.db", tmp_path / "old.db"
    work(path, keys / "one")
    shutil.copy(path, old)
    work(path, keys / "one")
    anchor = anchored(path, keys / "one")
    assert verified(old, keys / "one.pub").valid
    assert verified(old, keys / "one.pub", anchor=anchor).broken.what == "seal"


@pytest.mark.parametrize("seal", [-1, -1_000, 10**30])
def test_an_anchor_with_an_absurd_number_is_a_finding_and_no_crash(store, seal):
    anchor = msgspec.structs.replace(anchored(store), seal=seal)
    assert verified(store, anchor=anchor).broken.what == "seal"
    odd = msgspec.structs.replace(anchor.roots[0], root="no hex")
    anchor = msgspec.structs.replace(anchored(store), roots=(odd,))
    assert verified(store, anchor=anchor).broken.what == "root"


# the command line --------------------------------------------------------------------------------


@pytest.mark.req("CORE-AUD-1")
def test_the_command_line_makes_keys_signs_anchors_and_tells_what_is_signed(store, keys, tmp_path):
    key, kept = tmp_path / "audit.key", tmp_path / "anchor.json"
    made = detent("audit", "keygen", key, "-o", "json")
    assert made.json["fingerprint"] == name_of(key)
    assert detent("audit", "keygen", key).code == 4
    assert detent("audit", "anchor", "--db", store, "--key", key, "--to", kept).code == 0

    shown = detent("audit", "verify", "--db", store, "--anchor", kept)
    assert shown.code == 0
    assert "not checked, give --public-key" in shown.out.replace("\n", " ")
    both = ("--public-key", f"{key}.pub", "--public-key", keys / "one.pub")
    shown = detent("audit", "verify", "--db", store, "--anchor", kept, *both)
    assert shown.code == 0
    assert f"signed by {name_of(key)}" in shown.out
    assert name_of(keys / "one") in shown.out

    shown = detent("audit", "verify", "--db", store, "--public-key", f"{key}.pub")
    assert shown.code == 1
    assert "another key" in shown.out
    shown = detent("audit", "verify", "--db", store, "--public-key", key)
    assert shown.code == 1
    assert "private half" in shown.err


def test_the_command_line_takes_its_key_from_the_environment(store, keys, tmp_path):
    named = {"DETENT_SEAL_KEY_FILE": str(keys / "one")}
    kept = tmp_path / "anchor.json"
    assert process("audit", "anchor", "--db", store, "--to", kept, **named).code == 0
    assert read_anchor(kept.read_bytes()).signature
    assert process("audit", "anchor", "--db", store, DETENT_SEAL_KEY_FILE="").code == 0
    file = tmp_path / "door.yaml"
    file.write_text("name: nod\nversion: 1\nblocks:\n  - {type: step, id: a, handler: noop}\n")
    run = ("run", file, "--db", store, "--virtual")
    assert process(*run, **named).code == 0
    refused = process(*run, DETENT_SEAL_KEY_FILE=str(tmp_path / "none"))
    assert refused.code == 1
    assert "[request.invalid]" in refused.err


def test_a_command_that_works_on_the_store_itself_signs_too(tmp_path, keys, monkeypatch):
    """Nobody owns the store, so each signal is taken in here; one of them fills the interval."""
    path = tmp_path / "s.db"
    with Engine(path, clock="virtual", seed="seals") as engine:
        waiting = [engine.start(DOOR) for _ in range(limits.SEAL_EVERY_TURNS - 1)]
        assert sum(root.turn for root in engine.inspect.anchor().roots) == len(waiting)
    assert seals(path) == []
    monkeypatch.setenv("DETENT_SEAL_KEY_FILE", str(keys / "one"))
    assert detent("instance", "signal", "--db", path, waiting[0], "go").code == 0
    assert [split(seal.signature).fingerprint.hex() for seal in seals(path)] == [
        name_of(keys / "one")
    ]
    assert verified(path, keys / "one.pub").valid
