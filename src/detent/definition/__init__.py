"""Python builders, JSON and YAML to one validated, canonical, hashed definition.

`read` (text to raw data) -> `plain` (bounded JSON values only) -> `members` over the shapes (every
fault noted, defaults left out) -> `seal` (canonical bytes and hash) -> `Definition`.
"""

from __future__ import annotations

from detent.definition.build import retry, sequence, step, wait
from detent.definition.build_flow import (
    a_b_split,
    for_each,
    goto,
    graph,
    loop,
    parallel,
    race,
    route,
    router,
    saga,
    saga_step,
    scope,
    sub_sequence,
    try_catch,
    variant,
)
from detent.definition.build_plan import (
    branch,
    end,
    exit_when,
    explicit,
    linear,
    plan,
    send_email,
    send_voice,
)
from detent.definition.canonical import load
from detent.definition.diff import Change, diff
from detent.definition.faults import FAULTS, FaultClass, status_of
from detent.definition.injection import check_blocks, plain_blocks
from detent.definition.lint import unknown_fields, warnings
from detent.definition.normalize import normalize
from detent.definition.parse import parse, read
from detent.definition.support import UNSUPPORTED, UNSUPPORTED_HANDLERS
from detent.definition.wire import to_wire

__all__ = [
    "FAULTS",
    "UNSUPPORTED",
    "UNSUPPORTED_HANDLERS",
    "Change",
    "FaultClass",
    "a_b_split",
    "branch",
    "check_blocks",
    "diff",
    "end",
    "exit_when",
    "explicit",
    "for_each",
    "goto",
    "graph",
    "linear",
    "load",
    "loop",
    "normalize",
    "parallel",
    "parse",
    "plain_blocks",
    "plan",
    "race",
    "read",
    "retry",
    "route",
    "router",
    "saga",
    "saga_step",
    "scope",
    "send_email",
    "send_voice",
    "sequence",
    "status_of",
    "step",
    "sub_sequence",
    "to_wire",
    "try_catch",
    "unknown_fields",
    "variant",
    "wait",
    "warnings",
]
