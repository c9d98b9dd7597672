"""Human input: which answers count, what they leave behind, and what happens without one."""

from __future__ import annotations

from typing import Any

from detent.kernel.program import Node
from detent.kernel.run import Run
from detent.model.definition import HumanInput


def signal_name(block: str) -> str:
    """The custom signal that carries the answer for a block."""
    return f"human_input:{block}"


def unanswered(node: Node) -> str:
    """Why a step failed whose time to wait is over."""
    if node.asks:
        return "nobody answered in time"
    return "the events it waits for did not come in time"


def choices_of(human: HumanInput) -> list[str]:
    """The values a person may answer with; Yes and No where none are named."""
    if human.choices is None:
        return ["yes", "no"]
    return [choice.value for choice in human.choices]


def acceptable(human: HumanInput, payload: Any) -> bool:
    """Whether a payload is an answer."""
    value = payload.get("value") if isinstance(payload, dict) else None
    return isinstance(value, str) and value in choices_of(human)


def kept_answer(run: Run, node: Node) -> Any:
    """An answer that came before the question, or the automatic one of a dry run."""
    human = node.block.wait_for_input
    if run.snapshot.dry_run and run.snapshot.auto_approve:
        return {"value": choices_of(human)[0]}
    name = signal_name(node.id)
    early = [kept for kept in run.snapshot.signals if kept.name == name]
    for kept in early:
        run.snapshot.signals.remove(kept)
        if acceptable(human, kept.payload):
            return kept.payload
        run.note("event.ignored", "", {"name": name, "why": "not one of the choices"})
    return None


def accept(run: Run, node: Node, path: str, payload: Any) -> None:
    """Store an answer where later steps find it."""
    human = node.block.wait_for_input
    output = {"value": payload["value"], "_human_gate": True}
    if human.allow_comment and payload.get("comment") is not None:
        output["comment"] = payload["comment"]
    run.put_output(node.id, output)
    run.merge({human.store_as or node.id: payload["value"]})
    run.note("human.answered", path, {"output": output})


def escalation_request(run: Run, node: Node) -> dict[str, Any]:
    """What the escalation handler is told."""
    human = node.block.wait_for_input
    return {
        "instance_id": run.snapshot.id,
        "block_id": node.id,
        "prompt": human.prompt,
        "choices": choices_of(human) if node.asks else [],
        "timeout_ms": human.timeout,
    }


def escalated(block: Any, result: Any) -> dict[str, Any]:
    """The output of a step whose question was escalated."""
    human = block.wait_for_input
    return {
        "_escalated": True,
        "_escalation_handler": human.escalation_handler,
        "_timeout_seconds": human.timeout // 1000,
        "result": result,
    }
