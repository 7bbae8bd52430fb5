"""Factors of instructions that move elements or pick them: slices, pads, windows, gathers, collectives.

`factors_of` and `variants_of` look up the rules of all files.
"""

from __future__ import annotations

from typing import cast

from mlirhlo.dialects.hlo import ops
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.rewrites.spmd.counted_indices import counted
from mlirhlo.rewrites.spmd.factor_rules import RULES, all_whole, elementwise, rule
from mlirhlo.rewrites.spmd.factors import Dims, Factors, leaves, sizes_of


def factors_of(op: Instruction) -> Factors:
    """The factors of an instruction; one without a rule of its own needs everything whole."""
    found = RULES.get(op.opcode.name)
    arrays = (*op.input_shapes, *leaves(op.shape))
    dynamic = any(isinstance(s, ArrayShape) and s.is_dynamic for s in arrays)
    if not dynamic:
        if found is not None:
            return found(op)
        if op.opcode.elementwise:
            return elementwise(op)
    return all_whole(op)


def variants_of(op: Instruction) -> list[Factors]:
    """All the ways in which an instruction's factors can be seen; the first is `factors_of`."""
    first = factors_of(op)
    if isinstance(op, ops.SliceOp) and first.shifted and not first.whole:
        second = _sliced(op, of_one=True)
        if second.reduced:
            return [first, second]
    return [first]


def same_or_shifted(found: Factors, before: int, after: int, is_same: bool) -> int:
    """A factor of a dimension that passes as it is, or else is shifted."""
    return found.new(after, None if is_same else found.shifted)


@rule("slice")
def _slice(op: ops.SliceOp) -> Factors:
    return _sliced(op, of_one=False)


def _sliced(op: ops.SliceOp, *, of_one: bool) -> Factors:
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


@rule("pad")
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


@rule("reverse")
def _reverse(op: ops.ReverseOp) -> Factors:
    found = Factors()
    dims = tuple(
        (same_or_shifted(found, n, n, d not in op.dimensions),)
        for d, n in enumerate(sizes_of(op.shape))
    )
    found.operands.append(dims)
    found.results.append(dims)
    return found


@rule("concatenate")
def _concatenate(op: ops.ConcatenateOp) -> Factors:
    found = Factors()
    dims = tuple(
        (same_or_shifted(found, n, n, d not in op.dimensions),)
        for d, n in enumerate(sizes_of(op.shape))
    )
    found.operands += [dims] * len(op.inputs)
    found.results.append(dims)
    return found


@rule("dynamic-slice", "dynamic-update-slice")
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


@rule("gather")
def _gather(op: ops.GatherOp) -> Factors:
    found = Factors()
    sizes, result = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    operand: list[tuple[int, ...]] = [()] * len(sizes)
    batch: dict[int, tuple[int, ...]] = {}
    pairs = [*zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True)]
    pairs += [(part.operand_dim, part.indices_dim) for part in counted(op)]
    for d, b in pairs:
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
        kind = found.reduced if d in op.start_index_map else found.whole  # then row 0 is taken
        operand[d] = operand[d] or (found.new(sizes[d], kind),)
    rows = [f for d, f in enumerate(indices) if d != op.index_vector_dim]
    places = [o for o in range(len(result)) if o not in op.offset_dims]
    for o, factors in zip(places, rows, strict=True):
        out[o] = factors
    found.operands += [tuple(operand), tuple(indices)]
    found.results.append(tuple(out))
    return found


@rule("scatter")
def _scatter(op: ops.ScatterOp) -> Factors:
    found = Factors()
    count = (len(op.inputs) - 1) // 2
    sizes = sizes_of(op.input_shapes[0])
    updates = sizes_of(op.input_shapes[count + 1])
    operand: list[tuple[int, ...]] = [()] * len(sizes)
    batch: dict[int, tuple[int, ...]] = {}
    pairs = [*zip(op.input_batching_dims, op.scatter_indices_batching_dims, strict=True)]
    pairs += [(part.operand_dim, part.indices_dim) for part in counted(op)]
    for d, b in pairs:
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
        # Updates for other devices' rows are out of bounds; without an index all go to row 0.
        kind = None if d in op.scatter_dims_to_operand_dims else found.whole
        operand[d] = operand[d] or (found.new(sizes[d], kind),)
    rows = [f for d, f in enumerate(indices) if d != op.index_vector_dim]
    places = [u for u in range(len(updates)) if u not in op.update_window_dims]
    for u, factors in zip(places, rows, strict=True):
        update[u] = factors
    found.operands += [*[tuple(operand)] * count, tuple(indices), *[tuple(update)] * count]
    found.results += [tuple(operand)] * count
    return found


@rule("reduce-window")
def _reduce_window(op: ops.ReduceWindowOp) -> Factors:
    found = Factors()
    count = len(op.inputs) // 2
    window = op.window.dimensions
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


@rule("select-and-scatter")
def _select_and_scatter(op: ops.SelectAndScatterOp) -> Factors:
    found = Factors()
    window = op.window.dimensions
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


@rule("convolution")
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


@rule("all-gather", "reduce-scatter", "all-to-all")
def _collective(op: Instruction) -> Factors:
    """Inside manual regions: the dimensions a collective is not about pass."""
    about = cast("tuple[int, ...]", op.properties and getattr(op, "dimensions", ()))
    if len(op.inputs) != 1 or isinstance(op.shape, TupleShape):
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
