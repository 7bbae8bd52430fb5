"""Copies of neighbours between global and shared memory by all threads of a block."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.launches import LaunchBuilder
from mlirhlo.lowering.hlo_to_loops.elements import Value

_BYTES = 16
"""That a thread moves at once."""
_UNROLLED = 8


def copy_block(
    b: LaunchBuilder,
    memory: SSAValue,
    buffer: SSAValue,
    size: int,
    threads: int,
    *,
    first: Index = 0,
    total: int | None = None,
    to_shared: bool = True,
) -> None:
    """`size` elements from the one of index `first` on; `total`: elements of the memory, where it may end before.

    All of shared memory is written, zeros behind the end: LLVM reads vectors of which some elements are needed.
    """
    total = size if total is None else total
    element = cast("MemRefType[Any]", memory.type).element_type
    vector = max(1, _BYTES // element.size)
    while vector > 1 and (size % vector or total % vector or size < vector * threads):
        vector //= 2
    span = threads * vector
    thread = b.thread_id()

    def zeros() -> list[Value]:
        return [(b.constant(0, element),)] * vector

    def move(number: Index) -> None:
        at = b.add(b.mul(number, span), b.mul(thread, vector))
        tests: list[SSAValue] = []
        if size % span:
            tests.append(b.cmpi("ult", b.index(at), b.index(size)))
        start = b.add(first, at)
        is_there = (
            b.cmpi("ult", b.index(start), b.index(total)) if total % size and to_shared else None
        )
        if total % size and is_there is None:
            tests.append(b.cmpi("ult", b.index(start), b.index(total)))
        test = tests[0] if len(tests) == 1 else b.andi(*tests) if tests else None
        with nullcontext() if test is None else b.if_(test), b.e.scope():
            outer = [b.add(start, lane) for lane in range(vector)]
            inner = [b.add(at, lane) for lane in range(vector)]
            source, target = (memory, buffer) if to_shared else (buffer, memory)
            indices, places = (outer, inner) if to_shared else (inner, outer)

            def loaded() -> list[Value]:
                return [(b.load(source, [index]),) for index in indices]

            values = loaded() if is_there is None else b.e.choose(is_there, loaded, zeros)
            for (value,), index in zip(values, places, strict=True):
                b.store(value, target, [index])

    rounds = -(-size // span)
    if rounds <= _UNROLLED:
        for number in range(rounds):
            move(number)
        return
    with b.loop(0, rounds, nonempty=True) as number, b.e.scope():
        move(number)
