"""Dots, convolutions, factorisations, transforms, batch normalisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, FloatTF32Type, bf16, f16, f32, f64
from xdsl.ir import Attribute

from mlirhlo.dialects.chlo.attributes import (
    PrecisionAttr as ChloPrecisionAttr,
)
from mlirhlo.dialects.chlo.attributes import (
    RaggedDotDimensionNumbers,
    RaggedDotDimensionNumbersAttr,
)
from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, ints, str_of
from mlirhlo.dialects.hlo.attributes.dimensions import ConvolutionDimensionNumbers, Window
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.stablehlo.attributes import (
    ConvDimensionNumbers,
    ConvDimensionNumbersAttr,
    DotAlgorithm,
    DotAlgorithmAttr,
    DotDimensionNumbers,
    DotDimensionNumbersAttr,
    FftTypeAttr,
    TransposeAttr,
)
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import boolean, integer, precisions, window
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts
from mlirhlo.rewrites.hlo_to_stablehlo.reduction import window_of

_NO_WINDOW = Window(())


def _dot_numbers(op: Instruction) -> list[tuple[int, ...]]:
    keys = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
    return [ints(op.properties.get(key)) for key in keys]


_TF32 = FloatTF32Type()

_ALGORITHMS: Mapping[str, tuple[Attribute, Attribute, int]] = {
    "dot_f16_f16_f16": (f16, f16, 1),
    "dot_f16_f16_f32": (f16, f32, 1),
    "dot_bf16_bf16_bf16": (bf16, bf16, 1),
    "dot_bf16_bf16_f32": (bf16, f32, 1),
    "dot_bf16_bf16_f32_x3": (bf16, f32, 3),
    "dot_bf16_bf16_f32_x6": (bf16, f32, 6),
    "dot_bf16_bf16_f32_x9": (bf16, f32, 9),
    "dot_tf32_tf32_f32": (_TF32, f32, 1),
    "dot_tf32_tf32_f32_x3": (_TF32, f32, 3),
    "dot_f32_f32_f32": (f32, f32, 1),
    "dot_f64_f64_f64": (f64, f64, 1),
    "dot_any_f8_any_f8_f32": (f32, f32, 1),
    "dot_any_f8_any_f8_f32_fast_accum": (f32, f32, 1),
}
"""Type of the operands, of the sum, primitive operations; of f8 operands, their own."""


def _algorithm(op: Instruction) -> DotAlgorithmAttr | None:
    """The algorithm as an attribute; None for those that StableHLO does not know."""
    name = str_of(op.properties.get("algorithm"))
    found = _ALGORITHMS.get(name)
    if found is None:
        return None
    operand, accumulation, operations = found
    lhs = rhs = operand
    if "any_f8" in name:
        lhs, rhs = (cast(Attribute, cast(ArrayShape, s).element_type.mlir) for s in op.input_shapes)
    return DotAlgorithmAttr(
        DotAlgorithm(
            lhs,
            rhs,
            accumulation,
            1,
            1,
            operations,
            name.endswith("fast_accum"),
        )
    )


@converts("dot")
def dot(op: Instruction, scope: Scope) -> Tree:
    """`dot_general`; sparse and block-scaled ones are marked custom calls."""
    named = str_of(op.properties.get("algorithm"))
    algorithm = _algorithm(op) if named else None
    if len(op.inputs) != 2 or "block_scaling_config" in op.properties or (named and not algorithm):
        return scope.importer.fallback(op, scope)
    properties: dict[str, Attribute] = {
        "dot_dimension_numbers": DotDimensionNumbersAttr(DotDimensionNumbers(*_dot_numbers(op))),
        "precision_config": precisions(op),
    }
    if algorithm is not None:
        properties["algorithm"] = algorithm
    return scope.one("stablehlo.dot_general", scope.inputs(op), op.shape, properties)


@converts("ragged-dot")
def ragged_dot(op: Instruction, scope: Scope) -> Tree:
    """`chlo.ragged_dot`."""
    lhs_batch, rhs_batch, lhs, rhs = _dot_numbers(op)
    ragged = ints(op.properties.get("lhs_ragged_dims"))
    group = ints(op.properties.get("rhs_group_dims"))
    numbers = RaggedDotDimensionNumbers(lhs_batch, rhs_batch, lhs, rhs, ragged, group)
    properties: dict[str, Attribute] = {
        "ragged_dot_dimension_numbers": RaggedDotDimensionNumbersAttr(numbers)
    }
    if "operand_precision" in op.properties:
        given = cast(Any, op.properties["operand_precision"]).data
        properties["precision_config"] = ArrayAttr(
            [ChloPrecisionAttr(str_of(word).upper()) for word in given]
        )
    return scope.one("chlo.ragged_dot", scope.inputs(op), op.shape, properties)


def convolution_numbers(numbers: ConvolutionDimensionNumbers) -> ConvDimensionNumbersAttr:
    """Dimension numbers of a convolution."""
    return ConvDimensionNumbersAttr(
        ConvDimensionNumbers(
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
            tuple(numbers.input_spatial_dimensions),
            numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
            tuple(numbers.kernel_spatial_dimensions),
            numbers.output_batch_dimension,
            numbers.output_feature_dimension,
            tuple(numbers.output_spatial_dimensions),
        )
    )


@converts("convolution")
def convolution(op: Instruction, scope: Scope) -> Tree:
    """`convolution`; sparse and block-scaled ones are marked custom calls."""
    if len(op.inputs) != 2 or {"sparsity_config", "block_scaling_config"} & op.properties.keys():
        return scope.importer.fallback(op, scope)
    numbers = cast(Any, op.properties["dim_labels"]).data
    properties: dict[str, Attribute] = {
        **window(
            window_of(op) if "window" in op.properties else _NO_WINDOW,
            {
                "stride": "window_strides",
                "padding": "padding",
                "base": "lhs_dilation",
                "dilation": "rhs_dilation",
                "reversal": "window_reversal",
            },
        ),
        "dimension_numbers": convolution_numbers(numbers),
        "feature_group_count": integer(int_of(op.properties.get("feature_group_count"), 1)),
        "batch_group_count": integer(int_of(op.properties.get("batch_group_count"), 1)),
        "precision_config": precisions(op),
    }
    return scope.one("stablehlo.convolution", scope.inputs(op), op.shape, properties)


@converts("cholesky")
def cholesky(op: Instruction, scope: Scope) -> Tree:
    """`cholesky`."""
    properties: dict[str, Attribute] = {"lower": boolean(bool_of(op.properties.get("lower")))}
    return scope.one("stablehlo.cholesky", scope.inputs(op), op.shape, properties)


@converts("triangular-solve")
def triangular_solve(op: Instruction, scope: Scope) -> Tree:
    """`triangular_solve`."""
    properties: dict[str, Attribute] = {
        key: boolean(bool_of(op.properties.get(key)))
        for key in ("left_side", "lower", "unit_diagonal")
    }
    properties["transpose_a"] = TransposeAttr(str_of(op.properties["transpose_a"]))
    return scope.one("stablehlo.triangular_solve", scope.inputs(op), op.shape, properties)


@converts("fft")
def fft(op: Instruction, scope: Scope) -> Tree:
    """`fft`."""
    properties: dict[str, Attribute] = {
        "fft_type": FftTypeAttr(str_of(op.properties["fft_type"])),
        "fft_length": op.properties["fft_length"],
    }
    return scope.one("stablehlo.fft", scope.inputs(op), op.shape, properties)


@converts("batch-norm-training", "batch-norm-inference", "batch-norm-grad")
def batch_norm(op: Instruction, scope: Scope) -> Tree:
    """`batch_norm_training`, `batch_norm_inference`, `batch_norm_grad`."""
    epsilon = cast("FloatAttr[Any]", op.properties["epsilon"]).value.data
    properties: dict[str, Attribute] = {
        "epsilon": FloatAttr(epsilon, f32),
        "feature_index": op.properties["feature_index"],
    }
    name = "stablehlo." + op.opcode.name.replace("-", "_")
    return scope.many(name, scope.inputs(op), op.shape, properties)
