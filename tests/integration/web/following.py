"""What tests of streams share: reading server-sent events, and sockets that do not read."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.integration.web.house import ROOT


@contextmanager
def following(server, path, *, tenant="acme", last=None):
    """An open stream; iterating it gives (event, data, id) until it closes."""
    headers = {"x-api-key": ROOT, "x-tenant-id": tenant}
    if last is not None:
        headers["last-event-id"] = last
    with server.http.stream("GET", path, headers=headers, timeout=30) as answer:
        answer.seen = events(answer)
        yield answer


def events(answer):
    name, data, id = "", None, None
    for line in answer.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("id: "):
            id = line.removeprefix("id: ")
        elif line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
        elif not line and name:
            yield name, data, id
            name, data, id = "", None, None


def everything(server, path, **more):
    with following(server, path, **more) as answer:
        assert answer.status_code == 200, answer.read()
        return list(answer.seen)


def raw(server, path, *, tenant="acme", receive_bytes=None):
    """A socket that has asked for a path and reads nothing."""
    place = urlsplit(server.url)
    connection = socket.socket()
    if receive_bytes:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.connect((place.hostname, place.port))
    headers = f"host: x\r\nx-api-key: {ROOT}\r\nx-tenant-id: {tenant}"
    connection.sendall(f"GET {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    return connection


def until(condition):
    """A server does its part on a thread of its own; look until it has."""
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        threading.Event().wait(0.01)
    assert condition()
