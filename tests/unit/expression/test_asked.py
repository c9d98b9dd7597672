"""Which steps an expression asks about."""

from __future__ import annotations

import pytest

from detent.expression import asked_steps


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('events.hasReply("a")', ("a",)),
        ('events.hasOpen("a") && !events.hasClick("b") || events.hasBounce("a")', ("a", "b")),
        ('call.outcome("c") == "answered" ? events.hasReply("d") : false', ("c", "d")),
        ('["x", call.outcome("e")]', ("e",)),
        ('len(concat("f", call.outcome("g")))', ("g",)),
        ('events.hasReply("any") || events.hasReply(any) || events.hasReply()', ()),
        ("contact.vip", ()),
        ("", ()),
    ],
)
def test_the_names_of_steps_are_found_wherever_they_stand(text, steps):
    assert asked_steps(text) == steps
