"""What things cost, in nanoseconds of one core: the only numbers that decide a fusion.

They are those of a core with 64-byte vectors; decisions need their ratios, not their values.
"""

from __future__ import annotations

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.table import OPCODES, PLAIN_NS, opcodes

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

_TRIGONOMETRIC = opcodes(lambda row: row.work == "trigonometric" and row.arity == 1)
"""Functions with another way for huge arguments, behind a branch."""

EXPENSIVE = frozenset(name for name, row in OPCODES.items() if row.element_ns > 0.25)
"""Opcodes of floats that are never computed twice for one element."""


def element_time(opcode: str, element: PrimitiveType) -> float:
    """Nanoseconds for one element of an elementwise instruction, in vectors."""
    scale = max(element.bits, 32) / 32
    return OPCODES[opcode].element_ns * scale


def code_size(opcode: str, element: PrimitiveType) -> float:
    """How much longer LLVM takes for an elementwise instruction than for a sum of f32."""
    beyond = max(0.0, element_time(opcode, element) - PLAIN_NS)
    if opcode in _TRIGONOMETRIC:
        beyond *= 8.0
    if element.is_complex:
        beyond *= 4.0
    is_rounded = element.is_float and element.bits < 32
    return 1.0 + 3.0 * beyond + 1.3 * is_rounded
