"""`amx`, `x86vector` and `mlirhlo`: instructions of one processor family, by LLVM's intrinsics.

Tile registers are values: LLVM gives them registers, and sets their sizes where a function starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import Float32Type, VectorType, i8, i16
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects import amx
from mlirhlo.dialects.llvm import LLVMX86AMXType
from mlirhlo.dialects.quick import operands_of
from mlirhlo.dialects.x86 import (
    ClassFOp,
    DotI8Op,
    DotI16Op,
    MaskRangeOp,
    PermuteOp,
    ReciprocalRootOp,
    TileLoadOp,
    TileStoreOp,
)
from mlirhlo.dialects.x86vector import CvtPackedF32ToBF16Op, DotBF16Op, MaskScaleFOp
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering

_TILE = LLVMX86AMXType()
_PRODUCTS = {
    (False, False): "tdpbssd",
    (False, True): "tdpbsud",
    (True, False): "tdpbusd",
    (True, True): "tdpbuud",
}


def _of_floats(type_: Attribute) -> str:
    """How names of instructions on vectors end."""
    vector = cast("VectorType[Any]", type_)
    kind = "ps" if type(vector.element_type) is Float32Type else "pd"
    return f"{kind}.{_bits(type_)}"


def _bits(type_: Attribute) -> int:
    """Of a vector."""
    vector = cast("VectorType[Any]", type_)
    (lanes,) = vector.get_shape()
    return cast(int, lanes * vector.element_type.bitwidth)


def _sizes(to: Lowering, type_: Any) -> list[SSAValue]:
    return [to.constant(type_.rows, i16), to.constant(type_.row_bytes, i16)]


def _zero(to: Lowering, op: amx.TileZeroOp) -> None:
    to.values[op.res] = intrinsic(to, "llvm.x86.tilezero.internal", _sizes(to, op.res.type), _TILE)


def _load(to: Lowering, op: TileLoadOp) -> None:
    place = [to.address(op.base, [op.index]), to.values[op.stride]]
    operands = [*_sizes(to, op.res.type), *place]
    to.values[op.res] = intrinsic(to, "llvm.x86.tileloadd64.internal", operands, _TILE)


def _store(to: Lowering, op: TileStoreOp) -> None:
    place = [to.address(op.base, [op.index]), to.values[op.stride]]
    operands = [*_sizes(to, op.val.type), *place, to.values[op.val]]
    intrinsic(to, "llvm.x86.tilestored64.internal", operands, None)


def _product(to: Lowering, op: Operation, name: str) -> None:
    lhs, rhs, acc = op.operands
    rows, row_bytes = _sizes(to, acc.type)
    depth_bytes = to.constant(cast(amx.TileType, lhs.type).row_bytes, i16)
    factors = [to.values[acc], to.values[lhs], to.values[rhs]]
    operands = [rows, row_bytes, depth_bytes, *factors]
    to.values[op.results[0]] = intrinsic(to, f"llvm.x86.{name}.internal", operands, _TILE)


def _mulf(to: Lowering, op: amx.TileMulFOp) -> None:
    _product(to, op, "tdpbf16ps")


def _muli(to: Lowering, op: amx.TileMulIOp) -> None:
    _product(to, op, _PRODUCTS[op.is_zext_lhs is not None, op.is_zext_rhs is not None])


def _dot_bf16(to: Lowering, op: DotBF16Op) -> None:
    operands = [to.values[o] for o in op.operands]
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    to.values[op.dst] = intrinsic(to, name, operands, op.dst.type)


def _dot_i8(to: Lowering, op: DotI8Op) -> None:
    w, a, b = (to.values[o] for o in op.operands)
    is_wide = _bits(op.a.type) == 512
    match op.is_zext_a is not None, op.is_zext_b is not None:
        case True, False:
            name = "avx512.vpdpbusd"
        case False, False:
            name = "avx10.vpdpbssd" if is_wide else "avx2.vpdpbssd"
        case True, True:
            name = "avx10.vpdpbuud" if is_wide else "avx2.vpdpbuud"
        case _:
            a, b, name = b, a, "avx512.vpdpbusd"
    intrinsic_name = f"llvm.x86.{name}.{_bits(op.a.type)}"
    to.values[op.dst] = intrinsic(to, intrinsic_name, [w, a, b], op.dst.type)


def _dot_i16(to: Lowering, op: DotI16Op) -> None:
    operands = [to.values[o] for o in op.operands]
    name = "avx512.pmaddw.d.512" if _bits(op.a.type) == 512 else "avx2.pmadd.wd"
    to.values[op.dst] = intrinsic(to, f"llvm.x86.{name}", operands, op.dst.type)


def _to_bf16(to: Lowering, op: CvtPackedF32ToBF16Op) -> None:
    name = "llvm.x86.avx512bf16.cvtneps2bf16.512"
    to.values[op.dst] = intrinsic(to, name, [to.values[op.a]], op.dst.type)


def _class(to: Lowering, op: ClassFOp) -> None:
    operands = [to.values[o] for o in op.operands]
    name = "llvm.x86.avx512.fpclass." + _of_floats(op.a.type)
    to.values[op.dst] = intrinsic(to, name, operands, op.dst.type)


def _range(to: Lowering, op: MaskRangeOp) -> None:
    src, a, b, k, which, imm = (to.values[o] for o in operands_of(op))
    (result,) = op.results
    name = "llvm.x86.avx512.mask.range." + _of_floats(result.type)
    rounding = [imm] if _bits(result.type) == 512 else []
    to.values[result] = intrinsic(to, name, [a, b, which, src, k, *rounding], result.type)


def _scalef(to: Lowering, op: MaskScaleFOp) -> None:
    src, a, b, k, imm = (to.values[o] for o in operands_of(op))
    (result,) = op.results
    name = "llvm.x86.avx512.mask.scalef." + _of_floats(result.type)
    to.values[result] = intrinsic(to, name, [a, b, src, k, imm], result.type)


def _reciprocal_root(to: Lowering, op: ReciprocalRootOp) -> None:
    value = to.values[op.a]
    every = to.constant(-1, i16 if cast(Any, op.dst.type).get_shape() == (16,) else i8)
    name = "llvm.x86.avx512.rsqrt14." + _of_floats(op.dst.type)
    to.values[op.dst] = intrinsic(to, name, [value, value, every], op.dst.type)


def _permute(to: Lowering, op: PermuteOp) -> None:
    places, a, *b = (to.values[o] for o in operands_of(op))
    (result,) = op.results
    kind = _of_floats(result.type)
    name = f"vpermi2var.{kind}" if b else f"permvar.{kind[1]}f.512"
    to.values[result] = intrinsic(to, f"llvm.x86.avx512.{name}", [a, places, *b], result.type)


HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        "amx.tile_zero": _zero,
        "mlirhlo.tile_load": _load,
        "mlirhlo.tile_store": _store,
        "amx.tile_mulf": _mulf,
        "amx.tile_muli": _muli,
        "mlirhlo.dot_i8": _dot_i8,
        "mlirhlo.dot_i16": _dot_i16,
        "x86vector.avx512.cvt.packed.f32_to_bf16": _to_bf16,
        "x86vector.avx512.dot": _dot_bf16,
        "mlirhlo.fpclass": _class,
        "mlirhlo.range": _range,
        "x86vector.avx512.mask.scalef": _scalef,
        "mlirhlo.permute": _permute,
        "mlirhlo.rsqrt14": _reciprocal_root,
    },
)
