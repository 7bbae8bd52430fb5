"""`-live-range.txt`: the schedule, when values are alive, and what the peak is made of.

Source: dumps reference, "Live range".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlirhlo.debug.dump.assignment import Assignment, HloValue, braces


def text(assignment: Assignment) -> str:
    """The report."""
    last = len(assignment.sequence)
    lines = [f"HloLiveRange (max {last}):", "  InstructionSequence:"]
    lines += [f"    {at}:{assignment.name_of(op)}" for at, op in enumerate(assignment.sequence)]
    lines.append("  BufferLiveRange:")
    lines += [f"    {_label(v)}:{v.start}-{v.end}" for v in assignment.values]
    at, alive = peak(assignment)
    total = sum(v.size for v in alive)
    lines.append(f"  Live ranges at {at} (peak):")
    so_far = 0
    for value in alive:
        so_far += value.size
        lines.append(f"    {_label(value)}: {value.size} bytes (cumulative: {so_far} bytes)")
    lines.append(f"  Stack trace breakdown for peak usage: {_grouped(total)} bytes")
    tree = _Tree(assignment.entry)
    for value in alive:
        tree.add(_path(value), value.size)
    if total:
        lines += tree.lines(total)
    return "".join(f"{line}\n" for line in lines)


def peak(assignment: Assignment) -> tuple[int, list[HloValue]]:
    """The moment at which most bytes are alive, and the values that are, the largest first."""
    changes = [0] * (len(assignment.sequence) + 2)
    for value in assignment.values:
        changes[value.start] += value.size
        changes[value.end + 1] -= value.size
    best = at = now = most = 0
    for at, change in enumerate(changes):
        now += change
        if now > most:
            most, best = now, at
    alive = [v for v in assignment.values if v.start <= best <= v.end]
    return best, sorted(alive, key=lambda v: -v.size)


def _label(value: HloValue) -> str:
    return value.name + braces(value.index)


def _path(value: HloValue) -> list[str]:
    """Where a value comes from: the parts of its op_name, or its instruction."""
    metadata = value.op.metadata
    name = metadata.op_name if metadata is not None else ""
    return [part for part in name.split("/") if part] or [value.name]


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


@dataclass(slots=True)
class _Tree:
    """Bytes by place."""

    label: str
    current: int = 0
    total: int = 0
    parts: dict[str, _Tree] = field(default_factory=dict[str, "_Tree"])

    def add(self, path: list[str], size: int) -> None:
        node = self
        node.total += size
        for part in path:
            node = node.parts.setdefault(part, _Tree(part))
            node.total += size
        node.current += size

    def lines(self, whole: int) -> list[str]:
        found = [f"    {self._line(whole, self.total - self.current)}"]
        self._below(whole, "      ", found)
        return found

    def _line(self, whole: int, remaining: int) -> str:
        share = 100.0 * self.total / whole
        return (
            f"{self.label} ({share:.1f}%, total: {_grouped(self.total)} bytes, current:"
            f" {_grouped(self.current)} bytes, remaining: {_grouped(remaining)} bytes)"
        )

    def _below(self, whole: int, indent: str, found: list[str]) -> None:
        parts = sorted(self.parts.values(), key=lambda part: -part.total)
        remaining = self.total - self.current
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            remaining -= part.total
            branch = "└── " if is_last else "├── "
            found.append(f"{indent}{branch}{part._line(whole, remaining)}")
            part._below(whole, indent + ("    " if is_last else "│   "), found)
