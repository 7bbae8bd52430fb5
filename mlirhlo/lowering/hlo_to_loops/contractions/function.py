"""The function around a kernel: its buffers, as bytes that are seen as what loops need."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import i8
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import FunctionBuilder, Index, memref_of
from mlirhlo.lowering.hlo_to_loops.contractions.operands import Memory
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output

_MOST_SHARES = 64
_SHARED_NS = 30_000
"""Work that is worth threads."""


@dataclass(frozen=True)
class KernelFunction:
    """A function of operands' buffers, then outputs', while it is built."""

    b: FunctionBuilder
    memory: Mapping[SSAValue, Memory]
    """Of the operands."""
    buffers: Mapping[SSAValue, SSAValue]
    """Memrefs of the operands in their shapes."""
    outputs: Sequence[Output]
    results: Sequence[Memory]
    """Of the outputs."""

    @staticmethod
    def of(name: str, operands: Sequence[SSAValue], outputs: Sequence[Output]) -> KernelFunction:
        """An empty one."""
        shapes = [cast(ArrayShape, shape_of(v.type)) for v in operands]
        shapes += [o.shape for o in outputs]
        types = [memref_of(i8, s.element_count * s.element_type.byte_size) for s in shapes]
        b = FunctionBuilder(name, types, argument_attributes=[{} for _ in types])
        memories = [Memory(b, x, s) for x, s in zip(b.arguments, shapes, strict=True)]
        memory = dict(zip(operands, memories, strict=False))
        buffers = {value: m.array for value, m in memory.items()}
        return KernelFunction(b, memory, buffers, outputs, memories[len(operands) :])


@contextmanager
def shares(b: FunctionBuilder, count: int, ns: float) -> Generator[tuple[Index, Index]]:
    """The first of `count` rounds and the one after the last: of all, or of a share that a thread takes."""
    parts = min(count, _MOST_SHARES)
    if parts == 1 or ns < _SHARED_NS:
        yield 0, count
        return
    with b.parallel(parts, work=ns) as part:
        low = b.div(b.mul(part, count), parts)
        yield low, b.div(b.mul(b.add(part, 1), count), parts)
