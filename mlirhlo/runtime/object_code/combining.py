"""Which assembly LLVM's combining of neighbouring instructions does nothing for.

It looks at every instruction three times. The lowering writes what is to come out: shifts for products with powers of
two (`loops_to_llvm/indices.py`), products for exact quotients (`builder/arithmetic.py`), jumps to what does not follow.
What it does not write so, such as divisions of integers by constants and conversions, is combined; so is what the
processor has instructions for only in other words, such as comparisons of masks, which LLVM cannot select otherwise.
"""

from __future__ import annotations

import re

_OPCODES = re.compile(r"\n  (?:%\w+ = )?(\w+)")
_INTRINSICS = re.compile(r"\ndeclare .*@llvm\.([\w.]+)\.\w+\(")
"""Without the types they are declared for."""

_MASK = " x i1>"
_WHOLE_MASKS = re.compile(
    r"(?!  )|  %\w+ = (?:(?:and|or|xor|phi|call) |select <(?:8|16) x i1> [^,]+, <\d+ x (?!i1))"
)
"""Lines in which masks of whole vectors belong: of these, and those that are no instructions."""
_OTHER_MASKS = re.compile(r"<(?!8 x i1>|16 x i1>)\d+ x i1>")

_PLAIN = frozenset(
    {
        *("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "icmp", "select"),
        *("fadd", "fsub", "fmul", "fdiv", "fneg", "fcmp"),
        *("bitcast", "ptrtoint", "insertelement", "extractelement", "shufflevector"),
        *("alloca", "getelementptr", "load", "store", "br", "phi", "call", "ret"),
    }
)
"""Instructions that are selected one by one."""
_PLAIN_CALLS = frozenset(
    {
        *("copysign", "fabs", "fma", "prefetch", "smax", "smin", "sqrt", "umax", "umin"),
        *("vector.reduce.fadd", "vector.reduce.or"),
        *("x86.avx512.mask.range.ps", "x86.avx512.mask.scalef.ps"),
        *("x86.avx512.permvar.sf", "x86.avx512.rsqrt14.ps", "x86.avx512.vpermi2var.ps"),
    }
)
_NARROW = ("half", "bfloat", "x86_amx", "x i8>", "x i16>")
"""Types that take more than an instruction each."""


def gains_by_combining(text: str) -> bool:
    """Whether combining may gain something for LLVM assembly as `print_llvm` writes it."""
    return (
        any(narrow in text for narrow in _NARROW)  # which is found soonest
        or not _PLAIN_CALLS.issuperset(_INTRINSICS.findall(text, text.find("\ndeclare ")))
        or not _PLAIN.issuperset(_OPCODES.findall(text))
        or _has_odd_masks(text)
    )


def _has_odd_masks(text: str) -> bool:
    """Whether there are masks other than those of whole vectors, or in other places than masks belong."""
    end = 0
    while (at := text.find(_MASK, end)) >= 0:
        start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        end = end if end >= 0 else len(text)
        if not _WHOLE_MASKS.match(text, start, end) or _OTHER_MASKS.search(text, start, end):
            return True
    return False
