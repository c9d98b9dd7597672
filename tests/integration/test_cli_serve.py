"""`detent serve` as a process: it answers, stops when told to, and goes on where it stood."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from contextlib import contextmanager

import httpx2
import pytest

from tests.integration.web.house import instance_body, sequence_body, step


@contextmanager
def served(path, *arguments, **environment):
    """A server process; its address and the process."""
    command = [sys.executable, "-m", "detent.cli", "serve", "--db", str(path), "--port", "0"]
    process = subprocess.Popen(
        [*command, *arguments], stderr=subprocess.PIPE, text=True, env=_environment(environment)
    )
    try:
        line = process.stderr.readline()
        assert " at http://" in line, line
        yield line.strip().rpartition(" at ")[2], process
    finally:
        process.kill()
        process.wait(20)
        process.stderr.close()


def _environment(more):
    return {**os.environ, **{name.upper(): value for name, value in more.items()}}


def test_a_server_answers_stops_and_goes_on_where_it_stood(tmp_path):
    path = tmp_path / "s.db"
    headers = {"x-tenant-id": "acme"}
    sequence = sequence_body({"type": "wait", "id": "w", "signal": "go"}, step("s"))
    with served(path) as (url, process), httpx2.Client(base_url=url, headers=headers) as http:
        assert http.post("/sequences", json=sequence).status_code == 201
        made = http.post("/instances", json=instance_body(sequence["id"])).json()["id"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with served(path) as (url, _), httpx2.Client(base_url=url, headers=headers) as http:
        sent = http.post(f"/instances/{made}/signals", json={"signal_type": {"custom": "go"}})
        assert sent.status_code == 201
        while http.get(f"/instances/{made}").json()["state"] != "completed":
            pass


def test_without_a_key_it_listens_on_this_machine_only(tmp_path):
    command = [sys.executable, "-m", "detent.cli", "serve", "--db", str(tmp_path / "s.db")]
    told = subprocess.run(
        [*command, "--host", "0.0.0.0", "--port", "0"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 5
    assert "set DETENT_API_KEY" in told.stderr
    assert "server.exposed" in told.stderr


@pytest.mark.contract("2")
def test_insecure_says_that_everybody_may_call_from_anywhere(tmp_path):
    flags = ("--host", "0.0.0.0", "--insecure")
    with served(tmp_path / "s.db", *flags) as (url, _):
        local = url.replace("0.0.0.0", "127.0.0.1")
        headers = {"x-tenant-id": "acme"}
        assert httpx2.get(f"{local}/sequences", headers=headers).status_code == 200
        assert httpx2.get(f"{local}/sequences").status_code == 400  # a tenant is asked for


@pytest.mark.contract("2")
def test_a_key_whose_holder_sees_all_tenants_must_be_meant(tmp_path):
    command = [sys.executable, "-m", "detent.cli", "serve", "--db", str(tmp_path / "s.db")]
    lax = {"detent_api_key": "k", "detent_require_tenant_header": "false"}
    told = subprocess.run(
        [*command, "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(lax),
    )
    assert (told.returncode, "server.isolation" in told.stderr) == (5, True)
    meant = lax | {"detent_allow_no_tenant_isolation": "1"}
    with served(tmp_path / "s.db", **meant) as (url, _):
        assert httpx2.get(f"{url}/sequences", headers={"x-api-key": "k"}).status_code == 200


@pytest.mark.parametrize("key", ["", "wrong"])
def test_with_a_key_nobody_else_gets_in(tmp_path, key):
    root = uuid.uuid4().hex
    with served(tmp_path / "s.db", detent_api_key=root) as (url, _):
        headers = {"x-tenant-id": "acme", "x-api-key": key}
        assert httpx2.get(f"{url}/sequences", headers=headers).status_code == 401
        headers["x-api-key"] = root
        assert httpx2.get(f"{url}/sequences", headers=headers).status_code == 200
