"""The arenas of a process, which need nothing of Python; `run_ir.py` runs modules in them."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i8, i32, i64

from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of

CLASSES, SLOTS = 64, 16
"""The pool keeps this many arenas of each power of two of bytes."""

PAGE_BITS, HUGE_BITS = 12, 21
"""Arenas from this power of two of bytes start at a page, from twice the other at a huge page, lesser ones
at a line. A page, since a load waits for the store before it where both lie equally far into their pages:
large arrays of NumPy begin 16 bytes into one, and what the system's allocator aligns to lines begins 64 into
one, just ahead of the loads."""

_KEPT_BYTES = 1 << 30
"""Of free arenas; `calls` raises it to a share of the machine's memory."""
_USE_HUGE_PAGES = 14
"""madvise: MADV_HUGEPAGE."""


def add_pool(m: LlvmBuilder) -> None:
    """Adds `arena_take` and `arena_give`, and NumPy's functions of memory on top of them."""
    m.variable("kept_limit", i64, _KEPT_BYTES, alignment=64, linkage="external")
    m.variable("kept", i64, alignment=64)
    m.variable("pool", array_of(CLASSES * SLOTS, POINTER), alignment=64)
    m.external("aligned_alloc", [i64, i64], POINTER)
    m.external("free", [POINTER])
    m.external("madvise", [POINTER, i64, i32], i32)
    m.external("malloc_usable_size", [POINTER], i64)
    _take(m)
    _give(m)
    _class_of(m)
    _memory_new(m)
    _memory_free(m)
    _memory_zeroed(m)
    _memory_resized(m)


def _slot(f: LlvmFunction, class_: Value, number: Value) -> Value:
    return f.address("pool").at(POINTER, class_ * SLOTS + number)


def _take(m: LlvmBuilder) -> None:
    """`arena_take(class)`: an arena of the pool, else a new one; null where there is no memory."""
    f = m.function("arena_take", [i64], POINTER, is_public=True)
    (class_,) = f.arguments
    size = f.value(1) << class_
    with f.count(SLOTS) as number:
        slot, empty = _slot(f, class_, number), f.label()
        f.jump_if(slot.load(POINTER, "monotonic").cmp("eq", 0), empty)
        taken = slot.update("xchg", f.null, "acquire")
        f.jump_if(taken.cmp("eq", 0), empty)
        f.address("kept").update("sub", size, "monotonic")
        f.ret(taken)
        f.place(empty)
    is_huge = class_.cmp("ugt", HUGE_BITS)
    small = class_.cmp("uge", PAGE_BITS).select(f.value(1 << PAGE_BITS), 64)
    arena = f.call("aligned_alloc", is_huge.select(f.value(1 << HUGE_BITS), small), size)
    with f.if_(is_huge & arena.cmp("ne", 0)):
        f.call("madvise", arena, size, _USE_HUGE_PAGES)
    f.ret(arena)


def _give(m: LlvmBuilder) -> None:
    """`arena_give(arena, class)`: puts an arena back, or frees it where the pool is full."""
    f = m.function("arena_give", [POINTER, i64], is_public=True)
    arena, class_ = f.arguments
    size, kept, drop = f.value(1) << class_, f.address("kept"), f.label()
    after = kept.update("add", size, "monotonic") + size
    f.jump_unless(after.cmp("ule", f.address("kept_limit").load(i64)), drop)
    with f.count(SLOTS) as number:
        slot, full = _slot(f, class_, number), f.label()
        f.jump_if(slot.load(POINTER, "monotonic").cmp("ne", 0), full)
        f.jump_unless(slot.replace(f.null, arena, "release", "monotonic"), full)
        f.ret()
        f.place(full)
    f.place(drop)
    kept.update("sub", size, "monotonic")
    f.call("free", arena)
    f.ret()


def _class_of(m: LlvmBuilder) -> None:
    """`class_of(size)`: the power of two that holds as many bytes, a line at least."""
    f = m.function("class_of", [i64], i64)
    (size,) = f.arguments
    last = f.intrinsic("llvm.umax", size, f.value(64), output=i64) - 1
    zeros = f.intrinsic("llvm.ctlz", last, f.value(0, i1), output=i64)
    f.ret(f.value(64) - zeros)


def _memory_new(m: LlvmBuilder) -> None:
    f = m.function("memory_new", [POINTER, i64], POINTER, is_public=True)
    _, size = f.arguments
    f.ret(f.call("arena_take", f.call("class_of", size)))


def _memory_free(m: LlvmBuilder) -> None:
    f = m.function("memory_free", [POINTER, POINTER, i64], is_public=True)
    _, memory, size = f.arguments
    with f.if_(memory.cmp("ne", 0)):
        f.call("arena_give", memory, f.call("class_of", size))
    f.ret()


def _memory_zeroed(m: LlvmBuilder) -> None:
    f = m.function("memory_zeroed", [POINTER, i64, i64], POINTER, is_public=True)
    context, count, each = f.arguments
    size = count * each
    memory = f.call("memory_new", context, size)
    with f.if_(memory.cmp("ne", 0)):
        f.intrinsic("llvm.memset", memory, f.value(0, i8), size, f.value(0, i1))
    f.ret(memory)


def _memory_resized(m: LlvmBuilder) -> None:
    """NumPy does not say the old size: as much is copied as both can hold."""
    f = m.function("memory_resized", [POINTER, POINTER, i64], POINTER, is_public=True)
    context, old, size = f.arguments
    memory = f.call("memory_new", context, size)
    with f.if_(memory.cmp("ne", 0) & old.cmp("ne", 0)):
        shared = f.intrinsic("llvm.umin", f.call("malloc_usable_size", old), size, output=i64)
        f.intrinsic("llvm.memcpy", memory, old, shared, f.value(0, i1))
        f.call("free", old)
    f.ret(memory)
