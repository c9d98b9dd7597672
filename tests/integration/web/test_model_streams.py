"""A model's words from its own server through the engine to whoever follows (contract §27)."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.integration.web.following import everything, following, until
from tests.integration.web.house import house, step
from tests.unit.handlers.network.loopback import Loopback
from tests.unit.handlers.network.models import KEY, STREAM, chunk, events

pytestmark = pytest.mark.req("SEQ-OPS-1")

WORDS = ("It ", "was ", "a ", "dark ", "night")


class Writer:
    """A language model that says one word each time it is let to."""

    def __init__(self, words=WORDS):
        self.words = words
        self.asked = []
        self._let = {}
        self._served = Loopback(self._say)

    def _say(self, seen):
        asked = seen.json()
        self.asked.append(asked)
        return self._write(asked["messages"][-1]["content"])

    async def _write(self, name):
        yield STREAM
        for word in self.words:
            await self._turn(name)
            yield events(chunk(word))
        await self._turn(name)
        yield events(chunk(None, finish="stop"), "[DONE]")

    async def _turn(self, name):
        await self._gate(name).acquire()

    def _gate(self, name):
        return self._let.setdefault(name, asyncio.Semaphore(0))

    def let(self, name, times=1):
        """Let the answer to a question go on by so many words."""
        for _ in range(times):
            self._served._loop.call_soon_threadsafe(lambda: self._gate(name).release())

    def __enter__(self):
        self._served.__enter__()
        return self

    def __exit__(self, *error):
        self._served.__exit__(*error)

    @property
    def url(self):
        return self._served.url


def asking(model, id="ask", name="q", **params):
    said = [{"role": "user", "content": name}]
    return step(
        id,
        "llm_call",
        params={
            "base_url": model.url,
            "api_key": KEY,
            "stream": True,
            "messages": said,
            "model": "m",
            **params,
        },
    )


@pytest.fixture
def server(tmp_path):
    with house(tmp_path / "s.db", allow_internal_urls=True) as made:
        yield made


def deltas(seen):
    return [data["delta"] for name, data, _id in seen if name == "llm_delta"]


def test_each_word_reaches_the_reader_before_the_model_says_the_next(server):
    with Writer() as model:
        instance = server.instance(server.sequence(asking(model), step("after")))
        with following(server, f"/instances/{instance}/stream?poll_ms=5000") as answer:
            assert next(answer.seen)[0] == "state"
            until(lambda: model.asked)
            heard = []
            for word in WORDS:
                model.let("q")
                while len(heard) == 0 or heard[-1][0] != "llm_delta" or heard[-1][1] != word:
                    name, data, id = next(answer.seen)
                    heard.append((name, data.get("delta"), id))
                    assert name in ("state", "llm_delta")
                assert server.get(f"/instances/{instance}").json()["state"] == "running"
            model.let("q")
            rest = list(answer.seen)
    assert [word for name, word, _id in heard if name == "llm_delta"] == list(WORDS)
    assert {id for _name, _word, id in heard} == {None}, "a word has no place to come back to"
    assert rest[-1][:2] == ("done", {"state": "completed"})
    outputs = [data for name, data, _id in rest if name == "output"]
    assert [row["block_id"] for row in outputs] == ["ask", "after"]
    assert outputs[0]["output"]["message"]["content"] == "".join(WORDS)


def test_readers_hear_their_own_instance_and_all_of_its_words(server):
    """Two instances write at once; three read, two of them the same."""
    with Writer() as model:
        mine = server.instance(server.sequence(asking(model, name="mine")))
        other = server.instance(server.sequence(asking(model, name="other")))
        until(lambda: len(model.asked) == 2)
        path = "/instances/{}/stream?poll_ms=5000"
        with (
            following(server, path.format(mine)) as one,
            following(server, path.format(mine)) as two,
            following(server, path.format(other)) as three,
        ):
            for each in (one, two, three):
                assert next(each.seen)[0] == "state"
            model.let("mine", len(WORDS) + 1)
            heard = [list(one.seen), list(two.seen)]
            model.let("other", len(WORDS) + 1)
            heard.append(list(three.seen))
        for instance, seen in zip((mine, mine, other), heard, strict=True):
            assert deltas(seen) == list(WORDS)
            told = [data for name, data, _id in seen if name == "llm_delta"]
            assert {(each["instance_id"], each["block_id"]) for each in told} == {(instance, "ask")}
            assert seen[-1][0] == "done"


def test_who_comes_late_or_comes_back_hears_the_words_that_are_still_to_come(server):
    with Writer() as model:
        instance = server.instance(server.sequence(step("first"), asking(model)))
        path = f"/instances/{instance}/stream?poll_ms=5000"
        until(lambda: model.asked)
        with following(server, path) as answer:
            first = [next(answer.seen), next(answer.seen)]
            assert [name for name, _data, _id in first] == ["state", "output"]
            model.let("q")
            assert deltas([next(answer.seen)]) == ["It "]
        with following(server, path, last=first[1][2]) as answer:
            assert next(answer.seen)[0] == "state"
            model.let("q", len(WORDS))
            rest = list(answer.seen)
    assert deltas(rest) == list(WORDS[1:])
    assert [data["block_id"] for name, data, _id in rest if name == "output"] == ["ask"]
    again = everything(server, path)
    assert deltas(again) == [], "words are not kept"
    assert [name for name, _data, _id in again] == ["state", "output", "output", "done"]


def test_a_key_that_a_model_repeats_is_hidden_in_its_words_too(server):
    """The key comes cut into pieces, and none of them goes out."""
    with Writer(("so ", KEY[:9], KEY[9:], " it is", "!")) as model:
        instance = server.instance(server.sequence(asking(model)))
        until(lambda: model.asked)
        with following(server, f"/instances/{instance}/stream?poll_ms=5000") as answer:
            assert next(answer.seen)[0] == "state"
            model.let("q", 6)
            seen = list(answer.seen)
    assert KEY not in "".join(deltas(seen))
    assert KEY not in json.dumps(seen)
    assert "".join(deltas(seen)).startswith("so ")
    assert "".join(deltas(seen)).endswith(" it is!")


def test_a_model_that_breaks_off_is_told_as_a_failure(server):
    async def broken(_seen):
        yield STREAM
        yield events(chunk("Once"))

    with Loopback(broken) as model:
        instance = server.instance(server.sequence(asking(model)))
        seen = everything(server, f"/instances/{instance}/stream")
    assert seen[-1][:2] == ("done", {"state": "failed"})
    assert [data["output_ref"] for name, data, _id in seen if name == "output"] == ["__error__"]
