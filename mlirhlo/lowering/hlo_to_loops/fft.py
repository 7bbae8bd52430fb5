"""fft: in double precision, one dimension after the other.

Most have loops of this compiler (`fft_loops.py`). Here are long lines along other dimensions than the
last, long ones with a large prime factor, and other layouts, by the loops of `numpy.fft`: a batch is
copied into memory of its own, transformed back and forth between two halves of it, and copied out;
batches go to several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, f64, i8, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import C128, F64
from mlirhlo.dialects.hlo.ops.linear_algebra import FftOp
from mlirhlo.lowering import routines
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.fft_loops import fft_loops, has_loops
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.outside import Outside
from mlirhlo.lowering.hlo_to_loops.places import Places

_BYTES = MemRefType(i8, [DYNAMIC_INDEX])
_NS = 2.0
"""Of one element and doubling of the length."""


@builds("fft")
def fft(name: str, op: Any) -> FuncOp:
    """Transforms of the last dimensions.

    Raises `HloError` HLO0432 where NumPy's loops are wanted and not found, and for sizes that do not fit.
    """
    assert isinstance(op, FftOp)
    k = ArrayKernel(name, op)
    b, outside = k.b, Outside(k.b)
    (operand,), (result,) = k.operands, k.results
    lengths, kind = op.fft_length, op.fft_type
    first = operand.rank - len(lengths)
    before, after = list(operand.dimensions[first:]), list(result.dimensions[first:])
    given = [*lengths[:-1], lengths[-1] // 2 + 1] if kind == "IRFFT" else list(lengths)
    if before != given:
        raise error("HLO0432", f"`fft` of {operand}: its sizes are not the transform's")
    if 0 in (*operand.dimensions, *result.dimensions):
        return k.finish()
    if has_loops(op):
        return fft_loops(name, op)
    is_forward = kind in ("FFT", "RFFT")
    steps = _steps(kind, before, after)
    room = 2 * max(prod(before), prod(after))
    batch = operand.dimensions[:first]
    work = prod(batch) * prod(after) * log2(prod(after) + 1) * _NS
    with k.each(batch, [(8 * room, i8)] * 2, work) as (place, halves):
        numbers = [k.view(half, 0, [room], f64) for half in halves]
        wide_in = F64 if kind == "RFFT" else C128
        with k.nest(before) as inner:
            value = k.read(0, [*place, *inner], Places(b, 0))
            value = convert(b, value, operand.element_type, wide_in)
            at = Places(b, 0).linear(inner, before).base
            for part, number in enumerate(value):
                b.store(number, numbers[0], [b.add(b.mul(at, len(value)), part)])
        flag = b.scratch([1], i8)
        b.store(b.constant(is_forward, i8), flag, [0])
        for routine, sizes, dim, made in steps:
            factor = 1.0 if is_forward else 1.0 / made
            _transform(outside, routine, halves, sizes, dim, made, flag, factor)
            halves, numbers = halves[::-1], numbers[::-1]
        wide_out = F64 if kind == "IRFFT" else C128
        with k.nest(after) as inner:
            at = Places(b, 0).linear(inner, after).base
            parts = 2 if wide_out is C128 else 1
            value = tuple(b.load(numbers[0], [b.add(b.mul(at, parts), p)]) for p in range(parts))
            k.write(1, [*place, *inner], convert(b, value, wide_out, result.element_type))
    return outside.finish(k.finish())


def _steps(
    kind: str, before: Sequence[int], after: Sequence[int]
) -> list[tuple[str, list[int], int, int]]:
    """Transforms one after the other: the routine, sizes it finds, along which, and how many it makes."""
    last = len(before) - 1
    others = [("complex", d, before[d]) for d in range(last)]
    match kind:
        case "RFFT":
            real = "real_odd" if before[last] % 2 else "real_even"
            order = [(real, last, after[last]), *others]
        case "IRFFT":
            order = [*others, ("to_real", last, after[last])]
        case _:
            order = [("complex", last, after[last]), *others]
    sizes, steps = list(before), list[tuple[str, list[int], int, int]]()
    for routine, dim, made in order:
        steps.append((routine, list(sizes), dim, made))
        sizes[dim] = made
    return steps


def _transform(
    outside: Outside,
    routine: str,
    halves: Sequence[SSAValue],
    sizes: Sequence[int],
    dim: int,
    made: int,
    flag: SSAValue,
    factor: float,
) -> None:
    """One dimension of all that is in the first half, into the second."""
    b = outside.b
    source = 8 if routine.startswith("real") else 16
    target = 8 if routine == "to_real" else 16
    inner, taken = prod(sizes[dim + 1 :]), sizes[dim]
    scale = b.scratch([8], i8)
    number = b.emit(memref.ViewOp, [scale, b.index(0)], MemRefType(f64, [1]))
    b.store(b.constant(factor, f64), number, [0])
    arrays, counts, strides = b.scratch([3], _BYTES), b.scratch([3], i64), b.scratch([5], i64)
    if inner == 1:  # neighbouring lines
        lines, rounds = prod(sizes[:dim]), 1
        steps = (taken * source, 0, made * target, source, target)
    else:
        lines, rounds = inner, prod(sizes[:dim])
        steps = (source, 0, target, inner * source, inner * target)
    for at, count in enumerate((lines, taken, made)):
        b.store(b.constant(count, i64), counts, [at])
    for at, step in enumerate(steps):
        b.store(b.constant(step, i64), strides, [at])
    b.store(_from(b, scale, 0), arrays, [1])
    with b.loop(0, rounds) as outer:
        for at, (half, width) in (
            (0, (halves[0], taken * source)),
            (2, (halves[1], made * target)),
        ):
            b.store(_from(b, half, b.mul(outer, inner * width)), arrays, [at])
        outside.call(f"{routines.FFT}{routine}", [arrays, counts, strides, flag])


def _from(b: FunctionBuilder, memory: SSAValue, offset: Index) -> SSAValue:
    """Memory from some bytes behind its start on."""
    return b.emit(memref.ViewOp, [memory, b.index(offset), b.index(0)], _BYTES)
