"""The computation of a kernel on as few dimensions as it needs, in the order of memory.

    x = f32[8,3,512,2]{2,1,3,0} …            x = f32[8,2,1536] …
    s = f32[8,2]{1,0} reduce(x), {1,2}   =>  s = f32[8,2] reduce(x), {2}

Layouts become the order of dimensions, with `transpose` where an instruction has two of them;
dimensions of one element go; neighbours that no instruction tells apart become one (`merging`). What
an instruction without a rule sees stays as it is. So builders of kernels see few forms of one thing:
a row is the last dimension, and equal kernels in other shapes are equal.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.attributes.dimensions import (
    Padding,
    PaddingAttr,
    PaddingDimension,
    Slice,
    SliceAttr,
    SliceDimension,
)
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import module_of, new_block
from mlirhlo.lowering.hlo_to_loops.folds import callee
from mlirhlo.lowering.hlo_to_loops.merging import (
    SAME_AS_OPERAND,
    Merging,
    arrays_in,
    is_regrouping,
    sizes_of,
)
from mlirhlo.rewrites.cloning import copy_computation

Groups: TypeAlias = "Sequence[tuple[int, ...]]"
"""For each dimension of a new array, the dimensions of the old one that it is."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A computation in canonical form."""

    computation: ComputationOp
    outputs: Sequence[SSAValue]
    operands: Sequence[SSAValue]


def canonical(
    outputs: Sequence[tuple[SSAValue, int | None]], operands: Sequence[SSAValue]
) -> Canonical | None:
    """What computes `outputs` (values, or arrays of that number in them) from `operands`.

    None when there is nothing to make simpler: where an array is empty, or a value is no array, or
    several of different shapes.
    """
    merging = Merging([v for v, _ in outputs], operands)
    values = [*operands, *(op.output for op in merging.order)]
    for value in values:
        shape = shape_of(value.type)
        parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
        if not all(isinstance(p, ArrayShape) and 0 not in p.dimensions for p in parts):
            return None
        if len({cast(ArrayShape, p).dimensions for p in parts}) > 1:
            return None  # arrays of several shapes, as of LAPACK's routines, share no dimensions
    if all(part is None for _, part in outputs) and _is_canonical(merging, values):
        results = [value for value, _ in outputs]
        computation = cast(ComputationOp, cast(Instruction, results[0].owner).parent_op())
        return Canonical(computation, results, operands)
    return _Rewriter(merging).run(outputs, operands)


def _is_canonical(merging: Merging, values: Sequence[SSAValue]) -> bool:
    """Whether all dimensions stay as they are, and all instructions: none of them is one that may go."""
    for value in values:
        for shape in arrays_in(value):
            layout = shape.layout
            if shape.dynamic or layout is None or layout != default_layout(shape.rank):
                return False
        if merging.groups(value) != _SINGLE[: len(sizes_of(value))]:
            return False
    return all(map(_stays, merging.order))


def _stays(op: Instruction) -> bool:
    """Whether an instruction is as its rule would make it, if its dimensions stay."""
    opcode = op.opcode.name
    if opcode in ("broadcast", "reduce"):
        dimensions = cast("tuple[int, ...]", cast(Any, op).dimensions)
        all_there = opcode == "broadcast" and len(dimensions) == len(sizes_of(op.output))
        return not all_there and dimensions == tuple(sorted(dimensions))
    if opcode in _RULES or opcode in SAME_AS_OPERAND or not op.opcode.elementwise:
        return opcode == "constant"
    sizes = sizes_of(op.output)
    return all(sizes_of(v) in ((), sizes) for v in op.inputs)


class _Rewriter:
    def __init__(self, merging: Merging) -> None:
        self.merging = merging
        self.block = new_block()
        self.new: dict[SSAValue, SSAValue] = {}
        self.have: dict[SSAValue, Groups] = {}
        """Dimensions of new values that are not as `merging` says."""
        self.callees: dict[str, ComputationOp] = {}

    def run(
        self, outputs: Sequence[tuple[SSAValue, int | None]], operands: Sequence[SSAValue]
    ) -> Canonical:
        for number, operand in enumerate(operands):
            shape = _shape(operand, self.groups(operand))
            properties: dict[str, Attribute] = {"parameter_number": integer(number)}
            self.new[operand] = self.make("parameter", [], shape, properties)
        parameters = [self.new[v] for v in operands]
        for op in self.merging.order:
            self.new[op.output] = self.rewrite(op)
        results: list[SSAValue] = []
        for value, part in outputs:
            if part is None:
                results.append(self.new[value])
            else:
                results.append(self.part(value, part, self.groups(value)))
        root = results[0]
        if len(results) > 1:
            shapes = TupleShape(tuple(arrays_in(v)[0] for v in results))
            root = self.make("tuple", results, shapes, {})
        computation = build.close("canonical", self.block, root)
        # In a module, where its instructions find the computations they call.
        module_of([*self.callees.values(), computation])
        return Canonical(computation, results, parameters)

    def groups(self, value: SSAValue) -> Groups:
        return self.merging.groups(value)

    def make(
        self,
        opcode: str,
        operands: Sequence[SSAValue],
        shape: Shape,
        properties: dict[str, Attribute],
    ) -> SSAValue:
        op = build.make(opcode, operands, shape, properties)
        build.append(self.block, op)
        return op.output

    def arrange(self, value: SSAValue, have: Groups, want: Groups) -> SSAValue:
        """The dimensions `have` in the order `want`; only those of one element may differ."""
        if tuple(have) == tuple(want):
            return value
        shape = arrays_in(value)[0]
        sizes = dict(zip(have, shape.dimensions, strict=True))
        both = [g for g in have if g in want]
        ordered = [g for g in want if g in sizes]
        if len(both) < len(have) and both != ordered:
            value = self.reshaped(value, [sizes[g] for g in both])
            have = both
        if both != ordered:
            order = [have.index(g) for g in ordered]
            moved = ArrayShape(shape.element_type, tuple(sizes[g] for g in ordered))
            value = self.make("transpose", [value], moved, {"dimensions": integers(tuple(order))})
        return self.reshaped(value, [sizes.get(g, 1) for g in want])

    def reshaped(self, value: SSAValue, sizes: Sequence[int]) -> SSAValue:
        shape = arrays_in(value)[0]
        if shape.dimensions == tuple(sizes):
            return value
        return self.make("reshape", [value], ArrayShape(shape.element_type, tuple(sizes)), {})

    def operand(self, value: SSAValue, want: Groups) -> SSAValue:
        """An operand with dimensions as its instruction wants them."""
        return self.arrange(self.new[value], self.have.get(value, self.groups(value)), want)

    def part(self, value: SSAValue, number: int, want: Groups) -> SSAValue:
        """An array of a value that has several, arranged."""
        owner = cast(Instruction, value.owner)
        if owner.opcode.name == "tuple":
            return self.operand(owner.inputs[number], want)
        new = self.new[value]
        if not isinstance(shape_of(new.type), TupleShape):
            return new
        properties: dict[str, Attribute] = {"index": integer(number)}
        array = self.make("get-tuple-element", [new], arrays_in(new)[number], properties)
        return self.arrange(array, self.have.get(value, self.groups(value)), want)

    def rewrite(self, op: Instruction) -> SSAValue:
        for name in op.called_computations:
            self.call(op, name)
        rule = _RULES.get(op.opcode.name)
        if rule is not None:
            return rule(self, op)
        if op.opcode.elementwise or op.opcode.name in SAME_AS_OPERAND:
            want = self.groups(op.output)
            operands = [self.operand(v, want if sizes_of(v) else ()) for v in op.inputs]
            if op.opcode.name in SAME_AS_OPERAND:
                return operands[0]
            return self.again(op, operands, _shape(op.output, want))
        return self.opaque(op)

    def again(
        self, op: Instruction, operands: Sequence[SSAValue], shape: Shape, **changed: Attribute
    ) -> SSAValue:
        """The same instruction on new operands."""
        properties = {**op.properties, **changed}
        properties.pop(CONTROL_PREDECESSORS, None)  # its last operands, which do not come along
        new = build.create(type(op), operands, type_of(shape), properties)
        build.append(self.block, new)
        return new.output

    def call(self, op: Instruction, name: str) -> None:
        calls = [(op, name)]
        while calls:
            op, name = calls.pop()
            if name not in self.callees:
                computation = callee(op, name)
                self.callees[name] = copy_computation(computation)
                calls += [(o, n) for o in computation.instructions for n in o.called_computations]

    def opaque(self, op: Instruction) -> SSAValue:
        """All dimensions in their logical order around an instruction without a rule."""
        operands = [self.operand(v, _single(sizes_of(v))) for v in op.inputs]
        shape = op.shape
        if isinstance(shape, TupleShape):
            parts = tuple(_row_major(cast(ArrayShape, p)) for p in shape.elements)
            self.have[op.output] = _single(parts[0].dimensions)
            return self.again(op, operands, TupleShape(parts))
        new = self.again(op, operands, _row_major(cast(ArrayShape, shape)))
        return self.arrange(new, _single(sizes_of(op.output)), self.groups(op.output))

    # One method for each opcode with a rule.

    def _constant(self, op: Any) -> SSAValue:
        return self.again(op, [], _shape(op.output, self.groups(op.output)))

    def _tuple(self, op: Any) -> SSAValue:
        return self.new[op.inputs[0]] if op.inputs else self.opaque(op)

    def _get_tuple_element(self, op: Any) -> SSAValue:
        return self.part(op.operand, op.index, self.groups(op.output))

    def _broadcast(self, op: Any) -> SSAValue:
        result = self.groups(op.output)
        to = dict(enumerate(cast("tuple[int, ...]", op.dimensions)))
        number = {d: at for at, group in enumerate(result) for d in group}
        groups = sorted(self.groups(op.operand), key=lambda g: number[to[g[0]]])
        operand = self.operand(op.operand, groups)
        dimensions = tuple(number[to[g[0]]] for g in groups)
        shape = _shape(op.output, result)
        if len(dimensions) == len(result):
            return operand
        return self.make("broadcast", [operand], shape, {"dimensions": integers(dimensions)})

    def _transpose(self, op: Any) -> SSAValue:
        renamed = [tuple(op.dimensions[d] for d in g) for g in self.groups(op.output)]
        return self.operand(op.operand, renamed)

    def _reduce(self, op: Any) -> SSAValue:
        count = len(op.inputs) // 2
        first = op.inputs[0]
        folded = set(op.dimensions)
        kept = [d for d in range(len(sizes_of(first))) if d not in folded]
        ordered = iter([tuple(kept[d] for d in g) for g in self.groups(op.output)])
        groups = [g if g[0] in folded else next(ordered) for g in self.groups(first)]
        operands = [self.operand(v, groups) for v in op.inputs[:count]]
        starts = [self.operand(v, ()) for v in op.inputs[count:]]
        dimensions = tuple(at for at, g in enumerate(groups) if g[0] in folded)
        shape = _shape(op.output, self.groups(op.output))
        return self.again(op, [*operands, *starts], shape, dimensions=integers(dimensions))

    def _iota(self, op: Any) -> SSAValue:
        groups = self.groups(op.output)
        shape = cast(ArrayShape, _shape(op.output, groups))
        if (op.iota_dimension,) in groups:
            at = groups.index((op.iota_dimension,))
            return self.make("iota", [], shape, {"iota_dimension": integer(at)})
        import numpy as np

        zero = Literal.from_array(shape, np.zeros(shape.dimensions, shape.element_type.dtype))
        return self.make("constant", [], shape, {"literal": LiteralAttr(zero)})

    def _reverse(self, op: Any) -> SSAValue:
        groups = self.groups(op.output)
        turned = tuple(at for at, g in enumerate(groups) if g[0] in op.dimensions)
        operand = self.operand(op.operand, groups)
        if not turned:
            return operand
        return self.again(op, [operand], _shape(op.output, groups), dimensions=integers(turned))

    def _slice(self, op: Any) -> SSAValue:
        groups = self.groups(op.operand)
        sizes = sizes_of(op.operand)
        parts: list[SliceDimension] = []
        for first, *rest in groups:
            part, inner = op.slices.dimensions[first], prod(sizes[d] for d in rest)
            parts.append(SliceDimension(part.start * inner, part.limit * inner, part.stride))
        shape = _shape(op.output, groups)
        operand = self.new[op.operand]
        if shape != arrays_in(operand)[0]:
            operand = self.again(op, [operand], shape, slice=SliceAttr(Slice(tuple(parts))))
        return self.arrange(operand, groups, self.groups(op.output))

    def _pad(self, op: Any) -> SSAValue:
        result = self.groups(op.output)
        groups = [*result, *(g for g in self.groups(op.operand) if g not in result)]
        sizes = sizes_of(op.operand)
        edges: list[PaddingDimension] = []
        for first, *rest in groups:
            edge, inner = op.padding.dimensions[first], prod(sizes[d] for d in rest)
            edges.append(PaddingDimension(edge.low * inner, edge.high * inner, edge.interior))
        operands = [self.operand(op.operand, groups), self.operand(op.padding_value, ())]
        padding = PaddingAttr(Padding(tuple(edges)))
        padded = self.again(op, operands, _shape(op.output, groups), padding=padding)
        return self.arrange(padded, groups, result)

    def _concatenate(self, op: Any) -> SSAValue:
        groups = self.groups(op.output)
        (along,) = op.dimensions
        at = [number for number, g in enumerate(groups) if g[0] == along]
        operands = [self.operand(v, groups) for v in op.inputs]
        if not at or len(operands) == 1:
            return operands[0]
        shape = _shape(op.output, groups)
        return self.again(op, operands, shape, dimensions=integers(tuple(at)))

    def _regroup(self, op: Any) -> SSAValue:
        operand, shape = op.operand, _shape(op.output, self.groups(op.output))
        if is_regrouping(op):
            return self.reshaped(self.new[operand], shape.dimensions)
        if op.opcode.name == "reshape":
            return self.opaque(op)
        return self.again(op, [self.new[operand]], shape)


def _single(sizes: Sequence[int]) -> Groups:
    return [(d,) for d in range(len(sizes))]


_SINGLE = tuple((d,) for d in range(64))
"""Dimensions of which none are one."""


def _row_major(shape: ArrayShape) -> ArrayShape:
    return _in_order(shape.element_type.name, shape.dimensions)


@functools.lru_cache(maxsize=1 << 12)
def _in_order(element_type: str, sizes: tuple[int, ...]) -> ArrayShape:
    """One object for each shape, which knows its type then."""
    return ArrayShape(PRIMITIVE_TYPES[element_type], sizes, (), default_layout(len(sizes)))


def _shape(value: SSAValue, groups: Groups) -> Any:
    """The shape of a value whose dimensions are groups of its own."""
    shapes = arrays_in(value)
    first = shapes[0].dimensions
    sizes = tuple([first[g[0]] if len(g) == 1 else prod([first[d] for d in g]) for g in groups])
    arrays = tuple([_in_order(s.element_type.name, sizes) for s in shapes])
    return TupleShape(arrays) if isinstance(shape_of(value.type), TupleShape) else arrays[0]


_RULES = {
    "constant": _Rewriter._constant,  # pyright: ignore[reportPrivateUsage]
    "tuple": _Rewriter._tuple,  # pyright: ignore[reportPrivateUsage]
    "get-tuple-element": _Rewriter._get_tuple_element,  # pyright: ignore[reportPrivateUsage]
    "broadcast": _Rewriter._broadcast,  # pyright: ignore[reportPrivateUsage]
    "transpose": _Rewriter._transpose,  # pyright: ignore[reportPrivateUsage]
    "reduce": _Rewriter._reduce,  # pyright: ignore[reportPrivateUsage]
    "iota": _Rewriter._iota,  # pyright: ignore[reportPrivateUsage]
    "reverse": _Rewriter._reverse,  # pyright: ignore[reportPrivateUsage]
    "slice": _Rewriter._slice,  # pyright: ignore[reportPrivateUsage]
    "pad": _Rewriter._pad,  # pyright: ignore[reportPrivateUsage]
    "concatenate": _Rewriter._concatenate,  # pyright: ignore[reportPrivateUsage]
    "reshape": _Rewriter._regroup,  # pyright: ignore[reportPrivateUsage]
    "bitcast": _Rewriter._regroup,  # pyright: ignore[reportPrivateUsage]
}
