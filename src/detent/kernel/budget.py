"""Budgets of an instance: so many steps, so many tokens; what would go over pauses before it.

Tokens are what applied calls say of themselves in `usage`. A person who resumes such an instance
accepts that one number is exceeded: it no longer holds, the others do.
"""

from __future__ import annotations

from typing import Any

from detent.kernel.run import Run

EXCEEDED = "budget_exceeded"  # the paused_reason

# what a budget names -> which count of tokens it bounds
_TOKENS = {
    "max_input_tokens": "input",
    "max_output_tokens": "output",
    "max_total_tokens": "total",
}
_NAMES = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
}


def spend(run: Run, result: Any) -> None:
    """Count the tokens of a call that was applied, wanted or not; only where a budget is set."""
    if run.snapshot.budget is None:
        return
    usage = result.get("usage") if isinstance(result, dict) else None
    if not isinstance(usage, dict):
        return
    used = {kind: _number(usage, names) for kind, names in _NAMES.items()}
    used["total"] = _number(usage, ("total_tokens",)) or used["input"] + used["output"]
    spent = run.snapshot.spent
    for kind, count in used.items():
        if count:
            spent[kind] = spent.get(kind, 0) + count


def exceeded(run: Run, path: str) -> bool:
    """Whether a step must not act; then the instance is held until a person resumes it."""
    snapshot = run.snapshot
    breach = _breach(run)
    if breach is None:
        return False
    snapshot.budget_breach = breach
    snapshot.paused_reason = EXCEEDED
    run.held = True
    run.note("budget.exceeded", path, breach)
    return True


def lift(run: Run) -> None:
    """A person goes on: the number that was exceeded no longer holds."""
    snapshot = run.snapshot
    breach, snapshot.budget_breach = snapshot.budget_breach, None
    if breach is None or snapshot.budget is None:
        return
    left = {name: most for name, most in snapshot.budget.items() if name != breach["limit"]}
    snapshot.budget = left or None
    run.note("budget.lifted", "", {"limit": breach["limit"]})


def _breach(run: Run) -> dict[str, Any] | None:
    snapshot = run.snapshot
    for name, most in (snapshot.budget or {}).items():
        used = snapshot.steps if name == "max_steps" else snapshot.spent.get(_TOKENS[name], 0)
        over = used >= most if name == "max_steps" else used > most
        if over:
            return {"limit": name, "max": most, "used": used}
    return None


def _number(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    for name in names:
        value = usage.get(name)
        if type(value) is int and value > 0:
            return value
    return 0
