"""idle_workers, signal_to_effect: what waiting workers cost, and how soon a signal acts."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import uvloop

from bench.figure import Figure
from bench.http_load import HANDLERS, Connection, Served, server
from bench.load import percentile, place
from bench.serving import instance_body, store_sequence

WORKERS = 100
WAIT_S = 20
MEASURED_S = 5
SAMPLES = 200
BUDGET_MS = 50
PAUSE_S = 0.02  # between samples: the load is low
WAITING = {"type": "wait", "id": "w", "signal": "go"}
GO = {"signal_type": {"custom": "go"}, "payload": {}}


def idle_workers() -> list[Figure]:
    """Workers that wait for tasks, as they do all day: polls of 20 s that end at all times."""
    with place() as directory, server(directory) as served:
        share = uvloop.run(_idle(served))
    extra = {"workers": WORKERS, "wait_s": WAIT_S}
    return [Figure("idle_workers", share, "of one core", budget=0.05, lower=True, extra=extra)]


async def _idle(served: Served) -> float:
    polled = 0

    async def worker(n: int) -> None:
        nonlocal polled
        connection = Connection(served.port)
        body = {"handler_name": "ship", "worker_id": f"w{n}"}
        wait = WAIT_S * n / WORKERS  # the first poll is shorter, so that they do not end together
        while True:
            await _poll(connection, {**body, "wait_secs": wait})
            wait, polled = WAIT_S, polled + 1

    tasks = [asyncio.create_task(worker(n)) for n in range(WORKERS)]
    await asyncio.sleep(2)
    before, began = served.cpu_seconds(), time.perf_counter()
    so_far = polled
    await asyncio.sleep(MEASURED_S)
    used = (served.cpu_seconds() - before) / (time.perf_counter() - began)
    if polled == so_far or any(task.done() for task in tasks):
        raise RuntimeError("the workers did not poll")
    for task in tasks:
        task.cancel()
    return used


def signal_to_effect() -> list[Figure]:
    """From POST of a signal to the call of a handler, in the server and in a worker outside."""
    with place() as directory, server(directory, "--handlers", str(HANDLERS)) as served:
        inside, outside = uvloop.run(_effects(served.port))
    return [_figure("signal_to_effect", inside), _figure("signal_to_worker", outside)]


def _figure(name: str, taken: list[float]) -> Figure:
    taken = sorted(taken)
    extra = {"p50": round(percentile(taken, 0.5), 2), "samples": len(taken)}
    worst = percentile(taken, 0.99)
    return Figure(f"{name}_p99", worst, "ms", budget=BUDGET_MS, lower=True, extra=extra)


async def _effects(port: int) -> tuple[list[float], list[float]]:
    caller, worker = Connection(port), Connection(port)
    inside = await _prepared(port, caller, "inside", {"handler": "stamp"})
    outside = await _prepared(port, caller, "outside", {"handler": "ship"})
    await _inside(caller, inside[:20])  # warm
    taken = await _inside(caller, inside[20:])
    return taken, await _outside(caller, worker, outside)


async def _prepared(port: int, caller: Connection, name: str, step: dict[str, str]) -> list[str]:
    """Instances that wait for their signal."""
    blocks = [WAITING, {"type": "step", "id": "s", "params": {}, **step}]
    sequence = await store_sequence(port, name, blocks)
    ids = []
    for _ in range(SAMPLES + 20):
        _, answer = await caller.call("POST", "/instances", instance_body(sequence))
        ids.append(json.loads(answer)["id"])
    for each in ids:
        while (await _shown(caller, each))["state"] != "waiting":
            pass
    return ids


async def _inside(caller: Connection, ids: list[str]) -> list[float]:
    sent = {}
    for each in ids:
        await asyncio.sleep(PAUSE_S)
        sent[each] = time.time()
        await caller.call("POST", f"/instances/{each}/signals", GO)
    taken = []
    for each, began in sent.items():
        while (shown := await _shown(caller, each))["state"] != "completed":
            pass
        taken.append((shown["context"]["data"]["at"] - began) * 1000)
    return taken


async def _outside(caller: Connection, worker: Connection, ids: list[str]) -> list[float]:
    taken = []
    body = {"handler_name": "ship", "worker_id": "w", "wait_secs": WAIT_S}
    for each in ids[:SAMPLES]:
        polling = asyncio.create_task(_poll(worker, body))
        await asyncio.sleep(PAUSE_S)
        began = time.perf_counter()
        sending = asyncio.create_task(caller.call("POST", f"/instances/{each}/signals", GO))
        (task,) = await polling
        taken.append((time.perf_counter() - began) * 1000)
        await sending
        done = {"worker_id": "w", "claim_epoch": task["claim_epoch"], "output": {}}
        await worker.call("POST", f"/workers/tasks/{task['id']}/complete", done)
    return taken


async def _poll(connection: Connection, body: dict[str, Any]) -> list[dict[str, Any]]:
    status, answer = await connection.call("POST", "/workers/tasks/poll", body)
    if status != 200:
        raise RuntimeError(answer.decode())
    found: list[dict[str, Any]] = json.loads(answer)
    return found


async def _shown(connection: Connection, instance: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((await connection.call("GET", f"/instances/{instance}"))[1])
    return found
