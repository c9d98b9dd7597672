"""`llm_call`: a language model is asked, others in turn when it fails, and repairs what must fit.

Three loops, each in its own function: over providers (`_first_of`), over repairs (`_fitting`), and
over the events of a stream (`_streamed`). Keys are known to `Secrets` before anything is sent.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from detent.handlers.answers import Failed
from detent.handlers.context import HandlerContext
from detent.handlers.network import llm_anthropic, llm_openai
from detent.handlers.network.headers import checked_headers
from detent.handlers.network.llm_ask import ANTHROPIC, Ask, Params, read_ask, seconds
from detent.handlers.network.llm_schema import Schema, repaired
from detent.handlers.network.llm_stream import Events
from detent.handlers.network.outside import Outside, check_status, read_params, wrong
from detent.handlers.network.secrets import Flow, Secrets
from detent.model import limits

if TYPE_CHECKING:
    from detent.handlers.network.client import Call, Incoming, Reply

_OK = range(200, 300)


class Talk(Struct, frozen=True, kw_only=True):
    """Everything that one step's conversation is bound to."""

    outside: Outside
    ctx: HandlerContext
    params: Params
    schema: Schema | None
    secrets: Secrets


async def llm_call(outside: Outside, ctx: HandlerContext, given: dict[str, Any]) -> Any:
    """Ask; `{provider, model, message, finish_reason, usage}`."""
    params = read_params(given, Params, "llm_call")
    schema = None if params.response_schema is None else Schema(params.response_schema)
    _check(params)
    asks = _asks(outside, params, given)
    if params.providers is None and isinstance(asks[0][1], Failed):
        raise asks[0][1]
    if ctx.dry_run:
        return _preview(params)
    secrets = Secrets(ask.key for _name, ask in asks if isinstance(ask, Ask))
    talk = Talk(outside=outside, ctx=ctx, params=params, schema=schema, secrets=secrets)
    total_s = seconds("total_timeout_secs", params.total_timeout_secs)
    try:
        async with asyncio.timeout(total_s):
            return secrets.hide_in(await _first_of(talk, asks))
    except TimeoutError:
        text = f"the language model did not answer within {total_s:g} s"
        raise Failed(text, code="network.timeout") from None


async def _first_of(talk: Talk, asks: list[tuple[str, Ask | Failed]]) -> dict[str, Any]:
    """The answer of the first provider that gives one."""
    if talk.params.providers is None:
        (_name, only), *_ = asks
        return await _fitting(talk, only, 0) if isinstance(only, Ask) else {}
    each_s = seconds("per_provider_timeout_secs", talk.params.per_provider_timeout_secs)
    failures: list[tuple[str, Failed]] = []
    for place, (name, ask) in enumerate(asks):
        try:
            if isinstance(ask, Failed):
                raise ask
            async with asyncio.timeout(each_s):
                answer = await _fitting(talk, ask, place)
        except Failed as failure:
            failures.append((name, failure))
        except TimeoutError:
            failures.append((name, Failed(f"no answer within {each_s:g} s")))
        else:
            return {**answer, "tried": [tried for tried, _ask in asks[: place + 1]]}
    raise _all_failed(failures)


async def _fitting(talk: Talk, ask: Ask, place: int) -> dict[str, Any]:
    """An answer of one provider that fits the schema, if there is one to fit."""
    if talk.schema is None:
        return await _asked(talk, ask, f"{place}")
    question = talk.schema.ask_for(ask)
    usage: dict[str, Any] = {}
    text, faults = "", ["it was not asked"]
    for attempt in range(talk.params.max_repair_attempts + 1):
        answer = await _asked(talk, question, f"{place}.{attempt}")
        usage = _sum(usage, answer["usage"])
        text = str(answer["message"].get("content") or "")
        value, faults = talk.schema.read(text)
        if not faults:
            merged = value if isinstance(value, dict) else {}
            own = {**answer, "usage": usage, "structured": value}
            return {**merged, **own, "schema_valid": True, "repair_attempts": attempt}
        question = repaired(question, text, faults)
    raise Failed(
        f"the answer of {ask.provider} does not fit response_schema: {faults[0]}",
        retryable=False,
        code="model.answer",
        details={
            "validation_errors": talk.secrets.hide_in(faults),
            "last_response": talk.secrets.hide(text)[: limits.FAILURE_BODY_CHARS],
            "repair_attempts": talk.params.max_repair_attempts,
        },
    )


async def _asked(talk: Talk, ask: Ask, number: str) -> dict[str, Any]:
    """One request to one provider."""
    style = llm_anthropic if ask.provider == ANTHROPIC else llm_openai
    stream = talk.params.stream and talk.schema is None  # only a whole answer can be repaired
    call = _request(talk, ask, style, f"{talk.ctx.key}-{number}", stream=stream)
    if not stream:
        reply = await talk.outside.client.fetch(call)
        return _output(talk, ask, style, reply)
    async with talk.outside.client.exchange(call) as incoming:
        kind = incoming.headers.get("content-type", "")
        if incoming.status in _OK and kind.startswith("text/event-stream"):
            return dict(style.read(ask, await _streamed(talk, ask, style, incoming)))
        return _output(talk, ask, style, await _whole(incoming))


async def _streamed(talk: Talk, ask: Ask, style: ModuleType, incoming: Incoming) -> Any:
    """The whole answer, and each piece of text to whoever listens as it comes."""
    events, gathered, flow = Events(), style.Gathered(ask), Flow(talk.secrets)
    async with aclosing(incoming.pieces()) as pieces:
        async for piece in pieces:
            for event, data in events.feed(piece):
                _tell(talk, flow.push(gathered.take(event, data)))
            if gathered.done:
                break
    if not gathered.done:
        text = f"{ask.provider} broke off before its answer was complete"
        raise Failed(text, code="model.answer")
    _tell(talk, flow.rest())
    return gathered.whole()


def _tell(talk: Talk, text: str) -> None:
    if text:
        with suppress(Exception):  # who listens cannot break the answer
            talk.outside.deltas(talk.ctx.instance_id, talk.ctx.block, text)


def _request(talk: Talk, ask: Ask, style: ModuleType, key: str, *, stream: bool) -> Call:
    from detent.handlers.network.client import Call

    params = talk.params
    idle_s = seconds("stream_idle_timeout_secs", params.stream_idle_timeout_secs)
    return Call(
        url=ask.base + style.PATH,
        method="POST",
        headers={
            **checked_headers(style.headers(ask)),
            "content-type": "application/json",
            "accept": "text/event-stream" if stream else "application/json",
            "idempotency-key": key,
        },
        body=msgspec.json.encode(style.body(ask, stream=stream)),
        timeout_s=limits.CALL_TIMEOUT_MS / 1000,  # the conversation has its own
        idle_s=idle_s if stream else None,
        follow=False,
    )


def _output(talk: Talk, ask: Ask, style: ModuleType, reply: Reply) -> dict[str, Any]:
    final = reply.status != 429  # noqa: PLR2004 - the number is its own name
    check_status(reply, talk.secrets, ask.provider, final=final)
    if reply.status not in _OK:
        text = f"{ask.provider} answered with status {reply.status}; is base_url right?"
        raise Failed(text, retryable=False, details={"status": reply.status, "body": ""})
    try:
        answer = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError):
        raise llm_openai.unreadable(ask) from None
    return dict(style.read(ask, answer))


async def _whole(incoming: Incoming) -> Reply:
    from detent.handlers.network.client import Reply

    async with aclosing(incoming.pieces()) as pieces:
        body = b"".join([piece async for piece in pieces])
    return Reply(status=incoming.status, headers=incoming.headers, body=body)


def _check(params: Params) -> None:
    """What must be so before anybody is asked."""
    if not 0 <= params.max_repair_attempts <= limits.REPAIR_ATTEMPTS:
        most = limits.REPAIR_ATTEMPTS
        raise wrong(f"max_repair_attempts must be 0 to {most}, got {params.max_repair_attempts}")
    if params.providers is not None and not 0 < len(params.providers) <= limits.PROVIDERS:
        count = len(params.providers)
        raise wrong(f"providers must name 1 to {limits.PROVIDERS}, got {count}")


def _asks(
    outside: Outside, params: Params, given: dict[str, Any]
) -> list[tuple[str, Ask | Failed]]:
    """The questions in the order of providers; one that cannot be asked is its failure."""
    shared = {name: value for name, value in given.items() if name != "providers"}
    asks: list[tuple[str, Ask | Failed]] = []
    for own in params.providers or [{}]:
        merged = {**shared, **own}
        name = str(merged.get("provider", "openai"))
        try:
            ask = read_ask(merged, outside.environment, outside.settings.api_key_envs)
        except Failed as failure:
            asks.append((name, failure))
        else:
            asks.append((name, ask))
    return asks


def _all_failed(failures: list[tuple[str, Failed]]) -> Failed:
    name, last = failures[-1]
    told = [{"provider": who, "message": failure.message} for who, failure in failures]
    details = last.details if isinstance(last.details, dict) else {}
    details = {name: value for name, value in details.items() if name != "retry_after_ms"}
    return Failed(
        f"all providers failed; the last, {name}: {last.message}",
        retryable=False,
        code="model.failed",
        details={**details, "tried": [who for who, _ in failures], "failures": told},
    )


def _sum(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The tokens of all answers together."""
    known = {name: value for name, value in before.items() if type(value) is int}
    return {
        name: value + known.get(name, 0) if type(value) is int else value
        for name, value in now.items()
    }


def _preview(params: Params) -> dict[str, Any]:
    would = {"provider": params.provider, "model": params.model, "messages": params.messages}
    return {
        "dry_run": True,
        "handler": "llm_call",
        "would": would,
        "provider": params.provider,
        "model": params.model,
        "message": {"role": "assistant", "content": ""},
        "finish_reason": "dry_run",
        "usage": {},
    }
