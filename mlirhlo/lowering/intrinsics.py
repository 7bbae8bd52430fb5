"""LLVM intrinsics that generated code may call, and how their names are mangled.

A name that is not here is refused before LLVM sees it: an intrinsic a target cannot select ends
the process. Source: LLVM language reference.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.lowering.nvvm_intrinsics import NVVM

RESULT = -1
"""Stands for the type of the result in a row below."""

OVERLOADED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "llvm.abs",
            "llvm.bitreverse",
            "llvm.bswap",
            "llvm.ceil",
            "llvm.copysign",
            "llvm.ctlz",
            "llvm.ctpop",
            "llvm.cttz",
            "llvm.fabs",
            "llvm.floor",
            "llvm.fma",
            "llvm.fmuladd",
            "llvm.fshl",
            "llvm.fshr",
            "llvm.maximum",
            "llvm.maxnum",
            "llvm.minimum",
            "llvm.minnum",
            "llvm.nearbyint",
            "llvm.rint",
            "llvm.round",
            "llvm.roundeven",
            "llvm.sadd.sat",
            "llvm.smax",
            "llvm.smin",
            "llvm.sqrt",
            "llvm.ssub.sat",
            "llvm.stepvector",
            "llvm.trunc",
            "llvm.uadd.sat",
            "llvm.umax",
            "llvm.umin",
            "llvm.usub.sat",
        ),
        (RESULT,),
    ),
    **dict.fromkeys(("llvm.fptosi.sat", "llvm.fptoui.sat"), (RESULT, 0)),
    **dict.fromkeys(
        (
            "llvm.vector.reduce.add",
            "llvm.vector.reduce.and",
            "llvm.vector.reduce.fmax",
            "llvm.vector.reduce.fmaximum",
            "llvm.vector.reduce.fmin",
            "llvm.vector.reduce.fminimum",
            "llvm.vector.reduce.mul",
            "llvm.vector.reduce.or",
            "llvm.vector.reduce.smax",
            "llvm.vector.reduce.smin",
            "llvm.vector.reduce.umax",
            "llvm.vector.reduce.umin",
            "llvm.vector.reduce.xor",
        ),
        (0,),
    ),
    **dict.fromkeys(("llvm.vector.reduce.fadd", "llvm.vector.reduce.fmul"), (1,)),
    "llvm.masked.load": (RESULT, 0),
    "llvm.masked.store": (0, 1),
    "llvm.masked.gather": (RESULT, 0),
    "llvm.masked.scatter": (0, 1),
    "llvm.memcpy": (0, 1, 2),
    "llvm.memmove": (0, 1, 2),
    "llvm.memset": (0, 2),
    "llvm.prefetch": (0,),
    "llvm.assume": (),
    "llvm.trap": (),
    "llvm.x86.avx2.pmadd.wd": (),
    "llvm.x86.avx512.pmaddw.d.512": (),
    "llvm.x86.avx512.vpdpbusd.256": (),
    "llvm.x86.avx512.vpdpbusd.512": (),
    "llvm.x86.avx2.vpdpbssd.256": (),
    "llvm.x86.avx2.vpdpbuud.256": (),
    "llvm.x86.avx10.vpdpbssd.512": (),
    "llvm.x86.avx10.vpdpbuud.512": (),
    "llvm.x86.avx512.fpclass.ps.512": (),
    "llvm.x86.avx512.mask.range.pd.128": (),
    "llvm.x86.avx512.mask.range.pd.256": (),
    "llvm.x86.avx512.mask.range.pd.512": (),
    "llvm.x86.avx512.mask.range.ps.128": (),
    "llvm.x86.avx512.mask.range.ps.256": (),
    "llvm.x86.avx512.mask.range.ps.512": (),
    "llvm.x86.avx512.mask.scalef.pd.512": (),
    "llvm.x86.avx512.mask.scalef.ps.512": (),
    "llvm.x86.avx512.permvar.df.512": (),
    "llvm.x86.avx512.permvar.sf.512": (),
    "llvm.x86.avx512.rsqrt14.pd.512": (),
    "llvm.x86.avx512.rsqrt14.ps.512": (),
    "llvm.x86.avx512.vpermi2var.pd.512": (),
    "llvm.x86.avx512.vpermi2var.ps.512": (),
    "llvm.x86.avx512bf16.cvtneps2bf16.512": (),
    "llvm.x86.avx512bf16.dpbf16ps.512": (),
    "llvm.x86.tdpbf16ps.internal": (),
    "llvm.x86.tdpbssd.internal": (),
    "llvm.x86.tdpbsud.internal": (),
    "llvm.x86.tdpbusd.internal": (),
    "llvm.x86.tdpbuud.internal": (),
    "llvm.x86.tileloadd64.internal": (),
    "llvm.x86.tilestored64.internal": (),
    "llvm.x86.tilezero.internal": (),
    "llvm.x86.sse2.pause": (),
    "llvm.x86.sse.ldmxcsr": (),
    "llvm.x86.sse.stmxcsr": (),
    "llvm.readcyclecounter": (),
    **dict.fromkeys(NVVM, ()),
}
"""Operands (`RESULT`, or their number) whose types are mangled into the name, by name."""


def mangled(name: str, result: str, operands: list[str]) -> str:
    """`llvm.fma.v16f32` for `llvm.fma` on `<16 x float>`; types are given in LLVM's spelling.

    Raises `KeyError` for a name that is not allowed.
    """
    parts = [result if at == RESULT else operands[at] for at in OVERLOADED[name]]
    return ".".join([name, *map(suffix, parts)])


_SUFFIXES = {
    "half": "f16",
    "bfloat": "bf16",
    "float": "f32",
    "double": "f64",
    "ptr": "p0",
}


def suffix(type_text: str) -> str:
    """`v16f32` for `<16 x float>`, `i64` for `i64`, `p0` for `ptr`."""
    if type_text.startswith("<"):
        count, _, element = type_text[1:-1].partition(" x ")
        return f"v{count}{suffix(element)}"
    if type_text.startswith("ptr addrspace("):
        return "p" + type_text[14:-1]
    return _SUFFIXES.get(type_text, type_text)
