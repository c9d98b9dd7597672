"""Following an instance again: from the last output known, without reading what came before it."""

from __future__ import annotations

import pytest

import detent
from detent.service.following import Follower, read_place
from tests.acceptance.stage import refused, virtual

pytestmark = pytest.mark.req("SEQ-OPS-1")


class Reads:
    """A store that is only read, and which rows of the journal were."""

    def __init__(self, store):
        self._store = store
        self.rows = []

    def journal(self, n, after_seq, limit):
        found = self._store.journal(n, after_seq, limit)
        self.rows += [row.seq for row in found]
        return found

    def __getattr__(self, name):
        return getattr(self._store, name)


def followed(engine, instance, after=""):
    """Everything a follower is told until it stands, the numbers of the rows read, and its end."""
    follower = Follower(instance, None, after)

    def follow(store):
        reads = Reads(store)
        follower.begin(reads)
        told = []
        while True:
            look = follower.look(reads, lambda news: told.append(news) or b"x")
            if not look.more:
                return told, reads.rows

    told, rows = engine._parts.read(follow)
    return [news.output for news in told if news.output is not None], rows, follower


@detent.handler
def flaky(ctx) -> dict:
    if ctx.attempt < 3:
        raise detent.Failed("not yet")
    return {"attempt": ctx.attempt}


@detent.handler
def plain(ctx) -> dict:
    return {"from": ctx.block}


RETRY = {"max_attempts": 3, "initial_backoff": 1_000, "max_backoff": 60_000}
STORY = detent.sequence(
    "story",
    detent.step("a", "plain"),
    detent.parallel(
        "both",
        [detent.step("slow", "flaky", retry=RETRY), detent.step("late", "plain")],
        [detent.step(f"quick{i}", "plain", delay={"duration": 600}) for i in range(5)],
    ),
    detent.step("skipped", "plain", when="false"),
    detent.loop(
        "l",
        "true",
        detent.step("r", "flaky", retry=RETRY),
        detent.step("n", "noop"),
        max_iterations=3,
    ),
    detent.wait("w", signal="go"),
    detent.step("z", "plain"),
)


@pytest.fixture
def engine():
    with virtual(handlers=[flaky, plain]) as made:
        yield made


def test_who_comes_back_at_any_output_is_told_the_same_rest(engine):
    instance = engine.start(STORY)
    engine.run_until_idle()
    engine.signal(instance, "go")
    engine.run_until_idle()
    told, _rows, _follower = followed(engine, instance)
    assert {row.block for row in told} >= {"slow", "late", "quick4", "r", "n", "l", "w", "z"}
    assert {row.attempt for row in told if row.block in ("slow", "r")} == {3}
    for known, row in enumerate(told):
        again, _rows, _follower = followed(engine, instance, row.id)
        assert again == told[known + 1 :], row


def test_only_the_rows_from_the_last_known_output_on_are_read(engine):
    loop = detent.loop("l", "true", detent.step("s", "plain"), max_iterations=400)
    instance = engine.start(detent.sequence("long", loop, detent.wait("w", signal="go")))
    engine.run_until_idle()
    told, whole, _follower = followed(engine, instance)
    assert len(whole) > 400
    last = told[-2]
    rest, rows, _follower = followed(engine, instance, last.id)
    assert rest == told[-1:]
    assert min(rows) >= read_place(last.id)[0] - 60
    assert len(rows) < 70, "it read the history once more"


def test_who_knows_the_end_is_told_what_a_retry_adds_and_nothing_twice(engine):
    broken = [True]

    @detent.handler
    def mended() -> dict:
        if broken[0]:
            raise detent.Failed("broken", retryable=False)
        return {"ok": True}

    engine.register([mended])
    steps = [detent.step("a", "plain"), detent.step("b", "mended"), detent.step("c", "plain")]
    instance = engine.start(detent.sequence("mend", *steps))
    engine.run_until_idle()
    told, _rows, follower = followed(engine, instance)
    assert [row.block for row in told] == ["a", "b"]
    assert follower.ended
    end = follower.end
    _told, _rows, again = followed(engine, instance, end)
    assert again.known
    broken[0] = False
    engine.retry(instance)
    engine.run_until_idle()
    rest, _rows, again = followed(engine, instance, end)
    assert not again.known
    assert [(row.block, row.output) for row in rest] == [
        ("b", {"ok": True}),
        ("c", {"from": "c"}),
    ]


@pytest.mark.parametrize("id", ["done", "done.", "done.x", "done.1.2", "1.0.0", "-1.0", ".", "1."])
def test_an_id_that_nobody_was_given_is_refused(id):
    with refused("request.invalid"):
        read_place(id)
