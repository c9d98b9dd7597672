"""The same version with other pinned holidays is the same version; with anything else it is not."""

from __future__ import annotations

import pytest

from detent.definition import normalize
from detent.model.errors import DefinitionError
from detent.service.catalogue import settled
from tests.unit.service.keeper import Keeper

PLACE = ("default", "default")


def a_definition(dates=("2026-05-01",), version=1, params=None, country="OURS"):
    delay = {"duration": 1, "business_days_only": True, "country": country}
    block = {"type": "step", "id": "s", "handler": "work", "delay": delay, "params": params}
    calendars = {country: list(dates)}
    raw = {"name": "n", "version": version, "blocks": [block], "calendars": calendars}
    return normalize(raw)


@pytest.fixture
def keeper():
    return Keeper()


def test_what_is_not_stored_yet_is_taken_as_it_is(keeper):
    made = a_definition()

    assert settled(keeper.store, PLACE, made) is made


@pytest.mark.req("SEQ-TIM-2")
def test_other_holidays_of_the_same_countries_leave_the_stored_version_in_force(keeper):
    stored = keeper.define(a_definition())
    made = a_definition(["2026-05-01", "2026-10-03"])

    assert made.hash != stored.hash
    assert settled(keeper.store, PLACE, made) == stored
    assert settled(keeper.store, PLACE, stored) is stored


@pytest.mark.parametrize(
    "other",
    [
        a_definition(["2026-10-03"], params=1),
        a_definition(["2026-10-03"], params=1.0),
        a_definition(["2026-10-03"], country="THEIRS"),
    ],
)
def test_any_other_difference_is_still_a_conflict(keeper, other):
    keeper.define(a_definition(params=True))

    assert settled(keeper.store, PLACE, other) is other
    with pytest.raises(DefinitionError) as caught:
        keeper.define(other)
    assert caught.value.code == "definition.conflict"


def test_another_version_tenant_or_namespace_is_not_touched(keeper):
    keeper.define(a_definition())
    later = a_definition(["2026-10-03"], version=2)
    same = a_definition(["2026-10-03"])

    assert settled(keeper.store, PLACE, later) is later
    assert settled(keeper.store, ("other", "default"), same) is same
    assert settled(keeper.store, ("default", "other"), same) is same


def test_a_definition_without_countries_is_compared_by_its_hash_alone(keeper):
    raw = {"name": "n", "version": 1, "blocks": [{"type": "wait", "id": "w", "duration": 1}]}
    keeper.define(normalize(raw))
    raw["blocks"][0]["duration"] = 2
    other = normalize(raw)

    assert settled(keeper.store, PLACE, other) is other
