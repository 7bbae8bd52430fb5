"""Rules of dot. All are about dots before layouts are assigned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.ops import ConvertOp, DotOp, Instruction, MultiplyOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element, sized, typed
from mlirhlo.rewrites.algsimp.movement.broadcast import LI
from mlirhlo.rewrites.rules import Rewriter, rule

_LHS_RHS = (
    ("lhs_batch_dims", "rhs_batch_dims"),
    ("lhs_contracting_dims", "rhs_contracting_dims"),
)


def is_plain(op: DotOp) -> bool:
    """Whether it has two operands, neither sparse nor scaled, and no algorithm is asked for."""
    known = ("algorithm", "sparsity", "block_scaling_config")
    return len(op.inputs) == 2 and not any(key in op.properties for key in known)


def batch_of(op: DotOp, side: int) -> tuple[int, ...]:
    """Batch dimensions of operand 0 or 1."""
    return op.rhs_batch_dims if side else op.lhs_batch_dims


def contracted_of(op: DotOp, side: int) -> tuple[int, ...]:
    """Contracting dimensions of operand 0 or 1."""
    return op.rhs_contracting_dims if side else op.lhs_contracting_dims


def free_of(op: DotOp, side: int) -> tuple[int, ...]:
    """Dimensions of operand 0 or 1 that only the result has, in its order."""
    taken = (*batch_of(op, side), *contracted_of(op, side))
    return tuple(d for d in range(array(op.inputs[side]).rank) if d not in taken)


def flops_of(op: DotOp) -> int:
    """Multiplications."""
    sizes = array(op.inputs[0]).dimensions
    return array(op).element_count * math.prod(sizes[d] for d in op.lhs_contracting_dims)


def numbers(
    op: DotOp,
    batch: tuple[Sequence[int], Sequence[int]] | None,
    contracted: tuple[Sequence[int], Sequence[int]],
) -> dict[str, Attribute]:
    """Properties of a dot with the precision of `op` and these dimensions of its two sides."""
    found: dict[str, Attribute] = {}
    for (lhs, rhs), dims in zip(_LHS_RHS, (batch or ((), ()), contracted), strict=True):
        if dims[0]:
            found[lhs], found[rhs] = integers(tuple(dims[0])), integers(tuple(dims[1]))
    if (precision := op.properties.get("operand_precision")) is not None:
        found["operand_precision"] = precision
    return found


def swapped(op: DotOp, order: Sequence[int]) -> dict[str, Attribute] | None:
    """Properties of dot(b, a) that equals the transpose of dot(a, b) by `order`, if there is one."""
    if not is_plain(op):
        return None
    batch = len(op.lhs_batch_dims)
    left = array(op.inputs[0]).rank - batch - len(op.lhs_contracting_dims)
    rank = array(op).rank
    wanted = (*range(batch), *range(batch + left, rank), *range(batch, batch + left))
    if tuple(order) != wanted or not 0 < left < rank - batch:
        return None
    return swapped_properties(op)


def swapped_properties(op: DotOp) -> dict[str, Attribute]:
    """Properties of the dot of the operands of `op` in the other order."""
    found: dict[str, Attribute] = {}
    for lhs, rhs in _LHS_RHS:
        for mine, other in ((lhs, rhs), (rhs, lhs)):
            if mine in op.properties:
                found[other] = op.properties[mine]
    if (precision := op.properties.get("operand_precision")) is not None:
        found["operand_precision"] = swapped_precision(precision)
    return found


def swapped_precision(precision: Attribute) -> Attribute:
    """Precisions of two operands, for the operands in the other order."""
    return ArrayAttr(cast("ArrayAttr[Attribute]", precision).data[::-1])


@rule(DotOp, needs=LI)
def dot_of_empty(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => bc(0), an operand or the result empty"""
    shapes = [array(op), *map(array, op.inputs)]
    if all(s.element_count for s in shapes) or any(s.is_dynamic for s in shapes):
        return
    b = Builder(op, rewriter)
    b.splat(array(op), 0)
    b.done()


@rule(DotOp, contract="rounding", needs=("enable_dot_to_multiply_rewrite", *LI))
def dot_without_contraction(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => bc(a) * bc(b), no dimension contracted"""
    if op.lhs_contracting_dims or not is_plain(op) or array(op).is_dynamic:
        return
    batch = len(op.lhs_batch_dims)
    left = array(op.inputs[0]).rank - batch
    right = array(op.inputs[1]).rank - batch
    sides = (
        (op.inputs[0], op.lhs_batch_dims, range(batch, batch + left)),
        (op.inputs[1], op.rhs_batch_dims, range(batch + left, batch + left + right)),
    )
    b = Builder(op, rewriter)
    factors: list[Instruction] = []
    for value, batch_dims, own in sides:
        free = iter(own)
        dims = [
            batch_dims.index(d) if d in batch_dims else next(free) for d in range(array(value).rank)
        ]
        side: Instruction | None = None
        if element(value) is not element(op):
            side = b(ConvertOp, value, shape=typed(array(value), element(op)))
        order = sorted(range(len(dims)), key=dims.__getitem__)
        source = value if side is None else side.output
        if order != list(range(len(order))):
            source = b.transpose(source, order).output
        factors.append(b.broadcast(source, sorted(dims), sized(array(op), array(op).dimensions)))
    b.like(MultiplyOp, *factors)
    b.done()


@rule(DotOp, contract="rounding", needs=LI)
def dot_with_dimensions_of_one(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => reshape(dot(reshape(a), reshape(b))), dimensions of size 1 gone"""
    if not is_plain(op) or any(array(v).is_dynamic for v in (op.output, *op.inputs)):
        return
    if not any(1 in array(v).dimensions for v in op.inputs):
        return
    b = Builder(op, rewriter)
    operands: list[Instruction | None] = []
    properties: dict[str, Attribute] = {
        k: v for k, v in op.properties.items() if k == "operand_precision"
    }
    for side, value in zip(("lhs", "rhs"), op.inputs, strict=True):
        shape = array(value)
        keep = [d for d, size in enumerate(shape.dimensions) if size != 1]
        for part in ("batch", "contracting"):
            key = f"{side}_{part}_dims"
            dims = tuple(keep.index(d) for d in getattr(op, key) if d in keep)
            if dims:
                properties[key] = integers(dims)
        small = sized(shape, [shape.dimensions[d] for d in keep])
        operands.append(b.reshape(value, small) if len(keep) < shape.rank else None)
    parts = [
        v if made is None else made.output for v, made in zip(op.inputs, operands, strict=True)
    ]
    result = sized(array(op), [size for size in array(op).dimensions if size != 1])
    product = b(DotOp, *parts, shape=result, **properties)
    if result.dimensions != array(op).dimensions:
        b.reshape(product, op.shape)
    b.done()


RULES = (dot_of_empty, dot_with_dimensions_of_one, dot_without_contraction)
