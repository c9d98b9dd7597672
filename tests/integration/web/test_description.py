"""The description of the API: it is complete, and it says what is served."""

from __future__ import annotations

import json
import re

from detent.web.api.tables import all_routes


def test_every_route_is_described_with_what_it_takes_and_gives(server):
    document = server.get("/api-docs/openapi.json", tenant="").json()
    assert document["openapi"] == "3.1.0"
    for route in all_routes():
        path = "/" + "/".join(
            f"{{{part[1:-1].partition(':')[0]}}}" if part[0] == "{" else part
            for part in route.segments
        )
        operation = document["paths"][path][route.method.lower()]
        assert operation["summary"], path
        assert {str(status) for status in route.gives} <= set(operation["responses"]), path
    ids = [op["operationId"] for path in document["paths"].values() for op in path.values()]
    assert len(ids) == len(set(ids))
    named = set(re.findall(r'#/components/schemas/([^"]+)"', json.dumps(document)))
    assert named <= set(document["components"]["schemas"])


def test_the_page_for_people_names_every_path_and_loads_nothing(server):
    page = server.get("/swagger-ui", tenant="", key="")
    assert page.status_code == 200
    assert "/instances/{id}/signals" in page.text
    for word in ("src=", "@import", "http://", "https://", "<script"):
        assert word not in page.text
