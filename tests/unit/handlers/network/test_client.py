"""The guarded client against servers that are slow, huge, never done, or speak nonsense."""

from __future__ import annotations

import gzip
import zlib

import pytest

from detent.handlers.network import NetworkSettings
from detent.handlers.network.headers import retry_after_s
from tests.unit.handlers.network.calling_out import PUBLIC, Names, Wires, failure_of, fetched
from tests.unit.handlers.network.loopback import Loopback, answer, pieces

INSIDE = NetworkSettings(allow_internal=True)
SMALL = NetworkSettings(allow_internal=True, max_body_bytes=1_000)
CHUNKED = answer(headers=["Transfer-Encoding: chunked"], length=False)


def told(say, *, settings=INSIDE, **call):
    with Loopback(say) as server:
        failure = failure_of(server.url, settings=settings, **call)
    return failure.code, failure.retryable


async def endless(head, piece):
    yield head
    while True:
        yield piece


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (b"HTTP/1.1 200",),
        (b"HTTP/1.1 200 OK\r\n",),
        (answer(headers=["Content-Length: 10"], length=False), b"half"),
        (CHUNKED, b"5\r\nhello\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
    ],
)
def test_an_answer_that_does_not_come_in_time_is_a_failure_that_may_be_retried(parts):
    say = lambda _: pieces(*parts, then_wait=True)  # noqa: E731
    assert told(say, timeout_s=0.05) == ("network.timeout", True)


def test_a_stream_that_falls_silent_is_given_up_before_the_whole_time_is_over():
    say = lambda _: pieces(CHUNKED, b"5\r\nhello\r\n", then_wait=True)  # noqa: E731
    with Loopback(say) as server:
        failure = failure_of(server.url, settings=INSIDE, idle_s=0.05, timeout_s=60)
    assert (failure.code, failure.retryable) == ("network.timeout", True)
    assert "sent nothing for 0.05 s" in failure.message


def test_a_server_that_drips_for_ever_is_given_up_in_the_end():
    assert told(lambda _: endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), timeout_s=0.1) == (
        "network.timeout",
        True,
    )


@pytest.mark.parametrize(
    "said",
    [
        b"\r\n\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail ESMTP\r\n",
        b"HTTP/9.9 what\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        bytes(range(256)) * 500,
        answer(headers=["Content-Length: 10"], length=False) + b"half",
        b"",
    ],
    ids=lambda said: repr(said[:40]),
)
def test_nonsense_is_a_failure_that_may_be_retried(said):
    code, retryable = told(lambda _: pieces(said))
    assert (code, retryable) == ("network.protocol", True)


def test_a_refused_connection_is_a_failure_that_may_be_retried():
    with Loopback(lambda _: b"") as server:
        url = server.url
    failure = failure_of(url, settings=INSIDE)
    assert (failure.code, failure.retryable) == ("network.unreachable", True)


def test_a_name_without_address_is_a_failure_that_may_be_retried():
    failure = failure_of("http://gone.example/", names=Names(gone_example=[[]]), wires=Wires())
    assert (failure.code, failure.retryable) == ("network.unreachable", True)


@pytest.mark.parametrize("size", [1_000, 1_001])
def test_a_body_may_be_as_large_as_the_limit_and_no_byte_larger(size):
    body = b"x" * size
    forms = [
        lambda _: answer(200, body),
        lambda _: pieces(answer(200, body, length=False)),
        lambda _: pieces(CHUNKED, b"%x\r\n%s\r\n0\r\n\r\n" % (size, body)),
        lambda _: answer(200, gzip.compress(body), ["Content-Encoding: gzip"]),
        lambda _: answer(200, zlib.compress(body), ["Content-Encoding: deflate"]),
    ]
    for say in forms:
        if size > SMALL.max_body_bytes:
            assert told(say, settings=SMALL) == ("network.too_large", False)
        else:
            with Loopback(say) as server:
                [reply] = fetched(server.url, settings=SMALL)
            assert reply.body == body


def test_a_body_that_never_ends_is_cut_off_at_the_limit():
    say = lambda _: endless(CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n")  # noqa: E731
    assert told(say, settings=SMALL) == ("network.too_large", False)


def test_a_bomb_is_stopped_when_it_passes_the_limit():
    bomb = gzip.compress(b"\0" * 100_000_000)
    assert len(bomb) < 1_000_000
    say = lambda _: answer(200, bomb, ["Content-Encoding: gzip"])  # noqa: E731
    assert told(say) == ("network.too_large", False)


def test_packing_that_was_not_asked_for_is_refused_and_broken_packing_may_be_retried():
    assert told(lambda _: answer(200, b"x", ["Content-Encoding: br"])) == (
        "network.protocol",
        False,
    )
    assert told(lambda _: answer(200, b"xxxx", ["Content-Encoding: gzip"])) == (
        "network.protocol",
        True,
    )


def test_an_answer_without_a_body_may_promise_anything():
    promises = ["Content-Length: 99999999999", "Content-Encoding: br"]
    with Loopback(lambda _: answer(200, headers=promises, length=False)) as server:
        [reply] = fetched(server.url, settings=INSIDE, method="HEAD")
    assert (reply.status, reply.body) == (200, b"")
    assert told(lambda _: pieces(answer(200, b"x", promises, length=False))) == (
        "network.too_large",
        False,
    )


def test_a_server_that_wants_another_protocol_is_not_followed():
    assert told(lambda _: answer(101, headers=["Upgrade: ssh", "Connection: upgrade"])) == (
        "network.protocol",
        True,
    )


def test_a_redirect_in_other_letters_is_followed_as_utf_8():
    def say(seen):
        moved = answer(302, headers=["Location: /" + "größe".encode().decode("latin-1")])
        return moved if seen.path == "/" else answer(200)

    with Loopback(say) as server:
        fetched(server.url, settings=INSIDE)
        assert server.seen[1].path == "/gr%C3%B6%C3%9Fe"


def test_redirects_are_followed_five_times_and_no_more():
    def say(seen):
        left = int(seen.path.strip("/"))
        return answer(302, headers=[f"Location: /{left - 1}"]) if left else answer(200, b"there")

    with Loopback(say) as server:
        [reply] = fetched(f"{server.url}/5", settings=INSIDE)
        assert (reply.body, len(server.seen)) == (b"there", 6)
        failure = failure_of(f"{server.url}/6", settings=INSIDE)
        assert (failure.code, failure.retryable) == ("network.refused", False)


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"hello"),
        (308, "PUT", "PUT", b"hello"),
        (302, "HEAD", "HEAD", b""),
    ],
)
def test_a_redirect_changes_the_method_as_browsers_do(status, method, then, body):
    def say(seen):
        moved = answer(status, headers=["Location: there"])
        return moved if seen.path == "/here" else answer(200)

    with Loopback(say) as server:
        given = None if method == "HEAD" else b"hello"
        fetched(f"{server.url}/here", settings=INSIDE, method=method, body=given)
        last = server.seen[-1]
    assert (last.path, last.method, last.body) == ("/there", then, body)


@pytest.mark.req("SEQ-HND-4")
def test_credentials_stay_with_their_origin():
    secret = {
        "authorization": "Bearer s3cret",
        "cookie": "a=b",
        "x-api-key": "k",
        "x-anything": "v",
        "accept": "text/plain",
    }

    def say(seen):
        to = {"/a": "/b", "/b": "http://second.example/c"}.get(seen.path)
        return answer(307, headers=[f"Location: {to}"]) if to else answer(200)

    with Loopback(say) as server:
        fetched("http://first.example/a", wires=Wires(server.port), headers=secret)
        own, same, other = (seen.headers for seen in server.seen)
    for name, value in secret.items():
        assert own[name] == same[name] == value
    assert other["host"] == "second.example"
    assert [name for name in secret if name in other] == ["accept"]


def test_a_redirect_out_of_tls_is_refused():
    from detent.handlers.network.client import Call, _redirected
    from detent.handlers.network.targets import read_target

    url = "https://secure.example/"
    call = Call(url=url, timeout_s=1)
    assert _redirected(call, read_target(url), 302, "/x").url == "https://secure.example/x"
    with pytest.raises(Exception, match="from https to http"):
        _redirected(call, read_target(url), 302, "http://secure.example/x")


def test_a_redirect_without_a_place_is_an_answer_like_any_other():
    with Loopback(lambda _: answer(304)) as server:
        [reply] = fetched(server.url, settings=INSIDE)
    assert reply.status == 304


def test_text_is_read_in_the_charset_that_is_named():
    def say(seen):
        kinds = {"/latin": "text/plain; charset=latin-1", "/odd": "text/plain; charset=rot13"}
        body = "größe".encode("latin-1" if seen.path == "/latin" else "utf-8")
        return answer(200, body, [f"Content-Type: {kinds.get(seen.path, 'text/plain')}"])

    with Loopback(say) as server:
        for path in ("latin", "odd", "none"):
            [reply] = fetched(f"{server.url}/{path}", settings=INSIDE)
            assert reply.text() == "größe"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "120"}, 120),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "9" * 40}, 86_400),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:30:00 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            120,
        ),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:00:00 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            0,
        ),
        ({"retry-after": "Wed, 21 Oct 2026 07:30:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1.5"}, None),
        ({}, None),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(headers, seconds):
    assert retry_after_s(headers) == seconds


def test_connections_are_kept_for_the_next_call():
    with Loopback(lambda _: answer(200, b"x")) as server:
        fetched("http://kept.example/", wires=(wires := Wires(server.port)), times=5)
        assert (wires.dialled, server.connections, len(server.seen)) == ([PUBLIC], 1, 5)
