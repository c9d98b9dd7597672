"""What a client makes of a network and a server that fail: one instance, or one clear error."""

from __future__ import annotations

import socket
import threading

import pytest

import detent
from detent import sequence, step, wait
from detent.testing.serving import serving
from detent.web.api.settings import ApiSettings
from tests.integration.doors import ROOT, Awaited, doors, fresh
from tests.integration.fickle import fickle, forward, hang_up, lose_answer, say, say_nothing

KINDS = {"client": detent.Client, "awaited": Awaited}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with doors(tmp_path_factory.mktemp("failures") / "s.db") as made:
        yield made


@pytest.fixture(params=KINDS)
def connect(request):
    """Make a client that is closed when the test is over."""
    made = []

    def make(url, **settings):
        settings.setdefault("api_key", ROOT)
        made.append(KINDS[request.param](url, **settings))
        return made[-1]

    yield make
    for client in made:
        client.close()


def waiting():
    return sequence(fresh("waits"), wait("w", signal="go"))


def failure(call):
    with pytest.raises(detent.DetentError) as found:
        call()
    return found.value


def started(house, name):
    return [each for each in house.engine.inspect.instances().items if each.name == name]


# again, and only once ----------------------------------------------------------------------------


@pytest.mark.req("CORE-INB-2")
def test_an_answer_that_is_lost_is_asked_for_again_and_starts_one_instance(house, connect):
    made = waiting()
    house.engine.deploy(made)
    with fickle(house.url, forward, lose_answer, lose_answer) as between:
        id = connect(between.url).start(f"{made.name}@1", {"n": 1})
    keys = [headers["idempotency-key"] for method, _, headers in between.calls if method == "POST"]
    assert [each.id for each in started(house, made.name)] == [id]
    assert len(keys) == 3
    assert len(set(keys)) == 1


def test_every_request_that_changes_something_happens_once_though_its_answer_is_lost(
    house, connect
):
    made, tenant = waiting(), fresh("acme")
    with fickle(house.url) as between:
        client = connect(between.url, tenant=tenant)

        def lossy(call):
            """Lose the answer to the next POST."""
            between.calls.clear()
            between.script[:] = [_lose_posts(between)] * 4
            return call()

        id = lossy(lambda: client.start(made))
        ids = lossy(lambda: client.start_many(made, [1, 2, 3]))
        lossy(lambda: client.signal(id, "unheard", {"n": 1}))
        lossy(lambda: client.cancel(ids[0]))
        cron = lossy(lambda: client.crons.create(made, "0 9 * * *"))
        lossy(lambda: client.limits.set("k", max=1, window="1h"))
        lossy(lambda: client.limits.close("k", for_="1h"))
    found = started(house, made.name)
    assert {each.id for each in found} == {id, *ids}
    kept = house.engine.explain(id).signals
    assert len(kept) == 1
    assert house.engine.inspect.show(ids[0]).summary.state == "cancelled"
    assert [each.id for each in house.engine.crons.list(tenant=tenant)] == [cron.id]


def test_steering_and_reports_happen_once_though_the_answer_is_lost(house, connect):
    made, tenant, job = waiting(), fresh("acme"), fresh("job")
    id = house.engine.start(made, {"n": 0}, tenant=tenant)
    works = sequence(fresh("works"), step("s", job, queue_name="q"))
    worked = house.engine.start(works, tenant=tenant)
    house.engine.wait_for(worked, "waiting")
    with fickle(house.url) as between:
        client = connect(between.url, tenant=tenant)

        def lossy(call):
            between.script[:] = [_lose_posts(between)] * 4
            return call()

        fork = lossy(lambda: client.fork(id, before="w"))
        told = lossy(lambda: client.inject(id, [wait("x", signal="go")]))
        lossy(lambda: client.set_data(id, {"n": 1}))
        event = lossy(lambda: client.events.send("paid", "o1", "p1"))
        (task,) = client.work.poll(job, "w1", queue="q")
        held = (task.id, "w1", task.claim_epoch)
        assert lossy(lambda: client.work.heartbeat(*held, checkpoint=1, seq=0)) == 1
        lossy(lambda: client.work.complete(*held, {"n": 2}))
    assert {each.id for each in started(house, made.name)} == {id, fork}
    assert (told["total_injected"], event.duplicate) == (1, False)
    actions = [each.action for each in house.engine.inspect.audit(id)]
    assert (actions.count("data.replaced"), actions.count("blocks.injected")) == (1, 1)
    assert house.engine.wait_for(worked) == "completed"


def test_a_poll_whose_answer_is_lost_is_not_repeated(house, connect):
    with fickle(house.url, lose_answer, forward) as between:
        lost = failure(lambda: connect(between.url).work.poll(fresh("job"), "w1"))
    assert lost.code == "server.unreachable"
    assert len(between.calls) == 1


def _lose_posts(between):
    lost = []

    def behave(call):
        if call.command == "POST" and not lost:
            lost.append(call)
            lose_answer(call)
            between.script.clear()
        else:
            forward(call)

    return behave


def test_a_server_that_is_not_ready_is_asked_again_until_it_is(house, connect):
    made = waiting()
    house.engine.deploy(made)
    with fickle(house.url, say(503), say(503, retry_after="0"), say(429)) as between:
        assert connect(between.url).definition(made.name) == made
    assert len(between.calls) == 4


def test_a_server_that_never_gets_ready_is_given_up_with_its_own_code(connect):
    told = b'{"error": "unavailable: the disk is full", "code": "store.full"}'
    with fickle("", *[say(503, told, retry_after="0")] * 9) as between:
        error = failure(lambda: connect(between.url, attempts=3).now())
    assert (type(error), error.code) == (detent.StoreError, "store.full")
    assert error.message == "the disk is full"
    assert len(between.calls) == 3


def test_a_server_that_asks_for_too_much_patience_is_not_waited_for(connect):
    with fickle("", say(503, retry_after="3600")) as between:
        assert failure(lambda: connect(between.url).now()).code == "server.unreachable"
    assert len(between.calls) == 1


def test_a_deletion_whose_answer_is_lost_is_not_repeated(house, connect):
    house.engine.limits.set("gone", max=1, window="1h")
    with fickle(house.url) as between:
        client = connect(between.url)
        client.limits.show("gone")
        between.script[:] = [forward, lose_answer]
        assert failure(lambda: client.limits.delete("gone")).code == "server.unreachable"
    assert [method for method, *_ in between.calls].count("DELETE") == 1
    assert "gone" not in [each.key for each in house.engine.limits.list()]


# no answer ---------------------------------------------------------------------------------------


def test_a_server_that_is_gone_is_an_error_of_the_operator(connect):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    error = failure(lambda: connect(url, attempts=2).now())
    assert (type(error), error.code) == (detent.StoreError, "server.unreachable")
    assert url in error.message
    assert failure(lambda: connect("http://nowhere.invalid", attempts=1).now()).code == (
        "server.unreachable"
    )


def test_a_server_that_closes_every_connection_is_an_error_of_the_operator(connect):
    with fickle("", *[hang_up] * 9) as between:
        error = failure(lambda: connect(between.url, attempts=2).now())
    assert error.code == "server.unreachable"
    assert len(between.calls) == 2


def test_a_server_that_does_not_answer_in_time_is_not_asked_again(connect):
    with fickle("", say_nothing) as between:
        error = failure(lambda: connect(between.url, timeout=0.2).now())
        assert (type(error), error.code) == (detent.RequestError, "request.timeout")
        assert len(between.calls) == 1


def test_a_wait_is_not_cut_by_the_timeout_of_a_request(house, connect):
    id = house.engine.start(waiting())
    client = connect(house.url, timeout=2)
    timer = threading.Timer(2.5, lambda: house.engine.signal(id, "go"))
    timer.start()
    assert client.wait_for(id, timeout=20) == "completed"
    timer.join()


# who is not let in -------------------------------------------------------------------------------


def test_a_wrong_key_is_refused_and_never_told(house, connect):
    error = failure(lambda: connect(house.url, api_key="a-guess").now())
    assert (type(error), error.code) == (detent.RequestError, "request.unauthorized")
    assert "a-guess" not in f"{error} {connect(house.url, api_key='a-guess')!r}"


def test_a_call_for_no_tenant_says_so_where_the_server_wants_one(house, connect):
    strict = ApiSettings(api_key=ROOT)
    with serving(house.engine, strict) as url:
        error = failure(connect(url).inspect.instances)
        assert error.code == "request.tenant"
        assert "tenant" in error.message
        assert connect(url, tenant="default").inspect.instances().items is not None
        assert connect(url).start(waiting())  # a start is for the tenant "default"


# strange answers ---------------------------------------------------------------------------------

STRANGE = {
    "a page": say(200, b"<html>hello</html>"),
    "another shape": say(200, b'{"now_ms": "soon"}'),
    "nothing": say(200),
    "a redirection": say(302, location="http://127.0.0.1:1/"),
    "an unknown path": say(404, b"nothing here"),
    "an error of a proxy": say(502, b"bad gateway"),
    "no text": say(500, b"\xff\xfe\x00"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_an_answer_of_something_else_is_called_that(connect, name):
    with fickle("", STRANGE[name]) as between:
        error = failure(lambda: connect(between.url).now())
    assert (type(error), error.code) == (detent.StoreError, "server.answer")
    assert between.url in error.message
    assert len(between.calls) == 1


def test_a_code_of_a_later_release_is_told_with_what_its_status_means(connect):
    body = b'{"error": "conflict: the moon is full", "code": "moon.full"}'
    with fickle("", say(400, body)) as between:
        error = failure(lambda: connect(between.url).now())
    assert (error.code, "moon.full" in error.message) == ("request.invalid", True)


def test_a_server_that_speaks_no_http_is_an_error_of_the_operator(connect):
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def babble():
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(1_000)
                    peer.sendall(b"220 mail.example.org ESMTP\r\n")

        thread = threading.Thread(target=babble, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        assert failure(lambda: connect(url, attempts=2).now()).code == "server.unreachable"
        listening.shutdown(socket.SHUT_RDWR)


# how a client is made ----------------------------------------------------------------------------


def test_url_and_key_come_from_the_environment(house, monkeypatch):
    monkeypatch.setenv("DETENT_URL", f"{house.url}/")
    monkeypatch.setenv("DETENT_API_KEY", ROOT)
    with detent.Client() as client:
        assert client.now()
    monkeypatch.delenv("DETENT_URL")
    assert failure(detent.Client).code == "request.invalid"


@pytest.mark.parametrize(
    "given",
    [
        {"url": "localhost:8080"},
        {"url": "ftp://x"},
        {"url": "http://x", "timeout": 0},
        {"url": "http://x", "attempts": 0},
        {"url": "http://x", "tenant": ""},
        {"url": "http://x", "api_key": "schlüssel"},
    ],
    ids=str,
)
def test_a_client_that_could_never_work_is_not_made(given):
    for kind in (detent.Client, detent.AsyncClient):
        assert failure(lambda kind=kind: kind(**given)).code == "request.invalid"


def test_a_tenant_that_no_header_can_carry_is_refused_before_anything_is_sent(connect):
    client = connect("http://127.0.0.1:1")
    for name in ("東京", "a\nx-api-key: b", ""):
        assert failure(lambda n=name: client.inspect.instances(tenant=n)).code == "request.invalid"
        assert failure(lambda n=name: detent.Client("http://x", tenant=n)).code == "request.invalid"


def test_an_option_that_no_start_has_is_refused(house, connect):
    with pytest.raises(TypeError, match="colour"):
        connect(house.url).start(waiting(), colour="red")
