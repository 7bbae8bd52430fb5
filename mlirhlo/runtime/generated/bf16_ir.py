"""Rounding to bf16, for what LLVM leaves to a library.

On processors without instructions for bf16, LLVM may call `__truncsfbf2` where a vector is taken apart; libraries of
compilers before GCC 13 lack it.
"""

from __future__ import annotations

from xdsl.dialects.builtin import bf16, f32, i16, i32

from mlirhlo.lowering.llvm_builder import LlvmBuilder
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.runtime_symbols import TO_BF16


def add_to_bf16(m: LlvmBuilder) -> None:
    """Adds the function: f32 to the nearest bf16, ties to even; a NaN becomes a quiet one."""
    f = m.function(TO_BF16, [f32], bf16, is_public=True)
    (x,) = f.arguments
    bits = x.bitcast(i32)
    rounded = bits + (((bits >> 16) & 1) + 0x7FFF)
    is_nan = (bits & 0x7FFF_FFFF).cmp("ugt", 0x7F80_0000)
    chosen = is_nan.select(bits | 0x40_0000, rounded)
    f.ret((chosen >> 16).to(i16).bitcast(bf16))


def assembly() -> str:
    """LLVM assembly of the function alone."""
    m = LlvmBuilder()
    add_to_bf16(m)
    return print_llvm(m.module())
