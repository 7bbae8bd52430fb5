"""Sizes, tuples, calls and loops: instructions that hand arrays on, and those about sizes."""

from __future__ import annotations

from collections.abc import Sequence

from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ConditionalOp,
    CustomCallOp,
    GetDimensionSizeOp,
    GetTupleElementOp,
    SetDimensionSizeOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.dynamic_padder.bounded import (
    Bounded,
    Packed,
    Scope,
    Tree,
    handles,
    taken_apart,
)


@handles("get-dimension-size")
def get_dimension_size(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The size itself."""
    assert isinstance(op, GetDimensionSizeOp)
    found, dim = scope.array(operands[0]), op.dimensions[0]
    return (found.sizes[dim] or scope.number(found.bounds[dim])).op.output


@handles("set-dimension-size")
def set_dimension_size(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The room stays, with another size beside it."""
    assert isinstance(op, SetDimensionSizeOp)
    assert isinstance(op.shape, ArrayShape)
    found, size = scope.array(operands[0]), scope.array(operands[1]).data
    if not op.shape.is_dynamic:
        return found.data.op.output
    sizes = [size if d == op.dimensions[0] else old for d, old in enumerate(found.sizes)]
    marks = op.shape.dynamic
    return Bounded(
        found.data, tuple(s if mark else None for s, mark in zip(sizes, marks, strict=True))
    )


@handles("custom-call")
def custom_call(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """`PadToStatic` and `SliceToDynamic` are what arrays are taken apart with; others stay dynamic."""
    assert isinstance(op, CustomCallOp)
    match op.custom_call_target:
        case "PadToStatic" if not isinstance(operands[0], Packed):
            found = scope.array(operands[0])
            sizes = [s or scope.number(n) for s, n in zip(found.sizes, found.bounds, strict=True)]
            return (found.data.op.output, *(size.op.output for size in sizes))
        case "SliceToDynamic" if isinstance(op.shape, ArrayShape):
            data, *given = (scope.array(tree) for tree in operands)
            marks = op.shape.dynamic or (False,) * op.shape.rank
            used = tuple(s.data if mark else None for s, mark in zip(given, marks, strict=True))
            return Bounded(data.data, used, op.output)
        case "SetBound":
            return operands[0]
        case _:
            return None


@handles("tuple")
def tuple_(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The parts; those that are in one piece already stay so."""
    return None if all(map(_is_in_one, operands)) else tuple(operands)


def _is_in_one(tree: Tree) -> bool:
    """Whether a value is there whose parts nobody needs."""
    if isinstance(tree, Bounded):
        return tree.packed is not None
    return not isinstance(tree, tuple)


@handles("get-tuple-element")
def get_tuple_element(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """The part; what nobody looked into stays as it is."""
    assert isinstance(op, GetTupleElementOp)
    if isinstance(operands[0], Packed):
        return None
    return scope.parts(operands[0])[op.index]


@handles("opt-barrier")
def opt_barrier(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Sizes wait with the arrays."""
    made = scope.again(op, [scope.joined(operands[0], op.shape)], taken_apart(op.shape))
    return scope.split(made.output, op.shape)


@handles("while")
def while_(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Sizes are part of the state."""
    assert isinstance(op, WhileOp)
    parameters = scope.functions.parameters(op.body)
    if parameters is None:
        return None
    state = parameters[0]
    made = scope.again(op, [scope.joined(operands[0], state)], taken_apart(state))
    return scope.split(made.output, state)


@handles("call")
def call(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Sizes go in and come out with the arrays."""
    assert isinstance(op, CallOp)
    parameters = scope.functions.parameters(op.to_apply)
    if parameters is None:
        return None
    given = [scope.joined(t, shape) for t, shape in zip(operands, parameters, strict=True)]
    result = scope.functions.result(op.to_apply)
    return scope.split(scope.again(op, given, taken_apart(result)).output, result)


@handles("conditional")
def conditional(scope: Scope, op: Instruction, operands: Sequence[Tree]) -> Tree | None:
    """Sizes go in and come out with the arrays; the branches agree about what is dynamic."""
    assert isinstance(op, ConditionalOp)
    names = op.called_computations
    given = [scope.packed(operands[0], shape_of(op.inputs[0].type))]
    for name, tree in zip(names, operands[1:], strict=True):
        parameters = scope.functions.parameters(name)
        if parameters is None:
            return None
        given.append(scope.joined(tree, parameters[0]))
    result = scope.functions.result(names[0])
    return scope.split(scope.again(op, given, taken_apart(result)).output, result)
