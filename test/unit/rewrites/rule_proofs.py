"""Proof of rewrite rules by running: the left side and what the rule makes of it give the same.

A case is a left side in HLO text with placeholders, instantiated over element types and shapes and
run on special values. A line `x y: T[S]` names parameters; `T` is the element type, `S` the sizes,
`R` the real part's type; the last line is the root. Each instance has to make the rule fire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import SEED
from xla_execution import random_values

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.fuzz.generators.choices import special_values
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.shapes import ArrayShape, parse_shape
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module, run_spmd
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rule, RulePass

FLOATS = ("f32", "f64", "bf16", "f16")
WIDE = ("f32", "f64")
SIGNED = ("s8", "s32", "s64")
UNSIGNED = ("u8", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
COMPLEX = ("c64", "c128")
PRED = ("pred",)
REAL = FLOATS + INTEGERS
NUMBERS = (*REAL, *COMPLEX)
ALL = (*NUMBERS, *PRED)
SHAPES = ("", "1", "0", "61", "2,3")


@dataclass(frozen=True, slots=True)
class Case:
    """Left sides of one rule."""

    body: str
    types: Sequence[str] = ("f32",)
    shapes: Sequence[str] = SHAPES
    computations: str = ""
    options: Mapping[str, Any] | None = None
    """Options of the pass beside those that the rule needs."""
    positive: bool = False
    """Whether inputs are positive numbers only."""
    header: str = ""
    """Attributes of the module."""
    fires: bool = True
    """False for a case in which the rule must stay away."""

    def instances(self) -> Iterator[str]:
        """HLO text of every instance."""
        for type_ in self.types:
            for shape in self.shapes:
                yield self._text(type_, shape)

    def _text(self, type_: str, shape: str) -> str:
        real = PRIMITIVE_TYPES[type_].real.name

        def fill(text: str) -> str:
            if real != type_:
                text = re.sub(r"(\bT\[.*) constant\((-?[\d.]+)\)", r"\1 constant((\2, 0))", text)
            text = re.sub(r"\bT\[", type_ + "[", text)
            return re.sub(r"\bR\[", real + "[", text).replace("[S]", f"[{shape}]")

        lines: list[str] = []
        number = 0
        wanted = [line.strip() for line in fill(self.body).strip().split("\n") if line.strip()]
        for line in wanted:
            if match := re.fullmatch(r"([\w ]+): (\w+\[[\d,]*\](?:\{[\d,:T()]*\})?)", line):
                for name in match[1].split():
                    lines.append(f"{name} = {match[2]} parameter({number})")
                    number += 1
            else:
                lines.append(line)
        lines[-1] = ("ROOT " if " = " in lines[-1].split("(")[0] else "ROOT r = ") + lines[-1]
        body = "".join(f"  {line}\n" for line in lines)
        return f"HloModule m{self.header}\n{fill(self.computations)}\nENTRY e {{\n{body}}}\n"


def prove(cls: type[RulePass], rule: Rule, case: Case) -> int:
    """Runs all instances of a case; how many there were. Raises `AssertionError`."""
    options: dict[str, Any] = {n.removeprefix("!"): not n.startswith("!") for n in rule.needs}
    pass_ = cls(only=(rule.name,), **(options | dict(case.options or {})))
    count = 0
    for text in case.instances():
        before, after = parse_module(text), parse_module(text)
        trace = Trace()
        changed = pass_.run(HloModule(after), trace)
        fired = trace.rule_counts[pass_.name, rule.name]
        assert changed == bool(fired) == case.fires, f"{rule.name} on\n{text}"
        count += 1
        if not case.fires:
            continue
        after.verify()
        problems = [str(p.message) for p in verify_module(after)]
        assert not problems, f"{rule.name}: {problems} in\n{text}{print_module(after)}"
        _compare(rule, case, text, before, after)
    return count


def _compare(rule: Rule, case: Case, text: str, before: Any, after: Any) -> None:
    rng = np.random.default_rng(SEED)
    entry = HloModule(before).entry
    assert entry is not None
    parameters = [op for op in entry.instructions if op.opcode.name == "parameter"]
    parameters.sort(key=lambda op: op.parameter_number)  # type: ignore[attr-defined]
    for special in (True, False):
        arguments = [
            _values(rule, case, parse_shape(str(p.shape)), special, rng) for p in parameters
        ]
        with np.errstate(all="ignore"):
            if case.header:  # several devices, all given the same
                want = [out for device in run_spmd(before, [arguments]) for out in device]
                got = [out for device in run_spmd(after, [arguments], check=True) for out in device]
            else:
                want = run_module(before, arguments)
                got = run_module(after, arguments, check=True)
        assert len(want) == len(got)
        for a, b in zip(want, got, strict=True):
            x, y = np.asarray(a), np.asarray(b)
            assert (x.shape, x.dtype) == (y.shape, y.dtype), f"{rule.name}\n{text}"
            good = agrees(rule.contract, x, y)
            assert good.all(), (
                f"{rule.name} ({rule.contract}) on {text}{print_module(after)}"
                f"inputs {arguments}\nleft {x}\nright {y}"
            )


def _values(rule: Rule, case: Case, shape: Any, special: bool, rng: np.random.Generator) -> Any:
    assert isinstance(shape, ArrayShape)
    type_: PrimitiveType = shape.element_type
    if rule.contract == "rounding" and (type_.is_float or type_.is_complex):
        return _moderate(type_, shape.dimensions, case.positive, rng)
    if not special:
        found = random_values(type_, shape.dimensions, rng)
    else:
        known = special_values(type_)
        if rule.contract == "finite" and (type_.is_float or type_.is_complex):
            known = known[np.isfinite(known.astype(np.complex128))]
        found = rng.choice(known, shape.dimensions) if known.size else known
    found = np.asarray(found, dtype=type_.dtype)
    return np.abs(found).astype(type_.dtype) if case.positive else found


def _moderate(
    type_: PrimitiveType, sizes: Sequence[int], positive: bool, rng: np.random.Generator
) -> Any:
    """Numbers of magnitudes from 0.5 to 2: nothing overflows, little cancels."""

    def part() -> Any:
        sign = 1.0 if positive else rng.choice([-1.0, 1.0], tuple(sizes))
        return sign * rng.uniform(0.5, 2.0, tuple(sizes))

    found = part() + 1j * part() if type_.is_complex else part()
    return np.asarray(found).astype(type_.dtype)


def agrees(contract: str, want: Any, got: Any) -> Any:
    """Element by element, whether a contract holds; rounding is bounded by 16 units at 2."""
    inexact = want.dtype.kind not in "iub" and not want.dtype.name.startswith(("int", "uint"))
    if not inexact:
        return want == got
    if want.dtype.kind == "c":
        return agrees(contract, want.real, got.real) & agrees(contract, want.imag, got.imag)
    import ml_dtypes

    eps = float(ml_dtypes.finfo(want.dtype).eps)
    a, b = want.astype(np.float64), got.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if contract == "exact":
            return same & ((np.signbit(a) == np.signbit(b)) | np.isnan(a))
        if contract == "rounding":
            return same | (np.abs(a - b) <= 16 * eps * np.maximum(np.abs(a), 2.0))
        return same
