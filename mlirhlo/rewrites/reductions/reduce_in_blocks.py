"""`reduce-in-blocks`: large arrays that are only reduced are computed some rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from mlirhlo.analysis.neutral import neutral_elements
from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    BroadcastOp,
    ComputationOp,
    ConstantOp,
    DotOp,
    IotaOp,
    ReduceOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.quick import replace as replace_value
from mlirhlo.rewrites.fusion import running
from mlirhlo.rewrites.legalize.indexed_loops import S32, Writer, loop, shape_at
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit
from mlirhlo.rewrites.simplify.dce import DcePass

_Part: TypeAlias = "tuple[SSAValue, int | None]"
"""A value, and its dimension that blocks are cut from; None for the whole."""

_MOST_INSTRUCTIONS = 64
"""In a block's computation."""


@dataclass(frozen=True)
class ReduceInBlocksPass(HloPass):
    """Computes large products and reduces that are only reduced again in blocks of their rows.

    Before and after:

        %p = f32[4096,4096] dot(%x, %y), …
        ROOT %m = f32[4096] reduce(%p, %inf), dimensions={1}, to_apply=%max
            =>   ROOT %m: while over %i: %b = dynamic-slice(%x, %i, 0)   %p = f32[64,4096] dot(%b, %y), …
                 %r = f32[64] reduce(%p, %inf)   dynamic-update-slice(%m, %r, %i)

    Between the two reduces there may be elementwise instructions, broadcasts and transposes. A block stays in
    the caches; the whole need not fit memory. Rounds do not depend on each other, and the loop says so by
    `mlirhlo.parallel`. The last block begins early enough to be whole: some rows are computed twice then.
    A reduce to one number becomes one of each row first, where the reducer has a neutral element.
    """

    name = "reduce-in-blocks"
    exact = False
    """Sums to one number go in another order."""

    least_bytes: int = 4 << 20
    """Of an array that is worth a loop."""
    block_bytes: int = 512 << 10
    """Of it in a block."""
    least_rows: int = 64
    """In a block: fewer make a product read its other operand too often."""
    deepest: int = 256
    """Products that are summed for an element: more of them outweigh memory."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites; whether any reduce was."""
        if not any(map(self._is_large, module.candidates(ReduceOp))):
            return False
        computations = module.by_name()
        changed = False
        for computation in module.known(running):
            order = {op: at for at, op in enumerate(instruction_list(computation))}
            for op in reversed(order):
                if isinstance(op, ReduceOp) and op.parent is not None and self._is_large(op):
                    changed |= self._rewrite(op, order, computations)
        if changed:
            DcePass().run(module.afresh(), trace)
        return changed

    def _is_large(self, op: Instruction) -> bool:
        return any(_bytes(shape) >= self.least_bytes for shape in op.input_shapes)

    def _rewrite(
        self,
        op: ReduceOp,
        order: Mapping[Instruction, int],
        computations: Mapping[str, ComputationOp],
    ) -> bool:
        if op.control_predecessors or not all(_is_static(s) for s in op.input_shapes):
            return False
        sizes = shape_at(op.inputs[0]).dimensions
        kept = [d for d in range(len(sizes)) if d not in op.dimensions]
        along = max(kept or range(len(sizes)), key=lambda d: sizes[d])
        block = _Block.of(op, along, order)
        seeds = [_bytes(o.shape) for o in block.instructions if self._is_costly(o)]
        largest = max(seeds, default=0)
        if largest < self.least_bytes or 8 * sum(map(_bytes, _arrays(op.shape))) > largest:
            return False
        rows = max(self.block_bytes // (largest // sizes[along]), self.least_rows)
        if 2 * rows > sizes[along]:
            return False
        if not kept:
            neutral = neutral_elements(computations[op.to_apply])
            if neutral is None:
                return False
            op = _in_two(op, along, neutral)
            block = _Block.of(op, along, order)
        block.rewrite(op, rows)
        return True

    def _is_costly(self, op: Instruction) -> bool:
        """Whether fusion cannot leave its array out of memory."""
        if isinstance(op, DotOp):
            sizes = shape_at(op.inputs[0]).dimensions
            return prod(sizes[d] for d in op.lhs_contracting_dims) <= self.deepest
        return isinstance(op, ReduceOp)


def _bytes(shape: Shape) -> int:
    return shape.byte_size if isinstance(shape, ArrayShape) else 0


def _is_static(shape: Shape) -> bool:
    return isinstance(shape, ArrayShape) and not shape.is_dynamic


def _arrays(shape: Shape) -> Sequence[ArrayShape]:
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return [part for part in parts if isinstance(part, ArrayShape)]


def _resized(shape: ArrayShape, dim: int | None, size: int) -> ArrayShape:
    if dim is None:
        return shape
    return replace(shape, dimensions=(*shape.dimensions[:dim], size, *shape.dimensions[dim + 1 :]))


def _in_two(op: ReduceOp, along: int, neutral: Sequence[complex]) -> ReduceOp:
    """Reduces all but one dimension first, then that one; the first of the two."""
    block = op.parent
    assert block is not None
    write = Writer(lambda made: block.insert_op_before(made, op))
    count = len(op.inputs) // 2
    starts = [
        write.scalar(shape_at(v).element_type, n)
        for v, n in zip(op.inputs[count:], neutral, strict=True)
    ]
    length = (shape_at(op.inputs[0]).dimensions[along],)
    parts = tuple(ArrayShape(s.element_type, length) for s in _arrays(op.shape))
    shape = parts[0] if isinstance(op.shape, ArrayShape) else TupleShape(parts)
    others = tuple(d for d in op.dimensions if d != along)
    properties = {**op.properties, "dimensions": integers(others)}
    rows = write("reduce", *op.inputs[:count], *starts, shape=shape, **properties)
    found: list[SSAValue | Instruction] = [rows]
    if isinstance(shape, TupleShape):
        found = [write.part(rows, n) for n in range(count)]
    properties = {**op.properties, "dimensions": integers((0,))}
    whole = write("reduce", *found, *op.inputs[count:], shape=op.shape, **properties)
    for made in (rows, whole):
        inherit(made, op)
    replace_value(op.output, whole.output)
    op.detach()
    op.erase()
    assert isinstance(rows, ReduceOp)
    return rows


def _inputs(op: ReduceOp, along: int) -> Sequence[_Part]:
    """What a reduce reads."""
    count = len(op.inputs) // 2
    return [(v, along if at < count else None) for at, v in enumerate(op.inputs)]


def _read_by(op: Instruction, dim: int | None) -> Sequence[_Part] | None:
    """Operands of an instruction, and their dimensions that go along its dimension `dim`, None for those that are
    read as a whole; None for what is not computed in blocks."""
    inputs = op.inputs
    if dim is None:
        return [] if isinstance(op, ConstantOp) and shape_at(op).rank == 0 else None
    if isinstance(op, BroadcastOp):
        dims = op.dimensions
        return [(inputs[0], dims.index(dim) if dim in dims else None)]
    if isinstance(op, TransposeOp):
        return [(inputs[0], op.dimensions[dim])]
    if isinstance(op, IotaOp):
        return []
    if isinstance(op, ReduceOp) and isinstance(op.shape, ArrayShape):
        rank = len(shape_at(inputs[0]).dimensions)
        kept = [d for d in range(rank) if d not in op.dimensions]
        return [(inputs[0], kept[dim]), (inputs[1], None)]
    if isinstance(op, DotOp) and op.is_dense:
        return _factors(op, dim)
    if op.opcode.elementwise and inputs:
        sizes = shape_at(op).dimensions
        return [(v, dim if shape_at(v).dimensions == sizes else None) for v in inputs]
    return None


def _factors(op: DotOp, dim: int) -> Sequence[_Part]:
    lhs, rhs = op.inputs
    batch = len(op.lhs_batch_dims)
    if dim < batch:
        return [(lhs, op.lhs_batch_dims[dim]), (rhs, op.rhs_batch_dims[dim])]
    aside = {*op.lhs_batch_dims, *op.lhs_contracting_dims}
    left = [d for d in range(len(shape_at(lhs).dimensions)) if d not in aside]
    if dim < batch + len(left):
        return [(lhs, left[dim - batch]), (rhs, None)]
    aside = {*op.rhs_batch_dims, *op.rhs_contracting_dims}
    right = [d for d in range(len(shape_at(rhs).dimensions)) if d not in aside]
    return [(lhs, None), (rhs, right[dim - batch - len(left)])]


@dataclass
class _Block:
    """What a reduce is computed from, block by block."""

    along: int
    """The dimension of what is reduced that blocks are cut from."""
    instructions: dict[Instruction, int | None] = field(
        default_factory=dict["Instruction", "int | None"]
    )
    """What is computed in blocks, users before operands, and its dimension that is cut."""
    leaves: dict[_Part, None] = field(default_factory=dict["_Part", None])
    """What is read, whole or cut, or both."""

    @classmethod
    def of(cls, op: ReduceOp, along: int, order: Mapping[Instruction, int]) -> _Block:
        """All that nothing but a reduce reads, in the end."""
        block = cls(along)
        wanted: dict[Instruction, dict[int | None, None]] = {}
        heap: list[tuple[int, int, Instruction]] = []

        def want(value: SSAValue, dim: int | None) -> None:
            owner = value.owner
            assert isinstance(owner, Instruction)
            if owner not in wanted:
                wanted[owner] = {}
                heappush(heap, (-order.get(owner, -1), len(wanted), owner))
            wanted[owner][dim] = None

        inside: set[Instruction] = {op}
        for value, dim in _inputs(op, along):
            want(value, dim)
        while heap:
            *_, owner = heappop(heap)
            (dim, *others) = wanted[owner]
            read = None
            is_cut = dim is not None and all(use.operation in inside for use in owner.output.uses)
            if not others and (is_cut or isinstance(owner, ConstantOp)):
                is_free = len(inside) <= _MOST_INSTRUCTIONS and not owner.control_predecessors
                read = _read_by(owner, dim) if is_free and _is_static(owner.shape) else None
            if read is None:
                block.leaves.update(dict.fromkeys((owner.output, d) for d in wanted[owner]))
            else:
                inside.add(owner)
                block.instructions[owner] = dim
                for value, its in read:
                    want(value, its)
        return block

    def rewrite(self, op: ReduceOp, rows: int) -> None:
        """Puts the loop in place of the reduce."""
        block = op.parent
        assert block is not None
        before = Writer(lambda made: block.insert_op_before(made, op))
        size = shape_at(op.inputs[0]).dimensions[self.along]
        results = _arrays(op.shape)
        at = sum(d not in op.dimensions for d in range(self.along))
        state: list[SSAValue | Instruction] = [
            before.spread(before.scalar(s.element_type, 0), s.dimensions) for s in results
        ]
        state += dict.fromkeys(value for value, _ in self.leaves)

        def step(
            write: Writer, number: Instruction, parts: Sequence[Instruction]
        ) -> Sequence[Instruction]:
            first = write("multiply", number, write.scalar(S32, rows))
            first = write("minimum", first, write.scalar(S32, size - rows))
            values = self._values(write, first, parts[len(results) :], rows)
            shapes = tuple(_resized(s, at, rows) for s in results)
            shape = shapes[0] if isinstance(op.shape, ArrayShape) else TupleShape(shapes)
            inputs = [values[part] for part in _inputs(op, self.along)]
            reduced = write("reduce", *inputs, shape=shape, **op.properties)
            inherit(reduced, op)
            found = [reduced]
            if isinstance(shape, TupleShape):
                found = [write.part(reduced, n) for n in range(len(results))]
            updated = [
                write(
                    "dynamic-update-slice",
                    whole,
                    part,
                    *_starts(write, first, at, whole),
                    shape=whole.shape,
                )
                for whole, part in zip(parts, found, strict=False)
            ]
            return [*updated, *parts[len(results) :]]

        ends = loop(op, before, -(-size // rows), state, step)[: len(results)]
        turning = ends[0].inputs[0].owner
        assert isinstance(turning, Instruction)
        turning.properties["frontend_attributes"] = FrontendAttributesAttr(
            FrontendAttributes((("mlirhlo.parallel", "true"),))
        )
        result = ends[0]
        if isinstance(op.shape, TupleShape):
            result = before("tuple", *ends, shape=op.shape)
        inherit(turning, op)
        replace_value(op.output, result.output)
        op.detach()
        op.erase()

    def _values(
        self, write: Writer, first: Instruction, leaves: Sequence[Instruction], rows: int
    ) -> dict[_Part, SSAValue]:
        """All values of one block."""
        values: dict[_Part, SSAValue] = {}
        wholes = dict(zip(dict.fromkeys(v for v, _ in self.leaves), leaves, strict=True))
        for value, dim in self.leaves:
            part = leaf = wholes[value]
            if dim is not None:
                shape = _resized(shape_at(leaf), dim, rows)
                sizes = integers(shape.dimensions)
                starts = _starts(write, first, dim, leaf)
                part = write("dynamic-slice", leaf, *starts, shape=shape, dynamic_slice_sizes=sizes)
            values[value, dim] = part.output
        for op, dim in reversed(self.instructions.items()):
            shape = _resized(shape_at(op), dim, rows)
            operands = [values[part] for part in _read_by(op, dim) or ()]
            made = write(op.opcode.name, *operands, shape=shape, **op.properties)
            inherit(made, op)
            if isinstance(op, IotaOp) and op.iota_dimension == dim:
                start = write("convert", first, shape=ArrayShape(shape.element_type, ()))
                made = write("add", made, write.spread(start, shape.dimensions), shape=shape)
            values[op.output, dim] = made.output
        return values


def _starts(
    write: Writer, first: Instruction, dim: int, whole: Instruction
) -> Sequence[Instruction]:
    zero = write.scalar(S32, 0)
    return [first if d == dim else zero for d in range(len(shape_at(whole).dimensions))]
