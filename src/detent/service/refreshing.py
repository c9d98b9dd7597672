"""Refreshing OAuth2 credentials shortly before they expire, by a refresh_token grant.

A refresh is claimed in the record before the provider is asked, so that of several processes one
asks; a claim that was lost, or an answer that was no token, is tried again a minute later.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import structs

from detent.handlers.answers import Failed
from detent.model import limits
from detent.model.errors import DetentError
from detent.ports.records import RecordQuery
from detent.service.credentials import (
    KIND,
    REFRESHED,
    CredentialPatch,
    Setback,
    Stored,
    decode,
    owner_of,
    sealed,
)
from detent.service.handing_out import expired, refresh_failed
from detent.service.records import change, encode, instant, unix_ms
from detent.service.vault import Place, Safe

if TYPE_CHECKING:
    from detent.ports.records import Record
    from detent.ports.store import Store

T = TypeVar("T")
_OK = 200
_FINAL = (400, 401, 403)  # the grant, or the client, is not accepted
# What a provider may say of a refusal; nothing else of an answer is ever told.
_WORDS = (
    "invalid_request",
    "invalid_client",
    "invalid_grant",
    "unauthorized_client",
    "unsupported_grant_type",
    "invalid_scope",
)
_LONGEST_S = limits.DURATION_MS // 1000

_parse = msgspec.json.Decoder().decode


class Answer(Protocol):
    """What a provider said."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def content(self) -> bytes:
        """The body."""


Post = Callable[[str, Mapping[str, str]], Awaitable[Answer]]


class Rows(Protocol):
    """Reading and writing beside an event loop; a server's desk is one."""

    def look(self, use: Callable[[Store], T]) -> Awaitable[T]:
        """Read."""

    def write(self, use: Callable[[Store], T]) -> Awaitable[T]:
        """Write."""


class _NoTokenError(Exception):
    """The provider gave no token."""

    def __init__(self, why: str, *, again: bool = True) -> None:
        super().__init__(why)
        self.setback = Setback(why=why, again=again)


class Refreshed(NamedTuple):
    """What became of one refresh; without a reason it went well."""

    id: str
    reason: str = ""


def refresh_due(stored: Stored, now_ms: int) -> bool:
    """Whether a credential is to be refreshed now."""
    if stored.expires_at is None or now_ms < stored.next_refresh_ms:
        return False
    return unix_ms(stored.expires_at) - limits.REFRESH_BEFORE_MS <= now_ms


def refresh_under_way(store: Store, id: str, now_ms: int) -> bool:
    """Whether somebody asks the provider for what has expired, and has not heard from it yet."""
    record = store.record(KIND, id)
    stored = None if record is None else decode(record.body)
    if stored is None or stored.setback is not None or not expired(stored, now_ms):
        return False
    return now_ms < stored.next_refresh_ms


def due_refreshes(store: Store, now_ms: int) -> list[str]:
    """The ids of the credentials that are to be refreshed now."""
    due: list[str] = []
    after = 0
    query = RecordQuery(KIND, owner=REFRESHED, limit=limits.LIST_MOST)
    while page := store.records(query._replace(after=after)):
        after = page[-1].n
        due += [record.id for record in page if refresh_due(decode(record.body), now_ms)]
    return due


async def refresh_credentials(
    rows: Rows, safe: Safe, post: Post, now_ms: Callable[[], int]
) -> list[Refreshed]:
    """Refresh everything that is due, one after another; a failure holds up no other."""
    done: list[Refreshed] = []
    for id in await rows.look(lambda store: due_refreshes(store, now_ms())):
        try:
            if await refresh_credential(rows, safe, id, post, now_ms):
                done.append(Refreshed(id))
        except DetentError as error:
            done.append(Refreshed(id, f"{error.message} [{error.code}]"))
    return done


async def refresh_credential(
    rows: Rows, safe: Safe, id: str, post: Post, now_ms: Callable[[], int]
) -> bool:
    """Ask the provider for a new token; False when it is not due, or another process asks.

    Why there was none is kept with the credential, for whoever needs it before the next try.
    """
    claimed = await rows.write(lambda store: _claim(store, id, now_ms()))
    if claimed is None:
        return False
    stored = decode(claimed.body)
    place = Place(KIND, claimed.tenant, claimed.id)
    value = safe.open(stored.value, place)
    token = safe.open(stored.refresh_token or b"", place._replace(field="refresh_token"))
    form = {"grant_type": "refresh_token", "refresh_token": token, **_client(value)}
    try:
        given = await _asked(post, str(stored.refresh_url), form)
    except _NoTokenError as none:
        setback = none.setback
        await rows.write(lambda store: _note(store, claimed, setback, now_ms()))
        raise refresh_failed(id, setback) from None
    asked_ms = now_ms()
    await rows.write(lambda store: _keep(store, safe, claimed, (value, given), asked_ms))
    return True


async def _asked(post: Post, url: str, form: Mapping[str, str]) -> dict[str, Any]:
    """The tokens that a provider gives for a grant."""
    try:
        answer = await post(url, form)
    except Failed as failure:
        raise _NoTokenError(failure.message, again=failure.retryable) from None
    except Exception as error:  # noqa: BLE001 - its text may hold the form, so only its name is told
        raise _NoTokenError(f"it could not be reached ({type(error).__name__})") from None
    return _tokens(answer)


def _claim(store: Store, id: str, now_ms: int) -> Record | None:
    record = store.record(KIND, id)
    if record is None or record.owner != REFRESHED:
        return None
    stored = decode(record.body)
    if not refresh_due(stored, now_ms):
        return None
    next_ms = now_ms + limits.REFRESH_AGAIN_MS
    again = structs.replace(stored, next_refresh_ms=next_ms, setback=None)
    claimed = record._replace(body=encode(again))
    return claimed._replace(rev=record.rev + 1) if store.replace_record(claimed) else None


def _note(store: Store, claimed: Record, setback: Setback, now_ms: int) -> None:
    """Keep why there is no token, unless somebody has entered another value meanwhile."""
    before = decode(claimed.body)

    def edit(body: bytes) -> bytes | None:
        stored = decode(body)
        same = stored.next_refresh_ms == before.next_refresh_ms
        return encode(structs.replace(stored, setback=setback)) if same else None

    change(store, claimed, edit, now_ms)


def _keep(
    store: Store, safe: Safe, claimed: Record, found: tuple[str, dict[str, Any]], now_ms: int
) -> None:
    """Store the new tokens, unless somebody has entered another value meanwhile."""
    value, given = found
    before = decode(claimed.body)
    patch = CredentialPatch(value=_with_token(value, given["access_token"]))
    if "refresh_token" in given:
        patch = structs.replace(patch, refresh_token=given["refresh_token"])
    secrets = sealed(safe, claimed.tenant, claimed.id, patch)
    expires: dt.datetime | None = None  # a token that does not say when it expires never does
    if "expires_in" in given:
        expires = instant(now_ms + given["expires_in"] * 1000)

    told: dict[str, Any] = {**secrets, "expires_at": expires, "next_refresh_ms": 0, "setback": None}
    if given.get("expires_in") == 0:  # kept for its refresh token, but not asked for again at once
        told["next_refresh_ms"] = now_ms + limits.REFRESH_AGAIN_MS
        told["setback"] = Setback(why="it gave a token that has expired already", again=True)

    def edit(body: bytes) -> bytes | None:
        stored = decode(body)
        if (stored.value, stored.refresh_token) != (before.value, before.refresh_token):
            return None
        return encode(structs.replace(stored, **told))

    change(store, claimed, edit, now_ms, owner_of)


def _client(value: str) -> dict[str, str]:
    """The client's own name and secret, where the value is an object that holds them."""
    parsed = _object(value)
    names = ("client_id", "client_secret", "scope")
    return {name: parsed[name] for name in names if isinstance(parsed.get(name), str)}


def _with_token(value: str, token: str) -> str:
    parsed = _object(value)
    return encode({**parsed, "access_token": token}).decode() if parsed else token


def _object(value: str) -> dict[str, Any]:
    try:
        parsed = _parse(value)
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _tokens(answer: Answer) -> dict[str, Any]:
    """The tokens in an answer; of a refusal no more than a word of the standard is told."""
    status = answer.status_code
    parsed = _object(answer.content[: limits.REFRESH_BYTES].decode("utf-8", "replace"))
    if status != _OK:
        word = parsed.get("error")
        said = f" ({word})" if word in _WORDS else ""
        raise _NoTokenError(f"it answered with status {status}{said}", again=status not in _FINAL)
    if len(answer.content) > limits.REFRESH_BYTES:
        raise _NoTokenError(f"its answer has more than {limits.REFRESH_BYTES:,} bytes")
    token, renewed, span = (
        parsed.get("access_token"),
        parsed.get("refresh_token"),
        parsed.get("expires_in"),
    )
    if not isinstance(token, str) or not token:
        raise _NoTokenError("its answer holds no access_token")
    given: dict[str, Any] = {"access_token": token}
    if isinstance(renewed, str) and renewed:
        given["refresh_token"] = renewed
    if isinstance(span, int | float | str):
        try:
            given["expires_in"] = min(max(0, int(float(span))), _LONGEST_S)
        except (ValueError, OverflowError):
            raise _NoTokenError("its answer holds an expires_in that is no number") from None
    return given
