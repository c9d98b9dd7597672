"""A provider of tokens on loopback: it gives new ones for refresh tokens, and guards a resource."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs


class Provider(ThreadingHTTPServer):
    """Tokens are used up: a refresh gives a new pair, and the old refresh token opens nothing."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Call)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.refresh_token = "refresh-token-0"
        self.access_token = "access-token-0"
        self.answer = None  # what is said to a refresh instead: (status, value)
        self.expires_in = 3_600
        self.free = threading.Event()  # a refresh is answered while it is set
        self.free.set()
        self.forms = []  # of refreshes
        self.shown = []  # what was shown to the resource, in order
        self._numbers = itertools.count(1)
        self._one = threading.Lock()

    def refresh(self, form):
        """A new pair of tokens for a good refresh token."""
        self.forms.append(form)
        self.free.wait(20)
        with self._one:
            if self.answer is not None:
                return self.answer
            if form.get("refresh_token") != self.refresh_token:
                return 400, {"error": "invalid_grant", "error_description": "s3cret-words"}
            number = next(self._numbers)
            self.access_token = f"access-token-{number}"
            self.refresh_token = f"refresh-token-{number}"
            return 200, {
                "access_token": self.access_token,
                "refresh_token": self.refresh_token,
                "token_type": "Bearer",
                "expires_in": self.expires_in,
            }

    def resource(self, shown):
        """What the resource says to who shows this."""
        with self._one:
            self.shown.append(shown)
            if shown != f"Bearer {self.access_token}":
                return 401, {"error": "invalid_token"}
            return 200, {"hello": "you", "echo": shown}


class _Call(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers["content-length"])
        form = parse_qs(self.rfile.read(length).decode(), strict_parsing=True)
        self._say(*self.server.refresh({name: value for name, (value,) in form.items()}))

    def do_GET(self):
        self._say(*self.server.resource(self.headers.get("authorization", "")))

    def log_message(self, *_words):
        """Be quiet."""

    def _say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def provider():
    """A provider that really listens."""
    with Provider() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        try:
            yield made
        finally:
            made.shutdown()
