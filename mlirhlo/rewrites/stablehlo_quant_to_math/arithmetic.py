"""Quantizing, dequantizing and requantizing, as ops.

Order and roundings are those of StableHLO's specification (`quantize`, `dequantize`) and, where a
quantized value gets other scales, of its pass: one multiplication by the ratio of the scales.
Rounding is half to even, after clamping.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.stablehlo.elements import dense
from mlirhlo.dialects.stablehlo.types import UniformQuantization
from mlirhlo.rewrites.chlo_expansion.emitter import Emitter, Value
from mlirhlo.rewrites.stablehlo_quant_to_math.types import (
    is_narrow,
    is_per_tensor,
    parameters,
    same_meaning,
    wide_integer,
    width_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spread(emitter: Emitter, array: NDArray[Any], type_: TensorType[Attribute]) -> Value:
    """A tensor of type `type_` with the elements of `array`, which has its rank; each size of
    `array` is that of `type_`, 1, or a divisor of it (one element a block)."""
    sizes = type_.get_shape()
    if array.size == 1:
        return emitter.constant(array.reshape(()).item(), type_)
    dims = [dim for dim, size in enumerate(array.shape) if size != 1]
    element = type_.element_type
    kept = tuple(array.shape[dim] for dim in dims)
    small: TensorType[Attribute] = TensorType(element, kept)
    value = emitter.op("constant", (), small, {"value": dense(array.reshape(kept), small)})
    if all(array.shape[dim] == sizes[dim] for dim in dims):
        if kept == sizes:
            return value
        return emitter.op("broadcast_in_dim", (value,), type_, _broadcast(dims))
    # Blocks: each dimension is a count of blocks and a size of block first.
    split: list[int] = []
    places: list[int] = []
    for dim, size in enumerate(sizes):
        if array.shape[dim] in (1, size):
            if array.shape[dim] != 1:
                places.append(len(split))
            split.append(size)
        else:
            places.append(len(split))
            split += [array.shape[dim], size // array.shape[dim]]
    parted: TensorType[Attribute] = TensorType(element, split)
    value = emitter.op("broadcast_in_dim", (value,), parted, _broadcast(places))
    return emitter.op("reshape", (value,), type_)


def _broadcast(dims: list[int]) -> dict[str, Attribute]:
    return {"broadcast_dimensions": integers(tuple(dims))}


def _clamp(emitter: Emitter, value: Value, low: int, high: int) -> Value:
    scalar = TensorType(value.type.element_type, ())
    ends = [emitter.constant(end, scalar) for end in (low, high)]
    return emitter.op("clamp", (ends[0], value, ends[1]), value.type)


def dequantize(value: Value, q: UniformQuantization) -> Value:
    """The numbers that stored integers mean, in the expressed type."""
    emitter = value.emitter
    scales, zeros = parameters(q, len(value.type.get_shape()))
    wide = value.convert(wide_integer(q))
    if zeros.any():
        wide = wide - spread(emitter, zeros, wide.type)
    number = wide.convert(q.expressed_type)
    return number * spread(emitter, scales, number.type)


def quantize(value: Value, q: UniformQuantization) -> Value:
    """The integers to be stored for numbers of the expressed type."""
    emitter = value.emitter
    value = value.convert(q.expressed_type)
    scales, zeros = parameters(q, len(value.type.get_shape()))
    value = value / spread(emitter, scales, value.type)
    if zeros.any():
        value = value + spread(emitter, zeros, value.type)
    return _stored(value, q)


def _stored(value: Value, q: UniformQuantization, type_: Attribute | None = None) -> Value:
    """Scaled numbers, clamped and rounded, as integers of type `type_` or of the storage."""
    emitter = value.emitter
    value = _clamp(emitter, value, q.storage_min, q.storage_max)
    value = emitter.op("round_nearest_even", (value,), value.type)
    return value.convert(q.storage_type if type_ is None else type_)


def scaled(
    value: Value, factors: NDArray[Any], zeros: NDArray[Any], q: UniformQuantization
) -> Value:
    """`value * factors + zeros` of integers, in the storage of `q`. Factors of 1 stay integers."""
    import numpy as np

    emitter = value.emitter
    if np.all(np.abs(factors - 1.0) < 1e-6):
        wide = value.convert(wide_integer(q))
        if zeros.any():
            wide = wide + spread(emitter, zeros, wide.type)
        return clamped(wide, q)
    number = value.convert(q.expressed_type)
    number = number * spread(emitter, factors, number.type)
    if zeros.any():
        number = number + spread(emitter, zeros, number.type)
    return _stored(number, q)


def clamped(value: Value, q: UniformQuantization) -> Value:
    """Integers of the wide type, clamped to the storage of `q`."""
    if is_narrow(q):
        value = _clamp(value.emitter, value, q.storage_min, q.storage_max)
    return value.convert(q.storage_type)


def requantize(
    value: Value,
    source: UniformQuantization,
    target: UniformQuantization,
    type_: Attribute | None = None,
) -> Value:
    """Integers stored by `source`, as those that mean the same by `target`.

    In the storage of `target`; with `type_`, in that wide type and not clamped.
    """
    emitter = value.emitter
    wanted = target.storage_type if type_ is None else type_
    if same_meaning(source, target) and (
        type_ is not None
        or (source.storage_min, source.storage_max) == (target.storage_min, target.storage_max)
    ):
        return value.convert(wanted)
    if source.block_sizes or target.block_sizes:
        return quantize(dequantize(value, source), target)
    rank = len(value.type.get_shape())
    (given, given_zeros), (scales, zeros) = parameters(source, rank), parameters(target, rank)
    factors = given / scales
    offsets = zeros - given_zeros * factors
    number = value.convert(target.expressed_type)
    number = number * spread(emitter, factors, number.type)
    if offsets.any():
        number = number + spread(emitter, offsets, number.type)
    # Thirty-two bits hold what comes before a sum; only what is stored in fewer is clamped.
    if width_of(wanted) < 32 or type_ is None:
        return _stored(number, target)
    return emitter.op("round_nearest_even", (number,), number.type).convert(wanted)


def add(
    lhs: Value,
    rhs: Value,
    quantizations: tuple[UniformQuantization, UniformQuantization, UniformQuantization],
) -> Value:
    """The sum: both operands with the scale of the result, then integers."""
    left, right, result = quantizations
    wide = wide_integer(result)
    a, b = requantize(lhs, left, result, wide), requantize(rhs, right, result, wide)
    total = a + b
    _, zeros = parameters(result, len(total.type.get_shape()))
    if zeros.any():
        total = total - spread(total.emitter, zeros, total.type)
    return clamped(total, result)


def adds_integers(
    quantizations: tuple[UniformQuantization, UniformQuantization, UniformQuantization],
) -> bool:
    """Whether `add` does these: per tensor, or all alike."""
    left, right, result = quantizations
    if all(map(is_per_tensor, quantizations)):
        return True
    return left == right == result and not result.block_sizes
