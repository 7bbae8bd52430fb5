"""`float-normalization-*` and `bf16-mixed-precision-removal`: narrow floats are computed in wider ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AsyncStartOp,
    ComputationOp,
    ConvertOp,
    Instruction,
    ParameterOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import add_computation, called
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit
from mlirhlo.rewrites.simplify.tuple_simplifier import TupleSimplifierPass

_CONVERTS = opcodes(lambda row: row.name.endswith("convert"))
SKIPPED = (
    opcodes(lambda row: row.handles_whole or row.name in ("all-reduce-done", "rng-bit-generator"))
    | _CONVERTS
)
"""Opcodes that hand values on, or say for themselves what they take; ends of pairs follow their starts."""

_KEEPS_COMPUTATION = opcodes(lambda row: row.reduces_groups)
"""Opcodes whose function of elements is known by its form, and stays."""

COLLECTIVES = opcodes(lambda row: row.communicates and not row.is_asynchronous)
"""Opcodes that an asynchronous computation is about; it holds nothing else."""

_MOVES = opcodes(lambda row: row.moves) - COLLECTIVES - {"select"}
"""Opcodes that compute nothing with the numbers they move."""


@dataclass(frozen=True)
class FloatNormalizationPass(HloPass):
    """Computes in a wider type what the target cannot compute in a narrow one.

    Before and after:

        %s = bf16[4] add(%x, %y)
          =>   %s = bf16[4] convert(f32[4] add(f32[4] convert(%x), f32[4] convert(%y)))

    Moving data, calls, loops, fusions, bit casts and custom calls stay, as do collectives that asynchronous
    instructions wrap; start and end of an all-reduce change together. A function of elements gets a copy
    that takes and gives the wider type and rounds inside, so that results stay what they were.
    Source: reference of the passes, "FloatNormalization".
    """

    name = "float-normalization-bf16"
    exact: ClassVar[bool] = False
    low: ClassVar[str] = "bf16"
    high: ClassVar[str] = "f32"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Normalises; whether anything was."""
        if not self._is_in(module):
            return False
        fused = module.known(HloModule.fused_computations)
        changed = tuples = False
        started = module.candidates(AsyncStartOp)
        wrapped = {name for op in started for name in op.called_computations}
        for computation in tuple(module.computations):
            if computation.computation_name in fused:
                continue
            skipped = SKIPPED
            if computation.computation_name in wrapped:
                skipped = SKIPPED | COLLECTIVES
            for op in tuple(computation.instructions):
                if op.opcode.name not in skipped and self._is_wanted(op):
                    tuples |= isinstance(op.shape, TupleShape)
                    _Raise(op, PRIMITIVE_TYPES[self.low], PRIMITIVE_TYPES[self.high]).run()
                    changed = True
        if tuples:
            # What reads one of several results need not go through a tuple of all.
            TupleSimplifierPass().run(module.afresh(), trace)
        return changed

    def _is_in(self, module: HloModule) -> bool:
        """Whether any instruction makes the narrow type."""
        return any(
            isinstance(leaf, ArrayShape) and leaf.element_type.name == self.low
            for shape in module.known(HloModule.result_shapes)
            for _, leaf in leaves(shape)
        )

    def _is_wanted(self, op: Instruction) -> bool:
        """Whether the narrow type is among its operands and results, and it computes with numbers."""
        return op.opcode.name not in _MOVES and self.low in _types(op)


@dataclass(frozen=True)
class Bf16MixedPrecisionRemovalPass(FloatNormalizationPass):
    """Computes in f32 what has both bf16 and f32 among its operands and results.

    Before and after:

        %s = f32[4] add(%x, %y), %x of bf16      =>   %s = f32[4] add(f32[4] convert(%x), %y)

    Source: reference of the passes, "BFloat16MixedPrecisionRemoval".
    """

    name = "bf16-mixed-precision-removal"

    def _is_wanted(self, op: Instruction) -> bool:
        return {self.low, self.high} <= _types(op)


def _types(op: Instruction) -> set[str]:
    """Element types of all arrays that the instruction reads and makes."""
    found: set[str] = set()
    for shape in (op.shape, *op.input_shapes):
        for _, leaf in leaves(shape):
            if isinstance(leaf, ArrayShape):
                found.add(leaf.element_type.name)
    return found


class _Raise:
    """One instruction in the wider type."""

    def __init__(self, op: Instruction, low: PrimitiveType, high: PrimitiveType) -> None:
        self.op, self.low, self.high = op, low, high
        self.made: list[Instruction] = []

    def run(self) -> None:
        op = self.op
        operands = [self._converted(value, self.low, self.high) for value in op.inputs]
        properties = {k: v for k, v in op.properties.items() if k != "control_predecessors"}
        if op.opcode.name not in _KEEPS_COMPUTATION:
            for key in op.calling_keys:
                found = properties.get(key)
                if isinstance(found, SymbolRefAttr):
                    properties[key] = self._function(found)
        shape = self._raised(op.shape)
        new = make(
            op.opcode.name,
            operands,
            shape,
            properties,
            control_predecessors=op.control_predecessors,
        )
        self.made.append(new)
        new.instruction_name = op.instruction_name
        if op.opcode.name == "all-reduce-start":
            (done,) = (use.operation for use in op.output.uses)
            assert isinstance(done, Instruction)
            self._put(new.output)
            self.op, self.made = done, []
            waits = done.control_predecessors
            kept = {k: v for k, v in done.properties.items() if k != "control_predecessors"}
            new = make(done.opcode.name, [new], shape, kept, control_predecessors=waits)
            new.instruction_name = done.instruction_name
            self.made.append(new)
        self._put(self._lowered(new, self.op.shape))

    def _put(self, result: SSAValue) -> None:
        """Replaces the instruction by what was made, the last of which gives `result`."""
        for made in self.made:
            inherit(made, self.op)
        Rewriter(self.op).replace(self.op, self.made, (result,))

    def _raised(self, shape: Shape) -> Shape:
        if isinstance(shape, TupleShape):
            return TupleShape(tuple(map(self._raised, shape.elements)))
        if isinstance(shape, ArrayShape) and shape.element_type is self.low:
            return ArrayShape(self.high, shape.dimensions, shape.dynamic, shape.layout)
        return shape

    def _converted(self, value: SSAValue, source: PrimitiveType, target: PrimitiveType) -> SSAValue:
        shape = shape_of(value.type)
        if not isinstance(shape, ArrayShape) or shape.element_type is not source:
            return value
        wanted = ArrayShape(target, shape.dimensions, shape.dynamic, shape.layout)
        convert = make("convert", [value], wanted)
        self.made.append(convert)
        return convert.output

    def _lowered(self, new: Instruction, wanted: Shape) -> SSAValue:
        """The result in the types it had, element by element of a tuple."""
        if not isinstance(wanted, TupleShape):
            return (
                self._converted(new.output, self.high, self.low)
                if new.shape != wanted
                else new.output
            )
        if new.shape == wanted:
            return new.output
        assert isinstance(new.shape, TupleShape)
        parts: list[SSAValue] = []
        for number, (have, want) in enumerate(
            zip(new.shape.elements, wanted.elements, strict=True)
        ):
            part = make("get-tuple-element", [new], have, {"index": integer(number)})
            self.made.append(part)
            parts.append(self._lowered(part, want))
        whole = make("tuple", parts, wanted)
        self.made.append(whole)
        return whole.output

    def _function(self, symbol: SymbolRefAttr) -> SymbolRefAttr:
        """A function of elements that takes and gives the wider type and rounds inside."""
        computation = called(self.op, symbol.root_reference.data)
        if not _has(computation, self.low):
            return symbol
        outer, self.made = self.made, []
        block = Block()
        values: dict[SSAValue, SSAValue] = {}
        for inner in computation.instructions:
            if isinstance(inner, ParameterOp):
                parameter = make("parameter", (), self._raised(inner.shape), dict(inner.properties))
                append(block, parameter)
                values[inner.output] = (
                    self._converted(parameter.output, self.high, self.low)
                    if (parameter.shape != inner.shape)
                    else parameter.output
                )
            elif (wide := self._widened_again(inner, values)) is not None:
                values[inner.output] = wide
            else:
                copy = clone_instruction(inner, values)
                values[inner.output] = copy.output
                self.made.append(copy)
            for made in self.made:
                append(block, made)
            self.made = []
        root = values[computation.root.output]
        last = self._widened(root)
        for made in self.made:
            append(block, made)
        self.made = outer
        for spare in tuple(block.ops):
            # Roundings of parameters that are read without.
            if isinstance(spare, ConvertOp) and not spare.output.uses and spare.output is not last:
                block.erase_op(spare)
        owner = last.owner
        assert isinstance(owner, Instruction)
        name = f"{computation.computation_name}.{self.high}"
        return add_computation(self.op, name, block, owner)

    def _widened(self, value: SSAValue) -> SSAValue:
        """The value in the wider type, element by element of a tuple."""
        shape = shape_of(value.type)
        if not isinstance(shape, TupleShape):
            return self._converted(value, self.low, self.high)
        owner = value.owner
        elements: list[SSAValue] = []
        if isinstance(owner, TupleOp):
            elements += owner.inputs
        else:
            for number, element in enumerate(shape.elements):
                part = make("get-tuple-element", [value], element, {"index": integer(number)})
                self.made.append(part)
                elements.append(part.output)
        whole = make("tuple", [*map(self._widened, elements)], self._raised(shape))
        self.made.append(whole)
        return whole.output

    def _widened_again(
        self, inner: Instruction, values: dict[SSAValue, SSAValue]
    ) -> SSAValue | None:
        """The parameter that is rounded only to be widened: it holds narrow numbers.

        Functions of elements are given elements of operands, which were widened, and results of their
        own, which round.
        """
        if not isinstance(inner, ConvertOp):
            return None
        narrow = values[inner.operand].owner
        if not isinstance(narrow, ConvertOp) or not isinstance(narrow.operand.owner, ParameterOp):
            return None
        return narrow.operand if shape_of(narrow.operand.type) == inner.shape else None


def _has(computation: ComputationOp, low: PrimitiveType) -> bool:
    return any(
        isinstance(leaf, ArrayShape) and leaf.element_type is low
        for op in (*computation.parameters, computation.root)
        for _, leaf in leaves(op.shape)
    )
