"""Matrix units and asynchronous copies of the nvgpu dialect as NVVM intrinsics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, VectorType, f16, f32, f64, i32, i64
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.nvgpu import (
    DeviceAsyncCopyOp,
    DeviceAsyncCreateGroupOp,
    DeviceAsyncWaitOp,
    LdMatrixOp,
    MmaSyncOp,
)
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering


@dataclass(frozen=True, slots=True)
class Mma:
    """One shape and type of `mma.sync`."""

    intrinsic: str
    """What follows `llvm.nvvm.mma.`."""
    element: Attribute = f32
    """Of the sums."""
    register: Attribute = i32
    """Type of the factors' registers."""


MMA: Mapping[str, Mma] = {
    "bf16": Mma("m16n8k16.row.col.bf16"),
    "f16": Mma("m16n8k16.row.col.f32.f32", register=VectorType(f16, [2])),
    "tf32": Mma("m16n8k8.row.col.tf32"),
    "f8e4m3fn": Mma("m16n8k32.row.col.f32.e4m3.e4m3.f32"),
    "f8e5m2": Mma("m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    "s8": Mma("m16n8k32.row.col.s8", i32),
    "u8": Mma("m16n8k32.row.col.u8", i32),
    "f64": Mma("m8n8k4.row.col.f64", f64, f64),
}
"""By the type of the factors."""


def _ldmatrix(to: Lowering, op: LdMatrixOp) -> None:
    transpose = "trans." if op.transpose is not None else ""
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.{transpose}b16.p3"
    struct = xllvm.LLVMStructType.from_type_list([i32] * 4)
    registers = intrinsic(to, name, [to.address(op.source, op.indices)], struct)
    to.values[op.result] = _vector_of_parts(to, registers, op.result.type)


def _mma(to: Lowering, op: MmaSyncOp) -> None:
    row = MMA.get(op.kind.data)
    if row is None:
        raise error("HLO0804", f"`{op.name}` of kind `{op.kind.data}` has no lowering to NVVM")
    factors = [part for value in (op.a, op.b) for part in _parts(to, value)]
    operands = [
        part if part.type == row.register else to.emit(xllvm.BitcastOp, [part], row.register)
        for part in factors
    ]
    operands += _parts(to, op.c)
    count = cast(Any, op.result.type).get_shape()[0]
    struct = xllvm.LLVMStructType.from_type_list([row.element] * count)
    sums = intrinsic(to, f"llvm.nvvm.mma.{row.intrinsic}", operands, struct)
    to.values[op.result] = _vector_of_parts(to, sums, op.result.type)


def _parts(to: Lowering, value: SSAValue) -> list[SSAValue]:
    vector = to.values[value]
    type_ = cast("VectorType[Attribute]", vector.type)
    return [
        to.emit(llvm.ExtractElementOp, [vector, to.constant(lane, i32)], type_.element_type)
        for lane in range(type_.get_shape()[0])
    ]


def _vector_of_parts(to: Lowering, struct: SSAValue, type_: Attribute) -> SSAValue:
    vector = to.poison(type_)
    element = cast(Attribute, cast(Any, type_).element_type)
    for lane in range(cast(Any, type_).get_shape()[0]):
        properties: dict[str, Attribute] = {"position": DenseArrayBase.from_list(i64, [lane])}
        part = to.emit(xllvm.ExtractValueOp, [struct], element, properties)
        operands = (vector, part, to.constant(lane, i32))
        vector = to.emit(xllvm.InsertElementOp, operands, type_)
    return vector


def _copy(to: Lowering, op: DeviceAsyncCopyOp) -> None:
    size = cast("MemRefType[Any]", op.dst.type).element_type.size
    count = size * op.dst_elements.value.data
    level = "cg" if count == 16 else "ca"
    name = f"llvm.nvvm.cp.async.{level}.shared.global.{count}"
    operands = [to.address(op.dst, op.dst_indices), to.address(op.src, op.src_indices)]
    if op.src_elements is not None:
        read = to.times(to.values[op.src_elements], size)
        operands.append(read if read.type == i32 else to.truncate(read, i32))
        name += ".s"
    intrinsic(to, name, operands, None)


def _create_group(to: Lowering, op: DeviceAsyncCreateGroupOp) -> None:
    del op
    intrinsic(to, "llvm.nvvm.cp.async.commit.group", [], None)


def _wait(to: Lowering, op: DeviceAsyncWaitOp) -> None:
    count = to.constant(op.num_groups.value.data, i32)
    intrinsic(to, "llvm.nvvm.cp.async.wait.group", [count], None)


HANDLERS: Mapping[str, Handler] = {
    "nvgpu.ldmatrix": _ldmatrix,
    "nvgpu.mma.sync": _mma,
    "nvgpu.device_async_copy": _copy,
    "nvgpu.device_async_create_group": _create_group,
    "nvgpu.device_async_wait": _wait,
}
