"""`cpu-parallel-task-assigner`: how many parts of an instruction's result run at the same time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

from mlirhlo.analysis.call_graph import Context, call_graph_of
from mlirhlo.analysis.cost import counter
from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS, Counts
from mlirhlo.analysis.cost.visitor import RULES
from mlirhlo.analysis.dataflow import in_place_pairs
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp, FusionOp, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.rewrites.passes import HloPass, Trace

_BY_PARTS = opcodes(
    lambda row: (
        (row.is_index_map and not row.free)
        or row.movement in (Movement.SLICE, Movement.GATHER, Movement.JOIN)
    )
) | {"reduce", "reduce-window"}
"""Opcodes beside element-wise ones whose results can be computed in parts."""

_FREE = opcodes(lambda row: row.is_index_map)
"""Opcodes that compute nothing."""

_CACHE_BYTES = 256 << 10
"""A part of an instruction that moves data is at least so large: a core's second cache."""
_CYCLES = 100_000
"""A part of any other takes at least so long: 50 µs at 2 GHz."""


def outer_partitions(shape: ArrayShape, wanted: int) -> tuple[int, ...]:
    """Into how many parts the outermost dimensions are cut, `wanted` in all if they are long enough."""
    layout = shape.layout
    order = range(shape.rank) if layout is None else layout.minor_to_major[::-1]
    sizes: list[int] = []
    for dim in order:
        sizes.append(shape.dimensions[dim])
        if prod(sizes) >= wanted:
            break
    wanted = min(prod(sizes), wanted)
    if not sizes or wanted < 1:
        return ()
    # As many in each dimension, then more in the outermost ones as far as they go.
    each = int(wanted ** (1 / len(sizes)))
    counts = [min(size, each) for size in sizes]
    if prod(counts) < wanted:
        for at, size in enumerate(sizes):
            others = prod(counts) // counts[at]
            counts[at] += max(0, min(size - counts[at], wanted // others - counts[at]))
    return tuple(counts)


@dataclass(frozen=True)
class CpuParallelTaskAssignerPass(HloPass):
    """Writes into instructions how many parts of them run at the same time.

    Before and after:

        %e = f32[1024,1024] exponential(%x)
          =>   %e = f32[1024,1024] exponential(%x), backend_config={"outer_dimension_partitions":["2"]}

    A part that moves data is at least 256 KiB; of such there are at most as many as the square root of the
    threads, rounded up. Any other costs at least 100000 cycles, counted as operations, twice the elementary
    functions and ten times the bytes. Looked at are the entry and what calls, loops and branches run; dots,
    convolutions, custom calls and updates in place have threads of their own, or none. Source: XLA:CPU's pass.
    """

    name = "cpu-parallel-task-assigner"

    max_parallelism: int = 8
    """Threads that there are."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Assigns; whether any instruction got parts."""
        del trace
        cost_of = counter(module.op)
        graph = module.known(call_graph_of)
        changed = False
        for computation in module.computations:
            context = graph.context(computation.computation_name)
            if computation.is_entry is None and context is not Context.SEQUENTIAL:
                continue
            for op in computation.instructions:
                changed |= self._assign(op, graph.computations, cost_of)
        return changed

    def _assign(
        self,
        op: Instruction,
        computations: Mapping[str, ComputationOp],
        cost_of: Callable[[Instruction], Counts],
    ) -> bool:
        shape = op.shape
        if not isinstance(shape, ArrayShape) or not _is_parallel(op, computations):
            return False
        try:
            config: Any = json.loads(op.backend_config) if op.backend_config else {}
        except ValueError:
            return False
        if "outer_dimension_partitions" in config:
            return False
        if isinstance(op, FusionOp) and _is_small(op, shape, computations[op.calls]):
            return False
        tasks = self._tasks(shape, cost_of(op))
        if tasks <= 1:
            return False
        parts = outer_partitions(shape, tasks)
        if prod(parts) <= 1:
            return False
        config["outer_dimension_partitions"] = [str(part) for part in parts]
        op.properties["backend_config"] = string(json.dumps(config, separators=(",", ":")))
        return True

    def _tasks(self, shape: ArrayShape, cost: Counts) -> int:
        touched = max(1, int(cost.get(BYTES)))
        if cost.get(FLOPS) / touched <= 1:
            most = min(self.max_parallelism, ceil(sqrt(self.max_parallelism)))
            parts = shape.element_count * shape.element_type.byte_size // _CACHE_BYTES
        else:
            most = self.max_parallelism
            cycles = cost.get(FLOPS) + 2 * cost.get(TRANSCENDENTALS) + 10 * touched
            parts = int(cycles) // _CYCLES
        return min(most, max(1, parts))


def _is_small(op: FusionOp, shape: ArrayShape, body: ComputationOp) -> bool:
    """Whether it is certain, without counting, that a fusion stays in one part: its result is small, and
    so is a bound of its cycles, in which every reader of an operand reads all of it."""
    if shape.byte_size >= 2 * _CACHE_BYTES:
        return False
    cycles = 10 * shape.byte_size
    for inner in body.instructions:
        result = inner.shape
        if not isinstance(result, ArrayShape) or result.is_dynamic:
            return False
        row = inner.opcode
        if row.name == "parameter":
            cycles += 10 * result.byte_size * len(tuple(inner.output.uses))
        elif row.name == "constant":
            cycles += 10 * result.byte_size
        elif row.name not in _FREE:
            if not row.elementwise or row.name in RULES:
                return False
            cycles += max(2, row.flops) * result.element_count
    return cycles < 2 * _CYCLES


def _is_parallel(op: Instruction, computations: Mapping[str, ComputationOp]) -> bool:
    """Whether all of the result can be computed apart."""
    if isinstance(op, FusionOp):
        return op.kind == "kLoop" and not in_place_pairs(op, computations)
    name = op.opcode.name
    if name in ("constant", "rng", "parameter"):
        return False
    return bool(op.opcode.elementwise) or name in _BY_PARTS
