"""Modelled time of scheduled kernels on a described device: what decides which kernels are fused.

A launch takes its overhead, and then as long as the slower of two: moving its bytes, from memory and from the L2
cache, or computing. Both slow down where there are too few threads to fill the device. What is computed where it is
read counts as often as it is read; chains of rows compute an element once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log2, prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    KernelOp,
    MapOp,
    ReturnOp,
    ScanOp,
    SortOp,
    TopKOp,
    sizes_of,
)
from mlirhlo.lowering.gpu.affine import simplified
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import Schedule, element_of, schedule_of

LAUNCH_NS = 1000.0
"""From the end of one launch to the start of the next."""
_SECTOR = 32
_CACHE_RATE = 3.0
"""How much faster the L2 cache is than memory."""
_FILLING_THREADS = 512
"""Of a multiprocessor: fewer do not keep its memory pipes busy."""
_COMPUTING_THREADS = 256
"""Of a multiprocessor: fewer leave arithmetic units idle."""
_UNITS = 16.0
"""How many times as fast matrix units are as the other ones."""
_EFFICIENCY = 0.5
"""Of products of matrices, against the peak."""
_TILE = 64
"""Rows and columns of a product for which a factor is read once."""
_HELD = 32
"""Elements of a row that a thread keeps."""

_ELEMENTWISE = (AssembleOp, ConstantOp, GatherOp, MapOp, ReturnOp)


@dataclass(slots=True)
class LaunchCost:
    """What one launch does."""

    threads: float = 1.0
    memory_bytes: float = 0.0
    """To and from memory."""
    cache_bytes: float = 0.0
    """To and from the L2 cache, memory's among them."""
    instructions: float = 0.0
    """Of all threads."""
    products: float = 0.0
    """Multiplications of matrix units."""

    def time(self, device: GpuDevice) -> float:
        """Nanoseconds."""
        filled = min(1.0, self.threads / (device.core_count * _FILLING_THREADS))
        busy = min(1.0, self.threads / (device.core_count * _COMPUTING_THREADS))
        rate = device.memory_bandwidth * 1e-9 * max(filled, 1e-4)
        moving = max(self.memory_bytes, self.cache_bytes / _CACHE_RATE) / rate
        peak = device.core_count * device.fpus_per_core * device.clock_rate_ghz
        computing = self.instructions / (peak * max(busy, 1e-5))
        computing += self.products / (peak * _UNITS * _EFFICIENCY)
        return LAUNCH_NS + max(moving, computing)


@dataclass(slots=True)
class KernelCost:
    """What the launches of a kernel do."""

    launches: list[LaunchCost] = field(default_factory=list[LaunchCost])
    spaces: frozenset[tuple[int, ...]] = frozenset()
    """What its launches walk: the sizes of results, and of what is folded to them."""
    is_elementwise: bool = True
    """Whether nothing is folded, so that any element may be computed where it is read."""

    @property
    def memory_bytes(self) -> float:
        """To and from memory."""
        return sum(launch.memory_bytes for launch in self.launches)

    def time(self, device: GpuDevice) -> float:
        """Nanoseconds."""
        return sum(launch.time(device) for launch in self.launches)


def kernel_cost(kernel: KernelOp, device: GpuDevice) -> KernelCost:
    """What a scheduled kernel does on a device."""
    groups: dict[int, list[Operation]] = {}
    schedules: dict[int, Schedule] = {}
    for op in kernel.block.ops:
        if (schedule := schedule_of(op)) is not None:
            groups.setdefault(schedule.launch, []).append(op)
            schedules.setdefault(schedule.launch, schedule)
    spaces = {sizes_of(value) for ops in groups.values() for op in ops for value in op.results}
    folds = [op for op in kernel.block.ops if isinstance(op, FoldOp | ContractOp)]
    spaces |= {op.space for op in folds}
    is_elementwise = all(isinstance(op, _ELEMENTWISE) for op in kernel.block.ops)
    found = KernelCost(spaces=frozenset(spaces), is_elementwise=is_elementwise)
    for number in sorted(groups):
        found.launches += _Launch(groups[number], schedules[number], device).costs()
    returned = kernel.results_returned
    for at, value in enumerate(
        returned
    ):  # results that nothing computes, or that are there already
        owner = value.owner
        if (
            isinstance(owner, ConstantOp)
            or not isinstance(owner, Operation)
            or value in returned[:at]
        ):
            size = _bytes(value)
            found.launches.append(LaunchCost(size / 4, 2 * size, 2 * size))
    return found


def _bytes(value: SSAValue) -> float:
    return prod(sizes_of(value)) * element_of(value).byte_size


def rounds_of(op: Operation) -> int:
    """How often a body runs for an element of the result."""
    if isinstance(op, FoldOp):
        return prod(op.folded)
    return prod(op.contracted) if isinstance(op, ContractOp) else 1


def _code(op: Operation) -> float:
    """Instructions of the bodies of an op, run once."""
    inner = (i for region in op.regions for i in region.block.ops)
    code = sum(i.opcode.instructions if isinstance(i, Instruction) else 1.0 for i in inner)
    return code + 2.0 * len(op.operands)


class _Launch:
    """Ops that are computed together, and what is computed where they read it."""

    def __init__(self, ops: Sequence[Operation], schedule: Schedule, device: GpuDevice) -> None:
        self.ops, self.schedule, self.device = ops, schedule, device
        self.cost = LaunchCost()
        self.demand: dict[Operation, float] = {}
        """Elements that are computed, by op."""
        self.read: dict[SSAValue, float] = {}
        """Bytes that requests for a value move."""
        self.is_chain = schedule.kind in ("rows", "staged_rows", "columns")

    def costs(self) -> list[LaunchCost]:
        """Of the launch, and of those that finish its work."""
        cost, kind = self.cost, self.schedule.kind
        outputs = [value for op in self.ops for value in op.results]
        for op in self.ops:
            self.demand[op] = max((prod(sizes_of(v)) for v in op.results), default=0)
        for op in self._in_order():
            self._count(op)
        passes = self._passes()
        for value, moved in self.read.items():
            size = _bytes(value)
            cost.cache_bytes += max(moved, min(size, moved)) * passes
            is_cached = size <= self.device.l2_cache_size / 2
            cost.memory_bytes += min(size, moved) if is_cached else moved * passes
        written = sum(map(_bytes, outputs))
        cost.memory_bytes += written
        cost.cache_bytes += written
        cost.threads = self._threads()
        if kind in ("sort", "radix_sort", "top_k", "library", "select_and_scatter"):
            # These go over their elements again and again.
            times = max(1.0, log2(max(2.0, cost.threads)))
            cost.memory_bytes *= times
            cost.cache_bytes *= times
        if self.schedule.parts > 1:
            partial = prod(sizes_of(outputs[0])) * self.schedule.parts * 4.0
            return [cost, LaunchCost(partial / 4, partial, partial)]
        return [cost, LaunchCost(cost.threads)] if kind == "scan" else [cost]

    def _in_order(self) -> list[Operation]:
        """The ops and all they compute where they read it, readers first."""
        seen = dict.fromkeys(self.ops)
        stack = list(self.ops)
        while stack:
            for value in stack.pop().operands:
                owner = value.owner
                if isinstance(owner, Operation) and owner not in seen and self._is_inner(owner):
                    seen[owner] = None
                    stack.append(owner)
        block = self.ops[0].parent
        assert block is not None
        return [op for op in reversed(list(block.ops)) if op in seen]

    def _is_inner(self, op: Operation) -> bool:
        return not isinstance(op, ConstantOp) and schedule_of(op) is None

    def _is_product(self, op: Operation) -> bool:
        """Whether it is computed in tiles."""
        return isinstance(op, ContractOp) and self.schedule.kind != "elements"

    def _count(self, op: Operation) -> None:
        """Adds what an op computes and reads."""
        evaluations = self.demand[op] * rounds_of(op)
        if self._is_product(op):
            scale = _UNITS if self.schedule.kind == "tiles" else 1.0
            self.cost.products += evaluations * scale
        else:
            self.cost.instructions += evaluations * _code(op)
        maps = getattr(op, "index_maps", None)
        for number, value in enumerate(op.operands):
            map_ = maps[number] if maps is not None and number < len(maps) else None
            times = self._times(op, value, map_, evaluations)
            owner = value.owner
            if isinstance(owner, Operation) and isinstance(owner, ConstantOp):
                continue
            if isinstance(owner, Operation) and self._is_inner(owner):
                known = self.demand.get(owner, 0.0)
                self.demand[owner] = max(known, times) if self.is_chain else known + times
            elif owner not in self.ops:
                width = element_of(value).byte_size
                moved = times * (width if self._is_coalesced(op, map_) else max(width, _SECTOR))
                self.read[value] = max(self.read.get(value, 0.0), moved)

    def _times(
        self, op: Operation, value: SSAValue, map_: AffineMap | None, evaluations: float
    ) -> float:
        """How many elements of an operand are read; neighbours that read the same one share it."""
        if self._is_product(op):
            return max(evaluations / _TILE, prod(sizes_of(value)))
        if map_ is None:
            return min(evaluations, prod(sizes_of(value))) if self.is_chain else evaluations
        space: Sequence[int] = getattr(op, "space", ())
        used = {d for expr in map_.results for d in expr.used_dims()}
        if self.is_chain:
            return prod(space[d] for d in used)
        if space and len(space) - 1 not in used and isinstance(op, MapOp):
            return evaluations / max(1, min(space[-1], 32))
        return evaluations

    def _is_coalesced(self, op: Operation, map_: AffineMap | None) -> bool:
        """Whether neighbouring threads read neighbours, or the same."""
        if map_ is None or self.schedule.kind not in ("elements", "rows", "columns"):
            return True
        space: Sequence[int] = getattr(op, "space", ())
        rank = len(sizes_of(op.results[0])) if self.schedule.kind != "rows" else len(space)
        across = next((d for d in reversed(range(rank)) if space[d] > 1), None)
        if across is None or not map_.results:
            return True
        factors = [simplified(expr, tuple(space)).factor(across) for expr in map_.results]
        return all(f == 0 for f in factors[:-1]) and factors[-1] in (0, 1, -1)

    def _passes(self) -> int:
        """How often the elements of rows are read: once where threads hold them."""
        if self.schedule.kind != "rows":
            return 1
        folds = [op for op in self.demand if isinstance(op, FoldOp)]
        length = max((prod(op.folded) for op in folds), default=1)
        if length <= max(self.schedule.row_threads, 1) * _HELD:
            return 1
        return len(folds) + any(
            len(sizes_of(v)) == len(folds[0].space) for o in self.ops for v in o.results
        )

    def _threads(self) -> float:
        """Of all blocks."""
        schedule, first = self.schedule, self.ops[0]
        results = max((prod(sizes_of(v)) for op in self.ops for v in op.results), default=1)
        if self.is_chain:
            folds = [op for op in self.demand if isinstance(op, FoldOp)]
            rows = prod(sizes_of(folds[0].outputs[0])) if folds else results
            return rows * max(schedule.row_threads, 1) * max(schedule.parts, 1)
        if any(map(self._is_product, self.demand)):
            return results / 8
        if isinstance(first, ScanOp | SortOp | TopKOp) or schedule.kind == "elements":
            return results / max(schedule.vector, 1)
        return results
