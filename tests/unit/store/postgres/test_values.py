"""Values go to PostgreSQL packed and come back as they were, whatever characters they hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.model.errors import StoreError
from detent.store.postgres import open_store
from detent.store.postgres.statements import Rows
from detent.store.postgres.values import (
    bools,
    byte_strings,
    escaped,
    ints,
    texts,
    unescaped,
)
from tests.conformance.adapters import NEW
from tests.postgres_fixture import fresh_url

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.text(
    "\x00\x01\x02a", max_size=8
)
INTS = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def session(postgres_server):
    store = open_store(fresh_url(postgres_server), create=NEW)
    yield store._session
    store.close()


def through(session, column):
    return [row[0] for row in session.rows("SELECT * FROM unnest($1)", (column,))]


@given(st.data())
def test_a_column_comes_back_as_it_was_sent(session, data):
    for pack, value in (
        (ints, INTS),
        (texts, TEXTS),
        (byte_strings, st.binary(max_size=40)),
        (bools, st.booleans()),
    ):
        values = data.draw(st.lists(value if pack is bools else value | st.none(), max_size=9))
        assert through(session, pack(values)) == values


@given(TEXTS)
def test_one_value_comes_back_as_it_was_sent(session, text):
    assert session.row("SELECT $1, $2, $3", (text, text.encode(), len(text))) == (
        text,
        text.encode(),
        len(text),
    )


@given(st.lists(TEXTS, min_size=2, max_size=6))
def test_escaping_keeps_every_text_and_the_order_between_them(values):
    assert [unescaped(escaped(text)) for text in values] == values
    assert not any("\x00" in escaped(text) for text in values)
    stored = [escaped(text).encode() for text in values]
    assert sorted(values, key=str.encode) == [unescaped(x.decode()) for x in sorted(stored)]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 5_000])
def test_columns_of_any_length_are_whole(session, size):
    assert through(session, ints(range(size))) == list(range(size))
    long = [b"x" * (4_090 + at % 12) for at in range(size // 10)]
    assert through(session, byte_strings(long)) == long


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "1"),
        ("int", 2**63),
        ("int", 1.5),
        ("text", b"x"),
        ("text", 5),
        ("text", "\ud800"),
        ("bytes", "x"),
        ("bytes", 5),
        ("bool", "yes"),
        ("bool", None),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_sent(kind, value):
    rows = Rows("SELECT * FROM $rows", f"a int, b {kind}")
    for others in ([], [(2, None)] if kind != "bool" else []):
        with pytest.raises(StoreError) as refusal:
            rows.of([(1, value), *others])
        assert refusal.value.code == "store.refused"


def test_parameters_of_a_statement_follow_its_columns(session):
    rows = Rows("SELECT a, b, $1, $2 FROM $rows WHERE a <> $1", "a int, b text")
    assert rows.sql == ("SELECT a, b, $3, $4 FROM unnest($1, $2) AS new(a, b) WHERE a <> $3")
    assert session.rows(*rows.of([(1, "x"), (2, "y")], 1, "z")) == [(2, "y", 1, "z")]
