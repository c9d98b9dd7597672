"""What a server does beside answering: it listens, keeps tokens fresh, and reads its keys."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import httpx2
import pytest

from detent import Engine
from detent.bootstrap import freshness
from detent.bootstrap.desk import EngineDesk
from detent.bootstrap.server_settings import ServerSettings
from detent.bootstrap.serving import listen
from detent.cli.serving import open_engine
from detent.model.errors import DetentError
from detent.service.credentials import NewCredential, create_credential
from detent.service.handing_out import secret_of
from detent.testing.serving import serving
from detent.web.api.settings import ApiSettings
from tests.integration.web.house import ROOT, VAULT

TOKEN, AGAIN, FRESH = "t0ken-before", "refresh-t0ken", "t0ken-after"


def test_answers_are_not_held_back_to_be_sent_together():
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
        assert listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# tokens


def soon(store, parts, url="https://auth.example.com/token"):
    """A credential that expires in a minute."""
    expires = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=1)
    new = NewCredential(
        id="mail",
        name="Mail",
        value=TOKEN,
        kind="oauth2",
        tenant_id="acme",
        expires_at=expires,
        refresh_url=url,
        refresh_token=AGAIN,
    )
    return create_credential(store, parts.safe, None, new, parts.now_ms())


class Provider:
    """Answers with a new token, or as it is told."""

    def __init__(self, status=200):
        self.status_code = status
        self.content = json.dumps({"access_token": FRESH, "expires_in": 3600}).encode()
        self.asked = threading.Event()
        self.forms = []

    async def post(self, _url, form):
        self.forms.append(dict(form))
        self.asked.set()
        return self


@pytest.mark.req("SEQ-HND-5")
def test_a_server_refreshes_tokens_that_expire_soon(tmp_path):
    provider = Provider()
    with Engine(tmp_path / "s.db", vault_key=VAULT) as engine:
        parts = engine._parts
        before = parts.write(lambda store: soon(store, parts))
        with serving(engine, ApiSettings(api_key=ROOT), provider.post) as url:
            assert provider.asked.wait(20)
            assert provider.forms == [{"grant_type": "refresh_token", "refresh_token": AGAIN}]
            headers = {"x-api-key": ROOT, "x-tenant-id": "acme"}
            while (
                shown := httpx2.get(f"{url}/credentials/mail", headers=headers).json()
            ) and dt.datetime.fromisoformat(shown["expires_at"]) == before.expires_at:
                pass
            assert FRESH not in str(shown)
        now_ms = parts.now_ms()
        value = parts.read(lambda store: secret_of(store, parts.safe, "acme", "mail", now_ms))
        assert value == FRESH


@contextmanager
def provider_on_loopback(answer, status=200):
    """A provider that really listens; its address, and the forms it was sent."""
    forms = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["content-length"])
            forms.append(parse_qs(self.rfile.read(length).decode()))
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_args):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/token", forms
        finally:
            listening.shutdown()


def refreshed(engine, url):
    """Let a server look once for what is to be refreshed at a URL; the value it leaves."""
    parts = engine._parts
    safe = parts.safe._replace(internal_urls=True)

    def keep(store):
        made = soon(store, parts, url)
        assert made.refresh_url == url

    parts.safe = safe
    parts.write(keep)
    desk = EngineDesk(engine)
    try:
        asyncio.run(freshness.refresh_once(desk, freshness.guarded_post(parts.settings)))
    finally:
        desk.close()
    return parts.read(lambda store: secret_of(store, safe, "acme", "mail", 0))


def test_the_guarded_client_brings_a_new_token(tmp_path):
    with (
        provider_on_loopback({"access_token": FRESH}) as (url, forms),
        Engine(tmp_path / "s.db", vault_key=VAULT, allow_internal_urls=True) as engine,
    ):
        assert refreshed(engine, url) == FRESH
        assert forms == [{"grant_type": ["refresh_token"], "refresh_token": [AGAIN]}]


@pytest.mark.parametrize(
    ("settings", "status", "words"),
    [
        ({}, 200, "not public"),  # nothing is sent to an address inside
        ({"allow_internal_urls": True}, 500, "status 500"),
        ({"allow_internal_urls": True}, 307, "status 307"),  # nor on to somebody else
    ],
)
def test_a_token_that_cannot_be_refreshed_is_said_in_the_log_and_stays(
    tmp_path, caplog, settings, status, words
):
    caplog.set_level(logging.DEBUG)
    with (
        provider_on_loopback({"access_token": FRESH}, status) as (url, forms),
        Engine(tmp_path / "s.db", vault_key=VAULT, **settings) as engine,
    ):
        assert refreshed(engine, url) == TOKEN
        assert len(forms) == len(settings)
    assert "credential mail was not refreshed" in caplog.text
    assert words in caplog.text
    for secret in (TOKEN, AGAIN, FRESH):
        assert secret not in caplog.text


def test_a_store_that_cannot_be_read_stops_nothing(caplog):
    class Broken:
        def safe(self):
            return None

        def wall_ms(self):
            return 0

        def look(self, _use):
            raise OSError(TOKEN)

    asyncio.run(freshness.refresh_once(Broken(), Provider().post))
    assert "credentials could not be refreshed: OSError" in caplog.text
    assert TOKEN not in caplog.text


# settings


def test_the_key_of_the_vault_is_a_setting_or_in_a_file(tmp_path):
    (tmp_path / "vault.key").write_text(VAULT + "\n")
    told = {"db": str(tmp_path / "s.db"), "writer": "thread"}
    with open_engine(ServerSettings(**told, encryption_key=VAULT), [], None) as engine:
        parts = engine._parts
        parts.write(lambda store: soon(store, parts))
    file = str(tmp_path / "vault.key")
    with open_engine(ServerSettings(**told, encryption_key_file=file), [], None) as engine:
        parts = engine._parts
        assert parts.read(lambda s: secret_of(s, parts.safe, "acme", "mail", 0)) == TOKEN
    with open_engine(ServerSettings(**told), [], None) as engine:
        assert engine._parts.safe.vault is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"encryption_key": VAULT, "encryption_key_file": "vault.key"},
        {"encryption_key": "too-short"},
        {"encryption_key_file": "nowhere.key"},
    ],
)
def test_a_key_that_is_none_is_refused_and_not_told(tmp_path, wrong):
    settings = ServerSettings(db=str(tmp_path / "s.db"), writer="thread", **wrong)
    with pytest.raises(DetentError) as refused:
        open_engine(settings, [], None)
    assert refused.value.code == "vault.key"
    assert "too-short" not in str(refused.value)
    assert VAULT not in str(refused.value)


def test_whether_tokens_may_go_to_private_addresses_is_a_setting(tmp_path):
    for allowed in (False, True):
        told = ServerSettings(
            db=str(tmp_path / "s.db"), writer="thread", allow_internal_urls=allowed
        )
        with open_engine(told, [], None) as engine:
            assert engine._parts.safe.internal_urls is allowed
