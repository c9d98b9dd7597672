"""Stored secrets sealed again with the present key, so that older ones can be taken away.

Everything is looked at first: where one secret was sealed with a key that nobody has configured,
nothing is written at all. Then batch after batch is written, each in one transaction, so that
whoever is interrupted goes on with what is left. A secret opens with one of the keys at any moment:
what others write meanwhile is read again, never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, structs

from detent.model import limits
from detent.model.errors import StoreError
from detent.ports.records import Record, RecordQuery
from detent.service import credentials, push_targets, requests, triggers
from detent.service.records import encode
from detent.service.vault import Place

if TYPE_CHECKING:
    from detent.ports.store import Store
    from detent.service.vault import Vault

Sealed = dict[Place, bytes]
_SHOWN = 3


class Resealed(Struct, frozen=True, kw_only=True):
    """How many records were, or would be, sealed again, by kind; `damaged` ones open nowhere."""

    credentials: int = 0
    triggers: int = 0
    answers: int = 0
    targets: int = 0
    damaged: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """All of them."""
        return self.credentials + self.triggers + self.answers + self.targets


class _Kind(NamedTuple):
    """A kind of record with secrets: what is sealed in one, and its body with that sealed anew."""

    name: str
    counted: str
    sealed: Callable[[Record], Sealed]
    body: Callable[[Record, Sealed], bytes]
    over: Callable[[Record, int], bool] = lambda _record, _now_ms: False  # nobody asks for it


def stale_secrets(store: Store, vault: Vault, now_ms: int) -> Resealed:
    """How much an older key sealed; `vault.locked` where a key is needed that is not here."""
    counts: dict[str, int] = {}
    locked: dict[str, list[Place]] = {}
    damaged: list[str] = []
    for kind, record in _all(store, now_ms):
        sealed = kind.sealed(record)
        stale = {place: each for place, each in sealed.items() if vault.stale(each)}
        troubles = {place: _trouble(vault, place, each) for place, each in stale.items()}
        for place, code in troubles.items():
            if code == "vault.locked":
                locked.setdefault(vault.key_of(stale[place]), []).append(place)
        if "vault.broken" in troubles.values():
            damaged.append(f"{record.kind} {record.id!r}")
        elif stale:
            counts[kind.counted] = counts.get(kind.counted, 0) + 1
    if locked:
        raise _locked(locked)
    return Resealed(**counts, damaged=tuple(damaged))


def reseal(store: Store, vault: Vault, now_ms: int) -> Resealed:
    """Seal with the present key what an older one sealed; nothing where a key is missing."""
    damaged = stale_secrets(store, vault, now_ms).damaged
    counts = {
        kind.counted: sum(_batch(store, vault, kind, page) for page in _pages(store, kind, now_ms))
        for kind in _KINDS
    }
    return Resealed(**counts, damaged=damaged)


def _batch(store: Store, vault: Vault, kind: _Kind, some: list[Record]) -> int:
    """Seal some records again in one transaction; those that others have changed are read again."""
    count = 0
    for _ in range(limits.RECORD_TRIES):
        found = (_resealed(vault, kind, record) for record in some)
        made = [record for record in found if record is not None]
        written = store.replace_records(made) if made else 0
        count += written
        if written == len(made):
            return count
        again = (store.record(record.kind, record.id) for record in made)
        some = [record for record in again if record is not None]
    raise StoreError(
        "store.conflict",
        f"some {kind.counted} are changed by too many at once; start it again to go on",
    )


def _resealed(vault: Vault, kind: _Kind, record: Record) -> Record | None:
    """The record with all of its secrets sealed anew; None where there is nothing to do."""
    sealed = kind.sealed(record)
    if not any(map(vault.stale, sealed.values())):
        return None
    try:
        anew = {place: vault.seal(vault.open(each, place), place) for place, each in sealed.items()}
    except StoreError as error:
        if error.code == "vault.broken":
            return None  # it opens with no key; whoever owns it must enter it again
        raise
    return record._replace(body=kind.body(record, anew))


def _trouble(vault: Vault, place: Place, sealed: bytes) -> str:
    """The code of the error with which a secret does not open, empty where it does."""
    try:
        vault.open(sealed, place)
    except StoreError as error:
        return error.code
    return ""


def _all(store: Store, now_ms: int) -> Iterator[tuple[_Kind, Record]]:
    for kind in _KINDS:
        for page in _pages(store, kind, now_ms):
            yield from ((kind, record) for record in page)


def _pages(store: Store, kind: _Kind, now_ms: int) -> Iterator[list[Record]]:
    query = RecordQuery(kind.name, limit=limits.RESEAL_BATCH)
    while page := store.records(query):
        yield [record for record in page if not kind.over(record, now_ms)]
        query = query._replace(after=page[-1].n)


def _locked(locked: dict[str, list[Place]]) -> StoreError:
    places = [place for each in locked.values() for place in each]
    names = ", ".join(f"the {each.field} of {each.kind} {each.id!r}" for each in places[:_SHOWN])
    more = ", …" if len(places) > _SHOWN else ""
    keys = " and ".join(locked)
    return StoreError(
        "vault.locked",
        f"{len(places):,} secrets were sealed with key {keys}, which is not among the keys given "
        f"({names}{more}); nothing was changed: add that key to the old ones",
        keys=list(locked),
    )


# kinds -------------------------------------------------------------------------------------------


def _credential(record: Record) -> Sealed:
    stored = credentials.decode(record.body)
    place = Place(record.kind, record.tenant, record.id)
    found = {place: stored.value}
    if stored.refresh_token is not None:
        found[place._replace(field="refresh_token")] = stored.refresh_token
    return found


def _credential_body(record: Record, anew: Sealed) -> bytes:
    fields = {place.field: sealed for place, sealed in anew.items()}
    return encode(structs.replace(credentials.decode(record.body), **fields))


def _trigger(record: Record) -> Sealed:
    secret = triggers.decode(record.body).secret
    return {} if secret is None else {triggers.place_of(record.tenant, record.id): secret}


def _trigger_body(record: Record, anew: Sealed) -> bytes:
    (secret,) = anew.values()
    return encode(structs.replace(triggers.decode(record.body), secret=secret))


def _answer(record: Record) -> Sealed:
    named = requests.Named(record.tenant, record.key or "")
    return {requests.place_of(named): record.body} if requests.is_sealed(record) else {}


def _answer_body(_record: Record, anew: Sealed) -> bytes:
    (body,) = anew.values()
    return body


def _target(record: Record) -> Sealed:
    secret = push_targets.decode(record.body).sealed
    place = Place(record.kind, record.tenant, record.id, "secret")
    return {} if secret is None else {place: secret}


def _target_body(record: Record, anew: Sealed) -> bytes:
    (secret,) = anew.values()
    return encode(structs.replace(push_targets.decode(record.body), sealed=secret))


_KINDS = (
    _Kind(credentials.KIND, "credentials", _credential, _credential_body),
    _Kind(triggers.KIND, "triggers", _trigger, _trigger_body),
    _Kind(requests.KIND, "answers", _answer, _answer_body, requests.is_over),
    _Kind(push_targets.KIND, "targets", _target, _target_body),
)
