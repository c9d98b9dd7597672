"""The engine's own definitions, and the kinds of block that only they have."""

from __future__ import annotations

import pytest

from detent.definition import load
from detent.definition.system import CRON, EVENTS, GATE, WEBHOOK
from detent.model.definition import Correlator, Gatekeeper, Schedule, Step
from tests.unit.definition.samples import a_sequence, faults_of

HASHES = {
    "detent.gate": "4130cd8434b04fa33ce9f9b6bea78201caf741c0025fc11d7ac487853d941e73",
    "detent.events": "41be694ceb8f661a9dbc2b5748dae8cce331982073f8eabd1268112476d5f75d",
    "detent.webhook": "3a5f838b7dd90c0690db7243e6ab58311042c673f6e03b8e79ae50214d5a981c",
    "detent.cron": "73282c3e59345fa9f649a8ec5bb542f2f4b4ff3c7bf3350446d0936c087bdba9",
}
"""Instances of every store are pinned to these; a release that changes one loses them."""


@pytest.mark.parametrize(
    ("made", "kind"), [(GATE, Gatekeeper), (CRON, Schedule), (EVENTS, Correlator), (WEBHOOK, Step)]
)
def test_a_definition_of_the_engine_has_one_block_and_never_changes(made, kind):
    (block,) = made.body.blocks

    assert type(block) is kind
    assert made.version == 1
    assert made.hash == HASHES[made.name]
    assert load(made.canonical) == made


@pytest.mark.parametrize("kind", ["gatekeeper", "schedule", "correlator"])
def test_an_author_cannot_write_a_block_of_the_engine(kind):
    raw = a_sequence({"type": kind, "id": "x"})

    assert faults_of(raw) == [("blocks[0].type", "definition.unknown_type")]
