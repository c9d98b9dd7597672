"""Every verb of an engine is a verb of a client, with arguments that fit: read from the classes."""

from __future__ import annotations

import inspect
import re
import typing
from pathlib import Path

import pytest

import detent
from tests.unit.client.surfaces import (
    ENGINE_ONLY,
    UNCHANGED,
    engine_verbs,
    facades,
    verbs_of,
)

DOORS = {"client": detent.Client, "awaited": detent.AsyncClient}
URL = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def engine():
    with detent.Engine(clock="virtual") as made:
        yield made


@pytest.fixture(params=DOORS)
def door(request):
    return DOORS[request.param](URL)


def of(owner, name):
    """The verb `crons.create` of an engine or a client."""
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner


def parameters(verb):
    return {
        each.name: each
        for each in inspect.signature(verb).parameters.values()
        if each.name != "self"
    }


def options(verb, parameter):
    """The names that `**options` may have."""
    hints = typing.get_type_hints(inspect.unwrap(verb), include_extras=True)
    (told,) = typing.get_args(hints[parameter.name])
    return set(typing.get_type_hints(told))


@pytest.mark.parametrize("name", sorted(engine_verbs() - set(ENGINE_ONLY)))
def test_a_client_has_the_verb_with_arguments_that_fit(engine, door, name):
    here, there = of(engine, name), of(door, name)
    assert there is not None, f"{type(door).__name__} has no verb {name}"
    asked, taken = parameters(here), parameters(there)
    for each in asked.values():
        mine = taken.get(each.name)
        assert mine is not None, f"{name} does not take {each.name}"
        assert mine.kind is each.kind, f"{each.name} of {name} is passed in another way"
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            assert options(there, mine) >= options(here, each), name
        elif each.name == "tenant":
            # None stands for the client's own tenant, and without one for the engine's default
            assert (mine.default, each.default in (None, "default")) == (None, True), name
        else:
            assert mine.default == each.default, f"{each.name} of {name} has another default"
    for each in (each for name, each in taken.items() if name not in asked):
        named = each.kind is inspect.Parameter.VAR_KEYWORD
        assert named or each.default is not inspect.Parameter.empty, f"{name} needs {each.name}"


def test_the_exceptions_are_verbs_that_no_client_has_and_each_says_why(engine, door):
    assert set(ENGINE_ONLY) <= engine_verbs()
    for name, reason in ENGINE_ONLY.items():
        assert of(door, name) is None or name in UNCHANGED, name
        assert reason.endswith("."), name


def test_the_reference_names_the_exceptions():
    page = Path(__file__).parents[3] / "docs/reference/client.md"
    _, _, listed = page.read_text(encoding="utf-8").partition("## What stays with the engine")
    listed, _, _ = listed.partition("\n## ")
    assert set(re.findall(r"`([a-z_.]+)`", listed)) == set(ENGINE_ONLY)


def test_the_doors_of_an_engine_are_found_and_each_is_a_door_of_a_client(engine, door):
    found = facades(engine)
    assert set(found) >= {"limits", "pools", "breakers", "crons", "events", "webhooks", "work"}
    for name, owner in found.items():
        if any(f"{name}.{verb}" not in ENGINE_ONLY for verb in verbs_of(owner)):
            assert verbs_of(getattr(door, name)), name


def test_what_awaits_an_engine_has_the_same_doors(engine):
    for name in facades(engine):
        for verb in verbs_of(getattr(engine, name)):
            if f"{name}.{verb}" in ENGINE_ONLY:
                continue
            assert callable(getattr(getattr(engine.aio, name), verb)), f"{name}.{verb}"
