"""Factors of instructions that keep elements, join them, or treat batches alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlirhlo.dialects.hlo import ops
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.rewrites.spmd.factors import Dims, Factors, leaves, rank_of, sizes_of

Rule = Callable[[Any], Factors]
RULES: dict[str, Rule] = {}
"""By opcode."""


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Decorator: the function is the rule of `opcodes`."""

    def define(made: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = made
        return made

    return define


def all_whole(op: Instruction) -> Factors:
    """Every device needs all of everything."""
    found = Factors()
    for shape in op.input_shapes:
        dims = [(found.new(n, found.whole),) for n in sizes_of(shape)]
        found.operands.append(tuple(dims))
    for shape in leaves(op.shape):
        found.results.append(tuple((found.new(n, found.whole),) for n in sizes_of(shape)))
    return found


@rule("copy", "opt-barrier", "map", "all-reduce", "domain", "collective-broadcast",
       "collective-permute", "rng-get-and-update-state")  # fmt: skip
def elementwise(op: Instruction) -> Factors:
    """Every array has the same factors; scalars have none."""
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


@rule("iota", "rng", "constant")
def _source(op: Instruction) -> Factors:
    found = Factors(operands=[()] * len(op.inputs))
    found.results.append(tuple((found.new(n),) for n in sizes_of(op.shape)))
    return found


@rule("broadcast")
def _broadcast(op: ops.BroadcastOp) -> Factors:
    found = Factors()
    result = tuple((found.new(n),) for n in sizes_of(op.shape))
    found.results.append(result)
    found.operands.append(tuple(result[d] for d in op.dimensions))
    return found


@rule("transpose")
def _transpose(op: ops.TransposeOp) -> Factors:
    found = Factors()
    operand = tuple((found.new(n),) for n in sizes_of(op.input_shapes[0]))
    found.operands.append(operand)
    found.results.append(tuple(operand[d] for d in op.dimensions))
    return found


@rule("bitcast-convert")
def _bitcast_convert(op: Instruction) -> Factors:
    found = Factors()
    before, after = sizes_of(op.input_shapes[0]), sizes_of(op.shape)
    both = min(len(before), len(after))
    dims = tuple((found.new(n),) for n in before[:both])
    for sizes, into in ((before, found.operands), (after, found.results)):
        more = tuple((found.new(n, found.whole),) for n in sizes[both:])
        into.append((*dims, *more))
    return found


@rule("reshape")
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
            left[i].append(found.new(1, found.whole))  # of its tiles only the first is an element
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


@rule("reduce")
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


@rule("dot")
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


@rule("sort")
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


@rule("cholesky", "triangular-solve")
def _matrices(op: Instruction) -> Factors:
    return _leading(op, 2)


@rule("fft")
def _fft(op: ops.FftOp) -> Factors:
    return _leading(op, len(op.fft_length))


@rule("topk")
def _topk(op: Instruction) -> Factors:
    return _leading(op, 1)


@rule("custom-call")
def _custom_call(op: ops.CustomCallOp) -> Factors:
    target = op.custom_call_target
    if target in ("Sharding", "ShardBarrierFrom", "ShardBarrierTo"):
        return elementwise(op)
    if target in ("TopK", "mhlo.topk"):
        return _leading(op, 1)
    if target in _MATRIX_CALLS:
        return _leading(op, 2)
    return all_whole(op)


_MATRIX_CALLS = {"Qr", "Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors"}
