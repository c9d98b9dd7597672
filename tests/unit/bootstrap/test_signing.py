"""Key files: what is read, what is refused and why, and that no part of a key gets out."""

from __future__ import annotations

import base64
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from detent.bootstrap.settings import check as check_settings
from detent.bootstrap.settings import settings_of
from detent.bootstrap.signing import read_check, read_signer, signer_of, write_keys
from detent.kernel.anchor import anchor_of
from detent.kernel.signature import anchor_message, join, seal_message, split
from detent.model import limits
from detent.model.errors import RequestError
from detent.runtime.settings import WriterSettings

DIGEST = bytes(range(32))
PEM = serialization.Encoding.PEM
PKCS8 = serialization.PrivateFormat.PKCS8
OPEN = serialization.NoEncryption()


@pytest.fixture
def key(tmp_path):
    """A key file with its public half beside it."""
    path = tmp_path / "seal.key"
    write_keys(path)
    return path


def public(path):
    return f"{path}.pub"


def refused(call, *arguments):
    with pytest.raises(RequestError) as caught:
        call(*arguments)
    return caught.value


def test_a_new_key_signs_what_its_public_half_accepts(key):
    signer, check = read_signer(key), read_check(public(key))
    signature = signer.sign(seal_message(DIGEST))
    assert check(signature, seal_message(DIGEST)) == ""
    assert len(signature) == 1 + 8 + 64
    assert signature[0] == 1
    assert split(signature).fingerprint == signer.fingerprint
    assert signature == read_signer(key).sign(seal_message(DIGEST))


def test_another_message_another_key_and_another_version_are_told_apart(key, tmp_path):
    check = read_check(public(key))
    signature = read_signer(key).sign(seal_message(DIGEST))
    name = read_signer(key).fingerprint.hex()
    assert check(signature, seal_message(bytes(32))) == f"a bad signature in the name of key {name}"
    changed = signature[:-1] + bytes([signature[-1] ^ 1])
    assert "bad signature" in check(changed, seal_message(DIGEST))
    other = write_keys(tmp_path / "other")
    said = check(other.sign(seal_message(DIGEST)), seal_message(DIGEST))
    assert said == f"a signature of another key, {other.fingerprint.hex()}"
    for no_signature in (b"\x02" + signature[1:], signature[:-1], signature + b"\x00", b"x"):
        assert "no signature of a known version" in check(no_signature, seal_message(DIGEST))


def test_a_fingerprint_put_on_anothers_signature_does_not_help(key, tmp_path):
    thief = write_keys(tmp_path / "thief").sign(seal_message(DIGEST))
    forged = join(read_signer(key).fingerprint, split(thief).proper)
    assert "bad signature" in read_check(public(key))(forged, seal_message(DIGEST))


def test_the_signature_of_a_seal_is_none_of_an_anchor_with_the_same_digest(key):
    anchor = anchor_of("store", 1, (0, bytes(32)), [])
    digest = bytes.fromhex(anchor.digest)
    check = read_check(public(key))
    signature = read_signer(key).sign(seal_message(digest))
    assert check(signature, seal_message(digest)) == ""
    assert "bad signature" in check(signature, anchor_message(anchor))


def test_any_of_several_public_keys_will_do(key, tmp_path):
    newer = write_keys(tmp_path / "newer")
    check = read_check([public(key), tmp_path / "newer.pub"])
    for signer in (read_signer(key), newer):
        assert check(signer.sign(b"m"), b"m") == ""
    for nothing in ([], (), 3, {}):
        assert refused(read_check, nothing).code == "request.invalid"


def test_a_key_may_also_be_its_32_bytes(tmp_path):
    made = Ed25519PrivateKey.generate()
    (tmp_path / "raw").write_bytes(made.private_bytes_raw())
    (tmp_path / "raw.pub").write_bytes(made.public_key().public_bytes_raw())
    signature = read_signer(str(tmp_path / "raw")).sign(b"m")
    assert read_check(tmp_path / "raw.pub")(signature, b"m") == ""


def test_a_private_key_is_for_its_owner_only(key):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"PRIVATE" not in (key.parent / "seal.key.pub").read_bytes()


@pytest.mark.parametrize("there", ["seal.key", "seal.key.pub"])
def test_nothing_is_overwritten_and_no_half_key_is_left(tmp_path, there):
    (tmp_path / there).write_text("mine")
    error = refused(write_keys, tmp_path / "seal.key")
    assert error.code == "file.exists"
    assert there in error.message
    assert [each.name for each in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_link_that_leads_nowhere_is_no_place_for_a_key(tmp_path):
    (tmp_path / "seal.key").symlink_to(tmp_path / "elsewhere")
    assert refused(write_keys, tmp_path / "seal.key").code == "file.exists"
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_that_is_not_there_is_told(tmp_path):
    error = refused(write_keys, tmp_path / "no" / "seal.key")
    assert error.code == "request.invalid"
    assert "No such file" in error.message


def pem_of(key, encryption=OPEN):
    return key.private_bytes(PEM, PKCS8, encryption)


def locked():
    return pem_of(Ed25519PrivateKey.generate(), serialization.BestAvailableEncryption(b"word"))


BAD = {
    "empty": (b"", "0 bytes"),
    "31 bytes": (bytes(31), "31 bytes"),
    "33 bytes": (bytes(33), "33 bytes"),
    "broken PEM": (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", ""),
    "another kind": (pem_of(generate_private_key(SECP256R1())), ""),
    "too large": (bytes(limits.KEY_FILE_BYTES + 1), "larger than 16,384"),
    "at the limit": (bytes(limits.KEY_FILE_BYTES), "16384 bytes of something else"),
}


@pytest.mark.parametrize("read", [read_signer, read_check])
@pytest.mark.parametrize("name", list(BAD))
def test_a_file_without_a_key_is_refused_with_what_to_do(tmp_path, read, name):
    body, says = BAD[name]
    path = tmp_path / "bad"
    path.write_bytes(body)
    error = refused(read, path)
    assert error.code == "request.invalid"
    assert str(path) in error.message
    assert says in error.message
    assert "detent audit keygen" in error.message


@pytest.mark.parametrize("read", [read_signer, read_check])
def test_a_missing_file_a_directory_and_no_path_are_refused(tmp_path, read):
    for path, says in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "Is a directory"),
        ("", "path"),
        ("a\x00b", "path"),
    ):
        error = refused(read, path)
        assert error.code == "request.invalid"
        assert says in error.message
    assert refused(read_signer, 3).code == "request.invalid"
    assert refused(read_check, [3]).code == "request.invalid"


def test_the_wrong_half_and_a_locked_key_are_told_as_what_they_are(key, tmp_path):
    assert "public half" in refused(read_signer, public(key)).message
    assert "private half" in refused(read_check, key).message
    (tmp_path / "locked").write_bytes(locked())
    assert "password" in refused(read_signer, tmp_path / "locked").message
    assert "private half" in refused(read_check, tmp_path / "locked").message


def test_no_error_and_no_text_of_a_signer_shows_the_key(key, tmp_path):
    secret = base64.b64encode(b"0123456789abcdef" * 3)
    (tmp_path / "bad").write_bytes(
        b"-----BEGIN PRIVATE KEY-----\n" + secret + b"\n-----END PRIVATE KEY-----\n"
    )
    error = refused(read_signer, tmp_path / "bad")
    assert secret.decode() not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__
    signer = read_signer(key)
    assert repr(signer) == f"SealSigner({signer.fingerprint.hex()})"
    with pytest.raises(TypeError):
        vars(signer)


def test_settings_carry_the_whole_path_of_the_key_and_refuse_a_bad_one(key, monkeypatch):
    monkeypatch.chdir(key.parent)
    for given in (key, str(key), key.name):
        assert check_settings(settings_of("s.db", {"seal_key": given})).seal_key == str(key)
    assert settings_of("s.db", {}).seal_key is None
    assert signer_of(None) is None
    for bad in ("", 3, b"seal.key", "a\x00b"):
        assert refused(settings_of, "s.db", {"seal_key": bad}).code == "request.invalid"
    missing = settings_of("s.db", {"seal_key": "none"})
    assert "No such file" in refused(check_settings, missing).message


def test_an_interval_between_seals_is_at_least_one_turn():
    for turns, good in ((1, True), (0, False)):
        made = settings_of("s.db", {"turns": WriterSettings(seal_every_turns=turns)})
        if good:
            assert check_settings(made) is made
        else:
            assert "seal_every_turns" in refused(check_settings, made).message
