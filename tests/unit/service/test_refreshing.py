"""Tokens that expire are refreshed shortly before, by one process, and never told."""

from __future__ import annotations

import asyncio
import datetime as dt
import json

import pytest

from detent.handlers.answers import Failed
from detent.model import limits
from detent.model.errors import RequestError
from detent.service.credentials import (
    CredentialPatch,
    NewCredential,
    Stored,
    create_credential,
    get_credential,
    patch_credential,
)
from detent.service.handing_out import secret_of
from detent.service.refreshing import (
    Refreshed,
    due_refreshes,
    refresh_credential,
    refresh_credentials,
    refresh_due,
    refresh_under_way,
)
from tests.unit.service.shelf import NOW, SAFE, a_store, refusal

pytestmark = pytest.mark.req("SEQ-HND-5")
URL = "https://auth.example.com/token"
EXPIRES_MS = NOW + limits.REFRESH_BEFORE_MS + 10_000
DUE_MS = NOW + 10_000


class Rows:
    """A desk over one store."""

    def __init__(self, store):
        self.store = store

    async def look(self, use):
        return use(self.store)

    async def write(self, use):
        return use(self.store)


class Provider:
    """Answers a refresh, and keeps what it was asked."""

    def __init__(self, status=200, error=None, **answer):
        self.status_code = status
        self.content = json.dumps(answer).encode()
        self.error = error
        self.asked = []

    async def post(self, url, form):
        self.asked.append((url, dict(form)))
        if self.error is not None:
            raise self.error
        return self


@pytest.fixture
def rows():
    store = a_store()
    yield Rows(store)
    store.close()


def instant(ms):
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


def create(rows, id="mail", **fields):
    given = {
        "kind": "oauth2",
        "refresh_url": URL,
        "refresh_token": "r3fresh",
        "expires_at": instant(EXPIRES_MS),
        **fields,
    }
    new = NewCredential(id=id, name="Mail", value=given.pop("value", "t0ken"), **given)
    create_credential(rows.store, SAFE, "acme", new, NOW)


def refresh(rows, provider, now_ms=DUE_MS, id="mail"):
    return asyncio.run(refresh_credential(rows, SAFE, id, provider.post, lambda: now_ms))


def value(rows, now_ms=DUE_MS, id="mail"):
    return secret_of(rows.store, SAFE, "acme", id, now_ms)


def test_a_token_is_due_five_minutes_before_it_expires_and_not_earlier():
    stored = Stored(name="a", value=b"", expires_at=instant(EXPIRES_MS))
    assert not refresh_due(stored, DUE_MS - 1)
    assert refresh_due(stored, DUE_MS)
    assert refresh_due(stored, EXPIRES_MS + 1)
    assert not refresh_due(Stored(name="a", value=b""), EXPIRES_MS)


def test_only_what_can_be_refreshed_is_looked_at(rows):
    create(rows, "a")
    create(rows, "no-token", kind="api_key", refresh_token=None, refresh_url=None)
    create(rows, "no-end", expires_at=None)
    create(rows, "off")
    patch_credential(rows.store, SAFE, "acme", "off", CredentialPatch(enabled=False), NOW)
    assert due_refreshes(rows.store, DUE_MS) == ["a"]
    assert due_refreshes(rows.store, DUE_MS - 1) == []


def test_a_refresh_posts_the_grant_and_keeps_what_comes(rows):
    create(rows)
    provider = Provider(access_token="n3w", refresh_token="r2", expires_in=3600)
    assert refresh(rows, provider) is True
    assert provider.asked == [(URL, {"grant_type": "refresh_token", "refresh_token": "r3fresh"})]
    assert value(rows) == "n3w"
    assert get_credential(rows.store, "acme", "mail").expires_at == instant(DUE_MS + 3_600_000)
    again = Provider(access_token="n4w", expires_in=60)
    assert refresh(rows, again, DUE_MS + 3_500_000) is True
    assert again.asked[0][1]["refresh_token"] == "r2"


def test_a_value_that_is_an_object_lends_its_client_and_takes_the_token(rows):
    create(rows, value='{"client_id":"me","client_secret":"c1","access_token":"t0ken","x":1}')
    provider = Provider(access_token="n3w", expires_in="60")
    refresh(rows, provider)
    form = provider.asked[0][1]
    assert (form["client_id"], form["client_secret"]) == ("me", "c1")
    assert json.loads(value(rows)) == {
        "client_id": "me",
        "client_secret": "c1",
        "access_token": "n3w",
        "x": 1,
    }


def test_what_is_not_due_unknown_or_asked_for_by_another_is_not_asked_for(rows):
    create(rows)
    provider = Provider(access_token="n3w", expires_in=60)
    assert refresh(rows, provider, DUE_MS - 1) is False
    assert refresh(rows, provider, id="nothing") is False

    class Slow(Provider):
        async def post(self, url, form):
            assert (
                await refresh_credential(rows, SAFE, "mail", provider.post, lambda: DUE_MS) is False
            )
            return await super().post(url, form)

    assert refresh(rows, Slow(access_token="n3w", expires_in=60)) is True
    assert provider.asked == []


@pytest.mark.parametrize(
    "provider",
    [
        Provider(400, error_description="r3fresh is no good"),
        Provider(500),
        Provider(token="n3w"),
        Provider(access_token=""),
        Provider(access_token="n3w", expires_in="soon"),
        Provider(access_token="n3w", pad="x" * limits.REFRESH_BYTES),
        Provider(error=OSError("cannot send r3fresh")),
    ],
)
def test_an_answer_without_a_token_leaves_the_old_one_and_is_tried_again_later(rows, provider):
    create(rows)
    message = refusal("credential.refresh", refresh, rows, provider)
    assert "r3fresh" not in message
    assert "n3w" not in message
    assert value(rows) == "t0ken"
    assert due_refreshes(rows.store, DUE_MS) == []
    assert due_refreshes(rows.store, DUE_MS + limits.REFRESH_AGAIN_MS) == ["mail"]


def saying(status, word):
    made = Provider(status)
    made.content = json.dumps({"error": word}).encode()
    return made


SETBACKS = {
    "refused": (saying(400, "invalid_grant"), "status 400 (invalid_grant)", False),
    "refused in other words": (saying(401, "r3fresh"), "status 401", False),
    "away": (Provider(503), "status 503", True),
    "unreachable": (Provider(error=Failed("no connection to x")), "no connection to x", True),
    "not to be called": (
        Provider(error=Failed("x is private", retryable=False)),
        "x is private",
        False,
    ),
}


@pytest.mark.parametrize("name", SETBACKS)
def test_why_there_was_no_token_is_kept_and_told_until_the_next_try(rows, name):
    provider, why, again = SETBACKS[name]
    create(rows)
    refusal("credential.refresh", refresh, rows, provider, EXPIRES_MS)
    shown = get_credential(rows.store, "acme", "mail")
    assert shown.refresh_error.endswith(why)
    assert value(rows, EXPIRES_MS - 1) == "t0ken"  # whoever has it may use it to its end
    later = EXPIRES_MS + limits.REFRESH_AGAIN_MS
    told = error(rows, later - 1)
    assert (told.code, why in told.message) == ("credential.refresh", True)
    assert told.details == ({"again": True} if again else {})
    assert "r3fresh" not in str(told)
    renewable = error(rows, later).details.get("credential")
    assert renewable == ("mail" if again else None)
    well = Provider(access_token="n3w", expires_in=600)
    assert refresh(rows, well, later - 1) is False
    assert refresh(rows, well, later) is True
    assert get_credential(rows.store, "acme", "mail").refresh_error is None


def error(rows, now_ms):
    """Why the value cannot be had."""
    with pytest.raises(RequestError) as found:
        value(rows, now_ms)
    return found.value


def test_a_token_that_has_expired_when_it_comes_is_kept_and_not_asked_for_at_once(rows):
    create(rows)
    provider = Provider(access_token="n3w", refresh_token="r2", expires_in=0)
    assert refresh(rows, provider, EXPIRES_MS) is True
    told = error(rows, EXPIRES_MS)
    assert (told.code, "expired already" in told.message) == ("credential.refresh", True)
    assert refresh(rows, provider, EXPIRES_MS + 1) is False
    well = Provider(access_token="n4w", expires_in=600)
    assert refresh(rows, well, EXPIRES_MS + limits.REFRESH_AGAIN_MS) is True
    assert well.asked[0][1]["refresh_token"] == "r2"


def test_a_new_value_makes_what_went_wrong_with_the_old_one_forgotten(rows):
    create(rows)
    refusal("credential.refresh", refresh, rows, Provider(400))
    patch_credential(
        rows.store, SAFE, "acme", "mail", CredentialPatch(refresh_token="g00d"), DUE_MS
    )
    assert get_credential(rows.store, "acme", "mail").refresh_error is None
    well = Provider(access_token="n3w", expires_in=600)
    assert refresh(rows, well) is True
    assert well.asked[0][1]["refresh_token"] == "g00d"


def test_a_refresh_is_under_way_until_the_provider_has_answered_or_its_claim_is_lost(rows):
    create(rows)
    seen = []

    class Watched(Provider):
        async def post(self, url, form):
            seen.append(refresh_under_way(rows.store, "mail", EXPIRES_MS))
            return await super().post(url, form)

    assert not refresh_under_way(rows.store, "mail", EXPIRES_MS)
    refusal("credential.refresh", refresh, rows, Watched(503), EXPIRES_MS)
    assert not refresh_under_way(rows.store, "mail", EXPIRES_MS)
    later = EXPIRES_MS + limits.REFRESH_AGAIN_MS
    refresh(rows, Watched(access_token="n3w", expires_in=600), later)
    assert not refresh_under_way(rows.store, "mail", later)
    assert not refresh_under_way(rows.store, "nothing", later)
    assert seen == [True, True]


def test_a_claim_that_was_lost_with_its_process_holds_nobody_for_long(rows):
    create(rows)

    class Dying(Provider):
        async def post(self, _url, _form):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        refresh(rows, Dying(), EXPIRES_MS)
    assert refresh_under_way(rows.store, "mail", EXPIRES_MS)
    told = error(rows, EXPIRES_MS)
    assert (told.code, told.details["credential"]) == ("credential.unusable", "mail")
    later = EXPIRES_MS + limits.REFRESH_AGAIN_MS
    assert not refresh_under_way(rows.store, "mail", later)
    assert refresh(rows, Provider(access_token="n3w", expires_in=600), later) is True
    assert value(rows, later) == "n3w"


def test_a_value_entered_while_the_provider_was_asked_is_kept(rows):
    create(rows)

    class Slow(Provider):
        async def post(self, url, form):
            patch_credential(
                rows.store, SAFE, "acme", "mail", CredentialPatch(value="mine"), DUE_MS
            )
            return await super().post(url, form)

    refresh(rows, Slow(access_token="n3w", expires_in=60))
    assert value(rows) == "mine"


def test_one_that_fails_holds_up_no_other(rows):
    create(rows, "bad", refresh_url="https://bad.example.com/")
    create(rows, "good")

    class Mixed(Provider):
        async def post(self, url, form):
            answer = await super().post(url, form)
            return Provider(503) if "bad" in url else answer

    done = asyncio.run(
        refresh_credentials(
            rows, SAFE, Mixed(access_token="n3w", expires_in=60).post, lambda: DUE_MS
        )
    )
    assert [each.id for each in done] == ["bad", "good"]
    assert "503" in done[0].reason
    assert done[1] == Refreshed("good")
