"""Delays, windows, limits and pools: one meaning has one canonical form, and is shown as given."""

from __future__ import annotations

import msgspec
import pytest

from detent.definition import normalize, parse, step, to_wire, warnings
from detent.model.definition import Delay, SendWindow
from detent.model.limits import KEY_CHARS, NAME_CHARS, RATE_LIMIT_KEYS
from tests.unit.definition.samples import a_sequence, a_step, check_rule, faults_of

EVERYTHING = {
    "delay": {
        "duration": 0,
        "business_days_only": True,
        "jitter": 1000,
        "holidays": ["2026-12-24"],
        "fire_at_local": "2026-03-01T09:00:00",
        "timezone": "Europe/Paris",
        "country": "OURS",
        "gap": "shift",
        "fold": "second",
    },
    "send_window": [
        {"start_hour": 8, "end_hour": 20, "days": [0, 4]},
        {"start": "22:00", "end": "06:30", "days": [5]},
        {
            "hours": {"mon": ["09:00-12:00", "13:00-17:00"], "sat": ["10:00-24:00"]},
            "timezone": "Asia/Tokyo",
            "holidays": ["2026-01-01"],
            "country": "OURS",
            "gap": "before",
            "fold": "second",
            "send_late_within": 60000,
        },
    ],
    "rate_limit_key": ["mail:{{ data.box }}", "all"],
    "pool": "{{ data.pool }}",
    "sticky": False,
}
SEQUENCE = {"pool": "boxes", "sticky": False, "calendars": {"OURS": ["2026-05-01", "2026-10-03"]}}


def everything():
    return a_sequence(a_step(**EVERYTHING), **SEQUENCE)


def only(**options):
    (block,) = normalize(a_sequence(a_step(**options))).body.blocks
    return block


def test_every_option_is_kept_as_it_was_given():
    body = normalize(everything()).body
    (block,) = body.blocks

    assert block.delay == Delay(
        **EVERYTHING["delay"] | {"holidays": ("2026-12-24",)},
    )
    assert block.send_window == (
        SendWindow(start_hour=8, end_hour=20, days=(0, 4)),
        SendWindow(start="22:00", end="06:30", days=(5,)),
        SendWindow(
            hours={"mon": ("09:00-12:00", "13:00-17:00"), "sat": ("10:00-24:00",)},
            timezone="Asia/Tokyo",
            holidays=("2026-01-01",),
            country="OURS",
            gap="before",
            fold="second",
            send_late_within=60000,
        ),
    )
    assert block.rate_limit_key == ("mail:{{ data.box }}", "all")
    assert (block.pool, block.sticky) == ("{{ data.pool }}", False)
    assert (body.pool, body.sticky) == ("boxes", False)
    assert body.calendars == {"OURS": ("2026-05-01", "2026-10-03")}


def test_every_option_is_shown_and_read_again():
    made = normalize(everything())
    shown = to_wire(made)

    assert normalize(shown).canonical == made.canonical
    assert parse(made.canonical).canonical == made.canonical
    assert shown["blocks"][0]["delay"] == EVERYTHING["delay"]
    assert shown["blocks"][0]["send_window"] == EVERYTHING["send_window"]
    assert shown["calendars"] == SEQUENCE["calendars"]
    assert (shown["pool"], shown["sticky"]) == ("boxes", False)


def test_what_the_contract_does_not_know_is_not_shown_at_its_default():
    raw = a_sequence(a_step(delay={"duration": 1}, send_window={}, rate_limit_key="k", pool="p"))
    shown = to_wire(normalize(raw))
    (block,) = shown["blocks"]

    assert block["delay"] == {"duration": 1, "business_days_only": False, "holidays": []}
    assert block["send_window"] == {"start_hour": 9, "end_hour": 17, "days": []}
    assert (block["rate_limit_key"], block["pool"]) == ("k", "p")
    assert not {"sticky", "calendars", "pool"} & shown.keys()
    assert "sticky" not in block


@pytest.mark.parametrize("option", EVERYTHING)
def test_a_change_of_an_option_is_another_definition(option):
    changed = a_sequence(a_step(**EVERYTHING | {option: None}), **SEQUENCE)

    assert normalize(changed).hash != normalize(everything()).hash


SAME = [
    ({"delay": {"fire_at_local": "2026-03-01T09:00:00"}},) * 2,
    (
        {"delay": {"fire_at_local": "2026-03-01T09:00:00"}},
        {"delay": {"fire_at_local": "2026-03-01T09:00:00", "duration": 0}},
    ),
    ({"delay": {"duration": 1, "gap": "next", "fold": "first"}}, {"delay": {"duration": 1}}),
    (
        {"delay": {"duration": 1, "holidays": ["2026-12-25", "2026-01-01", "2026-12-25"]}},
        {"delay": {"duration": 1, "holidays": ["2026-01-01", "2026-12-25"]}},
    ),
    ({"send_window": [{"start_hour": 8}]}, {"send_window": {"start_hour": 8}}),
    ({"send_window": {"days": [4, 0, 4]}}, {"send_window": {"days": [0, 4]}}),
    (
        {"send_window": {"hours": {"mon": ["13:00-17:00", "09:00-12:00"], "tue": []}}},
        {"send_window": {"hours": {"mon": ["09:00-12:00", "13:00-17:00"]}}},
    ),
    (
        {"send_window": {"start_hour": 9, "end_hour": 17, "send_late_within": 0.0}},
        {"send_window": {}},
    ),
    ({"rate_limit_key": ["k"]}, {"rate_limit_key": "k"}),
    ({"sticky": True}, {}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_ways_of_saying_the_same_time_give_one_hash(one, other):
    hashes = [normalize(a_sequence(a_step(**options))).hash for options in (one, other)]
    assert hashes[0] == hashes[1]


def test_a_window_is_not_the_same_as_none():
    assert only(send_window={}).send_window == SendWindow()
    assert normalize(a_sequence(a_step(send_window={}))).hash != normalize(a_sequence()).hash


KEYS = [f"k{n}" for n in range(RATE_LIMIT_KEYS + 1)]

# a block that is allowed, one that is not, the fault's place below it, its code, its HTTP status
RULES = {
    "a rate limit key is not blank": (
        a_step(rate_limit_key="mail"),
        a_step(rate_limit_key=" "),
        "rate_limit_key",
        "blank",
        400,
    ),
    "a rate limit key is bounded": (
        a_step(rate_limit_key="k" * KEY_CHARS),
        a_step(rate_limit_key="k" * (KEY_CHARS + 1)),
        "rate_limit_key",
        "range",
        400,
    ),
    "rate limit keys are text": (
        a_step(rate_limit_key=["a", "b"]),
        a_step(rate_limit_key={"a": 1}),
        "rate_limit_key",
        "type",
        422,
    ),
    "each of several keys is text": (
        a_step(rate_limit_key=["a", "b"]),
        a_step(rate_limit_key=["a", 1]),
        "rate_limit_key[1]",
        "type",
        422,
    ),
    "a list of keys has one": (
        a_step(rate_limit_key=["a"]),
        a_step(rate_limit_key=[]),
        "rate_limit_key",
        "empty",
        400,
    ),
    "a list of keys is short": (
        a_step(rate_limit_key=KEYS[:-1]),
        a_step(rate_limit_key=KEYS),
        "rate_limit_key",
        "size",
        400,
    ),
    "a key is named once": (
        a_step(rate_limit_key=["a", "b"]),
        a_step(rate_limit_key=["a", "b", "a"]),
        "rate_limit_key[2]",
        "duplicate_name",
        400,
    ),
    "a pool is not blank": (a_step(pool="p"), a_step(pool=""), "pool", "blank", 400),
    "a pool's name is bounded": (
        a_step(pool="p" * NAME_CHARS),
        a_step(pool="p" * (NAME_CHARS + 1)),
        "pool",
        "range",
        400,
    ),
    "a pool is text": (a_step(pool="p"), a_step(pool=["p"]), "pool", "type", 422),
    "sticky is true or false": (a_step(sticky=False), a_step(sticky="no"), "sticky", "type", 422),
}


@pytest.mark.req("SEQ-LIM-1", "SEQ-LIM-2")
@pytest.mark.parametrize("rule", RULES)
def test_for_limits_and_pools_the_rule_holds_that(rule):
    check_rule(RULES[rule])


@pytest.mark.req("SEQ-LIM-2")
def test_a_pool_for_the_whole_sequence_is_checked_like_one_of_a_step():
    assert normalize(a_sequence(pool="{{ data.team }}")).body.pool == "{{ data.team }}"
    assert faults_of(a_sequence(pool="", sticky=0)) == [
        ("pool", "definition.blank"),
        ("sticky", "definition.type"),
    ]


def test_templates_in_keys_and_pools_are_compiled_in_strict_definitions():
    right = a_step(rate_limit_key=["a", "{{ data.box }}"], pool="{{ data.pool }}")
    wrong = a_step(rate_limit_key=["a", "{{ nothing.box }}"], pool="{{ nowhere.x }}")

    normalize(a_sequence(right, mode="strict"))
    assert faults_of(a_sequence(wrong, mode="strict", pool="{{ nobody.x }}")) == [
        ("blocks[0].pool", "definition.expression"),
        ("blocks[0].rate_limit_key[1]", "definition.expression"),
        ("pool", "definition.expression"),
    ]


def test_templates_that_will_fail_are_a_warning_in_lenient_definitions():
    made = normalize(a_sequence(a_step(rate_limit_key="{{ nothing.box }}")))

    (line,) = warnings(made, ["noop"])
    assert line.startswith("blocks[0].rate_limit_key: ")


def test_holidays_without_business_days_are_a_warning():
    delay = {"duration": 1, "holidays": ["2026-12-25"], "country": "OURS"}
    raw = a_sequence(a_step(delay=delay), calendars={"OURS": []})
    lines = warnings(normalize(raw), ["noop"])

    assert [line.partition(":")[0] for line in lines] == [
        "blocks[0].delay.country",
        "blocks[0].delay.holidays",
    ]
    raw["blocks"][0]["delay"]["business_days_only"] = True
    assert warnings(normalize(raw), ["noop"]) == []


def test_the_builder_takes_spans_as_people_write_them():
    block = step(
        "s",
        "noop",
        delay={"fire_at_local": "2026-03-01T09:00:00", "jitter": "5m"},
        send_window=[{"send_late_within": "1h"}, {"send_late_within": "2s"}],
        rate_limit_key=("a", "b"),
    )
    (made,) = normalize(a_sequence(block)).body.blocks

    assert (made.delay.duration, made.delay.jitter) == (0, 300_000)
    assert [window.send_late_within for window in made.send_window] == [3_600_000, 2_000]
    assert made.rate_limit_key == ("a", "b")
    (single,) = normalize(
        a_sequence(step("s", "noop", send_window={"send_late_within": "1d"}))
    ).body.blocks
    assert single.send_window.send_late_within == 86_400_000


def test_the_canonical_text_of_a_new_option_is_short():
    made = normalize(a_sequence(a_step(delay={"fire_at_local": "2026-03-01T09:00:00"})))

    assert msgspec.json.decode(made.canonical)["blocks"][0]["delay"] == {
        "duration": 0,
        "fire_at_local": "2026-03-01T09:00:00",
    }
