"""Input made to hurt: it is refused at once, by name, without using up memory or the stack."""

from __future__ import annotations

import time

import pytest

from detent.definition import normalize, parse, read
from detent.model.errors import DefinitionError
from detent.model.limits import DEFINITION_BYTES, DEFINITION_NESTING
from tests.unit.definition.samples import a_sequence, a_step

SECONDS = 20.0  # of this process alone: a hang is found, a busy machine is none


def laughs(levels):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, levels + 1)]
    return "\n".join(lines)


def shared(levels):
    value = []
    for _ in range(levels):
        value = [value, value]
    return a_sequence(a_step(params=value))


def endless():
    value = {}
    value["again"] = value
    return a_sequence(a_step(params=value))


HOSTILE = {
    "json nested 10,000 deep": (lambda: "[" * 10_000 + "]" * 10_000, "depth"),
    "json objects nested 10,000 deep": (lambda: '{"a":' * 10_000 + "1" + "}" * 10_000, "depth"),
    "json never closed": (lambda: "[" * 1_000_000, "depth"),
    "yaml nested 100,000 deep": (lambda: "a: " + "[" * 100_000, "depth"),
    "yaml indented 2,000 deep": (lambda: "\n".join(" " * n + "a:" for n in range(2_000)), "depth"),
    "ten megabytes of json": (lambda: '{"name": "' + "x" * 10_000_000 + '"}', "size"),
    "ten megabytes of bytes": (lambda: b" " * 10_000_000, "size"),
    "a billion laughs": (lambda: laughs(9), "size"),
    "python lists shared a billion times": (lambda: shared(30), "size"),
    "a python object within itself": (endless, "depth"),
    "six thousand blocks": (
        lambda: a_sequence(*(a_step(f"s{n}") for n in range(6_000))),
        "size",
    ),
    "a text of five megabytes in params": (
        lambda: a_sequence(a_step(params=["x" * 100_000] * 50)),
        "size",
    ),
    "a text that grows when it is written": (
        lambda: a_sequence(a_step(params="\x01" * (DEFINITION_BYTES // 4))),
        "size",
    ),
    "half a million values": (lambda: a_sequence(a_step(params=[0] * 500_001)), "size"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_quickly_and_clearly(name):
    make, code = HOSTILE[name]
    source = make()

    before = time.process_time()
    with pytest.raises(DefinitionError) as caught:
        parse(source)
    spent = time.process_time() - before

    (fault,) = caught.value.faults
    assert fault.code == f"definition.{code}"
    assert len(str(caught.value)) < 500
    assert spent < SECONDS


def test_values_nest_as_deep_as_allowed_and_no_deeper():
    def wrapped(levels):  # the root, its list of blocks, the block and the note are four levels
        value = {}
        for _ in range(levels - 4):
            value = {"x": value}
        return a_sequence(a_step(note=value))

    normalize(wrapped(DEFINITION_NESTING))
    with pytest.raises(DefinitionError) as caught:
        normalize(wrapped(DEFINITION_NESTING + 1))

    assert caught.value.faults[0].code == "definition.depth"


def test_a_definition_just_within_the_bytes_is_taken():
    room = DEFINITION_BYTES - len(normalize(a_sequence(a_step(params=""))).canonical)

    taken = normalize(a_sequence(a_step(params="x" * (room - 12))))

    assert len(taken.canonical) <= DEFINITION_BYTES
    with pytest.raises(DefinitionError):
        normalize(a_sequence(a_step(params="x" * (room + 1))))


def test_a_thousand_faulty_blocks_make_one_bounded_report():
    broken = a_sequence(*({"type": "router", "id": n, "routes": [{}] * 50} for n in range(1_000)))

    with pytest.raises(DefinitionError) as caught:
        normalize(broken)

    assert len(caught.value.faults) == 200


def test_aliases_are_counted_while_the_text_is_read():
    assert len(read(laughs(3))) == 4

    with pytest.raises(DefinitionError, match="aliases expanded"):
        read(laughs(9))
