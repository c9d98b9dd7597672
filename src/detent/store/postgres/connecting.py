"""Making a connection: the URL read, the server looked at, the session set up.

Of a URL everything is libpq's, but for `schema`: the schema that holds the tables, `detent` when
none is named. Two stores of one database are two schemas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from detent.model.address import POSTGRES, scheme_of, shown_address
from detent.model.errors import StoreError
from detent.store.postgres import values
from detent.store.postgres.failures import translate, translate_opening

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = "detent"
OLDEST = 14
_OLDEST_NUMBER = OLDEST * 10_000
_WITH_TRANSACTION_TIMEOUT = 170_000
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OURS = "schema="
_PORTS = 65_536
_STATEMENTS_KEPT = 500
# A peer that is gone is noticed before a lease is over, and nobody waits for ever.
_DEFAULTS = {
    "application_name": "detent",
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "25000",
}
# Every statement here goes from a few keys to their rows, by an index, and the planner is told so:
# a plan that it made while a table was small would go through all of it once it has grown.
_SET_UP = """
SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,
    current_setting('server_encoding'),
    set_config('search_path', $1, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('lock_timeout', '20s', false),
    set_config('jit', 'off', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
_SET_UP_LIMIT = "SELECT set_config('transaction_timeout', '60s', false)"
_SET_UP_READER = "SELECT set_config('default_transaction_read_only', 'on', false)"


class Address(NamedTuple):
    """A URL, read."""

    parameters: dict[str, Any]  # of libpq
    schema: str
    shown: str  # for people, without a password


def read_address(url: str) -> Address:
    """Read a URL; `store.address` when it is none of PostgreSQL's."""
    shown = shown_address(url)
    place, _, query = url.partition("?")
    theirs = [each for each in query.split("&") if not each.startswith(_OURS)]
    ours = [unquote(each.removeprefix(_OURS)) for each in query.split("&") if each not in theirs]
    try:
        given = conninfo_to_dict("?".join([place, *filter(None, ["&".join(theirs)])]))
    except psycopg.Error:  # its text may hold the password
        raise _no_address(shown, "it cannot be read") from None
    if scheme_of(url) not in POSTGRES:
        raise _no_address(shown, f"its scheme is {scheme_of(url)!r}")
    ports = [port for port in str(given.get("port", "")).split(",") if port]
    if not all(port.isdecimal() and 0 < int(port) < _PORTS for port in ports):
        raise _no_address(shown, "its port is no number from 1 to 65535")
    schema = ours[-1] if ours else SCHEMA
    if _SCHEMA_NAME.fullmatch(schema) is None:
        raise _no_address(
            shown, f"schema {schema!r} is none of small letters, digits and underscores"
        )
    return Address({**_DEFAULTS, **given}, schema, shown)


def connector(address: Address, *, read_only: bool) -> Callable[[], psycopg.Connection[Any]]:
    """What makes connections to an address, each of them checked and set up."""

    def connect() -> psycopg.Connection[Any]:
        try:
            made = psycopg.connect(
                **address.parameters,
                autocommit=True,
                client_encoding="utf8",
                cursor_factory=psycopg.RawCursor,
            )
        except psycopg.Error as error:
            raise translate_opening(error, address.shown) from None
        try:
            _set_up(made, address, read_only=read_only)
        except BaseException:
            made.close()
            raise
        return made

    return connect


def _set_up(connection: psycopg.Connection[Any], address: Address, *, read_only: bool) -> None:
    connection.prepared_max = _STATEMENTS_KEPT
    values.register(connection.adapters)
    version = connection.info.server_version
    if version < _OLDEST_NUMBER:
        raise StoreError(
            "store.outdated",
            f"{address.shown} is served by PostgreSQL {version // 10_000}; "
            f"{OLDEST} or newer is needed, upgrade it",
        )
    try:
        found = connection.cursor(binary=True).execute(_SET_UP, [address.schema]).fetchone()
        if version >= _WITH_TRANSACTION_TIMEOUT:
            connection.execute(_SET_UP_LIMIT)
        if read_only:
            connection.execute(_SET_UP_READER)
    except psycopg.Error as error:
        raise translate(error) from error
    takes_no_writes, encoding = found[:2] if found is not None else (False, "")
    if encoding != "UTF8":
        raise StoreError(
            "store.settings",
            f"{address.shown} has the encoding {encoding}; create the database with UTF8",
        )
    if takes_no_writes and not read_only:
        raise StoreError(
            "store.readonly",
            f"{address.shown} is a replica or takes no writes; name the primary server, or all "
            "servers and target_session_attrs=read-write",
        )


def _no_address(shown: str, why: str) -> StoreError:
    return StoreError(
        "store.address",
        f"{shown} is no address of a store: {why}; "
        "expected postgresql://user:password@host:port/database",
    )
