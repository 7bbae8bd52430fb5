"""`all-reduce-combiner`, `all-gather-combiner`, `reduce-scatter-combiner`, `collective-permute-combiner`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.sharding import ShardingAttr
from mlirhlo.dialects.hlo.attributes.sharding_values import Sharding
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.collectives.common import Surroundings, key_of
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class _Combiner(HloPass):
    """Joins collectives of one kind that do not depend on each other."""

    opcode: ClassVar[str]

    combine_threshold_in_bytes: int = 30 * 1024 * 1024
    """Operands of one instruction are together no larger."""
    combine_threshold_count: int = 256
    """One instruction has no more operands."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Joins; whether any were."""
        del trace
        if not module.candidates(OP_CLASSES[self.opcode]):
            return False
        changed = False
        around = Surroundings.of(module)
        for computation in tuple(module.computations):
            changed |= self._in(computation, around)
        return changed

    def _in(self, computation: ComputationOp, around: Surroundings) -> bool:
        instructions = instruction_list(computation)
        keys: dict[Hashable, list[Instruction]] = {}
        for op in instructions:
            if op.opcode.name == self.opcode and _is_plain(op):
                keys.setdefault(self._key(op, around), []).append(op)
        changed = False
        for members in keys.values():
            if len(members) > 1:
                changed |= self._join(computation, members)
        return changed

    def _key(self, op: Instruction, around: Surroundings) -> Hashable:
        """Equal for those that may be joined."""
        return key_of(op, around), op.properties.get("sharding")

    def _join(self, computation: ComputationOp, members: Sequence[Instruction]) -> bool:
        """Members that are as many of their kind away from the parameters do not depend on each other."""
        ours = set(members)
        depth: dict[SSAValue, int] = {}
        levels: dict[int, list[Instruction]] = {}
        for op in instruction_list(computation):
            at = max((depth[v] for v in op.operands), default=0)
            if op in ours:
                levels.setdefault(at, []).append(op)
                at += 1
            depth[op.output] = at
        changed = False
        for level in levels.values():
            for group in self._bounded(level):
                if len(group) > 1:
                    _combine(group)
                    changed = True
        if changed:
            _sort(computation)
        return changed

    def _bounded(self, level: Sequence[Instruction]) -> list[list[Instruction]]:
        groups: list[list[Instruction]] = []
        size = 0
        for op in level:
            own = op.shape.byte_size if isinstance(op.shape, ArrayShape) else 0
            full = len(groups[-1]) == self.combine_threshold_count if groups else True
            if full or size + own > self.combine_threshold_in_bytes:
                groups.append([])
                size = 0
            groups[-1].append(op)
            size += own
        return groups


def _is_plain(op: Instruction) -> bool:
    return len(op.inputs) == 1 and isinstance(op.shape, ArrayShape) and not op.control_predecessors


def _combine(group: Sequence[Instruction]) -> None:
    """One instruction of all operands in the place of the last of the group."""
    last = group[-1]
    block = last.parent_block()
    assert block is not None
    shapes = tuple(op.shape for op in group)
    properties = {k: v for k, v in group[0].properties.items() if k != "proto_id"}
    sharding = group[0].properties.get("sharding")
    if isinstance(sharding, ShardingAttr):
        properties["sharding"] = ShardingAttr(Sharding.tuple_of([sharding.data] * len(group)))
    joined = make(last.opcode.name, [op.inputs[0] for op in group], TupleShape(shapes), properties)
    block.insert_op_before(joined, last)
    for index, op in enumerate(group):
        part = make("get-tuple-element", (joined,), op.shape, {"index": integer(index)})
        if sharding is not None:
            part.properties["sharding"] = sharding
        block.insert_op_before(part, last)
        replace(op.output, part.output)
    for op in group:
        block.erase_op(op)


def _sort(computation: ComputationOp) -> None:
    """Puts definitions before uses again, leaving the order as it is where that is so."""
    block = computation.block
    instructions = instruction_list(computation)
    done: set[Instruction] = set()
    for start in instructions:
        stack = [start]
        while stack:
            op = stack[-1]
            if op in done:
                stack.pop()
                continue
            missing = [
                v.owner
                for v in op.operands
                if isinstance(v.owner, Instruction) and v.owner not in done
            ]
            if missing:
                stack += missing[::-1]
                continue
            stack.pop()
            done.add(op)
            block.detach_op(op)
            block.insert_op_before(op, computation.terminator)


@dataclass(frozen=True)
class AllReduceCombinerPass(_Combiner):
    """Joins all-reduces of the same devices and reduction into one of several arrays.

    Before and after:

        %a = f32[8] all-reduce(%x), …   %b = f32[4] all-reduce(%y), …
          =>   %t = (f32[8], f32[4]) all-reduce(%x, %y), …   %a = … index=0   %b = … index=1

    None depends on another; bounded by bytes and by count. Shardings are equal, and kept.
    Source: XLA's pass of this name.
    """

    name = "all-reduce-combiner"
    opcode: ClassVar[str] = "all-reduce"


@dataclass(frozen=True)
class AllGatherCombinerPass(_Combiner):
    """Joins all-gathers of the same devices and dimension into one of several arrays.

    Before and after:

        %a = f32[8] all-gather(%x), …   %b = f32[16] all-gather(%y), …
          =>   %t = (f32[8], f32[16]) all-gather(%x, %y), …   %a = … index=0   %b = … index=1

    Source: XLA's pass of this name.
    """

    name = "all-gather-combiner"
    opcode: ClassVar[str] = "all-gather"


@dataclass(frozen=True)
class ReduceScatterCombinerPass(_Combiner):
    """Joins reduce-scatters of the same devices, dimension and reduction into one of several arrays.

    Before and after:

        %a = f32[2] reduce-scatter(%x), …   %b = f32[4] reduce-scatter(%y), …
          =>   %t = (f32[2], f32[4]) reduce-scatter(%x, %y), …   %a = … index=0   %b = … index=1

    Source: XLA's pass of this name.
    """

    name = "reduce-scatter-combiner"
    opcode: ClassVar[str] = "reduce-scatter"


@dataclass(frozen=True)
class CollectivePermuteCombinerPass(_Combiner):
    """Joins collective-permutes of the same pairs and channel into one of several arrays.

    Before and after:

        %a = f32[8] collective-permute(%x), …   %b = f32[4] collective-permute(%y), …
          =>   %t = (f32[8], f32[4]) collective-permute(%x, %y), …   %a = … index=0   %b = … index=1

    Source: XLA's pass of this name.
    """

    name = "collective-permute-combiner"
    opcode: ClassVar[str] = "collective-permute"

    ignore_channel_id: bool = False
    """Joins those of different channels too; the first of them stands for all. XLA's `xla_ignore_channel_id`."""

    def _key(self, op: Instruction, around: Surroundings) -> Hashable:
        channel = None if self.ignore_channel_id else op.properties.get("channel_id")
        return super()._key(op, around), channel
