"""Collectives that say less than they do: folded, reassociated, or gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllGatherOp, AllReduceOp, DynamicSliceOp, ReduceScatterOp
from mlirhlo.dialects.hlo.ops.base import Binary, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.collectives.common import (
    Surroundings,
    by_partition,
    groups_of,
    key_of,
    next_channel,
    reduction_of,
)
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True)
class _Simplifier(HloPass):
    """Tries a rewrite on every instruction, operands first, until none applies."""

    about: ClassVar[tuple[type[Instruction], ...]] = (AllGatherOp, AllReduceOp, ReduceScatterOp)
    """Where a module has none of these, there is nothing to do."""

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """Rewrites `op`; whether it did."""
        raise NotImplementedError

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites all; whether there was any."""
        if not module.candidates(*self.about):
            return False
        changed, again = False, True
        around = Surroundings.of(module)
        while again:
            again = False
            for op in tuple(module.instructions):
                if op.parent is not None and self.rewrite(op, around):
                    trace.rule_counts[self.name, self.name.replace("-", "_")] += 1
                    changed = again = True
        return changed


def _array(value: SSAValue | Instruction) -> ArrayShape | None:
    from mlirhlo.dialects.hlo.types import shape_of

    shape = value.shape if isinstance(value, Instruction) else shape_of(value.type)
    return shape if isinstance(shape, ArrayShape) else None


def _single(op: Instruction) -> bool:
    return len(op.inputs) == 1 and _array(op) is not None and not op.control_predecessors


@dataclass(frozen=True)
class _Reassociate(_Simplifier):
    exact = False
    collective: ClassVar[type[Instruction]]

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """op(collective(x), collective(y)) => collective(op(x, y))"""
        if not isinstance(op, Binary) or len(op.inputs) != 2 or op.control_predecessors:
            return False
        a, b = op.lhs.owner, op.rhs.owner
        cls = self.collective
        if not (isinstance(a, cls) and isinstance(b, cls)) or a is b:
            return False
        if not (_single(a) and _single(b) and op.lhs.has_one_use() and op.rhs.has_one_use()):
            return False
        if key_of(a, around) != key_of(b, around) or op.opcode.name != reduction_of(a, around):
            return False
        x, y = _array(a.inputs[0]), _array(b.inputs[0])
        if x is None or y is None or x.dimensions != y.dimensions:
            return False
        inner = make(op.opcode.name, (a.inputs[0], b.inputs[0]), x)
        outer = make(a.opcode.name, (inner,), op.shape, dict(a.properties))
        rewriter = Rewriter(op)
        rewriter.replace(op, (inner, outer))
        rewriter.erase_unread(a, b)
        for old in (a, b):
            if old.parent is not None and old.output.first_use is None:
                rewriter.erase(old)
        return True


@dataclass(frozen=True)
class AllReduceReassociatePass(_Reassociate):
    """Makes of two all-reduces, joined by what they reduce with, one.

    Before and after:

        %s = f32[8] add(all-reduce(%x), all-reduce(%y))   =>   %s = f32[8] all-reduce(add(%x, %y))

    Both have the same devices and reduction, and no other user. Keeps: values but for their rounding.
    Source: XLA's pass of this name.
    """

    name = "all-reduce-reassociate"
    collective: ClassVar[type[Instruction]] = AllReduceOp


@dataclass(frozen=True)
class ReduceScatterReassociatePass(_Reassociate):
    """Makes of two reduce-scatters, joined by what they reduce with, one.

    Before and after:

        %s = f32[2] add(reduce-scatter(%x), reduce-scatter(%y))   =>   %s = f32[2] reduce-scatter(add(%x, %y))

    Keeps: values but for their rounding. Source: XLA's pass of this name.
    """

    name = "reduce-scatter-reassociate"
    collective: ClassVar[type[Instruction]] = ReduceScatterOp


@dataclass(frozen=True)
class ReduceScatterCreatorPass(_Simplifier):
    """Makes of an all-reduce, of which each device takes its tile, a reduce-scatter.

    Before and after, on 4 partitions:

        %a = f32[8] all-reduce(%x), …   %d = f32[2] dynamic-slice(%a, %start), dynamic_slice_sizes={2}
          =>   %d = f32[2] reduce-scatter(%x), dimensions={0}, …

    `%start` must follow from partition-id alone, and be the device's place in its group times the tile.
    The all-reduce has no other user. Source: XLA's pass of this name.
    """

    name = "reduce-scatter-creator"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """dynamic-slice(all-reduce(x), own tile) => reduce-scatter(x)"""
        reduce = op.inputs[0].owner if isinstance(op, DynamicSliceOp) else None
        if not isinstance(reduce, AllReduceOp) or not _single(reduce):
            return False
        groups = groups_of(reduce, around)
        if groups is None or not reduce.output.has_one_use():
            return False
        dim = _own_tile(op, around, groups)
        if dim is None:
            return False
        properties = {**reduce.properties, "dimensions": integers((dim,))}
        Rewriter(op).replace(op, make("reduce-scatter", reduce.inputs, op.shape, properties))
        Rewriter(reduce).erase(reduce)
        return True


def _own_tile(
    op: Instruction, around: Surroundings, groups: tuple[tuple[int, ...], ...]
) -> int | None:
    """The dimension along which a dynamic-slice takes each device's tile, by its place in its group."""
    whole, part = _array(op.inputs[0]), _array(op)
    if whole is None or part is None or op.control_predecessors:
        return None
    cut = [
        d for d, (n, m) in enumerate(zip(whole.dimensions, part.dimensions, strict=True)) if n != m
    ]
    sizes = {len(group) for group in groups}
    if len(cut) != 1 or len(sizes) != 1 or len(op.inputs) != 1 + whole.rank:
        return None
    (dim,) = cut
    tile = part.dimensions[dim]
    starts = by_partition(op.inputs[1 + dim], around.partitions)
    if starts is None or tile * sizes.pop() != whole.dimensions[dim]:
        return None
    for group in groups:
        for place, device in enumerate(group):
            if device >= len(starts) or starts[device] != place * tile:
                return None
    return dim


@dataclass(frozen=True)
class AllGatherDynamicSliceSimplifierPass(_Simplifier):
    """Removes an all-gather of which each device takes what it gave.

    Before and after:

        %g = f32[8] all-gather(%x), …   %d = f32[2] dynamic-slice(%g, %start), dynamic_slice_sizes={2}   =>   %x

    Source: XLA's pass of this name.
    """

    name = "all-gather-dynamic-slice-simplifier"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """dynamic-slice(all-gather(x), own tile) => x"""
        gather = op.inputs[0].owner if isinstance(op, DynamicSliceOp) else None
        if not isinstance(gather, AllGatherOp) or not _single(gather):
            return False
        groups = groups_of(gather, around)
        if groups is None or gather.inputs[0].type != op.output.type:
            return False
        if _own_tile(op, around, groups) != gather.dimensions[0]:
            return False
        Rewriter(op).replace_by_value(op, gather.inputs[0])
        return True


@dataclass(frozen=True)
class AllGatherOptimizerPass(_Simplifier):
    """Gathers what an elementwise instruction makes, not what it reads.

    Before and after:

        %s = f32[8] add(all-gather(%x), all-gather(%y))   =>   %s = f32[8] all-gather(add(%x, %y))

    Both gather the same way and have no other user. Source: XLA's pass of this name.
    """

    name = "all-gather-optimizer"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """op(all-gather(x), all-gather(y)) => all-gather(op(x, y))"""
        if not op.opcode.elementwise or len(op.inputs) != 2 or op.control_predecessors:
            return False
        a, b = (v.owner for v in op.inputs)
        if not (isinstance(a, AllGatherOp) and isinstance(b, AllGatherOp)) or a is b:
            return False
        if not (_single(a) and _single(b)) or key_of(a, around) != key_of(b, around):
            return False
        x, y, result = _array(a.inputs[0]), _array(b.inputs[0]), _array(op)
        if x is None or y is None or result is None or x.dimensions != y.dimensions:
            return False
        if not all(v.has_one_use() for v in op.inputs):
            return False
        shape = ArrayShape(result.element_type, x.dimensions, (), result.layout)
        properties = {k: v for k, v in op.properties.items() if k not in ("proto_id", "sharding")}
        inner = make(op.opcode.name, (a.inputs[0], b.inputs[0]), shape, properties)
        outer = make("all-gather", (inner,), op.shape, dict(a.properties))
        rewriter = Rewriter(op)
        rewriter.replace(op, (inner, outer))
        for old in (a, b):
            rewriter.erase(old)
        return True


@dataclass(frozen=True)
class AllReduceSimplifierPass(_Simplifier):
    """Removes all-reduces and all-gathers in which every device is alone.

    Before and after:

        %a = f32[8] all-reduce(%x), replica_groups={{0},{1}}, …   =>   %x

    Source: XLA's pass of this name.
    """

    name = "all-reduce-simplifier"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """all-reduce(x) alone => x"""
        if not isinstance(op, AllReduceOp | AllGatherOp | ReduceScatterOp) or not _single(op):
            return False
        groups = op.replica_groups
        if groups is None or not groups.groups() or groups.group_size != 1:
            return False
        if op.channel_id and not op.use_global_device_ids and around.partitions > 1:
            return False  # ids are replicas, each with all its partitions
        if op.inputs[0].type != op.output.type:
            return False
        Rewriter(op).replace_by_value(op, op.inputs[0])
        return True


@dataclass(frozen=True)
class AllReduceFolderPass(_Simplifier):
    """Makes of an all-reduce of an all-reduce one over the devices of both.

    Before and after, on 4 partitions:

        %a = f32[8] all-reduce(%x), replica_groups={{0,1},{2,3}}, …
        %b = f32[8] all-reduce(%a), replica_groups={{0,2},{1,3}}, …
          =>   %b = f32[8] all-reduce(%x), replica_groups={{0,1,2,3}}, …

    Every device of the joined group counts once, and the inner one has no other user. Keeps: values but for their
    rounding. Source: XLA's pass of this name.
    """

    name = "all-reduce-folder"
    exact = False

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """all-reduce(all-reduce(x)) => all-reduce(x)"""
        inner = op.inputs[0].owner if isinstance(op, AllReduceOp) and _single(op) else None
        if not isinstance(inner, AllReduceOp) or not _single(inner):
            return False
        reduction = reduction_of(op, around)
        if reduction is None or reduction != reduction_of(inner, around):
            return False
        first, second = groups_of(inner, around), groups_of(op, around)
        if first is None or second is None or not inner.output.has_one_use():
            return False
        of = {device: group for group in first for device in group}
        merged = {tuple(d for device in group for d in of[device]) for group in second}
        found = {tuple(sorted(group)) for group in merged}
        if any(len(set(g)) != len(g) for g in found):
            return False
        if sum(map(len, found)) != around.partitions:
            return False
        groups = ReplicaGroupsAttr(ReplicaGroups.of(sorted(found)))
        properties = {**op.properties, "replica_groups": groups}
        properties["channel_id"] = next_channel(around.module)()
        Rewriter(op).replace(op, make("all-reduce", inner.inputs, op.shape, properties))
        Rewriter(inner).erase(inner)
        return True
