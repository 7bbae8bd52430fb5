"""Collectives that say less than they do: folded, reassociated, or gone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups, ReplicaGroupsAttr
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import (
    AllGatherOp,
    AllReduceOp,
    DynamicSliceOp,
    ParameterOp,
    ReduceScatterOp,
    ReshapeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction, classes_of
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import Opcode
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.interp.ops.collectives import GroupMode, group_mode
from mlirhlo.rewrites.collectives.common import (
    Ids,
    Surroundings,
    by_device,
    groups_of,
    ids_of,
    key_of,
    next_channel,
    reduction_of,
)
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


@dataclass(frozen=True)
class Simplifier(HloPass):
    """Tries a rewrite on every instruction, operands first, until none applies."""

    about: ClassVar[tuple[type[Instruction], ...]] = tuple(
        classes_of(
            lambda row: (
                (row.splits_groups or row.reduces_groups)
                and not (row.groups_partitions or row.is_asynchronous or row.newer)
            )
        )
    )
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
                if op.parent is None or holder(op).computation_name in around.wrapped:
                    continue
                if self.rewrite(op, around):
                    trace.rule_counts[self.name, self.name.replace("-", "_")] += 1
                    changed = again = True
        return changed


def array_of(value: SSAValue | Instruction) -> ArrayShape | None:
    """The shape, where it is an array's."""
    shape = value.shape if isinstance(value, Instruction) else shape_of(value.type)
    return shape if isinstance(shape, ArrayShape) else None


def is_single(op: Instruction) -> bool:
    """Whether it is about one array, and may move."""
    return len(op.inputs) == 1 and array_of(op) is not None and not op.control_predecessors


@dataclass(frozen=True)
class ReduceScatterCreatorPass(Simplifier):
    """Makes of an all-reduce, of which each device takes its tile, a reduce-scatter.

    Before and after, on 4 partitions:

        %a = f32[8] all-reduce(%x), …   %d = f32[2] dynamic-slice(%a, %start), dynamic_slice_sizes={2}
          =>   %d = f32[2] reduce-scatter(%x), dimensions={0}, …

    `%start` must follow from the device's numbers alone, and be its place in its group times the tile.
    The all-reduce has no other user; a reshape that leaves the dimension as it is may stand between.
    Source: XLA's pass of this name.
    """

    name = "reduce-scatter-creator"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """dynamic-slice(all-reduce(x), own tile) => reduce-scatter(x)"""
        if not isinstance(op, DynamicSliceOp) or (part := array_of(op)) is None:
            return False
        between = op.inputs[0].owner
        moved = between if isinstance(between, ReshapeOp) else None
        reduce = between if moved is None else moved.operand.owner
        if not isinstance(reduce, AllReduceOp) or not is_single(reduce):
            return False
        groups, whole = groups_of(reduce, around), array_of(reduce)
        if groups is None or whole is None or not reduce.output.has_one_use():
            return False
        dim = _own_tile(op, around, groups)
        if dim is None:
            return False
        if moved is not None:
            if not moved.output.has_one_use() or moved.control_predecessors:
                return False
            cut = part.dimensions[dim]
            dim = _unchanged(array_of(moved), dim, whole)
            if dim is None:
                return False
            sizes = (*whole.dimensions[:dim], cut, *whole.dimensions[dim + 1 :])
            part = ArrayShape(whole.element_type, sizes, (), whole.layout)
        properties = {**reduce.properties, "dimensions": integers((dim,))}
        made = [make("reduce-scatter", reduce.inputs, part, properties)]
        if moved is not None:
            made.append(make("reshape", made, op.shape))
        rewriter = Rewriter(op)
        rewriter.replace(op, made)
        if moved is not None:
            rewriter.erase(moved)
        rewriter.erase(reduce)
        return True


def _unchanged(reshaped: ArrayShape | None, dim: int, whole: ArrayShape) -> int | None:
    """The dimension that a reshape of `whole` left as it is and calls `dim`; None where it did not."""
    if reshaped is None:
        return None
    before = math.prod(reshaped.dimensions[:dim])
    for d, size in enumerate(whole.dimensions):
        if size == reshaped.dimensions[dim] and math.prod(whole.dimensions[:d]) == before:
            return d
    return None


def _own_tile(op: Instruction, around: Surroundings, groups: Ids) -> int | None:
    """The dimension along which a dynamic-slice takes each device's tile, by its place in its group."""
    whole, part = array_of(op.inputs[0]), array_of(op)
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
    starts = by_device(op.inputs[1 + dim], around)
    if starts is None or tile * sizes.pop() != whole.dimensions[dim]:
        return None
    for group in groups:
        for place, device in enumerate(group):
            if device >= len(starts) or starts[device] != place * tile:
                return None
    return dim


@dataclass(frozen=True)
class AllGatherDynamicSliceSimplifierPass(Simplifier):
    """Removes an all-gather of which each device takes what it gave.

    Before and after:

        %g = f32[8] all-gather(%x), …   %d = f32[2] dynamic-slice(%g, %start), dynamic_slice_sizes={2}   =>   %x

    Source: XLA's pass of this name.
    """

    name = "all-gather-dynamic-slice-simplifier"

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """dynamic-slice(all-gather(x), own tile) => x"""
        gather = op.inputs[0].owner if isinstance(op, DynamicSliceOp) else None
        if not isinstance(gather, AllGatherOp) or not is_single(gather):
            return False
        groups = groups_of(gather, around)
        if groups is None or gather.inputs[0].type != op.output.type:
            return False
        if _own_tile(op, around, groups) != gather.dimensions[0]:
            return False
        Rewriter(op).replace_by_value(op, gather.inputs[0])
        return True


@dataclass(frozen=True)
class AllGatherOptimizerPass(Simplifier):
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
        if not (is_single(a) and is_single(b)) or key_of(a, around) != key_of(b, around):
            return False
        x, y, result = array_of(a.inputs[0]), array_of(b.inputs[0]), array_of(op)
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
class AllReduceSimplifierPass(Simplifier):
    """Removes collectives in which every device is alone, and all-reduces of what all replicas have.

    Before and after:

        %a = f32[8] all-reduce(%x), replica_groups={{0},{1}}, …   =>   %x

    Of 4 replicas that have the same, a sum is 4 times its operand; the extrema, `and` and `or` are
    it. What replicas have follows from `parameter_replication`, constants and all-reduces of all.
    Source: XLA's pass of this name.
    """

    name = "all-reduce-simplifier"
    exact = False

    def rewrite(self, op: Instruction, around: Surroundings) -> bool:
        """all-reduce(x) alone => x; all-reduce(x) of n times the same, added => x * n"""
        if not isinstance(op, AllReduceOp | AllGatherOp | ReduceScatterOp) or not is_single(op):
            return False
        groups = groups_of(op, around)
        sizes = {len(group) for group in groups or ()}
        if len(sizes) != 1 or op.inputs[0].type != op.output.type:
            return False
        count = sizes.pop()
        if count == 1:
            Rewriter(op).replace_by_value(op, op.inputs[0])
            return True
        if not isinstance(op, AllReduceOp) or group_mode(op) is not GroupMode.CROSS_REPLICA:
            return False
        reduction = reduction_of(op, around)
        if reduction in (None, "multiply", "xor") or not _is_same(op.inputs[0], around):
            return False
        if reduction == "add" and (shape := array_of(op)) and shape.element_type is not et.PRED:
            Rewriter(op).replace(op, _multiplied(op, shape, count))
        else:
            Rewriter(op).replace_by_value(op, op.inputs[0])
        return True


def _is_of_operands(row: Opcode) -> bool:
    """Whether equal operands make equal results, on whatever replica."""
    local = not row.collective and not row.side_effect
    return row.elementwise or row.name == "iota" or (local and (row.moves or row.free))


def _is_same(value: SSAValue, around: Surroundings) -> bool:
    """Whether all replicas have the same value; of each partition on its own."""
    seen: set[Instruction] = set()
    stack = [value.owner]
    while stack:
        op = stack.pop()
        if not isinstance(op, Instruction):
            return False
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, ParameterOp):
            said = op.parameter_replication
            if holder(op) is not around.module.entry or said is None or not all(said.values):
                return False
        elif isinstance(op, AllReduceOp) and group_mode(op) is GroupMode.CROSS_REPLICA:
            if len(ids_of(op, around) or ()) != 1:
                return False
        elif _is_of_operands(op.opcode):
            stack += [operand.owner for operand in op.inputs]
        else:
            return False
    return True


def _multiplied(op: Instruction, shape: ArrayShape, count: int) -> list[Instruction]:
    import numpy as np

    scalar = ArrayShape(shape.element_type, ())
    value = np.array(count).astype(shape.element_type.dtype)
    literal = LiteralAttr(Literal.from_array(scalar, value))
    factor = make("constant", (), scalar, {"literal": literal})
    made = [factor]
    if shape.rank:
        made.append(make("broadcast", (factor,), shape, {"dimensions": integers(())}))
    return [*made, make("multiply", (op.inputs[0], made[-1]), shape)]


@dataclass(frozen=True)
class AllReduceFolderPass(Simplifier):
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
        inner = op.inputs[0].owner if isinstance(op, AllReduceOp) and is_single(op) else None
        if not isinstance(inner, AllReduceOp) or not is_single(inner):
            return False
        reduction = reduction_of(op, around)
        if reduction is None or reduction != reduction_of(inner, around):
            return False
        if group_mode(op) is not group_mode(inner) or not inner.output.has_one_use():
            return False
        if not _follow(groups_of(inner, around), groups_of(op, around)):
            return False
        found = _follow(ids_of(inner, around), ids_of(op, around))
        groups = ReplicaGroupsAttr(ReplicaGroups.of(found))
        properties = {**op.properties, "replica_groups": groups}
        if "channel_id" in properties:
            properties["channel_id"] = next_channel(around.module)()
        Rewriter(op).replace(op, make("all-reduce", inner.inputs, op.shape, properties))
        Rewriter(inner).erase(inner)
        return True


def _follow(first: Ids | None, second: Ids | None) -> list[tuple[int, ...]]:
    """Groups that reduce at once what two rounds do; none where some device would count twice."""
    if first is None or second is None:
        return []
    of = {device: group for group in first for device in group}
    found = {tuple(sorted(d for device in group for d in of[device])) for group in second}
    everyone = sorted(device for group in found for device in group)
    return sorted(found) if everyone == sorted(of) else []
