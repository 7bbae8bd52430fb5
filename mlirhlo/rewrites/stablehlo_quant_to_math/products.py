"""Products of quantized matrices and convolutions, accumulated as integers.

    sum((l - zl) * sl * (r - zr) * sr) / so + zo  =  sum((l - zl) * (r - zr)) * (sl * sr / so) + zo

The sum on the right is exact in the wide integer type. Zero points are taken from the operands
before, so that the padding of a convolution, which means 0.0, is the integer 0. The scaled sum is
rounded half to even, as the specification says; StableHLO's own pass cuts it off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.stablehlo.types import UniformQuantization
from mlirhlo.rewrites.chlo_expansion.emitter import Value
from mlirhlo.rewrites.stablehlo_quant_to_math.arithmetic import scaled, spread
from mlirhlo.rewrites.stablehlo_quant_to_math.types import (
    is_per_tensor,
    parameters,
    wide_integer,
    with_element,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"})

_OF_FLOATS = frozenset({"precision_config", "algorithm"})
"""Properties that integers have no use for."""


def result_axis(op: Operation, axis: int) -> int | None:
    """Dimension of the result that dimension `axis` of the right operand becomes; None where it is
    summed up."""
    if op.name == "stablehlo.convolution":
        numbers = cast(Any, op.properties["dimension_numbers"]).data
        if axis == numbers.kernel_output_feature_dimension:
            return int(numbers.output_feature_dimension)
        return None
    left, right = (len(cast("TensorType[Attribute]", v.type).get_shape()) for v in op.operands)
    if op.name == "stablehlo.dot":
        return None if axis == max(right - 2, 0) else left - 1
    numbers = cast(Any, op.properties["dot_dimension_numbers"]).data
    batching, summed = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    if axis in batching:
        return int(tuple(batching).index(axis))
    if axis in summed:
        return None
    free = [dim for dim in range(right) if dim not in batching and dim not in summed]
    return int(left - len(summed)) + free.index(axis)


def multiplies_integers(op: Operation, quantizations: Sequence[UniformQuantization | None]) -> bool:
    """Whether `multiply` does this op: all quantized, no scale differs along what is summed up."""
    left, right, result = quantizations
    if left is None or right is None or result is None:
        return False
    if not is_per_tensor(left) or right.block_sizes or result.block_sizes:
        return False
    return right.axis is None or result_axis(op, right.axis) is not None


def multiply(
    op: Operation,
    values: Sequence[Value],
    quantizations: Sequence[UniformQuantization | None],
) -> Value:
    """The stored result of the product `op` of stored `values`."""
    import numpy as np

    left, right, result = cast("Sequence[UniformQuantization]", quantizations)
    lhs, rhs = (
        _centred(v, q, wide_integer(result)) for v, q in zip(values, (left, right), strict=True)
    )
    emitter = lhs.emitter
    declared = cast("TensorType[Attribute]", op.results[0].type)
    wide = with_element(declared, wide_integer(result))
    kept = {k: v for k, v in op.properties.items() if k not in _OF_FLOATS}
    total = emitter.op(op.name.removeprefix("stablehlo."), (lhs, rhs), wide, kept)
    rank = len(declared.get_shape())
    factors = np.array(right.scales, np.float64)
    if right.axis is not None:
        factors = _along(factors, result_axis(op, right.axis) or 0, rank)
    scales, zeros = parameters(result, rank)
    return scaled(total, left.scales[0] * factors / scales, zeros, result)


def _along(array: NDArray[Any], axis: int, rank: int) -> NDArray[Any]:
    shape = [1] * rank
    shape[axis] = array.size
    return array.reshape(shape)


def _centred(value: Value, q: UniformQuantization, wide: Attribute) -> Value:
    """Stored integers without their zero point; in `wide` when they had one."""
    _, zeros = parameters(q, len(value.type.get_shape()))
    if not zeros.any():
        return value
    value = value.convert(wide)
    return value - spread(value.emitter, zeros, value.type)
