"""Functions of the llvm dialect built by hand: values, memory and jumps, run as machine code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import i1, i32, i64

from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.runtime.jit import Library, compile_object

pytest.importorskip("llvmlite")

MASK = (1 << 64) - 1


def run(body: Callable[[LlvmFunction, Value, Value], Value], x: int, y: int) -> int:
    """What a function of two words returns, as an unsigned number."""
    m = LlvmBuilder()
    f = m.function("f", [i64, i64], i64, is_public=True)
    result = body(f, *f.arguments)
    if f.block is not None:
        f.ret(result)
    module = m.module()
    module.verify()
    library = Library([compile_object(print_llvm(module))], ["f"])
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    return int(function(library.address("f"))(x & MASK, y & MASK))


def signed(x: int) -> int:
    return x - (1 << 64) if x >> 63 else x


def in_32(x: int) -> int:
    return (x & 0xFFFFFFFF) - (1 << 32) if x >> 31 & 1 else x & 0xFFFFFFFF


OPERATORS: dict[
    str, tuple[Callable[[LlvmFunction, Value, Value], Value], Callable[[int, int], int]]
] = {
    "+": (lambda _, x, y: x + y, lambda x, y: x + y),
    "-": (lambda _, x, y: x - y, lambda x, y: x - y),
    "*": (lambda _, x, y: x * y, lambda x, y: x * y),
    "//": (lambda _, x, y: x // y, lambda x, y: x // y),
    "<<": (lambda _, x, y: x << (y & 63), lambda x, y: x << (y & 63)),
    ">>": (lambda _, x, y: x >> (y & 63), lambda x, y: x >> (y & 63)),
    "&": (lambda _, x, y: x & y, lambda x, y: x & y),
    "|": (lambda _, x, y: x | y, lambda x, y: x | y),
    "^": (lambda _, x, y: x ^ y, lambda x, y: x ^ y),
    "number": (lambda _, x, y: x * 3 + y - 1, lambda x, y: x * 3 + y - 1),
    "slt": (lambda _, x, y: x.cmp("slt", y).to(i64), lambda x, y: signed(x) < signed(y)),
    "ult": (lambda _, x, y: x.cmp("ult", y).to(i64), lambda x, y: x < y),
    "select": (lambda _, x, y: x.cmp("ult", y).select(x, 7), lambda x, y: x if x < y else 7),
    "narrow": (lambda _, x, y: x.to(i32).to(i64) ^ y, lambda x, y: x & 0xFFFFFFFF ^ y),
    "signed": (lambda _, x, y: x.to(i32).to(i64, signed=True) ^ y, lambda x, y: in_32(x) ^ y),
    "pointer": (lambda _, x, y: x.to(POINTER).at(i32, y).to(i64), lambda x, y: x + 4 * y),
    "bits": (lambda _, x, y: (x.to(i1) ^ 1).to(i64) + y, lambda x, y: (x & 1 ^ 1) + y),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_values_have_operators(name: str) -> None:
    body, expected = OPERATORS[name]
    for x, y in ((7, 3), (3, 7), (MASK, 2), (1 << 63, 65), (0x80000000, 1)):
        assert run(body, x, y) == int(expected(x, y)) & MASK, (x, y)


def test_loops_carry_values_and_leave_with_results() -> None:
    def collatz(f: LlvmFunction, x: Value, most: Value) -> Value:
        with f.loop(x, 0) as loop:
            number, steps = loop.values
            loop.leave_if(number.cmp("eq", 1), steps)
            loop.leave_unless(steps.cmp("ult", most), -1)
            half = number >> 1
            following = f.either((number & 1).cmp("eq", 0), lambda: half, lambda: number * 3 + 1)
            loop.next(following, steps + 1)
        return loop.results[0]

    assert run(collatz, 27, 1000) == 111
    assert run(collatz, 27, 10) == MASK


def test_branches_return_jump_and_join() -> None:
    def body(f: LlvmFunction, x: Value, y: Value) -> Value:
        found, total = f.label(i64), f.stack(i64)
        total.store(0)
        with f.count(x) as k:
            total.store(total.load(i64) + k)
            f.jump_if(k.cmp("eq", y), found, k * 1000)
        with f.unless(x.cmp("ne", 0)):
            f.ret(5)
        with f.if_(x.cmp("eq", 1)):
            total.store(77)
        (value,) = f.place(found, total.load(i64))
        return value

    assert run(body, 0, 9) == 5
    assert run(body, 1, 9) == 77
    assert run(body, 4, 9) == 6
    assert run(body, 4, 2) == 2000


def test_memory_is_updated_atomically() -> None:
    def body(f: LlvmFunction, x: Value, y: Value) -> Value:
        memory = f.stack(i64, 2)
        word = memory.at(i64, 1)
        word.store(x, "release")
        before = word.update("add", y, "seq_cst")
        replaced = word.replace(x + y, f.value(40), "acq_rel", "acquire")
        kept = word.replace(x, f.value(50), "acq_rel", "acquire")
        return before + word.load(i64, "acquire") + replaced.to(i64) * 2 + kept.to(i64) * 1000

    assert run(body, 100, 11) == 100 + 40 + 2


def test_functions_call_each_other_and_pointers() -> None:
    m = LlvmBuilder()
    g = m.function("g", [i64, i32], i64)
    g.ret(g.arguments[0] + g.arguments[1].to(i64))
    f = m.function("f", [i64], i64, is_public=True)
    direct = f.call("g", f.arguments[0], 5)
    f.ret(f.call_pointer(f.address("g"), direct, f.value(6, i32), output=i64))
    module = m.module()
    module.verify()
    library = Library([compile_object(print_llvm(module))], ["f"])
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("f"))(10) == 21


def test_code_after_a_jump_is_refused() -> None:
    f = LlvmBuilder().function("f", [i64], i64)
    f.ret(0)
    with pytest.raises(AssertionError, match="after a jump"):
        f.ret(1)
