"""Bodies that are artifacts: sent as they are, or as a file in a form. Pure but for the reading."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.artifacts import key_of, type_of
from detent.handlers.network.outside import wrong

if TYPE_CHECKING:
    from detent.handlers.context import HandlerContext
    from detent.handlers.network.outside import Outside


class Upload(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an artifact is sent."""

    mode: Literal["raw", "multipart"] = "raw"
    field: str = "file"
    filename: str = "file"


class Parcel(Struct, frozen=True):
    """A body, and what it is."""

    content_type: str
    body: bytes


async def parcel_of(
    outside: Outside, ctx: HandlerContext, reference: Any, upload: Upload | None
) -> Parcel:
    """The body that a reference stands for; it may be an artifact of any instance of the tenant."""
    place = key_of(reference)
    content_type = type_of(reference)
    if place is None:
        raise wrong("body_artifact must be the artifact of an earlier output, or its key")
    if not content_type.isprintable() or not content_type.isascii():
        raise wrong("the content_type of body_artifact must be printable ASCII")
    body = None
    if outside.artifacts is not None:
        body = await asyncio.to_thread(outside.artifacts.read, ctx.tenant, *place)
    if body is None:
        text = f"there is no artifact {place[0]}/{place[1]} that this step may use"
        raise Failed(text, retryable=False, code="artifact.not_found")
    if upload is None or upload.mode == "raw":
        return Parcel(content_type, body)
    return _form(upload, content_type, body, ctx.key)


def _form(upload: Upload, content_type: str, body: bytes, key: str) -> Parcel:
    """One file as multipart/form-data; the same bytes whenever this effect is tried again."""
    boundary = f"detent-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    while boundary.encode() in body:
        boundary += "-"
    named = f'form-data; name="{_quoted(upload.field)}"; filename="{_quoted(upload.filename)}"'
    head = f"--{boundary}\r\nContent-Disposition: {named}\r\nContent-Type: {content_type}\r\n\r\n"
    whole = head.encode() + body + f"\r\n--{boundary}--\r\n".encode()
    return Parcel(f"multipart/form-data; boundary={boundary}", whole)


def _quoted(text: str) -> str:
    """A name as browsers write it there."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
