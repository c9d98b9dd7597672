"""Secrets at rest: sealed for one place, opened by any key that was ever in use."""

from __future__ import annotations

import base64

import pytest

from detent.bootstrap.vaults import vault_of
from detent.service.vault import Place, Safe, Vault, read_key
from tests.unit.service.shelf import KEY, SAFE, refusal

OTHER = bytes(range(1, 33))
PLACE = Place("credential", "acme", "mail")


@pytest.mark.req("SEQ-HND-5")
def test_what_is_sealed_is_opened_at_its_place_and_seen_nowhere():
    vault = Vault([KEY])
    sealed = vault.seal("s3cret-ü", PLACE)
    assert vault.open(sealed, PLACE) == "s3cret-ü"
    assert b"s3cret" not in sealed
    assert vault.seal("s3cret-ü", PLACE) != sealed  # never twice the same


@pytest.mark.parametrize(
    "place",
    [
        PLACE._replace(kind="trigger"),
        PLACE._replace(tenant="beta"),
        PLACE._replace(id="mail2"),
        PLACE._replace(field="refresh_token"),
        Place("credentialacme", "", "mail"),
    ],
)
def test_a_sealed_secret_that_was_moved_is_not_opened(place):
    vault = Vault([KEY])
    message = refusal("vault.broken", vault.open, vault.seal("s3cret", PLACE), place)
    assert "belongs elsewhere" in message
    assert "s3cret" not in message


def test_a_sealed_secret_that_was_changed_anywhere_is_not_opened():
    vault = Vault([KEY])
    sealed = vault.seal("s3cret", PLACE)
    for at in range(9, len(sealed)):
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        refusal("vault.broken", vault.open, changed, PLACE)
    for short in (b"", sealed[:5], sealed[:20]):
        refusal("vault.broken", vault.open, short, PLACE)


def test_an_old_key_opens_what_it_sealed_and_a_missing_one_is_named_by_its_id():
    sealed = Vault([KEY]).seal("s3cret", PLACE)
    rotated = Vault([OTHER, KEY])
    assert rotated.open(sealed, PLACE) == "s3cret"
    assert rotated.stale(sealed)
    assert not rotated.stale(rotated.seal("s3cret", PLACE))
    message = refusal("vault.locked", Vault([OTHER]).open, sealed, PLACE)
    assert sealed[1:9].hex() in message


def test_without_a_vault_nothing_is_sealed_or_opened():
    safe = Safe()
    message = refusal("vault.locked", safe.seal, "s3cret", PLACE)
    assert "configure a vault key" in message
    assert "s3cret" not in message
    refusal("vault.locked", safe.open, SAFE.seal("s3cret", PLACE), PLACE)
    assert safe.stale(b"x") is False


@pytest.mark.parametrize(
    "content",
    [
        KEY,
        KEY.hex().encode(),
        KEY.hex().upper().encode() + b"\n",
        base64.b64encode(OTHER),
        base64.urlsafe_b64encode(bytes([255] * 32)).rstrip(b"="),
    ],
)
def test_a_key_is_read_from_bytes_hex_and_base64(content):
    assert len(read_key(content)) == 32


@pytest.mark.parametrize(
    "content",
    [b"", b"short", KEY[:31], KEY + b"x", KEY.hex().encode()[:-1], b"\xff" * 40, b"%" * 44],
)
def test_what_is_no_key_is_none(content):
    assert read_key(content) is None


def test_the_settings_name_a_key_as_text_or_by_its_file(tmp_path):
    file = tmp_path / "vault.key"
    file.write_text(KEY.hex() + "\n")
    raw = tmp_path / "raw.key"
    raw.write_bytes(OTHER)
    sealed = vault_of(KEY.hex()).seal("s3cret", PLACE)
    assert vault_of(str(file)).open(sealed, PLACE) == "s3cret"
    assert vault_of(str(raw), [str(file)]).open(sealed, PLACE) == "s3cret"
    assert vault_of(None) is None
    assert KEY.hex() not in repr(vault_of(KEY.hex()))


def test_a_key_that_cannot_be_read_is_refused_without_being_told(tmp_path):
    mistyped = KEY.hex()[:-1]
    assert mistyped not in refusal("vault.key", vault_of, mistyped)
    wrong = tmp_path / "wrong.key"
    wrong.write_text("not a key")
    refusal("vault.key", vault_of, str(wrong))
    refusal("vault.key", vault_of, None, [KEY.hex()])
    refusal("vault.key", vault_of, "")
    refusal("vault.key", Vault, [])
    refusal("vault.key", Vault, [KEY] * 17)
    refusal("vault.key", Vault, ["0" * 32])
