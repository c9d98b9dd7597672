"""Running commands in a test: in this process, or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from detent.cli import main

SOURCE = Path(__file__).resolve().parents[3] / "src"


class Result(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


def detent(*arguments):
    """Run a command here."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(each) for each in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def process(*arguments, cwd=None, **variables):
    """Run a command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), **variables}
    done = subprocess.run(
        [sys.executable, "-m", "detent.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)
