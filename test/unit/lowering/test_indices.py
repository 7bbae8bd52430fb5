"""Arithmetic on indices is done once, where it changes, and constants come last."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, f32, i64
from xdsl.ir import SSAValue

from mlirhlo.lowering.builder import INDEX, FunctionBuilder, memref_of
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime.jit import Library, compile_object

pytest.importorskip("llvmlite")

ROWS, COLUMNS = 8, 16


def text_of(b: FunctionBuilder) -> str:
    module = ModuleOp([b.finish()])
    module.verify()
    lowered = convert_to_llvm(module)
    lowered.verify()
    return print_llvm(lowered)


def opcodes_of(text: str) -> Sequence[Sequence[str]]:
    """Of every block of the first function."""
    blocks: list[list[str]] = []
    for line in text[: text.index("\n}")].split("\n")[1:]:
        if line.endswith(":"):
            blocks.append([])
        else:
            blocks[-1].append(re.sub(r"^  (%\w+ = )?(\w+).*", r"\2", line))
    return blocks


def test_rows_are_found_outside_the_loop_over_their_elements() -> None:
    b = FunctionBuilder("f", [memref_of(f32, 64, 128)])
    (x,) = b.arguments
    with b.loop(0, 64) as i, b.loop(0, 128, 32) as j:
        for at in (0, 16):
            place = [i, b.add(j, at)]
            b.vector_store(b.vector_load(x, place, 16), x, place)
    _, _, outer, _, inner, *_ = opcodes_of(text_of(b))
    assert outer == ["phi", "shl", "getelementptr", "br"]
    accesses = ["getelementptr", "load", "store"] * 2
    assert inner == ["phi", *accesses, "add", "icmp", "br"]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("number", "opcodes"), [(48, ["mul", "udiv", "urem"]), (32, ["shl", "lshr", "and"])]
)
def test_powers_of_two_are_shifts(number: int, opcodes: Sequence[str]) -> None:
    b = FunctionBuilder("f", [memref_of(i64, 3), INDEX])
    x, n = b.arguments
    for at, found in enumerate((b.mul(n, number), b.div(n, number), b.rem(n, number))):
        b.store(b.cast_index(b.index(found), i64), x, [at])
    text = text_of(b)
    found = [opcode for block in opcodes_of(text) for opcode in block]
    assert [o for o in found if o not in ("br", "getelementptr", "store", "ret")] == opcodes
    library = Library([compile_object(text)], ["f"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("f"))
    results = np.empty(3, np.int64)
    for value in (0, 1, number - 1, number, 1000):
        function(results.ctypes.data, value)
        assert list(results) == [value * number, value // number, value % number]


def test_a_loop_that_may_be_empty_follows_its_test() -> None:
    """Which jumps away, so that LLVM need not turn it around."""
    b = FunctionBuilder("f", [memref_of(f32, ROWS), INDEX])
    x, n = b.arguments
    with b.loop(0, n) as i:
        b.store(b.constant(1.0, f32), x, [i])
    (jump,) = re.findall(r"icmp sge .*\n  br i1 %\w+, label %(\w+), label %(\w+)", text_of(b))
    assert jump == ("b3", "b2")


def test_what_a_loop_that_runs_yields_needs_no_phi_after_it() -> None:
    b = FunctionBuilder("f", [memref_of(f32, ROWS, COLUMNS), INDEX])
    x, n = b.arguments
    with b.loop(0, ROWS, 1, [n]) as loop:
        loop.carry(b.index(b.add(loop.carried[0], 2)))
    b.store(b.constant(1.0, f32), x, [0, loop.results[0]])
    *_, after = opcodes_of(text_of(b))
    assert after == ["getelementptr", "getelementptr", "store", "ret"]


Expression = tuple[str, int, int]
"""An operation, and two numbers: of earlier values, or a constant."""
Statement = tuple[Any, ...]

numbers = st.integers(0, 30)
expressions = st.tuples(st.sampled_from(["add", "sub", "mul", "sum"]), numbers, st.integers(-3, 9))
leaves = st.one_of(
    st.tuples(st.just("let"), expressions),
    st.tuples(st.just("store"), numbers, numbers, st.integers(0, COLUMNS // 2)),
)
statements = st.recursive(
    st.lists(leaves, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            leaves,
            st.tuples(st.just("loop"), st.integers(-1, 3), numbers, inner),
            st.tuples(st.just("if"), numbers, numbers, inner, inner),
        ),
        max_size=4,
    ),
    max_leaves=10,
)


class Both:
    """A program as it is built, and as Python understands it."""

    def __init__(self, b: FunctionBuilder, x: SSAValue) -> None:
        self.b, self.x = b, x
        self.stores = 0

    def build(self, program: Sequence[Statement], values: list[SSAValue]) -> None:
        b = self.b
        for statement in program:
            match statement:
                case ("let", (kind, first, second)):
                    value = values[first % len(values)]
                    match kind:
                        case "add":
                            made = b.add(value, second)
                        case "sub":
                            made = b.sub(value, second)
                        case "mul":
                            made = b.mul(value, abs(second))
                        case _:
                            made = b.add(value, values[second % len(values)])
                    values = [*values, b.index(made)]
                case ("store", row, column, offset):
                    self.stores += 1
                    place = [b.rem(values[row % len(values)], ROWS)]
                    place.append(b.add(b.rem(values[column % len(values)], COLUMNS // 2), offset))
                    b.store(
                        b.constant(float(self.stores), f32),
                        self.x,
                        [place[0], b.rem(place[1], COLUMNS)],
                    )
                case ("loop", upper, start, inner):
                    with b.loop(0, upper, 1, [values[start % len(values)]]) as loop:
                        inside = [*values, loop.index, *loop.carried]
                        self.build(inner, inside)
                        loop.carry(b.index(b.add(loop.carried[0], 3)))
                    values = [*values, *loop.results]
                case (_, first, second, then, other):
                    condition = b.cmpi(
                        "slt", values[first % len(values)], values[second % len(values)]
                    )
                    # What is built first is numbered first.
                    with b.if_(condition, partial(self.build, other, values)):
                        self.build(then, values)

    def run(self, program: Sequence[Statement], values: list[int], x: Any, number: int) -> int:
        """Runs what `build` built; `number`: of stores before. Their number after it."""
        for statement in program:
            match statement:
                case ("let", (kind, first, second)):
                    value = values[first % len(values)]
                    made = {
                        "add": value + second,
                        "sub": value - second,
                        "mul": value * abs(second),
                        "sum": value + values[second % len(values)],
                    }[kind]
                    values = [*values, made]
                case ("store", row, column, offset):
                    number += 1
                    at = values[column % len(values)] % (COLUMNS // 2) + offset
                    x[values[row % len(values)] % ROWS, at % COLUMNS] = number
                case ("loop", upper, start, inner):
                    carried, after = values[start % len(values)], number
                    for index in range(upper):
                        self.run(inner, [*values, index, carried], x, number)
                        carried += 3
                    after = self.run(inner, [*values, 0, 0], np.zeros_like(x), number)
                    values, number = [*values, carried], after
                case (_, first, second, then, other):
                    chosen = values[first % len(values)] < values[second % len(values)]
                    nowhere = np.zeros_like(x)
                    number = self.run(then, values, x if chosen else nowhere, number)
                    number = self.run(other, values, nowhere if chosen else x, number)
        return number


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(statements, st.integers(0, 5))
@example([("loop", 3, 0, [("if", 0, 1, [], []), ("store", 1, 2, 2)])], 1)
@example([("loop", 2, 0, [("let", ("add", 1, 3))]), ("loop", 2, 0, [("store", 1, 2, 2)])], 1)
def test_programs_of_indices(program: Sequence[Statement], argument: int) -> None:
    b = FunctionBuilder("f", [memref_of(f32, ROWS, COLUMNS), INDEX])
    x, n = b.arguments
    both = Both(b, x)
    both.build(program, [n])
    library = Library([compile_object(text_of(b))], ["f"])
    found, expected = np.zeros((2, ROWS, COLUMNS), np.float32)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(library.address("f"))
    call(found.ctypes.data, argument)
    both.run(program, [argument], expected, 0)
    np.testing.assert_array_equal(found, expected)
