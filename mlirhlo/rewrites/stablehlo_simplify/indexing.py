"""Slices, updates and gathers at known places; sizes that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.rewrites.stablehlo_simplify.driver import Simplifier, shape, simplifies, tensor
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import attribute, number, numbers

Values = Sequence[SSAValue]


def _places(op: Operation, s: Simplifier, first: int) -> list[int] | None:
    found: list[int] = []
    for value in op.operands[first:]:
        place = s.splat(value)
        if place is None:
            return None
        found.append(int(place))
    return found


def _sliced(
    s: Simplifier, operand: SSAValue, starts: Sequence[int], sizes: Sequence[int]
) -> SSAValue:
    """The slice of `sizes` at `starts`, moved into the operand where it reaches over."""
    given = shape(operand)
    begin = [
        min(max(at, 0), whole - size) for at, whole, size in zip(starts, given, sizes, strict=True)
    ]
    properties: dict[str, Attribute] = {
        "start_indices": integers(tuple(begin)),
        "limit_indices": integers(tuple(a + b for a, b in zip(begin, sizes, strict=True))),
        "strides": integers((1,) * len(begin)),
    }
    type_ = TensorType(tensor(operand).element_type, sizes)
    return s.make("slice", (operand,), [type_], properties).results[0]


@simplifies("dynamic_slice")
def dynamic_slice_at_constants(op: Operation, s: Simplifier) -> Values | None:
    """dynamic_slice(x, constants) => slice(x)"""
    starts = _places(op, s, 1)
    if starts is None or DYNAMIC_INDEX in shape(op.operands[0]):
        return None
    return (_sliced(s, op.operands[0], starts, shape(op.results[0])),)


@simplifies("dynamic_update_slice")
def update_of_all(op: Operation, s: Simplifier) -> Values | None:
    """dynamic_update_slice(x, y, 0) of the whole x => y; of nothing => x"""
    operand, update = op.operands[0], op.operands[1]
    if 0 in shape(update):
        return (operand,)
    starts = _places(op, s, 2)
    if starts is None or any(starts) or operand.type != update.type:
        return None
    return (update,) if DYNAMIC_INDEX not in shape(update) else None


@simplifies("gather")
def gather_of_one_slice(op: Operation, s: Simplifier) -> Values | None:
    """gather(x, one constant index vector) => reshape(slice(x))"""
    index = s.array(op.operands[1])
    if index is None or DYNAMIC_INDEX in shape(op.operands[0]):
        return None
    dims = cast(Any, attribute(op, "dimension_numbers")).data
    if index.ndim > 1 or dims.index_vector_dim != 0 or dims.operand_batching_dims:
        return None
    sizes = numbers(op, "slice_sizes")
    starts = [0] * len(sizes)
    for dim, at in zip(dims.start_index_map, index.reshape(-1), strict=True):
        starts[dim] = int(at)
    cut = _sliced(s, op.operands[0], starts, sizes)
    return s.make("reshape", (cut,), [op.results[0].type]).results


@simplifies("get_dimension_size")
def known_dimension_size(op: Operation, s: Simplifier) -> Values | None:
    """get_dimension_size of a known size => constant"""
    import numpy as np

    size = shape(op.operands[0])[number(op, "dimension")]
    if size == DYNAMIC_INDEX:
        return None
    return (s.constant(np.full((), size, np.int32), op.results[0].type),)


@simplifies("set_dimension_size")
def size_set_to_itself(op: Operation, s: Simplifier) -> Values | None:
    """set_dimension_size(x, the size x has) => x"""
    size = s.splat(op.operands[1])
    whole = shape(op.operands[0])[number(op, "dimension")]
    if size is None or int(size) != whole or op.operands[0].type != op.results[0].type:
        return None
    return (op.operands[0],)
