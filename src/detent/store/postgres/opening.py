"""Opening a store: connect, make it if asked, check whose it is, migrate it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from detent.model.errors import StoreError
from detent.store.postgres import schema
from detent.store.postgres.connecting import connector, read_address
from detent.store.postgres.failures import translate
from detent.store.postgres.session import Session
from detent.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from detent.ports.opening import NewStore


def open_store(url: str, *, create: NewStore | None, read_only: bool = False) -> PostgresStore:
    """Open the store at a URL; where there is none, make it from `create` or raise."""
    address = read_address(url)
    session = Session(connector(address, read_only=read_only))
    try:
        schema.prepare(session.connection(), address, create, read_only=read_only)
        return PostgresStore(session, schema.read_meta(session))
    except psycopg.Error as error:
        session.close()
        plain = translate(error)
        raise StoreError(
            plain.code, f"{address.shown}: {plain.message}", **plain.details
        ) from error
    except BaseException:
        session.close()
        raise
