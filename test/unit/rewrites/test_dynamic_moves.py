"""Random chains of slices, updates, pads and reshapes of dynamic arrays: passes keep every size and value."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

import mlirhlo
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.registry import DynamicArray
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.dynamic_padder import DynamicPadderPass
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of

STARTS = {"s32": np.int32, "u8": np.uint8, "s64": np.int64, "u32": np.uint32, "s8": np.int8}
RUNS = 6
"""Inputs of each program."""


@dataclass(slots=True)
class Array:
    """A value of the program."""

    name: str
    bounds: list[int]
    dynamic: list[bool]

    @property
    def shape(self) -> str:
        parts = (f"<={n}" if d else str(n) for n, d in zip(self.bounds, self.dynamic, strict=True))
        return f"f32[{','.join(parts)}]"


@dataclass(slots=True)
class Program:
    """A program under construction, and how its arguments are drawn."""

    c: random.Random
    constants: float = 0
    """How many of the sizes and starts are constants."""
    parameters: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    draw: list[Callable[[random.Random], np.ndarray]] = field(
        default_factory=list[Callable[[random.Random], np.ndarray]]
    )

    def parameter(self, shape: str, draw: Callable[[random.Random], np.ndarray]) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters.append(f"{name} = {shape} parameter({len(self.parameters)})")
        self.draw.append(draw)
        return name

    def emit(self, bounds: Sequence[int], dynamic: Sequence[bool], rest: str) -> Array:
        array = Array(f"v{len(self.lines)}", list(bounds), list(dynamic))
        self.lines.append(f"{array.name} = {array.shape} {rest}")
        return array

    def scalar(self, low: int, high: int, type_: str = "s32") -> str:
        low = 0 if type_[0] == "u" else low
        if self.c.random() < self.constants:
            name = f"v{len(self.lines)}"
            value = self.c.choice((max(low, 0), self.c.randint(low, high)))
            self.lines.append(f"{name} = {type_}[] constant({value})")
            return name
        return self.parameter(f"{type_}[]", lambda c: np.array(c.randint(low, high), STARTS[type_]))

    def array(
        self, bounds: Sequence[int], dynamic: Sequence[bool], sizes: Sequence[str] = ()
    ) -> Array:
        """A static parameter whose dynamic dimensions are set to sizes, drawn or given."""
        count = math.prod(bounds)
        now = Array("", list(bounds), [False] * len(bounds))
        now.name = self.parameter(
            now.shape,
            lambda c: np.array(c.choices(range(-9, 9), k=count), np.float32).reshape(bounds),
        )
        for dim, is_dynamic in enumerate(dynamic):
            if is_dynamic:
                size = sizes[dim] if sizes else self.scalar(0, bounds[dim])
                flags = [d or k == dim for k, d in enumerate(now.dynamic)]
                rest = f"set-dimension-size({now.name}, {size}), dimensions={{{dim}}}"
                now = self.emit(bounds, flags, rest)
        return now

    def size(self, x: Array, dim: int) -> str:
        name = f"v{len(self.lines)}"
        rest = f"get-dimension-size({x.name}), dimensions={{{dim}}}"
        self.lines.append(f"{name} = s32[] {rest}")
        return name

    @property
    def text(self) -> str:
        *body, root = [*self.parameters, *self.lines]
        return "\n  ".join(["HloModule m\n\nENTRY e {", *body, f"ROOT {root}"]) + "\n}\n"


# ---------------------------------------------------------------- one instruction


def _starts(p: Program, rank: int) -> str:
    type_ = p.c.choice(("s32", "s32", *STARTS))
    return "".join(f", {p.scalar(-2, 5, type_)}" for _ in range(rank))


def update(p: Program, x: Array) -> Array:
    bounds = [p.c.randint(0 if p.c.random() < 0.1 else 1, n) if n else 0 for n in x.bounds]
    part = p.array(bounds, [p.c.random() < 0.5 for _ in bounds])
    rest = f"dynamic-update-slice({x.name}, {part.name}{_starts(p, len(bounds))})"
    return p.emit(x.bounds, x.dynamic, rest)


def written(p: Program, x: Array) -> Array:
    """`x` is the update."""
    bounds = [n + p.c.randint(0, 2) for n in x.bounds]
    into = p.array(bounds, [p.c.random() < 0.3 for _ in bounds])
    rest = f"dynamic-update-slice({into.name}, {x.name}{_starts(p, len(bounds))})"
    return p.emit(bounds, into.dynamic, rest)


def dynamic_slice(p: Program, x: Array) -> Array:
    sizes = [p.c.choice((n, p.c.randint(min(n, 1), n))) for n in x.bounds]
    rest = f"dynamic-slice({x.name}{_starts(p, len(sizes))})"
    widths = ",".join(map(str, sizes))
    return p.emit(sizes, x.dynamic, f"{rest}, dynamic_slice_sizes={{{widths}}}")


def slice_(p: Program, x: Array) -> Array:
    parts: list[range] = []
    for n in x.bounds:
        low = p.c.choice((0, 0, p.c.randint(0, n)))
        parts.append(range(low, p.c.choice((n, p.c.randint(low, n))), p.c.choice((1, 1, 2))))
    text = ", ".join(f"[{part.start}:{part.stop}:{part.step}]" for part in parts)
    return p.emit([len(part) for part in parts], x.dynamic, f"slice({x.name}), slice={{{text}}}")


def static_slice(p: Program, x: Array) -> Array:
    """Parts of dynamic dimensions that are declared static."""
    sliced = p.c.choice((slice_, dynamic_slice))(p, x)
    pairs = zip(x.dynamic, x.bounds, sliced.bounds, strict=True)
    sliced.dynamic = [d and n == m and p.c.random() < 0.5 for d, n, m in pairs]
    head, rest = p.lines[-1].split(" = ")
    p.lines[-1] = f"{head} = {sliced.shape} {rest.split(' ', 1)[1]}"
    return sliced


def pad(p: Program, x: Array) -> Array:
    bounds: list[int] = []
    edges: list[str] = []
    for n in x.bounds:
        low, high = (p.c.choice((0, 0, 1, 2, -1, -2)) for _ in range(2))
        inner = p.c.choice((0, 0, 1, 2))
        grown = n + max(n - 1, 0) * inner + low + high
        if not 0 <= grown <= 9:
            low = high = inner = 0
            grown = n
        bounds.append(grown)
        edges.append(f"{low}_{high}_{inner}")
    fill = p.parameter("f32[]", lambda c: np.array(c.randint(20, 30), np.float32))
    return p.emit(bounds, x.dynamic, f"pad({x.name}, {fill}), padding={'x'.join(edges)}")


def concatenate(p: Program, x: Array) -> Array:
    dim = p.c.randrange(len(x.bounds))
    sizes = [p.size(x, d) if f else "" for d, f in enumerate(x.dynamic)]
    parts = [x]
    for _ in range(p.c.randint(0, 2)):
        bounds, dynamic = list(x.bounds), list(x.dynamic)
        bounds[dim], dynamic[dim] = p.c.randint(0, 3), p.c.random() < 0.5
        known = list(sizes)
        if dynamic[dim]:
            known[dim] = p.scalar(0, bounds[dim])
        parts.append(p.array(bounds, dynamic, known))
    p.c.shuffle(parts)
    bounds, dynamic = list(x.bounds), list(x.dynamic)
    bounds[dim] = sum(part.bounds[dim] for part in parts)
    dynamic[dim] = any(part.dynamic[dim] for part in parts)
    names = ", ".join(part.name for part in parts)
    return p.emit(bounds, dynamic, f"concatenate({names}), dimensions={{{dim}}}")


def reshape(p: Program, x: Array) -> Array:
    """To any factors; some take sizes that the elements in use have no name for, and are an error where they run."""
    count = math.prod(x.bounds)
    bounds = [] if count else [0]
    while count > 1:
        bounds.append(p.c.choice([k for k in range(2, count + 1) if count % k == 0]))
        count //= bounds[-1]
    for _ in range(p.c.choice((0, 0, 1, 2)) or not bounds):
        bounds.insert(p.c.randint(0, len(bounds)), 1)
    dynamic = [False] * len(bounds)
    for _ in range(sum(x.dynamic)):
        dynamic[p.c.randrange(len(bounds))] = True
    return p.emit(bounds, dynamic, f"reshape({x.name})")


def reverse(p: Program, x: Array) -> Array:
    dims = ",".join(str(d) for d in range(len(x.bounds)) if p.c.random() < 0.6)
    return p.emit(x.bounds, x.dynamic, f"reverse({x.name}), dimensions={{{dims}}}")


def transpose(p: Program, x: Array) -> Array:
    order = p.c.sample(range(len(x.bounds)), len(x.bounds))
    rest = f"transpose({x.name}), dimensions={{{','.join(map(str, order))}}}"
    return p.emit([x.bounds[d] for d in order], [x.dynamic[d] for d in order], rest)


def broadcast(p: Program, x: Array) -> Array:
    dim = p.c.randint(0, len(x.bounds))
    bounds = [*x.bounds[:dim], p.c.randint(0, 3), *x.bounds[dim:]]
    dynamic = [*x.dynamic[:dim], False, *x.dynamic[dim:]]
    kept = ",".join(str(d) for d in range(len(bounds)) if d != dim)
    return p.emit(bounds, dynamic, f"broadcast({x.name}), dimensions={{{kept}}}")


def gather(p: Program, x: Array) -> Array:
    """Windows at dynamically many places along one dimension; the others whole."""
    dim, count = p.c.randrange(len(x.bounds)), p.c.randint(1, 3)
    width = p.c.randint(1, x.bounds[dim])
    starts = p.parameter(
        f"s32[{count}]", lambda c: np.array(c.choices(range(-2, 6), k=count), np.int32)
    )
    several = p.c.random() < 0.5
    if several:
        size = p.scalar(0, count)
        rest = f"set-dimension-size({starts}, {size}), dimensions={{0}}"
        starts = f"v{len(p.lines)}"
        p.lines.append(f"{starts} = s32[<={count}] {rest}")
    windows = [width if d == dim else n for d, n in enumerate(x.bounds)]
    kept = [d for d in range(len(windows)) if d != dim or width > 1 or p.c.random() < 0.5]
    whole = [x.dynamic[d] and windows[d] == x.bounds[d] for d in kept]
    offsets = ",".join(str(1 + k) for k in range(len(kept)))
    gone = "".join(str(d) for d in range(len(windows)) if d not in kept)
    rest = (
        f"gather({x.name}, {starts}), offset_dims={{{offsets}}}, collapsed_slice_dims={{{gone}}}, "
        f"start_index_map={{{dim}}}, index_vector_dim=1, slice_sizes={{{','.join(map(str, windows))}}}"
    )
    return p.emit([count, *(windows[d] for d in kept)], [several, *whole], rest)


KINDS = (
    broadcast,
    concatenate,
    dynamic_slice,
    pad,
    reshape,
    reverse,
    slice_,
    transpose,
    update,
    written,
)


def _program(seed: str, *kinds: Callable[[Program, Array], Array], constants: float = 0) -> Program:
    p = Program(random.Random(seed), constants)
    bounds = [p.c.choice((1, 1, 2, 3, 4)) for _ in range(p.c.randint(1, 3))]
    x = p.array(bounds, [p.c.random() < 0.6 for _ in bounds])
    for kind in kinds or p.c.choices(KINDS, k=p.c.randint(2, 4)):
        if math.prod(x.bounds) <= 300:
            x = kind(p, x)
    return p


def _check(p: Program, *, compiled: bool = False) -> int:
    """How many runs were compared."""
    text = p.text
    before, after = parse_module(text, "moves.hlo"), parse_module(text, "moves.hlo")
    assert not verify_module(before)
    DynamicPadderPass().run(HloModule(after), Trace())
    assert not verify_module(after), print_module(after)
    run = mlirhlo.compile(mlirhlo.parse(text)) if compiled else None
    compared = 0
    for number in range(RUNS):
        c = random.Random(number)
        arguments = [draw(c) for draw in p.draw]
        try:
            (expected,) = run_module(before, arguments, check=True)
        except HloError as problem:
            if problem.code != "HLO0306":  # sizes that do not fit
                raise
            continue
        compared += 1
        results = run(*arguments) if run else run_module(after, arguments, check=True)[0]
        a, b = _valid(expected), _valid(results)
        assert a.shape == b.shape, (text, arguments, a, b)
        assert np.array_equal(a, b), (text, arguments, a, b)
    return compared


def _valid(value: object) -> np.ndarray:
    return value.valid if isinstance(value, DynamicArray) else np.asarray(value)


@pytest.mark.parametrize("kind", [*KINDS, gather, static_slice], ids=lambda kind: kind.__name__)
def test_each_kind_alone(kind: Callable[[Program, Array], Array]) -> None:
    assert sum(_check(_program(f"{kind.__name__} {n}", kind)) for n in range(30)) > 50


def test_chains() -> None:
    assert sum(_check(_program(f"chain {n}")) for n in range(30)) > 50


def _check_passes(p: Program, passes: Sequence[str]) -> int:
    """How many runs after passes that changed something were compared."""
    before = parse_module(p.text, "moves.hlo")
    compared = 0
    for name in passes:
        after = clone_module(before)
        run_pipeline(after, pipelines_of(name) if name in PLATFORMS else parse_pipeline(name))
        assert not verify_module(after), (name, print_module(after))
        for number in range(RUNS if print_module(after) != print_module(before) else 0):
            c = random.Random(number)
            arguments = [draw(c) for draw in p.draw]
            try:
                (expected,) = run_module(before, arguments, check=True)
            except HloError:
                continue
            a, b = _valid(expected), _valid(run_module(after, arguments, check=True)[0])
            assert a.shape == b.shape, (name, p.text, arguments, a, b)
            assert np.array_equal(a, b), (name, p.text, arguments, a, b)
            compared += 1
    return compared


ALGSIMP = ("algsimp", "algsimp{is-layout-sensitive=true}")
PLATFORMS = ("cpu", "gpu", "tpu")


def test_algebraic_rules_know_sizes_from_bounds() -> None:
    programs = [_program(f"passes {n}", constants=0.7) for n in range(110)]
    assert sum(_check_passes(p, ALGSIMP) for p in programs) > 300


@pytest.mark.slow
def test_pipelines_on_chains() -> None:
    programs = [_program(f"passes {n}", constants=0.7) for n in range(80)]
    assert sum(_check_passes(p, (*ALGSIMP, *PLATFORMS)) for p in programs) > 500


@pytest.mark.slow
def test_chains_more() -> None:
    assert sum(_check(_program(f"more {n}")) for n in range(200)) > 300


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in (10, 20))]
)
def test_machine_code_of_chains(first: int) -> None:
    programs = [_program(f"code {n}") for n in range(first, first + 10)]
    assert sum(_check(program, compiled=True) for program in programs) > 15
