"""Shapes of calls, loops, branches, fusions, tuples, parameters, constants and custom calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    infers,
    plain,
    plain_signature,
)
from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliases
from mlirhlo.dialects.hlo.attributes.base import symbols_of
from mlirhlo.dialects.hlo.attributes.header import Booleans, ProgramLayout
from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TokenShape,
    TupleShape,
    array,
    compatible,
    leaves,
    subshape,
)
from mlirhlo.dialects.hlo.types import shape_of


def check_arguments(
    given: Given,
    operands: Sequence[Shape],
    callee: ProgramLayout,
    what: str,
    numbers: tuple[int, int],
    key: str,
) -> None:
    """The computation takes these operands: their number (first constraint) and shapes (second)."""
    if len(callee.parameters) != len(operands):
        raise given.error(
            numbers[0],
            f"{what} arity must match number of arguments; got: arity: {len(callee.parameters)},"
            f" arguments: {len(operands)}; computation signature: {plain_signature(callee)}.",
            attribute=key,
        )
    for index, (parameter, operand) in enumerate(zip(callee.parameters, operands, strict=True)):
        if not compatible(parameter, operand):
            raise given.error(
                numbers[1],
                f"{what} parameter must match argument; got parameter {index} shape:"
                f" {plain(parameter)}, argument shape: {plain(operand)}.",
                operand=index,
            )


_CALL = {
    "c1": "the computation takes as many parameters as there are operands",
    "c2": "parameters and operands have the same shapes",
}


@infers("call", **_CALL)
def call(given: Given) -> Shape:
    """The computation's result."""
    callee = given.callee("to_apply")
    check_arguments(given, given.operands, callee, "Call applied function", (1, 2), "to_apply")
    return callee.result


@infers("fusion", **_CALL)
def fusion(given: Given) -> Shape:
    """The fused computation's result."""
    callee = given.callee("calls")
    check_arguments(given, given.operands, callee, "Fused computation", (1, 2), "calls")
    return callee.result


_ALIASING = "output_to_operand_aliasing names parts of the result and of operands, of equal shapes"


def check_aliasing(given: Given, number: int) -> None:
    """`output_to_operand_aliasing` names parts that exist and have equal shapes."""
    aliasing = given.value("output_to_operand_aliasing", OutputOperandAliases)
    if aliasing is None:
        return
    key = "output_to_operand_aliasing"
    for entry in aliasing.entries:
        if not 0 <= entry.operand_number < len(given.operands):
            raise given.error(
                number,
                f"Invalid aliasing operand index: {entry.operand_number} of"
                f" {len(given.operands)} operands",
                attribute=key,
            )
        operand = given.operands[entry.operand_number]
        try:
            source = subshape(operand, entry.operand_index)
            result = subshape(given.declared, entry.output_index)
        except IndexError:
            raise given.error(
                number,
                f"Invalid aliasing shape index in {entry}: the result is {plain(given.declared)},"
                f" the operand {plain(operand)}",
                attribute=key,
            ) from None
        if not compatible(source, result):
            raise given.error(
                number,
                f"Different aliasing shapes: {plain(result)} in the result, {plain(source)} in"
                f" operand {entry.operand_number}",
                attribute=key,
            )


@checks("fusion", c3=_ALIASING)
def check_fusion(given: Given) -> None:
    """Aliasing."""
    check_aliasing(given, 3)  # fusion_c3


@infers(
    "while",
    c1="condition takes one parameter",
    c2="body takes one parameter",
    c3="condition gives pred[]",
    c4="the operand, both parameters and the body's result have one shape",
)
def while_(given: Given) -> Shape:
    """The operand's shape."""
    condition, body = given.callee("condition"), given.callee("body")
    for name, callee, number in (("condition", condition, 1), ("body", body, 2)):
        if len(callee.parameters) != 1:  # while_c1, while_c2
            raise given.error(
                number,
                f"{name.capitalize()} must take 1 arguments; got {len(callee.parameters)}.",
                attribute=name,
            )
    init = given.operands[0]
    shown = (
        f"; got Condition: {plain_signature(condition)}; body: {plain_signature(body)}; init:"
        f" {plain(init)}."
    )
    if not compatible(condition.result, array(PRED)):  # while_c3
        raise given.error(3, f"Condition must return a boolean{shown}", attribute="condition")
    for name, shape in (
        ("body", body.result),
        ("body", body.parameters[0]),
        ("condition", condition.parameters[0]),
    ):
        if not compatible(shape, init):  # while_c4
            raise given.error(
                4,
                "The parameter of condition and body, the result of the body, and init must all have"
                f" the same shape{shown}",
                attribute=name,
            )
    return init


@infers(
    "conditional",
    c1="the first operand is pred[] (two branches) or s32[]",
    c2="there is at least one branch, and one argument for each",
    c3="each branch takes one parameter",
    c4="each argument has its branch's parameter shape",
    c5="all branches give one shape",
)
def conditional(given: Given) -> Shape:
    """The branches' result; dynamic where any branch's is."""
    keys = [k for k in ("true_computation", "false_computation") if k in given.properties]
    keys = keys or ["branch_computations"]
    names = [name for key in keys for name in symbols_of(given.properties.get(key))]
    branches = [given.callees[name] for name in names]
    predicate = given.operands[0] if given.operands else None
    if not isinstance(predicate, ArrayShape) or not predicate.is_scalar:  # conditional_c1
        raise given.error(1, "The first operand must be a scalar", operand=0 if predicate else None)
    wanted = "s32" if keys == ["branch_computations"] else "pred"
    if predicate.element_type.name != wanted:  # conditional_c1
        raise given.error(
            1,
            f"The first operand must be a scalar of {wanted.upper()}; got {plain(predicate)}",
            operand=0,
        )
    if not branches or len(branches) != len(given.operands) - 1:  # conditional_c2
        raise given.error(
            2,
            f"{len(branches)} branches need as many arguments; got {len(given.operands) - 1}",
            attribute=keys[0],
        )
    for index, branch in enumerate(branches):
        operand = given.operands[index + 1]
        if len(branch.parameters) != 1:  # conditional_c3
            raise given.error(
                3,
                f"branch computation {index} must take 1 argument; got {len(branch.parameters)}.",
                attribute=keys[min(index, len(keys) - 1)],
            )
        if not compatible(branch.parameters[0], operand):  # conditional_c4
            raise given.error(
                4,
                f"branch operand {index} must match the shape of the only parameter of branch"
                f" computation {index}: got operand: {plain(operand)}; computation:"
                f" {plain_signature(branch)}.",
                operand=index + 1,
            )
        if not compatible(branches[0].result, branch.result):  # conditional_c5
            raise given.error(
                5,
                f"the result of branch 0 computation and branch {index} computation must have the"
                f" same shape: got branch 0 computation result: {plain(branches[0].result)}; branch"
                f" {index} computation result: {plain(branch.result)}.",
                attribute=keys[min(index, len(keys) - 1)],
            )
    result = branches[0].result
    for branch in branches[1:]:
        result = _join(result, branch.result)
    return result


def _join(a: Shape, b: Shape) -> Shape:
    """`a`, dynamic where `b` is too."""
    if isinstance(a, ArrayShape) and isinstance(b, ArrayShape) and b.dynamic:
        flags = a.dynamic or (False,) * a.rank
        joined = tuple(map(max, flags, b.dynamic))
        return ArrayShape(a.element_type, a.dimensions, joined, a.layout)
    if isinstance(a, TupleShape) and isinstance(b, TupleShape):
        return TupleShape(tuple(map(_join, a.elements, b.elements)))
    return a


@infers(
    "get-tuple-element",
    c1="the operand is a tuple",
    c2="index is one of the tuple's elements",
)
def get_tuple_element(given: Given) -> Shape:
    """The element."""
    operand = given.operands[0]
    if not isinstance(operand, TupleShape):  # get-tuple-element_c1
        raise given.error(
            1,
            f"Expected tuple argument for get-tuple-element, but got {plain(operand)}.",
            operand=0,
        )
    index = given.int("index")
    if not 0 <= index < len(operand.elements):  # get-tuple-element_c2
        raise given.error(
            2,
            f"index {index} is none of the {len(operand.elements)} elements of {plain(operand)}",
            attribute="index",
        )
    return operand.elements[index]


@infers("tuple")
def tuple_(given: Given) -> Shape:
    """A tuple of the operands' shapes."""
    return TupleShape(given.operands)


@infers("opt-barrier")
def opt_barrier(given: Given) -> Shape:
    """The operand's shape."""
    return given.operands[0]


@checks("parameter", c1="parameter_replication has one value for each leaf of the shape")
def parameter(given: Given) -> None:
    """Replication; numbers are the computation's affair."""
    replication = given.value("parameter_replication", Booleans)
    count = sum(1 for _ in leaves(given.declared))
    if replication is not None and len(replication.values) != count:  # parameter_c1
        raise given.error(
            1,
            f"parameter has {count} leaf buffers, but parameter_replication has"
            f" {len(replication.values)} elements",
            attribute="parameter_replication",
        )


@checks(
    "constant",
    c1="there is a literal",
    c2="the shape is an array of static size, or a tuple of them",
    c3="the literal has the declared shape",
)
def constant(given: Given) -> None:
    """The literal against the shape."""
    literal = given.value("literal", Literal)
    if literal is None:  # constant_c1
        raise given.error(1, "a constant needs a literal", attribute="literal")
    for _, leaf in leaves(given.declared):
        if not isinstance(leaf, ArrayShape) or not leaf.element_type.is_array:  # constant_c2
            raise given.error(2, f"there are no constants of {plain(leaf)}")
        if leaf.dynamic:  # constant_c2
            raise given.error(2, f"constants have static sizes, not those of {plain(leaf)}")
    if not compatible(literal.shape, given.declared):  # constant_c3
        raise given.error(
            3,
            f"the literal is {plain(literal.shape)}, the constant is declared"
            f" {plain(given.declared)}",
            attribute="literal",
        )


@checks(
    "custom-call",
    c1="operand_layout_constraints has one shape with layout for each operand",
    c2="the constrained shapes are the operands'",
    c3=_ALIASING,
)
def custom_call(given: Given) -> None:
    """Layout constraints and aliasing; the shape is the target's affair."""
    constraints = given.properties.get("operand_layout_constraints")
    if constraints is not None:
        shapes = [shape_of(t) for t in cast("ArrayAttr[Attribute]", constraints).data]
        if len(shapes) != len(given.operands):  # custom-call_c1
            raise given.error(
                1,
                f"expects {len(given.operands)} shapes in operand_layout_constraints, one an operand;"
                f" got {len(shapes)}",
                attribute="operand_layout_constraints",
            )
        for index, (shape, operand) in enumerate(zip(shapes, given.operands, strict=True)):
            if not compatible(shape, operand):  # custom-call_c2
                raise given.error(
                    2,
                    f"operand {index} is {plain(operand)}, but operand_layout_constraints says"
                    f" {plain(shape)}",
                    operand=index,
                )
    check_aliasing(given, 3)  # custom-call_c3


# ---------------------------------------------------------------- tokens and order


@infers("after-all")
def after_all(given: Given) -> Shape:
    """`token[]`; XLA:TPU waits for arrays by it too."""
    return TokenShape()


@infers("add-dependency")
def add_dependency(given: Given) -> Shape:
    """Operand 0's shape."""
    return given.operands[0]


@checks("add-dependency", c1="operand 1 is a token")
def check_add_dependency(given: Given) -> None:
    """A token as second operand."""
    if not isinstance(given.operands[1], TokenShape):  # add-dependency_c1
        raise given.error(
            1, f"Expected token shape operand, found {plain(given.operands[1])}", operand=1
        )


@infers("domain")
def domain(given: Given) -> Shape:
    """The operand's shape."""
    return given.operands[0]
