"""The clock that marked code reads before and after each kernel.

`mlirhlo_mark(number, begins)` writes a record of two words: `2 * number + begins`, and nanoseconds. It stays in machine
code, so that the kernels beside it find the caches as they left them. When all records are written, it calls what
`full` points to, and starts at the first record again.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32, i64

from mlirhlo.lowering.cpu.emit import MARK
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder
from mlirhlo.lowering.llvm_text import print_llvm

_SECOND = 1_000_000_000


def assembly(capacity: int) -> str:
    """LLVM assembly of the mark, with variables `records` and `full` (pointers), `count` (records written) and
    `clock` (the number that the system has for one)."""
    m = LlvmBuilder()
    for name in ("records", "full"):
        m.variable(name, POINTER, linkage="external")
    m.variable("count", i64, linkage="external")
    m.variable("clock", i32, linkage="external")
    m.external("clock_gettime", [i32, POINTER], i32)
    f = m.function(MARK, [i64, i64], is_public=True)
    number, begins = f.arguments
    time = f.stack(i64, 2)
    f.call("clock_gettime", f.address("clock").load(i32), time)
    count = f.address("count").load(i64)
    record = f.address("records").load(POINTER).at(i64, count * 2)
    record.store(number * 2 + begins)
    record.at(i64, 1).store(time.item(i64, 0) * _SECOND + time.item(i64, 1))
    f.address("count").store(count + 1)
    with f.if_((count + 1).cmp("eq", capacity)):
        f.call_pointer(f.address("full").load(POINTER))
        f.address("count").store(f.value(0))
    f.ret()
    return print_llvm(m.module())
