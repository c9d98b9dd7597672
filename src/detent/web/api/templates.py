"""Templates under the magnifying glass (contract §8): where each value came from."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.responses import Response

from detent.service.templates import inspect_template
from detent.web.api.call import Call
from detent.web.api.reply import json_reply
from detent.web.api.routes import Table

table = Table("templates")


class TemplateQuestion(Struct):
    """A template and what it may see."""

    template: Any
    context_data: Any = None
    context_config: Any = None
    outputs: dict[str, Any] = {}


@table.route("POST", "/debug/template", takes=TemplateQuestion, tenantless=True, gives={200: Any})
async def debug(_call: Call, body: TemplateQuestion) -> Response:
    """Render a template and tell where each value came from."""
    return json_reply(_traced(body))


@table.route("POST", "/sequences/inspect-template", takes=TemplateQuestion, gives={200: Any})
async def inspect(_call: Call, body: TemplateQuestion) -> Response:
    """The same, under the name editors use."""
    return json_reply(_traced(body))


def _traced(body: TemplateQuestion) -> dict[str, Any]:
    return inspect_template(body.template, body.context_data, body.context_config, body.outputs)
