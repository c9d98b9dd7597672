"""A child set aside before its first step: its record still says whose child it is."""

from __future__ import annotations

import pytest
from msgspec import structs

from detent.definition import step
from detent.model.inputs import Parent, decode_input, encode_input
from detent.model.snapshot import decode_snapshot
from detent.service.proving import replay_instance, verify_store
from tests.unit.runtime.test_writer_arrivals import leave, wake
from tests.unit.runtime.writer_rig import Rig


def child_of(start, parent):
    told = structs.replace(decode_input(start.body), parent=parent)
    birth = structs.replace(start.birth, parent=parent.instance)
    return structs.replace(start, body=encode_input(told), birth=birth)


@pytest.mark.req("CORE-REC-3")
def test_a_child_set_aside_at_its_first_step_is_replayed_with_its_parent(tmp_path):
    rig = Rig(tmp_path / "s.db").open()
    rig.settle()
    start = rig.start(rig.define(blocks=[step("a", "work")]))
    parent = Parent(instance="the-parent", token=7, block="b", depth=1)
    leave(rig, child_of(start, parent), "a-1")
    rig.writer._parts.condemned[start.instance] = "it cannot be stepped"
    wake(rig)
    assert (rig.row(start.instance).state, rig.row(start.instance).parent) == (
        "paused",
        "the-parent",
    )
    stored = rig.store.load([start.instance])[start.instance]
    assert decode_snapshot(stored.body).parent["instance"] == "the-parent"
    assert replay_instance(rig.store, start.instance, None).identical
    assert verify_store(rig.store, None).valid
