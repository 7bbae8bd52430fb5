"""The timeline as a picture: a row for each core and for the copies beside it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mlirhlo.mosaic.timeline.clock import COMPUTE, COPY, SIGNAL, STALL, Event
from mlirhlo.mosaic.timeline.record import lanes_of

if TYPE_CHECKING:
    from mlirhlo.mosaic.timeline.record import Timeline

_LEFT, _WIDTH, _RIGHT = 150, 1050, 20
_ROW, _BAR, _HEAD = 26, 18, 64
_THIN = 0.25
"""Pixels below which a bar that touches the one before it is not drawn."""
_COLORS = {COMPUTE: "#3b7dd8", STALL: "#d9534f", SIGNAL: "#444444"}
_COPIES = {"in": "#4aa564", "out": "#e0a030", "local": "#8a6fc0", "remote": "#c05f9a"}
_LEGEND = (
    ("compute", _COLORS[COMPUTE]),
    ("stall", _COLORS[STALL]),
    ("copy in", _COPIES["in"]),
    ("copy out", _COPIES["out"]),
    ("copy within", _COPIES["local"]),
    ("copy to others", _COPIES["remote"]),
)


def render(timeline: Timeline) -> str:
    """SVG, with a tooltip for every bar."""
    total = max(timeline.cycles, 1.0)
    scale = _WIDTH / total
    body: list[str] = []
    y = _HEAD
    several = len(timeline.cores) > 1
    for core in timeline.cores:
        if several:
            body.append(_text(8, y + 14, f"device {core.device} core {core.core}", "b"))
            y += _ROW
        for title, events in lanes_of(core.events):
            body.append(_text(_LEFT - 8, y + 14, title, "r"))
            body.append(
                f'<line x1="{_LEFT}" y1="{y + _ROW - 4}" x2="{_LEFT + _WIDTH}" y2="{y + _ROW - 4}"/>'
            )
            body += _bars(events, y, scale)
            y += _ROW
        y += 6
    height = y + 30
    head = [
        _text(8, 20, timeline.title, "b"),
        *_legend(),
        *_axis(total, scale, y),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + _RIGHT}" '
        f'height="{height}" viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {height}">\n'
        "<style>text{font:12px sans-serif;fill:#222}.b{font-weight:bold}.r{text-anchor:end}"
        ".m{text-anchor:middle;fill:#666}line{stroke:#ddd}.t{stroke:#999}</style>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join([*head, *body])
        + "\n</svg>\n"
    )


def _bars(events: list[Event], y: float, scale: float) -> list[str]:
    found: list[str] = []
    reached = -1.0
    for event in sorted(events, key=lambda one: (one.begin, one.end)):
        left, right = _LEFT + event.begin * scale, _LEFT + event.end * scale
        if right - max(left, reached) < _THIN and left - reached < _THIN:
            continue
        reached = max(right, left + _THIN)
        color = _COPIES[event.direction] if event.kind == COPY else _COLORS[event.kind]
        found.append(
            f'<rect x="{left:.2f}" y="{y}" width="{max(right - left, _THIN):.2f}" height="{_BAR}" '
            f'fill="{color}"><title>{escape(_tip(event))}</title></rect>'
        )
    return found


def _tip(event: Event) -> str:
    lines = [
        event.name,
        f"cycle {event.begin:.0f} to {event.end:.0f}: {event.end - event.begin:.0f}",
    ]
    if event.bytes:
        lines.append(f"{event.bytes} bytes")
    if event.step and event.kind != COMPUTE:
        lines.append(f"in step {', '.join(map(str, event.step))}")
    if event.place:
        lines.append(event.place)
    return "\n".join(lines)


def _legend() -> list[str]:
    found: list[str] = []
    x = _LEFT
    for title, color in _LEGEND:
        found.append(f'<rect x="{x}" y="34" width="12" height="12" fill="{color}"/>')
        found.append(_text(x + 17, 44, title))
        x += 34 + 7 * len(title)
    return found


def _axis(total: float, scale: float, bottom: float) -> list[str]:
    step = 10.0 ** len(str(int(total / 10)))
    while total / step < 5:
        step /= 2
    found: list[str] = []
    at = 0.0
    while at <= total:
        x = _LEFT + at * scale
        found.append(f'<line class="t" x1="{x:.2f}" y1="{_HEAD - 6}" x2="{x:.2f}" y2="{bottom}"/>')
        found.append(_text(x, bottom + 16, f"{at:g}", "m"))
        at += step
    return found


def _text(x: float, y: float, text: str, css: str = "") -> str:
    shown = f' class="{css}"' if css else ""
    return f'<text x="{x:.2f}" y="{y}"{shown}>{escape(text)}</text>'
