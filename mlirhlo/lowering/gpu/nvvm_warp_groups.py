"""Products of warp groups, copies by tensor maps and their barriers, as NVVM intrinsics and inline assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.interned import UNIT, string
from mlirhlo.dialects.nvgpu import (
    MBarrierArriveOp,
    MBarrierFenceOp,
    MBarrierInitOp,
    MBarrierTryWaitParityOp,
    TmaAsyncLoadOp,
    WarpgroupMmaOp,
)
from mlirhlo.lowering.gpu.nvvm_atomics import NO_TAIL_CALL
from mlirhlo.lowering.gpu.nvvm_clusters import CLUSTER_SHARED
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering
from mlirhlo.lowering.loops_to_llvm.indices import pointer_in

PANEL_BYTES = 128
_EIGHT_ROWS = 8 * PANEL_BYTES
_SWIZZLED = 1 << 62
"""In a descriptor: units of 16 bytes are swizzled in rows of 128."""


@dataclass(frozen=True, slots=True)
class Wgmma:
    """One type of `wgmma`; each product has 32 bytes of terms."""

    terms: int
    types: str
    """Of the sums and the factors, as modifiers."""
    element: Attribute = f32
    signs: int = 2
    """Immediates behind the scale: signs of the factors, which integers lack."""
    can_transpose: bool = False


WGMMA: Mapping[str, Wgmma] = {
    "bf16": Wgmma(16, "f32.bf16.bf16", can_transpose=True),
    "f16": Wgmma(16, "f32.f16.f16", can_transpose=True),
    "tf32": Wgmma(8, "f32.tf32.tf32"),
    "f8e4m3fn": Wgmma(32, "f32.e4m3.e4m3"),
    "f8e5m2": Wgmma(32, "f32.e5m2.e5m2"),
    "s8": Wgmma(32, "s32.s8.s8", i32, 0),
    "u8": Wgmma(32, "s32.u8.u8", i32, 0),
}
"""By the type of the factors. LLVM has no intrinsics for them."""


def _init(to: Lowering, op: MBarrierInitOp) -> None:
    count = to.constant(op.count.value.data, i32)
    operands = [to.address(op.barriers, [op.index]), count]
    intrinsic(to, "llvm.nvvm.mbarrier.init.shared", operands, None)


def _fence_init(to: Lowering, op: MBarrierFenceOp) -> None:
    del op
    intrinsic(to, "llvm.nvvm.fence.mbarrier_init.release.cluster", [], None)


def _arrive(to: Lowering, op: MBarrierArriveOp) -> None:
    count = op.tx_count
    kind = "arrive" if count is None else "arrive.expect.tx"
    number = to.constant(1 if count is None else count.value.data, i32)
    operands = [to.address(op.barriers, [op.index]), number]
    intrinsic(to, f"llvm.nvvm.mbarrier.{kind}.scope.cta.space.cta", operands, i64)


def _wait(to: Lowering, op: MBarrierTryWaitParityOp) -> None:
    """A loop until the attempt, which itself waits for a while, succeeds."""
    parity = to.values[op.parity]
    parity = parity if parity.type == i32 else to.truncate(parity, i32)
    operands = [to.address(op.barriers, [op.index]), parity]
    head, after = to.add_block(), to.add_block()
    to.jump(head, ())
    to.enter(head)
    name = "llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta"
    to.branch(intrinsic(to, name, operands, i1), after, head, (), ())
    to.leave(after)


def _load(to: Lowering, op: TmaAsyncLoadOp) -> None:
    target = to.address(op.dst, op.dst_indices)
    target = to.emit(llvm.AddrSpaceCastOp, [target], pointer_in(CLUSTER_SHARED))
    coordinates = [to.values[c] for c in op.coordinates]
    operands = [
        target,
        to.address(op.barriers, [op.index]),
        to.values[op.tensor_map],
        *(c if c.type == i32 else to.truncate(c, i32) for c in coordinates),
        to.constant(0, IntegerType(16)),
        to.constant(0, i64),
        *[to.constant(0, i1)] * 2,
        to.constant(0, i32),
    ]
    name = f"llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{len(coordinates)}d"
    intrinsic(to, name, operands, None)


def _mma(to: Lowering, op: WarpgroupMmaOp) -> None:
    row = WGMMA.get(op.kind.data)
    if row is None:
        raise error("HLO0804", f"`{op.name}` of kind `{op.kind.data}` has no lowering to NVVM")
    transposes = (op.transpose_a is not None, op.transpose_b is not None)
    factors = [
        _descriptors(to, memref, indices, op, ints(strides))
        for memref, indices, strides in (
            (op.a, op.a_indices, op.a_strides),
            (op.b, op.b_indices, op.b_strides),
        )
    ]
    sums = [to.values[v] for v in op.sums]
    count = len(sums)
    registers = ", ".join(f"${n}" for n in range(count))
    flags = ["1"] * row.signs + [str(int(t)) for t in transposes if row.can_transpose]
    shape = f"m64n{op.columns.value.data}k{row.terms}"
    text = ", ".join(
        [
            f"wgmma.mma_async.sync.aligned.{shape}.{row.types} {{{registers}}}",
            *(f"${count + n}" for n in range(3)),
            *flags,
        ]
    )
    # LLVM moves no write of the sums past a fence that has them as operands.
    sums = _with_sums(to, row, "wgmma.fence.sync.aligned", "", [], sums)
    for left, right in zip(*factors, strict=True):
        sums = _with_sums(to, row, text, "l,l,b,", [left, right, to.constant(1, i1)], sums)
    intrinsic(to, "llvm.nvvm.wgmma.commit_group.sync.aligned", [], None)
    intrinsic(to, "llvm.nvvm.wgmma.wait_group.sync.aligned", [to.constant(0, i64)], None)
    to.values.update(zip(op.results, sums, strict=True))


def _with_sums(
    to: Lowering,
    row: Wgmma,
    text: str,
    more: str,
    operands: Sequence[SSAValue],
    sums: Sequence[SSAValue],
) -> list[SSAValue]:
    """An instruction that updates the registers of the sums; `more` are the constraints of other operands."""
    count = len(sums)
    letter = "f" if row.element == f32 else "r"
    ties = ",".join(map(str, range(count)))
    properties: dict[str, Attribute] = {
        "asm_string": string(text + ";"),
        "constraints": string(",".join([f"={letter}"] * count) + f",{more}{ties},~{{memory}}"),
        "has_side_effects": UNIT,
        "tail_call_kind": NO_TAIL_CALL,
    }
    struct = xllvm.LLVMStructType.from_type_list([row.element] * count)
    updated = to.emit(xllvm.InlineAsmOp, [*operands, *sums], struct, properties)
    return [
        to.emit(
            xllvm.ExtractValueOp,
            [updated],
            row.element,
            {"position": DenseArrayBase.from_list(i64, [n])},
        )
        for n in range(count)
    ]


def _descriptors(
    to: Lowering, memref: SSAValue, indices: Any, op: WarpgroupMmaOp, strides: tuple[int, ...]
) -> list[SSAValue]:
    """Of each product: where a factor starts, in units of 16 bytes, and how far its panels and rows are apart."""
    size = cast("MemRefType[Any]", memref.type).element_type.size
    step, panel = (n * size // 16 for n in strides)
    address = to.emit(xllvm.PtrToIntOp, [to.address(memref, indices)], i32)
    units = to.emit(xllvm.ZExtOp, [to.emit(xllvm.LShrOp, [address, to.constant(4, i32)], i32)], i64)
    fixed = _SWIZZLED | _EIGHT_ROWS // 16 << 32 | panel << 16
    none: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}
    return [
        to.emit(xllvm.AddOp, [units, to.constant(fixed + n * step, i64)], i64, dict(none))
        for n in range(op.count.value.data)
    ]


HANDLERS: Mapping[str, Handler] = {
    "nvgpu.mbarrier.init": _init,
    "nvgpu.mbarrier.fence_init": _fence_init,
    "nvgpu.mbarrier.arrive": _arrive,
    "nvgpu.mbarrier.try_wait.parity": _wait,
    "nvgpu.tma.async.load": _load,
    "nvgpu.warpgroup.mma": _mma,
}
