"""The policy check: a pure stage before every step, and again before each retry.

Data policies are functions of (step, snapshot) in the literal table `POLICIES`. Users' own policies
are handlers: `next_policy` hands them out one by one and the verdict comes back as an input;
whatever is not a clear "allowed" is not allowed (fail closed).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from detent.kernel.run import Run

ACTIONS = ("pause", "fail", "skip_with_log", "defer")


class Judgement(NamedTuple):
    """What a policy said."""

    allowed: bool
    action: str = ""
    reason: str = ""
    until: int | None = None  # tick, for defer


ALLOWED = Judgement(True)


def judge(run: Run, path: str, start: int, acting: bool) -> tuple[int, Judgement | None]:
    """Evaluate data policies from index `start`, up to the first refusal or user's own policy.

    Returns the index reached and: a refusal, ALLOWED when all are done, or None where the
    handler of that index must be asked first.
    """
    policies = run.snapshot.policies
    for index in range(start, len(policies)):
        policy = policies[index]
        if policy.get("handler"):
            if acting:
                return index, None
            continue
        kind = str(policy.get("kind"))
        verdict = POLICIES.get(kind, _unknown)(run, policy.get("params") or {}, acting)
        record(run, path, kind, verdict)
        if not verdict.allowed:
            return index, verdict
    return len(policies), ALLOWED


def read_verdict(run: Run, value: Any) -> Judgement:
    """The verdict of a user's policy; anything unreadable is a refusal that fails the step."""
    if not isinstance(value, dict) or not isinstance(value.get("allowed"), bool):
        return Judgement(False, "fail", "the policy gave no readable verdict")
    if value["allowed"]:
        return ALLOWED
    action = value.get("action", "fail")
    reason = str(value.get("reason", ""))
    if action not in ACTIONS:
        return Judgement(False, "fail", f"the policy named an unknown action {action!r}")
    if action != "defer":
        return Judgement(False, action, reason)
    until_ms, for_ms = value.get("until_ms"), value.get("for_ms")
    if isinstance(for_ms, int) and for_ms >= 0:
        return Judgement(False, "defer", reason, max(run.tick + 1, run.after(for_ms)))
    if isinstance(until_ms, int):
        return Judgement(False, "defer", reason, max(run.tick + 1, run.at_ms(until_ms)))
    return Judgement(False, "fail", "the policy deferred without saying until when")


def record(run: Run, path: str, policy: str, verdict: Judgement) -> None:
    """Journal a verdict with the same fidelity as a step."""
    detail: dict[str, Any] = {"policy": policy, "allowed": verdict.allowed}
    if not verdict.allowed:
        detail |= {"action": verdict.action, "reason": verdict.reason}
        if verdict.until is not None:
            detail["until"] = verdict.until
    run.note("policy.evaluated", path, detail)


def _effect_budget(run: Run, params: dict[str, Any], acting: bool) -> Judgement:
    most = params["max_effects"]
    if not acting or run.snapshot.effects_made < most:
        return ALLOWED
    reason = f"the instance has made {run.snapshot.effects_made} effects; its budget is {most}"
    return Judgement(False, params.get("action", "pause"), reason)


def _unknown(_run: Run, _params: dict[str, Any], _acting: bool) -> Judgement:
    return Judgement(False, "fail", "the policy is of a kind that nobody knows")


POLICIES: dict[str, Callable[[Run, dict[str, Any], bool], Judgement]] = {
    "effect_budget": _effect_budget,
}
