"""A server between a client and another one that answers as a script says, and counts."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2

HOP = ("host", "content-length", "transfer-encoding", "connection", "accept-encoding")


def forward(call):
    """Hand the request on, and the answer back."""
    call.reply(*call.ask_behind())


def lose_answer(call):
    """Hand the request on, and let the connection break before the answer is told."""
    call.ask_behind()
    call.close_connection = True
    call.connection.close()


def hang_up(call):
    """Close the connection without a word."""
    call.close_connection = True
    call.connection.close()


def say(status, body=b"", **headers):
    """Answer with this, whatever was asked."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda call: call.reply(status, told, body)


def say_nothing(call):
    """Let the client wait until the test is over."""
    call.server.over.wait(30)
    call.close_connection = True


class Fickle(ThreadingHTTPServer):
    """The script is a list of behaviours; when it is over everything is forwarded."""

    daemon_threads = True

    def __init__(self, behind, script):
        super().__init__(("127.0.0.1", 0), _Call)
        self.behind, self.script, self.calls = behind, list(script), []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_request):
        """A connection that was closed on purpose is no news."""


class _Call(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_words):
        """Be quiet."""

    def _serve(self):
        length = int(self.headers.get("content-length", 0))
        self.sent = self.rfile.read(length)
        self.server.calls.append((self.command, self.path, dict(self.headers.items())))
        behave = self.server.script.pop(0) if self.server.script else forward
        behave(self)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - the names that are looked for

    def ask_behind(self):
        headers = {n: v for n, v in self.headers.items() if n.lower() not in HOP}
        answer = httpx2.request(
            self.command,
            self.server.behind + self.path,
            headers=headers,
            content=self.sent,
            timeout=30,
        )
        return answer.status_code, dict(answer.headers), answer.content

    def reply(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def fickle(behind, *script):
    server = Fickle(behind, script)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
