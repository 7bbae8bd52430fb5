"""Modules of functions over loops as modules of the llvm dialect."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.quick import create_op, module_of, ops_of, region_of
from mlirhlo.lowering.loops_to_llvm.convert import Lowering, no_lowering
from mlirhlo.lowering.loops_to_llvm.effort import (
    Heavy,
    heavy_functions,
    loops_of_light,
    ops_inside,
)
from mlirhlo.lowering.loops_to_llvm.handlers import HANDLERS

_SELDOM = (StringAttr("noinline"), StringAttr("optnone"))
_PUBLIC, _PRIVATE = xllvm.LinkageAttr("external"), xllvm.LinkageAttr("internal")
_DEFAULT = IntegerAttr(0, 64)
"""Visibility."""


def convert_to_llvm(
    module: ModuleOp, *, features: Mapping[str, str] | None = None, entry: str | None = None
) -> ModuleOp:
    """A new module of the llvm dialect for a module of `func.func` over loops.

    `features` are function attributes given to every definition (`"prefer-vector-width": "512"`).
    `entry`: the only function that is called from outside, if there is but one; then the other of two is
    lowered where it calls it, where that is not worth a function of its own (`_only_callee`).
    Raises `HloError` HLO0431 for an op without a lowering.
    """
    functions: list[Operation] = []
    passthrough = _passthrough(*(features or {}).items())
    top: dict[str, Operation] = {}
    funcs = [op for op in ops_of(module.body.block) if isinstance(op, FuncOp)]
    heavy = heavy_functions(funcs)
    callee = None if entry is None else _only_callee(funcs, entry, heavy)
    for op in ops_of(module.body.block):
        if op is callee:
            continue
        if isinstance(op, FuncOp):
            name = op.sym_name.data
            lowering = Lowering(HANDLERS, top, name, passthrough, heavy)
            lowering.callee = callee
            functions.append(lowering.function(op))
        elif op.name == "memref.global":
            made = _global(op)
            top[cast(StringAttr, made.properties["sym_name"]).data] = made
        else:
            raise no_lowering(op)
    return module_of([*top.values(), *functions])


def _only_callee(functions: Sequence[FuncOp], entry: str, heavy: Heavy) -> FuncOp | None:
    """The only function beside the entry, where it is called once, outside of loops, and has nothing but scalars
    around parallel loops: LLVM takes more time for a function than for what is in such a one."""
    inside = [f for f in functions if f.body.blocks]
    if len(inside) != 2 or entry not in {f.sym_name.data for f in inside}:
        return None
    main, callee = inside if inside[0].sym_name.data == entry else inside[::-1]
    name = callee.sym_name.data
    calls = [op for op in ops_inside(main) if type(op) is CallOp and _callee(op) == name]
    if len(calls) != 1 or calls[0].parent is not main.body.blocks[0]:
        return None
    cut = loops_of_light(callee.body.blocks[0], heavy, is_task=False, is_public=False)
    return callee if cut is not None and not cut and not calls[0].results else None


def _callee(call: CallOp) -> str:
    return call.callee.root_reference.data


@functools.lru_cache
def _passthrough(*features: tuple[str, str]) -> Sequence[ArrayAttr[Any]]:
    words = [ArrayAttr([StringAttr(key), StringAttr(value)]) for key, value in features]
    return ArrayAttr(words), ArrayAttr([*words, *_SELDOM])


def _global(op: Operation) -> Operation:
    type_ = cast("MemRefType[Any]", op.properties["type"])
    count = 1
    for size in type_.get_shape():
        count *= size
    value = op.properties["initial_value"]
    is_outside = op.properties["sym_visibility"] == StringAttr("public")
    properties: dict[str, Attribute] = {
        "global_type": xllvm.LLVMArrayType(IntAttr(count), type_.element_type),
        "sym_name": op.properties["sym_name"],
        "linkage": _PUBLIC if is_outside else _PRIVATE,
        "addr_space": IntegerAttr(0, i32),
        "alignment": op.properties.get("alignment", IntegerAttr(64, i64)),
    }
    if "constant" in op.properties:
        properties["constant"] = UnitAttr()
    if isinstance(value, DenseIntOrFPElementsAttr) and type_.element_type == i8:
        properties["value"] = value.data
    elif not isinstance(value, UnitAttr):
        properties["value"] = value
    return create_op(xllvm.GlobalOp, properties=properties, regions=[region_of()])
