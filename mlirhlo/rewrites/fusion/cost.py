"""What things cost, in nanoseconds of one core: the only numbers that decide a fusion.

They are those of a core with 64-byte vectors; decisions need their ratios, not their values.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.hlo.element_types import PrimitiveType

BYTE_TIME = 0.05
"""To read or write a byte of an array that fits no cache."""

KERNEL_TIME = 100.0
"""To call a kernel."""

CHAIN_LIMIT = 1000.0
"""Longer chains of instructions count as this."""

LARGEST_ROW_BYTES = 512 * 1024
"""Rows beyond this do not stay in the cache between two passes over them."""

LARGEST_SINGLE_ROW = 4096
"""Elements of a reduce to one number whose result may be used on the same elements in one kernel:
nothing of it runs in parallel."""

LARGEST_GROUP = 400
"""Sum of `code_size` in a fusion, or instructions where all are simple: LLVM takes about a second for as many
of any kind, and for more of them ever longer each."""

MOVE_CODE = 4.0
"""What moves elements, in the same measure: it computes where they are, and kernels follow it by recursion."""

MOST_OUTPUTS = 16
"""Arrays that a fusion writes."""

MOST_INPUTS = 48
"""Arrays that a fusion reads."""

MOST_PLACES = 16
"""Different places at which a fusion computes one instruction."""

SMALLEST_SHARED_BYTES = 4096
"""Two kernels are made one for the sake of an array that both read, from this size on."""

SEARCH_LIMIT = 96
"""Kernels looked at to show that fusing two closes no cycle."""

_CHEAP = 0.03

_TIMES: Mapping[str, float] = {
    "bitcast-convert": 0.0,
    "copy": 0.0,
    "convert": 0.02,
    "imag": 0.0,
    "real": 0.0,
    "acos": 1.0,
    "acosh": 1.5,
    "asin": 1.0,
    "asinh": 1.5,
    "atan": 1.0,
    "atan2": 1.2,
    "atanh": 1.0,
    "cbrt": 1.0,
    "cosine": 0.8,
    "cosh": 0.6,
    "divide": 0.3,
    "erf": 0.6,
    "exponential": 0.3,
    "exponential-minus-one": 0.5,
    "log": 0.4,
    "log-plus-one": 0.5,
    "logistic": 0.5,
    "power": 2.0,
    "remainder": 2.0,
    "rsqrt": 0.4,
    "sine": 0.8,
    "sinh": 0.6,
    "sqrt": 0.3,
    "stochastic-convert": 0.3,
    "tan": 1.0,
    "tanh": 0.5,
}

_TRIGONOMETRIC = frozenset({"cosine", "sine", "tan"})
"""Functions with another way for huge arguments, behind a branch."""

EXPENSIVE = frozenset(name for name, time in _TIMES.items() if time > 0.25)
"""Opcodes of floats that are never computed twice for one element."""


def element_time(opcode: str, element: PrimitiveType) -> float:
    """Nanoseconds for one element of an elementwise instruction, in vectors."""
    scale = max(element.bits, 32) / 32
    return _TIMES.get(opcode, _CHEAP) * scale


def code_size(opcode: str, element: PrimitiveType) -> float:
    """How much longer LLVM takes for an elementwise instruction than for a sum of f32."""
    beyond = max(0.0, element_time(opcode, element) - _CHEAP)
    if opcode in _TRIGONOMETRIC:
        beyond *= 8.0
    if element.is_complex:
        beyond *= 4.0
    is_rounded = element.is_float and element.bits < 32
    return 1.0 + 3.0 * beyond + 1.3 * is_rounded
