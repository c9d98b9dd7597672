"""Graphs: names that exist, nodes that can be reached, ways that lead out."""

from __future__ import annotations

import itertools

import pytest

from detent.definition import normalize, parse
from tests.unit.definition.samples import a_sequence, a_step, faults_of


def a_graph(nodes, transitions=(), start="a", name="g"):
    moves = [dict(zip(("from", "to", "when"), move, strict=False)) for move in transitions]
    return {"type": "graph", "id": name, "start": start, "nodes": nodes, "transitions": moves}


def goto(to, **options):
    return {"type": "goto", "to": to, **options}


def only_if(*blocks, name="r"):
    return {"type": "router", "id": name, "routes": [{"condition": "x", "blocks": list(blocks)}]}


NODES = {"a": [], "b": [], "c": []}
CHAIN = [("a", "b"), ("b", "c")]

RULES = {
    "the start exists": (
        a_graph({"a": []}),
        a_graph({"b": []}),
        [("start", "node")],
    ),
    "there is a node": (a_graph({"a": []}), a_graph({}), [("nodes", "empty")]),
    "nodes are an object": (a_graph({"a": []}), a_graph([[]]), [("nodes", "type")]),
    "a node is a list": (a_graph({"a": []}), a_graph({"a": a_step()}), [("nodes.a", "type")]),
    "a node has a name": (
        a_graph({"a": []}),
        a_graph({"": []}, start=""),
        [
            ('nodes[""]', "blank"),
            ("start", "blank"),
        ],
    ),
    "transitions name nodes": (
        a_graph(NODES, CHAIN),
        a_graph(NODES, [*CHAIN, ("x", "a"), ("c", "y")]),
        [("transitions[2].from", "node"), ("transitions[3].to", "node")],
    ),
    "a condition is not blank": (
        a_graph({"a": [], "b": []}, [("a", "b", "x")]),
        a_graph({"a": [], "b": []}, [("a", "b", " ")]),
        [("transitions[0].when", "blank")],
    ),
    "a goto has a target": (
        a_graph({"a": [only_if(goto("b"))], "b": []}),
        a_graph({"a": [only_if(goto("z"))]}),
        [("nodes.a[0].routes[0].blocks[0].to", "goto")],
    ),
    "every node is reached": (
        a_graph(NODES, CHAIN),
        a_graph(NODES, [("a", "b")]),
        [("nodes.c", "unreachable")],
    ),
    "a transition after one that always holds is never taken": (
        a_graph(NODES, [("a", "b", "x"), ("a", "c")]),
        a_graph(NODES, [("a", "b"), ("a", "c", "x")]),
        [("nodes.c", "unreachable")],
    ),
    "a transition after a goto is never taken": (
        a_graph({"a": [only_if(goto("c"))], "b": [], "c": []}, [("a", "b")]),
        a_graph({"a": [goto("c")], "b": [], "c": []}, [("a", "b")]),
        [("nodes.b", "unreachable")],
    ),
    "a cycle has a way out": (
        a_graph({"a": [], "b": []}, [("a", "b"), ("b", "a", "x")]),
        a_graph({"a": [], "b": []}, [("a", "b"), ("b", "a")]),
        [("nodes.a", "cycle")],
    ),
    "a node may lead to itself if it can end": (
        a_graph({"a": []}, [("a", "a", "x")]),
        a_graph({"a": []}, [("a", "a")]),
        [("nodes.a", "cycle")],
    ),
    "a way out by goto counts": (
        a_graph({"a": [only_if(goto("c"))], "b": [], "c": []}, [("a", "b"), ("b", "a")]),
        a_graph({"a": [only_if(goto("b"))], "b": []}, [("a", "b"), ("b", "a")]),
        [("nodes.a", "cycle")],
    ),
    "gotos alone can make a cycle": (
        a_graph({"a": [goto("b")], "b": [only_if(goto("a"))]}),
        a_graph({"a": [goto("b")], "b": [goto("a")]}),
        [("nodes.a", "cycle")],
    ),
    "a cycle that is never reached is only unreachable": (
        a_graph(NODES, [("a", "b"), ("b", "c"), ("c", "b", "x")]),
        a_graph(NODES, [("b", "c"), ("c", "b")]),
        [("nodes.b", "unreachable"), ("nodes.c", "unreachable")],
    ),
    "a cycle behind a way out is still one": (
        a_graph(NODES, [("a", "b", "x"), ("b", "c"), ("c", "b", "y")]),
        a_graph(NODES, [("a", "b", "x"), ("b", "c"), ("c", "b")]),
        [("nodes.b", "cycle")],
    ),
}


@pytest.mark.req("PLAN-3", "PLAN-4", "WF-DEF-2")
@pytest.mark.parametrize("rule", RULES)
def test_for_graphs_the_rule_holds_that(rule):
    legal, illegal, expected = RULES[rule]

    normalize(a_sequence(legal))

    found = [(f"blocks[0].{place}", f"definition.{code}") for place, code in expected]
    assert faults_of(a_sequence(illegal)) == found


def test_a_goto_outside_a_graph_is_a_fault():
    assert faults_of(a_sequence(goto("a"))) == [("blocks[0]", "definition.goto")]
    assert faults_of(a_sequence(a_graph({"a": []}), goto("a", id="x"))) == [
        ("blocks[1]", "definition.goto")
    ]


def test_a_goto_goes_to_a_node_of_the_nearest_graph():
    def nested(target):
        inner = a_graph({"x": [only_if(goto(target))], "y": []}, [("x", "y")], "x", "inner")
        return a_sequence(a_graph({"a": [inner], "b": []}, [("a", "b")]))

    normalize(nested("y"))

    place = "blocks[0].nodes.a[0].nodes.x[0].routes[0].blocks[0].to"
    assert faults_of(nested("b")) == [(place, "definition.goto")]


def test_a_goto_without_an_id_gets_a_stable_one_of_its_own():
    made = normalize(a_sequence(a_graph({"a": [only_if(goto("b"))], "b": []})))
    (choice,) = made.body.blocks[0].nodes["a"]

    assert choice.routes[0].blocks[0].id == "goto:656661cc16845fd8"  # of its place


def test_the_derived_id_of_a_deep_goto_is_an_id_that_is_allowed():
    block = goto("b")
    for level in range(30):
        block = only_if(block, name=f"r{level}")
    made = normalize(a_sequence(a_graph({"a": [block], "b": []})))

    assert parse(made.canonical) == made


def test_a_goto_with_the_id_of_another_block_is_a_fault():
    raw = a_sequence(a_step("s"), a_graph({"a": [only_if(goto("b", id="s"))], "b": []}))

    assert [code for _, code in faults_of(raw)] == ["definition.duplicate_id"]


def test_a_graph_of_many_nodes_is_judged_in_no_time():
    names = [f"n{n}" for n in range(4000)]
    moves = list(itertools.pairwise(names))
    back = [(name, names[0], "again") for name in names]

    normalize(a_sequence(a_graph({name: [] for name in names}, [*back, *moves], names[0])))
