"""How long collectives take: bytes and hops by the topology of the links.

On a ring and along each axis of a torus, both directions of a link carry data. Volumes are those of the algorithms
that libraries use: an all-gather moves what a device lacks, an all-reduce twice as much. Where a message is so short
that hops are what it costs, devices behind a switch exchange in a logarithmic number of steps.
"""

from __future__ import annotations

from math import ceil, log2, prod

from mlirhlo.analysis.cost.visitor import size_bytes
from mlirhlo.debug.cost.chip import Link
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import leaves


def collective_ns(op: Instruction, devices: int, link: Link) -> float:
    """Time of a collective among its groups, each of which has the links to itself."""
    name = op.opcode.name.removesuffix("-start")
    moved = float(sum(size_bytes(leaf) for shape in op.input_shapes for _, leaf in leaves(shape)))
    if name == "collective-permute":
        pairs: tuple[tuple[int, int], ...] = getattr(op, "source_target_pairs", None) or ()
        return _permute_ns(moved, pairs, devices, link)
    size = group_size(op, devices)
    if size <= 1:
        return 0.0
    if name == "all-gather":
        moved *= size
    return volume_ns(name, moved, size, link)


def group_size(op: Instruction, devices: int) -> int:
    """Devices of a group; all where no groups are listed."""
    groups: ReplicaGroups | None = getattr(op, "replica_groups", None)
    listed = groups.groups() if groups is not None else ()
    return max((len(group) for group in listed), default=0) or devices


def volume_ns(name: str, moved: float, size: int, link: Link) -> float:
    """Time of a collective of so many devices. `moved`: bytes of the largest array of a device."""
    axes = _axes(size, link)
    share = (size - 1) / size
    if name in ("all-to-all", "ragged-all-to-all") and link.topology != "switch":
        # On each axis data passes a quarter of it on average, both ways; the longest axis is the last to end.
        crossed = max(0.5 if n == 2 else n / 8 for n in axes)
        return moved * crossed / link.bandwidth * 1e9 + _hops(axes, link)
    rate = link.bandwidth if link.topology == "switch" else 2 * len(axes) * link.bandwidth
    if size == 2 and link.topology != "switch":
        rate = link.bandwidth
    passes = 2.0 if name == "all-reduce" else 1.0
    volume = moved if name == "collective-broadcast" else moved * share
    return 1e9 * passes * volume / rate + passes * _hops(axes, link)


def _hops(axes: tuple[int, ...], link: Link) -> float:
    if link.topology == "switch":
        return ceil(log2(prod(axes))) * link.latency_ns
    return sum(n // 2 for n in axes) * link.latency_ns


def _axes(size: int, link: Link) -> tuple[int, ...]:
    """Sizes of the axes of a torus that a group spans; one axis in the other topologies."""
    axes: list[int] = []
    if link.topology == "torus":
        rest = size
        for length in link.mesh:
            if rest > 1:
                axes.append(min(length, rest))
                rest = ceil(rest / length)
        if rest > 1:
            axes[-1:] = [(axes[-1] if axes else 1) * rest]
    return tuple(axes) or (size,)


def _permute_ns(
    moved: float, pairs: tuple[tuple[int, int], ...], devices: int, link: Link
) -> float:
    """Every device sends to one other; on a ring and a torus data passes what lies between."""
    distances = [_distance(a, b, devices, link) for a, b in pairs if a != b]
    longest = max(distances, default=0)
    return longest * (1e9 * moved / link.bandwidth + link.latency_ns)


def _distance(source: int, target: int, devices: int, link: Link) -> int:
    if link.topology == "switch":
        return 1
    hops = 0
    for length in _axes(max(devices, source + 1, target + 1), link):
        apart = abs(source % length - target % length)
        hops += min(apart, length - apart)
        source, target = source // length, target // length
    return hops
