"""Every route, called by another tenant with what a tenant owns: nothing is seen, nothing changes.

The routes are those that are served; one that names something new fails until `belongings` says
what a tenant owns there.
"""

from __future__ import annotations

import uuid

import pytest

from detent.web.api.access import ROOT_NEEDED
from detent.web.api.tables import all_routes
from tests.integration.web.belongings import KINDS, MARK, MARKED_COUNT, Asked, Owner, kind_of

pytestmark = pytest.mark.req("SEQ-OPS-1")

ROUTES = {f"{route.method} {route.path}": route for route in all_routes()}
CLOSED = {name: route for name, route in ROUTES.items() if not route.public}
OPEN = {name: route for name, route in ROUTES.items() if route.public}
# A key there is each tenant's own, or nobody's: the other one may have the same.
OWN_NAMES = ("rate-limits", "cluster")
# Nothing is there for the owner either: the effect or the delivery is made up.
NOT_THERE = (
    "POST /instances/{id:uuid}/effects/{key}/resolve",
    "POST /webhooks/outbox/{id:uuid}/redeliver",
    "GET /webhooks/outbox/{id:uuid}/redeliver-preview",
    "DELETE /webhooks/outbox/{id:uuid}",
    "GET /webhooks/deliveries/{id:uuid}",
    "GET /inspect/deliveries/{id}",
)
UNHEARD = (401, 403, 404, 405, 413, 415, 422)


@pytest.fixture(scope="module")
def keys(server):
    """Secrets of the other tenant, by capability."""
    made = {}
    for each in ("operator", "device", "worker"):
        body = {"tenant_id": "b", "capabilities": [each]}
        made[each] = server.post("/api-keys", body, tenant="").json()["secret"]
    return made


@pytest.fixture(scope="module")
def settled(server):
    """An owner of everything, for tests that change nothing; looked at before and after them."""
    made = Owner(server, "settled")
    for kind in KINDS:
        made.have(kind)
    before = made.view()
    yield made
    assert made.view() == before


@pytest.mark.parametrize("name", CLOSED)
def test_another_tenant_sees_and_changes_nothing(server, keys, name):
    route = CLOSED[name]
    owner = Owner(server, f"a-{uuid.uuid4().hex}")
    if kind_of(route) in KINDS:
        owner.have(kind_of(route))  # so that a list has something to show
    asked = Asked(owner, route)
    before = owner.view()
    for who in ({"tenant": "b"}, {"tenant": "", "key": keys["operator"]}):
        status, text = asked.send(server, **who)
        assert MARK not in text, text
        assert str(MARKED_COUNT) not in text, text
        assert status < 500, text
        if asked.foreign or (route.names and route.segments[0] not in OWN_NAMES):
            assert status in (403, 404), (status, text)
    assert owner.view() == before
    status, text = asked.send(server, tenant=owner.tenant)
    assert status not in UNHEARD or name in NOT_THERE, f"the owner is not heard either: {text}"


@pytest.mark.parametrize("name", CLOSED)
def test_nobody_gets_in_without_a_key_or_with_one_that_does_not_open(server, settled, keys, name):
    route, asked = CLOSED[name], Asked(settled, CLOSED[name])
    assert asked.send(server, tenant=settled.tenant, key="") == (401, "")
    assert asked.send(server, tenant=settled.tenant, key="sk_wrong") == (401, "")
    lacking = "worker" if route.path.startswith("/mobile") else "device"
    refused = (403, ROOT_NEEDED if route.admin else "")
    assert asked.send(server, tenant="", key=keys[lacking]) == refused
    assert asked.send(server, tenant=settled.tenant, key=keys["operator"]) == (403, "")


@pytest.mark.parametrize("name", OPEN)
def test_a_public_route_shows_nothing_of_anybody(server, settled, name):
    status, text = Asked(settled, OPEN[name]).send(server, tenant="", key="")
    assert MARK not in text
    assert status in ((401, 404) if OPEN[name].names else (200,))
