"""Just enough of a server to be connected to: it says which release of PostgreSQL it is."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import contextmanager, suppress


def message(kind, body):
    return kind + struct.pack(">i", len(body) + 4) + body


@contextmanager
def server_of(version):
    """Listens on loopback; yields the port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError):  # the test is over
            near, _ = listening.accept()
            with near:
                size = struct.unpack(">i", near.recv(4))[0]
                near.recv(size - 4)
                told = b"server_version\x00" + version.encode() + b"\x00"
                encoding = b"client_encoding\x00UTF8\x00"
                near.sendall(
                    message(b"R", struct.pack(">i", 0))
                    + message(b"S", told)
                    + message(b"S", encoding)
                    + message(b"K", struct.pack(">ii", 1, 2))
                    + message(b"Z", b"I")
                )
                while near.recv(4_096):
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
        thread.join(5)
