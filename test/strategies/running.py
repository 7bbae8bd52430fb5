"""Cases here and in XLA:CPU, compared. A batch is one program there: compiling takes the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xla_execution import XLA, Refusal, differences

from mlirhlo.debug.fuzz.generators.instructions import Case, name_of, sizes
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, parse_shape
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module

Output = list[np.ndarray] | Refusal
"""Leaves of one case's result."""


def leaves(case: Case) -> list[ArrayShape]:
    shape = parse_shape(case.shape)
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    assert all(isinstance(part, ArrayShape) for part in parts), case.shape
    return list(parts)  # type: ignore[arg-type]


def build(cases: Sequence[Case]) -> tuple[str, list[np.ndarray]]:
    """All cases as one program; arrays that several share are passed once."""
    head, body, inputs = ["HloModule m"], ["ENTRY e {"], list[np.ndarray]()
    names: dict[int, str] = {}
    outputs: list[tuple[str, str]] = []
    for number, case in enumerate(cases):
        prefix = f"c{number}_"
        line = "\n  ".join([*case.before, f"r{number} = {case.line}"])
        for index, array in reversed(list(enumerate(case.inputs))):
            if id(array) not in names:
                names[id(array)] = f"p{len(inputs)}"
                shape = sizes(name_of(array), array.shape)
                body.append(f"  p{len(inputs)} = {shape} parameter({len(inputs)})")
                inputs.append(array)
            line = line.replace(f"@p{index}", names[id(array)])
        head.append(case.computations.replace("@", prefix))
        body.append("  " + line.replace("@", prefix))
        parts = [str(part) for part in leaves(case)]
        if not case.shape.startswith("("):
            outputs.append((parts[0], f"r{number}"))
            continue
        for index, part in enumerate(parts):
            body.append(f"  r{number}_{index} = {part} get-tuple-element(r{number}), index={index}")
            outputs.append((part, f"r{number}_{index}"))
    shapes = ", ".join(shape for shape, _ in outputs)
    body += [f"  ROOT t = ({shapes}) tuple({', '.join(name for _, name in outputs)})", "}"]
    return "\n".join(head + body) + "\n", inputs


def in_xla(cases: Sequence[Case]) -> list[Output]:
    """XLA's results; when it refuses a program, halves are tried."""
    if not cases:
        return []
    answer = XLA.run(*build(cases))
    if not isinstance(answer, Refusal):
        flat = iter(answer)
        return [[next(flat) for _ in leaves(case)] for case in cases]
    if len(cases) == 1:
        return [answer]
    half = len(cases) // 2
    return [*in_xla(cases[:half]), *in_xla(cases[half:])]


@dataclass(slots=True)
class Tally:
    """What a test has compared, and what XLA refused."""

    compared: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons by key; a form once refused is not tried again by tests that say so."""

    def check(self, cases: Sequence[Case]) -> None:
        """Runs cases on both sides; fails where results differ, or only this side refuses."""
        problems: list[str] = []
        for case, want in zip(cases, in_xla(cases), strict=True):
            if isinstance(want, Refusal):
                self.refused[case.key] = want.reason
                continue
            self.compared += 1
            text, inputs = build([case])
            try:
                got: Any = run_module(parse_module(text), inputs, check=True)
            except HloError as problem:
                problems.append(f"{text}refused here: {problem}")
                continue
            for shape, mine, theirs in zip(leaves(case), got, want, strict=True):
                if (wrong := difference(case, shape, mine, theirs)) is not None:
                    problems.append(text + wrong)
        assert not problems, "\n".join(problems)

    def expect_most(self) -> None:
        """Most of what was made has to be legal, or little is tested."""
        few = self.compared < len(self.refused)
        assert not few, f"{self.compared} compared, refused:\n" + "\n".join(self.refused.values())


def difference(case: Case, shape: ArrayShape, got: np.ndarray, want: np.ndarray) -> str | None:
    """How one result differs from XLA's, with the first place; None when it does not."""
    if got.shape != want.shape:
        return f"sizes {got.shape} here, {want.shape} in XLA"
    floor = case.floor
    if case.scaled:
        finite = np.abs(want)[np.isfinite(want)]
        floor = case.scaled * (1 + float(np.max(finite, initial=0.0)))
    # A scaled comparison is by `floor` alone: the least number of ulps lets it count.
    ulps = max(case.ulps, 1e-9) if floor else case.ulps
    wrong = differences(got, want, shape.element_type, ulps, floor)
    if case.known is not None:
        wrong = wrong[~case.known(case.inputs, got)[wrong]]
    if not wrong.size:
        return None
    at = wrong[0]
    given = ", ".join(
        str(array.reshape(-1)[at]) for array in case.inputs if array.shape == got.shape
    )
    return (
        f"{wrong.size} differ, the first at {at} ({given}): {got.reshape(-1)[at]} here, "
        f"{want.reshape(-1)[at]} in XLA"
    )
