"""sub_sequence: a child instance; the parent waits and takes its data when it completes."""

from __future__ import annotations

from typing import Any

from detent.expression import Template
from detent.kernel.blocks.conditions import fail_expression
from detent.kernel.bounds import rendered, too_large
from detent.kernel.failure import Failure
from detent.kernel.program import Node
from detent.kernel.run import Run, encode
from detent.kernel.walk import DONE, FAILED, WAIT
from detent.model import limits
from detent.model.decision import Birth, Message
from detent.model.errors import ExpressionError
from detent.model.ids import derived_id
from detent.model.inputs import ChildEnded, Parent, SignalReceived, Started, encode_input
from detent.model.snapshot import Frame


def enter(run: Run, node: Node, frame: Frame, path: str) -> int:
    """Start the child; a further visit is a further child."""
    snapshot = run.snapshot
    block = node.block
    depth = 1 + (snapshot.parent["depth"] if snapshot.parent else 0)
    if depth > limits.SUB_SEQUENCE_DEPTH:
        return _refuse(
            run, node, path, f"sub-sequences are nested deeper than {limits.SUB_SEQUENCE_DEPTH}"
        )
    version = "" if block.version is None else block.version
    target = run.fact("child", block.sequence_name, version)
    if target is None:
        return _refuse(run, node, path, f"there is no sequence named {block.sequence_name!r}")
    try:
        data = _input(run, node)
    except ExpressionError as error:
        fail_expression(run, path, node.id, error)
        return FAILED
    size = len(encode(data))
    if size > limits.CONTEXT_BYTES:
        run.fail(too_large("the child's data", size, limits.CONTEXT_BYTES).at(path, node.id))
        return FAILED
    child = derived_id(snapshot.tenant, "child", f"{snapshot.id}:{snapshot.generation}:{path}")
    run.wait(frame, path, "child", None, child)
    token = frame.wait.token if frame.wait else 0
    _send_start(
        run,
        child,
        target,
        data,
        Parent(instance=snapshot.id, token=token, block=node.id, depth=depth),
    )
    run.note("child.started", path, {"child": child, "definition": target})
    return WAIT


def resume(run: Run, node: Node, frame: Frame, path: str) -> int:
    """The child ended: merge what it made, or fail with it."""
    if frame is not run.woken:
        return WAIT
    run.woken = None
    told: ChildEnded = run.woken_value
    if told.state != "completed":
        run.note(
            "child.failed", path, {"child": told.child, "state": told.state, "error": told.error}
        )
        message = f"the child instance {told.child} ended {told.state}"
        if isinstance(told.error, dict) and told.error.get("message"):
            message += f": {told.error['message']}"
        run.fail(
            Failure(message=message, kind="child", block=node.id, node=path, details=told.error)
        )
        return FAILED
    if isinstance(told.data, dict):
        size = run.merged_too_large(told.data)
        if size:
            run.fail(too_large("context.data", size, limits.CONTEXT_BYTES).at(path, node.id))
            return FAILED
        run.merge(told.data)
    run.put_output(node.id, list(told.outputs))
    run.note("child.completed", path, {"child": told.child})
    return DONE


def _input(run: Run, node: Node) -> Any:
    if isinstance(node.params, ExpressionError):
        raise node.params
    if not isinstance(node.params, Template) or node.params.constant:
        return node.block.input
    return rendered(node.params, run.scope())


def _send_start(run: Run, child: str, target: str, data: Any, parent: Parent) -> None:
    snapshot = run.snapshot
    started = Started(
        instance=child,
        tenant=snapshot.tenant,
        namespace=snapshot.namespace,
        definition=target,
        priority=snapshot.priority,
        timezone=snapshot.timezone,
        data=data,
        config=snapshot.config,
        metadata={"_parent_block_id": parent.block, "_sub_sequence_depth": parent.depth},
        policies=tuple(snapshot.policies[len(run.program.definition.body.policies) :]),
        parent=parent,
        dry_run=snapshot.dry_run,
        auto_approve=snapshot.auto_approve,
        session=snapshot.session,
        budget=snapshot.budget,
        seed=snapshot.seed,
        id=f"start:{child}",
    )
    birth = Birth(
        id=child,
        tenant=snapshot.tenant,
        namespace=snapshot.namespace,
        definition=target,
        priority=snapshot.priority,
        parent=snapshot.id,
    )
    run.messages.append(
        Message(id=f"start:{child}", to=child, body=encode_input(started), start=birth)
    )


def _refuse(run: Run, node: Node, path: str, message: str) -> int:
    code = "definition.unknown"
    run.fail(Failure(message=message, kind="definition", code=code, block=node.id, node=path))
    return FAILED


def cancel(run: Run, node: Node, frame: Frame, path: str) -> bool:
    """Cancel the child too; its end is not waited for."""
    if frame.wait is not None:
        child = frame.wait.name
        told = SignalReceived(name="cancel", id=f"cancel:{child}", sender=run.snapshot.id)
        run.messages.append(Message(id=told.id, to=child, body=encode_input(told)))
    return True


def renew(run: Run, node: Node, frame: Frame) -> bool:
    """A retry starts a new child."""
    return False
