"""Kernels that compute every element of their outputs on its own.

The most minor dimension goes in vectors, the rest of it under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import FunctionBuilder, Index
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    buffer_type,
    physical_dimensions,
    physical_order,
    to_memory,
)
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.hlo_to_loops.work import estimated_ns

_VECTOR_BYTES = 64
_FEWEST = 4
"""A shorter last dimension is not worth a vector."""
_ROUNDS = 64
"""Rounds that are enough to give every thread its share."""
_CHUNK = 256
"""Vectors in a round of an array of one dimension."""


def array(value: SSAValue) -> ArrayShape:
    """Shape of an array value."""
    return cast(ArrayShape, shape_of(value.type))


@dataclass(frozen=True, slots=True)
class Output:
    """An array that a kernel fills."""

    value: SSAValue
    """What computes it."""
    shape: ArrayShape
    part: int | None = None
    """Its number among the results of `value`; None when that is one array."""


def loop_kernel(name: str, outputs: Sequence[Output], operands: Sequence[SSAValue]) -> FuncOp:
    """A function of the operands' buffers, then the outputs', that fills the outputs.

    `outputs` are computed from `operands` by instructions that have elements (`elemental`); those
    of the same dimensions and layout share their loops. Raises `HloError` HLO0432 for an
    instruction that has no elements.
    """
    shapes = [*map(array, operands), *(o.shape for o in outputs)]
    types = [buffer_type(shape) for shape in shapes]
    alone: dict[str, Attribute] = {"llvm.noalias": UnitAttr()}
    b = FunctionBuilder(name, types, argument_attributes=[alone] * len(types))
    buffers: dict[SSAValue, SSAValue] = dict(zip(operands, b.arguments, strict=False))
    groups: dict[object, list[tuple[Output, SSAValue]]] = {}
    for output, target in zip(outputs, b.arguments[len(operands) :], strict=True):
        key = (physical_dimensions(output.shape), physical_order(output.shape))
        groups.setdefault(key, []).append((output, target))
    lanes = lanes_for(shapes)
    for group in groups.values():
        _nest(b, group, buffers, lanes)
    return b.finish()


def _nest(
    b: FunctionBuilder,
    outputs: Sequence[tuple[Output, SSAValue]],
    buffers: dict[SSAValue, SSAValue],
    most_lanes: int,
) -> None:
    """The loops over outputs of one shape."""
    shape = outputs[0][0].shape
    sizes, order = physical_dimensions(shape), physical_order(shape)
    if 0 in sizes:
        return

    def body(indices: Sequence[Coordinate], lanes: int, mask: SSAValue | None) -> None:
        places = Places(b, lanes, mask)
        e = Elements(places, buffers)
        place: list[Coordinate] = [Coordinate(0)] * len(sizes)
        for at, d in enumerate(order):
            place[d] = indices[at]
        for output, target in outputs:
            if output.part is None:
                value = e.at(output.value, place)
            else:
                value = e.parts(output.value, place)[output.part]
            store(b, target, [c.base for c in indices], value, output.shape, lanes, mask)

    work = estimated_ns([o.value for o, _ in outputs], buffers)
    element_loops(b, sizes, most_lanes, work, body)


Body: TypeAlias = "Callable[[Sequence[Coordinate], int, SSAValue | None], None]"
"""What happens at a place, for that many lanes of the last dimension, under a mask."""


def element_loops(
    b: FunctionBuilder, sizes: Sequence[int], lanes: int, work: float, body: Body
) -> None:
    """Loops over all places, the last dimension in vectors; `work` is their time in nanoseconds."""
    if not sizes:
        body((), 0, None)
        return
    with ExitStack() as stack:
        outer = _outer(b, stack, sizes[:-1], work)
        size = sizes[-1]
        if size < _FEWEST:
            with b.loop(0, size) as i:
                body([*outer, Coordinate(i)], 0, None)
        else:
            _vectors(b, outer, size, lanes, body, work if len(sizes) == 1 else None)


def _outer(
    b: FunctionBuilder, stack: ExitStack, sizes: Sequence[int], work: float
) -> list[Coordinate]:
    """Loops around the most minor dimension; the first few of them together run in parallel."""
    if not sizes:
        return []
    depth = next((n for n in range(1, len(sizes)) if prod(sizes[:n]) >= _ROUNDS), len(sizes))
    number = stack.enter_context(b.parallel(prod(sizes[:depth]), work=work))
    indices: list[Coordinate] = []
    for size in reversed(sizes[1:depth]):
        indices.append(Coordinate(b.rem(number, size)))
        number = b.index(b.div(number, size))
    indices.append(Coordinate(number))
    indices.reverse()
    return [*indices, *(Coordinate(stack.enter_context(b.loop(0, n))) for n in sizes[depth:])]


def _vectors(
    b: FunctionBuilder,
    outer: Sequence[Coordinate],
    size: int,
    lanes: int,
    body: Body,
    work: float | None,
) -> None:
    """The most minor dimension: whole vectors, then what is left under a mask.

    Whole vectors run in parallel if `work` is said.
    """
    whole = size - size % lanes
    if whole:
        with ExitStack() as stack:
            first: Index = 0
            last: Index = whole
            if work is not None and whole > _CHUNK * lanes:
                chunk = _CHUNK * lanes
                number = stack.enter_context(b.parallel(-(-whole // chunk), work=work))
                first = b.mul(number, chunk)
                last = b.minimum(b.add(first, chunk), whole)
            i = stack.enter_context(b.loop(first, last, lanes))
            body([*outer, Coordinate(i, 1, None, lanes)], lanes, None)
    if size != whole:
        mask = b.mask(b.index(size - whole), lanes)
        body([*outer, Coordinate(whole, 1, None, lanes)], lanes, mask)


def store(
    b: FunctionBuilder,
    target: SSAValue,
    indices: Sequence[Index],
    value: Value,
    shape: ArrayShape,
    lanes: int,
    mask: SSAValue | None,
) -> None:
    """Stores an element, or neighbours along the last dimension, of a value in registers."""
    element = shape.element_type
    if not element.is_complex:
        memory = to_memory(b, value[0], element)
        if lanes:
            b.vector_store(memory, target, indices, mask)
        else:
            b.store(memory, target, indices)
        return
    if not lanes:
        for part in (0, 1):
            b.store(value[part], target, [*indices, part])
        return
    # Real and imaginary parts side by side: two vectors of pairs.
    halves = [
        [x for lane in range(half, half + lanes // 2) for x in (lane, lanes + lane)]
        for half in (0, lanes // 2)
    ]
    masks: Sequence[SSAValue | None] = (None, None)
    if mask is not None:
        pairs = [[lane for x in h[::2] for lane in (x, x)] for h in halves]
        masks = [b.shuffle(mask, mask, p) for p in pairs]
    base = [*indices[:-1], indices[-1]]
    for half, lanes_of_half in enumerate(halves):
        pair = b.shuffle(value[0], value[1], lanes_of_half)
        place = [*base[:-1], b.add(base[-1], half * lanes // 2), 0]
        b.vector_store(pair, target, place, masks[half])


def lanes_for(shapes: Sequence[ArrayShape]) -> int:
    """Lanes of the vectors that hold elements of these types: narrow ones are computed as 32 bits."""
    widest = max((s.element_type.real.bits for s in shapes), default=32)
    return _VECTOR_BYTES * 8 // max(widest, 32)
