"""Whole registers of lanes that become a leading dimension, and the other way round.

A transposition of the first two of three dimensions beside a reshape of the last one moves registers as
they are: the vector is taken apart and put together instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.tpu.values import LANES
from mlirhlo.mosaic.attributes import integers_of, name_of
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
    from collections.abc import Mapping, Sequence

    from xdsl.ir import Attribute, SSAValue

_SWAP = (1, 0, 2)


def lanes_from_boxes(op: Operation) -> None:
    """`reshape (transpose x, [1, 0, 2])` to rows of all boxes => `concatenate x[0], x[1], …`.

    Before: `vector<4x8x128xf32>` to `vector<8x4x128xf32>` to `vector<8x512xf32>`. After: four
    `vector.extract` of `vector<8x128xf32>`, side by side.
    """
    turn = _only_source(op, "tpu.transpose")
    if turn is None or integers_of(turn, "permutation") != _SWAP:
        return
    source = turn.operands[0]
    count, rows, lanes = shape_in(source.type)
    if shape_in(op.results[0].type) != (rows, count * lanes) or lanes % LANES:
        return
    type_ = vector_type((rows, lanes), element_of(source.type))
    parts = [
        _made(op, "vector.extract", (source,), type_, {"static_position": f"array<i64: {at}>"})
        for at in range(count)
    ]
    replace(op, [_joined(op, parts, op.results[0].type, 1)])
    Rewriter.erase_op(turn)


def boxes_from_lanes(op: Operation) -> bool:
    """`transpose (reshape x), [1, 0, 2]` of rows in parts => `concatenate` of the parts; whether it was.

    Before: `vector<16x256xf32>` to `vector<16x2x128xf32>` to `vector<2x16x128xf32>`. After: two
    `vector.extract_strided_slice` of `vector<16x128xf32>`, one after another.
    """
    split = _only_source(op, "tpu.reshape")
    if split is None or integers_of(op, "permutation") != _SWAP:
        return False
    source = split.operands[0]
    rows, count, lanes = shape_in(split.results[0].type)
    if shape_in(source.type) != (rows, count * lanes) or lanes % LANES:
        return False
    element = element_of(source.type)
    slices = [
        _made(
            op,
            "vector.extract_strided_slice",
            (source,),
            vector_type((rows, lanes), element),
            {
                "offsets": f"[0, {at * lanes}]",
                "sizes": f"[{rows}, {lanes}]",
                "strides": "[1, 1]",
            },
        )
        for at in range(count)
    ]
    one = vector_type((1, rows, lanes), element)
    parts = [_made(op, "tpu.reshape", (part,), one) for part in slices]
    type_ = op.results[0].type
    whole = _joined(op, parts, type_, 0)
    replace(op, [_made(op, "tpu.reshape", (whole,), type_)])
    Rewriter.erase_op(split)
    return True


def _joined(op: Operation, parts: Sequence[SSAValue], type_: Attribute, dim: int) -> SSAValue:
    """The parts along a dimension; of one part, that part."""
    if len(parts) == 1:
        return parts[0]
    return _made(op, "tpu.concatenate", parts, type_, {"dimension": f"{dim} : i32"})


def _only_source(op: Operation, name: str) -> Operation | None:
    """The operation of that name that makes the operand of `op`, for it alone."""
    source = op.operands[0]
    owner = source.owner
    if not isinstance(owner, Operation) or name_of(owner) != name:
        return None
    return owner if len(list(source.uses)) == 1 else None


def _made(
    op: Operation,
    name: str,
    operands: Sequence[SSAValue],
    type_: Attribute,
    attributes: Mapping[str, str] | None = None,
) -> SSAValue:
    """The result of an operation before `op`."""
    stated = {key: attribute(text) for key, text in (attributes or {}).items()}
    return insert(build(name, operands, (type_,), stated, op), op).results[0]
