"""Tuples, calls, fusions, branches, loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i32
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, symbol
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.quick import create_op
from mlirhlo.rewrites.hlo_to_stablehlo.annotations import FRONTEND
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts, unflatten
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK, marked
from mlirhlo.rewrites.hlo_to_stablehlo.types import leaf_types

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import (
        CallOp as HloCallOp,
    )
    from mlirhlo.dialects.hlo.ops.control_flow import (
        ConditionalOp,
        FusionOp,
        GetTupleElementOp,
        WhileOp,
    )


@converts("tuple")
def tuple_(op: Instruction, scope: Scope) -> Tree:
    """Nothing: tuples are taken apart."""
    return tuple(scope.trees[value] for value in op.inputs)


@converts("get-tuple-element")
def get_tuple_element(op: Instruction, scope: Scope) -> Tree:
    """Nothing, or `get_tuple_element` of what a custom call gives."""
    return scope.element(scope.trees[op.inputs[0]], cast("GetTupleElementOp", op).index)


@converts("opt-barrier")
def opt_barrier(op: Instruction, scope: Scope) -> Tree:
    """`optimization_barrier` of the leaves."""
    return scope.many("stablehlo.optimization_barrier", scope.leaves(op), op.shape)


@converts("domain")
def domain(op: Instruction, scope: Scope) -> Tree:
    """A marked `optimization_barrier`."""
    if not isinstance(op.shape, TupleShape):
        scope.mark(marked(op), MARK)
    return opt_barrier(op, scope)


@converts("add-dependency")
def add_dependency(op: Instruction, scope: Scope) -> Tree:
    """A marked `optimization_barrier` of the value and what it waits for."""
    operands = scope.leaves(op)
    if len(operands) == len(op.inputs):
        scope.mark(marked(op), MARK)
    types = [v.type for v in operands]
    barrier = scope.emit("stablehlo.optimization_barrier", operands, types)
    return unflatten(op.shape, barrier.results)


def _call(op: Instruction, callee: str, scope: Scope) -> Tree:
    name = scope.importer.function(callee)
    properties: dict[str, Attribute] = {"callee": symbol(name)}
    called = create_op(CallOp, scope.leaves(op), leaf_types(op.shape), properties)
    scope.add(called)
    return unflatten(op.shape, called.results)


@converts("call")
def call(op: Instruction, scope: Scope) -> Tree:
    """`func.call`, or `composite` where the call says so."""
    given = cast("HloCallOp", op)
    if not bool_of(op.properties.get("is_composite")):
        return _call(op, given.to_apply, scope)
    entries = dict(op.frontend_attributes.entries) if op.frontend_attributes else {}
    name = entries.pop("composite.name", None)
    spelled = entries.pop("composite.attributes", "{}")
    version = entries.pop("composite.version", "0")
    attributes = read_dictionary(spelled)
    if name is None or attributes is None or not version.lstrip("-").isdigit():
        scope.mark(marked(op), MARK)
        return _call(op, given.to_apply, scope)
    if entries:
        rest = {key: StringAttr(text) for key, text in entries.items()}
        scope.attributes[FRONTEND] = DictionaryAttr(rest)
    else:
        scope.attributes.pop(FRONTEND, None)
    properties: dict[str, Attribute] = {
        "name": StringAttr(name),
        "decomposition": symbol(scope.importer.function(given.to_apply)),
    }
    if attributes.data:
        properties["composite_attributes"] = attributes
    if version != "0":
        properties["version"] = IntegerAttr(int(version), i32)
    return scope.many("stablehlo.composite", scope.leaves(op), op.shape, properties)


def read_dictionary(text: str) -> DictionaryAttr | None:
    """`{a = 1 : i32}` as an attribute; None when it is none."""
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    try:
        found = Parser(context, text).parse_attribute()
    except ParseError:
        return None
    return found if isinstance(found, DictionaryAttr) else None


@converts("fusion")
def fusion(op: Instruction, scope: Scope) -> Tree:
    """A call of the fused computation, marked with the kind of fusion."""
    found = _call(op, cast("FusionOp", op).calls, scope)
    scope.mark(marked(op), MARK)
    return found


@converts("conditional")
def conditional(op: Instruction, scope: Scope) -> Tree:
    """`if` on a pred, `case` on an index; branches read their operands where they stand."""
    branches = cast("ConditionalOp", op).called_computations
    index = op.input_shapes[0]
    on_pred = isinstance(index, ArrayShape) and index.element_type.name == "pred"
    trees = [scope.trees[value] for value in op.inputs[1:]]
    regions = [
        scope.importer.region(name, captured=(tree,))
        for name, tree in zip(branches, trees, strict=True)
    ]
    name = "stablehlo.if" if on_pred else "stablehlo.case"
    return scope.many(name, (scope.leaf(op.inputs[0]),), op.shape, None, regions)


@converts("while")
def while_(op: Instruction, scope: Scope) -> Tree:
    """`while` over the leaves of the state."""
    given = cast("WhileOp", op)
    importer = scope.importer
    regions = (importer.region(given.condition), importer.region(given.body))
    return scope.many("stablehlo.while", scope.leaves(op), op.shape, None, regions)
