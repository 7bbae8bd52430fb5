"""Random loops of scalars in machine code, against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlirhlo
from mlirhlo.lowering.cpu import registers
from mlirhlo.lowering.cpu.compiler import lower

TYPES = ("s32", "s64", "u8", "f32", "pred", "c64")
LENGTH = 20


class Source:
    """Writes computations; every loop ends after a few rounds."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.computations: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def state(self) -> list[str]:
        scalars = [f"{self.random.choice(TYPES)}[]" for _ in range(self.random.randint(1, 5))]
        return ["s32[]", *scalars, *self.random.choices([f"s32[{LENGTH}]", "f32[2,16]"], k=2)]

    def value(self, lines: list[str], values: Sequence[tuple[str, str]], type_: str) -> str:
        """A value of a type, made of others by a few instructions."""
        same = [n for n, t in values if t == type_]
        if self.random.random() < 0.3 or not type_.endswith("[]"):
            if same and self.random.random() < 0.5:
                return self.random.choice(same)
        if type_ == f"s32[{LENGTH}]":
            place, number = (self.value(lines, values, "s32[]") for _ in range(2))
            array = self.random.choice(same)
            if self.random.random() < 0.5:
                part = self.line(lines, "s32[1]", f"reshape({number})")
                return self.line(lines, type_, f"dynamic-update-slice({array}, {part}, {place})")
            all_ = self.line(lines, type_, f"broadcast({number}), dimensions={{}}")
            return self.line(lines, type_, f"subtract({array}, {all_})")
        if type_ == "f32[2,16]":
            number = self.line(lines, "f32[]", f"convert({self.value(lines, values, 'u8[]')})")
            all_ = self.line(lines, type_, f"broadcast({number}), dimensions={{}}")
            return self.line(lines, type_, f"maximum({self.random.choice(same)}, {all_})")
        if type_ == "pred[]":
            a, b = (self.value(lines, values, "s32[]") for _ in range(2))
            return self.line(lines, type_, f"compare({a}, {b}), direction=LT")
        kind = self.random.randrange(4)
        arrays = [n for n, t in values if t == f"s32[{LENGTH}]"]
        if kind == 0 and type_ == "s32[]" and arrays:
            place = self.random.choice([n for n, t in values if t == "s32[]"])
            part = self.line(
                lines,
                "s32[1]",
                f"dynamic-slice({self.random.choice(arrays)}, {place}), dynamic_slice_sizes={{1}}",
            )
            return self.line(lines, type_, f"reshape({part})")
        if kind == 1 and type_ != "c64[]":
            other = self.random.choice([v for v in values if v[1] in ("s32[]", "u8[]", "pred[]")])
            return self.line(lines, type_, f"convert({other[0]})")
        if len(same) < 1:
            return self.line(lines, type_, f"constant({'(1, 2)' if type_ == 'c64[]' else 3})")
        a, b = self.random.choices(same, k=2)
        if kind == 2:
            test = self.value(lines, values, "pred[]")
            return self.line(lines, type_, f"select({test}, {a}, {b})")
        operation = (
            "add" if type_ in ("f32[]", "c64[]") else self.random.choice(["add", "multiply"])
        )
        return self.line(lines, type_, f"{operation}({a}, {b})")

    def line(self, lines: list[str], type_: str, text: str) -> str:
        name = self.name()
        lines.append(f"  {name} = {type_} {text}")
        return name

    def loop(
        self, lines: list[str], given: Sequence[tuple[str, str]], types: list[str], depth: int
    ) -> list[tuple[str, str]]:
        """A loop of a state that begins with a counter; its results."""
        tuple_ = f"({', '.join(types)})"
        rounds = self.random.randint(1, 4)
        condition = [f"  p = {tuple_} parameter(0)", f"  n = s32[] constant({rounds})"]
        condition.append("  i = s32[] get-tuple-element(p), index=0")
        condition.append("  ROOT r = pred[] compare(i, n), direction=LT")
        body = [f"  p = {tuple_} parameter(0)", "  one = s32[] constant(1)"]
        values = [
            (self.line(body, t, f"get-tuple-element(p), index={at}"), t)
            for at, t in enumerate(types)
        ]
        counter = self.line(body, "s32[]", f"add({values[0][0]}, one)")
        if depth and self.random.random() < 0.6:
            values += self.inner(body, values, depth)
        after = [counter, *(self.value(body, values, t) for t in types[1:])]
        body.append(f"  ROOT r = {tuple_} tuple({', '.join(after)})")
        names = self.name(), self.name()
        for name, text in zip(names, (condition, body), strict=True):
            self.computations.append("\n".join([f"{name} {{", *text, "}"]))
        initial = [self.line(lines, "s32[]", "constant(0)")]
        initial += [self.value(lines, given, t) for t in types[1:]]
        state = self.line(lines, tuple_, f"tuple({', '.join(initial)})")
        result = self.line(lines, tuple_, f"while({state}), condition={names[0]}, body={names[1]}")
        return [
            (self.line(lines, t, f"get-tuple-element({result}), index={at}"), t)
            for at, t in enumerate(types)
        ]

    def inner(
        self, lines: list[str], values: Sequence[tuple[str, str]], depth: int
    ) -> list[tuple[str, str]]:
        if self.random.random() < 0.5:
            types = ["s32[]", *self.random.sample([t for _, t in values[1:]], k=2)]
            return self.loop(lines, values, types, depth - 1)
        names: list[str] = []
        types = [t for _, t in values]
        for _ in range(2):
            text = [f"  p = ({', '.join(types)}) parameter(0)"]
            inside = [
                (self.line(text, t, f"get-tuple-element(p), index={at}"), t)
                for at, t in enumerate(types)
            ]
            results = [self.value(text, inside, t) for t in types[1:3]]
            text.append(f"  ROOT r = ({', '.join(types[1:3])}) tuple({', '.join(results)})")
            names.append(self.name())
            self.computations.append("\n".join([f"{names[-1]} {{", *text, "}"]))
        given = self.line(
            lines, f"({', '.join(types)})", f"tuple({', '.join(n for n, _ in values)})"
        )
        test = self.value(lines, values, "pred[]")
        chosen = self.line(
            lines,
            f"({', '.join(types[1:3])})",
            f"conditional({test}, {given}, {given}), true_computation={names[0]}, "
            f"false_computation={names[1]}",
        )
        return [
            (self.line(lines, t, f"get-tuple-element({chosen}), index={at}"), t)
            for at, t in enumerate(types[1:3])
        ]

    def module(self) -> tuple[str, list[Any]]:
        types = [*(f"{t}[]" for t in TYPES), f"s32[{LENGTH}]", "f32[2,16]"]
        lines = [f"  p{at} = {t} parameter({at})" for at, t in enumerate(types)]
        values = [(f"p{at}", t) for at, t in enumerate(types)]
        results = self.loop(lines, values, self.state(), 2)
        if self.random.random() < 0.5:
            results += self.loop(lines, [*values, *results], self.state(), 1)
        kept = self.random.sample(results, k=min(4, len(results)))
        parts = ", ".join(t for _, t in kept)
        lines.append(f"  ROOT r = ({parts}) tuple({', '.join(n for n, _ in kept)})")
        text = "\n".join(["HloModule m", *self.computations, "ENTRY e {", *lines, "}"])
        rng = np.random.default_rng(self.random.randrange(1 << 30))
        dtypes = (np.int32, np.int64, np.uint8, np.float32, np.bool_, np.complex64)
        arguments: list[Any] = [np.asarray(rng.integers(0, 9)).astype(t) for t in dtypes]
        arguments.append(rng.integers(-30, 30, LENGTH).astype(np.int32))
        arguments.append(rng.normal(size=(2, 16)).astype(np.float32))
        return text, arguments


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 40))
def test_loops_of_scalars(seed: int) -> None:
    agrees(seed, debug=False)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("seed", range(10))
def test_loops_of_scalars_inside_their_buffers(seed: int) -> None:
    agrees(seed, debug=True)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("most", "functions"), [(4096, 1), (8, 0)])
def test_large_loops_stay_in_main(
    most: int, functions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registers, "_MOST_IN_LOOP", most)
    module = mlirhlo.parse("""HloModule count
cond { i = s32[] parameter(0) n = s32[] constant(9) ROOT c = pred[] compare(i, n), direction=LT }
body { i = s32[] parameter(0) k = s32[] constant(2) ROOT j = s32[] add(i, k) }
ENTRY e { i = s32[] parameter(0) ROOT w = s32[] while(i), condition=cond, body=body }
""")
    assert str(lower(module.op).loops).count("func.func @loop_") == functions


def agrees(seed: int, *, debug: bool) -> None:
    text, arguments = Source(seed).module()
    expected = mlirhlo.parse(text)(*arguments)
    result = mlirhlo.compile(mlirhlo.parse(text), cached=False, debug=debug)(*arguments)
    for a, b in zip(result, expected, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=text)
