"""Golden records: journals of small stories, kept as files and replayed by every release.

`python -m detent.testing.golden DIRECTORY --write` records the stories anew; do it only when the
bytes of a journal are meant to change, which no release after the first may do lightly: stores in
use hold the old ones. Without `--write` the files are compared with what this version records and
replays.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import detent
from detent.definition import load
from detent.kernel.program import compile_program
from detent.kernel.recording import Recording, Timing
from detent.kernel.replay import Replay, replay
from detent.ports.store import JournalRow
from detent.service.reading import find_instance, journal_of

Story = Callable[[detent.Engine], str]


class Golden(NamedTuple):
    """One recorded story."""

    name: str
    definitions: list[str]
    epoch_ms: int
    resolution_ms: int
    rows: list[dict[str, Any]]


@detent.handler
def act(n: int = 0) -> dict[str, int]:
    """A plain effect."""
    return {"n": n}


@detent.handler(on_doubt="keyed")
def pay(ctx: detent.HandlerContext) -> dict[str, Any]:
    """Fails definitely on its first attempt."""
    if ctx.attempt == 1:
        raise detent.Failed("busy", details={"code": 503})
    return {"paid": ctx.attempt}


@detent.handler(on_doubt="once")
def send() -> None:
    """Its answer is lost."""
    raise ConnectionError("no answer")


@detent.handler(on_doubt="queryable", reconcile=lambda: detent.Applied({"found": True}))
def look() -> None:
    """Its answer is lost, and found again."""
    raise ConnectionError("no answer")


@detent.policy
def careful(step: str) -> Any:
    """A user's own policy."""
    return detent.skip("not this one") if step == "skipped" else detent.allow()


HANDLERS = [act, pay, send, look, careful]


def _flow(engine: detent.Engine) -> str:
    """Every kind of block that needs no signal."""
    engine.deploy(detent.sequence("child", detent.step("inner", act, params={"n": 7})))
    ways = detent.router(
        "r",
        detent.route("data.n > 5", detent.step("r1", "noop")),
        default=[detent.step("r2", "noop")],
    )
    return engine.start(
        detent.sequence(
            "flow",
            detent.step("s", act, params={"n": "{{ data.start }}"}),
            detent.parallel(
                "p",
                [detent.step("p1", act)],
                [detent.step("p2", "sleep", params={"duration_ms": 500})],
            ),
            detent.race("race", [detent.step("fast", act)], [detent.wait("slow", duration="1h")]),
            detent.loop(
                "l",
                "outputs.l1.n < 3 || !outputs.l1",
                detent.step("l1", act, params={"n": 3}),
                max_iterations=3,
            ),
            detent.for_each(
                "f", "items", detent.step("f1", "transform", params={"got": "{{ data.item }}"})
            ),
            ways,
            detent.try_catch(
                "t",
                do=[detent.step("t1", "fail")],
                catch=[detent.step("t2", "noop")],
                finally_=[detent.step("t3", "noop")],
            ),
            detent.sub_sequence("sub", "child", input={"from": "{{ instance_id }}"}),
            detent.a_b_split(
                "ab",
                detent.variant("a", 1, detent.step("a1", "noop")),
                detent.variant("b", 1, detent.step("b1", "noop")),
            ),
            detent.scope("sc", detent.step("sc1", act)),
            detent.graph(
                "g",
                start="one",
                nodes={
                    "one": [detent.step("g1", act, params={"n": 1})],
                    "two": [detent.step("g2", "noop")],
                },
                transitions=[("one", "two", "outputs.g1.n == 1")],
            ),
        ),
        {"start": 9, "items": [1, "two", None]},
    )


def _trouble(engine: detent.Engine) -> str:
    """Retries, a policy, a saga that is compensated, clean-up after failure."""
    undo = detent.saga_step(
        "one", detent.step("do", act), detent.step("undo", act, params={"n": -1})
    )
    return engine.start(
        detent.sequence(
            "trouble",
            detent.step("pay", pay, retry=detent.retry(3, initial_backoff="2s", jitter=400)),
            detent.step("skipped", act),
            detent.step("look", look),
            detent.saga("saga", undo, detent.saga_step("two", detent.step("broken", "fail"))),
            policies=[
                {"handler": "careful"},
                {"kind": "effect_budget", "params": {"max_effects": 50}},
            ],
            on_failure=[detent.step("tidy", "log", params={"message": "failed"})],
        )
    )


def _people(engine: detent.Engine) -> str:
    """Signals, a pause, an answer, a person's decision, a cancel with finally."""
    question = {"choices": [{"label": "Go", "value": "go"}], "store_as": "answer"}
    instance = engine.start(
        detent.sequence(
            "people",
            detent.wait("w", duration="2d", signal="hello", store_as="greeting"),
            detent.step("ask", "human_review", wait_for_input=question),
            detent.step("send", send),
            detent.try_catch(
                "t", do=[detent.wait("long", duration="9d")], finally_=[detent.step("last", act)]
            ),
        )
    )
    engine.advance(1_000)
    engine.pause(instance)
    engine.signal(instance, "hello", {"from": "Ada"})
    engine.resume(instance)
    engine.signal(instance, "update_context", {"note": "ü"})
    engine.signal(instance, "human_input:ask", {"value": "go"})
    engine.advance(1_000)
    for call in engine.inspect.doubts(instance):
        engine.resolve(instance, call.effect, "happened", {"sent": True})
    engine.advance(1_000)
    engine.cancel(instance)
    return instance


def _steered(engine: detent.Engine) -> str:
    """Every verb of a person who steers, and what a sequence says of the whole run."""
    added = [{"type": "step", "id": "own", "handler": "noop"}]
    instance = engine.start(
        detent.sequence(
            "steered",
            detent.step("m", "self_modify", params={"blocks": added, "position": 0}),
            detent.step("late", act, delay="1h"),
            detent.step("f", "fail"),
            sla={"max_runtime": "90m", "max_step_runtime": "30m"},
            interceptors={"after_step": {"handler": "log", "params": {"k": 1}}},
        ),
        {"n": 1},
        session="talk",
        budget={"max_steps": 2},
    )
    engine.advance(1_000)
    engine.inject(instance, [detent.step("more", act), detent.wait("w", signal="go")], position=1)
    engine.reschedule(instance, 3_600_000)
    engine.set_state(instance, "paused")
    engine.set_state(instance, "scheduled", at=dt.timedelta(hours=3))
    engine.run_until_idle()
    engine.resume(instance)
    engine.set_data(instance, {"n": 2})
    engine.resume_from(instance, "own", data={"k": True}, signals=[{"name": "go"}])
    engine.run_until_idle()
    return instance


STORIES: dict[str, Story] = {
    "flow": _flow,
    "trouble": _trouble,
    "people": _people,
    "steered": _steered,
}


def record(name: str) -> Golden:
    """Run a story and take its journal down."""
    with detent.Engine(
        ":memory:", clock="virtual", handlers=HANDLERS, seed=f"golden {name}"
    ) as engine:
        instance = STORIES[name](engine)
        engine.run_until_idle()
        return engine.inspect.look(lambda store: _taken_down(store, name, instance))


def _taken_down(store: Any, name: str, instance: str) -> Golden:
    row = find_instance(store, instance, None)
    meta = store.meta()
    rows = [_plain(each) for each in journal_of(store, row)]
    definitions = [each.body.decode() for each in sorted(store.definitions("default", "default"))]
    return Golden(name, definitions, meta.epoch_ms, meta.resolution_ms, rows)


def _plain(row: JournalRow) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "tick": row.tick,
        "snapshot_digest": row.snapshot_digest.hex(),
        "digest": row.digest.hex(),
        "head": row.head.hex(),
        "body": (row.body or b"").decode(),
    }


def replay_golden(golden: Golden) -> Replay:
    """Run a record with today's kernel."""
    programs = [compile_program(load(text.encode())) for text in golden.definitions]
    rows = [
        JournalRow(
            0,
            0,
            row["seq"],
            0,
            row["tick"],
            bytes.fromhex(row["snapshot_digest"]),
            bytes.fromhex(row["digest"]),
            row["body"].encode(),
            bytes.fromhex(row["head"]),
        )
        for row in golden.rows
    ]
    timing = Timing(epoch_ms=golden.epoch_ms, resolution_ms=golden.resolution_ms)
    return replay(
        Recording(rows=rows, programs={each.hash: each for each in programs}, timing=timing)
    )


def read(path: Path) -> Golden:
    """A record from its file."""
    return Golden(**json.loads(path.read_text(encoding="utf-8")))


def write(directory: Path) -> None:
    """Record every story into the directory."""
    for name in STORIES:
        text = json.dumps(record(name)._asdict(), indent=1, ensure_ascii=False)
        (directory / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the records, or compare them."""
    parser = argparse.ArgumentParser(prog="detent.testing.golden", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help="record the stories anew")
    given = parser.parse_args(arguments)
    if given.write:
        write(given.directory)
        return 0
    differs = [name for name in STORIES if record(name) != read(given.directory / f"{name}.json")]
    print("different: " + ", ".join(differs) if differs else "all records are as they were")
    return 1 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main())
