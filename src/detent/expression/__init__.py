"""The one expression and template language: total, bounded, compiled once to closures.

`compile_expression` serves conditions and assignments, `compile_template` parameters,
`trace_template` the inspector. Both grammars read the same roots out of a `Scope`:
`context.data|config|audit|runtime`, `data`, `config`, `outputs` = `steps`, `input` =
`data.input`, `instance_id`, `runtime`, `state`, `events`, and whatever `Scope.roots` adds. In a
lenient expression any other name is read in `data`.

Choices where the contract leaves them open:
- `now()` is RFC 3339 in UTC with milliseconds, `2026-01-15T10:30:00.000Z`.
- Integers beyond 64 bits become floats; what is no finite number becomes null.
- `7 / 2` is 3.5, `6 / 2` the integer 3. Length is counted in characters.
- `sum`, `avg`, `min` and `max` are null if one element is not numeric, as `+` is.
- `events.hasReply("step")` reads the flag `reply:step`, `call.outcome("step")` `outcome:step`.
- A strict expression takes a missing path as null, like a lenient one; what it refuses is an
  unknown root or function, a wrong type, and a division by zero.
"""

from __future__ import annotations

from detent.expression.asked import asked_steps
from detent.expression.expression import Expression, compile_expression
from detent.expression.filters import FILTERS
from detent.expression.functions import FUNCTIONS
from detent.expression.paths import ROOTS
from detent.expression.scope import Scope
from detent.expression.template import Template, compile_template
from detent.expression.trace import Trace, trace_template

FUNCTION_NAMES = tuple(FUNCTIONS)
FILTER_NAMES = tuple(FILTERS)

__all__ = [
    "FILTER_NAMES",
    "FUNCTION_NAMES",
    "ROOTS",
    "Expression",
    "Scope",
    "Template",
    "Trace",
    "asked_steps",
    "compile_expression",
    "compile_template",
    "trace_template",
]
