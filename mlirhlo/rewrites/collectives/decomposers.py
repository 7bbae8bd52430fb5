"""Collectives written with others, for backends that have not all of them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo import element_types as et
from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.attributes.dimensions import Slice, SliceAttr, SliceDimension
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllGatherOp, AllReduceOp, AllToAllOp, ReduceScatterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, default_layout
from mlirhlo.interp.ops.collectives import GroupMode, group_mode
from mlirhlo.rewrites.collectives.common import Ids, Surroundings, groups_of, ids_of, next_channel
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


def _number(value: int) -> Instruction:
    import numpy as np

    shape = ArrayShape(et.U32, ())
    literal = Literal.from_array(shape, np.array(value, np.uint32))
    return make("constant", (), shape, {"literal": LiteralAttr(literal)})


class _Place:
    """The u32[] place of this device in its group, by instructions for all modes.

    That of its id: the id itself where one group has all in order, else by a table. With ids of
    replicas that bring all their partitions, place * partitions + partition-id. Source: the index
    that XLA's decomposers compute.
    """

    def __init__(self, op: Instruction, ids: Ids, around: Surroundings) -> None:
        self.made: list[Instruction] = []
        mode = group_mode(op)
        joined = mode is GroupMode.CROSS_REPLICA_AND_PARTITION
        if joined and len(ids[0]) == 1:
            self.place = self._own("partition-id")
            return
        if mode is GroupMode.CROSS_REPLICA or joined:
            own = self._own("replica-id")
        elif mode is GroupMode.CROSS_PARTITION or around.replicas == 1:
            own = self._own("partition-id")
        else:
            own = self._numbered(self._own("replica-id"), around.partitions)
        self.place = own if ids == (tuple(range(len(ids[0]))),) else self._listed(own, ids)
        if joined and around.partitions > 1:
            self.place = self._numbered(self.place, around.partitions)

    def start(self, tile: int) -> Instruction:
        """Where the device's tile begins."""
        return self._add("multiply", self.place, self._keep(_number(tile)))

    def _keep(self, op: Instruction) -> Instruction:
        self.made.append(op)
        return op

    def _add(self, opcode: str, *operands: Instruction) -> Instruction:
        return self._keep(make(opcode, operands, ArrayShape(et.U32, ())))

    def _own(self, opcode: str) -> Instruction:
        return self._add(opcode)

    def _numbered(self, replica: Instruction, partitions: int) -> Instruction:
        product = self._add("multiply", replica, self._keep(_number(partitions)))
        return self._add("add", product, self._own("partition-id"))

    def _listed(self, own: Instruction, ids: Ids) -> Instruction:
        import numpy as np

        places = np.zeros(sum(map(len, ids)), np.uint32)
        for group in ids:
            places[list(group)] = np.arange(len(group))
        rows = ArrayShape(et.U32, (len(places),), (), default_layout(1))
        one = ArrayShape(et.U32, (1,), (), default_layout(1))
        table = LiteralAttr(Literal.from_array(rows, places))
        listed = self._keep(make("constant", (), rows, {"literal": table}))
        sizes = {"dynamic_slice_sizes": integers((1,))}
        return self._add("reshape", self._keep(make("dynamic-slice", (listed, own), one, sizes)))


@dataclass(frozen=True)
class AllGatherDecomposerPass(HloPass):
    """Writes all-gathers as all-reduces of arrays that are zero but for the device's own tile.

    Before and after, on 4 partitions:

        %g = f32[8] all-gather(%x), dimensions={0}, …
          =>   %u = f32[8] dynamic-update-slice(%zeros, %x, %start)   %g = f32[8] all-reduce(%u), …

    Values of pred are joined by `or`; of several arrays each is reduced on its own. Those of async
    computations stay. Source: XLA's pass of this name.
    """

    name = "all_gather_decomposer"
    exact = False

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in around.collectives(AllGatherOp):
            ids = ids_of(op, around)
            if ids is None or op.control_predecessors or not isinstance(op, AllGatherOp):
                continue
            wholes = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
            parts = op.input_shapes
            if not all(isinstance(s, ArrayShape) for s in (*wholes, *parts)):
                continue
            place = _Place(op, ids, around)
            made = place.made
            reduced: list[Instruction] = []
            for value, part, whole in zip(op.inputs, parts, wholes, strict=True):
                assert isinstance(part, ArrayShape)
                assert isinstance(whole, ArrayShape)
                start = place.start(part.dimensions[op.dimensions[0]])
                added = _gathered(op, value, whole, start)
                made += added
                reduced.append(added[-1])
            if isinstance(op.shape, TupleShape):
                made.append(make("tuple", reduced, op.shape))
            Rewriter(op).replace(op, made)
            changed = True
        return changed


def _gathered(
    op: AllGatherOp, value: SSAValue, whole: ArrayShape, start: Instruction
) -> list[Instruction]:
    """One array, gathered by a sum."""
    import numpy as np

    type_ = whole.element_type
    scalar = ArrayShape(type_, ())
    literal = LiteralAttr(Literal.from_array(scalar, np.zeros((), type_.dtype)))
    zero = make("constant", (), scalar, {"literal": literal})
    zeros = make("broadcast", (zero,), whole, {"dimensions": integers(())})
    none = _number(0)
    starts = [start if d == op.dimensions[0] else none for d in range(whole.rank)]
    update = make("dynamic-update-slice", (zeros, value, *starts), whole)
    keys = ("channel_id", "replica_groups", "use_global_device_ids", "constrain_layout", "metadata")
    properties = {k: v for k, v in op.properties.items() if k in keys}
    properties["to_apply"] = binary_computation(op, "or" if type_ is et.PRED else "add", type_)
    added = [zero, zeros, none, update] if whole.rank > 1 else [zero, zeros, update]
    return [*added, make("all-reduce", (update,), whole, properties)]


@dataclass(frozen=True)
class ReduceScatterDecomposerPass(HloPass):
    """Writes reduce-scatters as all-reduces of which each device takes its tile.

    Before and after, on 4 partitions:

        %r = f32[2] reduce-scatter(%x), dimensions={0}, …
          =>   %a = f32[8] all-reduce(%x), …   %r = f32[2] dynamic-slice(%a, %start), dynamic_slice_sizes={2}

    Of one array; those of async computations stay. Source: XLA's pass of this name.
    """

    name = "reduce-scatter-decomposer"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in around.collectives(ReduceScatterOp):
            shapes, ids = _array_of(op), ids_of(op, around)
            if not isinstance(op, ReduceScatterOp) or shapes is None or ids is None:
                continue
            whole, part = shapes
            (dim,) = op.dimensions
            properties = {k: v for k, v in op.properties.items() if k != "dimensions"}
            reduced = make("all-reduce", op.inputs, whole, properties)
            place = _Place(op, ids, around)
            start, none = place.start(part.dimensions[dim]), _number(0)
            starts = [start if d == dim else none for d in range(whole.rank)]
            sizes = {"dynamic_slice_sizes": integers(part.dimensions)}
            own = make("dynamic-slice", (reduced, *starts), part, sizes)
            zero = [none] if whole.rank > 1 else []
            Rewriter(op).replace(op, [reduced, *place.made, *zero, own])
            changed = True
        return changed


@dataclass(frozen=True)
class AllReduceDecomposerPass(HloPass):
    """Writes all-reduces as reduce-scatters and all-gathers, where a dimension falls into tiles.

    Before and after, on 4 partitions:

        %a = f32[8] all-reduce(%x), …   =>   %r = f32[2] reduce-scatter(%x), dimensions={0}, …
                                             %a = f32[8] all-gather(%r), dimensions={0}, …

    The first dimension that divides is cut. Those of async computations stay.
    """

    name = "all-reduce-decomposer"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Writes; whether there was any."""
        del trace
        changed = False
        around = Surroundings.of(module)
        for op in around.collectives(AllReduceOp):
            shapes, groups = _array_of(op), groups_of(op, around)
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
            if "channel_id" in properties:
                properties["channel_id"] = next_channel(module)()
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
        for op in Surroundings.of(module).collectives(AllToAllOp):
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
    # The sharding of one array is no tuple's; what is an array has it.
    properties = {k: v for k, v in op.properties.items() if k not in ("dimensions", "sharding")}
    shared = {k: v for k, v in op.properties.items() if k == "sharding"}
    exchanged = make("all-to-all", made, TupleShape((part,) * count), properties)
    parts = [
        make("get-tuple-element", (exchanged,), part, {"index": integer(k), **shared})
        for k in range(count)
    ]
    joined = make("concatenate", parts, op.shape, {"dimensions": integers((dim,)), **shared})
    Rewriter(op).replace(op, [*made, exchanged, *parts, joined])
