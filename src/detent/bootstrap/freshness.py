"""Tokens kept fresh: a server looks now and then for those that expire soon, and refreshes them.

Nothing else depends on it: a provider that is away, or a store that is busy, is said in the log and
tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from msgspec.structs import replace

from detent.bootstrap.own import network_of
from detent.handlers.answers import Failed
from detent.handlers.network import Outside
from detent.model import limits
from detent.model.errors import RequestError
from detent.service.refreshing import refresh_credentials

if TYPE_CHECKING:
    from detent.bootstrap.settings import Settings
    from detent.service.desk import Desk
    from detent.service.refreshing import Post

JSON = "application/json"

log = logging.getLogger("detent.credentials")


async def keep_fresh(desk: Desk, post: Post) -> None:
    """Refresh what is due, about once a minute, until cancelled; without a vault there is none."""
    while desk.safe().vault is not None:
        await refresh_once(desk, post)
        await asyncio.sleep(limits.REFRESH_LOOK_MS / 1000)


async def refresh_once(desk: Desk, post: Post) -> None:
    """Refresh what is due now; what fails is said by its id and reason, never by a value."""
    try:
        done = await refresh_credentials(desk, desk.safe(), post, desk.wall_ms)
    except Exception as error:  # noqa: BLE001 - whatever it was, the server goes on
        log.warning("credentials could not be refreshed: %s", type(error).__name__)
        return
    for each in done:
        if each.reason:
            log.warning("credential %s was not refreshed: %s", each.id, each.reason)
        else:
            log.info("credential %s was refreshed", each.id)


class _Answer(NamedTuple):
    status_code: int
    content: bytes


def guarded_post(settings: Settings) -> Post:
    """How forms are sent to providers: by the guarded client, where an engine's calls may go."""
    outside = Outside(replace(network_of(settings), max_body_bytes=limits.REFRESH_BYTES))

    async def post(url: str, form: Mapping[str, str]) -> _Answer:
        from detent.handlers.network.client import Call

        call = Call(
            url=url,
            method="POST",
            headers={"content-type": "application/x-www-form-urlencoded", "accept": JSON},
            body=urlencode(form).encode(),
            timeout_s=limits.REFRESH_TIMEOUT_MS / 1000,
            follow=False,  # a redirect could carry the form to somebody else
        )
        try:
            reply = await outside.client.fetch(call)
        except Failed as failure:
            raise RequestError("credential.refresh", failure.message) from None
        return _Answer(reply.status, reply.body)

    return post
