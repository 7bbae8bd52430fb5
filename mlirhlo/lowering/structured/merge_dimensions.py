"""`structured-merge-dimensions`: neighbouring dimensions that no op tells apart become one.

    map(%x : 4x8x1x16, %y : 16) by (d0, d1, d2, d3) -> (d0, d1, 0, d3), (d3)
 => map(%x : 32x16, %y : 16) by (d0, d1) -> (d0, d1), (d1)

Every tensor has a boundary between each two neighbours of its dimensions of more than one element. A map ties
boundaries of what it reads to those of its iteration space (both are kept or both go), or cuts one for good; what
is cut nowhere goes. Dimensions of one element go too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TypeAlias, cast

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, ModuleOp, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.passes import ModulePass

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.quick import (
    create_op,
    function_type,
    insert_before,
    operands_of,
    region_of,
    retype,
)
from mlirhlo.dialects.structured import (
    AssembleOp,
    GatherOp,
    IndexOp,
    KernelOp,
    MapOp,
    ReturnOp,
    sizes_of,
)
from mlirhlo.dialects.structured.base import ints_attribute, maps_attribute
from mlirhlo.dialects.structured.dense import DYNAMIC
from mlirhlo.dialects.structured.index_maps import flattened, simplified
from mlirhlo.lowering.structured.bodies import passing_body

Boundary: TypeAlias = "tuple[SSAValue, int]"
"""Of a tensor, in front of a dimension."""
Groups: TypeAlias = "list[list[int]]"
"""Dimensions that are one, in order; those of one element are in no group."""


@dataclass(frozen=True)
class StructuredMergeDimensionsPass(ModulePass):
    """Makes one dimension of neighbours that no op of a kernel tells apart.

    Before:  `%r = structured.map ins(%x) maps [(d0, d1) -> (d0, d1)] -> tensor<4x8xf32>`
    After:   `%r = structured.map ins(%x) maps [(d0) -> (d0)] -> tensor<32xf32>`
    Keeps: the elements of all arrays in memory. Needs: nothing to have run; leaves kernels alone that hold other
    ops than map, assemble and gather, or empty arrays.
    """

    name = "structured-merge-dimensions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """As xDSL calls a pass."""
        del ctx
        for kernel in op.ops:
            if isinstance(kernel, KernelOp):
                merge_dimensions(kernel)


def merge_dimensions(kernel: KernelOp) -> bool:
    """Merges the dimensions of a kernel's arrays; whether any were."""
    ops = list(kernel.block.ops)
    values = [*kernel.block.args, *(r for op in ops for r in op.results)]
    if any(0 in sizes_of(v) for v in values) or not all(map(_may_merge, ops)):
        return False
    return _Merging(kernel, ops, values).run()


def _may_merge(op: Operation) -> bool:
    if isinstance(op, MapOp):
        indices = [inner.dimension for inner in op.body.block.ops if isinstance(inner, IndexOp)]
        return all(op.space[d] != 1 for d in indices)
    if isinstance(op, AssembleOp):
        whole = sizes_of(op.output)
        return all(
            n == 1 or m != 1 for v in op.pieces for n, m in zip(sizes_of(v), whole, strict=True)
        )
    return isinstance(op, GatherOp | ReturnOp) or (
        isinstance(op, ConstantOp) and not sizes_of(op.output)
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """Dimensions of an array that are read along dimensions of a space."""

    own: Sequence[int]
    dims: Sequence[int]
    """No dimension where the index is anything else."""
    is_whole: bool
    """Whether they are read from end to end."""
    others: Collection[int] = ()
    """Dimensions that such an index is computed from."""


def _row_major(expr: AffineExpr, axes: Sequence[int], sizes: Sequence[int]) -> Sequence[int]:
    """Neighbouring dimensions of a space whose elements an expression counts; none for any other expression."""
    used = expr.used_dims()
    dims = [d for d in axes if d in used]
    places = [axes.index(d) for d in dims]
    if not dims or places != list(range(places[0], places[0] + len(dims))):
        return ()
    numbers = [AffineExpr.dimension(d) for d in dims]
    count = flattened(numbers, [sizes[d] for d in dims])
    return dims if simplified(count, sizes) == expr else ()


class _Merging:
    def __init__(
        self, kernel: KernelOp, ops: Sequence[Operation], values: Sequence[SSAValue]
    ) -> None:
        self.kernel, self.ops, self.values = kernel, ops, values
        self.sizes = {v: sizes_of(v) for v in values}
        self.axes = {v: [d for d, n in enumerate(s) if n != 1] for v, s in self.sizes.items()}
        self._parent: dict[Boundary, Boundary] = {}
        self._cut: set[Boundary] = set()
        self.groups: dict[SSAValue, Groups] = {}

    def run(self) -> bool:
        for op in self.ops:
            if isinstance(op, MapOp):
                self._map(op)
            elif isinstance(op, AssembleOp):
                self._assemble(op)
            elif isinstance(op, GatherOp):
                self._gather(op)
        first, *others = self.kernel.results_returned
        for other in others:  # those of one shape share their loops
            if self.sizes[other] == self.sizes[first]:
                self._tie_all(other, first)
        self.groups = {v: self._groups(v) for v in self.values}
        if all(len(self.groups[v]) == len(self.sizes[v]) for v in self.values):
            return False
        for op in self.ops:
            if isinstance(op, MapOp | GatherOp):
                self._rewrite_reads(op)
            elif isinstance(op, AssembleOp):
                self._rewrite_assemble(op)
        for value in self.values:
            type_ = cast("TensorType[Attribute]", value.type)
            groups = self.groups[value]
            if len(groups) != len(self.sizes[value]):
                retype(value, TensorType(type_.element_type, self._sizes(value)))
        ending = cast(Operation, self.kernel.block.last_op)
        self.kernel.properties["function_type"] = function_type(
            [v.type for v in self.kernel.block.args], [v.type for v in operands_of(ending)]
        )
        return True

    def _sizes(self, value: SSAValue) -> list[int]:
        sizes = self.sizes[value]
        return [prod(sizes[d] for d in group) for group in self.groups[value]]

    # Boundaries

    def _find(self, boundary: Boundary) -> Boundary:
        parent = self._parent
        while (up := parent.get(boundary)) is not None:
            boundary = up
        return boundary

    def _tie(self, one: Boundary, other: Boundary) -> None:
        one, other = self._find(one), self._find(other)
        if one != other:
            self._parent[one] = other
            if one in self._cut:
                self._cut.add(other)

    def _cut_at(self, boundary: Boundary) -> None:
        self._cut.add(self._find(boundary))

    def _cut_around(self, value: SSAValue, dims: Iterable[int]) -> None:
        """On both sides of dimensions."""
        for dim in dims:
            self._cut_at((value, dim))
            after = [d for d in self.axes[value] if d > dim]
            if after:
                self._cut_at((value, after[0]))

    def _tie_all(self, one: SSAValue, other: SSAValue) -> None:
        for dim in self.axes[one][1:]:
            self._tie((one, dim), (other, dim))

    def _groups(self, value: SSAValue) -> Groups:
        groups: Groups = []
        for dim in self.axes[value]:
            if groups and self._find((value, dim)) not in self._cut:
                groups[-1].append(dim)
            else:
                groups.append([dim])
        return groups

    def _map(self, op: MapOp) -> None:
        space = op.outputs[0]
        for other in op.outputs[1:]:
            self._tie_all(other, space)
        for value, map_ in zip(op.inputs, op.index_maps, strict=True):
            self._read(value, map_, space)
        self._cut_around(
            space, [inner.dimension for inner in op.body.block.ops if isinstance(inner, IndexOp)]
        )

    def _read(
        self, value: SSAValue, map_: AffineMap, space: SSAValue, indexed: Sequence[int] = ()
    ) -> None:
        """An array read at mapped indices of a space; to those of the dimensions `indexed`, data is added."""
        runs = self._runs(value, map_, space, indexed)
        following = dict(pairwise(self.axes[space]))
        tied: set[int] = set()
        for run in runs:
            inner = [*((value, d) for d in run.own[1:]), *((space, d) for d in run.dims[1:])]
            for one, other in pairwise(inner):
                self._tie(one, other)
            tied.update(run.dims[1:])
        for outer, run in pairwise(runs):
            first = (value, run.own[0])
            if run.is_whole and outer.dims and following.get(outer.dims[-1]) == run.dims[0]:
                self._tie(first, (space, run.dims[0]))
                tied.add(run.dims[0])
            else:
                self._cut_at(first)
        used = [d for run in runs for d in (run.dims or run.others)]
        for i, j in following.items():
            if j not in tied and (i in used or j in used):
                self._cut_at((space, j))
        apart = {d for run in runs for d in run.others}
        self._cut_around(space, {*apart, *(d for d in used if used.count(d) > 1)})

    def _runs(
        self, value: SSAValue, map_: AffineMap, space: SSAValue, indexed: Sequence[int]
    ) -> list[_Run]:
        """The dimensions of an array by how they are read, each run as short as can be."""
        axes, own, sizes = self.axes[value], self.sizes[value], self.sizes[space]
        runs: list[_Run] = []
        at = 0
        while at < len(axes):
            expr = map_.results[axes[at]]
            run = _Run(axes[at : at + 1], (), False, expr.used_dims())
            match expr:
                case _ if axes[at] in indexed:
                    pass
                case AffineDimExpr(d):
                    run = _Run(run.own, (d,), own[axes[at]] == sizes[d])
                case AffineBinaryOpExpr(
                    AffineBinaryOpKind.Add, AffineDimExpr(d), AffineConstantExpr()
                ):
                    run = _Run(run.own, (d,), False)
                case _:
                    run = self._regrouping(value, axes[at:], map_, space) or run
            runs.append(run)
            at += len(run.own)
        return runs

    def _regrouping(
        self, value: SSAValue, axes: Sequence[int], map_: AffineMap, space: SSAValue
    ) -> _Run | None:
        """The first few dimensions of an array as other dimensions of a space with as many elements."""
        for count in range(1, len(axes) + 1):
            flat = self._flattened(value, axes[:count], map_, space)
            dims = _row_major(flat, self.axes[space], self.sizes[space])
            size = prod(self.sizes[value][d] for d in axes[:count])
            if dims and size == prod(self.sizes[space][d] for d in dims):
                return _Run(axes[:count], dims, True)
        return None

    def _flattened(
        self, value: SSAValue, dims: Sequence[int], map_: AffineMap, space: SSAValue
    ) -> AffineExpr:
        """The index along some dimensions of an array as if they were one."""
        if len(dims) == 1:
            return map_.results[dims[0]]
        exprs = [map_.results[d] for d in dims]
        flat = flattened(exprs, [self.sizes[value][d] for d in dims])
        return simplified(flat, self.sizes[space])

    def _assemble(self, op: AssembleOp) -> None:
        whole = self.sizes[op.output]
        rows = zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True)
        for piece, offsets, strides in rows:
            own = self.sizes[piece]
            for d, (offset, stride, size) in enumerate(zip(offsets, strides, own, strict=True)):
                if offset == 0 and stride == 1 and size == whole[d]:
                    continue
                for value in (piece, op.output):
                    if whole[d] != 1:
                        self._cut_at((value, d))
                    if offset == DYNAMIC or stride != 1:
                        self._cut_around(value, [d])
            following = dict(pairwise(self.axes[op.output]))
            for a, b in pairwise(self.axes[piece]):
                if following.get(a) == b:
                    self._tie((piece, b), (op.output, b))
                else:  # the piece has one element along what is between them
                    self._cut_at((piece, b))

    def _gather(self, op: GatherOp) -> None:
        self._read(op.source, op.offset_map, op.output, op.indexed)
        for value, map_ in zip(op.indices, op.index_maps, strict=True):
            self._read(value, map_, op.output)

    # Rewriting

    def _rewrite_reads(self, op: MapOp | GatherOp) -> None:
        space = op.results[0]
        numbers = {d: at for at, group in enumerate(self.groups[space]) for d in group}
        dims = [
            AffineExpr.dimension(numbers[d]) if d in numbers else AffineExpr.constant(0)
            for d in range(len(self.sizes[space]))
        ]
        rank = len(self.groups[space])

        def index(map_: AffineMap, value: SSAValue, group: Sequence[int]) -> AffineExpr:
            flat = self._flattened(value, group, map_, space)
            merged = [d for d in flat.used_dims() if len(self.groups[space][numbers[d]]) > 1]
            if not merged:
                return flat.replace_dims_and_symbols(dims, ())
            zeros = [AffineExpr.constant(0)] * len(dims)
            first = simplified(flat.replace_dims_and_symbols(zeros, ()), ())
            whole = AffineExpr.dimension(numbers[merged[0]])
            return whole if first == AffineExpr.constant(0) else whole + first

        def new(map_: AffineMap, value: SSAValue) -> AffineMap:
            exprs = [index(map_, value, group) for group in self.groups[value]]
            return AffineMap(rank, 0, tuple(exprs))

        read = op.inputs if isinstance(op, MapOp) else op.indices
        maps = [new(m, v) for m, v in zip(op.index_maps, read, strict=True)]
        op.properties["maps"] = maps_attribute(maps)
        if isinstance(op, MapOp):
            for inner in op.body.block.ops:
                if isinstance(inner, IndexOp):
                    at = numbers.get(inner.dimension, 0)
                    inner.properties["dim"] = IntegerAttr(at, i64)
            return
        op.properties["offsets"] = AffineMapAttr(new(op.offset_map, op.source))
        at_source = {d: at for at, group in enumerate(self.groups[op.source]) for d in group}
        op.properties["dimensions"] = ints_attribute(at_source[d] for d in op.indexed)

    def _rewrite_assemble(self, op: AssembleOp) -> None:
        groups = self.groups[op.output]
        pieces: list[SSAValue] = []
        offsets: list[Attribute] = []
        strides: list[Attribute] = []
        rows = zip(op.pieces, op.piece_offsets, op.piece_strides, strict=True)
        for piece, row, steps in rows:
            own = self.sizes[piece]
            sizes = [prod(own[d] for d in group) for group in groups]
            pieces.append(self._viewed(op, piece, sizes))
            inner = [prod(self.sizes[op.output][d] for d in group[1:]) for group in groups]
            offsets.append(
                ints_attribute(
                    row[g[0]] if row[g[0]] == DYNAMIC else row[g[0]] * n
                    for g, n in zip(groups, inner, strict=True)
                )
            )
            strides.append(ints_attribute(steps[g[0]] for g in groups))
        op.operands = [*pieces, *op.operands[len(pieces) :]]
        op.properties |= {"offsets": ArrayAttr(offsets), "strides": ArrayAttr(strides)}

    def _viewed(self, op: AssembleOp, piece: SSAValue, sizes: Sequence[int]) -> SSAValue:
        """A piece with the dimensions of one element that its rank needs."""
        if len(self.groups[piece]) == len(sizes):
            return piece
        element = cast("TensorType[Attribute]", piece.type).element_type
        exprs = [AffineExpr.dimension(d) for d, n in enumerate(sizes) if n != 1]
        maps = maps_attribute([AffineMap(len(sizes), 0, tuple(exprs))])
        body = passing_body([BY_MLIR[element]])
        new = create_op(
            MapOp, [piece], [TensorType(element, sizes)], {"maps": maps}, regions=[region_of(body)]
        )
        insert_before(op, new)
        return new.outputs[0]
