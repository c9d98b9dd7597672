"""Whoever can carry a change out, and what a person can do where that is not possible."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Union

from detent.bootstrap.engine import Engine
from detent.bootstrap.making import open_or_create
from detent.bootstrap.reach import reach
from detent.bootstrap.settings import Settings
from detent.bootstrap.stores import open_reader
from detent.bootstrap.visitor import Visitor
from detent.cli.invocation import Invocation
from detent.model.address import shown_address
from detent.model.errors import RequestError, StoreError

if TYPE_CHECKING:
    from detent.client.client import Client

Door = Union[Engine, Visitor, "Client"]
HOST = "`detent run --forever --handlers MODULE`"


@contextmanager
def asking(options: Invocation, *, make: bool = False) -> Iterator[Door]:
    """Whoever can carry a change out; with `make`, on a new store where there is none."""
    if options.url is not None:
        with named_for_people(), options.client() as client:
            yield client
        return
    if make:
        _make_store(options.db)
    with named_for_people(), reach(options.db, seal_key=options.seal_key) as door:
        yield door


@contextmanager
def named_for_people() -> Iterator[None]:
    """Say of unknown definitions, handlers and limits what a command line can do about them."""
    try:
        yield
    except RequestError as error:
        if error.code == "definition.unknown":
            known = error.message.removesuffix("; deploy it first")
            raise RequestError(error.code, f"{known}; name its FILE instead") from None
        if error.code == "handler.unknown" and "handlers" in error.details:
            names = ", ".join(error.details["handlers"])
            raise RequestError(
                error.code,
                f"no handler is known for {names}; start an engine that has it first, "
                f"such as {HOST}",
            ) from None
        if error.code == "request.tenant":
            raise RequestError(
                error.code, "the server wants to know the tenant; name it with --tenant"
            ) from None
        if error.code == "limit.unknown" and "?" not in error.message:
            raise RequestError(
                error.code, f"{error.message}; `detent limit set` makes one, `limit list` shows all"
            ) from None
        raise


def _make_store(address: str) -> None:
    try:
        open_reader(address).close()
    except StoreError as error:
        if not error.details.get("absent"):
            raise
        open_or_create(Settings(path=address)).close()
        sys.stderr.write(f"made the store {shown_address(address)}\n")
