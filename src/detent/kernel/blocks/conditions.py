"""Conditions of block kinds: a broken one is false when lenient, a failure when strict."""

from __future__ import annotations

from detent.expression import Expression
from detent.kernel.failure import Failure
from detent.kernel.run import Run
from detent.model.errors import ExpressionError


def holds(run: Run, condition: Expression | ExpressionError | None) -> bool:
    """Whether a condition holds now; raises ExpressionError in strict mode only."""
    if condition is None:
        return False
    if isinstance(condition, ExpressionError):
        if run.program.strict:
            raise condition
        return False
    try:
        return condition.test(run.scope())
    except ExpressionError:
        if run.program.strict:
            raise
        return False


def fail_expression(run: Run, path: str, block: str, error: ExpressionError) -> None:
    """Make an expression error the failure of a node."""
    run.fail(
        Failure(message=error.message, kind="expression", code=error.code, block=block, node=path)
    )
