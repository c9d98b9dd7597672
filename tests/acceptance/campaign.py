"""What tests of plans share: handlers that write to a log, contacts, and a plan with every step."""

from __future__ import annotations

import datetime as dt

import detent
from tests.acceptance.stage import virtual

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)  # a Thursday
START_MS = int(START.timestamp() * 1000)
ANN = {
    "id": "ann",
    "email": "ann@example.com",
    "phone": "+15550100",
    "timezone": "Europe/Berlin",
    "attributes": {"first_name": "Ann", "vip": True},
}

WELCOME = detent.plan(
    "welcome",
    detent.send_email("hello", "welcome", subject="Hi {{ contact.first_name }}"),
    detent.wait("pause", days=3),
    detent.branch(
        "fork",
        ('events.hasReply("hello")', "thanks"),
        ('events.hasOpen("hello")', "nudge"),
        default="ring",
    ),
    detent.end("thanks", "replied"),
    detent.send_email("nudge", "nudge"),
    detent.end("nudged", "nudged"),
    detent.send_voice("ring", "first-call"),
    detent.end("rung", "called"),
    exit_conditions=[
        detent.exit_when("contact.unsubscribed", "unsubscribed"),
        detent.exit_when("events.hasBounce(any)", "undeliverable"),
    ],
)


class Log:
    """An outside world: everything that was said to people, with what the handler saw."""

    def __init__(self):
        self.sent = []
        self.seen = []
        self.answer = {"status": "delivered"}

    def handlers(self):
        @detent.handler("email", on_doubt="once")
        def email(ctx, template: str, subject: str = "", tracking: dict | None = None):
            return self._say(ctx, "email", template, subject)

        @detent.handler("voice", on_doubt="once")
        def voice(ctx, script: str, max_duration: int = 0):
            return self._say(ctx, "voice", script, "")

        return [email, voice]

    def _say(self, ctx, channel, what, subject):
        self.sent.append((ctx.plan["contact"]["id"], channel, what, subject))
        self.seen.append(ctx.plan)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def opened(log, path=":memory:", **settings):
    """An engine in virtual time that begins on the first of January."""
    return virtual(path, log.handlers(), epoch_ms=START_MS, **settings)


def person(name, **more):
    return {**ANN, "id": name, "email": f"{name}@example.com", **more}
