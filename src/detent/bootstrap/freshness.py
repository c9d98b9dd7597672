"""Tokens kept fresh: a server looks now and then for those that expire soon, and refreshes them.

Nothing else depends on it: a provider that is away, or a store that is busy, is said in the log and
tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from detent.model.errors import RequestError
from detent.model.limits import REFRESH_LOOK_MS
from detent.service.refreshing import refresh_credentials

if TYPE_CHECKING:
    from detent.service.desk import Desk
    from detent.service.refreshing import Answer, Post

log = logging.getLogger("detent.credentials")


async def keep_fresh(desk: Desk, post: Post) -> None:
    """Refresh what is due, about once a minute, until cancelled; without a vault there is none."""
    while desk.safe().vault is not None:
        await refresh_once(desk, post)
        await asyncio.sleep(REFRESH_LOOK_MS / 1000)


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


async def no_client(_url: str, _form: Mapping[str, str]) -> Answer:
    """Refuse to send anything: this server was given nothing to send it with."""
    raise RequestError("credential.refresh", "this server has no client to reach its provider with")
