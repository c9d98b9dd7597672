"""What may be stored as JSON, and the place of what may not."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.model.errors import RequestError
from detent.model.limits import MESSAGE_CHARS, PAYLOAD_BYTES, PAYLOAD_DEPTH
from detent.model.payload import clean_text, encode_payload


@dataclasses.dataclass
class Receipt:
    total: object


def refusal(value, **options):
    with pytest.raises(RequestError) as caught:
        encode_payload(value, where="the result", **options)
    return caught.value


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ({"a": [1, 2.5, True, None, "x"]}, '{"a":[1,2.5,true,null,"x"]}'),
        ((1, 2), "[1,2]"),
        (Receipt({"n": None}), '{"total":{"n":null}}'),
        (dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC), '"2026-01-02T03:04:05Z"'),
        (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (Decimal("1.50"), '"1.50"'),
        (b"ab", '"YWI="'),
        ({"line1": "null"}, '{"line1":"null"}'),
        ("\\u0000 written out", '"\\\\u0000 written out"'),
        ([2**63 - 1, -(2**63)], "[9223372036854775807,-9223372036854775808]"),
    ],
)
def test_what_json_can_hold_is_encoded(value, text):
    assert encode_payload(value, where="the result").decode() == text


@pytest.mark.parametrize(
    ("value", "path", "words"),
    [
        ({"a": [{"b": math.nan}]}, "$.a[0].b", "finite"),
        ([math.inf], "$[0]", "finite"),
        ({"n": 2**63}, "$.n", "64 bits"),
        ({"n": -(2**63) - 1}, "$.n", "64 bits"),
        ({"a": {1: "x"}}, "$.a", "text as key"),
        ({1.5: "x"}, "$", "text as key"),
        ({math.nan: "x"}, "$", "text as key"),
        ({None: "x"}, "$", "text as key"),
        (["ok", "a\x00b"], "$[1]", "NUL"),
        ({"a\x00b": 1}, "$", "NUL"),
        ({"a": "\ud800"}, "$.a", "surrogate"),
        ({"\ud800": 1}, "$", "surrogate"),
        ({"a": [object()]}, "$.a[0]", "object of object"),
        (Receipt(2**70), "$.total", "64 bits"),
        (Receipt({3: 1}), "$.total", "text as key"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value, path, words):
    error = refusal(value)
    assert (error.code, error.details["path"]) == ("payload.invalid", path)
    assert words in error.message
    assert error.message.startswith("the result, at ")


def test_a_payload_of_exactly_the_limit_passes_and_one_byte_more_does_not():
    fitting = "x" * (PAYLOAD_BYTES - 2)
    assert len(encode_payload(fitting, where="the result")) == PAYLOAD_BYTES
    error = refusal(fitting + "x")
    assert error.code == "payload.too_large"
    assert error.details == {"size": PAYLOAD_BYTES + 1, "limit": PAYLOAD_BYTES, "path": "$"}


def test_a_smaller_limit_can_be_asked_for():
    assert encode_payload("xx", where="the signal", limit=4) == b'"xx"'
    assert refusal("xxx", limit=4).code == "payload.too_large"


def test_nesting_of_exactly_the_limit_passes_and_one_more_or_a_cycle_does_not():
    encode_payload(nested(PAYLOAD_DEPTH), where="the result")
    assert refusal(nested(PAYLOAD_DEPTH + 1)).code == "payload.invalid"
    cycle = []
    cycle.append(cycle)
    assert "cycle" in refusal(cycle).message


_leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.characters(codec=None)
)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(), st.integers()), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(_values)
def test_whatever_is_accepted_reads_back_as_it_was(value):
    try:
        body = encode_payload(value, where="the result")
    except RequestError:
        return
    assert json.loads(body) == value


def test_a_message_is_cut_and_cleaned_so_that_it_can_always_be_stored():
    assert clean_text("fine") == "fine"
    assert clean_text("a\x00b\ud800c") == "a?b?c"
    assert len(clean_text("x" * MESSAGE_CHARS)) == MESSAGE_CHARS
    assert clean_text("x" * (MESSAGE_CHARS + 1)).endswith("x…")
    assert len(clean_text("x" * (MESSAGE_CHARS + 1))) == MESSAGE_CHARS
