"""Parameters, tuples, calls, loops, branches, and ops that hand their operand on.

Calls are generator meanings: the engine runs the called computation without nesting on the Python
stack, so deep call chains and loops in loops cost no recursion.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.registry import Array, Call, Frame, Program, Run, Value, evaluates, prepares
from mlirhlo.interp.values import value_of_literal

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.ops.control_flow import (
        CallOp,
        ConditionalOp,
        ConstantOp,
        FusionOp,
        GetTupleElementOp,
        ParameterOp,
        TupleOp,
        WhileOp,
    )
    from mlirhlo.dialects.hlo.ops.reduction import MapOp

Running = Generator[Call, Value, Value]


@evaluates("parameter")
def parameter(op: ParameterOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """A parameter is set by the caller, never evaluated. Raises `HloError` HLO0302."""
    raise error("HLO0302", f"parameter {op.parameter_number} has no value outside of a call")


@evaluates("constant")
def constant(op: ConstantOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The literal. Raises `HloError` HLO0301 when it is elided."""
    literal = op.literal
    assert literal is not None
    return value_of_literal(literal)


@evaluates("tuple")
def tuple_(op: TupleOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The operands as one value."""
    return tuple(inputs)


@prepares("get-tuple-element")
def get_tuple_element(op: GetTupleElementOp, program: Program) -> Run:
    """Element `index` of a tuple."""
    index = op.index

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        return cast("tuple[Value, ...]", inputs[0])[index]

    return run


@evaluates("add-dependency", "copy", "domain", "opt-barrier")
def first_operand(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Value:
    """The first operand as it is: layouts, ordering and barriers change no value."""
    return inputs[0]


@prepares("call")
def call(op: CallOp, program: Program) -> Run:
    """The result of a computation."""
    return _calling(op.to_apply)


@prepares("fusion")
def fusion(op: FusionOp, program: Program) -> Run:
    """The result of the fused computation."""
    return _calling(op.calls)


def _calling(computation: str) -> Run:
    def run(inputs: Sequence[Any], frame: Frame) -> Running:
        arguments = list(inputs)
        del inputs
        return (yield Call(computation, arguments, hands_over=True))

    return run


@prepares("while")
def while_(op: WhileOp, program: Program) -> Run:
    """The body applied as long as the condition holds."""
    condition, body = op.condition, op.body

    def run(inputs: Sequence[Any], frame: Frame) -> Running:
        state: Value = inputs[0]
        del inputs
        while (yield Call(condition, (state,))):
            arguments, state = [state], None  # the body may overwrite what is its own
            state = yield Call(body, arguments, hands_over=True)
        return state

    return run


@prepares("conditional")
def conditional(op: ConditionalOp, program: Program) -> Run:
    """The branch that operand 0 picks, on its own argument; an index out of range picks the last."""
    shape = op.input_shapes[0]
    by_pred = isinstance(shape, ArrayShape) and shape.element_type is PRED
    branches = op.branch_computations or (op.true_computation, op.false_computation)

    def run(inputs: Sequence[Any], frame: Frame) -> Running:
        if by_pred:
            branch = 0 if inputs[0] else 1
        else:
            branch = int(inputs[0])
            if not 0 <= branch < len(branches):
                branch = len(branches) - 1
        arguments = [inputs[branch + 1]]
        del inputs
        return (yield Call(branches[branch], arguments, hands_over=True))

    return run


@prepares("map")
def map_(op: MapOp, program: Program) -> Run:
    """The computation on the elements at each place of the operands."""
    computation = op.to_apply
    is_tuple = isinstance(op.shape, TupleShape)

    def run(inputs: Sequence[Any], frame: Frame) -> Value:
        results = frame.call_elementwise(computation, cast("Sequence[Array]", inputs))
        return tuple(results) if is_tuple else results[0]

    return run
