"""How elements of HLO arrays stand in memory and in registers.

Memory: pred and integers of fewer than eight bits take a byte; complex numbers are two neighbours in a
buffer with a last dimension of 2. Registers: pred is i1, integers are signless of their own width, complex
numbers are two values; floats narrower than 16 bits stay integers of their width between conversions.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IntegerType, MemRefType, i1, i8
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import FunctionBuilder, memref_of
from mlirhlo.lowering.memory_order import physical_dimensions as physical_dimensions
from mlirhlo.lowering.memory_order import physical_order as physical_order

Value: TypeAlias = "tuple[SSAValue, ...]"
"""An element in registers: one value, of complex types real and imaginary part."""


def register_type(element: PrimitiveType) -> Attribute:
    """Type of one element (of one part, of complex types) in registers."""
    element = element.real
    if element.kind is Kind.PRED:
        return i1
    if element.is_float and element.bits >= 16:
        assert element.mlir is not None
        return element.mlir
    return _integer(element.bits)


@functools.lru_cache(maxsize=1024)
def _integer(bits: int) -> IntegerType:
    return IntegerType(bits)


def memory_type(element: PrimitiveType) -> Attribute:
    """Element type of the buffers that hold it."""
    element = element.real
    if element.bits < 8:
        return i8
    return register_type(element)


def buffer_type(shape: ArrayShape) -> MemRefType[Any]:
    """The memref that holds an array."""
    sizes = physical_dimensions(shape)
    if shape.element_type.is_complex:
        sizes = (*sizes, 2)
    return memref_of(memory_type(shape.element_type), *sizes)


def to_register(b: FunctionBuilder, value: SSAValue, element: PrimitiveType) -> SSAValue:
    """What was loaded, as registers hold it."""
    if element.kind is Kind.PRED:
        return b.cmpi("ne", value, b.constant(0, value.type))
    if element.bits < 8:
        return b.cast(casts.TruncIOp, value, register_type(element))
    return value


def to_memory(b: FunctionBuilder, value: SSAValue, element: PrimitiveType) -> SSAValue:
    """What a register holds, as it is stored: of a narrow element the high bits of its byte are zero, signed or not."""
    if element.kind is Kind.PRED or element.bits < 8:
        return b.cast(casts.ExtUIOp, value, i8)
    return value
