"""`estimate_cost`: operations and bytes of a function of arrays, without running it."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation

from mlirhlo.mosaic.language.elements import bits_of
from mlirhlo.mosaic.language.specs import CostEstimate, ShapeDtypeStruct
from mlirhlo.mosaic.language.trace import Trace, tracing, vector_type
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value, as_value

_TRANSCENDENTAL = frozenset(
    f"math.{name}"
    for name in (
        *("cos", "sin", "tan", "tanh", "atan2", "exp", "exp2", "log", "log1p", "log2"),
        *("sqrt", "rsqrt", "erf", "powf"),
    )
)
_FREE = frozenset({"arith.constant", "arith.bitcast", "arith.extui", "arith.extf", "arith.truncf"})


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """What `fun`, written as a kernel's body is, costs on arrays of these shapes and types.

    Products count two operations for each pair of elements, elementwise functions one for each element,
    or one transcendental; the bytes are those of `args` and of what `fun` returns.
    """
    leaves, rebuild = flatten(args)
    types = [ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    block = Block(arg_types=[vector_type(one.shape, one.dtype) for one in types])
    values = [Value(ssa, one.shape, one.dtype) for ssa, one in zip(block.args, types, strict=True)]
    with tracing(Trace(block)):
        results = [as_value(leaf) for leaf in flatten(fun(*rebuild(values), **kwargs))[0]]
    flops, transcendentals = 0, 0
    for op in block.walk():
        if op.name in _TRANSCENDENTAL:
            transcendentals += _size(op.results[0].type)
        else:
            flops += _flops(op)
    arrays: list[ShapeDtypeStruct | Value] = [*types, *results]
    moved = sum(prod(one.shape) * bits_of(one.dtype) for one in arrays)
    return CostEstimate(flops, transcendentals, moved // 8)


def _size(type_: Any) -> int:
    shape: tuple[int, ...] = type_.get_shape() if isinstance(type_, VectorType) else ()
    return prod(shape)


def _flops(op: Operation) -> int:
    if op.name == "tpu.matmul":
        numbers: Any = op.properties["dimension_numbers"]
        shape: Any = op.operands[0].type
        summed: int = prod(shape.get_shape()[dim] for dim in numbers.data.lhs_contracting)
        return 2 * summed * _size(op.results[0].type)
    if op.name == "vector.multi_reduction":
        return _size(op.operands[0].type)
    is_elementwise = op.name.partition(".")[0] in ("arith", "math") and op.name not in _FREE
    return _size(op.results[0].type) if is_elementwise and op.results else 0


__all__ = ["estimate_cost"]
