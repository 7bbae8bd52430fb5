"""Convolutions by their axes: implicit matrix products.

Rows are places of the result, the depth is taps of the window and features, columns are output features;
feature and batch groups are batches. What padding and base dilation put around and between elements is
zeros that packing makes, so that no padded input and no matrix of windows is ever in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import gcd, prod

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.dimensions import Window, WindowDimension
from mlirhlo.dialects.hlo.ops import ConvolutionOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.hlo_to_loops.contractions.arithmetic import choose
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction, Factor, Index
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array
from mlirhlo.lowering.target import current

_MOST_PHASES = 8
_FEWEST_COLUMNS = 4
"""Output features of a group that are worth a product of matrices."""


def of_convolution(op: ConvolutionOp, in_memory: Sequence[SSAValue]) -> Sequence[Contraction]:
    """The contractions of a convolution, none when its groups are too small (depthwise ones).

    Where the input is dilated, places of the result that meet the same taps are a contraction of
    their own: none multiplies the zeros between elements. `in_memory`: as of `of_dot`.
    """
    right = array(op.inputs[1])
    labels = op.dim_labels
    assert labels is not None
    window = op.window or Window((WindowDimension(),) * len(labels.input_spatial_dimensions))
    groups = op.feature_group_count * op.batch_group_count
    outputs = right.dimensions[labels.kernel_output_feature_dimension] // groups
    if groups > 1 and outputs < _FEWEST_COLUMNS:
        return []
    phases = [_phases(d) for d in window.dimensions]
    if prod(map(len, phases)) > _MOST_PHASES:
        phases = [[None] for _ in phases]
    found = [_contraction(op, window, chosen, in_memory) for chosen in product(*phases)]
    return [c for c in found if c.count(c.rows)] or found[:1]


def _contraction(
    op: ConvolutionOp,
    window: Window,
    phases: Sequence[int | None],
    in_memory: Sequence[SSAValue],
) -> Contraction:
    """Places of the result of one phase in each dimension, None for all of them."""
    lhs, rhs = op.inputs[:2]
    left, right, own = array(lhs), array(rhs), array(op.output)
    labels = op.dim_labels
    assert labels is not None
    groups = op.feature_group_count * op.batch_group_count
    outputs = right.dimensions[labels.kernel_output_feature_dimension] // groups
    sizes: list[int] = []

    def axis(size: int) -> int:
        sizes.append(size)
        return len(sizes) - 1

    group, feature, output = (
        axis(groups),
        axis(right.dimensions[labels.kernel_input_feature_dimension]),
        axis(outputs),
    )
    batch = axis(own.dimensions[labels.output_batch_dimension])
    source, weight, target = ([Index()] * s.rank for s in (left, right, own))
    taps: list[int] = []
    places: list[int] = []
    for at, (d, phase) in enumerate(zip(window.dimensions, phases, strict=True)):
        here, there = labels.input_spatial_dimensions[at], labels.output_spatial_dimensions[at]
        count = own.dimensions[there]
        first, step, number = (0, 1, d.size) if phase is None else _taps(d, phase)
        tap = axis(number)
        place = axis(count if phase is None else -(-(count - phase) // d.base_dilation))
        taps.append(tap)
        places.append(place)
        size = left.dimensions[here]
        source[here] = (
            _moved(d, tap, place, size, count)
            if phase is None
            else _moved_in_phase(
                d, (phase, first, step), (tap, number), (place, sizes[place]), size
            )
        )
        reverse = d.window_reversal
        weight[labels.kernel_spatial_dimensions[at]] = Index(
            ((tap, -step if reverse else step),), d.size - 1 - first if reverse else first
        )
        every = 1 if phase is None else d.base_dilation
        target[there] = Index(((place, every),), phase or 0)
    of_group = ((group, outputs), (output, 1))
    source[labels.input_feature_dimension] = Index(((feature, 1),))
    source[labels.input_batch_dimension] = Index(((batch, 1),))
    if op.feature_group_count > 1:
        terms = ((group, sizes[feature]), (feature, 1))
        source[labels.input_feature_dimension] = Index(terms)
    if op.batch_group_count > 1:
        source[labels.input_batch_dimension] = Index(((group, sizes[batch]), (batch, 1)))
    weight[labels.kernel_input_feature_dimension] = Index(((feature, 1),))
    weight[labels.kernel_output_feature_dimension] = Index(of_group)
    target[labels.output_batch_dimension] = Index(((batch, 1),))
    target[labels.output_feature_dimension] = Index(of_group)
    contraction = Contraction(
        choose(left.element_type, right.element_type, own.element_type, "unset", current()),
        sizes,
        (group,),
        (batch, *places),
        (output,),
        (*taps, feature),
        Factor(lhs, left, tuple(source), lhs in in_memory),
        Factor(rhs, right, tuple(weight), rhs in in_memory),
        Factor(op.output, own, tuple(target), True),
    )
    return in_runs(contraction, feature)


def in_runs(c: Contraction, feature: int) -> Contraction:
    """The innermost taps and the features as one axis, where they are neighbours in both memories.

    A row of the window is then one stretch of memory, which crosses an edge of the input at most at
    its ends.
    """
    if not (c.lhs.is_buffer and c.rhs.is_buffer) or c.sizes[feature] == 1:
        return c
    for tap in c.depth[:-1]:
        parts = [_joined(f, tap, feature, len(c.sizes), c.sizes[feature]) for f in (c.lhs, c.rhs)]
        left, right = parts
        if c.sizes[tap] > 1 and left is not None and right is not None:
            sizes = (*c.sizes, c.sizes[tap] * c.sizes[feature])
            depth = (*(a for a in c.depth[:-1] if a != tap), len(c.sizes))
            return replace(c, sizes=sizes, depth=depth, lhs=left, rhs=right)
    return c


def _joined(factor: Factor, tap: int, feature: int, run: int, features: int) -> Factor | None:
    """An operand with two neighbouring dimensions as one that `run` moves through."""
    order = physical_order(factor.shape)
    for outer, inner in pairwise(order):
        window, other = factor.indices[outer], factor.indices[inner]
        size = factor.shape.dimensions[inner]
        if other != Index(((feature, 1),)) or size != features or (tap, 1) not in window.terms:
            continue
        if window.dilation != 1:
            return None
        terms = [(run if a == tap else a, f if a == tap else f * size) for a, f in window.terms]
        joined = Index(tuple(terms), window.offset * size, 1, window.is_checked)
        indices = [joined if d == outer else factor.indices[d] for d in order if d != inner]
        dimensions = [
            factor.shape.dimensions[d] * (size if d == outer else 1) for d in order if d != inner
        ]
        shape = ArrayShape(factor.shape.element_type, tuple(dimensions))
        return Factor(factor.value, shape, tuple(indices), is_buffer=True)
    return None


def _moved(d: WindowDimension, tap: int, place: int, size: int, count: int) -> Index:
    """Where a tap of the window at a place falls."""
    terms = ((place, d.stride), (tap, d.window_dilation))
    last = (count - 1) * d.stride + (d.size - 1) * d.window_dilation - d.padding_low
    reach = (size - 1) * d.base_dilation + 1
    is_inside = d.padding_low <= 0 and last < reach and d.base_dilation == 1
    return Index(terms, -d.padding_low, d.base_dilation, not is_inside)


def _phases(d: WindowDimension) -> Sequence[int | None]:
    """Places of the result, by the remainder that says which taps fall on elements."""
    return range(d.base_dilation) if d.base_dilation > 1 and d.stride == 1 else [None]


def _taps(d: WindowDimension, phase: int) -> tuple[int, int, int]:
    """The first tap that falls on an element, the next ones' distance, and how many there are."""
    step = d.base_dilation // gcd(d.window_dilation, d.base_dilation)
    for tap in range(min(step, d.size)):
        if (phase + tap * d.window_dilation - d.padding_low) % d.base_dilation == 0:
            return tap, step, -(-(d.size - tap) // step)
    return 0, step, 0


def _moved_in_phase(
    d: WindowDimension,
    phase: tuple[int, int, int],
    taps: tuple[int, int],
    places: tuple[int, int],
    size: int,
) -> Index:
    """As `_moved`, counting elements: those taps skip what is between."""
    (place_phase, first, step), (tap, number), (place, count) = phase, taps, places
    factor = step * d.window_dilation // d.base_dilation
    offset = (place_phase + first * d.window_dilation - d.padding_low) // d.base_dilation
    last = offset + count - 1 + (number - 1) * factor
    return Index(((place, 1), (tap, factor)), offset, 1, offset < 0 or last >= size)
