"""Tricks to reach the inside: every one is refused, and nothing is ever dialled."""

from __future__ import annotations

import pytest

from detent.handlers.network import NetworkSettings
from detent.handlers.network.targets import read_target
from tests.unit.handlers.network.calling_out import PUBLIC, Names, Wires, failure_of
from tests.unit.handlers.network.loopback import Loopback, answer
from tests.unit.handlers.network.tricks import (
    BAD_ANSWERS,
    BAD_LOCATIONS,
    ODD_HOSTS,
    ODD_URLS,
    PLAIN_IPV4,
    PLAIN_IPV6,
)

URLS = [
    *(f"http://{address}/" for address in PLAIN_IPV4),
    *(f"https://[{address}]:8443/x" for address in PLAIN_IPV6),
    *(f"http://{host}/" for host in ODD_HOSTS),
    *ODD_URLS,
]


def assert_refused(failure):
    assert (failure.code, failure.retryable) == ("network.refused", False)


def test_there_are_more_than_two_hundred_tricks_and_no_two_are_the_same():
    assert len(set(URLS)) == len(URLS)
    assert len(URLS) + len(BAD_ANSWERS) + len(BAD_LOCATIONS) > 400


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize("url", URLS, ids=lambda url: ascii(url)[:70])
def test_a_trick_is_refused_and_nothing_is_dialled(url):
    wires, names = Wires(), Names()
    assert_refused(failure_of(url, wires=wires, names=names))
    assert (wires.dialled, names.asked) == ([], [])


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize("answers", BAD_ANSWERS, ids=",".join)
def test_a_harmless_name_with_one_bad_address_is_refused(answers):
    wires = Wires()
    names = Names(harmless_example=[answers])
    assert_refused(failure_of("http://harmless.example/", wires=wires, names=names))
    assert wires.dialled == []


@pytest.mark.req("SEQ-HND-4")
@pytest.mark.parametrize("location", BAD_LOCATIONS, ids=ascii)
def test_a_redirect_to_the_inside_is_refused(location):
    names = Names(inside_example=[["10.0.0.1"]])
    encoded = location.encode().decode("latin-1")
    say = lambda _seen: answer(302, headers=[f"Location: {encoded}"])  # noqa: E731
    with Loopback(say) as server:
        wires = Wires(server.port)
        assert_refused(failure_of("http://public.example/", names=names, wires=wires))
        assert (wires.dialled, len(server.seen)) == ([PUBLIC], 1)


@pytest.mark.parametrize("url", [u for u in URLS if u.startswith("http")], ids=ascii)
def test_settings_that_allow_the_inside_allow_no_odd_url(url):
    """What an operator allows are addresses; a URL that can be read in two ways stays refused."""
    failure = failure_of(url, wires=Wires(), settings=NetworkSettings(allow_internal=True))
    if failure.code != "network.unreachable":
        assert_refused(failure)
    else:
        target = read_target(url)
        assert target.host in url.lower() or target.address is not None


LEGAL = [
    ("http://example.org", "example.org", 80, "/"),
    ("HTTP://EXAMPLE.ORG/Path", "example.org", 80, "/Path"),
    ("https://example.org/a?b=c&d=%20#frag", "example.org", 443, "/a?b=c&d=%20"),
    ("https://example.org?x=1", "example.org", 443, "/?x=1"),
    ("http://example.org./", "example.org", 80, "/"),
    ("http://example.org:8080/", "example.org", 8080, "/"),
    ("http://a-b_c.example.org/", "a-b_c.example.org", 80, "/"),
    ("http://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de", 80, "/"),
    ("http://1password.example/", "1password.example", 80, "/"),
    ("http://127.0.0.1.example.org/", "127.0.0.1.example.org", 80, "/"),
    ("http://localhost.example.org/", "localhost.example.org", 80, "/"),
    ("http://93.184.216.34/", "93.184.216.34", 80, "/"),
    ("http://[2606:4700::1111]:81/", "2606:4700::1111", 81, "/"),
    ("http://[::ffff:93.184.216.34]/", "93.184.216.34", 80, "/"),
    ("http://example.org/@127.0.0.1", "example.org", 80, "/@127.0.0.1"),
    ("http://example.org/http://127.0.0.1/", "example.org", 80, "/http://127.0.0.1/"),
    ("http://example.org?u=http://127.0.0.1/", "example.org", 80, "/?u=http://127.0.0.1/"),
    ("http://example.org#@127.0.0.1/", "example.org", 80, "/"),
    ("http://example.org/größe", "example.org", 80, "/gr%C3%B6%C3%9Fe"),
    ("http://example.org/a//b/../c", "example.org", 80, "/a//b/../c"),
]


@pytest.mark.parametrize(("url", "host", "port", "path"), LEGAL)
def test_a_plain_url_is_read_and_called_at_its_public_address(url, host, port, path):
    target = read_target(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    wires = Wires()
    assert failure_of(url, wires=wires).code == "network.unreachable"
    assert wires.dialled == [PUBLIC if target.address is None else str(target.address)]
