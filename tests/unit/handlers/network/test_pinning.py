"""DNS rebinding and pinned connections: what was checked is what is called."""

from __future__ import annotations

import datetime as dt
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from detent.handlers.network import NetworkSettings
from tests.unit.handlers.network.calling_out import PUBLIC, Names, Wires, failure_of, fetched
from tests.unit.handlers.network.loopback import Loopback, answer

ELSEWHERE = "93.184.216.35"


def fine(_seen):
    return answer(200, b"fine")


@pytest.mark.req("SEQ-HND-4")
def test_a_name_is_asked_for_once_and_a_second_private_answer_is_never_seen():
    names = Names(rebind_example=[[PUBLIC], ["127.0.0.1"]])
    with Loopback(fine) as server:
        wires = Wires(server.port)
        [reply] = fetched("http://rebind.example/", names=names, wires=wires)
    assert reply.body == b"fine"
    assert (names.asked, wires.dialled) == (["rebind.example"], [PUBLIC])


@pytest.mark.req("SEQ-HND-4")
def test_a_name_that_turns_private_is_refused_although_its_connection_is_still_open():
    names = Names(rebind_example=[[PUBLIC], [PUBLIC], ["127.0.0.1"]])
    with Loopback(fine) as server:
        wires = Wires(server.port)
        failure = failure_of("http://rebind.example/", names=names, wires=wires, times=3)
        assert failure.code == "network.refused"
        assert (len(server.seen), server.connections, wires.dialled) == (2, 1, [PUBLIC])


@pytest.mark.req("SEQ-HND-4")
def test_a_connection_is_reused_only_for_the_address_that_was_checked():
    names = Names(moving_example=[[PUBLIC], [PUBLIC], [ELSEWHERE]])
    with Loopback(fine) as server:
        wires = Wires(server.port)
        fetched("http://moving.example/", names=names, wires=wires, times=3)
        assert wires.dialled == [PUBLIC, ELSEWHERE]
        assert [seen.connection for seen in server.seen] == [1, 1, 2]


@pytest.mark.req("SEQ-HND-4")
def test_a_redirect_back_to_a_name_that_turned_private_is_refused():
    names = Names(rebind_example=[[PUBLIC], ["169.254.169.254"]])
    with Loopback(lambda _: answer(302, headers=["Location: /again"])) as server:
        wires = Wires(server.port)
        failure = failure_of("http://rebind.example/", names=names, wires=wires)
        assert (failure.code, len(server.seen)) == ("network.refused", 1)


def test_a_request_goes_to_the_address_and_carries_the_name():
    """Two servers share a port on two addresses; only the one that was checked is called."""
    settings = NetworkSettings(allowed_hosts=("twin.example",))
    with Loopback(fine) as first, Loopback(fine, host="127.0.0.2", at=first.port) as second:
        names = Names(twin_example=[["127.0.0.2"], ["127.0.0.1"]])
        url = f"http://twin.example:{first.port}/x"
        fetched(url, names=names, settings=settings)
        assert (first.seen, len(second.seen)) == ([], 1)
        assert second.seen[0].headers["host"] == f"twin.example:{first.port}"


def test_the_next_address_is_tried_when_one_takes_no_connection():
    settings = NetworkSettings(allowed_hosts=("twin.example",))
    with Loopback(fine) as server:
        names = Names(twin_example=[["127.0.0.3", "127.0.0.1"]])
        [reply] = fetched(f"http://twin.example:{server.port}/", names=names, settings=settings)
        assert reply.status == 200


@pytest.mark.parametrize(
    ("entry", "host"),
    [
        ("inside.example", "inside.example"),
        ("*.example", "inside.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.0/8", "inside.example"),
        ("localhost", "localhost"),
    ],
)
@pytest.mark.req("SEQ-HND-4")
def test_an_allowed_host_is_called_and_its_neighbour_is_not(entry, host):
    names = Names(inside_example=[["127.0.0.1"]], localhost=[["127.0.0.1"]])
    neighbours = Names(other_test=[["10.0.0.1"]])
    with Loopback(fine) as server:
        allowing = [entry, entry if "/" in entry else f"{entry}:{server.port}"]
        for allowed in allowing:
            settings = NetworkSettings(allowed_hosts=(allowed,))
            [reply] = fetched(f"http://{host}:{server.port}/", names=names, settings=settings)
            assert reply.status == 200
            failure = failure_of("http://other.test/", names=neighbours, settings=settings)
            assert failure.code == "network.refused"


def test_an_entry_with_a_port_allows_no_other_port():
    with Loopback(fine) as server:
        settings = NetworkSettings(allowed_hosts=("127.0.0.1:9",))
        assert failure_of(server.url, settings=settings).code == "network.refused"
        assert server.seen == []


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "224.0.0.1", "255.255.255.255", "[::]", "[ff02::1]"]
)
def test_what_is_no_ones_address_is_refused_whatever_is_allowed(address):
    settings = NetworkSettings(allow_internal=True, allowed_hosts=(address.strip("[]"),))
    assert failure_of(f"http://{address}/", settings=settings).code == "network.refused"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for secure.example alone, and the contexts of both sides."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "secure.example")])
    begin = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("secure.example")]), False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "secure.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.create_default_context(cafile=file)
    return server, client


@pytest.mark.req("SEQ-HND-4")
def test_tls_is_spoken_with_the_name_although_the_address_is_called(certificate):
    asked = []
    server_side, client_side = certificate
    server_side.sni_callback = lambda _socket, name, _context: asked.append(name)
    with Loopback(fine, tls=server_side) as server:
        wires = Wires(server.port)
        [reply] = fetched("https://secure.example/", wires=wires, tls=client_side)
    assert (reply.body, asked, wires.dialled) == (b"fine", ["secure.example"], [PUBLIC])


def test_an_open_connection_is_not_used_for_another_name_at_the_same_address(certificate):
    server_side, client_side = certificate
    say = lambda _: answer(302, headers=["Location: https://other.example/"])  # noqa: E731
    with Loopback(say, tls=server_side) as server:
        wires = Wires(server.port)
        failure = failure_of("https://secure.example/", wires=wires, tls=client_side)
        assert (failure.code, failure.retryable) == ("network.unreachable", True)
        assert "not valid for 'other.example'" in failure.message
        assert (len(server.seen), wires.dialled) == (1, [PUBLIC, PUBLIC])
