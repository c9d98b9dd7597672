"""Power cuts: what was acknowledged is there, nothing is there by half, and the world goes on."""

from __future__ import annotations

from random import Random

import pytest

from detent.testing.cuts import cut, cut_world, live
from detent.testing.tearing import KEEPS, SECTORS, Loss, Operation, survivors
from detent.testing.workload import world_of


@pytest.mark.req("CORE-REC-1")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_a_power_cut_the_store_is_whole_and_the_world_ends_as_without(seed):
    report = cut_world(seed, cuts=10)

    assert report.failures == ()
    assert report.cuts == 10
    assert report.lossy > 0  # else nothing was tried


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_a_store_that_syncs_too_little_is_found_out(synchronous, tmp_path):
    life = live(world_of(1), tmp_path / "store.db", synchronous=synchronous)
    found = 0
    for number in range(30):
        try:
            cut(life, tmp_path / f"cut{number}", Random(f"careless {number}"), again=False)
        except Exception:  # noqa: BLE001 - lost, halved or damaged: each is a way to be found out
            found += 1

    assert found > 0


WRITTEN = Operation("write", "-wal", 0, b"a" * 1_024)
SYNCED = Operation("sync", "-wal")
UNSYNCED = Operation("write", "-wal", 512, b"b" * 1_024)


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("sector", SECTORS)
def test_what_was_synced_survives_whatever_the_disk_keeps_of_the_rest(keep, sector):
    for chance in range(20):
        files = survivors({}, [WRITTEN, SYNCED, UNSYNCED], Loss(keep, sector), Random(chance))

        assert files["-wal"][:512] == b"a" * 512
        assert frozenset(files["-wal"]) <= frozenset(b"ab\0")


def test_a_disk_that_keeps_nothing_forgets_an_unsynced_file_and_one_that_keeps_all_has_it():
    assert survivors({}, [WRITTEN], Loss("nothing", 512), Random(1)) == {}
    assert survivors({}, [WRITTEN], Loss("all", 512), Random(1)) == {"-wal": b"a" * 1_024}


def test_a_torn_write_ends_at_the_border_of_a_sector():
    torn = [
        survivors({}, [SYNCED, WRITTEN], Loss("beginning", 512), Random(chance))["-wal"]
        for chance in range(40)
    ]

    assert sorted({len(body) for body in torn}) == [0, 512, 1_024]


def test_a_deletion_may_come_back_until_a_new_file_was_synced():
    journal = {"-journal": b"old"}
    gone = Operation("delete", "-journal")

    assert survivors(journal, [gone], Loss("nothing", 512), Random(1)) == journal
    kept = survivors(journal, [gone, WRITTEN, SYNCED], Loss("nothing", 512), Random(1))
    assert kept == {"-wal": b"a" * 1_024}
