"""Elements that take a loop of their own: reductions, dots, windows, convolutions.

Every lane folds the values of its own element, so these work for any shape and layout, in vectors along
the output's most minor dimension. Shapes worth more have kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, cast

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import F32, F64, PRED, PrimitiveType
from mlirhlo.dialects.hlo.ops import (
    ConvolutionOp,
    DotOp,
    MapOp,
    ReduceOp,
    ReduceWindowOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.lowering.hlo_to_loops.elemental import Elements, Place, emits, emits_parts
from mlirhlo.lowering.hlo_to_loops.elements import Value, register_type
from mlirhlo.lowering.hlo_to_loops.elementwise_convert import convert
from mlirhlo.lowering.hlo_to_loops.folding import Step, fold
from mlirhlo.lowering.hlo_to_loops.movement import array
from mlirhlo.lowering.hlo_to_loops.places import Coordinate
from mlirhlo.lowering.hlo_to_loops.windows import WindowPlaces, fold_windows, inside

MAX_UNROLLED_PRODUCTS = 8
"""Of a dot whose element is written out without a loop."""


def callee(op: Instruction, name: str) -> ComputationOp:
    """A computation of the module by name."""
    module = op.parent_op()
    while module is not None and module.parent_op() is not None:
        module = module.parent_op()
    for candidate in cast(Any, module).body.block.ops:
        if isinstance(candidate, ComputationOp) and candidate.computation_name == name:
            return candidate
    raise error("HLO0901", f"no computation is called {name}")


@emits("reduce")
def _reduce(e: Elements, op: ReduceOp, place: Place) -> Value:
    return reduced(e, op, place)[0]


@emits_parts("reduce")
def reduced(e: Elements, op: ReduceOp, place: Place) -> Sequence[Value]:
    """All results of a reduce at a place."""
    count = len(op.inputs) // 2
    inputs, starts = op.inputs[:count], op.inputs[count:]
    sizes = array(inputs[0]).dimensions
    dims = sorted(op.dimensions)
    computation = callee(op, op.to_apply)

    def step(
        inner: Elements, indices: Sequence[Coordinate], values: Sequence[Value]
    ) -> Sequence[Value]:
        kept, folded = iter(place), dict(zip(dims, indices, strict=True))
        source = [folded[d] if d in folded else next(kept) for d in range(len(sizes))]
        elements = [inner.at(v, source) for v in inputs]
        return inner.inline(computation, [*values, *elements])

    initial = [e.at(v, ()) for v in starts]
    return fold(e, [sizes[d] for d in dims], initial, step)


def _accumulator(*types: PrimitiveType) -> PrimitiveType:
    """The type in which products are summed: f32 at least for floats, the result's for integers."""
    result = types[-1]
    if result.is_complex:
        return result
    if any(t.is_float for t in types):
        return F64 if F64 in types else F32
    return result


def product_sum(
    e: Elements, accumulated: Value, lhs: Value, rhs: Value, element: PrimitiveType
) -> Value:
    """`accumulated + lhs * rhs`."""
    b = e.b
    if element is PRED:
        return (b.ori(accumulated[0], b.andi(lhs[0], rhs[0])),)
    if element.is_complex:
        (re, im), (x, y), (u, v) = accumulated, lhs, rhs
        return (
            b.fma(x, u, b.subf(re, b.mulf(y, v))),
            b.fma(x, v, b.fma(y, u, im)),
        )
    if element.is_float:
        return (b.fma(lhs[0], rhs[0], accumulated[0]),)
    return (b.addi(accumulated[0], b.muli(lhs[0], rhs[0])),)


def zero_element(e: Elements, element: PrimitiveType) -> Value:
    """Zero of an element type."""
    zero = e.constant(0, register_type(element))
    return (zero, zero) if element.is_complex else (zero,)


def _refuse_scaled(op: DotOp | ConvolutionOp) -> None:
    if not op.is_dense:
        raise error("HLO0432", f"`{op.opcode.name}` with block scales or sparsity has no lowering")


@emits("dot")
def _dot(e: Elements, op: DotOp, place: Place) -> Value:
    _refuse_scaled(op)
    lhs, rhs = op.inputs
    left, right, result = array(lhs), array(rhs), array(op.output)
    element = _accumulator(left.element_type, right.element_type, result.element_type)
    batch = len(op.lhs_batch_dims)
    lhs_free = [
        d
        for d in range(left.rank)
        if d not in op.lhs_batch_dims and d not in op.lhs_contracting_dims
    ]
    rhs_free = [
        d
        for d in range(right.rank)
        if d not in op.rhs_batch_dims and d not in op.rhs_contracting_dims
    ]
    lhs_at = dict(zip(op.lhs_batch_dims, place[:batch], strict=True))
    lhs_at |= dict(zip(lhs_free, place[batch : batch + len(lhs_free)], strict=True))
    rhs_at = dict(zip(op.rhs_batch_dims, place[:batch], strict=True))
    rhs_at |= dict(zip(rhs_free, place[batch + len(lhs_free) :], strict=True))

    def step(
        inner: Elements, indices: Sequence[Coordinate], values: Sequence[Value]
    ) -> Sequence[Value]:
        here = lhs_at | dict(zip(op.lhs_contracting_dims, indices, strict=True))
        there = rhs_at | dict(zip(op.rhs_contracting_dims, indices, strict=True))
        x = convert(
            inner.b,
            inner.at(lhs, [here[d] for d in range(left.rank)]),
            left.element_type,
            element,
        )
        y = convert(
            inner.b,
            inner.at(rhs, [there[d] for d in range(right.rank)]),
            right.element_type,
            element,
        )
        return [product_sum(inner, values[0], x, y, element)]

    sizes = [left.dimensions[d] for d in op.lhs_contracting_dims]
    if prod(sizes) <= MAX_UNROLLED_PRODUCTS:
        inner = e.scope()
        total = zero_element(e, element)
        for indices in product(*map(range, sizes)):
            (total,) = step(inner, [Coordinate(i) for i in indices], [total])
    else:
        (total,) = fold(e, sizes, [zero_element(e, element)], step)
    return convert(e.b, total, element, result.element_type)


@emits("map")
def _map(e: Elements, op: MapOp, place: Place) -> Value:
    values = [e.at(v, place) for v in op.inputs]
    return e.inline(callee(op, op.to_apply), values)[0]


@emits("reduce-window")
def _reduce_window(e: Elements, op: ReduceWindowOp, place: Place) -> Value:
    return windowed(e, op, place)[0]


@emits_parts("reduce-window")
def windowed(e: Elements, op: ReduceWindowOp, place: Place) -> Sequence[Value]:
    """All results of a reduce-window at a place."""
    count = len(op.inputs) // 2
    inputs, starts = op.inputs[:count], op.inputs[count:]
    sizes = array(inputs[0]).dimensions
    window = op.window
    computation = callee(op, op.to_apply)

    windows = [
        WindowPlaces.of(e, *parts) for parts in zip(place, window.dimensions, sizes, strict=True)
    ]

    def steps(windows: Sequence[WindowPlaces]) -> Step:
        def step(
            inner: Elements, indices: Sequence[Coordinate], values: Sequence[Value]
        ) -> Sequence[Value]:
            found = inside(inner, [w.at(inner, k) for w, k in zip(windows, indices, strict=True)])
            elements = [found.elements.at(v, found.place) for v in inputs]
            return found.kept(inner, inner.inline(computation, [*values, *elements]), values)

        return step

    if 0 in sizes:
        return [e.at(v, ()) for v in starts]
    initial = [e.at(v, ()) for v in starts]
    return fold_windows(e, windows, (), initial, steps)


@emits("convolution")
def _convolution(e: Elements, op: ConvolutionOp, place: Place) -> Value:
    _refuse_scaled(op)
    lhs, rhs = op.inputs
    left, right, result = array(lhs), array(rhs), array(op.output)
    window, labels = op.window, op.dim_labels
    assert labels is not None
    dims = window.dimensions if window is not None else ()
    element = _accumulator(left.element_type, right.element_type, result.element_type)
    places = e.places
    features = right.dimensions[labels.kernel_input_feature_dimension]
    outputs = right.dimensions[labels.kernel_output_feature_dimension]
    out_feature = place[labels.output_feature_dimension]
    batch = place[labels.output_batch_dimension]
    first = Coordinate(0)
    if op.feature_group_count > 1:
        group, _ = places.divided(out_feature, outputs // op.feature_group_count)
        first = places.scaled(group, features)
    if op.batch_group_count > 1:
        group, _ = places.divided(out_feature, outputs // op.batch_group_count)
        size = left.dimensions[labels.input_batch_dimension] // op.batch_group_count
        batch = places.sum(places.scaled(group, size), batch)

    windows = [
        WindowPlaces.of(e, place[output], d, left.dimensions[input_])
        for output, d, input_ in zip(
            labels.output_spatial_dimensions, dims, labels.input_spatial_dimensions, strict=True
        )
    ]

    def steps(windows: Sequence[WindowPlaces]) -> Step:
        def step(
            inner: Elements, indices: Sequence[Coordinate], values: Sequence[Value]
        ) -> Sequence[Value]:
            *window_at, feature = indices
            source: list[Coordinate] = [Coordinate(0)] * left.rank
            weight: list[Coordinate] = [Coordinate(0)] * right.rank
            source[labels.input_batch_dimension] = batch
            source[labels.input_feature_dimension] = inner.places.sum(first, feature)
            weight[labels.kernel_input_feature_dimension] = feature
            weight[labels.kernel_output_feature_dimension] = out_feature
            # The window is turned on the input's side: the kernel is read in its own order.
            found = inside(inner, [w.at(inner, k) for w, k in zip(windows, window_at, strict=True)])
            for at, (k, c) in enumerate(zip(window_at, found.place, strict=True)):
                source[labels.input_spatial_dimensions[at]] = c
                weight[labels.kernel_spatial_dimensions[at]] = k
            x = convert(inner.b, found.elements.at(lhs, source), left.element_type, element)
            y = convert(inner.b, inner.at(rhs, weight), right.element_type, element)
            return found.kept(inner, [product_sum(inner, values[0], x, y, element)], values)

        return step

    if 0 in left.dimensions:
        return zero_element(e, result.element_type)
    (total,) = fold_windows(e, windows, (features,), [zero_element(e, element)], steps)
    return convert(e.b, total, element, result.element_type)
