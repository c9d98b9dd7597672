"""The bell: who waits for work is woken once for each item, and no ring is lost."""

from __future__ import annotations

import asyncio
import threading

import pytest

from detent.service.bell import WorkBell, long_poll
from detent.service.work import Polled, PollRequest

pytestmark = pytest.mark.req("SEQ-HND-3")

CHARGE = ("charge", "", "acme")
PATIENCE_S = 10.0
REQUEST = PollRequest(handler="charge", worker="w1")


async def woken(bell, **ear):
    asked = {"handler": "charge", "queue": None, "tenant": None, **ear}
    return await bell.wait(**asked, seconds=PATIENCE_S)


async def until(holds):
    """Let others run until it holds."""
    for _ in range(100_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


async def all_listen(bell, tasks):
    await until(lambda: bell.waiting() == len(tasks))


def test_a_ring_wakes_the_one_that_waits_longest():
    async def story():
        bell = WorkBell()
        tasks = [asyncio.create_task(woken(bell)) for _ in range(3)]
        await all_listen(bell, tasks)
        bell.ring([CHARGE])
        assert await tasks[0]
        assert bell.waiting() == 2
        bell.ring([CHARGE, CHARGE])
        assert await asyncio.gather(*tasks[1:]) == [True, True]
        assert bell.waiting() == 0

    asyncio.run(story())


@pytest.mark.parametrize(
    ("topic", "heard"),
    [
        (("charge", "q", "acme"), ["any", "queue", "tenant"]),
        (("charge", "r", "acme"), ["any", "tenant"]),
        (("charge", "", "beta"), ["any"]),
        (("mail", "q", "acme"), []),
    ],
    ids=str,
)
def test_only_those_it_is_for_hear_it(topic, heard):
    async def story():
        bell = WorkBell()
        ears = {"any": {}, "queue": {"queue": "q"}, "tenant": {"tenant": "acme"}}
        tasks = {name: asyncio.create_task(woken(bell, **ear)) for name, ear in ears.items()}
        await all_listen(bell, tasks)
        bell.ring([topic] * 3)
        for name in heard:
            assert await tasks[name]
        rest = [tasks[name] for name in tasks if name not in heard]
        assert not any(task.done() for task in rest)
        for task in rest:
            task.cancel()

    asyncio.run(story())


def test_five_hundred_wait_without_a_thread_and_are_rung_from_another():
    async def story():
        bell = WorkBell()
        before = threading.active_count()
        tasks = [asyncio.create_task(woken(bell)) for _ in range(500)]
        await all_listen(bell, tasks)
        assert threading.active_count() == before
        ringer = threading.Thread(target=bell.ring, args=([CHARGE] * 500,))
        ringer.start()
        assert all(await asyncio.gather(*tasks))
        ringer.join()
        assert bell.waiting() == 0

    asyncio.run(story())


def test_nothing_in_time_is_told_and_so_is_a_ring_before_the_wait():
    async def story():
        bell = WorkBell()
        bell.ring([CHARGE])  # nobody listens
        assert not await bell.wait("charge", None, None, 0.001)
        with bell.listen("charge") as ear:
            bell.ring([CHARGE])
            assert await ear.wait(PATIENCE_S)
            ear.heard()

    asyncio.run(story())


@pytest.mark.parametrize("awake", [False, True], ids=["asleep", "awake"])
def test_who_goes_away_without_having_looked_passes_the_ring_on(awake):
    async def story():
        bell = WorkBell()
        with bell.listen("charge") as first:
            heir = asyncio.create_task(woken(bell))
            await until(lambda: bell.waiting() == 2)
            bell.ring([CHARGE])
            if awake:
                assert await first.wait(PATIENCE_S)
            assert not heir.done()
        assert await heir

    asyncio.run(story())


def test_a_loop_that_is_gone_is_passed_over():
    bell = WorkBell()

    async def listen():
        return bell.listen("charge").__enter__()

    asyncio.run(listen())

    async def story():
        task = asyncio.create_task(woken(bell))
        await until(lambda: bell.waiting() == 2)
        bell.ring([CHARGE])
        assert await task

    asyncio.run(story())


def test_who_attends_hears_everything_and_takes_no_ring_from_others():
    async def story():
        bell, heard = WorkBell(), []
        stop = bell.attend(heard.append)
        task = asyncio.create_task(woken(bell))
        await until(lambda: bell.waiting() == 1)
        bell.ring(iter([CHARGE, ("mail", "q", "acme")]))
        assert await task
        bell.rouse()
        assert heard == [CHARGE, ("mail", "q", "acme"), None]
        stop()
        bell.ring([CHARGE])
        bell.rouse()
        assert len(heard) == 3

    asyncio.run(story())


class Answers:
    """What the store says, one answer a poll; the last one stays."""

    def __init__(self, *answers):
        self.left = list(answers)
        self.asked = 0

    async def __call__(self):
        self.asked += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


FOUND = Polled(tasks=("task",))
NOTHING = Polled()


def test_a_long_poll_that_finds_work_does_not_wait():
    async def story():
        bell, ask = WorkBell(), Answers(FOUND)
        assert await long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0) == FOUND
        assert (ask.asked, bell.waiting()) == (1, 0)

    asyncio.run(story())


def test_a_long_poll_asks_again_when_the_bell_rings_and_not_before():
    async def story():
        bell, ask = WorkBell(), Answers(NOTHING, NOTHING, FOUND)
        task = asyncio.create_task(long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0))
        await until(lambda: ask.asked == 1)
        bell.ring([CHARGE])
        await until(lambda: ask.asked == 2)
        bell.ring([("mail", "", "acme")])
        await asyncio.sleep(0)
        assert ask.asked == 2
        bell.ring([CHARGE])
        assert await task == FOUND
        assert ask.asked == 3

    asyncio.run(story())


def test_a_long_poll_that_hears_nothing_ends_when_its_time_is_over():
    async def story():
        bell, ask = WorkBell(), Answers(NOTHING)
        assert await long_poll(bell, REQUEST, ask, 0.001, lambda: 0) == NOTHING
        assert ask.asked == 2
        assert await long_poll(bell, REQUEST, ask, 0, lambda: 0) == NOTHING
        assert ask.asked == 3

    asyncio.run(story())


def test_a_long_poll_ends_when_it_is_over_for_everybody_and_a_mere_rouse_ends_none():
    async def story():
        bell, ask, over = WorkBell(), Answers(NOTHING), []
        waiting = [
            asyncio.create_task(
                long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0, lambda: bool(over))
            )
            for _ in range(3)
        ]
        await all_listen(bell, waiting)
        bell.rouse()
        await until(lambda: ask.asked == 6)
        assert bell.waiting() == 3
        over.append(True)
        bell.rouse()
        assert await asyncio.gather(*waiting) == [NOTHING] * 3
        assert await long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0, lambda: True) == NOTHING
        assert bell.waiting() == 0

    asyncio.run(story())


def test_a_worker_that_is_held_waits_its_time_out_and_takes_no_ring_from_others():
    async def story():
        bell = WorkBell()
        drained = Answers(NOTHING, Polled(held=True))
        held = asyncio.create_task(long_poll(bell, REQUEST, drained, PATIENCE_S, lambda: 0))
        await until(lambda: drained.asked == 1)
        ask = Answers(NOTHING, FOUND)
        other = asyncio.create_task(long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0))
        await until(lambda: ask.asked == 1)
        bell.ring([CHARGE])  # the first one waits longest, and is held when it looks
        assert await other == FOUND
        assert (drained.asked, bell.waiting()) == (2, 1)
        bell.ring([CHARGE])
        await asyncio.sleep(0)
        assert drained.asked == 2
        held.cancel()

    asyncio.run(story())


def test_a_worker_of_all_tenants_takes_no_ring_of_one_that_bars_it():
    async def story():
        bell = WorkBell()
        barred = Answers(NOTHING, Polled(barred=("acme",)), Polled(barred=("acme",)), FOUND)
        some = asyncio.create_task(long_poll(bell, REQUEST, barred, PATIENCE_S, lambda: 0))
        await until(lambda: barred.asked == 1)
        ask = Answers(NOTHING, FOUND)
        other = asyncio.create_task(long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0))
        await until(lambda: ask.asked == 1)
        bell.ring([CHARGE])  # the first one waits longest, and learns at its look that it is barred
        assert await other == FOUND
        assert barred.asked == 2
        bell.ring([CHARGE])
        await asyncio.sleep(0)
        assert barred.asked == 2
        bell.ring([("charge", "", "beta")])
        await until(lambda: barred.asked == 3)
        bell.rouse()
        assert await some == FOUND

    asyncio.run(story())


def test_who_was_held_hears_again_once_a_look_shows_that_it_is_not():
    async def story():
        bell, ask = WorkBell(), Answers(Polled(held=True), NOTHING, FOUND)
        task = asyncio.create_task(long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 0))
        await until(lambda: ask.asked == 1)
        bell.rouse()
        await until(lambda: ask.asked == 2)
        bell.ring([CHARGE])
        assert await task == FOUND

    asyncio.run(story())


def test_a_long_poll_wakes_by_itself_when_an_item_can_be_had():
    async def story():
        bell, ask = WorkBell(), Answers(Polled(next_ms=5), FOUND)
        assert await long_poll(bell, REQUEST, ask, PATIENCE_S, lambda: 4) == FOUND
        assert ask.asked == 2

    asyncio.run(story())


def test_an_item_for_later_is_not_lost_with_the_waiter_that_was_told_of_it():
    async def story():
        bell = WorkBell()
        first = Answers(NOTHING, Polled(next_ms=10**9))
        short = asyncio.create_task(long_poll(bell, REQUEST, first, 0.02, lambda: 0))
        await until(lambda: bell.waiting() == 1)
        second = Answers(NOTHING, FOUND)
        long = asyncio.create_task(long_poll(bell, REQUEST, second, PATIENCE_S, lambda: 0))
        await until(lambda: second.asked == 1)
        bell.ring([CHARGE])
        assert await short == Polled(next_ms=10**9)
        assert await long == FOUND

    asyncio.run(story())
