"""The configuration of a gate: each refusal beside its legal case, and nothing changed by it."""

from __future__ import annotations

import copy

import pytest

from detent.kernel.gate.config import Config, Limit, Resource, change, read_config
from detent.model import limits
from detent.model.errors import RequestError

NOW = 1_767_225_600_000  # 2026-01-01T00:00Z


def configured(*changes, kv=None):
    kv = {} if kv is None else kv
    for verb, args in changes:
        change(kv, verb, args, NOW)
    return kv


def refused(kv, verb, args, code, *words):
    """Prove that a change is refused with a code and these words, and that nothing changed."""
    before = copy.deepcopy(kv)
    with pytest.raises(RequestError) as caught:
        change(kv, verb, args, NOW)
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message
    assert kv == before


MAILBOX = ("limit.set", {"key": "mailbox", "max": 10, "window_ms": 3_600_000})
POOL = ("pool.set", {"name": "mailboxes", "strategy": "weighted"})
ANNA = ("resource.set", {"pool": "mailboxes", "id": "a", "resource_key": "anna@example.com"})


# limits -------------------------------------------------------------------------------------------


def test_a_limit_is_made_and_then_changed():
    kv = configured(MAILBOX)
    assert read_config(kv).limits == {"mailbox": Limit(max=10, window_ms=3_600_000)}
    made = change(kv, "limit.set", {"key": "mailbox", "max": 5, "window_ms": 1_000}, NOW)
    assert made == {"key": "mailbox", "max": 5, "window_ms": 1_000}
    assert read_config(kv) == Config(limits={"mailbox": Limit(max=5, window_ms=1_000)})


@pytest.mark.parametrize(
    ("field", "legal", "wrong"),
    [
        ("max", 1, 0),
        ("max", limits.LIMIT_MAX, limits.LIMIT_MAX + 1),
        ("max", 1, -1),
        ("max", 1, True),
        ("max", 1, 1.0),
        ("max", 1, "10"),
        ("max", 1, None),
        ("window_ms", 1, 0),
        ("window_ms", 1, -1_000),
        ("window_ms", limits.LIMIT_WINDOW_MS, limits.LIMIT_WINDOW_MS + 1),
        ("key", "k", ""),
        ("key", "k" * limits.NAME_CHARS, "k" * (limits.NAME_CHARS + 1)),
        ("key", "k", 7),
    ],
)
def test_a_limit_out_of_range_is_refused_and_its_edge_is_not(field, legal, wrong):
    args = {"key": "mailbox", "max": 10, "window_ms": 1_000}
    configured(("limit.set", {**args, field: legal}))
    refused({}, "limit.set", {**args, field: wrong}, "limit.invalid", field)


def test_a_field_that_is_no_field_is_refused_with_the_nearest_one():
    args = {"key": "mailbox", "max": 10, "window": 1_000}
    refused({}, "limit.set", args, "limit.invalid", "'window'", "did you mean 'window_ms'")


def test_an_unknown_change_is_refused_with_the_nearest_one():
    refused({}, "limit.sett", {}, "request.invalid", "did you mean 'limit.set'")


def test_one_limit_too_many_is_refused_but_those_there_can_be_changed():
    limit = {"max": 1, "window_ms": 1}
    kv = {f"limit:k{n}": dict(limit) for n in range(limits.LIMITS_PER_TENANT - 1)}
    configured(MAILBOX, kv=kv)
    more = {"key": "more", "max": 1, "window_ms": 1}
    refused(kv, "limit.set", more, "limit.invalid", "10,000")
    change(kv, "limit.set", {"key": "mailbox", "max": 3, "window_ms": 1}, NOW)
    change(kv, "limit.delete", {"key": "k0"}, NOW)
    change(kv, "limit.set", more, NOW)


def test_a_limit_is_closed_and_opened_and_keeps_its_numbers():
    kv = configured(MAILBOX)
    made = change(kv, "limit.close", {"key": "mailbox", "until_ms": NOW + 1}, NOW)
    assert made["closed_until_ms"] == NOW + 1
    change(kv, "limit.set", {"key": "mailbox", "max": 5, "window_ms": 1_000}, NOW)
    assert read_config(kv).limits["mailbox"].closed_until_ms == NOW + 1
    made = change(kv, "limit.open", {"key": "mailbox"}, NOW)
    assert made == {"key": "mailbox", "max": 5, "window_ms": 1_000}


@pytest.mark.parametrize("until", [NOW, NOW - 1, NOW + limits.DURATION_MS + 1, "soon", None])
def test_a_limit_is_closed_only_until_an_instant_to_come(until):
    kv = configured(MAILBOX)
    refused(
        kv, "limit.close", {"key": "mailbox", "until_ms": until}, "limit.invalid", "in the future"
    )
    change(kv, "limit.close", {"key": "mailbox", "until_ms": NOW + limits.DURATION_MS}, NOW)


@pytest.mark.parametrize("verb", ["limit.delete", "limit.close"])
def test_a_limit_that_is_not_there_is_named_with_the_nearest_one(verb):
    kv = configured(MAILBOX)
    args = {"key": "mailbx"}
    refused(kv, verb, {"key": "mailbx"}, "limit.unknown", "'mailbx'", "did you mean 'mailbox'")
    refused({}, verb, args, "limit.unknown")


def test_a_deleted_limit_is_gone_and_cannot_be_deleted_twice():
    kv = configured(MAILBOX)
    assert change(kv, "limit.delete", {"key": "mailbox"}, NOW)["max"] == 10
    assert read_config(kv).limits == {}
    refused(kv, "limit.delete", {"key": "mailbox"}, "limit.unknown")


# pools --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["weighted", "round_robin", "random"])
def test_a_pool_has_one_of_three_strategies(strategy):
    made = change({}, "pool.set", {"name": "p", "strategy": strategy}, NOW)
    assert made == {"name": "p", "strategy": strategy, "resources": {}}


@pytest.mark.parametrize("strategy", ["fastest", "", None, 1, ["weighted"]])
def test_another_strategy_is_refused(strategy):
    refused({}, "pool.set", {"name": "p", "strategy": strategy}, "pool.invalid", "round_robin")


def test_changing_the_strategy_of_a_pool_keeps_its_resources():
    kv = configured(POOL, ANNA)
    made = change(kv, "pool.set", {"name": "mailboxes", "strategy": "random"}, NOW)
    assert list(made["resources"]) == ["a"]
    change(kv, "pool.set", {"name": "mailboxes"}, NOW)
    assert read_config(kv).pools["mailboxes"].strategy == "random"


def test_one_pool_too_many_is_refused():
    kv = {f"pool:p{n}": {"strategy": "weighted"} for n in range(limits.POOLS_PER_TENANT)}
    refused(kv, "pool.set", {"name": "more"}, "pool.invalid", "1,000")
    change(kv, "pool.set", {"name": "p7", "strategy": "random"}, NOW)


def test_pools_with_names_that_read_like_one_another_stay_apart():
    kv = {}
    for name in ("a", "a:b", "1:a", "a:", ":"):
        change(kv, "pool.set", {"name": name}, NOW)
        for id in ("b:c", "c", ":"):
            args = {"pool": name, "id": id, "resource_key": f"{name}/{id}"}
            change(kv, "resource.set", args, NOW)
    change(kv, "pool.delete", {"name": "a"}, NOW)
    found = read_config(kv).pools
    assert list(found) == ["a:b", "1:a", "a:", ":"]
    for name, pool in found.items():
        assert [each.resource_key for each in pool.resources.values()] == [
            f"{name}/{id}" for id in ("b:c", "c", ":")
        ]


def test_a_pool_that_is_not_there_is_named_with_the_nearest_one():
    kv = configured(POOL)
    refused(kv, "pool.delete", {"name": "mailboxs"}, "pool.unknown", "did you mean 'mailboxes'")
    refused(kv, "resource.set", {**ANNA[1], "pool": "mailboxs"}, "pool.unknown")
    refused(kv, "resource.delete", {"pool": "other", "id": "a"}, "pool.unknown")
    change(kv, "pool.delete", {"name": "mailboxes"}, NOW)
    assert read_config(kv).pools == {}


# resources ----------------------------------------------------------------------------------------


def test_a_resource_is_added_with_its_defaults():
    kv = configured(POOL, ANNA)
    assert read_config(kv).pools["mailboxes"].resources == {
        "a": Resource(resource_key="anna@example.com", name="anna@example.com")
    }


def test_only_the_given_fields_of_a_resource_change():
    kv = configured(POOL, ANNA)
    made = change(
        kv, "resource.set", {"pool": "mailboxes", "id": "a", "weight": 3, "daily_cap": 40}, NOW
    )
    assert (made["weight"], made["daily_cap"], made["name"]) == (3, 40, "anna@example.com")
    made = change(kv, "resource.set", {"pool": "mailboxes", "id": "a", "enabled": False}, NOW)
    assert (made["weight"], made["enabled"]) == (3, False)


def test_two_resources_may_have_the_same_key():
    again = ("resource.set", {**ANNA[1], "id": "b"})
    assert list(read_config(configured(POOL, ANNA, again)).pools["mailboxes"].resources) == [
        "a",
        "b",
    ]


@pytest.mark.parametrize(
    ("field", "legal", "wrong"),
    [
        ("weight", 1, 0),
        ("weight", limits.RESOURCE_WEIGHT, limits.RESOURCE_WEIGHT + 1),
        ("weight", 2, -1),
        ("weight", 2, None),
        ("daily_cap", 0, -1),
        ("daily_cap", limits.DAILY_CAP, limits.DAILY_CAP + 1),
        ("warmup_start_cap", 0, -1),
        ("warmup_days", 0, -1),
        ("enabled", False, 0),
        ("enabled", True, "yes"),
        ("name", "n", ""),
        ("name", "n" * limits.NAME_CHARS, "n" * (limits.NAME_CHARS + 1)),
        ("resource_key", "k", ""),
        ("resource_key", "k", None),
        ("id", "i", ""),
        ("warmup_start", "2026-02-28", "2026-02-30"),
        ("warmup_start", "2026-02-28", "20260228"),
        ("warmup_start", "2026-02-28", "28.2.2026"),
        ("warmup_start", None, 20260228),
        ("warmup_schedule", [5, 10], []),
        ("warmup_schedule", [0], [-1]),
        ("warmup_schedule", [5], [5.5]),
        ("warmup_schedule", [1] * limits.WARMUP_DAYS, [1] * (limits.WARMUP_DAYS + 1)),
        ("warmup_schedule", None, "5,10"),
        ("timezone", "Europe/Paris", 1),
    ],
)
def test_a_resource_out_of_range_is_refused_and_its_edge_is_not(field, legal, wrong):
    kv = configured(POOL)
    args = {"pool": "mailboxes", "id": "a", "resource_key": "k"}
    refused(kv, "resource.set", {**args, field: wrong}, "pool.invalid", field)
    configured(("resource.set", {**args, field: legal}), kv=kv)


def test_an_unknown_field_of_a_resource_is_refused_with_the_nearest_one():
    kv = configured(POOL, ANNA)
    args = {"pool": "mailboxes", "id": "a", "wieght": 2}
    refused(kv, "resource.set", args, "pool.invalid", "did you mean 'weight'")


def test_an_unknown_zone_is_refused():
    kv = configured(POOL, ANNA)
    args = {"pool": "mailboxes", "id": "a"}
    refused(kv, "resource.set", {**args, "timezone": "Europe/Pariss"}, "calendar.zone")
    change(kv, "resource.set", {**args, "timezone": "Europe/Paris"}, NOW)


def test_a_resource_that_is_not_there_is_neither_changed_nor_removed():
    kv = configured(POOL, ("resource.set", {**ANNA[1], "id": "anna"}))
    args = {"pool": "mailboxes", "id": "ana"}
    refused(kv, "resource.set", {**args, "weight": 2}, "resource.unknown", "did you mean 'anna'")
    refused(kv, "resource.delete", args, "resource.unknown", "did you mean 'anna'")
    change(kv, "resource.delete", {**args, "id": "anna"}, NOW)
    assert read_config(kv).pools["mailboxes"].resources == {}


def test_a_resource_keeps_its_key():
    kv = configured(POOL, ANNA)
    args = {"pool": "mailboxes", "id": "a"}
    refused(
        kv, "resource.set", {**args, "resource_key": "eve@example.com"}, "pool.invalid", "remove"
    )
    change(kv, "resource.set", {**args, "resource_key": "anna@example.com", "weight": 2}, NOW)


def test_one_resource_too_many_is_refused():
    kv = configured(POOL, ANNA)
    there = kv["resource:9:mailboxes:a"]
    for n in range(limits.RESOURCES_PER_POOL - 1):
        kv[f"resource:9:mailboxes:r{n}"] = dict(there)
    refused(kv, "resource.set", {**ANNA[1], "id": "more"}, "pool.invalid", "1,000")
    change(kv, "resource.set", {"pool": "mailboxes", "id": "r7", "weight": 2}, NOW)


def test_one_resource_too_many_in_all_pools_is_refused():
    kv = configured(POOL, ANNA)
    there = kv["resource:9:mailboxes:a"]
    for n in range(limits.RESOURCES_PER_TENANT - 1):
        kv[f"resource:5:other:r{n}"] = dict(there)
    refused(kv, "resource.set", {**ANNA[1], "id": "more"}, "pool.invalid", "10,000")
    change(kv, "resource.set", {"pool": "mailboxes", "id": "a", "weight": 2}, NOW)


# when something was made -------------------------------------------------------------------------


def test_a_pool_and_a_resource_keep_when_whoever_made_them_said():
    kv = configured((POOL[0], {**POOL[1], "at_ms": 5}), (ANNA[0], {**ANNA[1], "at_ms": 7}))
    change(kv, POOL[0], {**POOL[1], "at_ms": 9}, NOW)
    change(kv, ANNA[0], {**ANNA[1], "weight": 2, "at_ms": 11}, NOW)
    pool = read_config(kv).pools["mailboxes"]
    assert (pool.created_ms, pool.updated_ms) == (5, 9)
    assert (pool.resources["a"].created_ms, pool.resources["a"].weight) == (7, 2)


def test_where_nobody_said_nothing_is_kept():
    pool = read_config(configured(POOL, ANNA)).pools["mailboxes"]
    assert (pool.created_ms, pool.updated_ms, pool.resources["a"].created_ms) == (None,) * 3
    assert configured(POOL) == {"pool:mailboxes": {"strategy": "weighted"}}


@pytest.mark.parametrize("at", ["now", -1, 1.5])
def test_an_instant_that_is_none_is_refused(at):
    refused(configured(POOL), POOL[0], {**POOL[1], "at_ms": at}, "pool.invalid", "at_ms")
