"""Exit codes: who must act decides the number."""

from __future__ import annotations

import pytest

from detent.cli import exits
from detent.model.errors import (
    CODES,
    DefinitionError,
    Fault,
    InvariantViolation,
    RequestError,
    StoreError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DefinitionError([Fault("$", "definition.type", "x")]), exits.NO),
        (RequestError("payload.schema", "x"), exits.NO),
        (RequestError("request.invalid", "x"), exits.NO),
        (RequestError("instance.not_found", "x"), exits.NOT_FOUND),
        (RequestError("definition.unknown", "x"), exits.NOT_FOUND),
        (RequestError("effect.not_found", "x"), exits.NOT_FOUND),
        (RequestError("instance.transition", "x"), exits.REFUSED),
        (RequestError("effect.state", "x"), exits.REFUSED),
        (StoreError("definition.conflict", "x"), exits.REFUSED),
        (RequestError("request.timeout", "x"), exits.OPERATOR),
        (StoreError("store.owned", "x"), exits.OPERATOR),
        (StoreError("audit.broken", "x"), exits.NO),
        (InvariantViolation("x"), exits.BUG),
    ],
)
def test_an_error_has_the_exit_code_of_who_must_act(error, code):
    assert exits.exit_code(error) == code


def test_every_registered_code_has_a_documented_exit_code_and_none_is_success():
    for code in CODES:
        found = exits.exit_code(RequestError(code, "x"))
        assert found in exits.MEANINGS
        assert found != exits.OK
