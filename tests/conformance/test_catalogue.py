"""Definitions and settings: ordinary rows that any process writes."""

from __future__ import annotations

import pytest

from detent.model.errors import DefinitionError
from detent.model.ids import derived_id
from detent.ports.definitions import DefinitionQuery, DefinitionRow


def known(row):
    """The row with the id it is known by when its author chose none."""
    key = f"{row.namespace}/{row.name}/{row.version}"
    return row._replace(id=derived_id(row.tenant, "definition", key))


GREET = known(DefinitionRow("hash-1", "acme", "sales", "greet", 1, b"\x00body", False, 1_000))


def test_a_definition_without_an_id_gets_the_one_derived_from_its_name(store):
    plain = GREET._replace(id="")
    assert store.put_definition(plain) is True
    assert store.put_definition(plain) is False
    assert store.definition_by_id(GREET.id) == GREET
    assert store.definition_by_id("") is None


def test_an_id_that_its_author_chose_is_kept_and_is_nobody_elses(store):
    chosen = GREET._replace(id="id-1", status="draft", created_at="2026-01-05T10:00:00.123456Z")
    assert store.put_definition(chosen) is True
    assert store.definition_by_id("id-1") == chosen
    assert store.definition_by_id(GREET.id) is None
    for other in ({"tenant": "other"}, {"version": 2, "hash": "hash-2"}):
        with pytest.raises(DefinitionError) as refusal:
            store.put_definition(chosen._replace(**other))
        assert refusal.value.code == "definition.conflict"
        assert "choose another id" in str(refusal.value)
    assert store.find_definitions(DefinitionQuery()) == [chosen]


def test_definitions_are_found_page_by_page_the_newest_version_first(store):
    rows = [
        known(GREET._replace(hash=f"hash-{name}-{v}", tenant=tenant, name=name, version=v))
        for tenant in ("acme", "beta")
        for name in ("ask", "greet")
        for v in (10, 2, 1)
    ]
    for row in reversed(rows):
        store.put_definition(row)
    store.deprecate_definition("hash-ask-2", "acme", "sales")
    rows[1] = rows[1]._replace(deprecated=True)
    assert store.find_definitions(DefinitionQuery()) == rows
    assert store.find_definitions(DefinitionQuery(offset=4, limit=3)) == rows[4:7]
    assert store.find_definitions(DefinitionQuery(tenant="acme")) == rows[:6]
    assert store.find_definitions(DefinitionQuery(tenant="acme", name="greet")) == rows[3:6]
    assert store.find_definitions(DefinitionQuery(namespace="sales", limit=1)) == rows[:1]
    assert store.find_definitions(DefinitionQuery(namespace="other")) == []
    assert store.find_definitions(DefinitionQuery(without="other")) == rows
    assert store.find_definitions(DefinitionQuery(without="sales")) == []
    assert store.find_definitions(DefinitionQuery(hash="hash-ask-2")) == [rows[1], rows[7]]
    assert store.find_definitions(DefinitionQuery(hash="hash-ask-2", tenant="beta")) == [rows[7]]


def test_the_status_of_a_definition_is_set_for_one_tenant_and_namespace(store):
    others = [known(GREET._replace(tenant="other")), known(GREET._replace(namespace="other"))]
    for row in (GREET, *others):
        store.put_definition(row)
    assert store.set_definition_status("hash-1", "acme", "sales", "unpublished") is True
    assert store.definition_by_id(GREET.id) == GREET._replace(status="unpublished")
    assert [store.definition_by_id(row.id) for row in others] == others
    assert store.set_definition_status("hash-2", "acme", "sales", "draft") is False


def test_a_deleted_definition_is_gone_and_the_same_of_another_tenant_is_not(store):
    other = known(GREET._replace(tenant="other"))
    store.put_definition(GREET)
    store.put_definition(other)
    assert store.delete_definition(GREET.id) is True
    assert store.delete_definition(GREET.id) is False
    assert store.delete_definition("") is False
    assert store.definition_by_id(GREET.id) is None
    assert store.definition("hash-1") == other
    assert store.put_definition(GREET) is True


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
    others = [known(GREET._replace(tenant="other")), known(GREET._replace(namespace="other"))]
    for row in (GREET, *others):
        assert store.put_definition(row) is True
    assert store.find_definition("other", "sales", "greet", 1) == others[0]
    assert store.find_definition("acme", "other", "greet", None) == others[1]
    assert store.find_definition("other", "other", "greet", None) is None
    assert store.definitions("acme", "sales") == [GREET]


def test_without_a_version_the_highest_that_is_not_deprecated_is_found(store):
    rows = [known(GREET._replace(hash=f"hash-{v}", version=v)) for v in (1, 2, 10)]
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
