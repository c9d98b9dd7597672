"""`@verb`: one talk, and from it a blocking method and an awaited one.

A surface is a group of verbs over a driver. Its type says which driver: of a `Surface[Blocking]`
each verb is a plain method, of a `Surface[Awaiting]` it is a coroutine function, with the same
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote
from uuid import UUID

from detent.client.talking import Ask, Manners, Talk, ask
from detent.model import limits
from detent.model.errors import RequestError
from detent.service.arguments import check_instance, invalid, storable, unknown_instance
from detent.service.reading import check_tenant

if TYPE_CHECKING:
    from detent.client.drivers import Awaiting, Blocking

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")

DEFAULT = "default"
_LAST_IN_HEADER = "\xff"


class Surface(Generic[D]):
    """A group of verbs; what they share is how to ask."""

    def __init__(self, driver: D) -> None:
        self._driver = driver

    @property
    def _manners(self) -> Manners:
        manners: Manners = self._driver.manners  # type: ignore[attr-defined]
        return manners

    def _get(
        self,
        path: str,
        gives: type[T],
        tenant: str | None = None,
        patience_ms: int = 0,
        **query: Any,
    ) -> Talk[T]:
        """Read something."""
        return self._ask(
            Ask(
                method="GET",
                path=path,
                query=query,
                gives=gives,
                tenant=tenant,
                patience_ms=patience_ms,
            )
        )

    def _send(
        self, method: str, path: str, body: Any, gives: type[T], tenant: str | None = None
    ) -> Talk[T]:
        """Change something, and be told of it."""
        return self._ask(Ask(method=method, path=path, body=body, gives=gives, tenant=tenant))

    def _tell(
        self, method: str, path: str, body: Any = None, tenant: str | None = None
    ) -> Talk[None]:
        """Change something."""
        return self._ask(Ask(method=method, path=path, body=body, tenant=tenant))

    def _ask(self, what: Ask) -> Talk[Any]:
        check_sendable(what.tenant)
        return ask(self._manners, what)

    def _whose(self, tenant: str | None) -> str:
        """The tenant of something that belongs to one: the named, the client's, the default."""
        check_tenant(tenant)
        return tenant or self._manners.tenant or DEFAULT


class verb(Generic[P, T]):  # noqa: N801 - it is written as a decorator
    """A method that is a talk, held by the driver of its surface."""

    def __init__(self, talk: Callable[Concatenate[Any, P], Talk[T]]) -> None:
        self._talk = talk
        update_wrapper(self, talk)  # type: ignore[arg-type]

    @overload
    def __get__(self, surface: None, owner: type) -> Callable[..., Talk[T]]: ...
    @overload
    def __get__(self, surface: Surface[Blocking], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, surface: Surface[Awaiting], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, surface: Surface[Any] | None, owner: type) -> Callable[..., Any]:
        if surface is None:
            return self._talk
        driver, talk = surface._driver, self._talk  # noqa: SLF001 - of the same module

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return driver.hold(talk(surface, *args, **kwargs))

        return update_wrapper(call, talk)


def check_sendable(tenant: str | None) -> None:
    """Refuse a tenant that no header can carry."""
    check_tenant(tenant)
    if tenant is not None and not (tenant.isprintable() and max(tenant) <= _LAST_IN_HEADER):
        raise invalid(
            "tenant", "a name of printable Latin characters, to travel in a header", tenant
        )


def of_instance(instance: object, rest: str = "") -> str:
    """The path of an instance; what is no id is nobody's."""
    return f"/instances/{known_id(instance)}{rest}"


def known_id(instance: object) -> str:
    """An id as paths have it; `instance.not_found` for what cannot be one."""
    check_instance(instance)
    try:
        return str(UUID(str(instance)))
    except ValueError:
        raise unknown_instance(instance) from None


def one(id: object, unknown: Callable[[object], RequestError]) -> str:
    """An id as one part of a path; what cannot be one is unknown, as a stranger's is."""
    if not storable(id) or not 0 < len(str(id)) <= limits.KEY_CHARS:
        raise unknown(id)
    return part(str(id))


def one_uuid(id: object, unknown: Callable[[object], RequestError]) -> str:
    """The same of an id that is always a UUID."""
    try:
        return str(UUID(str(id)))
    except ValueError:
        raise unknown(id) from None


def part(text: str) -> str:
    """A text as one part of a path; dots alone would be taken for a way up."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")
