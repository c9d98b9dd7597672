"""A definition compiled for the kernel: nodes by key, expressions and templates as closures.

A node's key is its block id; blocks of the clean-up lists have an id space of their own and are
keyed `on_failure/<id>` and `on_cancel/<id>`. A program is immutable and shared by all instances of
its hash. Blocks that were injected into an instance make an extended program of it, which shares
the nodes of the definition; the latest ones are kept with the program that they extend.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import jsonschema_rs
from msgspec.structs import replace

from detent.expression import Expression, Template, compile_expression, compile_template
from detent.model import definition as model
from detent.model.definition import Block, Definition
from detent.model.errors import ExpressionError
from detent.model.injection import Injected
from detent.model.limits import EXTENSIONS_KEPT
from detent.model.plan import Until

ON_FAILURE = "on_failure"
ON_CANCEL = "on_cancel"


class Node:
    """One block, compiled. `lists` are its bodies in the order of the contract's branch_index."""

    __slots__ = (
        "asks",
        "block",
        "cache_key",
        "conditions",
        "free",
        "holidays",
        "id",
        "key",
        "kind",
        "limits",
        "lists",
        "names",
        "params",
        "parent",
        "pool",
        "schema",
        "sticky",
        "table",
        "timed",
        "when",
        "windows",
    )

    def __init__(self, block: Any, key: str, parent: str) -> None:
        self.block = block
        self.id: str = block.id
        self.key = key
        self.parent = parent
        self.kind: str = block.__struct_config__.tag
        self.lists: list[list[Node]] = []
        self.names: dict[str, int] = {}
        self.when: Expression | ExpressionError | None = None
        self.conditions: list[Expression | ExpressionError | None] = []
        self.params: Template | ExpressionError | None = None
        self.cache_key: Template | ExpressionError | None = None
        self.schema: Any = None
        self.table: Any = None
        self.limits: list[Template | ExpressionError] = []
        self.pool: Template | ExpressionError | None = None
        self.sticky = True
        self.asks = False  # a person answers before its handler runs
        self.free = False  # no window and no limit of its tenant can hold it up
        self.timed = False  # it has a deadline or a delay
        self.holidays: frozenset[str] = frozenset()  # of its delay: its own and its country's
        self.windows: dict[str, Any] = {}  # compiled by `timing`, by zone of the instance


class Program:
    """What `step` interprets."""

    __slots__ = (
        "cancel",
        "definition",
        "exits",
        "extensions",
        "failure",
        "flat",
        "hash",
        "injected",
        "input_schema",
        "interceptors",
        "is_plan",
        "is_schedule",
        "main",
        "nodes",
        "own",
        "pool",
        "sla",
        "strict",
    )

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.hash = definition.hash
        self.flat = definition.flat
        self.strict = definition.body.mode == "strict"
        self.nodes: dict[str, Node] = {}
        body = definition.body
        self.pool = self._template(body.pool) if body.pool else None  # for steps that name none
        self.main = self._list(body.blocks, "", "")
        self.is_schedule = bool(self.main) and self.main[0].kind == "schedule"
        self.failure = self._list(body.on_failure or (), f"{ON_FAILURE}/", "")
        self.cancel = self._list(body.on_cancel or (), f"{ON_CANCEL}/", "")
        self.is_plan = body.face == "plan"
        self.exits = [self._expression(exit.when) for exit in body.exits]
        self.input_schema = _validator(body.input_schema)
        self.sla = body.sla
        self.interceptors: dict[str, Any] = body.interceptors or {}
        self.own = self  # the definition's, without what was injected
        self.injected = Injected()
        self.extensions: dict[str, Program] = {}  # by digest of what was injected

    def extended(self, digest: str, injected: Injected) -> Program:
        """This program with blocks of one instance after its own; what it pinned comes first."""
        body = self.definition.body
        whole = replace(
            body,
            blocks=(*body.blocks, *injected.blocks),
            calendars={**injected.calendars, **body.calendars},
        )
        made = copy(self)
        made.definition = replace(self.definition, body=whole)
        made.flat = made.definition.flat
        made.injected = injected
        made.nodes = dict(self.nodes)
        added = made._list(injected.blocks, "", "")  # noqa: SLF001 - a copy of itself
        made.main = [*self.main, *added]
        if len(self.extensions) >= EXTENSIONS_KEPT:
            del self.extensions[next(iter(self.extensions))]
        self.extensions[digest] = made
        return made

    def _list(self, blocks: tuple[Block, ...], prefix: str, parent: str) -> list[Node]:
        return [self._node(block, prefix, parent) for block in blocks]

    def _node(self, block: Block, prefix: str, parent: str) -> Node:
        node = Node(block, prefix + block.id, parent)
        self.nodes[node.key] = node
        self._compile(node)
        node.lists = [self._list(body, prefix, node.key) for body in bodies_of(block)]
        return node

    def _compile(self, node: Node) -> None:
        block = node.block
        match block:
            case model.Step():
                self._compile_step(node, block)
            case model.Loop():
                node.conditions = [
                    self._expression(block.condition),
                    self._expression(block.break_on),
                ]
            case model.ForEach():
                node.params = self._template(block.collection) if "{{" in block.collection else None
            case model.Router():
                node.conditions = [self._expression(route.condition) for route in block.routes]
            case model.SubSequence():
                node.params = self._template(block.input)
            case model.Graph():
                node.names = {name: index for index, name in enumerate(block.nodes)}
                node.conditions = [self._expression(edge.when) for edge in block.transitions]
            case model.Wait(until=Until() as until):
                pinned = self.definition.body.calendars.get(until.country or "", ())
                node.holidays = frozenset((*until.holidays, *pinned))
            case _:
                pass

    def _compile_step(self, node: Node, block: model.Step) -> None:
        node.params = self._template(block.params) if block.params is not None else None
        node.when = self._expression(block.when)
        node.asks = block.wait_for_input is not None and block.handler != "wait_for_event"
        node.cache_key = self._template(block.cache_key) if block.cache_key else None
        node.schema = _validator(block.output_schema)
        node.conditions = [self._expression(block.retry.retry_if) if block.retry else None]
        keys = block.rate_limit_key or ()
        keys = (keys,) if isinstance(keys, str) else keys
        node.limits = [self._template(key) for key in keys]
        node.pool = self._template(block.pool) if block.pool else None
        unlimited = not node.limits and node.pool is None and self.pool is None
        node.free = unlimited and block.send_window is None
        node.timed = block.deadline is not None or block.delay is not None
        body = self.definition.body
        node.sticky = block.sticky and body.sticky
        if block.delay is not None and block.delay.business_days_only:
            pinned = body.calendars.get(block.delay.country or "", ())
            node.holidays = frozenset((*block.delay.holidays, *pinned))

    def _expression(self, text: str | None) -> Expression | ExpressionError | None:
        if text is None:
            return None
        try:
            return compile_expression(text, strict=self.strict)
        except ExpressionError as error:
            return error

    def _template(self, value: Any) -> Template | ExpressionError:
        try:
            return compile_template(value, strict=self.strict)
        except ExpressionError as error:
            return error


def compile_program(definition: Definition) -> Program:
    """Compile once per hash; the caller keeps the result."""
    return Program(definition)


def bodies_of(block: Block) -> list[tuple[Block, ...]]:
    """The lists of blocks within a block, in the order of the contract's branch_index."""
    match block:
        case model.Parallel() | model.Race():
            return list(block.branches)
        case model.Loop() | model.ForEach():
            return [block.body]
        case model.Router():
            return [*(route.blocks for route in block.routes), block.default or ()]
        case model.TryCatch():
            return [block.try_block, block.catch_block, block.finally_block or ()]
        case model.ABSplit():
            return [variant.blocks for variant in block.variants]
        case model.CancellationScope():
            return [block.blocks]
        case model.Saga():
            bodies: list[tuple[Block, ...]] = []
            for step in block.steps:
                bodies += [(step.action,), (step.compensation,) if step.compensation else ()]
            return bodies
        case model.Graph():
            return list(block.nodes.values())
        case _:
            return []


def _validator(schema: Any) -> Any:
    return None if schema is None else jsonschema_rs.validator_for(schema)
