"""Asking the gate from within a step: each answer is a fact of the row that asked."""

from __future__ import annotations

from typing import Any

import msgspec

from detent.kernel.gate.asks import Answer, Ask, Asked, encode
from detent.kernel.run import NeedFact, Run
from detent.model.decision import Message, Need
from detent.model.ids import derived_id
from detent.model.snapshot import OpenEffect


def gate_id(tenant: str) -> str:
    """The instance that is a tenant's gate; its partition is the tenant's home."""
    return derived_id(tenant, "gate", "")


def ask(run: Run, wanted: Ask) -> Answer:
    """Ask for everything at once; a ticket that must wait is noted in the snapshot."""
    port, tenant = run.facts.gate, run.snapshot.tenant
    answer = _answer(run, wanted.token, None if port is None else lambda: port.ask(tenant, wanted))
    if answer.state == "sent":
        body = encode(Asked(tenant=tenant, ask=wanted))
        run.messages.append(Message(id=f"ask:{wanted.ticket}", to=gate_id(tenant), body=body))
    if answer.state in ("sent", "deferred"):
        run.snapshot.tickets.append(wanted.token)
    return answer


def take(run: Run, token: int) -> Answer:
    """Take what the gate called a ticket for; unless deferred it stands in line no longer."""
    port, tenant = run.facts.gate, run.snapshot.tenant
    name = f"{run.snapshot.id}:{token}"
    answer = _answer(run, token, None if port is None else lambda: port.take(tenant, name))
    if answer.state not in ("deferred", "sent"):
        forget(run, token)
    return answer


def leave(run: Run, token: int) -> None:
    """Give a place in line up."""
    forget(run, token)
    if run.facts.gate is not None:
        run.facts.gate.leave(run.snapshot.tenant, f"{run.snapshot.id}:{token}")


def forget(run: Run, token: int) -> None:
    """A token stands in line no longer."""
    if token in run.snapshot.tickets:
        run.snapshot.tickets.remove(token)


def close(run: Run, keys: tuple[str, ...], until: int) -> None:
    """Whoever stands behind these keys asked not to be called before a tick."""
    if run.facts.gate is not None and keys:
        run.facts.gate.close(run.snapshot.tenant, keys, until)


def let_go(run: Run) -> None:
    """Give the concurrency key back."""
    snapshot = run.snapshot
    snapshot.slot = False
    if run.facts.gate is not None:
        run.facts.gate.let_go(snapshot.tenant, snapshot.concurrency["key"], snapshot.id)


def begin(run: Run, effect: OpenEffect) -> None:
    """The call of an effect has begun, or may have: what it was granted is used."""
    if effect.ticket:
        spend(run, effect.ticket)
        effect.ticket = 0


def give_up(run: Run, effect: OpenEffect) -> None:
    """The call of an effect was certainly not made: what it was granted is for others."""
    if effect.ticket:
        leave(run, effect.ticket)
        effect.ticket = 0


def spend(run: Run, token: int) -> None:
    """What was granted under a token is used."""
    if run.facts.gate is not None:
        run.facts.gate.begin(run.snapshot.tenant, f"{run.snapshot.id}:{token}")


def _answer(run: Run, token: int, say: Any) -> Answer:
    key = f"gate:{token}"
    given = run.facts.given
    if key in given:
        value = given[key]
        answer = value if isinstance(value, Answer) else msgspec.convert(value, Answer)
    elif say is None:
        raise NeedFact(Need(kind="gate", name=str(token)))
    else:
        answer = say()
    run.used[key] = answer
    return answer
