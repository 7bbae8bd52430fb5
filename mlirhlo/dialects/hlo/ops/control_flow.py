"""Parameters, constants, tuples, calls, loops, fusions and custom calls."""

from __future__ import annotations

from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliases
from mlirhlo.dialects.hlo.attributes.dimensions import ConvolutionDimensionNumbers, Window
from mlirhlo.dialects.hlo.attributes.header import Booleans
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops.base import (
    Instruction,
    Unary,
    bool_property,
    computation_property,
    computations_property,
    instruction,
    int_property,
    shapes_property,
    str_property,
    value_property,
    words_property,
)


@instruction("call")
class CallOp(Instruction):
    """Result of a computation."""

    to_apply = computation_property()
    is_composite = bool_property()


@instruction("conditional")
class ConditionalOp(Instruction):
    """Result of the branch that the first operand picks."""

    true_computation = computation_property()
    false_computation = computation_property()
    branch_computations = computations_property()


@instruction("constant")
class ConstantOp(Instruction):
    """A literal."""

    literal = value_property(Literal)


@instruction("custom-call")
class CustomCallOp(Instruction):
    """What the target of that name computes."""

    window = value_property(Window)
    dim_labels = value_property(ConvolutionDimensionNumbers)
    feature_group_count = int_property(1)
    batch_group_count = int_property(1)
    operand_precision = words_property()
    padding_type = str_property("PADDING_INVALID")
    custom_call_target = str_property()
    operand_layout_constraints = shapes_property()
    custom_call_has_side_effect = bool_property()
    literal = value_property(Literal)
    output_to_operand_aliasing = value_property(OutputOperandAliases)
    schedule = str_property("SCHEDULE_NONE")
    api_version = str_property("API_VERSION_ORIGINAL")


@instruction("fusion")
class FusionOp(Instruction):
    """Result of a computation that becomes one kernel."""

    kind = str_property()
    output_to_operand_aliasing = value_property(OutputOperandAliases)
    calls = computation_property()


@instruction("get-tuple-element")
class GetTupleElementOp(Unary):
    """Element of a tuple."""

    index = int_property()


@instruction("opt-barrier")
class OptBarrierOp(Unary):
    """Its operand, which no pass may look through."""


@instruction("parameter")
class ParameterOp(Instruction):
    """Argument of the computation."""

    parameter_replication = value_property(Booleans)
    parameter_number = int_property()


@instruction("tuple")
class TupleOp(Instruction):
    """Its operands as one value."""


@instruction("while")
class WhileOp(Unary):
    """Body applied as long as condition holds."""

    condition = computation_property()
    body = computation_property()
