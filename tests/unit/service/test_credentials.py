"""Credentials: made, listed, changed and removed, with their secrets never shown."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from detent.handlers.secrets import hide
from detent.model import limits
from detent.model.errors import RequestError
from detent.ports.records import RecordQuery
from detent.service.credentials import (
    CredentialPatch,
    NewCredential,
    create_credential,
    delete_credential,
    get_credential,
    list_credentials,
    patch_credential,
)
from detent.service.handing_out import StoredSecrets, resolve_params, secret_of
from detent.service.vault import Safe
from tests.unit.service.shelf import NO_VAULT, NOW, SAFE, a_store, refusal

pytestmark = pytest.mark.req("SEQ-HND-5")

SOON = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
OAUTH = {
    "kind": "oauth2",
    "refresh_url": "https://auth.example.com/token",
    "refresh_token": "r3fresh",
    "expires_at": SOON,
}


@pytest.fixture
def store():
    store = a_store()
    yield store
    store.close()


def create(store, id="mail", tenant="acme", safe=SAFE, now_ms=NOW, **fields):
    new = NewCredential(**{"id": id, "name": "Mail", "value": "s3cret", **fields})
    return create_credential(store, safe, tenant, new, now_ms)


def patch(store, id="mail", tenant="acme", safe=SAFE, now_ms=NOW + 1_000, **fields):
    return patch_credential(store, safe, tenant, id, CredentialPatch(**fields), now_ms)


def test_a_credential_is_made_and_shown_without_its_secrets(store):
    made = create(store, description="to send", **OAUTH)
    assert get_credential(store, "acme", "mail") == made
    wire = msgspec.json.decode(msgspec.json.encode(made))
    assert wire == {
        "id": "mail",
        "tenant_id": "acme",
        "name": "Mail",
        "kind": "oauth2",
        "enabled": True,
        "has_refresh_token": True,
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
        "refresh_url": "https://auth.example.com/token",
        "description": "to send",
    }
    plain = msgspec.json.decode(msgspec.json.encode(create(store, "plain")))
    assert not {"expires_at", "refresh_url", "description", "value"} & set(plain)
    assert (plain["kind"], plain["has_refresh_token"]) == ("api_key", False)


def test_neither_the_store_nor_a_printed_request_holds_the_secret(store):
    create(store, **OAUTH)
    body = store.record("credential", "mail").body
    assert b"s3cret" not in body
    assert b"r3fresh" not in body
    new = NewCredential(id="a", name="b", value="s3cret", refresh_token="r3fresh")
    edit = CredentialPatch(value="s3cret")
    assert "s3cret" not in repr(new) + repr(edit)
    assert "r3fresh" not in repr(new)


@pytest.mark.parametrize("field", ["id", "name", "value"])
def test_an_empty_id_name_or_value_is_refused(store, field):
    refusal("credential.invalid", create, store, **{field: ""})
    assert store.records(RecordQuery("credential")) == []


@pytest.mark.parametrize("id", ["x" * 256, "a b", "a/b", "a:b", "ümlaut", "a\n", "a\x00"])
def test_an_id_that_is_too_long_or_has_other_signs_is_refused(store, id):
    refusal("credential.invalid", create, store, id)


def test_an_id_may_have_255_letters_digits_dots_dashes_and_underscores(store):
    assert create(store, "aZ9._-" + "x" * 249).id.startswith("aZ9")


def test_oauth2_with_an_address_to_refresh_at_needs_a_refresh_token(store):
    fields = {**OAUTH, "refresh_token": None}
    assert "refresh_token" in refusal("credential.invalid", create, store, **fields)
    create(store, "no-address", kind="oauth2")
    refusal("credential.invalid", patch, store, "no-address", refresh_url=OAUTH["refresh_url"])
    create(store, "both", **OAUTH)
    refusal("credential.invalid", patch, store, "both", refresh_token=None)
    assert get_credential(store, "acme", "both").has_refresh_token


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/t",
        "http://127.1/t",
        "http://2130706433/t",
        "http://10.0.0.8:8080/t",
        "https://192.168.1.1/t",
        "http://169.254.169.254/latest",
        "http://[::1]/t",
        "http://[::ffff:10.0.0.1]/t",
        "http://localhost/t",
        "http://LOCALHOST./t",
        "http://db.internal/t",
        "http://metadata/t",
        "ftp://example.com/t",
        "https://",
        "no address",
        "https://me:pw@example.com/",
        "https://example.com:99999/",
        "https://[::1/",
        "https://example.com/" + "x" * limits.URL_CHARS,
    ],
)
def test_an_address_that_is_private_or_none_is_refused(store, url):
    refusal("credential.invalid", create, store, **{**OAUTH, "refresh_url": url})


def test_a_private_address_is_taken_where_the_operator_allows_it(store):
    allowed = Safe(SAFE.vault, internal_urls=True)
    url = "http://127.0.0.1:9000/token"
    assert create(store, safe=allowed, **{**OAUTH, "refresh_url": url}).refresh_url == url


def test_a_value_over_256_kib_is_too_large_and_one_of_256_kib_is_not(store):
    most = limits.CREDENTIAL_BYTES
    message = refusal("payload.too_large", create, store, value="ü" * (most // 2) + "x")
    assert "üü" not in message
    create(store, value="x" * most)
    refusal("payload.too_large", patch, store, value="x" * (most + 1))


def test_an_id_is_taken_whoever_has_it(store):
    create(store)
    refusal("credential.exists", create, store)
    refusal("credential.exists", create, store, tenant="beta")
    assert secret_of(store, SAFE, "acme", "mail", NOW) == "s3cret"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("kind", "password"),
        ("name", "x" * 256),
        ("description", "x" * 2_001),
        ("expires_at", dt.datetime(2026, 1, 1)),  # noqa: DTZ001 - the case
        ("value", "a\x00b"),
        ("value", "\ud800"),
        ("refresh_token", ""),
    ],
)
def test_a_field_that_is_wrong_is_refused(store, field, wrong):
    message = refusal("credential.invalid", create, store, **{field: wrong})
    assert "a\x00b" not in message


def test_an_unknown_kind_or_a_missing_field_does_not_decode():
    for body in (b'{"id":"a","name":"b"}', b'{"id":"a","name":"b","value":"v","kind":"x"}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(body, type=NewCredential)


def test_without_a_vault_no_credential_is_made_and_the_reason_is_told(store):
    assert "vault key" in refusal("vault.locked", create, store, safe=NO_VAULT)
    assert store.records(RecordQuery("credential")) == []


def test_a_tenant_lists_its_own_and_the_global_ones(store):
    create(store, "own")
    create(store, "foreign", tenant="beta")
    create(store, "all", tenant=None)
    assert [each.id for each in list_credentials(store, "acme")] == ["own", "all"]
    assert [each.id for each in list_credentials(store, "gamma")] == ["all"]
    assert [each.id for each in list_credentials(store, None)] == ["own", "foreign", "all"]
    assert [each.id for each in list_credentials(store, None, 2)] == ["own", "foreign"]
    refusal("request.invalid", list_credentials, store, "acme", 0)
    refusal("request.invalid", list_credentials, store, "")


def test_a_tenant_sees_no_other_tenants_and_changes_no_global_one(store):
    create(store, "foreign", tenant="beta")
    create(store, "all", tenant=None)
    refusal("credential.not_found", get_credential, store, "acme", "foreign")
    assert get_credential(store, "acme", "all").tenant_id == ""
    assert get_credential(store, None, "foreign").tenant_id == "beta"
    for id in ("foreign", "all", "nothing", "a\x00b"):
        refusal("credential.not_found", patch, store, id, name="mine")
        refusal("credential.not_found", delete_credential, store, "acme", id)
    assert len(list_credentials(store, None)) == 2
    refusal("tenant.foreign", create, store, "x", tenant="acme", tenant_id="beta")
    assert create(store, "x", tenant=None, tenant_id="beta").tenant_id == "beta"


def test_a_patch_changes_what_it_names_and_null_takes_away(store):
    create(store, description="old", **OAUTH)
    changed = patch(store, name="Post", value="n3w", description=None, enabled=False)
    assert (changed.name, changed.description, changed.enabled) == ("Post", None, False)
    assert (changed.kind, changed.expires_at) == ("oauth2", SOON)
    assert changed.updated_at > changed.created_at
    assert patch(store, enabled=True).enabled
    assert secret_of(store, SAFE, "acme", "mail", NOW) == "n3w"
    cleared = patch(store, refresh_url=None, refresh_token=None, expires_at=None)
    assert (cleared.refresh_url, cleared.has_refresh_token, cleared.expires_at) == (
        None,
        False,
        None,
    )


@pytest.mark.parametrize("field", [{"name": ""}, {"value": ""}, {"kind": "x"}, {"enabled": "yes"}])
def test_a_patch_that_is_wrong_changes_nothing(store, field):
    create(store)
    before = store.record("credential", "mail")
    refusal("credential.invalid", patch, store, **field)
    assert store.record("credential", "mail") == before


def test_a_patch_without_a_secret_needs_no_vault(store):
    create(store)
    assert patch(store, safe=NO_VAULT, name="Post").name == "Post"
    refusal("vault.locked", patch, store, safe=NO_VAULT, value="n3w")


def test_a_deleted_credential_is_gone(store):
    create(store)
    delete_credential(store, "acme", "mail")
    refusal("credential.not_found", delete_credential, store, "acme", "mail")
    refusal("credential.unusable", secret_of, store, SAFE, "acme", "mail", NOW)


def test_a_handler_gets_its_tenants_and_the_global_secrets_and_no_other(store):
    create(store, "own")
    create(store, "all", tenant=None, value="gl0bal")
    create(store, "foreign", tenant="beta")
    secrets = StoredSecrets(lambda use: use(store), SAFE, lambda: NOW, never)
    assert secrets.value("own", "acme") == "s3cret"
    assert secrets.value("all", "acme") == "gl0bal"
    unknown = refusal("credential.unusable", secrets.value, "nothing", "acme")
    foreign = refusal("credential.unusable", secrets.value, "foreign", "acme")
    assert foreign.replace("foreign", "nothing") == unknown  # nobody learns that it exists


def never(id):
    raise AssertionError(id)


def test_only_a_token_that_can_be_refreshed_is_named_when_its_time_is_over(store):
    past = dt.datetime.fromtimestamp(NOW / 1000 - 1, dt.UTC)
    create(store, "plain", expires_at=past)
    oauth = {"kind": "oauth2", "refresh_url": "https://auth.example.com/", "refresh_token": "r"}
    create(store, "token", expires_at=past, **oauth)
    create(store, "off", expires_at=past, **oauth)
    patch(store, "off", enabled=False)
    secrets = StoredSecrets(lambda use: use(store), SAFE, lambda: NOW, never)
    told = {}
    for id, tenant in (("plain", "acme"), ("off", "acme"), ("token", "beta"), ("token", "acme")):
        with pytest.raises(RequestError) as found:
            secrets.value(id, tenant)
        assert found.value.code == "credential.unusable"
        told[id, tenant] = found.value.details
    assert told.pop(("token", "acme")) == {"again": True, "credential": "token"}
    assert set(map(str, told.values())) == {"{}"}


def test_a_worker_gets_params_with_the_values_in_them(store):
    create(store, value='{"user": "robert", "password": "pa55word"}')
    params = {"to": "x", "login": "credentials://mail", "again": ["credentials://mail/user"]}
    found = resolve_params(store, SAFE, "acme", params, NOW)
    assert found.params == {
        "to": "x",
        "login": {"user": "robert", "password": "pa55word"},
        "again": ["robert"],
    }
    assert hide({"said": "robert: pa55word"}, found.secrets) == {"said": "[REDACTED]: [REDACTED]"}
    refusal("credential.unusable", resolve_params, store, SAFE, "beta", params, NOW)


def test_a_disabled_or_expired_credential_is_not_handed_out(store):
    create(store, "off")
    patch(store, "off", enabled=False)
    assert "disabled" in refusal("credential.unusable", secret_of, store, SAFE, "acme", "off", NOW)
    create(store, "old", expires_at=SOON)
    at = int(SOON.timestamp() * 1000)
    assert secret_of(store, SAFE, "acme", "old", at - 1) == "s3cret"
    assert "expired" in refusal("credential.unusable", secret_of, store, SAFE, "acme", "old", at)


def test_a_sealed_value_copied_to_another_tenants_record_opens_for_nobody(store):
    create(store, "rich", tenant="beta", value="j3wel")
    create(store, "poor", tenant="acme")
    stolen = store.record("credential", "rich").body
    store.replace_record(store.record("credential", "poor")._replace(body=stolen))
    refusal("vault.broken", secret_of, store, SAFE, "acme", "poor", NOW)


def test_a_tenant_has_only_so_many(store, monkeypatch):
    monkeypatch.setattr(limits, "CREDENTIALS_PER_TENANT", 2)
    create(store, "a")
    create(store, "b")
    refusal("record.limit", create, store, "c")
    create(store, "c", tenant="beta")
