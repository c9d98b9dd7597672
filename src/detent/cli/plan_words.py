"""A step of a plan in a few words, the same in every picture."""

from __future__ import annotations

from typing import Any

from detent.cli.times import span
from detent.service.plan_ways import PlanStep

SYMBOLS = {
    "send_email": "✉",
    "send_voice": "☎",
    "wait": "◷",
    "branch": "◇",
    "end": "■",
    "step": "▸",
}
PLAIN_SYMBOLS = {
    "send_email": "@",
    "send_voice": "#",
    "wait": "~",
    "branch": "?",
    "end": "x",
    "step": ">",
}
STYLES = {
    "send_email": "blue",
    "send_voice": "magenta",
    "wait": "yellow",
    "branch": "cyan",
    "end": "green",
    "step": "white",
}


def about(step: PlanStep) -> str:
    """What a step does."""
    block = step.block
    match step.kind:
        case "send_email":
            return f"email {_text(block.params.get('template'))}"
        case "send_voice":
            return f"call {_text(block.params.get('script'))}"
        case "wait":
            return f"wait {_wait(block)}"
        case "end":
            return f"end: {block.outcome}"
        case "branch":
            return "branch"
        case _:
            return f"{block.handler}"


def way(when: str) -> str:
    """What lets a run take a way; that without a condition is the default."""
    return when or "default"


def ordered(steps: list[PlanStep]) -> list[PlanStep]:
    """Steps so that each stands before the one it leads to by default, as far as that goes."""
    known = {step.id: step for step in steps}
    found: dict[str, PlanStep] = {}
    todo = [steps[0].id]
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found[name] = known[name]
        todo += [to for _, to in known[name].ways]  # the last one, the default, is next
    return list(found.values())


def _wait(block: Any) -> str:
    said = [span(block.duration)] if block.duration else []
    until = block.until
    if until is not None and until.time is not None:
        said.append(f"until {until.time.replace('T', ' ')}")
    if until is not None and until.business_day:
        said.append("on a business day")
    return ", ".join(said)


def _text(value: Any) -> str:
    return str(value or "")
