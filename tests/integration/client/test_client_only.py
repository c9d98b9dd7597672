"""What a client has beside an engine: a tenant of its own, patience of the server, one refusal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import detent
from detent import sequence, step, wait
from detent.service.starting import StartRequest
from detent.testing.serving import serving
from detent.web.api.settings import ApiSettings
from tests.integration.client.world import world
from tests.integration.doors import ROOT, fresh
from tests.integration.web.following import until


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with world(tmp_path_factory.mktemp("only") / "s.db") as made:
        yield made


@pytest.fixture(params=["client", "awaited"])
def door(request, there):
    return getattr(there.house, request.param)


def test_a_poll_waits_at_the_server_until_there_is_work(there, door):
    job = fresh("job")
    assert list(door.work.poll(job, "w1", wait=0.01)) == []
    made = sequence(fresh("works"), step("s", job))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(door.work.poll, job, "w1", wait=20.0)
        until(lambda: any(job in each.handlers for each in there.engine.work.workers()))
        id = there.engine.start(made)
        (task,) = asked.result(20)
    assert (task.instance, task.worker, task.state) == (id, "w1", "claimed")
    with pytest.raises(detent.RequestError) as found:
        door.work.poll(job, "w1", wait=10_000.0)
    assert found.value.code == "request.invalid"


@pytest.mark.parametrize("name", ["engine", "client", "awaited"])
def test_a_step_of_external_workers_is_put_in_where_they_are_let_in(there, name):
    id, job = there.waiting(), fresh("job")
    there_now = getattr(there.house, name)
    assert there_now.inject(id, [step("far", job)])["injected_block_ids"] == ["far"]
    there.engine.signal(id, "go")
    until(lambda: there.engine.work.stats().by_handler.get(job))
    (task,) = there.engine.work.poll(job, "w1")
    assert (task.instance, task.block) == (id, "far")


def test_a_request_with_policies_is_refused_since_they_are_the_servers(there, door):
    asked = StartRequest(policies=({"max_effects": 1},))
    with pytest.raises(detent.RequestError) as found:
        door.start_request(there.greeting(), asked)
    assert (found.value.code, "policies" in found.value.message) == ("request.invalid", True)


def test_a_client_of_a_tenant_reaches_and_sees_that_tenant_alone(there):
    mine, theirs = fresh("mine"), fresh("theirs")
    ids = {tenant: there.waiting(tenant) for tenant in (mine, theirs)}
    made = sequence(fresh("works"), step("s", fresh("job"), queue_name=theirs))
    there.engine.wait_for(there.engine.start(made, tenant=theirs), "waiting")
    told = there.engine.events.send("paid", "o", "p", tenant=theirs)
    with detent.Client(there.house.url, api_key=ROOT, tenant=mine) as client:
        assert client.bulk("pause", {}).matched == 1
        assert client.events.send("paid", "o", "p").duplicate is False
        assert [each.tenant_id for each in client.events.list()] == [mine]
        assert list(client.work.list()) == []
        assert list(client.webhooks.list()) == []
        for call in (
            lambda: client.set_data(ids[theirs], {}),
            lambda: client.fork(ids[theirs], before="w"),
            lambda: client.events.show(told.event_id),
        ):
            with pytest.raises(detent.RequestError) as found:
                call()
            assert found.value.code.endswith(".not_found")
    assert there.engine.inspect.show(ids[theirs]).data["name"] == "Ada"


def test_a_key_of_a_worker_opens_the_verbs_of_workers_and_no_others(there):
    tenant, job = fresh("acme"), fresh("job")
    made = sequence(fresh("works"), step("s", job), wait("w", signal="go"))
    id = there.engine.start(made, tenant=tenant)
    there.engine.wait_for(id, "waiting")
    with (
        serving(there.engine, ApiSettings(api_key=ROOT)) as url,
        detent.Client(url, api_key=_worker_key(url, tenant)) as worker,
    ):
        (task,) = worker.work.poll(job, "w1")
        worker.work.heartbeat(task.id, "w1", task.claim_epoch)
        worker.work.complete(task.id, "w1", task.claim_epoch, {})
        assert worker.work.show(task.id).state == "completed"
        assert [each.id for each in worker.work.workers()] == ["w1"]
        for call in (
            lambda: worker.pause(id),
            worker.events.list,
            worker.webhooks.disabled,
        ):
            with pytest.raises(detent.RequestError) as found:
                call()
            assert found.value.code == "request.forbidden"


def _worker_key(url, tenant):
    import httpx2

    body = {"tenant_id": tenant, "capabilities": ["worker"]}
    made = httpx2.post(f"{url}/api-keys", json=body, headers={"x-api-key": ROOT})
    assert made.status_code == 201, made.text
    return made.json()["secret"]
