"""Instructions as text, and barriers of some threads of a block, in the llvm dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from xdsl.ir import Attribute, SSAValue

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


def assembly(
    to: Lowering,
    text: str,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute] = (),
    *,
    ties: int = 0,
    constraints: str | None = None,
    has_effects: bool = True,
) -> list[SSAValue]:
    """Instructions as text: `$0`, `$1` … are results, then operands; the first `ties` of these are results before.

    `constraints` of LLVM in place of those of the types. Without effects they go where nothing reads their results.
    """
    words = [f"={_letter(t)}" for t in types]
    words += [str(n) if n < ties else _letter(v.type) for n, v in enumerate(operands)]
    result: Attribute | None = None
    if types:
        result = types[0] if len(types) == 1 else xllvm.LLVMStructType.from_type_list(types)
    properties: dict[str, Attribute] = {
        "asm_string": string(text),
        "constraints": string(constraints or ",".join([*words, "~{memory}"])),
        "tail_call_kind": _NO_TAIL_CALL,
    }
    if has_effects:
        properties["has_side_effects"] = UNIT
    made = to.emit(xllvm.InlineAsmOp, operands, result, properties)
    if len(types) <= 1:
        return [made] if types else []
    return [
        to.emit(
            xllvm.ExtractValueOp, [made], type_, {"position": DenseArrayBase.from_list(i64, [at])}
        )
        for at, type_ in enumerate(types)
    ]


def _inline(to: Lowering, op: InlinePtxOp) -> None:
    operands = [to.values[v] for v in op.inputs]
    types = [to.convert(v.type) for v in op.outputs]
    text, ties = op.ptx_code.data, cast(Any, op.ties).value.data
    to.values.update(zip(op.outputs, assembly(to, text, operands, types, ties=ties), strict=True))


def _barrier(to: Lowering, op: BarrierOp) -> None:
    operands = [to.values[op.barrier_id], to.values[op.number_of_threads]]
    intrinsic(to, "llvm.nvvm.barrier.cta.sync.aligned.count", operands, None)


HANDLERS: Mapping[str, Handler] = {
    "nvvm.inline_ptx": cast(Handler, _inline),
    "nvvm.barrier": cast(Handler, _barrier),
}
"""What lowers them."""
