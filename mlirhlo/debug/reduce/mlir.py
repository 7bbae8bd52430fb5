"""Reducers of any MLIR module: StableHLO programs, and kernels of the `tpu` dialect."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator, SymbolOpInterface

from mlirhlo.debug.reduce.hlo import Reducer
from mlirhlo.dialects.quick import replace


def _operations(module: ModuleOp) -> list[Operation]:
    """Operations that could go: no terminators, no functions."""
    return [
        op
        for op in module.walk()
        if op is not module
        and not op.has_trait(IsTerminator)
        and not op.has_trait(SymbolOpInterface)
    ]


def _erase(module: ModuleOp, places: Collection[int]) -> None:
    """Erases operations whose results nobody reads."""
    operations = _operations(module)
    for place in sorted(places, reverse=True):
        op = operations[place]
        if op.parent is not None and not any(result.first_use for result in op.results):
            op.detach()
            op.erase()


def _replace(module: ModuleOp, places: Collection[int]) -> None:
    """Replaces results by an earlier value of the same type, the earliest there is."""
    operations = _operations(module)
    for place in sorted(places, reverse=True):
        op = operations[place]
        for result in op.results:
            value = _earlier(op, result)
            if value is not None:
                replace(result, value)


def _bypass(module: ModuleOp, places: Collection[int]) -> None:
    """Replaces results by an operand of the same type."""
    operations = _operations(module)
    for place in sorted(places, reverse=True):
        op = operations[place]
        for result in op.results:
            same = [value for value in op.operands if value.type == result.type]
            if same:
                replace(result, same[0])


def _earlier(op: Operation, result: SSAValue) -> SSAValue | None:
    block: Block | None = op.parent
    while block is not None:
        for argument in block.args:
            if argument.type == result.type:
                return argument
        for other in block.ops:
            if other is op or other.is_ancestor(op):
                break
            results: Sequence[SSAValue] = other.results
            for value in results:
                if value.type == result.type:
                    return value
        parent = block.parent_op()
        op = parent if parent is not None else op
        block = None if parent is None or isinstance(parent, FuncOp) else parent.parent
    return None


def _functions(module: ModuleOp) -> list[FuncOp]:
    called = {
        str(attribute)
        for op in module.walk()
        for attribute in (*op.properties.values(), *op.attributes.values())
    }
    return [
        op
        for op in module.ops
        if isinstance(op, FuncOp)
        and op.sym_name.data != "main"
        and not any(f"@{op.sym_name.data}" in text for text in called)
    ]


def _drop_functions(module: ModuleOp, places: Collection[int]) -> None:
    functions = _functions(module)
    for place in places:
        functions[place].detach()
        functions[place].erase()


def _attributes(module: ModuleOp) -> list[tuple[Operation, str]]:
    return [
        (op, key) for op in module.walk() if not isinstance(op, FuncOp) for key in op.attributes
    ]


def _drop_attributes(module: ModuleOp, places: Collection[int]) -> None:
    attributes = _attributes(module)
    for place in places:
        op, key = attributes[place]
        del op.attributes[key]


def tidy(module: ModuleOp) -> None:
    """Erases operations without regions and effects on memory that nobody reads."""
    for op in reversed(_operations(module)):
        if op.results and not op.regions and not any(result.first_use for result in op.results):
            op.detach()
            op.erase()


MLIR_REDUCERS = (
    Reducer("erase operations", lambda m: len(_operations(m)), _erase),
    Reducer("replace results", lambda m: len(_operations(m)), _replace),
    Reducer("replace by operands", lambda m: len(_operations(m)), _bypass),
    Reducer("drop functions", lambda m: len(_functions(m)), _drop_functions),
    Reducer("drop attributes", lambda m: len(_attributes(m)), _drop_attributes),
)
