"""Expressions (contract §9): one instance whose steps are guarded by them."""

from __future__ import annotations

import pytest

from tests.integration.web.house import instance_body, step

pytestmark = pytest.mark.contract("9")

DATA = {
    "mode": "fast",
    "n": 7,
    "zero": 0,
    "empty": "",
    "none": None,
    "yes": True,
    "no": False,
    "list": [3, 1, 2],
    "words": ["b", "a", "b"],
    "obj": {"a": 1, "b": 2},
    "nothing": [],
    "text": "5",
    "at": "2026-03-02T10:30:00Z",
}

TRUE = """
mode == "fast"
mode == 'fast'
context.data.mode == 'fast'
data.mode == 'fast'
{{ context.data.mode == 'fast' }}
outputs.first.v == 4
steps.first.v == 4
config.region == 'eu'
runtime.attempt == 0
1 == 1.0
n == 7
n != 8
!("1" == 1)
mode != nonexistent
nonexistent == null
nonexistent == other
none == null
obj
n
!zero
!empty
!nothing
!none
!no
n > 5
n >= 7
n < 8
n <= 7
'b' > 'a'
!('5' > 4)
!(n > '5')
!(obj > 1)
n in [1, 7]
!(n in [1, 2])
'b' in words
!(n in mode)
n > 5 && mode == 'fast'
n > 50 || mode == 'fast'
!(n > 50 && mode == 'fast')
n > 5 ? true : false
n > 50 ? false : true
(n > 50 ? 1 : 2) == 2
1 + 2 * 3 == 7
(1 + 2) * 3 == 9
10 - 4 - 3 == 3
-n == -7
n / 2 == 3.5
n / 0 == null
'a' + 'b' == 'ab'
text + 1 == 6
true + 1 == 2
obj + 1 == null
abs(-3) == 3
abs(0 - n) == 7
len(list) == 3
len(mode) == 4
len(obj) == 2
json(obj) == '{"a":1,"b":2}'
day_of_week(at) == 0
format_date(at, '%Y-%m-%d') == '2026-03-02'
keys(obj) == ['a', 'b']
values(obj) == [1, 2]
contains(mode, 'as')
contains(list, 3)
!contains(list, 9)
starts_with(mode, 'fa')
ends_with(mode, 'st')
sum(list) == 6
avg(list) == 2
min(list) == 1
max(list) == 3
first(list) == 3
last(list) == 2
slice(list, 0, 2) == [3, 1]
sort(list) == [1, 2, 3]
sort(list, 'desc') == [3, 2, 1]
unique(words) == ['b', 'a']
count(list) == 3
change_pct(100, 150) == 50
clamp(n, 0, 5) == 5
nobody_knows_it(n) == null
len(uuid()) == 36
random(5, 6) >= 5
starts_with(now(), '2')
[1, 'a', null] == [1, 'a', null]
data.list.0 == 3
1 == 1 && (2 == 2 || nothing)
""".strip().splitlines()


def guarded(server, expressions):
    """The expressions that are truthy in one running instance."""
    first = step("first", "transform", params={"v": 4})
    steps = [step(f"s{n}", when=text) for n, text in enumerate(expressions)]
    body = instance_body(server.sequence(first, *steps), DATA)
    body["context"]["config"] = {"region": "eu"}
    instance = server.post("/instances", body).json()["id"]
    assert server.settle(instance) == "completed", server.shown(instance).get("error")
    ran = [block for block, _ in server.outputs(instance)]
    return [text for n, text in enumerate(expressions) if f"s{n}" in ran]


@pytest.fixture(scope="module")
def truthy(server):
    return guarded(server, TRUE)


@pytest.mark.parametrize("expression", TRUE)
def test_it_is_true(truthy, expression):
    assert expression in truthy


def test_what_is_false_is_false(server):
    false = ["false", "null", "0", "''", "[]", "mode == fast", "n == '7'", "!obj", "zero", "none"]
    assert guarded(server, false) == []


def test_parentheses_nest_eight_deep(server):
    deep = "(" * 8 + "n == 7" + ")" * 8
    assert guarded(server, [deep]) == [deep]


@pytest.mark.parametrize("condition", ["n ==", "((", "n ~ 2", "'open", "{{ n == }}"])
def test_a_broken_condition_of_a_router_is_false(server, condition):
    router = {
        "type": "router",
        "id": "r",
        "routes": [{"condition": condition, "blocks": [step("taken")]}],
        "default": [step("other")],
    }
    instance = server.instance(server.sequence(router), DATA)
    assert server.settle(instance) == "completed"
    assert [block for block, _ in server.outputs(instance)] == ["other"]


def test_an_unquoted_word_is_a_path_so_that_the_default_route_is_taken(server):
    router = {
        "type": "router",
        "id": "r",
        "routes": [{"condition": "mode == nonexistent", "blocks": [step("taken")]}],
        "default": [step("other")],
    }
    instance = server.instance(server.sequence(router), DATA)
    server.settle(instance)
    assert [block for block, _ in server.outputs(instance)] == ["other"]


def test_chance_and_time_are_the_same_when_it_is_replayed(server):
    texts = ["random(0, 100) >= 50", "uuid() > '8'", "now() > '2'"]
    steps = [step(f"s{n}", when=text) for n, text in enumerate(texts)]
    instance = server.instance(server.sequence(*steps))
    assert server.settle(instance) == "completed"
    assert server.get(f"/instances/{instance}/replay").json()["identical"] is True
