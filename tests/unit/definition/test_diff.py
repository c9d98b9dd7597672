"""The difference between two definitions, in the words of the author."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from detent.definition import Change, diff, normalize
from tests.unit.definition.samples import EVERY_KIND, a_sequence, a_step


def changes(one, other):
    return diff(normalize(one), normalize(other))


def test_equal_definitions_do_not_differ():
    assert changes(EVERY_KIND, copy.deepcopy(EVERY_KIND)) == []


def test_a_changed_option_is_named_by_the_block_it_belongs_to():
    one = a_sequence(a_step("a"), a_step("b", timeout=5))
    other = a_sequence(a_step("a"), a_step("b", timeout=6))

    assert changes(one, other) == [Change("blocks[b].timeout", "changed", 5, 6)]


def test_a_block_put_in_front_is_one_change():
    one = a_sequence(a_step("a"), a_step("b"))
    other = a_sequence(a_step("new"), a_step("a"), a_step("b"))

    (change,) = changes(one, other)

    assert (change.path, change.kind, change.after["id"]) == ("blocks[new]", "added", "new")
    (back,) = changes(other, one)
    assert (back.path, back.kind, back.after) == ("blocks[new]", "removed", None)


def test_another_order_is_one_change_of_the_list():
    one = a_sequence(a_step("a"), a_step("b"))
    other = a_sequence(a_step("b"), a_step("a"))

    assert changes(one, other) == [Change("blocks", "changed", ["a", "b"], ["b", "a"])]


def test_members_without_ids_are_compared_by_their_place():
    def splitting(*weights):
        variants = [{"name": f"v{w}", "weight": w, "blocks": []} for w in weights]
        return a_sequence({"type": "a_b_split", "id": "x", "variants": variants})

    assert [(c.path, c.kind) for c in changes(splitting(1, 2), splitting(1, 3, 4))] == [
        ("blocks[x].variants[1].name", "changed"),
        ("blocks[x].variants[1].weight", "changed"),
        ("blocks[x].variants[2]", "added"),
    ]
    assert [(c.path, c.kind) for c in changes(splitting(1, 2, 3), splitting(1, 2))] == [
        ("blocks[x].variants[2]", "removed")
    ]


def test_a_default_that_was_changed_shows_the_value_it_had():
    one = a_sequence({"type": "loop", "id": "l", "condition": "x", "body": [a_step()]})
    other = copy.deepcopy(one)
    other["blocks"][0]["max_iterations"] = 5

    assert changes(one, other) == [Change("blocks[l].max_iterations", "changed", 1000, 5)]


def test_one_and_one_point_zero_and_true_are_three_values():
    values = [1, 1.0, True]
    for one in values:
        for other in values:
            found = changes(a_sequence(a_step(params=one)), a_sequence(a_step(params=other)))
            assert len(found) == (type(one) is not type(other))


@given(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans())
def test_there_are_changes_exactly_when_the_hashes_differ(one, other, first, second):
    a = normalize(a_sequence(a_step(timeout=one, cancellable=first)))
    b = normalize(a_sequence(a_step(timeout=other, cancellable=second)))

    assert (diff(a, b) == []) is (a.hash == b.hash)
