"""Matrix products of XLA:GPU by cuBLAS: `__cublas$gemm`, `__cublas$lt$matmul`, `…$f8`, `…$mx`, `…groupedMatmul`.

Result = activation(alpha * a b + beta * c + bias), summed in the accumulator's type and rounded
once. Operands: a, b, c when beta is not 0, scales (f8), bias (epilogues that add one).
Source: XLA's GemmRewriter as its dumps show it, and the `gemm_backend_config` fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.interp.custom_calls import computes, options_of, unfit
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.ops.dot import (
    DotDimensions,
    accumulator,
    dot_general,
    ragged_dot_general,
    rounded,
    scaled,
)
from mlirhlo.interp.registry import Array, Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


def gelu(x: Any) -> Any:
    """Gelu in its approximation by tanh."""
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def silu(x: Any) -> Any:
    """x * logistic(x)."""
    return x / (1 + np.exp(-x))


ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "DEFAULT": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "GELU": gelu,
    "SILU": silu,
}


def config_of(op: CustomCallOp, key: str) -> Mapping[str, Any]:
    """The part `key` of a GPU backend config, or all of it in older dumps."""
    options = options_of(op)
    return cast("Mapping[str, Any]", options.get(key, options))


def dimensions_of(numbers: Mapping[str, Any]) -> DotDimensions:
    """Dot dimension numbers as JSON."""

    def ints(key: str) -> tuple[int, ...]:
        return tuple(int(dim) for dim in numbers.get(key, ()))

    return DotDimensions(
        ints("lhs_batch_dimensions"),
        ints("lhs_contracting_dimensions"),
        ints("rhs_batch_dimensions"),
        ints("rhs_contracting_dimensions"),
    )


def saturated(value: Any, type_: PrimitiveType) -> Array:
    """A result in its type; in one of 8 bits what does not fit is the greatest number that does."""
    if type_.is_float and type_.bits == 8:
        info = cast(Any, ml_dtypes).finfo(type_.dtype)
        value = np.clip(value, value.dtype.type(info.min), value.dtype.type(info.max))
    elif type_.bits == 8 and value.dtype.itemsize > 1:
        value = np.clip(value, np.iinfo(type_.dtype).min, np.iinfo(type_.dtype).max)
    return rounded(value, type_)


def _type(op: CustomCallOp, index: int) -> PrimitiveType:
    return cast(ArrayShape, op.input_shapes[index]).element_type


@computes("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
def gemm(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(result[, pre-activation][, greatest magnitude][, workspace])`. Raises HLO0355."""
    config = config_of(op, "gemm_backend_config")
    parts: tuple[Shape, ...] = (op.shape,)
    if isinstance(op.shape, TupleShape):
        parts = op.shape.elements
    result = cast(ArrayShape, parts[0])
    epilogue = str(config.get("epilogue", "DEFAULT"))
    with_aux = epilogue.endswith("_AUX")
    words = epilogue.removesuffix("_AUX").split("_")
    with_bias = words[0] == "BIAS"
    activation = ACTIVATIONS.get("_".join(words[1:] if with_bias else words) or "DEFAULT")
    if activation is None:
        raise unfit(op, f"epilogue {epilogue!r} is not known")
    dims = dimensions_of(config.get("dot_dimension_numbers", {}))
    alpha = complex(config.get("alpha_real", 1), config.get("alpha_imag", 0))
    beta = float(config.get("beta", 0))

    sum_type = accumulator(_type(op, 0), _type(op, 1), result.element_type)
    lhs, rhs = (inputs[k].astype(work_dtype(_type(op, k)), copy=False) for k in (0, 1))
    total: Any = dot_general(lhs, rhs, dims, sum_type).reshape(result.dimensions)
    rest = list(inputs[2:])
    matrix = rest.pop(0) if beta else None
    bias = rest.pop() if with_bias else None
    scale_out = None
    if op.custom_call_target.endswith("$f8"):
        if len(rest) < 2:
            raise unfit(op, "an f8 product has two scales")
        alpha *= float(rest[0]) * float(rest[1])
        if len(rest) > 2 and result.element_type.bits == 8:
            scale_out = float(rest[-1])
        if matrix is not None and len(rest) > 3:
            matrix = matrix.astype(sum_type) * float(rest[2])
    elif rest:
        raise unfit(op, f"{len(inputs)} operands do not fit beta={beta:g}, epilogue {epilogue}")
    if alpha != 1:
        total = total * (alpha if sum_type.kind == "c" else sum_type.type(alpha.real))
    if matrix is not None:
        total = total + sum_type.type(beta) * matrix.astype(sum_type)
    if bias is not None:
        total = total + bias.astype(sum_type)
    before, total = total, activation(total)
    values: list[Value]
    if scale_out is not None:
        values = [saturated(total * sum_type.type(scale_out), result.element_type)]
    else:
        values = [rounded(total, result.element_type)]
    if with_aux:
        values.append(rounded(before, cast(ArrayShape, parts[len(values)]).element_type))
    if config.get("damax_output"):
        amax = cast(ArrayShape, parts[len(values)])
        magnitude: Any = np.max(np.abs(total), initial=0)
        values.append(
            np.asarray(magnitude).astype(amax.element_type.dtype).reshape(amax.dimensions)
        )
    values += map(zeros, parts[len(values) :])
    return tuple(values) if isinstance(op.shape, TupleShape) else values[0]


@computes("__cublas$lt$matmul$mx")
def scaled_gemm(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(result[, workspace])` of lhs, rhs and the scales of their blocks: a scaled-dot. Raises HLO0355."""
    config = config_of(op, "gemm_backend_config")
    if (
        len(inputs) != 4
        or config.get("beta")
        or str(config.get("epilogue", "DEFAULT")) != "DEFAULT"
    ):
        raise unfit(op, "only lhs, rhs and their scales, without beta and epilogue, are known")
    dims = dimensions_of(config.get("dot_dimension_numbers", {}))
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    result = cast(ArrayShape, parts[0])
    dtype = np.result_type(np.float32, work_dtype(result.element_type))
    lhs, rhs, *scales = (value.astype(dtype) for value in inputs)
    for x, scale in zip((lhs, rhs), scales, strict=True):
        if x.ndim != scale.ndim or any(
            n % max(m, 1) for n, m in zip(x.shape, scale.shape, strict=True)
        ):
            raise unfit(op, f"scales of {scale.shape} are not those of blocks of {x.shape}")
    total: Any = dot_general(scaled(lhs, scales[0]), scaled(rhs, scales[1]), dims, dtype)
    total = total * dtype.type(config.get("alpha_real", 1))
    made = rounded(total.reshape(result.dimensions), result.element_type)
    values: tuple[Value, ...] = (made, *map(zeros, parts[1:]))
    return values if isinstance(op.shape, TupleShape) else made


@computes("__cublas$lt$groupedMatmul")
def grouped_gemm(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(result, workspace)` of lhs, rhs, group sizes[, c]: a ragged dot. Raises HLO0355."""
    config = config_of(op, "grouped_gemm_backend_config")
    gemm_config: Mapping[str, Any] = config.get("gemm_backend_config", {})
    numbers: Mapping[str, Any] = config.get("ragged_dot_dimension_numbers", {})
    if str(gemm_config.get("epilogue", "DEFAULT")) != "DEFAULT":
        raise unfit(op, f"epilogue {gemm_config['epilogue']!r} of a grouped product is not known")
    if not numbers:
        raise unfit(op, "it has no ragged_dot_dimension_numbers")
    dims = dimensions_of(numbers.get("dot_dimension_numbers", {}))
    (ragged,) = (int(dim) for dim in numbers["lhs_ragged_dimensions"])
    group_dims = [int(dim) for dim in numbers.get("rhs_group_dimensions", ())]
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    result = cast(ArrayShape, parts[0])
    sum_type = accumulator(_type(op, 0), _type(op, 1), result.element_type)
    lhs, rhs = (inputs[k].astype(work_dtype(_type(op, k)), copy=False) for k in (0, 1))
    total: Any = ragged_dot_general(lhs, rhs, inputs[2], dims, ragged, group_dims, sum_type)
    total = total.reshape(result.dimensions) * sum_type.type(gemm_config.get("alpha_real", 1))
    beta = float(gemm_config.get("beta", 0))
    if beta:
        total = total + sum_type.type(beta) * inputs[3].astype(sum_type)
    made = rounded(total, result.element_type)
    values: tuple[Value, ...] = (made, *map(zeros, parts[1:]))
    return values if isinstance(op.shape, TupleShape) else made
