"""Types of the loops stage, and what is shared by the parts of the builder."""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

from xdsl.dialects import arith as xarith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    MemRefType,
    StridedLayoutAttr,
    VectorType,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.interned import NONE
from mlirhlo.dialects.quick import sizes_attribute, unchecked

NOALIAS = "llvm.noalias"
WORK = "mlirhlo.work"
"""Attribute of parallel loops: estimated nanoseconds of all rounds."""
WORKSPACE = "mlirhlo.workspace"
"""Attribute of kernels: bytes of their last argument."""
SELDOM = "mlirhlo.seldom"
"""Attribute of functions whose own time does not count: LLVM makes them quickly."""
IN_PLACE = "mlirhlo.in_place"
"""Attribute of kernels: pairs of arguments, an operand and a result, that may share a buffer."""
UPDATES = "mlirhlo.updates"
"""Attribute of kernels that write a slice of a result, an operand's buffer: both arguments' numbers."""

NONEMPTY = "mlirhlo.nonempty"
"""Attribute of loops that have a first round, which nothing shows that is known when they are lowered."""

INDEX = IndexType()
FROM_ANYWHERE = StridedLayoutAttr([1], None)
"""Neighbours from any element on."""
Index: TypeAlias = "SSAValue | int"
"""An index: a value, or a number known now."""

EXACT = xarith.FastMathFlagsAttr("none")
APPROXIMATE = xarith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
"""Within two units in the last place."""
REASSOCIATE = xarith.FastMathFlagsAttr([FastMathFlag.REASSOC])
NO_OVERFLOW = xarith.IntegerOverflowAttr("none")
_MOST = 1 << 12
_VECTORS: dict[tuple[int, int], tuple[Attribute, VectorType[Any]]] = {}
"""By the identity of the element type, which stands beside the vector."""


def vector_of(element: Attribute, lanes: int) -> VectorType[Any]:
    """`vector<lanes x element>`, one object for each."""
    found = _VECTORS.get((id(element), lanes))
    if found is None:
        if len(_VECTORS) >= _MOST:
            _VECTORS.clear()
        found = _VECTORS[id(element), lanes] = element, _vector_of(element, lanes)
    return found[1]


@functools.lru_cache(_MOST)
def _vector_of(element: Attribute, lanes: int) -> VectorType[Any]:
    return VectorType(element, [lanes])


@functools.lru_cache(_MOST)
def memref_of(element: Attribute, *sizes: int) -> MemRefType[Any]:
    """`memref<sizes x element>`, one object for each."""
    return unchecked(
        MemRefType,
        shape=sizes_attribute(sizes),
        element_type=element,
        layout=NONE,
        memory_space=NONE,
    )


@functools.lru_cache(maxsize=1024)
def part_of(element: Attribute) -> MemRefType[Any]:
    """A buffer of one dimension and any size within another one, one object for each type of elements."""
    return MemRefType(element, [DYNAMIC_INDEX], FROM_ANYWHERE)


def lanes_of(type_: Attribute) -> int:
    """Lanes of a vector; 0 for a scalar."""
    if type(type_) is VectorType:
        (size,) = type_.get_shape()
        return size
    return 0


def element_of(type_: Attribute) -> Attribute:
    """Element type of a vector; the type itself for a scalar."""
    if type(type_) is VectorType:
        element: Attribute = type_.element_type
        return element
    return type_


def like(type_: Attribute, element: Attribute) -> Attribute:
    """`type_` with other elements: a vector of as many lanes, or the scalar."""
    lanes = lanes_of(type_)
    return vector_of(element, lanes) if lanes else element


WITH_OVERFLOW: frozenset[type[Operation]] = frozenset(
    {xarith.AddiOp, xarith.SubiOp, xarith.MuliOp, xarith.ShLIOp}
)
"""Ops that carry overflow flags."""
