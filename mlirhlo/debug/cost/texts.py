"""A cost report as text and as a page of html."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirhlo.debug.cost.memory import MemoryProfile, sparkline
from mlirhlo.debug.cost.report import CostReport
from mlirhlo.debug.page import html_page, html_text

_PATH = 12
"""Instructions of the critical path that text shows."""
_STYLE = """
svg { width: 100%; height: 16rem; } polyline { fill: #1967d233; stroke: #1967d2; vector-effect: non-scaling-stroke; }
table { border-collapse: collapse; font: 12px/1.5 ui-monospace, monospace; }
td, th { padding: 1px 8px; text-align: right; }
td:last-child, th:last-child { text-align: left; overflow-wrap: anywhere; }
"""


def quantity(value: float, unit: str) -> str:
    """A number with a prefix of a thousand: `1.50 GB`."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def duration(seconds: float) -> str:
    """A time: `1.50 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def summary(report: CostReport) -> str:
    """One line."""
    memory = quantity(report.memory.peak, "B") if report.memory is not None else "unknown"
    on = f"{report.chip}" + (f" x {report.devices}" if report.devices > 1 else "")
    return (
        f"{report.module} on {on}: {duration(report.seconds)};"
        f" {quantity(report.flops, 'FLOP')}, {quantity(report.bytes, 'B')} accessed, peak memory {memory}"
    )


def as_text(report: CostReport, top: int) -> Iterator[str]:
    """Lines: totals, the longest instructions, overlaps, the critical path, memory."""
    yield summary(report)
    yield f"{'time':>9} {'share':>6} {'runs':>6} {'operations':>11} {'bytes':>9} bound by  instruction"
    for row in report.instructions[:top]:
        share = row.total_seconds / report.seconds if report.seconds else 0.0
        at = f"  {row.source}" if row.source else ""
        yield (
            f"{duration(row.total_seconds):>9} {share:>6.1%} {row.executions:>6g}"
            f" {quantity(row.flops + row.transcendentals, ''):>11} {quantity(row.bytes, 'B'):>9}"
            f" {row.bound:<9} %{row.name} {row.opcode}{at}"
        )
    if len(report.instructions) > top:
        yield f"{len(report.instructions) - top} more: --top=N"
    for pair in report.overlaps:
        share = pair.hidden / pair.seconds if pair.seconds else 1.0
        yield f"overlap: %{pair.start} takes {duration(pair.seconds)}, {share:.0%} beside other work"
    yield from _path(report)
    yield from (f"not known: {what}" for what in report.unknown)
    if report.memory is not None:
        yield from memory_text(report.memory, top)


def _path(report: CostReport) -> Iterator[str]:
    path = [f"%{name}" for name in report.critical_path]
    shown = path if len(path) <= _PATH else [*path[: _PATH // 2], "...", *path[-_PATH // 2 :]]
    yield f"critical path: {duration(report.critical_seconds)}: {' -> '.join(shown)}"


def memory_text(memory: MemoryProfile, top: int) -> Iterator[str]:
    """Lines: memory over time, and what the peak is made of."""
    yield f"memory: {sparkline(memory.curve)}"
    resident = quantity(memory.resident, "B")
    yield f"peak {quantity(memory.peak, 'B')} at %{memory.at}, {resident} of it parameters and constants"
    for buffer in memory.buffers[:top]:
        where = f"  {buffer.source}" if buffer.source else ""
        yield f"{quantity(buffer.bytes, 'B'):>9} {buffer.kind:<9} %{buffer.instruction} {buffer.shape}{where}"
    sources = memory.by_source()
    if any(buffer.source for buffer in memory.buffers):
        most = ", ".join(f"{name} {quantity(n, 'B')}" for name, n in list(sources.items())[:3])
        yield f"by source: {most}"


def as_page(report: CostReport) -> str:
    """A page: memory over time, the buffers of the peak, the instructions."""
    body = [f"<p>{html_text(summary(report))}</p>\n"]
    if (memory := report.memory) is not None and memory.curve:
        body += [
            f"<h2>Memory: {html_text(quantity(memory.peak, 'B'))} at %{html_text(memory.at)}</h2>\n"
        ]
        body += [_plot(memory.curve, memory.peak)]
        rows = [
            (str(b.bytes), b.kind, b.source, f"%{b.instruction} {b.shape}") for b in memory.buffers
        ]
        body += _table(("bytes", "kind", "source", "buffer"), rows)
    times = [
        (
            duration(r.total_seconds),
            f"{r.executions:g}",
            f"{r.flops:g}",
            f"{r.bytes:g}",
            r.bound,
            r.source,
            f"%{r.name}",
        )
        for r in report.instructions
    ]
    body += [
        "<h2>Instructions</h2>\n",
        *_table(
            ("time", "runs", "operations", "bytes", "bound by", "source", "instruction"), times
        ),
    ]
    return html_page(f"{report.module} on {report.chip}", _STYLE, body)


def _plot(curve: Sequence[int], peak: int) -> str:
    points = " ".join(f"{x},{peak - y}" for x, y in enumerate(curve))
    last = len(curve) - 1
    return (
        f'<svg viewBox="0 0 {max(last, 1)} {max(peak, 1)}" preserveAspectRatio="none" role="img">'
        f'<title>bytes by instruction</title><polyline points="0,{peak} {points} {last},{peak}"/></svg>\n'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>\n"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>\n"
    yield "</table>\n"
