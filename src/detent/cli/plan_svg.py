"""A plan as a picture: rows of boxes by their distance from the start, and arrows between them.

The picture is one SVG without scripts, fonts or references to anything outside; every text in it is
escaped. Where a way leads up again, its arrow goes round on the right, in a lane of its own.
"""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from detent.cli.plan_words import SYMBOLS, about, way
from detent.model.definition import Definition
from detent.service.plan_ways import PlanStep, plan_steps

_WIDE, _HIGH = 264, 58
_GAP_X, _GAP_Y = 60, 92
_MARGIN = 40
_TITLE = 56
_LANE = 16  # between arrows that lead up again, on the right
_LABEL_CHARS = 34
_TEXT_CHARS = 34
_COLOURS = {
    "send_email": ("#e8f0fe", "#1a56c4"),
    "send_voice": ("#f6e8fb", "#8a2da8"),
    "wait": ("#fff6dd", "#9a6b00"),
    "branch": ("#e2f6f5", "#0b7a75"),
    "end": ("#e6f6e9", "#1f7a34"),
    "step": ("#f1f3f5", "#495057"),
}


_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#212529}.name{font-weight:600}"
    ".title{font-size:18px;font-weight:600}.about,.exit{fill:#495057}"
    ".when{font-size:11px;fill:#343a40;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".way{fill:none;stroke:#868e96;stroke-width:1.5;stroke-linejoin:round}"
)
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="#868e96"/></marker>'
)


class _Box(NamedTuple):
    step: PlanStep
    row: int
    x: int
    y: int


def picture(definition: Definition) -> str:
    """The whole plan as SVG."""
    steps = plan_steps(definition)
    boxes = _placed(steps)
    lowest = max(box.y for box in boxes.values()) + _HIGH + _GAP_Y // 2
    exits = definition.body.exits
    right = max(box.x for box in boxes.values()) + _WIDE + _MARGIN
    arrows: list[str] = []
    lanes = 0
    for box in boxes.values():
        for place, (_, to) in enumerate(box.step.ways):
            lanes += boxes[to].row <= box.row
            arrows.append(_arrow(box, place, boxes[to], right + _LANE * (lanes - 1)))
    width = right + _LANE * lanes + _MARGIN
    height = lowest + _MARGIN + 20 * len(exits)
    parts = [_opening(definition, width, height), *arrows]
    parts += [_drawn(box) for box in boxes.values()]
    for place, each in enumerate(exits):
        said = f"any time: {each.when} → {each.outcome}"
        parts.append(_text(_MARGIN, lowest + 20 + 20 * place, said, "exit"))
    return "\n".join([*parts, "</svg>", ""])


def _placed(steps: list[PlanStep]) -> dict[str, _Box]:
    """Rows by distance from the start; within a row in the order in which steps are reached."""
    known = {step.id: step for step in steps}
    row_of = {steps[0].id: 0}
    for step in steps:  # those nearer to the start come first
        for _, to in known[step.id].ways:
            row_of.setdefault(to, row_of[step.id] + 1)
    rows: dict[int, list[PlanStep]] = {}
    for step in steps:
        rows.setdefault(row_of[step.id], []).append(step)
    most = max(len(row) for row in rows.values())
    whole = most * _WIDE + (most - 1) * _GAP_X
    boxes = {}
    for row, members in rows.items():
        used = len(members) * _WIDE + (len(members) - 1) * _GAP_X
        left = _MARGIN + (whole - used) // 2
        for place, step in enumerate(members):
            x = left + place * (_WIDE + _GAP_X)
            boxes[step.id] = _Box(step, row, x, _TITLE + _MARGIN + row * (_HIGH + _GAP_Y))
    return boxes


def _opening(definition: Definition, width: int, height: int) -> str:
    name = f"{definition.name} version {definition.version}"
    about_it = str(definition.body.metadata.get("description") or "")
    size = f'width="{width}" height="{height}"'
    label = quoteattr(_plain(f"Plan {name}"))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" role="img"',
        f"  aria-label={label}>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_TIP}</defs>",
        f'<rect {size} fill="#fff"/>',
        _text(_MARGIN, 34, name, "title"),
        _text(_MARGIN, 54, _short(about_it, 100), "about"),
    ]
    return "\n".join(lines)


def _drawn(box: _Box) -> str:
    step = box.step
    fill, stroke = _COLOURS[step.kind]
    corner = {"end": _HIGH // 2, "branch": 2}.get(step.kind, 10)
    place = f'x="{box.x}" y="{box.y}" width="{_WIDE}" height="{_HIGH}" rx="{corner}"'
    name = f"{SYMBOLS[step.kind]}  {_short(step.id, _TEXT_CHARS)}"
    lines = [
        f'<g class="step" id={quoteattr(_plain(f"step-{step.id}"))}>',
        f"<title>{escape(_plain(f'{step.id}: {about(step)}'))}</title>",
        f'<rect {place} fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>',
        _text(box.x + 16, box.y + 24, name, "name"),
        _text(box.x + 16, box.y + 44, _short(about(step), _TEXT_CHARS), "about"),
        "</g>",
    ]
    return "\n".join(lines)


def _arrow(box: _Box, place: int, target: _Box, lane: int) -> str:
    when, ways = box.step.ways[place][0], len(box.step.ways)
    start = box.x + _WIDE * (place + 1) // (ways + 1)
    top, end = box.y + _HIGH, target.x + _WIDE // 2
    if target.row > box.row:
        middle = (top + target.y) // 2
        path = f"M{start} {top}C{start} {middle} {end} {middle} {end} {target.y - 2}"
        label = (start + (end - start) // 4, top + 24 + 15 * place)
    else:  # it leads up again, through the gap below its box, round, and the gap above its target
        low, above = top + 40 + 6 * place, target.y - 26
        path = f"M{start} {top}V{low}H{lane}V{above}H{end + 24}V{target.y - 2}"
        label = (start + 44, low - 4)
    drawn = f'<path class="way" d="{path}" marker-end="url(#tip)"/>'
    if ways == 1 and not when:
        return drawn
    return f"{drawn}\n{_text(*label, _short(way(when), _LABEL_CHARS), 'when', 'middle')}"


def _text(x: int, y: int, text: str, kind: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(_plain(text))}</text>'
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(text: str) -> str:
    """Text that XML can hold: what cannot be printed is left out."""
    return "".join(each for each in text if each.isprintable())
