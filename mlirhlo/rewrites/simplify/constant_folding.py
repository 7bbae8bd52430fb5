"""`constant_folding`: instructions on constants become constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AfterAllOp,
    BroadcastOp,
    CallOp,
    ComputationOp,
    ConstantOp,
    FusionOp,
    Instruction,
    IotaOp,
    ParameterOp,
    RngOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import OP_CLASSES
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, default_layout
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.quick import readers_of
from mlirhlo.importing import LATE
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter, inherit

with LATE:
    from mlirhlo import interp
    from mlirhlo.interp import values


if TYPE_CHECKING:
    from mlirhlo.interp import Interpreter
    from mlirhlo.interp.registry import Value

LARGEST = 45_000_000

_NEVER = (
    opcodes(lambda row: row.names_device or row.varies or row.is_asynchronous or row.free)
    - {"bitcast", "get-tuple-element"}
    | {"broadcast", "iota"}
    | {"fft", "while"}
)
"""Opcodes that stay: they would grow, are no functions of their operands, may run for ever, or belong to pairs."""
_STAYING = frozenset(OP_CLASSES[name] for name in _NEVER)


@dataclass(frozen=True)
class ConstantFoldingPass(HloPass):
    """Computes instructions whose operands are known, with the interpreter.

    Before and after:

        %one = f32[] constant(1)
        %s = f32[] add(%one, %one)      =>   %s = f32[] constant(2)

    An instruction is folded when every operand is a constant, a broadcast of one or an iota, and one
    at least is a constant. Not folded: side effects, control dependencies, what grows, fusions and
    composites, results or operands of more than `largest` elements, and what the interpreter cannot do.
    Source: reference of the passes, "HloConstantFolding".
    """

    name = "constant_folding"

    aggressive: bool = False
    """Folds loops, and operands none of which is a constant; no limit of size."""
    largest: int = LARGEST
    """Elements of the result, and of all operands, above which nothing is folded."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Folds; whether anything was."""
        del trace
        effects = module.known(SideEffects.of)
        interpreter: interp.Interpreter | None = None
        bodies = module.known(HloModule.fused_computations) | {
            op.to_apply
            for op in module.candidates(CallOp)
            if isinstance(op, CallOp) and op.is_composite
        }
        changing = module.candidates(RngOp, AfterAllOp, WhileOp)
        random = {_place(op).computation_name for op in changing}
        changed = False
        work = self._first(module)
        for op in work:  # grows while it is walked
            if op.parent is None or not self._is_wanted(op, effects):
                continue
            if _place(op).computation_name in bodies:
                continue
            if any(name in random for name in op.called_computations) and not self.aggressive:
                continue
            if interpreter is None:
                interpreter = interp.Interpreter(module.op)
            folded = self._fold(op, interpreter)
            if folded is not None:
                changed = True
                work += _readers(folded)
        return changed

    def _first(self, module: HloModule) -> list[Instruction]:
        """What may be folded as the module is: the rest waits for operands to become constants."""
        kinds = (ConstantOp, IotaOp) if self.aggressive else (ConstantOp,)
        constants = module.candidates(*kinds)
        readers = dict.fromkeys(op for c in constants for op in _readers(c.output))
        return [op for op in readers if not self._stays(op)]

    def _stays(self, op: Instruction) -> bool:
        return type(op) in _STAYING and not (self.aggressive and isinstance(op, WhileOp))

    def _is_wanted(self, op: Instruction, effects: SideEffects) -> bool:
        if self._stays(op):
            return False
        name = op.opcode.name
        if not op.inputs or op.control_predecessors or isinstance(op, (FusionOp, ParameterOp)):
            return False
        if op.output.first_use is None or not all(map(_is_known, op.inputs)):
            return False
        if effects.of_instruction(op):
            return False
        if name == "pad" and isinstance(op.inputs[0].owner, BroadcastOp):
            return False
        if not self.aggressive:
            if not any(_has_constant(value) for value in op.inputs):
                return False
            operands = sum(_elements(shape) for shape in op.input_shapes)
            if max(_elements(op.shape), operands) > self.largest:
                return False
        return _is_static(op.shape)

    def _fold(self, op: Instruction, interpreter: Interpreter) -> SSAValue | None:
        """The constant; None where nothing can be computed."""
        try:
            inputs = [_value(value, interpreter) for value in op.inputs]
            result = interpreter.evaluate(op, inputs)
            literal = values.literal_of_value(result, op.shape)
        except HloError:
            # Whoever runs the module hears of it.
            return None
        if literal is None:
            return None
        made = _constant(literal, op.shape)
        for constant in made:
            inherit(constant, op)
        made[-1].instruction_name = op.instruction_name
        before = [v.owner for v in op.inputs]
        rewriter = Rewriter(op)
        rewriter.replace(op, made)
        rewriter.erase_unread(*before)
        return made[-1].output


def _readers(constant: SSAValue) -> list[Instruction]:
    """Who reads a constant, or what is known because of it."""
    found = readers_of(constant)
    for reader in found:  # grows while it is walked
        if isinstance(reader, (BroadcastOp, TupleOp)):
            found += readers_of(reader.output)
    return [reader for reader in found if isinstance(reader, Instruction)]


def _place(op: Instruction) -> ComputationOp:
    computation = op.parent_op()
    assert isinstance(computation, ComputationOp)
    return computation


def _is_known(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, TupleOp):
        return all(map(_is_known, owner.inputs))
    if isinstance(owner, BroadcastOp):
        owner = owner.operand.owner
    if isinstance(owner, ConstantOp):
        return owner.literal is not None and not owner.literal.is_elided
    return isinstance(owner, IotaOp)


def _has_constant(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, TupleOp):
        return any(map(_has_constant, owner.inputs))
    return isinstance(owner, ConstantOp)


def _value(value: SSAValue, interpreter: Interpreter) -> Value:
    owner = value.owner
    assert isinstance(owner, Instruction)
    return interpreter.evaluate(owner, [_value(v, interpreter) for v in owner.inputs])


def _constant(literal: Literal, shape: Shape) -> list[Instruction]:
    """The constant; of a tuple its parts and a tuple, as constants of tuples are rare."""
    if isinstance(shape, TupleShape):
        parts = [_constant(p, s) for p, s in zip(literal.elements, shape.elements, strict=True)]
        made = [instruction for part in parts for instruction in part]
        return [*made, make("tuple", [part[-1] for part in parts], shape)]
    assert isinstance(shape, ArrayShape)
    layout = shape.layout or default_layout(shape.rank)
    known = ArrayShape(shape.element_type, shape.dimensions, (), layout)
    return [make("constant", (), known, {"literal": LiteralAttr(literal.with_shape(known))})]


def _elements(shape: Shape) -> int:
    if isinstance(shape, TupleShape):
        return sum(map(_elements, shape.elements))
    return shape.element_count if isinstance(shape, ArrayShape) else 0


def _is_static(shape: Shape) -> bool:
    if isinstance(shape, TupleShape):
        return bool(shape.elements) and all(map(_is_static, shape.elements))
    return isinstance(shape, ArrayShape) and not shape.is_dynamic
