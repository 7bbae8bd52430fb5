"""Instructions as text, and barriers of some threads of a block, in the llvm dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float32Type,
    Float64Type,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute

from mlirhlo.dialects.interned import UNIT, string
from mlirhlo.dialects.nvvm import BarrierOp, InlinePtxOp
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering

_NO_TAIL_CALL = xllvm.TailCallKindAttr(xllvm.TailCallKind.NONE)


def _letter(type_: Attribute) -> str:
    """The kind of register that a type goes to."""
    if isinstance(type_, Float32Type | Float64Type):
        return "f" if isinstance(type_, Float32Type) else "d"
    if isinstance(type_, xllvm.LLVMPointerType):
        return "r" if "3" in str(type_.addr_space) else "l"
    if type_ == i1:
        return "b"
    if type_ == i64:
        return "l"
    return "r" if type_ == i32 else "h"


def _inline(to: Lowering, op: InlinePtxOp) -> None:
    operands = [to.values[v] for v in op.inputs]
    types = [to.convert(v.type) for v in op.outputs]
    ties = cast(Any, op.ties).value.data
    words = [f"={_letter(t)}" for t in types]
    words += [str(n) if n < ties else _letter(v.type) for n, v in enumerate(operands)]
    result: Attribute = xllvm.LLVMVoidType()
    if types:
        result = types[0] if len(types) == 1 else xllvm.LLVMStructType.from_type_list(types)
    properties: dict[str, Attribute] = {
        "asm_string": op.ptx_code,
        "constraints": string(",".join([*words, "~{memory}"])),
        "has_side_effects": UNIT,
        "tail_call_kind": _NO_TAIL_CALL,
    }
    made = to.emit(xllvm.InlineAsmOp, operands, result if types else None, properties)
    if len(types) == 1:
        to.values[op.outputs[0]] = made
        return
    for at, output in enumerate(op.outputs):
        position: dict[str, Attribute] = {"position": DenseArrayBase.from_list(i64, [at])}
        to.values[output] = to.emit(xllvm.ExtractValueOp, [made], types[at], position)


def _barrier(to: Lowering, op: BarrierOp) -> None:
    operands = [to.values[op.barrier_id], to.values[op.number_of_threads]]
    intrinsic(to, "llvm.nvvm.barrier.cta.sync.aligned.count", operands, None)


HANDLERS: Mapping[str, Handler] = {
    "nvvm.inline_ptx": cast(Handler, _inline),
    "nvvm.barrier": cast(Handler, _barrier),
}
"""What lowers them."""
