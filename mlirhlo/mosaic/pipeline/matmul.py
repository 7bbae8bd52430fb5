"""Products become ones of two matrices: `tpu.matmul` of rows by contraction."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from mlirhlo.mosaic.attributes import attribute_of, case_of, integers_of, name_of
from mlirhlo.mosaic.interpreter.ops.tpu_matmul import maps_of
from mlirhlo.mosaic.interpreter.products import indexing_maps
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    element_of,
    insert,
    replace,
    vector_type,
)
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Attribute, SSAValue

_PLAIN = "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"
_FLIPPED = "#tpu.dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>"


def plain_product(op: Operation) -> None:
    """A product with batch dimensions, several contracted ones or a transposed left side.

    Before: `tpu.matmul %a, %b, %c : vector<2x8x128xf32>, vector<2x128x128xf32>, …`. After: a `tpu.matmul`
    of `vector<8x128xf32>` and `vector<128x128xf32>` for each index of the batch, and their
    `tpu.concatenate`. Products that add nothing (`vector.contract` of other kinds) stay.
    """
    is_matmul = name_of(op) == "tpu.matmul"
    if not is_matmul and case_of(attribute_of(op, "kind"), "add") != "add":
        return
    left, right, out = maps_of(op) if is_matmul else indexing_maps(op)
    batch = [loop for loop in out if loop in left and loop in right]
    contracted = [loop for loop in left if loop in right and loop not in out]
    rows = [loop for loop in left if loop in out and loop not in batch]
    columns = [loop for loop in right if loop in out and loop not in batch]
    if len({*left, *right}) != len(batch) + len(contracted) + len(rows) + len(columns):
        return
    is_flipped = bool(columns) and right == (*batch, *columns, *contracted)
    wanted = (columns, contracted) if is_flipped else (contracted, columns)
    is_plain = not batch and len(rows) == len(columns) == len(contracted) == 1
    if is_matmul and is_plain and left == (*rows, *contracted) and out == (*rows, *columns):
        return
    lhs, rhs, acc = op.operands
    sizes = dict(zip((*left, *right), (*shape_in(lhs.type), *shape_in(rhs.type)), strict=True))
    count = prod(sizes[loop] for loop in batch)
    if is_matmul and is_plain and out == (*rows, *columns):
        # Only the left side lies the other way.
        op.operands[0] = _ordered(op, lhs, left, (*rows, *contracted))
        op.properties["dimension_numbers"] = attribute(_FLIPPED if is_flipped else _PLAIN)
        return
    lhs = _shaped(op, lhs, left, (batch, rows, contracted), sizes)
    rhs = _shaped(op, rhs, right, (batch, *wanted), sizes)
    acc = _shaped(op, acc, out, (batch, rows, columns), sizes)
    numbers = attribute(_FLIPPED if is_flipped else _PLAIN)
    attributes: dict[str, Attribute] = {"dimension_numbers": numbers}
    precision = attribute_of(op, "precision")
    if is_matmul and precision is not None:
        attributes["precision"] = precision
    attributes["transpose_lhs_hint"] = attribute("false")
    found: list[SSAValue] = []
    for at in range(count):
        sides = [_matrix(op, value, at) for value in (lhs, rhs, acc)]
        made = _one(op, "tpu.matmul", sides, sides[2].type, attributes)
        whole = vector_type((1, *shape_in(made.type)), element_of(made.type))
        found.append(_one(op, "tpu.reshape", (made,), whole))
    whole = vector_type((count, *shape_in(found[0].type)[1:]), element_of(acc.type))
    result = found[0]
    if count > 1:
        dimension = {"dimension": attribute("0 : i32")}
        result = _one(op, "tpu.concatenate", found, whole, dimension)
    grouped = [*batch, *rows, *columns]
    result = _reshaped(op, result, [sizes[loop] for loop in grouped])
    replace(op, [_ordered(op, result, grouped, list(out))])


def turned_product(op: Operation) -> None:
    """`matmul(a, transpose b) => matmul(a, b)` that contracts the last dimension of both."""
    turn = op.operands[1].owner
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(turn, Operation) or name_of(turn) != "tpu.transpose":
        return
    if integers_of(turn, "permutation") != (1, 0) or numbers != attribute(_PLAIN):
        return
    op.operands[1] = turn.operands[0]
    op.properties["dimension_numbers"] = attribute(_FLIPPED)
    if turn.results[0].first_use is None:
        Rewriter.erase_op(turn)


def _one(
    op: Operation,
    name: str,
    operands: Sequence[SSAValue],
    type_: Attribute,
    attributes: dict[str, Attribute] | None = None,
) -> SSAValue:
    return insert(build(name, operands, (type_,), attributes, op), op).results[0]


def _reshaped(op: Operation, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    if tuple(shape) == shape_in(value.type):
        return value
    return _one(op, "tpu.reshape", (value,), vector_type(shape, element_of(value.type)))


def _ordered(op: Operation, value: SSAValue, have: Sequence[int], want: Sequence[int]) -> SSAValue:
    """The dimensions `have`, as `want`."""
    order = [have.index(loop) for loop in want]
    if order == sorted(order):
        return value
    shape = [shape_in(value.type)[at] for at in order]
    permutation = {"permutation": attribute(f"array<i64: {', '.join(map(str, order))}>")}
    type_ = vector_type(shape, element_of(value.type))
    return _one(op, "tpu.transpose", (value,), type_, permutation)


def _shaped(
    op: Operation,
    value: SSAValue,
    have: Sequence[int],
    groups: Sequence[Sequence[int]],
    sizes: dict[int, int],
) -> SSAValue:
    """Three dimensions: each group of loops together."""
    value = _ordered(op, value, have, [loop for group in groups for loop in group])
    return _reshaped(op, value, [prod(sizes[loop] for loop in group) for group in groups])


def _matrix(op: Operation, value: SSAValue, at: int) -> SSAValue:
    """One index of the leading dimension."""
    count, *shape = shape_in(value.type)
    if count == 1:
        return _reshaped(op, value, shape)
    position = {"static_position": attribute(f"array<i64: {at}>")}
    return _one(
        op, "vector.extract", (value,), vector_type(shape, element_of(value.type)), position
    )
