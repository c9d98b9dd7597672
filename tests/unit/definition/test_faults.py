"""The report of faults: all at once, in order, bounded, each with a registered code."""

from __future__ import annotations

import pathlib
import re

import pytest

from detent import definition
from detent.definition import FAULTS, normalize, status_of
from detent.model.errors import DefinitionError
from detent.model.limits import DEFINITION_FAULTS
from tests.unit.definition.samples import a_sequence, a_step, faults_of


@pytest.mark.req("PLAN-4", "WF-DEF-2")
def test_all_faults_are_reported_at_once_each_with_its_place():
    raw = {
        "name": "",
        "version": "1",
        "blocks": [
            a_step("a", timeout=-1, handler=""),
            a_step("a"),
            {"type": "loop", "id": "l", "condition": "", "body": []},
            {"type": "lop", "id": "x"},
        ],
        "input_schema": 5,
    }

    assert faults_of(raw) == [
        ("blocks[0].handler", "definition.blank"),
        ("blocks[0].timeout", "definition.duration"),
        ("blocks[1].id", "definition.duplicate_id"),
        ("blocks[2].body", "definition.empty"),
        ("blocks[2].condition", "definition.blank"),
        ("blocks[3].type", "definition.unknown_type"),
        ("input_schema", "definition.schema"),
        ("name", "definition.blank"),
        ("version", "definition.type"),
    ]


def test_the_second_block_comes_before_the_tenth():
    raw = a_sequence(*(a_step(f"s{n}", handler="") for n in range(11)))

    paths = [path for path, _ in faults_of(raw)]

    assert paths == [f"blocks[{n}].handler" for n in range(11)]


def test_as_many_faults_as_allowed_are_listed_and_the_rest_is_counted():
    def broken(count):
        return a_sequence(*(a_step(f"s{n}", handler="") for n in range(count)))

    just = faults_of(broken(DEFINITION_FAULTS))
    assert len(just) == DEFINITION_FAULTS
    assert just[-1] == (f"blocks[{DEFINITION_FAULTS - 1}].handler", "definition.blank")

    with pytest.raises(DefinitionError) as caught:
        normalize(broken(DEFINITION_FAULTS + 30))
    assert len(caught.value.faults) == DEFINITION_FAULTS
    assert caught.value.faults[-1].code == "definition.more"
    assert caught.value.faults[-1].message.startswith("31 more faults")


def test_one_fault_of_decoding_makes_the_whole_answer_422():
    with pytest.raises(DefinitionError) as meaning:
        normalize(a_sequence() | {"blocks": []})
    with pytest.raises(DefinitionError) as decoding:
        normalize(a_sequence() | {"blocks": [], "version": "1"})

    assert status_of(meaning.value) == 400
    assert status_of(decoding.value) == 422


def test_a_definition_with_only_unsupported_options_says_so_in_its_code():
    with pytest.raises(DefinitionError) as only:
        normalize(a_sequence(a_step(compensation={"x": 1})))
    with pytest.raises(DefinitionError) as mixed:
        normalize(a_sequence(a_step(compensation={"x": 1}, timeout=-1)))

    assert only.value.code == "definition.unsupported"
    assert mixed.value.code == "definition.invalid"


def test_a_faulty_value_is_reported_once():
    raw = a_sequence(a_step(timeout=float("nan"), params={"x": float("inf")}, when="\ud800"))

    assert faults_of(raw) == [
        ("blocks[0].params.x", "definition.number"),
        ("blocks[0].timeout", "definition.number"),
        ("blocks[0].when", "definition.text"),
    ]


def test_every_code_in_the_source_is_in_the_table_and_the_other_way_round():
    folder = pathlib.Path(definition.__file__).parent
    sources = [path.read_text() for path in sorted(folder.rglob("*.py"))]
    used = {code for text in sources for code in re.findall(r'"(definition\.[a-z_]+)"', text)}
    outside = [text for text in sources if "FAULTS: dict" not in text]
    named = {code for text in outside for code in re.findall(r'"(definition\.[a-z_]+)"', text)}

    assert used - {"definition.invalid"} == set(FAULTS)
    assert set(FAULTS) - named == {"definition.more"}


def test_every_code_has_a_sentence_and_a_status():
    assert all(kind.status in (400, 422) and kind.meaning.endswith(".") for kind in FAULTS.values())
