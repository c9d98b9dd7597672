"""`python -m detent.testing.fuzz`: a served engine under schemathesis; no answer may be a 5xx.

Every operation of the API's own description is called with data made from it and with data that
breaks it. Statuses, content types and bodies must be those described.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from detent.bootstrap.engine import Engine
from detent.testing.serving import serving

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
)
TENANT = "fuzz"
ENDLESS = "/changes/stream"  # its answer never ends, so there is nothing to compare
VAULT = "0f" * 32  # seals what is made up


def fuzz(examples: int, seed: int | None = None) -> tuple[int, str]:
    """Call every operation so often; the exit status of schemathesis and what it printed."""
    with (
        tempfile.TemporaryDirectory(prefix="detent-fuzz-") as directory,
        Engine(Path(directory) / "fuzz.db", vault_key=VAULT) as engine,
        serving(engine) as url,
    ):
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/api-docs/openapi.json"]
        command += ["--header", f"x-tenant-id: {TENANT}", "--no-color", "--phases", "fuzzing"]
        command += ["--checks", ",".join(CHECKS), "--max-examples", str(examples)]
        command += ["--exclude-path", ENDLESS]
        command += [] if seed is None else ["--seed", str(seed)]
        ran = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, cwd=directory, check=False
        )
    return ran.returncode, ran.stdout + ran.stderr


def main(argv: Sequence[str] | None = None) -> int:
    """Run, report, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m detent.testing.fuzz", description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="calls of each operation (200)")
    parser.add_argument("--seed", type=int, help="repeat a run")
    told = parser.parse_args(argv)
    code, text = fuzz(told.examples, told.seed)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
