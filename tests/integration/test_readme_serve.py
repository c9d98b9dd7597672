"""The shell lines of the README and of the page on serving, run as they stand.

A block behind `<!-- serve -->` starts a server; those behind `<!-- shell -->` are run beside it,
all of a page in one shell. Only the port is another one, by a setting that the page tells of.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from detent.bootstrap.server_settings import NAMES

ROOT = Path(__file__).resolve().parents[2]
HOW_TO = ROOT / "docs" / "how-to" / "serve-over-http.md"
MARKED = re.compile(r"^<!-- (serve|shell) -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    found = MARKED.findall(page.read_text(encoding="utf-8"))
    return [text for mark, text in found if mark == "serve"], "".join(
        text for mark, text in found if mark == "shell"
    )


def environment(**more):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), **more}


@contextmanager
def served(lines, place):
    """The server that a page starts; its address."""
    process = subprocess.Popen(
        ["/bin/sh", "-euc", lines if "exec " in lines else f"exec {lines}"],
        cwd=place,
        env=environment(DETENT_PORT="0"),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        assert " at http://" in line, line
        yield line.strip().rpartition(" at ")[2]
        process.terminate()
        assert process.wait(20) == 0
        assert "everything is on disk" in process.stderr.read()
    finally:
        process.kill()
        process.wait(20)
        process.stderr.close()


def run(page, place):
    """Run a page; what its shell lines printed, line by line."""
    (start, *_), shell = blocks(page)
    with served(start, place) as url:
        told = subprocess.run(
            ["/bin/sh", "-euc", shell],
            cwd=place,
            env=environment(DETENT_URL=url),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert told.returncode == 0, told.stderr
    assert told.stderr == ""
    return told.stdout.splitlines()


@pytest.mark.req("SEQ-1", "SEQ-2")
def test_the_lines_of_the_readme_store_start_signal_and_show(tmp_path):
    stored, explained, sent, outputs = map(json.loads, run(ROOT / "README.md", tmp_path))
    assert stored == {"id": "0197a3c0-1e5a-7000-8000-000000000001"}
    assert "replied" in explained["summary"]
    assert sent["signal_id"]
    assert [(row["block_id"], row["output"]) for row in outputs] == [
        ("reply", {"text": "hi"}),
        ("thank", {"text": "Thank you, Ada, for: hi"}),
    ]


@pytest.mark.req("SEQ-OPS-1")
def test_the_lines_of_the_page_on_serving_do_what_it_says(tmp_path):
    printed = run(HOW_TO, tmp_path)
    assert printed == ["401", "200", "201", "200", "403", "200"]


def test_the_page_on_serving_names_every_setting():
    text = HOW_TO.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in text] == []
