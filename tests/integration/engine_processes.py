"""Other processes for the tests of engines: programs that run one, are killed, or visit it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = """
import os, signal, sys
from pathlib import Path
import detent
from detent import parallel, sequence, step, sub_sequence, wait
from detent.bootstrap.visitor import Visitor

path, *args = sys.argv[1:]
LOG = os.open(path + ".log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)


def note(*words):
    os.write(LOG, (" ".join(map(str, words)) + "\\n").encode())


def say(*words):
    print(*words, flush=True)
"""


@contextmanager
def process(script, path, *args, **options):
    """A process running the script; it is killed at the end if it still runs."""
    started = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(path), *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        **options,
    )
    with started:
        try:
            yield started
        finally:
            started.kill()


def said(running):
    """The next line of a process; it waits for it."""
    return running.stdout.readline().strip()


def run(script, path, *args):
    """Run the script to its end: its exit code and the lines it said."""
    with process(script, path, *args) as running:
        out, _ = running.communicate(timeout=60)
        return running.returncode, out.splitlines()


def noted(path):
    """What programs have written down outside of any engine, line by line."""
    log = Path(f"{path}.log")
    return [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []
