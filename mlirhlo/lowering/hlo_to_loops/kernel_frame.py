"""What every builder of a kernel begins with: its function, its buffers, the width of its vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.elements import buffer_type
from mlirhlo.lowering.hlo_to_loops.merging import arrays_in, sizes_of
from mlirhlo.lowering.hlo_to_loops.work import estimated_ns

_VECTOR_BITS = 512
_MOVES = frozenset(
    {
        "broadcast",
        "transpose",
        "reshape",
        "slice",
        "pad",
        "concatenate",
        "reverse",
        "copy",
        "gather",
    }
    | {"dynamic-slice", "dynamic-update-slice", "bitcast", "get-tuple-element", "tuple", "constant"}
    | {"select", "bitcast-convert", "iota", "compare", "parameter"}
)
"""Instructions that do no arithmetic: what they move stays as narrow as it is."""


class Frame:
    """A kernel under construction: `name(operands…, outputs…)`."""

    def __init__(
        self, name: str, outputs: Sequence[SSAValue], operands: Sequence[SSAValue]
    ) -> None:
        self.outputs, self.operands = outputs, operands
        shapes = [arrays_in(v)[0] for v in (*operands, *outputs)]
        self.b = FunctionBuilder(
            name,
            [buffer_type(s) for s in shapes],
            argument_attributes=[{"llvm.noalias": UnitAttr()} for _ in shapes],
        )
        arguments = self.b.arguments
        self.buffers: dict[SSAValue, SSAValue] = dict(zip(operands, arguments, strict=False))
        self.targets: Sequence[SSAValue] = arguments[len(operands) :]
        self.lanes = vector_lanes(values_between(outputs, operands))
        self.work = estimated_ns(outputs, self.buffers)
        """Estimated nanoseconds on one core."""

    def memory(self, value: SSAValue) -> tuple[object, tuple[int, ...]]:
        """What a buffer has to be to hold a value."""
        type_ = buffer_type(arrays_in(value)[0])
        return type_.element_type, tuple(type_.get_shape())

    def sizes_and_bytes(self, value: SSAValue) -> tuple[tuple[int, ...], int]:
        """Dimensions, and bytes of an element."""
        return sizes_of(value), arrays_in(value)[0].element_type.byte_size


def values_between(outputs: Iterable[SSAValue], operands: Iterable[SSAValue]) -> list[SSAValue]:
    """All values on the way from outputs to operands, both included."""
    ends = set(operands)
    seen: dict[SSAValue, None] = {}
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen[value] = None
        if value not in ends:
            stack += cast(Instruction, value.owner).inputs
    return list(seen)


def vector_lanes(values: Iterable[SSAValue]) -> int:
    """Lanes of vectors that hold any of the values, where narrow floats are computed as f32."""
    widest = 8
    for value in values:
        op = value.owner
        moves = isinstance(op, Instruction) and op.opcode.name in _MOVES
        for shape in arrays_in(value):
            if shape.dimensions:
                widest = max(widest, _bits(shape.element_type, moves=moves))
    return _VECTOR_BITS // widest


def _bits(element: PrimitiveType, *, moves: bool) -> int:
    bits = element.real.bits
    return max(bits, 32) if (element.is_float or element.is_complex) and not moves else bits
