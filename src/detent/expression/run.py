"""What a function is given besides its arguments."""

from __future__ import annotations

from msgspec import Struct

from detent.expression.meter import Meter
from detent.expression.numeric import ToNumber
from detent.expression.scope import Scope


class Run(Struct, frozen=True):
    """The scope, the budget, and what counts as a number in this mode."""

    scope: Scope
    meter: Meter
    number: ToNumber
