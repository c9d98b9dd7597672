"""The calls that external workers make, as tests make them."""

from __future__ import annotations


def started(server, *steps, data=None, tenant="acme"):
    """An instance that stands at its worker."""
    made = server.instance(server.sequence(*steps, tenant=tenant), data, tenant=tenant)
    server.settle(made, "waiting")
    return made


def polled(server, job, worker="w1", *, tenant="acme", path="/workers/tasks/poll", **more):
    body = {"handler_name": job, "worker_id": worker, **more}
    answer = server.post(path, body, tenant=tenant)
    assert answer.status_code == 200, answer.text
    return answer.json()


def report(server, task, what, worker="w1", *, tenant="acme", **more):
    body = {"worker_id": worker, "claim_epoch": task["claim_epoch"], **more}
    return server.post(f"/workers/tasks/{task['id']}/{what}", body, tenant=tenant)


def events(server, task):
    return [line["event"] for line in server.get(f"/workers/tasks/{task['id']}/attempts").json()]


def state_of(server, instance):
    return server.get(f"/instances/{instance}").json()["state"]


def listed(server, job, **query):
    return server.get("/workers/tasks", params={"handler_name": job, **query}).json()
