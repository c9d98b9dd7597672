"""Opening a store on PostgreSQL: what can be wrong is told with a code, and never a password."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack

import psycopg
import pytest

from detent.bootstrap.settings import Settings
from detent.bootstrap.stores import open_store as open_any
from detent.model.address import is_file, scheme_of, shown_address
from detent.model.errors import StoreError
from detent.store.postgres import open_store, schema
from detent.store.postgres.connecting import read_address
from detent.testing.postgres import PostgresServer
from tests.conformance.adapters import NEW
from tests.conformance.world import World, a_change
from tests.postgres_fixture import fresh_url
from tests.unit.store.postgres.old_server import server_of

SECRET = "hunter2"


def refused(url, **more):
    """The error of opening a URL; the secret is nowhere in it."""
    with pytest.raises(StoreError) as refusal:
        open_store(url, create=NEW, **more).close()
    error = refusal.value
    seen = f"{error} {error.details} {error!r}"
    chained = [error.__cause__, None if error.__suppress_context__ else error.__context__]
    assert SECRET not in seen + "".join(str(each) for each in chained)
    return error


# addresses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ada:hunter2@db:5432/x", "postgresql://ada:***@db:5432/x"),
        ("postgres://ada:hun:ter2@db/x", "postgres://ada:***@db/x"),
        ("postgresql://ada:hunter2@h@nter2@db/x", "postgresql://ada:***@db/x"),
        ("postgresql://ada:hun/ter2@db/x", "postgresql://ada:***@db/x"),
        ("postgresql://:hunter2@/x?host=/tmp", "postgresql://:***@/x?host=/tmp"),
        ("postgresql://db/x?password=hunter2&a=b", "postgresql://db/x?password=***&a=b"),
        ("postgresql://db/x?a=b&sslpassword=hunter2", "postgresql://db/x?a=b&sslpassword=***"),
        ("postgresql://ada@db/x", "postgresql://ada@db/x"),
        ("a:b@c.db", "a:b@c.db"),
        (":memory:", ":memory:"),
    ],
)
def test_an_address_is_shown_without_its_passwords(address, shown):
    assert shown_address(address) == shown
    assert repr(Settings(path=address)) == f"Settings(path={shown!r})"


def test_a_path_is_no_url_and_a_url_no_path():
    assert [scheme_of(each) for each in ("a.db", "/a/b.db", "C:\\a.db", "x:y")] == [""] * 4
    assert scheme_of("PostgreSQL://db/x") == "postgresql"
    assert is_file("detent.db")
    assert not is_file("postgres://db/x")


def test_the_schema_is_ours_and_everything_else_is_libpq_s():
    address = read_address("postgresql://a:b@h1,h2/x?schema=two&target_session_attrs=read-write")
    assert address.schema == "two"
    assert address.parameters["host"] == "h1,h2"
    assert address.parameters["target_session_attrs"] == "read-write"
    assert "schema" not in address.parameters
    assert read_address("postgresql://db/x").schema == "detent"
    socket = read_address("postgresql:///x?host=/tmp&schema=a&options=-c%20a%3Db+c")
    assert (socket.schema, socket.parameters["host"]) == ("a", "/tmp")
    assert socket.parameters["options"] == "-c a=b+c"
    assert read_address("postgresql://db/x?connect_timeout=3").parameters["connect_timeout"] == "3"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:hunter2@db:port/x",
        "postgresql://ada:hunter2@db/x?nonsense=1",
        "postgresql://ada:hunter2@[::1/x",
        "postgresql://ada:hunter2@db/x?schema=Bad%20Name",
        "postgresql://ada:hunter2@db/x?schema=a;drop",
        "postgresql://ada:%ZZhunter2@db/x",
    ],
)
def test_a_url_that_cannot_be_read_is_refused_without_being_told(url):
    error = refused(url)
    assert error.code == "store.address"
    assert "postgresql://user:password@host:port/database" in error.message


def test_a_database_we_have_no_adapter_for_is_refused():
    with pytest.raises(StoreError) as refusal:
        open_any("mysql://ada:hunter2@db/x", create=NEW)
    assert refusal.value.code == "store.address"
    assert SECRET not in str(refusal.value)


def test_without_its_driver_the_way_to_install_it_is_told(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("detent.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("detent.store.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError) as refusal:
        open_any("postgresql://db/x", create=NEW)
    assert refusal.value.code == "store.driver"
    assert "pip install 'detent[postgres]'" in refusal.value.message


# servers -----------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_unreachable():
    error = refused("postgresql://ada:hunter2@127.0.0.1:9/x")
    assert error.code == "store.unreachable"
    assert "127.0.0.1" in error.message


def test_a_host_that_does_not_exist_is_unreachable():
    assert refused("postgresql://ada:hunter2@nowhere.invalid/x").code == "store.unreachable"


def test_a_server_that_is_too_old_is_refused():
    with server_of("13.14") as port:
        error = refused(f"postgresql://ada:hunter2@127.0.0.1:{port}/x?sslmode=disable")
    assert error.code == "store.outdated"
    assert "PostgreSQL 13; 14 or newer" in error.message


@pytest.fixture(scope="module")
def guarded():
    """A server that wants a password, and has few connections."""
    with PostgresServer(
        password=SECRET, max_connections=6, superuser_reserved_connections=0
    ) as server:
        yield server


def test_with_the_password_one_gets_in(guarded):
    open_store(fresh_url(guarded, tcp=True), create=NEW).close()


@pytest.mark.parametrize("login", ["detent:wrong", "nobody:hunter2", "detent"])
def test_a_login_that_is_refused_is_told_apart(guarded, login):
    error = refused(f"postgresql://{login}@127.0.0.1:{guarded.port}/postgres")
    assert error.code == "store.login"


def test_a_database_that_does_not_exist_is_told_apart(guarded):
    error = refused(f"postgresql://detent:hunter2@127.0.0.1:{guarded.port}/nothing")
    assert error.code == "store.address"
    assert "nothing" in error.message


def test_a_server_without_a_free_connection_is_crowded(guarded):
    url = fresh_url(guarded, tcp=True)
    with ExitStack() as opened:
        for _ in range(6):
            opened.callback(open_store(url, create=NEW).close)
        assert refused(url).code == "store.crowded"


def as_role(server, name, *grants):
    """The URL of a role without rights but for those named."""
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        for grant in grants:
            connection.execute(f"GRANT {grant} TO {name}")
    return lambda url: url.replace("//detent@", f"//{name}@")


def test_a_role_that_may_not_create_is_told_what_it_lacks(postgres_server, postgres_url):
    poor = as_role(postgres_server, "poor")
    error = refused(poor(postgres_url))
    assert error.code == "store.rights"
    assert "permission denied" in error.message


def test_a_role_that_may_only_read_reads(postgres_server, postgres_url):
    open_store(postgres_url, create=NEW).close()
    name = read_address(postgres_url).schema
    grants = (f"USAGE ON SCHEMA {name}", f"SELECT ON ALL TABLES IN SCHEMA {name}")
    reader = as_role(postgres_server, "reader", *grants)
    store = open_store(reader(postgres_url), create=None, read_only=True)
    assert store.meta().store_id == "the-store"
    assert store.instance("none") is None
    store.close()
    store = open_store(reader(postgres_url), create=None)
    with pytest.raises(StoreError) as refusal:
        store.put_setting("a", "b")
    assert refusal.value.code == "store.rights"
    store.close()


def test_a_database_of_another_encoding_is_refused(postgres_server):
    with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    error = refused(postgres_server.url().replace("/postgres?", "/latin?"))
    assert error.code == "store.settings"
    assert "LATIN1" in error.message


def test_a_reader_cannot_write(postgres_url):
    open_store(postgres_url, create=NEW).close()
    store = open_store(postgres_url, create=None, read_only=True)
    with pytest.raises(StoreError) as refusal:
        store.put_setting("a", "b")
    assert refusal.value.code == "store.readonly"
    assert store.setting("a") is None
    store.close()


# schemas -----------------------------------------------------------------------------------------


def test_a_store_that_is_not_there_is_made_only_when_asked(postgres_url):
    for read_only in (False, True):
        with pytest.raises(StoreError) as refusal:
            open_store(postgres_url, create=None, read_only=read_only)
        assert refusal.value.code == "store.unavailable"
        assert refusal.value.details["absent"] is True
    open_store(postgres_url, create=NEW).close()
    store = open_store(postgres_url, create=NEW._replace(store_id="another", partitions=9))
    assert store.meta() == (len(schema.migrations()), "the-store", *NEW[:3], 4)
    store.close()


def test_many_that_make_the_same_store_at_once_have_one(postgres_url):
    found, failures = [], []

    def make(number):
        try:
            store = open_store(postgres_url, create=NEW._replace(store_id=f"store-{number}"))
            found.append(store.meta().store_id)
            store.close()
        except Exception as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [threading.Thread(target=make, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(found) == 6
    assert len(set(found)) == 1


def test_two_schemas_of_a_database_are_two_stores(postgres_server):
    one, two = (open_store(fresh_url(postgres_server), create=NEW) for _ in range(2))
    World(one).commit(a_change("a"))
    assert one.instance("a") is not None
    assert two.instance("a") is None
    one.close()
    two.close()


def test_a_schema_that_holds_something_else_is_left_alone(postgres_server, postgres_url):
    name = read_address(postgres_url).schema
    for table in ("CREATE TABLE {}.bills(id int)", "CREATE TABLE {}.store(id int)"):
        with psycopg.connect(postgres_server.url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
            connection.execute(table.format(name))
        error = refused(postgres_url)
        assert error.code == "store.corrupt"
        assert "no Detent store" in error.message


def test_a_store_of_a_newer_release_is_left_alone(postgres_url):
    store = open_store(postgres_url, create=NEW)
    store._session.change("UPDATE store SET schema = 99")
    store.close()
    error = refused(postgres_url)
    assert (error.code, error.details["schema"]) == ("store.newer", 99)


def test_missing_migrations_run_once_and_readers_wait_for_a_writer(postgres_url, monkeypatch):
    open_store(postgres_url, create=NEW).close()
    scripts = [*schema.migrations(), "CREATE TABLE added(n int); INSERT INTO added VALUES (7)"]
    monkeypatch.setattr(schema, "migrations", lambda: scripts)
    error = refused(postgres_url, read_only=True)
    assert error.code == "store.unavailable"
    assert "open it once for writing" in error.message
    for _ in range(2):
        store = open_store(postgres_url, create=None)
        assert store.meta().schema == len(scripts)
        assert store._session.rows("SELECT n FROM added") == [(7,)]
        store.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(postgres_url, monkeypatch):
    open_store(postgres_url, create=NEW).close()
    known = schema.migrations()
    monkeypatch.setattr(schema, "migrations", lambda: [*known, "CREATE TABLE added(n int); oops"])
    assert refused(postgres_url).code == "store.unavailable"
    monkeypatch.setattr(schema, "migrations", lambda: known)
    store = open_store(postgres_url, create=None)
    assert store.meta().schema == len(known)
    assert store._session.row("SELECT to_regclass('added')")[0] is None
    store.close()
