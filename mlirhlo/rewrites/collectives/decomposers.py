"""Collectives written with others, for backends that have not all of them."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.attributes.dimensions import Slice, SliceAttr, SliceDimension
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllGatherOp, AllReduceOp, AllToAllOp, ReduceScatterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, default_layout
from mlirhlo.rewrites.collectives.common import Surroundings, groups_of
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter


def _array_of(op: Instruction) -> tuple[ArrayShape, ArrayShape] | None:
    if len(op.inputs) != 1 or op.control_predecessors:
        return None
    before, after = op.input_shapes[0], op.shape
    if isinstance(before, ArrayShape) and isinstance(after, ArrayShape):
        return before, after
    return None


def _scalar(value: int) -> Instruction:
    import numpy as np

    shape = ArrayShape(et.S32, ())
    literal = Literal.from_array(shape, np.array(value, np.int32))
    return make("constant", (), shape, {"literal": LiteralAttr(literal)})


def _own_start(
    groups: tuple[tuple[int, ...], ...], tile: int, count: int
) -> tuple[list[Instruction], Instruction]:
    """The s32[] start of the tile of each device, by its place in its group."""
    import numpy as np

    starts = np.zeros(count, np.int32)
    for group in groups:
        for place, device in enumerate(group):
            starts[device] = place * tile
    rows = ArrayShape(et.S32, (count,), (), default_layout(1))
    one = ArrayShape(et.S32, (1,), (), default_layout(1))
    literal = LiteralAttr(Literal.from_array(rows, starts))
    table = make("constant", (), rows, {"literal": literal})
    here = make("partition-id", (), ArrayShape(et.U32, ()))
    row = make("dynamic-slice", (table, here), one, {"dynamic_slice_sizes": integers((1,))})
    start = make("reshape", (row,), ArrayShape(et.S32, ()))
    return [table, here, row, start], start


@dataclass(frozen=True)
class AllGatherDecomposerPass(HloPass):
    """Writes all-gathers as all-reduces of arrays that are zero but for the device's own tile.

    Before and after, on 4 partitions:

        %g = f32[8] all-gather(%x), dimensions={0}, …
          =>   %u = f32[8] dynamic-update-slice(%zeros, %x, %start)   %g = f32[8] all-reduce(%u), …

    Values of pred are joined by `or`. For one replica, and groups of partitions. Source: XLA's pass of this name.
    """

    name = "all_gather_decomposer"
    exact = False

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in tuple(module.instructions):
            shapes = _array_of(op) if isinstance(op, AllGatherOp) else None
            groups = groups_of(op, around) if shapes is not None else None
            if isinstance(op, AllGatherOp) and shapes is not None and groups is not None:
                _decompose_gather(op, shapes[0], shapes[1], groups, module.num_partitions)
                changed = True
        return changed


def _decompose_gather(
    op: AllGatherOp,
    part: ArrayShape,
    whole: ArrayShape,
    groups: tuple[tuple[int, ...], ...],
    count: int,
) -> None:
    import numpy as np

    (dim,) = op.dimensions
    type_ = whole.element_type
    made, start = _own_start(groups, part.dimensions[dim], count)
    scalar = ArrayShape(type_, ())
    literal = LiteralAttr(Literal.from_array(scalar, np.zeros((), type_.dtype)))
    zero = make("constant", (), scalar, {"literal": literal})
    zeros = make("broadcast", (zero,), whole, {"dimensions": integers(())})
    none = _scalar(0)
    starts = [start if d == dim else none for d in range(whole.rank)]
    update = make("dynamic-update-slice", (zeros, op.inputs[0], *starts), whole)
    joins = "or" if type_ is et.PRED else "add"
    keys = ("channel_id", "replica_groups", "use_global_device_ids", "constrain_layout", "metadata")
    properties = {k: v for k, v in op.properties.items() if k in keys}
    properties["to_apply"] = binary_computation(op, joins, type_)
    result = make("all-reduce", (update,), whole, properties)
    Rewriter(op).replace(op, [*made, zero, zeros, none, update, result])


@dataclass(frozen=True)
class ReduceScatterDecomposerPass(HloPass):
    """Writes reduce-scatters as all-reduces of which each device takes its tile.

    Before and after, on 4 partitions:

        %r = f32[2] reduce-scatter(%x), dimensions={0}, …
          =>   %a = f32[8] all-reduce(%x), …   %r = f32[2] dynamic-slice(%a, %start), dynamic_slice_sizes={2}

    For one replica, and groups of partitions. Source: XLA's pass of this name.
    """

    name = "reduce-scatter-decomposer"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in tuple(module.instructions):
            shapes = _array_of(op) if isinstance(op, ReduceScatterOp) else None
            groups = groups_of(op, around) if shapes is not None else None
            if not isinstance(op, ReduceScatterOp) or shapes is None or groups is None:
                continue
            whole, part = shapes
            (dim,) = op.dimensions
            made, start = _own_start(groups, part.dimensions[dim], module.num_partitions)
            properties = {k: v for k, v in op.properties.items() if k != "dimensions"}
            reduced = make("all-reduce", op.inputs, whole, properties)
            none = _scalar(0)
            starts = [start if d == dim else none for d in range(whole.rank)]
            sizes = {"dynamic_slice_sizes": integers(part.dimensions)}
            own = make("dynamic-slice", (reduced, *starts), part, sizes)
            Rewriter(op).replace(op, [*made, reduced, none, own])
            changed = True
        return changed


@dataclass(frozen=True)
class AllReduceDecomposerPass(HloPass):
    """Writes all-reduces as reduce-scatters and all-gathers, where a dimension falls into tiles.

    Before and after, on 4 partitions:

        %a = f32[8] all-reduce(%x), …   =>   %r = f32[2] reduce-scatter(%x), dimensions={0}, …
                                             %a = f32[8] all-gather(%r), dimensions={0}, …

    The first dimension that divides is cut. For one replica, and groups of partitions.
    """

    name = "all-reduce-decomposer"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in tuple(module.instructions):
            shapes = _array_of(op) if isinstance(op, AllReduceOp) else None
            groups = groups_of(op, around) if shapes is not None else None
            if shapes is None or groups is None or len({len(g) for g in groups}) != 1:
                continue
            whole, count = shapes[0], len(groups[0])
            fitting = [d for d, n in enumerate(whole.dimensions) if n and n % count == 0]
            if not fitting or count == 1:
                continue
            dim = fitting[0]
            sizes = [n // count if d == dim else n for d, n in enumerate(whole.dimensions)]
            part = ArrayShape(whole.element_type, tuple(sizes), (), whole.layout)
            properties = {**op.properties, "dimensions": integers((dim,))}
            scattered = make("reduce-scatter", op.inputs, part, properties)
            del properties["to_apply"]
            used = [getattr(other, "channel_id", None) or 0 for other in module.instructions]
            properties["channel_id"] = integer(max(used) + 1)
            gathered = make("all-gather", (scattered,), op.shape, properties)
            Rewriter(op).replace(op, [scattered, gathered])
            changed = True
        return changed


@dataclass(frozen=True)
class AllToAllDecomposerPass(HloPass):
    """Writes all-to-alls of one array as all-to-alls of its pieces, or of an array of more dimensions.

    Before and after, on 2 partitions:

        %a = f32[4] all-to-all(%x), dimensions={0}, …
          =>   %t = (f32[2], f32[2]) all-to-all(%x[0:2], %x[2:4]), …   %a = f32[4] concatenate(%t.0, %t.1)

    Source: XLA's pass of this name.
    """

    name = "all_to_all_decomposer"

    decompose_to_tuple: bool = True
    """Makes a tuple of pieces; otherwise the array gets the dimensions that it lacks."""
    min_array_rank: int = 0
    """Dimensions of an array that stays one: the one that is exchanged is cut in two, ones follow it."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        for op in tuple(module.instructions):
            if not isinstance(op, AllToAllOp) or len(op.dimensions) != 1:
                continue
            shapes, groups = _array_of(op), op.replica_groups
            count = groups.group_size if groups is not None else None
            if shapes is None or count is None:
                continue
            if self.decompose_to_tuple:
                _decompose_exchange(op, shapes[0], count)
            elif shapes[0].rank < self.min_array_rank:
                _raise_exchange(op, shapes[0], count, self.min_array_rank)
            else:
                continue
            changed = True
        return changed


def _raise_exchange(op: AllToAllOp, whole: ArrayShape, count: int, rank: int) -> None:
    (dim,) = op.dimensions
    sizes = list(whole.dimensions)
    sizes[dim : dim + 1] = [count, sizes[dim] // count, *[1] * (rank - whole.rank - 1)]
    raised = ArrayShape(whole.element_type, tuple(sizes), (), default_layout(rank))
    before = make("reshape", op.inputs, raised)
    exchanged = make("all-to-all", (before,), raised, dict(op.properties))
    Rewriter(op).replace(op, [before, exchanged, make("reshape", (exchanged,), op.shape)])


def _decompose_exchange(op: AllToAllOp, whole: ArrayShape, count: int) -> None:
    (dim,) = op.dimensions
    tile = whole.dimensions[dim] // count
    sizes = tuple(tile if d == dim else n for d, n in enumerate(whole.dimensions))
    part = ArrayShape(whole.element_type, sizes, (), whole.layout)
    made: list[Instruction] = []
    for k in range(count):
        bounds = [SliceDimension(0, n) for n in whole.dimensions]
        bounds[dim] = SliceDimension(k * tile, (k + 1) * tile)
        cut = {"slice": SliceAttr(Slice(tuple(bounds)))}
        made.append(make("slice", op.inputs, part, cut))
    properties = {k: v for k, v in op.properties.items() if k != "dimensions"}
    exchanged = make("all-to-all", made, TupleShape((part,) * count), properties)
    parts = [
        make("get-tuple-element", (exchanged,), part, {"index": integer(k)}) for k in range(count)
    ]
    joined = make("concatenate", parts, op.shape, {"dimensions": integers((dim,))})
    Rewriter(op).replace(op, [*made, exchanged, *parts, joined])
