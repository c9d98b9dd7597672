"""Random definitions over every block kind, small, and such that a run has one right end.

In a *strict* world the end of a run must not depend on the order of what happens within one tick,
since a crash may change that order. So: durations are whole hours, the branches of a race are hours
apart, a branch of a parallel that fails does so when the others have ended, and results have names
of their own. In a *wild* world nothing is held back, and only what must always hold is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from detent import definition as make
from detent.testing.authoring_limits import Limiter

HOUR_MS = 3_600_000
QUARTER_MS = 900_000
FOREVER = math.inf
LARGE = 40_000  # bytes, over the size at which values become blobs

Block = dict[str, Any]


class Traits(NamedTuple):
    """What a world may hold; pauses and races do not go together where one end is right."""

    wild: bool
    pausing: bool  # pauses and policies
    children: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()  # instance ids to send signals to
    limited: bool = False  # steps ask gates: no end may depend on how long anything takes


class Piece(NamedTuple):
    """Blocks with the most hours they take and whether they may fail."""

    blocks: list[Block]
    hours: float
    fails: bool


class Author:
    """Writes definitions by a seeded chance."""

    def __init__(
        self, rng: Random, traits: Traits, mark: str = "", limiter: Limiter | None = None
    ) -> None:
        """`mark` ends every block's id, so that a child's results are not its parent's."""
        self._rng = rng
        self._traits = traits
        self._mark = mark
        self._limiter = limiter
        self._timeless = limiter is not None and not traits.wild
        self._ids = 0
        self._left = 0

    def body(self, blocks: int) -> Piece:
        """A list of about that many blocks."""
        self._left = blocks
        self._ids = 0
        return self._list(2, may_fail=self._odds(0.5))

    # lists ---------------------------------------------------------------------------------------

    def _list(self, depth: int, *, may_fail: bool, quick: bool = False) -> Piece:
        pieces: list[Piece] = []
        for _ in range(self._rng.randint(1, 3)):
            if self._left <= 0 and pieces:
                break
            pieces.append(self._piece(depth, may_fail=may_fail, quick=quick))
        return _joined(pieces)

    def _piece(self, depth: int, *, may_fail: bool, quick: bool) -> Piece:
        self._left -= 1
        if quick or depth == 0 or self._left <= 0:
            return self._leaf(may_fail=may_fail, quick=quick)
        kinds: list[Callable[[int, bool], Piece]] = [
            self._parallel,
            self._loop,
            self._for_each,
            self._router,
            self._try_catch,
            self._split,
            self._scope,
            self._saga,
            self._graph,
        ]
        if self._traits.wild or not (self._traits.pausing or self._timeless):
            kinds += [self._race, self._race]
        if self._traits.children:
            kinds += [self._child, self._child]
        if self._odds(0.45):
            return self._leaf(may_fail=may_fail, quick=False)
        return self._rng.choice(kinds)(depth - 1, may_fail)

    def _leaf(self, *, may_fail: bool, quick: bool) -> Piece:
        if quick:
            return self._step(may_fail=may_fail, quick=True)
        if self._odds(0.3):
            return self._wait()
        if self._traits.targets and self._odds(0.08):
            return self._send()
        return self._step(may_fail=may_fail, quick=False)

    # leaves --------------------------------------------------------------------------------------

    def _wait(self) -> Piece:
        hours = self._rng.randint(1, 3)
        name, id = f"s{self._rng.randint(1, 2)}", self._id("w")
        match self._rng.randint(2 * self._timeless, 3):
            case 0:
                return Piece([make.wait(id, signal=name)], FOREVER, False)
            case 1:
                block = make.wait(id, hours * HOUR_MS, signal=name, store_as=f"{id}_got")
                return Piece([block], hours, False)
        return Piece([make.wait(id, hours * HOUR_MS)], hours, False)

    def _send(self) -> Piece:
        target = self._rng.choice(self._traits.targets)
        params = {"instance_id": target, "signal_type": {"custom": "s1"}, "payload": {"by": "x"}}
        block = make.step(
            self._id("send"), "send_signal", params=params, retry=make.retry(2, initial_backoff=100)
        )
        caught = make.try_catch(self._id("t"), do=block, catch=make.step(self._id("n"), "noop"))
        return Piece([caught], 0, False)

    def _step(self, *, may_fail: bool, quick: bool) -> Piece:
        if self._odds(0.2):
            return self._move(may_fail=may_fail, quick=quick)
        id = self._id("a")
        handler = self._rng.choice(("note", "post", "put", "book", "book", "pay", "pay"))
        params, attempts, fails = self._act(handler, may_fail=may_fail)
        options: dict[str, Any] = {"params": params}
        if attempts > 1:
            options["retry"] = make.retry(attempts, initial_backoff=1_000, jitter=300)
        hours = 0 if quick else self._slow(options)
        if options.get("wait_for_input", {}).get("timeout") and may_fail:
            fails = True
        if self._odds(0.05) and not fails:
            options["when"] = "data.n > 4"
        if self._odds(0.05):
            options["cancellable"] = False
        if self._odds(0.05):
            options["cache_key"] = f"cache-{id}"
        if self._traits.pausing and self._odds(0.3):
            more, broken = self._rule(params, may_fail=may_fail)
            hours, fails = hours + more, fails or broken
        if self._limiter is not None:
            self._limiter.limit(id, options)
            hours = FOREVER
        return Piece([make.step(id, handler, **options)], hours, fails)

    def _act(self, handler: str, *, may_fail: bool) -> tuple[dict[str, Any], int, bool]:
        """Params, attempts and whether the step fails in the end."""
        spare = 3 if handler == "book" else 1  # a crash may cost a query one attempt
        params: dict[str, Any] = {"act": "ok"}
        if self._odds(0.06):
            params["size"] = LARGE
        if may_fail and self._odds(0.3):
            params["act"] = self._rng.choice(("final", "heals", "fails"))
            if params["act"] == "fails":
                params["times"] = 99
            return params, spare + self._rng.choice((0, 1)), True
        if self._odds(0.55):
            return params, spare, False
        odd = {
            "note": ("fails", "lose"),
            "post": ("fails", "lose", "refuse"),
            "put": ("fails", "lose", "refuse"),
            "book": ("fails", "lose", "refuse", "unsure"),
            "pay": ("fails", "lose", "refuse", "puzzle"),
        }[handler]
        if self._limiter is not None:
            odd = (*odd, "busy", "busy")
        params["act"] = self._rng.choice(odd)
        times = params["times"] = self._rng.randint(1, 2)
        return params, times + spare, False

    def _slow(self, options: dict[str, Any]) -> float:
        """Options that take time; the most hours they take."""
        hours: float = 0
        if self._odds(0.12):
            hours = self._rng.randint(1, 2)
            options["delay"] = hours * HOUR_MS
        if self._odds(0.12):
            human: dict[str, Any] = {"prompt": "Go on?", "allow_comment": True}
            if self._odds(0.6):
                limit = self._rng.randint(1, 2)
                human |= {"timeout": limit * HOUR_MS, "escalation_handler": "post"}
                hours += limit
            else:
                hours = FOREVER
            options["wait_for_input"] = human
        if self._timeless:
            return hours
        if self._odds(0.06) and hours < FOREVER and "retry" not in options:
            options["deadline"] = int(hours + 1) * HOUR_MS + QUARTER_MS
            options["on_deadline_breach"] = {"handler": "post", "params": {"x": 1}}
        return hours

    def _rule(self, params: dict[str, Any], *, may_fail: bool) -> tuple[float, bool]:
        """What the policy says of this step: more hours, and whether it fails."""
        rules = ["skip", "defer", "pause"] + (["fail"] if may_fail else [])
        params["rule"] = self._rng.choice(rules)
        params["until_ms"] = 1_767_225_600_000 + self._rng.randint(0, 6) * HOUR_MS
        return (FOREVER if params["rule"] == "pause" else 7), params["rule"] == "fail"

    def _move(self, *, may_fail: bool, quick: bool) -> Piece:
        """A step that only computes."""
        id = self._id("m")
        number = self._rng.randint(1, 9)
        moves: list[tuple[str, Any]] = [
            ("noop", {}),
            ("log", {"message": "{{data.n}}"}),
            ("transform", {"value": number, "n": "{{data.n}}"}),
            ("set_state", {"key": f"k{number}", "value": "{{data.n}}"}),
            ("merge_state", {"values": {"a": number}}),
            ("get_state", {"key": f"k{number}"}),
        ]
        if may_fail and self._odds(0.4):
            return Piece([make.step(id, "fail", params={"message": "broken"})], 0, True)
        if not quick and self._odds(0.2):
            hours = self._rng.randint(1, 2)
            block = make.step(id, "sleep", params={"duration_ms": hours * HOUR_MS})
            return Piece([block], hours, False)
        name, params = self._rng.choice(moves)
        return Piece([make.step(id, name, params=params)], 0, False)

    # blocks with blocks --------------------------------------------------------------------------

    def _parallel(self, depth: int, may_fail: bool) -> Piece:
        wild = self._traits.wild
        branches = [
            self._list(depth, may_fail=may_fail and wild) for _ in range(self._rng.randint(2, 3))
        ]
        hours = max(each.hours for each in branches)
        fails = any(each.fails for each in branches)
        if may_fail and not wild and not self._traits.pausing and hours < FOREVER:
            late = make.wait(self._id("w"), int(hours + 1) * HOUR_MS)
            last = self._step(may_fail=True, quick=True)
            branches.append(Piece([late, *last.blocks], hours + 1, last.fails))
            hours, fails = hours + 1, last.fails
        block = make.parallel(self._id("p"), *[each.blocks for each in branches])
        return Piece([block], hours, fails)

    def _race(self, depth: int, may_fail: bool) -> Piece:
        wild = self._traits.wild
        branches: list[list[Block]] = []
        fails = False
        for index in range(self._rng.randint(2, 3)):
            if wild:
                piece = self._list(depth, may_fail=may_fail)
            else:
                piece = self._list(0, may_fail=may_fail, quick=True)
            late = [make.wait(self._id("w"), (2 * index + 1) * HOUR_MS)]
            branches.append([*([] if wild else late), *piece.blocks])
            fails |= piece.fails
        semantics: Any = self._rng.choice(("first_to_resolve", "first_to_succeed"))
        block = make.race(self._id("r"), *branches, semantics=semantics)
        return Piece([block], FOREVER if wild else 6, fails)

    def _loop(self, depth: int, may_fail: bool) -> Piece:
        rounds = self._rng.randint(1, 3)
        body = self._list(min(depth, 1), may_fail=may_fail)
        poll = self._odds(0.3)
        options: dict[str, Any] = {"max_iterations": rounds}
        if poll:
            options["poll_interval"] = 3_600
        if self._odds(0.3):
            options["continue_on_error"] = True
        block = make.loop(self._id("l"), "data.n > 0", *body.blocks, **options)
        fails = body.fails and "continue_on_error" not in options
        return Piece([block], rounds * (body.hours + poll), fails)

    def _for_each(self, depth: int, may_fail: bool) -> Piece:
        body = self._list(min(depth, 1), may_fail=may_fail)
        id = self._id("f")
        block = make.for_each(id, "items", *body.blocks, item_var=f"{id}_item")
        return Piece([block], 2 * body.hours, body.fails)

    def _router(self, depth: int, may_fail: bool) -> Piece:
        one, two = self._list(depth, may_fail=may_fail), self._list(depth, may_fail=may_fail)
        routes = [make.route("data.n > 5", *one.blocks)]
        block = make.router(self._id("ro"), *routes, default=two.blocks)
        return Piece([block], max(one.hours, two.hours), one.fails or two.fails)

    def _try_catch(self, depth: int, may_fail: bool) -> Piece:
        do = self._list(depth, may_fail=True)
        catch = self._list(0, may_fail=may_fail)
        last = self._list(0, may_fail=False) if self._odds(0.5) else None
        block = make.try_catch(
            self._id("t"),
            do=do.blocks,
            catch=catch.blocks,
            finally_=None if last is None else last.blocks,
        )
        hours = do.hours + catch.hours + (last.hours if last is not None else 0)
        return Piece([block], hours, catch.fails)

    def _split(self, depth: int, may_fail: bool) -> Piece:
        one, two = self._list(depth, may_fail=may_fail), self._list(depth, may_fail=may_fail)
        arms = [make.variant("one", 1, *one.blocks), make.variant("two", 2, *two.blocks)]
        block = make.a_b_split(self._id("ab"), *arms)
        return Piece([block], max(one.hours, two.hours), one.fails or two.fails)

    def _scope(self, depth: int, may_fail: bool) -> Piece:
        body = self._list(depth, may_fail=may_fail)
        return Piece([make.scope(self._id("sc"), *body.blocks)], body.hours, body.fails)

    def _saga(self, _depth: int, may_fail: bool) -> Piece:
        steps, hours, fails = [], 0.0, False
        for _ in range(self._rng.randint(2, 3)):
            action = self._leaf(may_fail=may_fail, quick=False)
            undo = self._step(may_fail=False, quick=True) if self._odds(0.8) else None
            compensation = undo.blocks[0] if undo is not None else None
            steps.append(make.saga_step(self._id("st"), action.blocks[0], compensation))
            hours, fails = hours + action.hours, fails or action.fails
        return Piece([make.saga(self._id("sg"), *steps)], hours, fails)

    def _graph(self, depth: int, may_fail: bool) -> Piece:
        bodies = [self._list(min(depth, 1), may_fail=may_fail) for _ in range(3)]
        count = self._id("visits")
        again = make.step(self._id("m"), "set_state", params={"key": count, "value": True})
        jump = make.goto(self._id("go"), "c")
        nodes = {
            "a": bodies[0].blocks,
            "b": [*bodies[1].blocks, again, *([jump] if self._odds(0.4) else [])],
            "c": bodies[2].blocks,
        }
        moves: list[tuple[str, str] | tuple[str, str, str | None]] = [
            ("a", "b", f"!state.{count}"),
            ("a", "c", "data.n > 2"),
            ("b", "a"),
        ]
        block = make.graph(self._id("g"), start="a", nodes=nodes, transitions=moves)
        hours = 2 * sum(body.hours for body in bodies)
        return Piece([block], hours, any(body.fails for body in bodies))

    def _child(self, _depth: int, may_fail: bool) -> Piece:
        name = self._rng.choice(self._traits.children)
        given: dict[str, Any] = {"n": "{{data.n}}", "items": [1, 2]}
        if self._limiter is not None:
            given |= {"team": "{{data.team}}", "pool": "{{data.pool}}"}
        block = make.sub_sequence(self._id("c"), name, input=given)
        if may_fail:
            return Piece([block], FOREVER, True)
        quiet = make.step(self._id("n"), "noop")
        return Piece([make.try_catch(self._id("t"), do=block, catch=quiet)], FOREVER, False)

    # chance --------------------------------------------------------------------------------------

    def _odds(self, share: float) -> bool:
        return self._rng.random() < share

    def _id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids}{self._mark}"


def _joined(pieces: list[Piece]) -> Piece:
    return Piece(
        [block for piece in pieces for block in piece.blocks],
        sum(piece.hours for piece in pieces),
        any(piece.fails for piece in pieces),
    )
