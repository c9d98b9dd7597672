"""Definitions and settings: ordinary rows that any process writes."""

from __future__ import annotations

import pytest

from detent.model.errors import DefinitionError
from detent.ports.store import DefinitionRow

GREET = DefinitionRow("hash-1", "acme", "sales", "greet", 1, b"\x00body", False, 1_000)


def test_a_definition_is_stored_once(store):
    assert store.put_definition(GREET) is True
    assert store.put_definition(GREET._replace(created_ms=2_000)) is False
    assert store.definition("hash-1") == GREET
    assert store.definition("hash-2") is None


def test_other_content_under_the_same_version_is_refused(store):
    store.put_definition(GREET)
    with pytest.raises(DefinitionError) as refusal:
        store.put_definition(GREET._replace(hash="hash-2", body=b"other"))
    assert refusal.value.code == "definition.conflict"
    assert "raise the version" in str(refusal.value)
    assert store.definitions("acme", "sales") == [GREET]
    assert store.definition("hash-2") is None


def test_tenants_and_namespaces_do_not_meet(store):
    others = [GREET._replace(tenant="other"), GREET._replace(namespace="other")]
    for row in (GREET, *others):
        assert store.put_definition(row) is True
    assert store.find_definition("other", "sales", "greet", 1) == others[0]
    assert store.find_definition("acme", "other", "greet", None) == others[1]
    assert store.find_definition("other", "other", "greet", None) is None
    assert store.definitions("acme", "sales") == [GREET]


def test_without_a_version_the_highest_that_is_not_deprecated_is_found(store):
    rows = [GREET._replace(hash=f"hash-{v}", version=v) for v in (1, 2, 10)]
    for row in rows:
        store.put_definition(row)
    assert store.find_definition("acme", "sales", "greet", None) == rows[2]
    assert store.deprecate_definition("hash-10", "acme", "sales") is True
    assert store.find_definition("acme", "sales", "greet", None) == rows[1]
    assert store.find_definition("acme", "sales", "greet", 10) == rows[2]._replace(deprecated=True)
    assert [row.version for row in store.definitions("acme", "sales")] == [1, 2, 10]


def test_deprecating_what_is_not_there_is_told(store):
    store.put_definition(GREET)
    assert store.deprecate_definition("hash-1", "other", "sales") is False
    assert store.deprecate_definition("hash-2", "acme", "sales") is False
    assert store.definition("hash-1").deprecated is False


def test_a_setting_is_kept_and_replaced(store):
    assert store.setting("clock.accepted") is None
    store.put_setting("clock.accepted", "1")
    store.put_setting("clock.accepted", "zwölf")
    assert store.setting("clock.accepted") == "zwölf"
