"""A few hundred random harms to a store; `make tamper` does ten thousand."""

from __future__ import annotations

import pytest

from detent.testing import tamper


@pytest.mark.req("CORE-AUD-3")
def test_every_random_harm_to_a_store_is_found(capsys):
    assert tamper.main(["--count", "240"]) == 0
    assert "240 tamperings, 240 found, 0 missed" in capsys.readouterr().out


@pytest.mark.req("CORE-AUD-1")
def test_a_cut_tail_is_found_against_an_anchor(tmp_path):
    path = tmp_path / "whole.db"
    tamper.make_store(path)
    anchor = tamper._look(path, tamper.make_anchor)
    tamper.cut_tail(path, 1)
    assert not tamper._look(path, lambda store: tamper.verify_store(store, anchor)).valid
