"""Broadcasts, reshapes, transposes, slices, concatenations: what moves nothing goes away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.stablehlo.elements import dtype_of
from mlirhlo.rewrites.stablehlo_simplify.driver import (
    Simplifier,
    defining,
    shape,
    simplifies,
    tensor,
)
from mlirhlo.rewrites.stablehlo_simplify.folding import MOST_ELEMENTS
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import integer, number, numbers

Values = Sequence[SSAValue]


def _is_static(op: Operation) -> bool:
    types = [v.type for v in (*op.operands, *op.results)]
    return all(isinstance(t, TensorType) and DYNAMIC_INDEX not in t.get_shape() for t in types)


@simplifies("broadcast_in_dim")
def broadcast_of_same(op: Operation, s: Simplifier) -> Values | None:
    """A broadcast that changes nothing, or only the shape: x, reshape(x), transpose(x)"""
    if not _is_static(op):
        return None
    (operand,) = op.operands
    dims = numbers(op, "broadcast_dimensions")
    given, wanted = shape(operand), shape(op.results[0])
    if operand.type == op.results[0].type and dims == tuple(range(len(dims))):
        return (operand,)
    splat = s.splat(operand)
    if splat is not None:
        import numpy as np

        array = s.array(operand)
        assert array is not None
        one = array.reshape(-1)[:1].reshape(())
        return (s.constant(np.broadcast_to(one, wanted), op.results[0].type),)
    if math.prod(given) != math.prod(wanted):
        return None
    if list(dims) == sorted(dims):
        return s.make("reshape", (operand,), [op.results[0].type]).results
    if len(given) == len(wanted):
        permutation = [dims.index(d) for d in range(len(dims))]
        properties: dict[str, Attribute] = {"permutation": integers(tuple(permutation))}
        return s.make("transpose", (operand,), [op.results[0].type], properties).results
    return None


@simplifies("broadcast_in_dim")
def broadcast_of_broadcast(op: Operation, s: Simplifier) -> Values | None:
    """broadcast(broadcast(x, d), e) => broadcast(x, e[d])"""
    inner = defining(op.operands[0], "broadcast_in_dim")
    if inner is None:
        return None
    outer = numbers(op, "broadcast_dimensions")
    dims = tuple(outer[d] for d in numbers(inner, "broadcast_dimensions"))
    properties: dict[str, Attribute] = {"broadcast_dimensions": integers(dims)}
    return s.make("broadcast_in_dim", inner.operands, [op.results[0].type], properties).results


@simplifies("reshape")
def reshape_of_same(op: Operation, s: Simplifier) -> Values | None:
    """reshape(x) of the own shape => x, reshape(reshape(x)) => reshape(x), of constants constant"""
    (operand,) = op.operands
    type_ = op.results[0].type
    if operand.type == type_:
        return (operand,)
    array = s.array(operand)
    if array is not None and _is_static(op):
        return (s.constant(_reshaped(array, shape(op.results[0])), type_),)
    inner = defining(operand, "reshape")
    if inner is None:
        return None
    return s.make("reshape", inner.operands, [type_]).results


def _reshaped(array: Any, sizes: tuple[int, ...]) -> Any:
    import numpy as np

    if array.size and all(stride == 0 for stride in array.strides):
        return np.broadcast_to(array.reshape(-1)[:1].reshape(()), sizes)
    return array.reshape(sizes)


@simplifies("transpose")
def transpose_of_same(op: Operation, s: Simplifier) -> Values | None:
    """transpose(x) in order => x, of a transpose => one, of sizes 1 => reshape, of constants constant"""
    (operand,) = op.operands
    permutation = numbers(op, "permutation")
    type_ = op.results[0].type
    if permutation == tuple(range(len(permutation))) and operand.type == type_:
        return (operand,)
    if not _is_static(op):
        return None
    array = s.array(operand)
    if array is not None and (array.size <= MOST_ELEMENTS or s.splat(operand) is not None):
        return (s.constant(array.transpose(permutation), type_),)
    inner = defining(operand, "transpose")
    if inner is not None:
        first = numbers(inner, "permutation")
        both = tuple(first[d] for d in permutation)
        properties: dict[str, Attribute] = {"permutation": integers(both)}
        return s.make("transpose", inner.operands, [type_], properties).results
    given = shape(operand)
    moved = [d for d in permutation if given[d] != 1]
    if moved == sorted(moved):
        return s.make("reshape", (operand,), [type_]).results
    return None


@simplifies("slice")
def slice_of_known(op: Operation, s: Simplifier) -> Values | None:
    """slice(x) of all => x, of a constant => constant"""
    (operand,) = op.operands
    if operand.type == op.results[0].type and _is_static(op):
        return (operand,)
    array = s.array(operand)
    if array is None:
        return None
    starts, limits, strides = _bounds(op)
    cut = tuple(slice(a, b, c) for a, b, c in zip(starts, limits, strides, strict=True))
    found = array[cut]
    if found.size > MOST_ELEMENTS and s.splat(operand) is None:
        return None
    return (s.constant(found, op.results[0].type),)


def _bounds(op: Operation) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return (
        numbers(op, "start_indices"),
        numbers(op, "limit_indices"),
        numbers(op, "strides"),
    )


@simplifies("slice")
def slice_of_concatenate(op: Operation, s: Simplifier) -> Values | None:
    """slice(concatenate(x, y, …)) => slice of the operand that it lies in"""
    made = defining(op.operands[0], "concatenate")
    if made is None or not _is_static(op):
        return None
    starts, limits, strides = _bounds(op)
    dim = number(made, "dimension")
    start, limit = starts[dim], limits[dim]
    at = 0
    for source in made.operands:
        size = shape(source)[dim]
        if at <= start and limit <= at + size:
            break
        at += size
    else:
        return None
    moved = [list(starts), list(limits)]
    moved[0][dim] -= at
    moved[1][dim] -= at
    properties: dict[str, Attribute] = {
        "start_indices": integers(tuple(moved[0])),
        "limit_indices": integers(tuple(moved[1])),
        "strides": integers(strides),
    }
    return s.make("slice", (source,), [op.results[0].type], properties).results


@simplifies("concatenate")
def concatenate_of_few(op: Operation, s: Simplifier) -> Values | None:
    """concatenate(x) => x, without empty operands, nested ones joined, of constants constant"""
    if not _is_static(op):
        return None
    operands = list(op.operands)
    dim = number(op, "dimension")
    type_ = op.results[0].type
    if len(operands) == 1:
        return (operands[0],)
    flat = [
        part for value in operands if shape(value)[dim] != 0 for part in _concatenated(value, dim)
    ]
    if flat != operands and flat:
        properties: dict[str, Attribute] = {"dimension": integer(dim)}
        return s.make("concatenate", flat, [type_], properties).results
    arrays = [s.array(v) for v in operands]
    if any(a is None for a in arrays) or math.prod(shape(op.results[0])) > MOST_ELEMENTS:
        return None
    import numpy as np

    return (s.constant(np.concatenate([a for a in arrays if a is not None], dim), type_),)


def _concatenated(value: SSAValue, dim: int) -> list[SSAValue]:
    made = defining(value, "concatenate")
    if made is None or number(made, "dimension") != dim:
        return [value]
    return list(made.operands)


@simplifies("pad")
def pad_of_nothing(op: Operation, s: Simplifier) -> Values | None:
    """pad(x) by nothing => x, pad of no elements => broadcast of the padding"""
    if not _is_static(op):
        return None
    operand, padding = op.operands
    keys = ("edge_padding_low", "edge_padding_high", "interior_padding")
    if operand.type == op.results[0].type and not any(any(numbers(op, key)) for key in keys):
        return (operand,)
    if 0 not in shape(operand):
        return None
    properties: dict[str, Attribute] = {"broadcast_dimensions": integers(())}
    return s.make("broadcast_in_dim", (padding,), [op.results[0].type], properties).results


@simplifies("reverse")
def reverse_of_one(op: Operation, s: Simplifier) -> Values | None:
    """reverse(x) along dimensions of size 1, or of equal elements => x"""
    (operand,) = op.operands
    given = shape(operand)
    if all(given[d] == 1 for d in numbers(op, "dimensions")):
        return (operand,)
    return (operand,) if s.splat(operand) is not None else None


@simplifies("iota")
def iota_of_lines(op: Operation, s: Simplifier) -> Values | None:
    """iota of size 1 => 0, of several dimensions => of one, reshaped or broadcast"""
    type_ = tensor(op.results[0])
    sizes = tuple(type_.get_shape())
    dim = number(op, "iota_dimension")
    if DYNAMIC_INDEX in sizes:
        return None
    if sizes[dim] == 1:
        import numpy as np

        zero = np.zeros((), dtype_of(type_.element_type))
        return (s.constant(np.broadcast_to(zero, sizes), type_),)
    if len(sizes) < 2:
        return None
    line_type = TensorType(type_.element_type, [sizes[dim]])
    properties: dict[str, Attribute] = {"iota_dimension": integer(0)}
    line = s.make("iota", (), [line_type], properties).results[0]
    spread: dict[str, Attribute] = {"broadcast_dimensions": integers((dim,))}
    return s.make("broadcast_in_dim", (line,), [type_], spread).results
