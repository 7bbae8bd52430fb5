"""Convolutions by their axes: implicit matrix products.

Rows are places of the result, the depth is taps of the window and features, columns are output features;
feature and batch groups are batches. What padding and base dilation put around and between elements is
zeros that packing makes, so that no padded input and no matrix of windows is ever in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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

    Where the input is dilated, places of the result are told apart by the taps that meet elements there:
    none multiplies the zeros between elements. Neighbouring phases whose taps are neighbours are
    columns of one contraction, others contractions of their own. `in_memory`: as of `of_dot`.
    """
    right = array(op.inputs[1])
    labels = op.dim_labels
    assert labels is not None
    window = op.window or Window((WindowDimension(),) * len(labels.input_spatial_dimensions))
    groups = op.feature_group_count * op.batch_group_count
    outputs = right.dimensions[labels.kernel_output_feature_dimension] // groups
    if groups > 1 and outputs < _FEWEST_COLUMNS:
        return []
    spatial = [array(op.output).dimensions[d] for d in labels.output_spatial_dimensions]
    phases = [_phases(d, n) for d, n in zip(window.dimensions, spatial, strict=True)]
    if prod(map(len, phases)) > _MOST_PHASES:
        phases = [[None] for _ in phases]
    found = [_contraction(op, window, chosen, in_memory) for chosen in product(*phases)]
    return [c for c in found if c.count(c.rows)] or found[:1]


def _contraction(
    op: ConvolutionOp,
    window: Window,
    phases: Sequence[_Phases | None],
    in_memory: Sequence[SSAValue],
) -> Contraction:
    """Places of the result of some phases in each dimension, None for all of them."""
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
    shifts: list[int] = []
    for at, (d, phase) in enumerate(zip(window.dimensions, phases, strict=True)):
        here, there = labels.input_spatial_dimensions[at], labels.output_spatial_dimensions[at]
        count = own.dimensions[there]
        reverse = d.window_reversal
        where = labels.kernel_spatial_dimensions[at]
        if phase is None:
            tap, place = axis(d.size), axis(count)
            source[here] = _moved(d, tap, place, left.dimensions[here], count)
            step = -1 if reverse else 1
            weight[where] = Index(((tap, step),), d.size - 1 if reverse else 0)
            target[there] = Index(((place, 1),))
        else:
            tap, place = axis(phase.taps), axis(phase.places)
            source[here] = phase.moved(d, tap, place, left.dimensions[here])
            step = -phase.step if reverse else phase.step
            first = d.size - 1 - phase.tap if reverse else phase.tap
            terms, ends = [(tap, step)], [(place, d.base_dilation)]
            if phase.count > 1:
                shift = axis(phase.count)
                shifts.append(shift)
                terms.append((shift, 1 if reverse else -1))
                ends.append((shift, 1))
            weight[where] = Index(tuple(terms), first)
            target[there] = Index(tuple(ends), phase.first)
        taps.append(tap)
        places.append(place)
    of_group = ((group, outputs), (output, 1))
    source[labels.input_feature_dimension] = Index(((feature, 1),))
    source[labels.input_batch_dimension] = Index(((batch, 1),))
    if op.feature_group_count > 1:
        features = ((group, sizes[feature]), (feature, 1))
        source[labels.input_feature_dimension] = Index(features)
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
        (*shifts, output),
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


@dataclass(frozen=True, slots=True)
class _Phases:
    """Neighbouring places of the result, and those a base dilation further on each, where it is dilated.

    A phase's first tap is one less than that of the phase before; all else is the same for all.
    """

    first: int
    """The first phase: its first place in the result."""
    places: int
    """Of one phase."""
    tap: int
    """The first phase's first tap that falls on an element."""
    step: int
    """From a tap that does to the next."""
    taps: int
    """How many do."""
    offset: int
    """The element that the first tap of the first place falls on."""
    count: int = 1
    """How many phases."""

    @staticmethod
    def of(d: WindowDimension, phase: int, count: int) -> _Phases:
        """One phase, of `count` places of all."""
        places = -(-(count - phase) // d.base_dilation)
        step = d.base_dilation // gcd(d.window_dilation, d.base_dilation)
        for tap in range(min(step, d.size)):
            start = phase + tap * d.window_dilation - d.padding_low
            if start % d.base_dilation == 0:
                taps = -(-(d.size - tap) // step)
                return _Phases(phase, places, tap, step, taps, start // d.base_dilation)
        return _Phases(phase, places, 0, step, 0, 0)

    def moved(self, d: WindowDimension, tap: int, place: int, size: int) -> Index:
        """As `_moved`, counting elements: those taps skip what is between."""
        factor = self.step * d.window_dilation // d.base_dilation
        last = self.offset + self.places - 1 + (self.taps - 1) * factor
        terms = ((place, 1), (tap, factor))
        return Index(terms, self.offset, 1, self.offset < 0 or last >= size)


def _phases(d: WindowDimension, count: int) -> Sequence[_Phases | None]:
    """Places of the result, by the remainder that says which taps fall on elements; None: all at once."""
    if d.base_dilation == 1 or d.stride != 1:
        return [None]
    found: list[_Phases | None] = []
    for number in range(d.base_dilation):
        phase, before = _Phases.of(d, number, count), found[-1] if found else None
        if before is not None:
            tap = before.tap - before.count if before.taps else 0
            if replace(before, first=number, tap=tap, count=1) == phase:
                found[-1] = replace(before, count=before.count + 1)
                continue
        found.append(phase)
    return found
