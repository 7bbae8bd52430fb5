"""Products of matrices by wgmma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Operation, SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.nvvm_warp_groups import WGMMA
from mlirhlo.lowering.mosaic_gpu.fragments import (
    TILE,
    Fragment,
)
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.shared import OPERATION
from mlirhlo.lowering.mosaic_gpu.writer import Writer, unfit


def descriptor(w: Writer, place: Place, row: Index, column: Index) -> SSAValue:
    """Of a factor in swizzled panels, from a row and a column on."""
    from xdsl.dialects import arith

    b = w.b
    if place.swizzle != 128:
        raise unfit(
            "a factor of wgmma that is not swizzled",
            "give its SMEM TilingTransform and SwizzleTransform(128)",
        )
    rows = place.whole[-2]
    start = place.part(
        [*[0] * (len(place.kept) - 2), row, column], range(len(place.kept)), place.sizes, b
    ).start_bytes(b)
    units = b.shrui(w.address(start), b.constant(4, i32))
    fixed = 1 << 62 | (1024 // 16) << 32 | (rows * 128 // 16) << 16
    return b.addi(b.cast(arith.ExtUIOp, units, i64), b.constant(fixed, i64))


_NAMES = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2", "i8": "s8"}


def _wgmma(w: Writer, op: Operation) -> Sequence[Any]:
    sums, a, factor = (w.values[v] for v in op.operands)
    sums = w.held(sums, TILE)
    name = _NAMES.get(str(factor.element))
    if name is None:
        raise unfit(f"wgmma of {factor.element}")
    row = WGMMA[name]
    (m, n), k = sums.shape, (a.sizes[-1] if isinstance(a, Place) else a.shape[-1])
    if isinstance(a, Place) and a.is_transposed:
        raise unfit("a transposed left factor of wgmma", "transpose the product")
    across = factor.is_transposed
    if not across and not row.can_transpose:
        raise unfit(
            f"a right factor of {factor.element} whose columns are side by side",
            "pass its transpose, and .T",
        )
    lanes = n // 2
    made: list[SSAValue] = []
    held = w.held(a, TILE) if isinstance(a, Fragment) else None
    in_registers = held is not None
    for block in range(m // 64):
        part = sums.registers[block * lanes : (block + 1) * lanes]
        steps = range(k // row.terms)
        lefts = [_packed(w, held, block, step, k) for step in steps] if held is not None else []
        part, lefts = _fenced(w, part, lefts, row)
        for step in steps:
            at = step * row.terms
            right = descriptor(w, factor, *((0, at) if across else (at, 0)))
            left = lefts[step] if lefts else [descriptor(w, cast("Place", a), block * 64, at)]
            part = _issue(
                w, part, left, right, n, row, transposed=not across, in_registers=in_registers
            )
        made += part
    return [replace(sums, registers=made)]


def _fenced(
    w: Writer, part: Sequence[SSAValue], lefts: Sequence[list[SSAValue]], row: Any
) -> tuple[list[SSAValue], list[list[SSAValue]]]:
    """A fence after all that writes the registers of products: LLVM moves no write past an instruction with them."""
    values = [*part, *(v for left in lefts for v in left)]
    types = [row.element] * len(part) + [i32] * (len(values) - len(part))
    held = list(w.ptx("wgmma.fence.sync.aligned;", values, types, ties=len(values)))
    packed = iter(held[len(part) :])
    return held[: len(part)], [[next(packed) for _ in left] for left in lefts]


def _packed(w: Writer, a: Fragment, block: int, step: int, k: int) -> list[SSAValue]:
    """Four registers with two numbers of 16 bits each."""
    from xdsl.dialects import arith

    b = w.b
    i16 = IntegerType(16)
    first = block * (k // 2) + step * 8
    found: list[SSAValue] = []
    for at in range(first, first + 8, 2):
        low, high = (
            b.cast(arith.ExtUIOp, b.bitcast(r, i16), i32) for r in a.registers[at : at + 2]
        )
        found.append(b.ori(low, b.shli(high, b.constant(16, i32))))
    return found


def _issue(
    w: Writer,
    part: Sequence[SSAValue],
    left: Sequence[SSAValue],
    right: SSAValue,
    n: int,
    row: Any,
    *,
    transposed: bool,
    in_registers: bool,
) -> list[SSAValue]:
    count = len(part)
    registers = ", ".join(f"${i}" for i in range(count))
    factors = [f"${count + i + count}" for i in range(len(left))]
    first = f"{{{', '.join(factors)}}}" if in_registers else factors[0]
    flags = ["1"] * row.signs
    if row.can_transpose:
        flags += ([] if in_registers else ["0"]) + [str(int(transposed))]
    after = 2 * count + len(left)
    text = ", ".join(
        [
            f"wgmma.mma_async.sync.aligned.m64n{n}k{row.terms}.{row.types} {{{registers}}}",
            first,
            f"${after}",
            "1",
            *flags,
        ]
    )
    return list(w.ptx(f"{text};", [*part, *left, right], [row.element] * count, ties=count))


OPERATIONS: Mapping[str, OPERATION] = {
    "mosaic_gpu.wgmma": _wgmma,
}
"""What writes each operation."""
