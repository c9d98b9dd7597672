"""Clients and handlers whose name server and connections a test has in its hand."""

from __future__ import annotations

import asyncio

import httpcore2

from detent.handlers import Failed, Registry
from detent.handlers.network import NetworkSettings, Outside, register_network
from detent.handlers.network.client import Call, GuardedClient
from tests.unit.handlers.calling import order_for, perform

PUBLIC = "93.184.216.34"


class Names:
    """A name server under the test's control; each name has answers, the last one stays."""

    def __init__(self, **names):
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked = []

    async def __call__(self, host, _port):
        self.asked.append(host)
        answers = self._names.get(host, [[PUBLIC]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Wires:
    """Connections: which addresses were dialled, all led to one port of this machine."""

    def __init__(self, port=None):
        self.port = port
        self.dialled = []

    async def __call__(self, address, _port, timeout_s):
        self.dialled.append(str(address))
        if self.port is None:
            raise httpcore2.ConnectError
        return await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self.port, timeout=timeout_s)


def fetched(url, *, settings=None, names=None, wires=None, times=1, tls=None, **call):
    """Fetch a URL some times with one client on one loop; the replies."""
    settings = settings or NetworkSettings()

    async def run():
        options = {} if wires is None else {"dial": wires}
        client = GuardedClient(settings, resolve=names or Names(), ssl_context=tls, **options)
        call.setdefault("timeout_s", 10)
        return [await client.fetch(Call(url=url, **call)) for _ in range(times)]

    return asyncio.run(run())


def failure_of(url, **options):
    """The failure that fetching the URL ends with."""
    try:
        replies = fetched(url, **options)
    except Failed as failure:
        return failure
    raise AssertionError(f"it was answered: {replies}")


def called(handler, params, *, settings=None, secrets=None, artifacts=None, **fields):
    """Perform one order of a network handler against servers on loopback; the outcome."""
    settings = settings or NetworkSettings(allow_internal=True)
    registry = Registry(secrets)
    outside = Outside(
        settings,
        environment=fields.pop("environment", None) or {},
        deltas=fields.pop("deltas", None),
        artifacts=artifacts,
    )
    register_network(registry, outside)
    return perform(registry, order_for(handler, params, **fields))
