"""Other processes for the tests of this directory: they run a script against a store."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRELUDE = """
import os, sys
from detent.ports.opening import NewStore
from detent.store.sqlite import open_store
from tests.conformance.adapters import NEW
from tests.conformance.world import *

path = sys.argv[1]


def say(*words):
    print(*words, flush=True)
"""


@contextmanager
def process(script, path, **options):
    """A process running the script; it is killed at the end if it still runs."""
    started = subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
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


def run(script, path, **options):
    """Run the script to its end; what it said."""
    with process(script, path, **options) as running:
        out, _ = running.communicate(timeout=30)
        assert running.returncode == 0, out
        return out.strip()
