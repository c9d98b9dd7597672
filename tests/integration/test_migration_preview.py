"""A migration can be previewed: what stands in the way is said, and nothing changes."""

from __future__ import annotations

import pytest

import detent
from detent import sequence, step, wait
from tests.unit.cli.commands import detent as cli

FIRST = sequence("move", wait("w", signal="go"), step("end", "noop"))
SECOND = sequence("move", wait("w", signal="go"), step("end", "log"), version=2)
OTHER = sequence("move", wait("elsewhere", signal="go"), version=3)


@pytest.mark.req("SEQ-4")
def test_a_preview_says_what_stands_in_the_way_and_changes_nothing(detent_engine):
    instance = detent_engine.start(FIRST)
    detent_engine.deploy(SECOND)
    detent_engine.run_until_idle()
    before = detent_engine.inspect.audit(instance)
    assert detent_engine.inspect.preview_migration(instance, "move@2") == []
    (problem,) = detent_engine.inspect.preview_migration(instance, OTHER)
    assert "'w'" in problem
    assert detent_engine.inspect.audit(instance) == before


@pytest.mark.req("SEQ-4")
def test_the_command_line_previews_too(tmp_path):
    path = tmp_path / "store.db"
    with detent.Engine(path, clock="virtual") as engine:
        instance = engine.start(FIRST)
        engine.deploy(SECOND)
        engine.deploy(OTHER)
        engine.run_until_idle()
    asked = ("instance", "migrate", instance, "--preview", "--db", str(path), "-o", "json")
    there = cli(*asked, "--to", "move@2")
    assert (there.code, there.json["possible"]) == (0, True)
    nowhere = cli(*asked, "--to", "move@3")
    assert (nowhere.code, nowhere.json["possible"]) == (1, False)
