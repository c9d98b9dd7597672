"""The canonical form: one meaning, one text, one hash."""

from __future__ import annotations

import copy
import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.definition import load, normalize, parse, to_wire
from detent.model.errors import DefinitionError
from tests.unit.definition.samples import EVERY_KIND, a_sequence, a_step

GOLDEN = "aea4f13c11fd4c9de8309e900b8d5fc86ef44c6698e19153a9f39f88f707fc06"
"""Stored definitions are found by their hash: a release that changes it loses them."""

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)

STEPS = st.fixed_dictionaries(
    {"params": VALUES},
    optional={
        "timeout": st.integers(0, 10**6) | st.floats(0, 10**6),
        "cancellable": st.booleans(),
        "when": st.sampled_from(["", "data.x", "true"]),
        "delay": st.builds(dict, duration=st.integers(0, 9) | st.floats(0, 9)),
        "context_access": st.fixed_dictionaries(
            {}, optional={"data": st.sampled_from([True, False, "all", "none"])}
        ),
    },
)

DEFINITIONS = st.lists(STEPS, min_size=1, max_size=3).map(
    lambda steps: a_sequence(*(a_step(f"s{n}", **options) for n, options in enumerate(steps)))
)


def shuffled(value, chance):
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(inner, chance) for inner in value] if isinstance(value, list) else value


@given(DEFINITIONS)
def test_the_canonical_form_of_the_canonical_form_is_itself(raw):
    made = normalize(raw)

    assert normalize(msgspec.json.decode(made.canonical)).canonical == made.canonical
    assert parse(made.canonical).canonical == made.canonical
    assert load(made.canonical) == made


@given(DEFINITIONS, st.integers())
def test_the_order_of_keys_means_nothing(raw, seed):
    assert normalize(shuffled(raw, random.Random(seed))).hash == normalize(raw).hash


@given(DEFINITIONS)
def test_defaults_written_out_mean_nothing(raw):
    made = normalize(raw)

    assert normalize(to_wire(made)).canonical == made.canonical


@given(VALUES, VALUES)
def test_other_params_are_another_definition_and_equal_ones_the_same(one, other):
    first, second = (normalize(a_sequence(a_step(params=value))) for value in (one, other))
    same = first.canonical == second.canonical

    assert (first.hash == second.hash) is same
    assert same is (
        json.dumps(_signless(one), sort_keys=True) == json.dumps(_signless(other), sort_keys=True)
    )


def _signless(value):
    if isinstance(value, dict):
        return {key: _signless(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_signless(inner) for inner in value]
    return value or 0.0 if isinstance(value, float) else value


DEFAULTS = [
    ([], {"policies": [], "mode": "lenient", "input_schema": None, "sla": None, "on_cancel": None}),
    (
        ["blocks", 0],
        {"fallback_handler": None, "pool": None, "queue_name": None, "compensation": None},
    ),
    (["blocks", 0, "delay"], {"business_days_only": False, "jitter": 0, "holidays": []}),
    (["blocks", 0, "context_access"], {"config": True, "runtime": False}),
    (["blocks", 1, "branches", 0, 0], {"cancellable": True, "params": None, "retry": None}),
    (["blocks", 6, "try_block", 0], {"when": None, "delay": None, "timeout": None}),
    (["blocks", 12, "transitions", 1], {"when": None}),
]


@pytest.mark.parametrize(("place", "defaults"), DEFAULTS)
def test_every_default_written_out_means_nothing(place, defaults):
    raw = copy.deepcopy(EVERY_KIND)
    if place == []:
        raw.pop("on_cancel")
    before = normalize(raw).hash

    target = raw
    for key in place:
        target = target[key]
    assert not set(defaults) & set(target) - {"mode"} - {"policies"} - {"input_schema"}
    target.update({key: value for key, value in defaults.items() if key not in target})

    assert normalize(raw).hash == before


SAME = [
    ({"timeout": 200}, {"timeout": 0.2}),
    ({"timeout": 1001}, {"timeout": 1.001}),
    ({"context_access": {"data": "all"}}, {"context_access": {}}),
    ({"context_access": {"data": "none"}}, {"context_access": {"data": False}}),
    ({"params": -0.0}, {"params": 0.0}),
    ({"params": (1, 2)}, {"params": [1, 2]}),
]

DIFFERENT = [
    ({"timeout": 2}, {"timeout": 2.0}),
    ({"params": 1}, {"params": 1.0}),
    ({"params": 1}, {"params": True}),
    ({"params": {}}, {}),
    ({"context_access": {}}, {}),
    ({"when": ""}, {}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_of_saying_the_same_give_one_hash(one, other):
    hashes = [normalize(a_sequence(a_step(**options))).hash for options in (one, other)]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_meanings_give_two_hashes(one, other):
    hashes = [normalize(a_sequence(a_step(**options))).hash for options in (one, other)]
    assert hashes[0] != hashes[1]


def leaves(value, place=()):
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], (*place, key))]
    if isinstance(value, list) and value:
        return [leaf for key, inner in enumerate(value) for leaf in leaves(inner, (*place, key))]
    return [place]


def changed(value):
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "1"
        case None:
            return 1
    return [a_step("new")]


def test_any_change_of_a_field_that_is_executed_is_refused_or_changes_the_hash():
    before = normalize(EVERY_KIND).hash
    taken = 0
    for place in leaves(EVERY_KIND):
        raw = copy.deepcopy(EVERY_KIND)
        target = raw
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = changed(target[place[-1]])
        try:
            after = normalize(raw).hash
        except DefinitionError:
            continue
        assert after != before, place
        taken += 1
    assert taken > 90


def test_a_field_that_is_removed_changes_the_hash():
    before = normalize(EVERY_KIND).hash
    step = EVERY_KIND["blocks"][0]
    for name in [name for name in step if name not in ("type", "id", "handler")]:
        raw = copy.deepcopy(EVERY_KIND)
        del raw["blocks"][0][name]
        assert normalize(raw).hash != before, name


def test_the_row_around_the_definition_is_not_hashed():
    row = {
        "id": "0190c0de-0000-7000-8000-000000000000",
        "tenant_id": "t",
        "namespace": "default",
        "created_at": "2026-01-01T00:00:00Z",
        "status": "draft",
        "deprecated": True,
    }
    assert normalize(EVERY_KIND | row).canonical == normalize(EVERY_KIND).canonical


def test_an_unknown_field_is_ignored():
    assert normalize(a_sequence(a_step(colour="red"))).hash == normalize(a_sequence()).hash


def test_the_text_is_compact_sorted_and_utf_8():
    made = normalize(a_sequence(a_step(params={"b": "é", "a": [1, 1.0]})))

    assert made.canonical.decode() == (
        '{"blocks":[{"handler":"noop","id":"s","params":{"a":[1,1.0],"b":"é"},"type":"step"}],'
        '"name":"greet","version":1}'
    )


@pytest.mark.req("PLAN-1")
def test_the_hash_of_a_known_definition_never_changes():
    assert normalize(EVERY_KIND).hash == GOLDEN


def test_bytes_that_are_no_definition_are_refused_by_name():
    with pytest.raises(DefinitionError) as caught:
        load(b'{"name": "x"}')

    assert caught.value.code == "definition.syntax"
