"""Blocks put into one instance: they run after those of its definition.

The snapshot names them by digest; their bytes are a blob of the instance, written by the commit of
the turn that took them in. A step looks the extended program up by that digest, and asks for the
blob only when nobody has compiled it yet.

Whoever injects brings checked blocks: at the doors the definition package has seen them. What a
running step wants to inject is checked on its behalf, and the answer is a fact of its row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from detent.kernel.program import Program, bodies_of
from detent.kernel.run import NeedFact, Run, encode
from detent.model import limits
from detent.model.decision import Need
from detent.model.definition import Block
from detent.model.errors import RequestError
from detent.model.injection import Injected, decode_injected, encode_injected
from detent.model.inputs import Forked, Input
from detent.model.snapshot import Snapshot


def program_with(program: Program, digest: str, given: Mapping[str, Any]) -> Program:
    """The program an instance runs: its definition's, with what was injected under a digest."""
    if not digest:
        return program
    known = program.extensions.get(digest)
    if known is not None:
        return known
    body = given.get(f"blob:{digest}")
    if body is None:
        raise NeedFact(Need(kind="blob", name=digest))
    return program.extended(digest, decode_injected(body))


def carried(told: Input, snapshot: Snapshot) -> dict[str, bytes]:
    """What a fork brings along of the blocks injected into its origin."""
    if isinstance(told, Forked) and snapshot.injected:
        return {snapshot.injected: bytes(told.injected)}
    return {}


def inject(run: Run, told: Injected, position: int | None) -> dict[str, Any]:
    """Put blocks in, at a place among those put in before, or last; refused with no change."""
    program, own = run.program, run.program.own
    there = program.injected.blocks
    _check_ids(program, told)
    at = len(there) if position is None else min(position, len(there))
    at = max(at, _passed(run))
    digest, body = encode_injected(
        Injected(
            blocks=(*there[:at], *told.blocks, *there[at:]),
            calendars={**told.calendars, **program.injected.calendars},
        )
    )
    if len(body) > limits.INJECTED_BYTES:
        raise RequestError(
            "payload.too_large",
            f"the blocks injected into one instance may have {limits.INJECTED_BYTES} bytes; "
            f"these would make it {len(body)}",
        )
    run.kept[digest] = body
    run.program = program_with(own, digest, {f"blob:{digest}": body})
    run.snapshot.injected = digest
    _reopen(run)
    ids = [block.id for block in told.blocks]
    total = len(there) + len(ids)
    run.note("blocks.injected", "", {"ids": ids, "at": at, "total": total, "digest": digest})
    return {"injected_block_ids": ids, "position": position, "total_injected": total}


def inject_command(run: Run, args: dict[str, Any]) -> dict[str, Any]:
    """Carry the command out; its blocks were checked where it came in."""
    try:
        told = msgspec.convert(args, Injected)
    except msgspec.ValidationError as error:
        raise RequestError("definition.invalid", f"blocks: {error}") from None
    return inject(run, told, position_of(args.get("position")))


def position_of(value: Any) -> int | None:
    """A place among the injected blocks, or None for the end."""
    if value is None or (type(value) is int and value >= 0):
        return value
    raise RequestError(
        "request.invalid", f"position must be a whole number from 0 on, or null; got {value!r}"
    )


def checked(run: Run, blocks: list[Any]) -> Injected | str:
    """What the definition package says of blocks made by a step: the blocks, or what is wrong."""
    raw = encode(blocks)
    key = f"blocks:{hashlib.sha256(raw).hexdigest()}"
    if key not in run.facts.given:
        kind, _, digest = key.partition(":")
        raise NeedFact(Need(kind=kind, name=digest, extra=raw))
    said = run.used[key] = run.facts.given[key]
    return str(said["error"]) if "error" in said else msgspec.convert(said, Injected)


def _check_ids(program: Program, told: Injected) -> None:
    if not told.blocks:
        raise RequestError("definition.invalid", "blocks: expected at least one block, found 0")
    known = program.nodes
    ids = list(ids_of(told.blocks))
    for id in ids:
        if id in known:
            raise RequestError(
                "definition.invalid",
                f"duplicate block id {id!r}: the instance has a block of that id; rename it",
            )
    if len(known) + len(ids) > limits.BLOCKS_TOTAL:
        raise RequestError(
            "definition.invalid",
            f"expected at most {limits.BLOCKS_TOTAL} blocks in one instance; "
            f"it has {len(known)} and {len(ids)} were to come",
        )


def ids_of(blocks: tuple[Block, ...]) -> Iterator[str]:
    """The ids of blocks and of all within them."""
    for block in blocks:
        yield block.id
        for body in bodies_of(block):
            yield from ids_of(body)


def _passed(run: Run) -> int:
    """How many injected blocks the instance has begun: nothing is put in before them."""
    root = run.snapshot.root
    if root is None:
        return 0
    lane = root.lanes[0]
    begun = lane.at + (lane.open is not None)
    return max(0, begun - len(run.program.own.main))


def _reopen(run: Run) -> None:
    """An instance held just before its end has something to do again."""
    root = run.snapshot.root
    if root is not None and root.phase == "" and root.lanes[0].end == "completed":
        root.lanes[0].end = ""
