"""serve: what the API takes, over loopback, with the load in another process than the server."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import uvloop

from bench.figure import Figure
from bench.http_load import HANDLERS, TENANT, Connection, many, server
from bench.load import percentile, place

BATCH = 1_000
BATCHES = 20
SINGLES = 5_000
CONNECTIONS = 32
LISTED = 100_000
LISTS = 200
TEAMS = 100


def serve() -> list[Figure]:
    """Batch starts, single starts while the engine runs, and lists over 100,000 instances."""
    with place() as directory, server(directory, "--handlers", str(HANDLERS)) as served:
        return uvloop.run(_all(served.port))


async def _all(port: int) -> list[Figure]:
    sequence = await store_sequence(port, "one", [_step()])
    waiting = await store_sequence(port, "later", [{"type": "wait", "id": "w", "signal": "go"}])
    await many(port, CONNECTIONS, [_start(sequence) for _ in range(500)])  # warm
    singles = [_start(sequence) for _ in range(SINGLES)]
    began = time.perf_counter()
    taken = await many(port, CONNECTIONS, singles)
    single = SINGLES / (time.perf_counter() - began)
    began = time.perf_counter()
    await many(port, 2, [_batch(sequence, BATCH) for _ in range(BATCHES)])
    batch = BATCH * BATCHES / (time.perf_counter() - began)
    await many(port, 2, [_batch(waiting, BATCH) for _ in range(LISTED // BATCH)])
    await _settled(port)
    lists = await many(port, 1, [("GET", path, None) for path in _lists(waiting)])
    extra: dict[str, object] = {"p50": round(percentile(taken, 0.5), 1)}
    return [
        Figure("serve_batch", batch, "starts/s", budget=5_000),
        Figure("serve_single", single, f"starts/s, {CONNECTIONS} connections", budget=1_000),
        Figure(
            "serve_single_p99", percentile(taken, 0.99), "ms", budget=50, lower=True, extra=extra
        ),
        Figure(
            "serve_list_p95",
            percentile(lists, 0.95),
            f"ms over {LISTED:,} instances",
            budget=50,
            lower=True,
            extra={"p50": round(percentile(lists, 0.5), 1)},
        ),
    ]


async def _settled(port: int) -> None:
    """Wait until the engine has taken everything in, so that lists are measured alone."""
    connection = Connection(port)
    path = "/instances?state=scheduled,running&limit=1"
    busy = True
    while busy:  # it is another process: nothing here could be woken by it
        busy = bool(json.loads((await connection.call("GET", path))[1])["items"])
    connection.close()


def _lists(sequence: str) -> list[str]:
    paths = []
    for n in range(LISTS):
        filters = (
            f"state=waiting&offset={n * 50}",
            f"sequence_id={sequence}&offset={n * 20}",
            f"metadata.team=t{n % TEAMS}",
            f"state=completed&namespace=bench&limit={50 + n % 50}",
        )
        paths.append(f"/instances?{filters[n % len(filters)]}")
    return paths


def _step() -> dict[str, Any]:
    return {"type": "step", "id": "s0", "handler": "work", "params": {"n": 1}}


def instance_body(sequence: str, n: int = 0) -> dict[str, Any]:
    """What starts an instance."""
    return {
        "sequence_id": sequence,
        "tenant_id": TENANT,
        "namespace": "bench",
        "metadata": {"team": f"t{n % TEAMS}"},
        "context": {"data": {"n": 1, "email": "ada@example.org"}},
    }


def _start(sequence: str) -> tuple[str, str, Any]:
    return ("POST", "/instances", instance_body(sequence))


def _batch(sequence: str, count: int) -> tuple[str, str, Any]:
    instances = [instance_body(sequence, n) for n in range(count)]
    return ("POST", "/instances/batch", {"instances": instances})


async def store_sequence(port: int, name: str, blocks: list[dict[str, Any]]) -> str:
    """Store a sequence; its id."""
    body = {
        "id": str(uuid.uuid4()),
        "tenant_id": TENANT,
        "namespace": "bench",
        "name": name,
        "version": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "blocks": blocks,
    }
    connection = Connection(port)
    status, answer = await connection.call("POST", "/sequences", body)
    connection.close()
    if status != 201:
        raise RuntimeError(answer.decode())
    return body["id"]
