"""A thousand secrets through every door that takes or makes one: none is found anywhere again."""

from __future__ import annotations

import base64
import logging
import secrets
import time
import uuid

import pytest

from detent.service.inbound import signature
from tests.integration.web.house import ROOT, house

pytestmark = pytest.mark.req("SEQ-HND-5", "SEQ-WHK-2")


class Doors:
    """Sends secrets, and keeps every answer that may not hold one."""

    def __init__(self, server):
        self.server = server
        self.name = ""
        self.sent = []
        self.answers = []

    def fresh(self):
        self.sent.append(f"canary-{secrets.token_hex(16)}")
        return self.sent[-1]

    def post(self, path, body, *, expect, twice=False, **more):
        """Send under an Idempotency-Key, perhaps again."""
        headers = {"idempotency-key": uuid.uuid4().hex, **more.pop("headers", {})}
        for _ in range(2 if twice else 1):
            answer = self.server.post(path, body, headers=headers, **more)
            assert answer.status_code == expect, answer.text
            self.heard(answer)
        return answer

    def heard(self, answer):
        self.answers.append(answer.text + str(answer.headers))

    def credential(self, n):
        """Make, change and refuse; three secrets."""
        id = f"c-{n}"
        body = {"id": id, "name": "n", "kind": "oauth2", "value": self.fresh()}
        oauth = {"refresh_url": "https://auth.example.com/", "refresh_token": self.fresh()}
        self.post("/credentials", body | oauth, expect=201, twice=n % 2 == 0)
        changed = self.server.patch(f"/credentials/{id}", {"value": self.fresh()})
        assert changed.status_code == 200
        self.heard(changed)
        self.heard(self.server.get(f"/credentials/{id}"))

    def refused_credential(self, n):
        """What is refused is told, but not with its secrets; two of them."""
        wrong = (
            {"id": f"c-{n}", "name": ""},
            {"id": f"c-{n}", "name": "n", "kind": "wrong"},
            {"id": f"c-{n}", "name": "n", "refresh_url": "http://127.0.0.1/"},
            {"id": f"c-{n}", "name": "n", "tenant_id": "other"},
        )[n % 4]
        status = (400, 422, 400, 403)[n % 4]
        body = wrong | {"value": self.fresh(), "refresh_token": self.fresh()}
        self.post("/credentials", body, expect=status)

    def trigger(self, n):
        """Make, fire and call; two secrets, one of them wrong."""
        slug, secret, wrong = f"t-{n}", self.fresh(), self.fresh()
        body = {"slug": slug, "sequence_name": self.name, "tenant_id": "acme", "secret": secret}
        self.post("/triggers", body, expect=201, twice=n % 2 == 0)
        for given, status in ((secret, 201), (wrong, 401)):
            headers = {"x-trigger-secret": given}
            self.post(f"/triggers/{slug}/fire", {"n": n}, expect=status, headers=headers)
            self.heard(self.called(slug, given))
        self.heard(self.server.get(f"/triggers/{slug}"))

    def called(self, slug, secret):
        stamp, nonce = str(int(time.time())), uuid.uuid4().hex
        headers = {
            "x-trigger-timestamp": stamp,
            "x-trigger-nonce": nonce,
            "x-detent-signature": signature(secret, stamp, nonce, b"1"),
        }
        return self.server.post(
            f"/webhooks/{slug}", content=b"1", headers=headers, tenant="", key=""
        )

    def api_key(self, n):
        """Made, used, listed and revoked; one secret, which its first answer shows."""
        body = {"tenant_id": "acme", "name": f"k-{n}"}
        headers = {"idempotency-key": uuid.uuid4().hex}
        made, again = (
            self.server.post("/api-keys", body, tenant="", headers=headers) for _ in range(2)
        )
        assert made.content == again.content
        secret = made.json()["secret"]
        self.sent.append(secret)
        self.heard(self.server.get("/triggers", tenant="", key=secret))
        self.heard(self.server.delete(f"/api-keys/{made.json()['id']}", tenant=""))
        self.heard(self.server.get("/triggers", tenant="", key=secret))
        self.heard(self.server.get("/api-keys", tenant=""))


def forms(secret):
    """A secret as it is, and as it may be written elsewhere."""
    raw = secret.encode()
    return {raw, raw.hex().encode(), base64.b64encode(raw)}


def found(text, sent):
    """Which of the secrets a text holds."""
    return [secret for secret in sent if any(form in text for form in forms(secret))]


def test_of_a_thousand_secrets_none_is_stored_told_or_logged(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with house(tmp_path / "s.db") as server:
        doors = Doors(server)
        sequence = server.sequence()
        doors.name = server.get(f"/sequences/{sequence}").json()["name"]
        for n in range(150):
            doors.credential(n)
            doors.refused_credential(n + 1_000)
        for n in range(75):
            doors.trigger(n)
        for n in range(100):
            doors.api_key(n)
        files = {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()}
    assert len(doors.sent) == len(set(doors.sent)) == 1_000
    assert {"s.db", "s.db-wal"} <= set(files)
    assert sum(map(len, files.values())) > 1_000_000
    for name, content in files.items():
        assert found(content, doors.sent) == [], name
    after = b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
    assert found(after, doors.sent) == []
    assert found("\n".join(doors.answers).encode(), doors.sent) == []
    assert found(caplog.text.encode(), [*doors.sent, ROOT]) == []


def test_a_secret_that_is_there_would_be_found():
    sent = ["canary-1", "canary-2"]
    for form in forms("canary-1"):
        assert found(b"\x00before " + form + b" after", sent) == ["canary-1"]
    assert found(b"nothing", sent) == []
