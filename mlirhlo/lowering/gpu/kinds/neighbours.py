"""Neighbouring elements read at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirhlo.dialects.structured import MapOp, identity_map, sizes_of
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.elements import array
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import to_register


def read_neighbours(b: LaunchBuilder, value: SSAValue, places: Sequence[Sequence[Index]]) -> None:
    """Reads what neighbours of a value are computed from at the same indices as vectors of aligned memory.

    The linear index of the first one is known, and a multiple of their number. LLVM would not make vectors of loads
    whose order of addresses it does not see, or that it moves into the branches that use them.
    """
    stack, count = [value], len(places)
    while stack:
        value = stack.pop()
        buffer, owner, shape = b.e.buffers.get(value), value.owner, array(value)
        linear = b.e.linear_of(places[0], shape.dimensions)
        if buffer is None:
            if isinstance(owner, MapOp):
                same = identity_map(len(sizes_of(value)))
                maps = zip(owner.inputs, owner.index_maps, strict=True)
                stack += [v for v, m in maps if m == same and sizes_of(v) == sizes_of(value)]
        elif count > 1 and linear is not None and not shape.element_type.is_complex:
            alignment = count * shape.element_type.byte_size
            vector = b.vector_load(b.flat(buffer), [linear], count, alignment=alignment)
            for lane, at in enumerate(places):
                part = to_register(b, b.extract(vector, lane), shape.element_type)
                b.e.know_read(value, at, (part,))
