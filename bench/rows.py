"""How many rows a step of w1 costs, counted by SQLite itself on the writer's connection."""

from __future__ import annotations

import detent
from bench.load import HANDLERS, STEPS, W1, place
from detent.service.starting import StartRequest, start_submission


def rows_per_step(count: int = 1_000) -> dict[str, float]:
    """Rows inserted, updated or deleted per step, by the two ways of starting."""
    return {
        "rows_per_step": round(_count(count, batch=False), 2),
        "rows_per_step_batch": round(_count(count, batch=True), 2),
    }


def _count(count: int, *, batch: bool) -> float:
    with (
        place() as directory,
        detent.Engine(
            directory / "rows.db", clock="virtual", handlers=HANDLERS, seed="rows"
        ) as engine,
    ):
        engine.deploy(W1)
        # virtual time takes its turns on this very connection, with the same code as the writer
        changes = engine._parts.read(lambda store: store.statistics)  # noqa: SLF001
        before = changes()["total_changes"]
        if batch:
            engine.start_many(W1, [{"i": i} for i in range(count)])
        else:  # as many callers at once: their starts share a turn
            parts = engine._parts  # noqa: SLF001
            for i in range(count):
                parts.submit(start_submission(W1, StartRequest(data={"i": i}), parts.moment(), 0))
        engine.run_until_idle()
        return (changes()["total_changes"] - before) / (STEPS * count)
