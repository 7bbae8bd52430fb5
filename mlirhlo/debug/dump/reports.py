"""The texts of XLA's reports on memory: allocations, values, memory usage.

Source: dumps reference, "Buffer assignment", "Memory usage report".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlirhlo.debug.dump.assignment import Allocation, Assignment, Index, braces

_SHOWN_ROWS, _SMALL_SHARE = 50, 0.05
"""After so many rows, what is left is summed up when it is less than that share."""


def human(size: int) -> str:
    """`128B`, `11.2KiB`."""
    if size < 1024:
        return f"{size}B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            break
    return f"{value:.1f}{unit}"


def assignment_text(assignment: Assignment) -> str:
    """`-buffer-assignment.txt`."""
    lines = ["BufferAssignment:"]
    for allocation in assignment.allocations:
        lines.append(_head(allocation))
        for placed in allocation.placed:
            value = placed.value
            lines.append(
                f" value: {value} (size={value.size},offset={placed.offset}): {value.shape}"
            )
    return "".join(f"{line}\n" for line in lines)


def _head(allocation: Allocation) -> str:
    parts = [f"allocation {allocation.index}: size {allocation.size}"]
    if allocation.parameter is not None:
        number, index = allocation.parameter
        parts += [
            f"parameter {number}",
            f"shape |{allocation.parameter_shape}| at ShapeIndex {braces(index)}",
        ]
    if allocation.output_shape:
        parts.append(f"output shape is |{allocation.output_shape}|")
    if allocation.is_constant:
        parts.append("constant")
    if allocation.is_output:
        parts.append("maybe-live-out")
    if allocation.is_temporary:
        parts.append("preallocated-temp")
    return ", ".join(parts) + ":"


def values_text(assignment: Assignment) -> str:
    """`-buffer-assignment-values.txt`."""
    total = assignment.total_bytes
    lines = ["", f"Total bytes used: {total} ({human(total)})", "", "Used values:"]
    for value in assignment.values:
        lines += [str(value), " positions:"]
        lines += [f"  {name}{_spaced(index)}" for _, name, index in value.positions]
        lines.append(" uses:")
        lines += [
            f"  {name}, operand {number}{_spaced(index)}" for name, number, index in value.uses
        ] or ["  (none)"]
        lines.append(f" from instruction: {assignment.printer.instruction_text(value.op, 0)}")
    return "".join(f"{line}\n" for line in lines)


def _spaced(index: Index) -> str:
    return f" {braces(index)}" if index else ""


# ---------------------------------------------------------------- memory usage


@dataclass(frozen=True, slots=True)
class Row:
    """What lies at one offset of an allocation."""

    size: int
    offset: int
    count: int
    shapes: str


def color_sections(assignment: Assignment) -> Iterator[tuple[int, list[Allocation]]]:
    """Memory spaces with their allocations, the largest first; the CPU has one space."""
    yield 0, sorted(assignment.allocations, key=lambda a: -a.size)


def memory_rows(allocation: Allocation) -> list[Row]:
    """Rows of an allocation, the largest first."""
    by_offset: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    for placed in allocation.placed:
        shape = placed.value.shape.to_string(layout=False)
        by_offset.setdefault(placed.offset, []).append(shape)
        sizes[placed.offset] = max(sizes.get(placed.offset, 0), placed.value.size)
    rows: list[Row] = []
    for offset, shapes in by_offset.items():
        counted = sorted(Counter(shapes).items())
        listed = ", ".join(s if count == 1 else f"{count}×{s}" for s, count in counted)
        rows.append(Row(sizes[offset], offset, len(shapes), listed))
    return sorted(rows, key=lambda row: (-row.size, row.offset))


def memory_table(rows: Sequence[Row]) -> str:
    """The table of one allocation."""
    lines = [
        "  cumulative_size;       size;       offset; used_by_n_values; shapes_list",
        "  ------------------------------------------------------------",
    ]
    total, so_far = sum(row.size for row in rows), 0
    for number, row in enumerate(rows):
        if number >= _SHOWN_ROWS and total - so_far < _SMALL_SHARE * total:
            rest = len(rows) - number
            lines.append(
                f"  The rest {rest} values are less than 5% of the total size and not shown."
            )
            break
        so_far += row.size
        share = 100.0 * so_far / total if total else 100.0
        lines.append(
            f"  {human(so_far):>9}({share:3.0f}%); {human(row.size):>10}; {row.offset:12};"
            f" {row.count:16}; {row.shapes}"
        )
    return "".join(f"{line}\n" for line in lines)


def memory_text(assignment: Assignment) -> str:
    """`-memory-usage-report.txt`."""
    parts: list[str] = []
    for color, allocations in color_sections(assignment):
        total = sum(a.size for a in allocations)
        name = "default" if color == 0 else f"space {color}"
        parts.append(
            f"Memory Space: {name} (color={color})\nTotal bytes: {total} ({human(total)})\n"
        )
        parts += [f"{memory_table(memory_rows(a))}\n" for a in allocations]
    return "".join(parts) + "\n"
