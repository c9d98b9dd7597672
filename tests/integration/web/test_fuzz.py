"""The served API under data made from its own description; `make fuzz` is the long form."""

from __future__ import annotations

from detent.testing.fuzz import fuzz


def test_no_call_made_from_the_description_is_answered_with_a_fault_of_ours():
    code, text = fuzz(examples=5, seed=1)
    assert "Test cases:" in text, text
    assert code == 0, text
