"""Handlers: the functions that perform effects, how they are declared, checked and called."""

from __future__ import annotations

from detent.handlers.answers import Applied, Failed, NotApplied, Retry
from detent.handlers.context import HandlerContext
from detent.handlers.declare import Declaration, handler, policy
from detent.handlers.inside import Inside, register_inside
from detent.handlers.policies import PolicyAnswer, allow, defer, fail, pause, skip
from detent.handlers.registry import Entry, Registry

__all__ = [
    "Applied",
    "Declaration",
    "Entry",
    "Failed",
    "HandlerContext",
    "Inside",
    "NotApplied",
    "PolicyAnswer",
    "Registry",
    "Retry",
    "allow",
    "defer",
    "fail",
    "handler",
    "pause",
    "policy",
    "register_inside",
    "skip",
]
