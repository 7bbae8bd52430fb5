"""The walk from HLO instructions to the ops of one kernel.

Values are translated one by one, in order; the computations of fusions and calls are entered by a stack, so that
neither long nor deeply nested programs recurse. Dimensions of every array stand in the order of memory: functions
of opcodes think in logical dimensions, and `Kernel.read` and `logical` translate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ComputationOp,
    ConstantOp,
    FusionOp,
    GetTupleElementOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import add_argument, create_op, new_block, region_of
from mlirhlo.dialects.structured import KernelOp, MapOp, ReturnOp, StructuredOp, identity_map
from mlirhlo.dialects.structured.base import maps_attribute
from mlirhlo.dialects.structured.index_maps import simplified_map
from mlirhlo.lowering.memory_order import physical_dimensions, physical_order
from mlirhlo.lowering.structured.bodies import converting_body, passing_body

Computations: TypeAlias = "Mapping[str, ComputationOp]"
Values: TypeAlias = "tuple[SSAValue, ...]"
"""What a value is in the kernel: one array, of a tuple those of its parts."""
Converter: TypeAlias = "Callable[[Kernel, Any], Sequence[SSAValue]]"

_CONVERTERS: dict[str, Converter] = {}


def converts(*opcodes: str) -> Callable[[Converter], Converter]:
    """Decorator: the function translates these opcodes; it returns an array a result."""

    def register(function: Converter) -> Converter:
        for opcode in opcodes:
            _CONVERTERS[opcode] = function
        return function

    return register


@cache
def converters() -> Mapping[str, Converter]:
    """All of them, by opcode."""
    from mlirhlo.lowering.structured import (
        contractions,
        elementwise,
        folds,
        indexed,
        movement,
        ordered,
        routines,
    )

    del contractions, elementwise, folds, indexed, movement, ordered, routines
    return _CONVERTERS


def to_structured(
    op: Instruction, computations: Computations, name: str, *, constants: bool = False
) -> KernelOp:
    """The kernel `name` that computes `op`: arrays of its operands in, arrays of its results out.

    Every result is computed by an op of the kernel, and by none that computes another result's array. `constants`:
    whether operands that are constant scalars are constants of the kernel, which does not read their arrays.
    Raises `HloError` HLO0790 and HLO0791 for what has no structured form.
    """
    kernel = Kernel(computations)
    values = [kernel.arguments(operand) for operand in op.inputs]
    if isinstance(op, FusionOp):
        results = kernel.inline(op, values)
    else:
        for operand, arrays in zip(op.inputs, values, strict=True):
            literal = scalar_constant(operand) if constants else None
            kernel.values[operand] = arrays if literal is None else (kernel.constant(literal),)
        results = kernel.converted(op)
    kernel.finish(results)
    return KernelOp(name, kernel.block)


def scalar_constant(operand: SSAValue) -> Literal | None:
    """The number that an operand is; None for arrays, and for what is not known."""
    owner = operand.owner
    if not isinstance(owner, ConstantOp) or owner.literal is None or owner.literal.is_elided:
        return None
    shape = shape_of(operand.type)
    return owner.literal if isinstance(shape, ArrayShape) and not shape.rank else None


def no_form(op: Instruction, reason: str = "") -> HloError:
    """The error for an instruction without a structured form."""
    because = f": {reason}" if reason else ""
    return error("HLO0790", f"`{op.opcode.name}` has no structured form{because}")


def static_shape(shape: Shape) -> ArrayShape:
    """`shape` as that of a static array. Raises `HloError` HLO0790."""
    if not isinstance(shape, ArrayShape) or shape.is_dynamic:
        raise error("HLO0790", f"{shape} has no structured form: kernels take static arrays")
    return shape


def parts_of(shape: Shape) -> list[ArrayShape]:
    """The arrays of a shape, of tuples those of their parts, depth first."""
    found: list[ArrayShape] = []
    stack = [shape]
    while stack:
        part = stack.pop()
        if isinstance(part, TupleShape):
            stack += reversed(part.elements)
        else:
            found.append(static_shape(part))
    return found


def tensor_of(shape: ArrayShape, element: PrimitiveType | None = None) -> TensorType[Attribute]:
    """The type of an array in a kernel: dimensions in the order of memory."""
    return tensor((element or shape.element_type), physical_dimensions(shape))


@lru_cache(1 << 12)
def _maps(
    indices: tuple[tuple[AffineExpr, ...], ...], sizes: tuple[int, ...]
) -> ArrayAttr[AffineMapAttr]:
    """Canonical maps from a space of these sizes."""
    return maps_attribute(
        simplified_map(AffineMap(len(sizes), 0, exprs), sizes) for exprs in indices
    )


def tensor(element: PrimitiveType, sizes: Sequence[int]) -> TensorType[Attribute]:
    """The type of a row-major array."""
    return cast("TensorType[Attribute]", type_of(ArrayShape(element, tuple(sizes))))


def element_of(value: SSAValue) -> PrimitiveType:
    """Element type of a value of the kernel."""
    return BY_MLIR[cast("TensorType[Attribute]", value.type).element_type]


def logical(shape: ArrayShape) -> list[AffineExpr]:
    """Index along each logical dimension, for an iteration space with the dimensions in memory order."""
    indices: list[AffineExpr] = [AffineExpr.constant(0)] * shape.rank
    if shape.layout is None:
        return list(identity_map(shape.rank).results)
    for position, dim in enumerate(physical_order(shape)):
        indices[dim] = AffineExpr.dimension(position)
    return indices


def in_memory_order(shape: ArrayShape, items: Sequence[Any]) -> list[Any]:
    """One item a logical dimension, in the order of memory."""
    return [items[dim] for dim in physical_order(shape)]


class Kernel:
    """A kernel under construction."""

    def __init__(self, computations: Computations) -> None:
        self.computations = computations
        self.block = new_block()
        self.values: dict[SSAValue, Values] = {}
        """What each HLO value is in the kernel."""
        self._converters = converters()

    def add(self, op: Operation) -> Sequence[SSAValue]:
        """Appends an op; its results."""
        build.append(self.block, op)
        return op.results

    def arguments(self, operand: SSAValue) -> Values:
        """New arguments for the arrays of an operand."""
        found: list[SSAValue] = []
        for part in parts_of(shape_of(operand.type)):
            found.append(add_argument(self.block, tensor_of(part)))
            owner = operand.owner
            set_name(found[-1], owner.instruction_name if isinstance(owner, Instruction) else None)
        return tuple(found)

    def array(self, value: SSAValue) -> SSAValue:
        """What an HLO array is in the kernel."""
        (found,) = self.values[value]
        return found

    # ------------------------------------------------------------ building

    def map(
        self,
        type_: TensorType[Attribute],
        inputs: Sequence[SSAValue],
        indices: Sequence[Sequence[AffineExpr]],
        body: Block,
    ) -> SSAValue:
        """An array computed element by element; `indices` into each input, for the dimensions of the result."""
        sizes = type_.get_shape()
        maps = _maps(tuple(map(tuple, indices)), sizes)
        op = create_op(MapOp, inputs, [type_], {"maps": maps}, regions=[region_of(body)])
        return self.add(op)[0]

    def read(
        self,
        value: SSAValue,
        shape: ArrayShape,
        indices: Sequence[AffineExpr],
        sizes: Sequence[int],
    ) -> SSAValue:
        """An array of these sizes whose elements are those of `value`, of an HLO array's shape, at logical
        `indices`."""
        element = element_of(value)
        if tuple(sizes) == physical_dimensions(shape):
            identity = identity_map(len(sizes)).results
            if tuple(in_memory_order(shape, indices)) == identity:
                return value
        exprs = in_memory_order(shape, indices)
        return self.map(tensor(element, sizes), [value], [exprs], passing_body([element]))

    def row_major(self, value: SSAValue) -> SSAValue:
        """What an HLO array is, its logical dimensions in order."""
        shape = static_shape(shape_of(value.type))
        indices = list(identity_map(shape.rank).results)
        return self.read(self.array(value), shape, indices, shape.dimensions)

    def laid_out(self, value: SSAValue, shape: ArrayShape) -> SSAValue:
        """An array with its logical dimensions in order, in the memory order of `shape`."""
        plain = ArrayShape(shape.element_type, shape.dimensions)
        return self.read(value, plain, logical(shape), physical_dimensions(shape))

    def as_laid_out(self, value: SSAValue, shape: ArrayShape) -> SSAValue:
        """What an HLO array is, in the memory order of another shape of its sizes."""
        own = static_shape(shape_of(value.type))
        return self.read(self.array(value), own, logical(shape), physical_dimensions(shape))

    def constant(self, literal: Literal) -> SSAValue:
        """A constant array: elements in the order of memory."""
        shape = static_shape(literal.shape)
        type_ = tensor_of(shape)
        physical = static_shape(shape_of(type_))
        if literal.is_elided:
            literal = Literal.elided(physical)
        elif shape != physical:
            array = literal.array.transpose(physical_order(shape))
            literal = Literal.from_array(physical, array)
        op = build.create(ConstantOp, [], type_, {"literal": LiteralAttr(literal)})
        return self.add(op)[0]

    def scalar(self, element: PrimitiveType, number: Any) -> SSAValue:
        """A constant scalar."""
        import numpy as np

        value = np.asarray(number).astype(element.dtype)
        return self.constant(Literal.from_array(ArrayShape(element, ()), value))

    def as_type(self, value: SSAValue, element: PrimitiveType) -> SSAValue:
        """An array converted to another element type."""
        have = element_of(value)
        if have is element:
            return value
        sizes = cast("TensorType[Attribute]", value.type).get_shape()
        body = converting_body(have, element)
        identity = identity_map(len(sizes)).results
        return self.map(tensor(element, sizes), [value], [identity], body)

    # ---------------------------------------------------------- translating

    def converted(self, op: Instruction) -> Values:
        """The arrays of an instruction's result, of its declared types."""
        if isinstance(op, TupleOp):
            return tuple(array for operand in op.inputs for array in self.values[operand])
        if isinstance(op, GetTupleElementOp):
            return self._element(op)
        converter = self._converters.get(op.opcode.name)
        if converter is None and op.opcode.elementwise:
            converter = self._converters["elementwise"]
        if converter is None:
            raise no_form(op)
        results = converter(self, op)
        declared = parts_of(op.shape)
        for value in results:
            if value.owner.parent is self.block and value.name_hint is None:
                set_name(value, op.instruction_name)
        return tuple(
            self.as_type(value, shape.element_type)
            for value, shape in zip(results, declared, strict=True)
        )

    def _element(self, op: GetTupleElementOp) -> Values:
        shape = cast(TupleShape, shape_of(op.operand.type))
        counts = [len(parts_of(part)) for part in shape.elements]
        start = sum(counts[: op.index])
        return self.values[op.operand][start : start + counts[op.index]]

    def inline(self, fusion: Instruction, arguments: Sequence[Values]) -> Values:
        """The arrays of the result of a fusion or call, of such arguments."""
        stack: list[tuple[Iterator[Instruction], Instruction]] = []
        caller, running = fusion, iter(self._begun(fusion, arguments))
        while True:
            op = next(running, None)
            if op is None:
                root = self._called(caller).root
                results = self.relaid(self.values[root.output], root.shape, caller.shape)
                if not stack:
                    return results
                self.values[caller.output] = results
                running, caller = stack.pop()
            elif isinstance(op, FusionOp | CallOp):
                stack.append((running, caller))
                caller = op
                running = iter(self._begun(op, [self.values[value] for value in op.inputs]))
            else:
                self.values[op.output] = self.converted(op)

    def _called(self, op: Instruction) -> ComputationOp:
        return self.computations[op.called_computations[0]]

    def _begun(self, op: Instruction, arguments: Sequence[Values]) -> list[Instruction]:
        """The instructions of a called computation, whose parameters are given."""
        computation = self._called(op)
        given = zip(computation.parameters, arguments, op.input_shapes, strict=True)
        for parameter, arrays, shape in given:
            self.values[parameter.output] = self.relaid(arrays, shape, parameter.shape)
        return _needed(computation)

    def relaid(self, arrays: Values, have: Shape, wanted: Shape) -> Values:
        """The arrays of a value in the memory order of another shape of its sizes."""
        if have == wanted:
            return arrays
        return tuple(
            self.read(array, own, logical(part), physical_dimensions(part))
            for array, own, part in zip(arrays, parts_of(have), parts_of(wanted), strict=True)
        )

    def finish(self, results: Sequence[SSAValue]) -> None:
        """Ends the kernel; what is no op's own result is copied."""
        returned: list[SSAValue] = []
        for value in results:
            if not isinstance(value.owner, StructuredOp) or value in returned:
                sizes = cast("TensorType[Attribute]", value.type).get_shape()
                body = passing_body([element_of(value)])
                type_ = cast("TensorType[Attribute]", value.type)
                value = self.map(type_, [value], [identity_map(len(sizes)).results], body)
            returned.append(value)
        build.append(self.block, ReturnOp(returned))


def _needed(computation: ComputationOp) -> list[Instruction]:
    """Instructions that the root is computed from, in order, without parameters."""
    needed: set[SSAValue] = {computation.root.output}
    found: list[Instruction] = []
    for op in reversed(list(computation.instructions)):
        if op.output in needed:
            needed.update(op.inputs)
            if op.opcode.name != "parameter":
                found.append(op)
    found.reverse()
    return found


_NUMBERS = re.compile(r"(?:_\d+)+$")


def set_name(value: SSAValue, name: str | None) -> None:
    """Names a value after an instruction, where MLIR takes the name; trailing numbers (`_12`) are the printer's."""
    if name is not None and SSAValue.is_valid_name(short := _NUMBERS.sub("", name)):
        value.name_hint = short
