"""Every verb of an engine through three doors: the same result, and the same refusal."""

from __future__ import annotations

from functools import partial

import pytest

import detent
from tests.integration.client import (  # noqa: F401 - they say what each verb does
    gate_cases,
    looking_cases,
    outside_cases,
    steering_cases,
)
from tests.integration.client.world import REFUSED, WELL, world
from tests.unit.client.surfaces import ENGINE_ONLY, engine_verbs

DOORS = ("client", "awaited")


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with world(tmp_path_factory.mktemp("verbs") / "s.db") as made:
        yield made


def refusal(call):
    with pytest.raises(detent.DetentError) as found:
        call()
    return type(found.value), found.value.code


def test_every_verb_is_tried_and_refused_here():
    verbs = engine_verbs() - set(ENGINE_ONLY)
    assert set(WELL) == verbs
    assert set(REFUSED) == verbs


@pytest.mark.parametrize("name", WELL)
def test_a_verb_does_the_same_through_every_door(there, name):
    expected = WELL[name](there.engine, there)
    assert expected is not None
    for door in DOORS:
        assert WELL[name](getattr(there.house, door), there) == expected, door


@pytest.mark.parametrize("name", [name for name, told in REFUSED.items() if told])
def test_a_verb_refuses_with_the_same_error_through_every_door(there, name):
    call, code = REFUSED[name]
    expected = refusal(partial(call, there.engine, there))
    assert expected[1] == code
    for door in DOORS:
        assert refusal(partial(call, getattr(there.house, door), there)) == expected, door
