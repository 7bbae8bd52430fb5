"""`convolution-group-converter`: convolutions in groups as convolutions that are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.attributes.dimensions import (
    ConvolutionDimensionNumbers,
    ConvolutionDimensionNumbersAttr,
    Window,
    WindowAttr,
    WindowDimension,
)
from mlirhlo.dialects.hlo.element_types import F32, PRED, S32
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import (
    CompareOp,
    ConvertOp,
    ConvolutionOp,
    Instruction,
    ReduceWindowOp,
    ReshapeOp,
    SelectOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, own_properties, sized, typed
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


def _is_plain(op: ConvolutionOp) -> bool:
    """Whether all sizes are known, and the groups alone keep it from being an ordinary convolution."""
    if op.dim_labels is None or len(op.inputs) != 2 or op.convolution_kind != "unset":
        return False
    rare = ("sparsity_config", "block_scaling_config")
    static = not any(array(v).is_dynamic for v in (op.output, *op.inputs))
    return static and not any(key in op.properties for key in rare)


def _options(rewriter: Rewriter) -> ConvolutionGroupConverterPass:
    """The pass's options; the defaults where a rule runs alone."""
    given = rewriter.options
    found = given.expander if isinstance(given, Callees) else None
    return (
        found
        if isinstance(found, ConvolutionGroupConverterPass)
        else ConvolutionGroupConverterPass()
    )


def _masks(rewriter: Rewriter) -> bool:
    """Whether what has one channel a group, or one example, is computed for all and then masked."""
    options = _options(rewriter)
    return options.filter_expansion or not options.is_cost_viable


def _numbers(
    op: ConvolutionOp,
    labels: ConvolutionDimensionNumbers,
    *more: WindowDimension,
    groups: str,
) -> dict[str, Attribute]:
    """Properties of the convolution without the attribute `groups`, with more window dimensions."""
    window = () if op.window is None else op.window.dimensions
    kept = {k: v for k, v in own_properties(op).items() if k not in (groups, "window")}
    kept["dim_labels"] = ConvolutionDimensionNumbersAttr(labels)
    if window or more:
        kept["window"] = WindowAttr(Window((*window, *more)))
    return kept


def _split(shape: ArrayShape, dim: int, major: int) -> ArrayShape:
    """The shape with `dim` as two dimensions, the first of size `major`."""
    sizes = shape.dimensions
    return sized(shape, (*sizes[:dim], major, sizes[dim] // major, *sizes[dim + 1 :]))


def _behind(dims: Sequence[int], dim: int) -> tuple[int, ...]:
    """Dimensions where they are after one is put before `dim`."""
    return tuple(d + (d >= dim) for d in dims)


def _slide_over_groups(op: ConvolutionOp, rewriter: Rewriter, groups: int, given: int) -> None:
    """Makes the groups a spatial dimension, put before dimension `given` of the input.

    Of [A 0 0 B 0 0 C], a window [X Y Z] sees with a stride of 2 [A 0 0], [0 B 0] and [0 0 C], and gives
    [AX BY CZ]: each group meets its own part of the kernel.
    """
    labels = op.dim_labels
    assert labels is not None
    of_kernel, of_output = labels.kernel_output_feature_dimension, labels.output_feature_dimension
    i, k, o = given, of_kernel, of_output
    (batch, feature), spatial = (
        _behind((labels.input_batch_dimension, labels.input_feature_dimension), i),
        (*_behind(labels.input_spatial_dimensions, i), i),
    )
    kernel_in, kernel_out = _behind((labels.kernel_input_feature_dimension, of_kernel), k)
    out_batch, out_feature = _behind((labels.output_batch_dimension, of_output), o)
    new = ConvolutionDimensionNumbers(
        *(batch, feature, spatial),
        *(kernel_in, kernel_out, (*_behind(labels.kernel_spatial_dimensions, k), k)),
        *(out_batch, out_feature, (*_behind(labels.output_spatial_dimensions, o), o)),
    )
    x, w = op.inputs
    b = Builder(op, rewriter)
    split_x = b.reshape(x, _split(array(x), i, groups))
    split_w = b.reshape(w, _split(array(w), k, groups))
    for split, whole in ((split_x, x), (split_w, w)):
        owner = whole.owner
        if isinstance(owner, Instruction) and "frontend_attributes" in owner.properties:
            split.properties["frontend_attributes"] = owner.properties["frontend_attributes"]
    dilated = WindowDimension(groups, groups - 1, base_dilation=groups)
    key = "batch_group_count" if op.batch_group_count > 1 else "feature_group_count"
    numbers = _numbers(op, new, dilated, groups=key)
    made = b(ConvolutionOp, split_x, split_w, shape=_split(array(op), o, groups), **numbers)
    b.like(ReshapeOp, made)
    b.done()


def _diagonal(b: Builder, shape: ArrayShape, rows: int, columns: int, groups: int) -> Instruction:
    """Where the group of a place in dimension `rows` is that of its place in `columns`."""

    def group_numbers(dim: int) -> Instruction:
        numbers = np.repeat(np.arange(groups, dtype=np.int32), shape.dimensions[dim] // groups)
        literal = Literal.from_array(typed(sized(shape, (shape.dimensions[dim],)), S32), numbers)
        return b.broadcast(b.constant(literal), (dim,), typed(shape, S32))

    left, right = group_numbers(rows), group_numbers(columns)
    return b(CompareOp, left, right, shape=typed(shape, PRED), direction=string("EQ"))


@rule(ConvolutionOp, needs=("convert_batch_groups_only",), contract="rounding")
def convolution_of_batch_groups(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), batch_group_count=n => reshape(convolution(reshape(x), reshape(w))), n a spatial size"""
    if op.batch_group_count == 1 or not _is_plain(op) or _is_one_each(op):
        return
    assert op.dim_labels is not None
    _slide_over_groups(op, rewriter, op.batch_group_count, op.dim_labels.input_batch_dimension)


def _is_one_each(op: ConvolutionOp) -> bool:
    """Whether each group is one example of the batch and one feature of the result."""
    labels = op.dim_labels
    assert labels is not None
    batch = array(op.inputs[0]).dimensions[labels.input_batch_dimension]
    features = array(op).dimensions[labels.output_feature_dimension]
    return batch == features == op.batch_group_count


@rule(ConvolutionOp, needs=("convert_batch_groups_only",), contract="rounding")
def convolution_of_examples_apart(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), batch_group_count=n => reduce-window(select(diagonal, convolution(x, w), 0))"""
    groups = op.batch_group_count
    if groups == 1 or not _is_plain(op) or not _is_one_each(op) or not _masks(rewriter):
        return
    labels = op.dim_labels
    assert labels is not None
    shape, batch = array(op), labels.output_batch_dimension
    sizes = [n * (groups if d == batch else 1) for d, n in enumerate(shape.dimensions)]
    wide = sized(shape, sizes)
    b = Builder(op, rewriter)
    mask = _diagonal(b, wide, batch, labels.output_feature_dimension, groups)
    numbers = _numbers(op, labels, groups="batch_group_count")
    every = b(ConvolutionOp, *op.inputs, shape=wide, **numbers)
    kept: Instruction = b(SelectOp, mask, every, b.splat(wide, 0), shape=wide)
    type_ = shape.element_type
    if type_.bits < F32.bits and type_.is_float:
        type_ = F32
        kept = b(ConvertOp, kept, shape=typed(wide, type_))
    spans = [groups if d == batch else 1 for d in range(shape.rank)]
    parts = tuple(WindowDimension(n, n) for n in spans)
    summed = b(
        ReduceWindowOp,
        kept,
        b.scalar(type_, 0),
        shape=typed(sized(shape, shape.dimensions), type_),
        window=WindowAttr(Window(parts)),
        to_apply=binary_computation(op, "add", type_),
    )
    if type_ is not shape.element_type:
        b.like(ConvertOp, summed)
    b.done()


def _channels(op: ConvolutionOp) -> int:
    """Input features of each group."""
    assert op.dim_labels is not None
    return array(op.inputs[1]).dimensions[op.dim_labels.kernel_input_feature_dimension]


def _multiplier(op: ConvolutionOp) -> int:
    """Output features of each group."""
    labels = op.dim_labels
    assert labels is not None
    features = array(op.inputs[1]).dimensions[labels.kernel_output_feature_dimension]
    return features // op.feature_group_count


@rule(ConvolutionOp, needs=("!convert_batch_groups_only",), contract="rounding")
def convolution_of_feature_groups(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), feature_group_count=n => reshape(convolution(reshape(x), reshape(w))), n a spatial size"""
    if op.feature_group_count == 1 or not _is_plain(op) or _channels(op) == 1:
        return
    assert op.dim_labels is not None
    _slide_over_groups(op, rewriter, op.feature_group_count, op.dim_labels.input_feature_dimension)


@rule(ConvolutionOp, needs=("!convert_batch_groups_only",), contract="rounding")
def convolution_of_channels_apart(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), feature_group_count=n => convolution(x, select(diagonal, broadcast(w), 0))"""
    groups = op.feature_group_count
    if groups == 1 or not _is_plain(op) or _channels(op) != 1 or not _masks(rewriter):
        return
    if _multiplier(op) == 1 and not _options(rewriter).filter_expansion:
        return
    labels = op.dim_labels
    assert labels is not None
    x, w = op.inputs
    shape, dim = array(w), labels.kernel_input_feature_dimension
    wide = sized(shape, (*shape.dimensions[:dim], groups, *shape.dimensions[dim + 1 :]))
    others = [d for d in range(shape.rank) if d != dim]
    b = Builder(op, rewriter)
    mask = _diagonal(b, wide, dim, labels.kernel_output_feature_dimension, groups)
    flat = b.reshape(w, sized(shape, [shape.dimensions[d] for d in others]))
    every = b.broadcast(flat, others, wide)
    kernel = b(SelectOp, mask, every, b.splat(wide, 0), shape=wide)
    b.like(ConvolutionOp, x, kernel, **_numbers(op, labels, groups="feature_group_count"))
    b.done()


@rule(
    ConvolutionOp,
    needs=("!convert_batch_groups_only", "!filter_expansion", "is_cost_viable"),
    contract="rounding",
)
def convolution_of_channels_to_several(op: ConvolutionOp, rewriter: Rewriter) -> None:
    """convolution(x, w), m features a channel => reshape(convolution(x, reshape(w))), m a spatial size"""
    groups = op.feature_group_count
    if groups == 1 or not _is_plain(op) or _channels(op) != 1 or _multiplier(op) == 1:
        return
    labels = op.dim_labels
    assert labels is not None
    x, w = op.inputs
    several, rank = _multiplier(op), array(x).rank
    k, o = labels.kernel_output_feature_dimension + 1, labels.output_feature_dimension + 1
    (kernel_in,), (out_batch,) = (
        _behind((labels.kernel_input_feature_dimension,), k),
        _behind((labels.output_batch_dimension,), o),
    )
    new = replace(
        labels,
        input_spatial_dimensions=(*labels.input_spatial_dimensions, rank),
        kernel_input_feature_dimension=kernel_in,
        kernel_spatial_dimensions=(*_behind(labels.kernel_spatial_dimensions, k), k),
        output_batch_dimension=out_batch,
        output_spatial_dimensions=(*_behind(labels.output_spatial_dimensions, o), o),
    )
    # One element in the midst of padding: a reversed window sees it with each of its parts in turn.
    edge = several - 1
    part = WindowDimension(several, 1, edge, edge, window_reversal=True)
    b = Builder(op, rewriter)
    grown = b.reshape(x, sized(array(x), (*array(x).dimensions, 1)))
    kernel = b.reshape(w, _split(array(w), k - 1, groups))
    numbers = _numbers(op, new, part, groups="feature_group_count")
    numbers["feature_group_count"] = integer(groups)
    made = b(ConvolutionOp, grown, kernel, shape=_split(array(op), o - 1, groups), **numbers)
    b.like(ReshapeOp, made)
    b.done()


@dataclass(frozen=True)
class ConvolutionGroupConverterPass(ExpanderPass):
    """Writes convolutions in groups by ordinary ones, for targets that have no others.

    Before and after:

        %c = f32[2,5,5,6] convolution(%x, %w), window={size=3x2}, dim_labels=b01f_01io->b01f, feature_group_count=2
          =>   %c = f32[2,5,5,6] reshape(convolution(reshape(%x), reshape(%w))),
                 window={size=3x2x2 lhs_dilate=1x1x2}, dim_labels=b012f_01i2o->b012f

    The groups become one more spatial dimension, over which a dilated window meets one group at a time.
    Where each group is one channel, the kernel is spread over all channels instead and is zero off its own;
    where each is one example, one result a feature is kept of those of all examples. As in XLA one run
    converts groups of features, and one with `convert_batch_groups_only` groups of the batch.
    Pitfall: what is zero is multiplied all the same, so that a NaN or an infinity reaches other groups.
    Source: XLA's pass and its dumps.
    """

    name = "convolution-group-converter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        convolution_of_batch_groups,
        convolution_of_examples_apart,
        convolution_of_feature_groups,
        convolution_of_channels_apart,
        convolution_of_channels_to_several,
    )

    convert_batch_groups_only: bool = False
    """Converts groups of the batch; otherwise those of features."""
    filter_expansion: bool = True
    """Spreads kernels even where the target has convolutions of channels apart."""
    is_cost_viable: bool = False
    """Whether the target computes groups of one channel, and of one example, well enough as they are."""
