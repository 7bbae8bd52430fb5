"""Merged maps compute what the maps did; index maps in canonical form are the maps they were."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest
from structured_support import kernels_of
from support import calls_of
from unit.lowering.test_structured_kernels import INSTRUCTIONS, program
from xdsl.ir.affine import AffineExpr, AffineMap

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.structured import KernelOp, MapOp
from mlirhlo.dialects.structured.index_maps import (
    composed,
    flattened,
    simplified,
    simplified_map,
    unflattened,
    value_range,
)
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.interp.structured import run_kernel
from mlirhlo.lowering.loops import optimized_loops
from mlirhlo.lowering.structured import (
    between,
    optimize_kernel,
    structured_between,
    to_structured,
)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_merged_kernel_is_the_instruction(name: str) -> None:
    module = parse_module(program(INSTRUCTIONS[name]))
    (outcome,) = kernels_of(module, make_fake_arguments(module), passes=optimize_kernel)
    assert outcome.verdict in ("equal", "near"), outcome


def kernel_of(text: str) -> KernelOp:
    """The kernel of a fusion's computation `f`."""
    view = HloModule(parse_module(text))
    return to_structured(view.entry.root, view.by_name(), "k")


def chain(step: str, length: int) -> KernelOp:
    """A fusion of so many steps, each written with `{0}` for its number and `{1}`, `{2}` for the ones before."""
    lines = "\n".join(
        f"  v{n} = f32[6,4] {step.format(n, f'v{n - 1}', f'v{n - 2}')}" for n in range(2, length)
    )
    return kernel_of(
        f"HloModule m\nf {{\n  v0 = f32[6,4] parameter(0)\n  v1 = f32[6,4] negate(v0)\n{lines}\n"
        f"  ROOT r = f32[6,4] abs(v{length - 1})\n}}\n"
        "ENTRY e { x = f32[6,4] parameter(0) ROOT r = f32[6,4] fusion(x), kind=kLoop, calls=f }\n"
    )


STEPS = ("negate({1})", "add({1}, {2})", "multiply({1}, {1})", "reverse({1}), dimensions={{0,1}}")


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("step", STEPS)
def test_chains_become_one_map(step: str) -> None:
    kernel = chain(step, 40)
    x = np.random.default_rng(1).standard_normal((6, 4)).astype(np.float32)
    (before,) = run_kernel(kernel, [x])
    optimize_kernel(kernel)
    kernel.verify()
    (only,) = [op for op in kernel.block.ops if isinstance(op, MapOp)]
    (after,) = run_kernel(kernel, [x])
    assert before.tobytes() == after.tobytes()
    assert sum(1 for _ in only.body.block.ops) <= 42


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("step", STEPS)
def test_work_follows_the_length(step: str) -> None:
    def work(length: int) -> int:
        kernel = chain(step, length)
        return calls_of(lambda: optimize_kernel(kernel))

    work(40)
    assert work(400) < 2.2 * work(200)


@pytest.mark.slow
def test_long_chain() -> None:
    """Nothing recurses."""
    kernel = chain("add({1}, {2})", 8_000)
    optimize_kernel(kernel)
    assert sum(1 for op in kernel.block.ops if isinstance(op, MapOp)) == 1


def test_stencils_stay_small() -> None:
    """Reads at many shifts of what reads at many shifts are not multiplied out."""
    shifted = "\n".join(
        f"  a{n} = f32[{80 - n}] slice(v{n - 1}), slice={{[0:{80 - n}]}}\n"
        f"  b{n} = f32[{80 - n}] slice(v{n - 1}), slice={{[1:{81 - n}]}}\n"
        f"  sum{n} = f32[{80 - n}] add(a{n}, b{n})\n  v{n} = f32[{80 - n}] tanh(sum{n})"
        for n in range(1, 40)
    )
    kernel = kernel_of(
        f"HloModule m\nf {{\n  v0 = f32[80] parameter(0)\n{shifted}\n  ROOT r = f32[41] negate(v39)\n}}\n"
        "ENTRY e { x = f32[80] parameter(0) ROOT r = f32[41] fusion(x), kind=kLoop, calls=f }\n"
    )
    x = np.random.default_rng(1).standard_normal(80).astype(np.float32)
    (before,) = run_kernel(kernel, [x])
    optimize_kernel(kernel)
    (after,) = run_kernel(kernel, [x])
    assert before.tobytes() == after.tobytes()
    bodies = [sum(1 for _ in op.body.block.ops) for op in kernel.block.ops if isinstance(op, MapOp)]
    assert sum(bodies) < 40 * 6


def random_expression(rng: random.Random, rank: int, depth: int) -> AffineExpr:
    """An index expression with quotients and remainders."""
    kind = rng.randrange(6)
    if not depth or not kind:
        if rng.random() < 0.8:
            return AffineExpr.dimension(rng.randrange(rank))
        return AffineExpr.constant(rng.randrange(-5, 6))
    one = random_expression(rng, rank, depth - 1)
    if kind == 1:
        return one + random_expression(rng, rank, depth - 1)
    if kind == 2:
        return one * rng.choice([-3, -1, 0, 1, 2, 4, 6])
    divisor = rng.choice([1, 2, 3, 4, 6])
    return one // divisor if kind < 5 else one % divisor


def test_simplified_expressions_are_equal() -> None:
    rng = random.Random(1)
    for _ in range(400):
        sizes = [rng.randrange(1, 6) for _ in range(3)]
        expr = random_expression(rng, 3, 4)
        simple = simplified(expr, sizes)
        low, high = value_range(expr, sizes)
        for index in itertools.product(*map(range, sizes)):
            value = expr.eval(index, ())
            assert simple.eval(index, ()) == value, (str(expr), str(simple), sizes)
            assert low <= value <= high


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("one", "other"),
    [((6, 4), (2, 3, 4)), ((3, 8), (4, 6)), ((2, 3, 5), (30,)), ((1, 6, 1), (2, 3)), ((), (1, 1))],
)
def test_reshapes_there_and_back_are_the_identity(
    one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    def reshape(source: tuple[int, ...], target: tuple[int, ...]) -> AffineMap:
        dims = [AffineExpr.dimension(dim) for dim in range(len(target))]
        indices = unflattened(flattened(dims, target), source)
        return simplified_map(AffineMap(len(target), 0, indices), target)

    there, back = reshape(one, other), reshape(other, one)
    both = composed(there, back, one)
    dims = tuple(AffineExpr.dimension(dim) for dim in range(len(one)))
    assert both == simplified_map(AffineMap(len(one), 0, dims), one)


CHAINS = {
    "constants": "c = f32[] constant(2) b = A broadcast(c), dimensions={} m = A multiply(x, b) ROOT r = A add(m, b)",
    "columns": "v = f32[40] parameter(1) b = A broadcast(v), dimensions={1} m = A multiply(x, b) ROOT r = A tanh(m)",
    "types": "h = B convert(x) p = P compare(x, x), direction=LT n = B negate(h) ROOT r = B select(p, n, h)",
    "layouts": "y = A{0,1} parameter(1) s = A add(x, y) ROOT r = A exponential(s)",
    "scalar among arrays": "l = f32[] parameter(1) k = A clamp(l, x, l) ROOT r = A multiply(k, x)",
    "read twice": "m = A sine(x) q = A multiply(m, m) ROOT r = A add(q, m)",
}


@pytest.mark.parametrize("body", CHAINS.values(), ids=CHAINS)
def test_a_chain_is_the_map_that_merging_makes(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for letter, type_ in (("A", "f32"), ("B", "bf16"), ("P", "pred")):
        body = re.sub(rf"\b{letter}\b", f"{type_}[6,40]", body)
    entry = mlirhlo.parse(f"ENTRY e {{ x = f32[6,40] parameter(0) {body} }}").hlo.entry
    operands = [p.output for p in entry.parameters]

    def kernel() -> KernelOp:
        return structured_between("k", [(entry.root.output, None)], operands)

    chain = kernel()
    assert sum(isinstance(op, MapOp) for op in chain.block.ops) == 1
    monkeypatch.setattr(between, "_is_chain", lambda *_: False)
    one_by_one = kernel()
    assert sum(isinstance(op, MapOp) for op in one_by_one.block.ops) > 1
    assert str(optimized_loops(chain)) == str(optimized_loops(one_by_one))
