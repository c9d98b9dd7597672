"""Ids of blocks: two nodes must never have one path, since the path is part of the effect key."""

from __future__ import annotations

import pytest

from detent.definition import normalize
from detent.model.errors import DefinitionError


def sequence(block_id):
    return {
        "name": "ids",
        "version": 1,
        "blocks": [{"type": "step", "id": block_id, "handler": "noop"}],
    }


@pytest.mark.req("CORE-EFF-2")
@pytest.mark.parametrize("name", ["a/b", "a[0]", "a?policy:0", "on_failure", "on_cancel", "]"])
def test_an_id_that_reads_like_a_path_is_refused_with_its_place(name):
    with pytest.raises(DefinitionError) as refused:
        normalize(sequence(name))
    assert [(fault.path, fault.code) for fault in refused.value.faults] == [
        ("blocks[0].id", "definition.block_id")
    ]


@pytest.mark.parametrize("name", ["a", "a.b", "a:b", "on_failures", "ü", "a-b c", "{x}"])
def test_any_other_words_are_an_id(name):
    assert normalize(sequence(name)).body.blocks[0].id == name
