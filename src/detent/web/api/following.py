"""An instance as it moves (contract §27): its states, outputs and models' words as a stream."""

from __future__ import annotations

from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import Response

from detent.model.errors import DetentError
from detent.model.limits import STREAM_DELTAS, STREAM_POLL_LEAST_MS, STREAM_POLL_MOST_MS
from detent.service.following import END, Follower, Look, News
from detent.service.reading import timing_of
from detent.web.api.call import Call
from detent.web.api.histories import output_wire
from detent.web.api.reply import empty_reply
from detent.web.api.routes import Table
from detent.web.api.streams import MEDIA, Pace, event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from detent.kernel.recording import Timing
    from detent.ports.store import Store
    from detent.service.desk import Desk

table = Table("streams")


class StreamQuery(Struct):
    """How often to look where nobody tells of a move."""

    poll_ms: int = 500


@table.route(
    "GET",
    "/instances/{id:uuid}/stream",
    query=StreamQuery,
    gives={200: str, 204: None},
    media=MEDIA,
)
async def stream(call: Call) -> Response:
    """Follow an instance until it ends: events state, output, llm_delta, error, and done last."""
    after = call.request.headers.get("last-event-id", "")
    follower = Follower(call.path["id"], call.tenant, after)
    await call.desk.look(follower.begin)
    if follower.known:
        return empty_reply(204)  # tells a browser not to come again
    poll_ms = max(STREAM_POLL_LEAST_MS, min(call.query.poll_ms, STREAM_POLL_MOST_MS))
    return call.streams.open(_events(call.desk, follower, poll_ms))


async def _events(desk: Desk, follower: Follower, poll_ms: int) -> AsyncGenerator[bytes, None]:
    pace = Pace(poll_ms)
    words: deque[tuple[str, str]] = deque(maxlen=STREAM_DELTAS)

    def heard(block: str, text: str) -> None:
        words.append((block, text))
        pace.wake()

    stops = (desk.watch(follower.instance, pace.wake), desk.listen(follower.instance, heard))
    try:
        yield _state(follower.instance, follower.state)
        async with aclosing(_followed(desk, follower, pace, words)) as parts:
            async for part in parts:
                yield part
                pace.spoke()
    except DetentError as error:
        yield event("error", {"error": error.message, "code": error.code})
    finally:
        for stop in stops:
            stop()


async def _followed(
    desk: Desk, follower: Follower, pace: Pace, words: deque[tuple[str, str]]
) -> AsyncGenerator[bytes, None]:
    shown = Shown(follower.instance)
    while True:
        pace.looking()
        found = await desk.look(lambda store: shown.look(follower, store))
        while words:
            block, text = words.popleft()
            told = {"instance_id": follower.instance, "block_id": block, "delta": text}
            yield event("llm_delta", told)
        for part in found.shown:
            yield part
        if found.ended:
            yield event(END, {"state": follower.state}, follower.end)
            return
        if not found.more:
            beat = await pace.rest()
            if beat:
                yield beat


class Shown:
    """News of an instance as events; made beside the loop."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._timing: Timing | None = None

    def look(self, follower: Follower, store: Store) -> Look:
        """What is new, encoded."""
        self._timing = self._timing or timing_of(store)
        return follower.look(store, self._show)

    def _show(self, news: News) -> bytes:
        output, timing = news.output, self._timing
        if output is None or timing is None:
            return _state(self._instance, news.state)
        return event("output", output_wire(self._instance, output, timing), output.id)


def _state(instance: str, state: str) -> bytes:
    return event("state", {"instance_id": instance, "state": state})
