"""Dots, convolutions, factorisations, transforms, batch normalisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    WindowAttr,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, array
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integer,
    integers,
    number,
    numbers,
    precisions,
    string,
    text,
    window,
    word,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, joined_shape, lowers, result_shape
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import frontend
from mlirhlo.rewrites.stablehlo_to_hlo.ops.data_movement import array_shape, transposed
from mlirhlo.rewrites.stablehlo_to_hlo.ops.elementwise import laid_out
from mlirhlo.rewrites.stablehlo_to_hlo.ops.reduction import results_of
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem


def contraction(
    lhs: Sequence[int], rhs: Sequence[int], lhs_batch: Sequence[int], rhs_batch: Sequence[int]
) -> dict[str, Attribute]:
    """Dimension numbers of a dot."""
    found: dict[str, Attribute] = {}
    if lhs_batch or rhs_batch:
        found["lhs_batch_dims"] = integers(tuple(lhs_batch))
        found["rhs_batch_dims"] = integers(tuple(rhs_batch))
    if lhs or rhs:
        found["lhs_contracting_dims"] = integers(tuple(lhs))
        found["rhs_contracting_dims"] = integers(tuple(rhs))
    return found


def dot_numbers(dims: Any) -> dict[str, Attribute]:
    """Dimension numbers of a `dot_general`."""
    return contraction(
        dims.lhs_contracting_dimensions,
        dims.rhs_contracting_dimensions,
        dims.lhs_batching_dimensions,
        dims.rhs_batching_dimensions,
    )


def _with_precision(op: Operation, properties: dict[str, Attribute]) -> dict[str, Attribute]:
    found = precisions(op)
    if found is not None:
        properties["operand_precision"] = found
    return properties


@lowers("stablehlo.dot_general")
def dot_general(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dot`."""
    properties = dot_numbers(cast(Any, attribute(op, "dot_dimension_numbers")).data)
    _with_precision(op, properties)
    algorithm = attribute(op, "algorithm")
    if algorithm is not None:
        properties["algorithm"] = string(_algorithm(op, cast(Any, algorithm).data))
    return (body.emit("dot", body.inputs(op), result_shape(op), properties),)


_ALGORITHMS: Mapping[tuple[str, str, str, int, int, int, bool], str] = {
    ("f16", "f16", "f16", 1, 1, 1, False): "dot_f16_f16_f16",
    ("f16", "f16", "f32", 1, 1, 1, False): "dot_f16_f16_f32",
    ("bf16", "bf16", "bf16", 1, 1, 1, False): "dot_bf16_bf16_bf16",
    ("bf16", "bf16", "f32", 1, 1, 1, False): "dot_bf16_bf16_f32",
    ("bf16", "bf16", "f32", 1, 1, 3, False): "dot_bf16_bf16_f32_x3",
    ("bf16", "bf16", "f32", 1, 1, 6, False): "dot_bf16_bf16_f32_x6",
    ("bf16", "bf16", "f32", 1, 1, 9, False): "dot_bf16_bf16_f32_x9",
    ("tf32", "tf32", "f32", 1, 1, 1, False): "dot_tf32_tf32_f32",
    ("tf32", "tf32", "f32", 1, 1, 3, False): "dot_tf32_tf32_f32_x3",
    ("f32", "f32", "f32", 1, 1, 1, False): "dot_f32_f32_f32",
    ("f64", "f64", "f64", 1, 1, 1, False): "dot_f64_f64_f64",
}
"""Precision and accumulation types, component counts, primitive operations, imprecise or not."""


def _algorithm(op: Operation, value: Any) -> str:
    types = [
        str(getattr(value, f"{part}_type")).removeprefix("!")
        for part in ("lhs_precision", "rhs_precision", "accumulation")
    ]
    imprecise = bool(value.allow_imprecise_accumulation)
    lhs, rhs, result = types
    if lhs.startswith("f8") and rhs.startswith("f8") and result == "f32":
        return "dot_any_f8_any_f8_f32" + ("_fast_accum" if imprecise else "")
    key = (
        lhs,
        rhs,
        result,
        int(value.lhs_component_count),
        int(value.rhs_component_count),
        int(value.num_primitive_operations),
        imprecise,
    )
    found = _ALGORITHMS.get(key)
    if found is None:
        raise problem(
            "HLO0426",
            op,
            f"no algorithm of HLO has operands {lhs} and {rhs}, sums in {result} and"
            f" {value.num_primitive_operations} operations",
            "leave the algorithm out, or take one that `dot` knows",
        )
    return found


@lowers("stablehlo.dot")
def dot(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dot` of the last dimension with the first (or second to last) of the other."""
    lhs, _ = operands = body.inputs(op)
    properties = contraction((array_shape(lhs).rank - 1,), (0,), (), ())
    return (body.emit("dot", operands, result_shape(op), _with_precision(op, properties)),)


@lowers("stablehlo.einsum", "stablehlo.unary_einsum")
def einsum(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`dot` of the letters both have, and a `transpose` into the order of the result."""
    config = text(op, "einsum_config").replace(" ", "")
    given, arrow, wanted = config.partition("->")
    letters = given.split(",")
    operands = body.inputs(op)
    if not arrow or len(letters) != len(operands) or len(operands) > 2 or "." in config:
        raise problem("HLO0426", op, f"einsum_config {config!r} does not name every dimension")
    ranks = [array_shape(v).rank for v in operands]
    if [len(part) for part in letters] != ranks or len(set(wanted)) != len(wanted):
        raise problem("HLO0426", op, f"einsum_config {config!r} does not fit the operands")
    if len(operands) == 1:
        if sorted(letters[0]) != sorted(wanted):
            raise problem("HLO0420", op, "sums and diagonals of one operand have no HLO form")
        order = [letters[0].index(c) for c in wanted]
        return (transposed(body, operands[0], order),)
    lhs, rhs = letters
    batch = [c for c in lhs if c in rhs and c in wanted]
    summed = [c for c in lhs if c in rhs and c not in wanted]
    found = batch + [c for c in lhs if c not in rhs] + [c for c in rhs if c not in lhs]
    if sorted(found) != sorted(wanted):
        raise problem("HLO0420", op, "sums of one operand alone have no HLO form")
    properties = contraction(
        [lhs.index(c) for c in summed],
        [rhs.index(c) for c in summed],
        [lhs.index(c) for c in batch],
        [rhs.index(c) for c in batch],
    )
    sizes = {
        c: size
        for part, v in zip(letters, operands, strict=True)
        for c, size in zip(part, array_shape(v).dimensions, strict=True)
    }
    result = array_shape_of(op)
    product = array(result.element_type, [sizes[c] for c in found])
    frontend(body, {"grad_x": "false", "grad_y": "false"})
    value = body.emit("dot", operands, product, _with_precision(op, properties))
    body.common = {k: v for k, v in body.common.items() if k != "frontend_attributes"}
    return (transposed(body, value, [found.index(c) for c in wanted]),)


def array_shape_of(op: Operation) -> ArrayShape:
    """Shape of the one result, an array."""
    shape = result_shape(op)
    assert isinstance(shape, ArrayShape)
    return shape


_CONVOLUTION_KEYS = {
    "strides": "window_strides",
    "base": "lhs_dilation",
    "dilations": "rhs_dilation",
    "reversal": "window_reversal",
}


def convolution_numbers(dims: Any) -> ConvolutionDimensionNumbers:
    """Dimension numbers of a convolution."""
    return ConvolutionDimensionNumbers(
        dims.input_batch_dimension,
        dims.input_feature_dimension,
        tuple(dims.input_spatial_dimensions),
        dims.kernel_input_feature_dimension,
        dims.kernel_output_feature_dimension,
        tuple(dims.kernel_spatial_dimensions),
        dims.output_batch_dimension,
        dims.output_feature_dimension,
        tuple(dims.output_spatial_dimensions),
    )


@lowers("stablehlo.convolution")
def convolution(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`convolution`."""
    operands = body.inputs(op)
    dims = convolution_numbers(cast(Any, attribute(op, "dimension_numbers")).data)
    kernel = array_shape(operands[1]).dimensions
    sizes = [kernel[d] for d in dims.kernel_spatial_dimensions]
    properties: dict[str, Attribute] = {
        "window": WindowAttr(window(op, sizes, _CONVOLUTION_KEYS)),
        "dim_labels": ConvolutionDimensionNumbersAttr(dims),
    }
    if not sizes:
        del properties["window"]
    for key in ("feature_group_count", "batch_group_count"):
        if (count := number(op, key, 1)) != 1:
            properties[key] = integer(count)
    _with_precision(op, properties)
    return (body.emit("convolution", operands, result_shape(op), properties),)


@lowers("stablehlo.fft")
def fft(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`fft`."""
    properties: dict[str, Attribute] = {
        "fft_type": string(word(attribute(op, "fft_type"))),
        "fft_length": integers(numbers(op, "fft_length")),
    }
    return (body.emit("fft", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.cholesky")
def cholesky(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`cholesky`."""
    properties: dict[str, Attribute] = {"lower": boolean(True)} if flag(op, "lower") else {}
    return (body.emit("cholesky", body.inputs(op), result_shape(op), properties),)


@lowers("stablehlo.triangular_solve")
def triangular_solve(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`triangular-solve`."""
    properties: dict[str, Attribute] = {
        key: boolean(True) for key in ("left_side", "lower", "unit_diagonal") if flag(op, key)
    }
    kind = word(attribute(op, "transpose_a"), "NO_TRANSPOSE")
    properties["transpose_a"] = string(kind)
    operands = body.inputs(op)
    return (
        body.emit(
            "triangular-solve", operands, laid_out(result_shape(op), operands[1]), properties
        ),
    )


@lowers(
    "stablehlo.batch_norm_training", "stablehlo.batch_norm_inference", "stablehlo.batch_norm_grad"
)
def batch_norm(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`batch-norm-training`, `batch-norm-inference`, `batch-norm-grad`."""
    epsilon = cast("FloatAttr[Any]", attribute(op, "epsilon")).value.data
    properties: dict[str, Attribute] = {
        "epsilon": FloatAttr(epsilon, f64),
        "feature_index": integer(number(op, "feature_index")),
    }
    opcode = op.name.removeprefix("stablehlo.").replace("_", "-")
    value = body.emit(opcode, body.inputs(op), joined_shape(op), properties)
    return results_of(op, body, value)
