"""Which dimensions of an instruction's operands and results belong together: its factors.

A factor is an extent of the iteration space of an instruction. A dimension is made of one factor, or of
several (a reshape's), major first. Cut a factor along some axes in every operand and result, and each
device can do its part by the same opcode on its tiles. One table serves propagation and partitioning.
Source: reference of the passes, "Partitioning"; Shardy's operation sharding rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mlirhlo.dialects.hlo import ops
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.spmd.grid import Axes, Grid

Dims = tuple[tuple[int, ...], ...]
"""For each dimension of an array its factors, major first."""


@dataclass(slots=True)
class Factors:
    """The factors of one instruction."""

    operands: list[Dims] = field(default_factory=list[Dims])
    """`()` for scalars and what is no array."""
    results: list[Dims] = field(default_factory=list[Dims])
    """For each leaf of the result."""
    sizes: list[int] = field(default_factory=list[int])
    """Of the factors; of shifted ones, in the result."""
    reduced: set[int] = field(default_factory=set[int])
    """Summed (or folded) over: results are partial along their axes."""
    whole: set[int] = field(default_factory=set[int])
    """Every device needs all of it."""
    shifted: set[int] = field(default_factory=set[int])
    """Elements stay near their places but not on them (slice, pad, windows): cut only by a strategy that
    fetches what neighbours have; sizes of operand and result differ."""

    def new(self, size: int, kind: set[int] | None = None) -> int:
        """Another factor."""
        self.sizes.append(size)
        if kind is not None:
            kind.add(len(self.sizes) - 1)
        return len(self.sizes) - 1

    @property
    def is_elementwise(self) -> bool:
        """Whether every array has the same factors in the same order."""
        every = [d for d in (*self.operands, *self.results) if d]
        return all(d == every[0] for d in every) and not (
            self.reduced or self.whole or self.shifted
        )


def leaves(shape: Shape) -> tuple[Shape, ...]:
    """The arrays and tokens of a shape, in order."""
    if isinstance(shape, TupleShape):
        return tuple(leaf for element in shape.elements for leaf in leaves(element))
    return (shape,)


def rank_of(shape: Shape) -> int:
    """Dimensions; 0 for what is no array."""
    return shape.rank if isinstance(shape, ArrayShape) else 0


def sizes_of(shape: Shape) -> tuple[int, ...]:
    """Sizes; `()` for what is no array."""
    return shape.dimensions if isinstance(shape, ArrayShape) else ()


# ---------------------------------------------------------------- axes of dimensions and of factors


def spread(axes: Axes, factors: Sequence[int], sizes: Sequence[int], grid: Grid) -> dict[int, Axes]:
    """Axes of a dimension handed on to its factors, as many as fall into whole parts."""
    if len(factors) == 1:
        return {factors[0]: axes}
    found: dict[int, Axes] = {}
    left = list(axes)
    for factor in factors:
        taken: list[int] = []
        while left and sizes[factor] % grid.product((*taken, left[0])) == 0:
            taken.append(left.pop(0))
        found[factor] = tuple(taken)
        if grid.product(taken) != sizes[factor]:
            break  # minor factors are not cut before all of this one is
    return found


def gathered(
    factors: Sequence[int], cuts: dict[int, Axes], sizes: Sequence[int], grid: Grid
) -> Axes:
    """Axes of a dimension from those of its factors."""
    if len(factors) == 1:
        return cuts.get(factors[0], ())
    found: list[int] = []
    for factor in factors:
        taken: list[int] = []
        for axis in cuts.get(factor, ()):
            if sizes[factor] % grid.product((*taken, axis)):
                break
            taken.append(axis)
        found += taken
        if grid.product(taken) != sizes[factor]:
            break
    return tuple(found)


# ---------------------------------------------------------------- the rules

Rule = Callable[[Any], Factors]
_RULES: dict[str, Rule] = {}


def _rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def define(rule: Rule) -> Rule:
        for opcode in opcodes:
            _RULES[opcode] = rule
        return rule

    return define


def factors_of(op: Instruction) -> Factors:
    """The factors of an instruction; one without a rule of its own needs everything whole."""
    rule = _RULES.get(op.opcode.name)
    arrays = (*op.input_shapes, *leaves(op.shape))
    dynamic = any(isinstance(s, ArrayShape) and s.is_dynamic for s in arrays)
    if not dynamic:
        if rule is not None:
            return rule(op)
        if op.opcode.elementwise:
            return _elementwise(op)
    return all_whole(op)


def variants_of(op: Instruction) -> list[Factors]:
    """All the ways in which an instruction's factors can be seen; the first is `factors_of`."""
    first = factors_of(op)
    if isinstance(op, ops.SliceOp) and first.shifted and not first.whole:
        second = _slice(op, of_one=True)
        if second.reduced:
            return [first, second]
    return [first]


def all_whole(op: Instruction) -> Factors:
    """Every device needs all of everything."""
    found = Factors()
    for shape in op.input_shapes:
        dims = [(found.new(n, found.whole),) for n in sizes_of(shape)]
        found.operands.append(tuple(dims))
    for shape in leaves(op.shape):
        found.results.append(tuple((found.new(n, found.whole),) for n in sizes_of(shape)))
    return found


@_rule("copy", "opt-barrier", "map", "all-reduce", "domain", "collective-broadcast",
       "collective-permute", "optimization-barrier", "rng-get-and-update-state")  # fmt: skip
def _elementwise(op: Instruction) -> Factors:
    found = Factors()
    results = leaves(op.shape)
    if len(results) != 1:  # an opt-barrier or all-reduce of several arrays: each by itself
        shapes = [leaf for s in op.input_shapes for leaf in leaves(s)]
        if len(shapes) != len(results) or len(op.inputs) != len(results):
            return all_whole(op)
        for shape in shapes:
            dims: Dims = tuple((found.new(n),) for n in sizes_of(shape))
            found.operands.append(dims)
            found.results.append(dims)
        return found
    dims = tuple((found.new(n),) for n in sizes_of(results[0]))
    found.results.append(dims)
    rank = len(dims)
    found.operands += [dims if rank_of(s) == rank else () for s in op.input_shapes]
    return found


@_rule("iota", "rng", "constant")
def _source(op: Instruction) -> Factors:
    found = Factors(operands=[()] * len(op.inputs))
    found.results.append(tuple((found.new(n),) for n in sizes_of(op.shape)))
    return found


@_rule("broadcast")
def _broadcast(op: ops.BroadcastOp) -> Factors:
    found = Factors()
    result = tuple((found.new(n),) for n in sizes_of(op.shape))
    found.results.append(result)
    found.operands.append(tuple(result[d] for d in op.dimensions))
    return found


@_rule("transpose")
def _transpose(op: ops.TransposeOp) -> Factors:
    found = Factors()
    operand = tuple((found.new(n),) for n in sizes_of(op.input_shapes[0]))
    found.operands.append(operand)
    found.results.append(tuple(operand[d] for d in op.dimensions))
    return found


@_rule("bitcast-convert")
def _bitcast_convert(op: Instruction) -> Factors:
    found = Factors()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    both = min(len(before), len(after))
    dims = tuple((found.new(n),) for n in before[:both])
    for sizes, into in ((before, found.operands), (after, found.results)):
        more = tuple((found.new(n, found.whole),) for n in sizes[both:])
        into.append((*dims, *more))
    return found


@_rule("reshape")
def _reshape(op: Instruction) -> Factors:
    """Dimensions are cut at all points where either side has a border that both can have."""
    found = Factors()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    if 0 in before:
        return all_whole(op)
    left: list[list[int]] = [[] for _ in before]
    right: list[list[int]] = [[] for _ in after]
    i, j = 0, 0
    while i < len(before) or j < len(after):
        if i < len(before) and before[i] == 1:
            left[i].append(found.new(1))
            i += 1
            continue
        if j < len(after) and after[j] == 1:
            right[j].append(found.new(1))
            j += 1
            continue
        # The smallest run of dimensions on both sides with as many elements.
        a, b, x, y = i + 1, j + 1, before[i], after[j]
        while x != y:
            if x < y:
                x *= before[a]
                a += 1
            else:
                y *= after[b]
                b += 1
        _match(found, before[i:a], after[j:b], left[i:a], right[j:b])
        i, j = a, b
    found.operands.append(tuple(map(tuple, left)))
    found.results.append(tuple(map(tuple, right)))
    return found


def _match(
    found: Factors,
    before: Sequence[int],
    after: Sequence[int],
    left: Sequence[list[int]],
    right: Sequence[list[int]],
) -> None:
    rest_a, rest_b = list(before), list(after)
    i, j = 0, 0
    while i < len(rest_a) and j < len(rest_b):
        if rest_a[i] == 1 or rest_b[j] == 1:
            i, j = i + (rest_a[i] == 1), j + (rest_b[j] == 1)
            continue
        common = math.gcd(rest_a[i], rest_b[j])
        if common not in (rest_a[i], rest_b[j]):
            # Major parts that both sides have; what is minor to them does not fit.
            if common > 1:
                factor = found.new(common)
                left[i].append(factor)
                right[j].append(factor)
            left[i].append(found.new(rest_a[i] // common, found.whole))
            right[j].append(found.new(rest_b[j] // common, found.whole))
            rest_a[i] = rest_b[j] = 1
            break
        factor = found.new(common)
        left[i].append(factor)
        right[j].append(factor)
        rest_a[i] //= common
        rest_b[j] //= common
    for rest, side in ((rest_a, left), (rest_b, right)):
        for dim, size in enumerate(rest):
            if size > 1:
                side[dim].append(found.new(size, found.whole))
    for side, sizes in ((left, before), (right, after)):
        for dim, size in enumerate(sizes):
            if not side[dim]:
                side[dim].append(found.new(size, found.whole))


@_rule("reduce")
def _reduce(op: ops.ReduceOp) -> Factors:
    found = Factors()
    count = len(op.inputs) // 2
    sizes = sizes_of(op.input_shapes[0])
    dims = tuple(
        (found.new(n, found.reduced if d in op.dimensions else None),) for d, n in enumerate(sizes)
    )
    found.operands += [dims] * count + [()] * count
    kept = tuple(f for d, f in enumerate(dims) if d not in op.dimensions)
    found.results += [kept] * count
    return found


@_rule("dot")
def _dot(op: ops.DotOp) -> Factors:
    if len(op.inputs) != 2:
        return all_whole(op)
    found = Factors()
    lhs, rhs = (sizes_of(s) for s in op.input_shapes)
    left: list[tuple[int, ...]] = [()] * len(lhs)
    right: list[tuple[int, ...]] = [()] * len(rhs)
    batch: list[tuple[int, ...]] = []
    for a, b in zip(op.lhs_batch_dims, op.rhs_batch_dims, strict=True):
        left[a] = right[b] = (found.new(lhs[a]),)
        batch.append(left[a])
    for a, b in zip(op.lhs_contracting_dims, op.rhs_contracting_dims, strict=True):
        left[a] = right[b] = (found.new(lhs[a], found.reduced),)
    free: list[tuple[int, ...]] = []
    for side, sizes in ((left, lhs), (right, rhs)):
        for d, n in enumerate(sizes):
            if not side[d]:
                side[d] = (found.new(n),)
                free.append(side[d])
    found.operands += [tuple(left), tuple(right)]
    found.results.append((*batch, *free))
    return found


@_rule("sort")
def _sort(op: ops.SortOp) -> Factors:
    found = Factors()
    sizes = sizes_of(op.input_shapes[0])
    dims = tuple(
        (found.new(n, found.whole if d in op.dimensions else None),) for d, n in enumerate(sizes)
    )
    found.operands += [dims] * len(op.inputs)
    found.results += [dims] * len(op.inputs)
    return found


def _leading(op: Instruction, minor: int) -> Factors:
    """All but the last `minor` dimensions of every array are a batch."""
    found = Factors()
    shapes = [s for s in (*op.input_shapes, *leaves(op.shape)) if rank_of(s) >= minor]
    ranks = {rank_of(s) - minor for s in shapes}
    if len(ranks) != 1:
        return all_whole(op)
    count = ranks.pop()
    batch = tuple((found.new(n),) for n in sizes_of(shapes[0])[:count])
    for group, into in ((op.input_shapes, found.operands), (leaves(op.shape), found.results)):
        for shape in group:
            if rank_of(shape) < minor:
                into.append(())
                continue
            last = tuple((found.new(n, found.whole),) for n in sizes_of(shape)[count:])
            into.append((*batch, *last))
    return found


@_rule("cholesky", "triangular-solve")
def _matrices(op: Instruction) -> Factors:
    return _leading(op, 2)


@_rule("fft")
def _fft(op: ops.FftOp) -> Factors:
    return _leading(op, len(op.fft_length))


@_rule("topk")
def _topk(op: Instruction) -> Factors:
    return _leading(op, 1)


@_rule("custom-call")
def _custom_call(op: ops.CustomCallOp) -> Factors:
    target = op.custom_call_target
    if target == "Sharding":
        return _elementwise(op)
    if target in ("TopK", "mhlo.topk"):
        return _leading(op, 1)
    if target in _MATRIX_CALLS:
        return _leading(op, 2)
    return all_whole(op)


_MATRIX_CALLS = {"Qr", "Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors"}


def same_or_shifted(found: Factors, before: int, after: int, is_same: bool) -> int:
    """A factor of a dimension that passes as it is, or else is shifted."""
    return found.new(after, None if is_same else found.shifted)


@_rule("slice")
def _slice(op: ops.SliceOp, of_one: bool = False) -> Factors:
    """`of_one`: a slice of one element is a sum, to which all devices but its owner give nothing."""
    found = Factors()
    bounds = op.slices.dimensions if op.slices is not None else ()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    operand: list[tuple[int, ...]] = []
    result: list[tuple[int, ...]] = []
    for n, m, b in zip(before, after, bounds, strict=True):
        if of_one and m == 1 < n:
            operand.append((found.new(n, found.reduced),))
            result.append((found.new(m, found.whole),))
        else:
            operand.append((same_or_shifted(found, n, m, n == m and b.start == 0),))
            result.append(operand[-1])
    found.operands.append(tuple(operand))
    found.results.append(tuple(result))
    return found


@_rule("pad")
def _pad(op: ops.PadOp) -> Factors:
    found = Factors()
    edges = op.padding.dimensions if op.padding is not None else ()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    operand: list[tuple[int, ...]] = []
    result: list[tuple[int, ...]] = []
    for n, m, e in zip(before, after, edges, strict=True):
        if e.interior and n > 1:
            operand.append((found.new(n, found.whole),))
            result.append((found.new(m, found.whole),))
            continue
        factor = same_or_shifted(found, n, m, not e.low and not e.high)
        operand.append((factor,))
        result.append((factor,))
    found.operands += [tuple(operand), ()]
    found.results.append(tuple(result))
    return found


@_rule("reverse")
def _reverse(op: ops.ReverseOp) -> Factors:
    found = Factors()
    dims = tuple(
        (same_or_shifted(found, n, n, d not in op.dimensions),)
        for d, n in enumerate(sizes_of(op.shape))
    )
    found.operands.append(dims)
    found.results.append(dims)
    return found


@_rule("concatenate")
def _concatenate(op: ops.ConcatenateOp) -> Factors:
    found = Factors()
    dims = tuple(
        (same_or_shifted(found, n, n, d not in op.dimensions),)
        for d, n in enumerate(sizes_of(op.shape))
    )
    found.operands += [dims] * len(op.inputs)
    found.results.append(dims)
    return found


@_rule("dynamic-slice", "dynamic-update-slice")
def _dynamic_slice(op: Instruction) -> Factors:
    """Dimensions that are taken whole pass; the others only as the operand's own, masked."""
    found = Factors()
    update = op.opcode.name == "dynamic-update-slice"
    whole = sizes_of(op.input_shapes[0])
    part = sizes_of(op.input_shapes[1]) if update else sizes_of(op.shape)
    big: list[tuple[int, ...]] = []
    small: list[tuple[int, ...]] = []
    for n, m in zip(whole, part, strict=True):
        if n == m:
            big.append((found.new(n),))
            small.append(big[-1])
        else:
            # A dynamic-slice of a cut dimension is a sum of the parts that devices have.
            big.append((found.new(n, None if update else found.reduced),))
            small.append((found.new(m, found.whole),))
    indices: list[Dims] = [()] * (len(op.inputs) - (2 if update else 1))
    if update:
        found.operands += [tuple(big), tuple(small), *indices]
        found.results.append(tuple(big))
    else:
        found.operands += [tuple(big), *indices]
        found.results.append(tuple(small))
    return found


def _index_dims(
    found: Factors, indices: Shape, vector_dim: int, batch: dict[int, tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Factors of the index array: those of batch dimensions are given or new, the vector is whole."""
    sizes = sizes_of(indices)
    return [
        (found.new(n, found.whole),) if d == vector_dim else batch.get(d) or (found.new(n),)
        for d, n in enumerate(sizes)
    ]


@_rule("gather")
def _gather(op: ops.GatherOp) -> Factors:
    found = Factors()
    sizes, result = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    operand: list[tuple[int, ...]] = [()] * len(sizes)
    batch: dict[int, tuple[int, ...]] = {}
    for d, b in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True):
        operand[d] = batch[b] = (found.new(sizes[d]),)
    indices = _index_dims(found, op.input_shapes[1], op.index_vector_dim, batch)
    window = [
        d
        for d in range(len(sizes))
        if d not in op.collapsed_slice_dims and d not in op.operand_batching_dims
    ]
    out: list[tuple[int, ...]] = [()] * len(result)
    for d, o in zip(window, op.offset_dims, strict=True):
        if op.slice_sizes[d] == sizes[d]:
            operand[d] = out[o] = (found.new(sizes[d]),)
        else:
            operand[d] = (found.new(sizes[d], found.whole),)
            out[o] = (found.new(result[o], found.whole),)
    for d in op.collapsed_slice_dims:
        operand[d] = (found.new(sizes[d], found.reduced),)
    rows = [f for d, f in enumerate(indices) if d != op.index_vector_dim]
    places = [o for o in range(len(result)) if o not in op.offset_dims]
    for o, factors in zip(places, rows, strict=True):
        out[o] = factors
    found.operands += [tuple(operand), tuple(indices)]
    found.results.append(tuple(out))
    return found


@_rule("scatter")
def _scatter(op: ops.ScatterOp) -> Factors:
    found = Factors()
    count = (len(op.inputs) - 1) // 2
    sizes = sizes_of(op.input_shapes[0])
    updates = sizes_of(op.input_shapes[count + 1])
    operand: list[tuple[int, ...]] = [()] * len(sizes)
    batch: dict[int, tuple[int, ...]] = {}
    for d, b in zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True):
        operand[d] = batch[b] = (found.new(sizes[d]),)
    indices = _index_dims(found, op.input_shapes[count], op.index_vector_dim, batch)
    for d, factors in enumerate(indices):
        if d != op.index_vector_dim and d not in batch:
            found.reduced |= set(factors)  # each device scatters some of the updates
    window = [
        d
        for d in range(len(sizes))
        if d not in op.inserted_window_dims and d not in op.input_batching_dims
    ]
    update: list[tuple[int, ...]] = [()] * len(updates)
    for d, u in zip(window, op.update_window_dims, strict=True):
        if updates[u] == sizes[d]:
            operand[d] = update[u] = (found.new(sizes[d]),)
        else:
            operand[d] = (found.new(sizes[d], found.whole),)
            update[u] = (found.new(updates[u], found.whole),)
    for d in op.inserted_window_dims:
        operand[d] = (found.new(sizes[d]),)  # updates for other devices' rows are out of bounds
    rows = [f for d, f in enumerate(indices) if d != op.index_vector_dim]
    places = [u for u in range(len(updates)) if u not in op.update_window_dims]
    for u, factors in zip(places, rows, strict=True):
        update[u] = factors
    found.operands += [*[tuple(operand)] * count, tuple(indices), *[tuple(update)] * count]
    found.results += [tuple(operand)] * count
    return found


@_rule("reduce-window")
def _reduce_window(op: ops.ReduceWindowOp) -> Factors:
    found = Factors()
    count = len(op.inputs) // 2
    window = op.window.dimensions if op.window is not None else ()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(leaves(op.shape)[0])
    operand: list[tuple[int, ...]] = []
    result: list[tuple[int, ...]] = []
    for n, m, w in zip(before, after, window, strict=True):
        trivial = w.size == w.stride == w.base_dilation == 1
        trivial = trivial and not w.padding_low and not w.padding_high
        if w.base_dilation > 1:
            operand.append((found.new(n, found.whole),))
            result.append((found.new(m, found.whole),))
        else:
            operand.append((same_or_shifted(found, n, m, trivial),))
            result.append(operand[-1])
    found.operands += [tuple(operand)] * count + [()] * count
    found.results += [tuple(result)] * count
    return found


@_rule("select-and-scatter")
def _select_and_scatter(op: ops.SelectAndScatterOp) -> Factors:
    found = Factors()
    window = op.window.dimensions if op.window is not None else ()
    before, source = sizes_of(op.input_shapes[0]), sizes_of(op.input_shapes[1])
    operand: list[tuple[int, ...]] = []
    small: list[tuple[int, ...]] = []
    for n, m, w in zip(before, source, window, strict=True):
        if w.size == w.stride == 1 and not w.padding_low and not w.padding_high:
            operand.append((found.new(n),))
            small.append(operand[-1])
        else:
            operand.append((found.new(n, found.whole),))
            small.append((found.new(m, found.whole),))
    found.operands += [tuple(operand), tuple(small), ()]
    found.results.append(tuple(operand))
    return found


@_rule("convolution")
def _convolution(op: ops.ConvolutionOp) -> Factors:
    """Batch and output features pass, input features are summed, spatial dimensions shift."""
    labels, window = op.dim_labels, op.window
    if labels is None or window is None or len(op.inputs) != 2:
        return all_whole(op)
    found = Factors()
    lhs, rhs, out = *(sizes_of(s) for s in op.input_shapes), sizes_of(op.shape)
    left: list[tuple[int, ...]] = [()] * len(lhs)
    right: list[tuple[int, ...]] = [()] * len(rhs)
    result: list[tuple[int, ...]] = [()] * len(out)
    groups, batches = op.feature_group_count, op.batch_group_count
    kernel_in = rhs[labels.kernel_input_feature_dimension]
    kernel_out = rhs[labels.kernel_output_feature_dimension]
    inputs = found.new(kernel_in, found.reduced)
    outputs = found.new(kernel_out // (groups * batches))
    batch = found.new(out[labels.output_batch_dimension])
    # The features fall into groups, major to the features of a group; so do the batches.
    group = (found.new(groups),) if groups > 1 else ()
    many = (found.new(batches),) if batches > 1 else ()
    left[labels.input_batch_dimension] = (*many, batch)
    left[labels.input_feature_dimension] = (*group, inputs)
    right[labels.kernel_input_feature_dimension] = (inputs,)
    right[labels.kernel_output_feature_dimension] = (*group, *many, outputs)
    result[labels.output_batch_dimension] = (batch,)
    result[labels.output_feature_dimension] = (*group, *many, outputs)
    spatial = zip(
        labels.input_spatial_dimensions,
        labels.kernel_spatial_dimensions,
        labels.output_spatial_dimensions,
        window.dimensions,
        strict=True,
    )
    for a, k, o, w in spatial:
        right[k] = (found.new(rhs[k], found.whole),)
        plain = w.size == w.stride == w.base_dilation == 1
        plain = plain and not w.padding_low and not w.padding_high
        if w.base_dilation > 1:
            left[a], result[o] = (
                (found.new(lhs[a], found.whole),),
                (found.new(out[o], found.whole),),
            )
        else:
            left[a] = result[o] = (same_or_shifted(found, lhs[a], out[o], plain),)
    found.operands += [tuple(left), tuple(right)]
    found.results.append(tuple(result))
    return found


@_rule("all-gather", "reduce-scatter", "all-to-all")
def _collective(op: Instruction) -> Factors:
    """Inside manual regions: the dimensions a collective is not about pass."""
    about = cast("tuple[int, ...]", op.properties and getattr(op, "dimensions", ()))
    if len(op.inputs) != 1 or len(leaves(op.shape)) != 1:
        return all_whole(op)
    found = Factors()
    operand: list[tuple[int, ...]] = []
    result: list[tuple[int, ...]] = []
    sizes = zip(sizes_of(op.input_shapes[0]), sizes_of(op.shape), strict=True)
    for d, (n, m) in enumerate(sizes):
        if d in about:
            operand.append((found.new(n, found.whole),))
            result.append((found.new(m, found.whole),))
        else:
            operand.append((found.new(n),))
            result.append(operand[-1])
    found.operands.append(tuple(operand))
    found.results.append(tuple(result))
    return found
