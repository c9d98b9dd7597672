"""The system's chance: no byte is given out twice, in no thread and no process."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from detent.bootstrap.chance import _FETCHED, system_chance

ROOT = Path(__file__).parents[3]
FORK = """
import os
from detent.bootstrap.chance import system_chance
system_chance(16)
if not os.fork():
    print(system_chance(16).hex(), flush=True)
    os._exit(0)
os.wait()
print(system_chance(16).hex(), flush=True)
"""


def test_every_size_is_served_beyond_what_is_fetched_at_once():
    for size in (1, 10, 16, _FETCHED - 1, _FETCHED, _FETCHED + 1, 3 * _FETCHED):
        assert len(system_chance(size)) == size


def test_nothing_is_given_out_twice_in_one_thread_nor_in_several():
    drawn = [system_chance(16) for _ in range(2 * _FETCHED // 16 + 1)]
    with ThreadPoolExecutor(4) as pool:
        drawn += pool.map(lambda _: system_chance(16), range(1_000))
    assert len(set(drawn)) == len(drawn)


def test_a_forked_process_draws_other_bytes_than_its_parent():
    ran = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    child, parent = ran.stdout.split()
    assert child != parent
