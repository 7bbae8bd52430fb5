"""gather of elements along the last dimension, the same ones of every line.

    start[j] = clamp(start_indices[j])
    for lines i, four at a time, for elements j, some at a time:
      result[i, j] = operand[i, start[j]]

An index is clamped once, and read once for four lines: elements have to be loaded one by one anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from mlirhlo.dialects.structured import GatherOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index, vector_of
from mlirhlo.lowering.hlo_to_loops.array_kernel import flat
from mlirhlo.lowering.hlo_to_loops.elemental import Elements
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame
from mlirhlo.lowering.hlo_to_loops.loop_kernels import array, element_loops
from mlirhlo.lowering.hlo_to_loops.maps import mapped
from mlirhlo.lowering.hlo_to_loops.movement import clamped_start
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_LINES = 4
"""Lines at a time."""
_LANES = 4
"""Elements of a line that are stored together."""
_INDEX_LANES = 16


def column_gather(outputs: Sequence[SSAValue], operands: Sequence[SSAValue]) -> GatherOp | None:
    """The only result, where it is such a gather of an array in memory."""
    op = outputs[0].owner
    is_gather = isinstance(op, GatherOp) and op.source in operands and op.indexed
    if len(outputs) > 1 or not isinstance(op, GatherOp) or not is_gather:
        return None
    *lines, size = sizes_of(op.source)
    last = len(lines)
    own = [AffineExpr.dimension(d) for d in range(last)]
    is_along_last = (
        op.indexed == (last,)
        and op.offset_map.results == (*own, AffineExpr.constant(0))
        and sizes_of(op.output)[:-1] == tuple(lines)
        and set(op.index_maps[0].used_dims()) <= {last}
    )
    is_worth_it = prod(lines) >= 2 * _LINES and op.space[-1] >= _LANES and size < 1 << 31
    is_complex = array(op.source).element_type.is_complex
    return op if is_along_last and is_worth_it and not is_complex else None


def column_gather_kernel(frame: Frame, op: GatherOp) -> FuncOp:
    """The kernel of such a gather."""
    b = frame.b
    *lines, size = sizes_of(op.source)
    count, rows = op.space[-1], prod(lines)
    workspace = b.workspace(4 * count)
    starts = b.emit(memref.ViewOp, [workspace, b.index(0)], MemRefType(i32, [count]))
    _clamp(frame, op, starts)
    source, target = flat(b, frame.buffers[op.source]), flat(b, frame.targets[0])
    lanes = {1: 1, 2: 8}.get(frame.byte_size(op.output), _LANES)
    with b.parallel(-(-rows // _LINES), work=frame.work) as number:
        # The last lines begin where as many are left: some are copied twice.
        first: Index = b.mul(number, _LINES)
        if rows % _LINES:
            first = b.minimum(first, rows - _LINES)
        numbers = [b.add(first, at) for at in range(_LINES)]

        def elements(at: Index, lanes: int) -> None:
            places = [
                b.cast_index(b.load(starts, [b.add(at, lane)]), INDEX) for lane in range(lanes)
            ]
            for row in numbers:
                line = b.mul(row, size)
                found = [b.load(source, [b.add(line, place)]) for place in places]
                where = [b.add(b.mul(row, count), at)]
                if lanes == 1:
                    b.store(found[0], target, where)
                    continue
                vector = b.constant(0, vector_of(found[0].type, lanes))
                for lane, value in enumerate(found):
                    vector = b.insert(value, vector, lane)
                b.vector_store(vector, target, where)

        whole = count - count % lanes
        with b.loop(0, whole, lanes) as at:
            elements(at, lanes)
        if count > whole:
            with b.loop(whole, count) as at:
                elements(at, 1)
    return b.finish()


def _clamp(frame: Frame, op: GatherOp, starts: SSAValue) -> None:
    """Start indices, none outside."""
    b, (indices,), (most,) = frame.b, op.indices, op.largest
    (map_,), lines = op.index_maps, [Coordinate(0)] * (len(op.space) - 1)

    def body(place: Sequence[Coordinate], lanes: int, mask: SSAValue | None) -> None:
        places = Places(b, lanes, mask)
        at = mapped(places, map_, [*lines, *place])
        (x,) = Elements(places, frame.buffers).at(indices, at)
        start = b.cast_index(clamped_start(b, x, array(indices).element_type, most), i32)
        if lanes:
            b.vector_store(start, starts, [place[0].base], mask)
        else:
            b.store(start, starts, [place[0].base])

    element_loops(b, [op.space[-1]], _INDEX_LANES, 0, body)
