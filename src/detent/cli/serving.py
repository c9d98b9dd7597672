"""`detent serve`: the engine behind HTTP, until it is told to stop."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

import click

from detent.bootstrap.engine import Engine
from detent.bootstrap.server_settings import (
    WITHOUT_EFFECT,
    ServerSettings,
    check_isolation,
    load_settings,
    vault_keys,
    without_effect,
)
from detent.bootstrap.serving import ServeSettings, check_exposure, serve
from detent.cli.invocation import DATABASE, Invocation, pass_invocation, shared
from detent.cli.sources import load_module
from detent.model.address import shown_address
from detent.runtime.settings import WriterSettings
from detent.web.api.settings import ApiSettings

LEVELS = ("debug", "info", "warning", "error")


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Where to listen.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0 is any free one.  [8080]")
@click.option("--handlers", metavar="MODULE", multiple=True, help="A module or file with handlers.")
@click.option("--config", metavar="FILE", help="Settings as TOML.  [default: detent.toml, if any]")
@click.option(
    "--writer", type=click.Choice(["process", "thread"]), help="Where the writer runs.  [process]"
)
@click.option("--insecure", is_flag=True, default=None, help="Without a key, let anybody in.")
@click.option(
    "--partitions",
    metavar="RANGE",
    help="Own these only, such as 0-7.  [all of a file, a fair share on a server]",
)
@click.option("--log-level", type=click.Choice(LEVELS), help="How much to say.  [info]")
@shared
@pass_invocation
def serve_command(options: Invocation, config: str | None, **flags: Any) -> int:
    """Serve the REST API on a store; Ctrl-C or SIGTERM stops it and loses nothing.

    Settings come from options, then DETENT_… variables, then detent.toml. Without DETENT_API_KEY it
    listens on this machine only, unless --insecure says otherwise.
    """
    if "url" in options.said:
        options.needs_file()
    if options.db != DATABASE:
        flags["db"] = options.db
    settings = load_settings(flags, os.environ, config)
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    for name in without_effect(flags, os.environ):
        _say(f"note: {name} has no effect here: {WITHOUT_EFFECT[name]}")
    answering = serve_settings(settings)
    check_exposure(answering)
    check_isolation(settings)
    modules = [load_module(each) for each in settings.handlers]
    with open_engine(settings, modules, options.seal_key) as engine:
        serve(engine, answering, lambda url: _greet(url, settings))
    _say("stopped; everything is on disk")
    return 0


def serve_settings(settings: ServerSettings) -> ServeSettings:
    """Where to listen and whom to let in."""
    api = ApiSettings(
        api_key=settings.api_key,
        require_tenant_header=settings.require_tenant_header,
        environment=settings.env_label,
        color=settings.env_color,
    )
    return ServeSettings(
        host=settings.host, port=settings.port, api=api, insecure=settings.insecure
    )


def open_engine(settings: ServerSettings, handlers: Any, seal_key: str | None) -> Engine:
    """The engine that a server stands before."""
    key, old_keys = vault_keys(settings)
    return Engine(
        settings.db,
        handlers=handlers,
        writer=settings.writer,
        partition=settings.partitions or None,
        max_in_flight=settings.max_in_flight,
        breaker_threshold=settings.breaker_threshold,
        breaker_cooldown_ms=settings.breaker_cooldown_ms,
        seal_key=seal_key,
        workers=True,
        work_stale_ms=settings.worker_reaper_stale_secs * 1000,
        vault_key=key,
        vault_old_keys=old_keys,
        allow_internal_urls=settings.allow_internal_urls,
        allowed_internal_hosts=settings.allowed_internal_hosts,
        webhooks=[{"url": url} for url in settings.webhook_urls],
        webhook_delivery={"secrets": [settings.webhook_secret]} if settings.webhook_secret else {},
        turns=WriterSettings(tick_interval_ms=settings.tick_interval_ms),
    )


def _greet(url: str, settings: ServerSettings) -> None:
    _say(f"serving {shown_address(settings.db)} at {url}")
    if not settings.api_key:
        who = "who can reach it" if settings.insecure else "on this machine"
        _say(f"no API key is set: everybody {who} is the operator; set DETENT_API_KEY")


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
