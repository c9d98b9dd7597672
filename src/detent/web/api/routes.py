"""Routes: declared beside their functions, found by one walk down a tree of path segments.

Every product route answers under `/api/v1` and without it. A declaration says everything about a
route that is true of it: what it takes and gives, who may call it. The gate, the description of the
API and the tests read the same declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote
from uuid import UUID

from msgspec import Struct

from detent.web.api.refusals import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response

PREFIX = ("api", "v1")

Handler = Callable[..., Awaitable["Response"]]
F = TypeVar("F", bound=Handler)


class Route(Struct, frozen=True, kw_only=True):
    """One method on one path; `takes` is the struct of the body, `query` that of the query."""

    method: str
    path: str
    run: Handler
    takes: Any = None
    query: Any = None
    gives: dict[int, Any] = {}
    public: bool = False  # needs neither a key nor a tenant
    tenantless: bool = False  # a key, but no tenant
    admin: bool = False  # the root key only
    root_only: bool = False  # not repeated under /api/v1
    raw: bool = False  # reads its body itself
    secret: bool = False  # its answer shows a secret, once
    optional_body: bool = False
    media: str = ""  # of its answers, where that is not JSON
    tag: str = ""

    @property
    def segments(self) -> list[str]:
        """The path, cut at its slashes."""
        return [part for part in self.path.split("/") if part]

    @property
    def names(self) -> list[str]:
        """The names of its parameters."""
        return [part[1:-1].partition(":")[0] for part in self.segments if part[0] == "{"]


class Table:
    """The routes of one section; a function stays what it is."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.routes: list[Route] = []

    def route(self, method: str, path: str, **more: Any) -> Callable[[F], F]:
        """Declare that a function answers a method on a path."""

        def declare(run: F) -> F:
            self.routes.append(Route(method=method, path=path, run=run, tag=self.tag, **more))
            return run

        return declare


class Found(Struct, frozen=True):
    """A route and the values of its parameters."""

    route: Route
    path: dict[str, str]


class Router:
    """All routes as a tree: fixed segments first, then a parameter."""

    def __init__(self, routes: Iterator[Route]) -> None:
        self._root = _Branch()
        self.routes = list(routes)
        for route in self.routes:
            self._add(route.segments, route)
            if not route.root_only:
                self._add([*PREFIX, *route.segments], route)

    def find(self, method: str, path: str) -> Found:
        """The route of a request; 404 or 405 with an empty body where there is none.

        The path is still percent-encoded, so that a name may hold a slash.
        """
        values: list[str] = []
        branch = self._root
        for part in map(unquote, path.strip("/").split("/")):
            below = branch.fixed.get(part)
            if below is None:
                below = branch.open
                if below is None or not part:
                    raise Refusal(404, code="request.route")
                values.append(part)
            branch = below
        if not branch.routes:
            raise Refusal(404, code="request.route")
        route = branch.routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise Refusal(405, code="request.route")
        return Found(route, _parameters(route, values))

    def _add(self, segments: list[str], route: Route) -> None:
        branch = self._root
        for part in segments:
            if part[0] == "{":
                branch.open = branch.open or _Branch()
                branch = branch.open
            else:
                branch = branch.fixed.setdefault(part, _Branch())
        if route.method in branch.routes:
            raise ValueError(f"{route.method} {route.path} is declared twice")
        branch.routes[route.method] = route


class _Branch:
    __slots__ = ("fixed", "open", "routes")

    def __init__(self) -> None:
        self.fixed: dict[str, _Branch] = {}
        self.open: _Branch | None = None
        self.routes: dict[str, Route] = {}


def _parameters(route: Route, values: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    marks = [part[1:-1] for part in route.segments if part[0] == "{"]
    for mark, value in zip(marks, values, strict=True):
        name, _, kind = mark.partition(":")
        if "\x00" in value:
            raise Refusal(400, f"Invalid URL: `{name}` holds a NUL")
        found[name] = _uuid(name, value) if kind == "uuid" else value
    return found


def _uuid(name: str, value: str) -> str:
    try:
        return str(UUID(value))
    except ValueError:
        raise Refusal(
            400, f"Invalid URL: Cannot parse `{name}` with value `{value[:80]}`: no UUID"
        ) from None
