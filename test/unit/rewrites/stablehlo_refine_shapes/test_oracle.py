# ruff: noqa: E501  # a case a line
"""Programs that `jax.export` writes with symbolic shapes run for shapes given later, as JAX does."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirhlo

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

ALL = bool(os.environ.get("MLIRHLO_POLYMORPHIC"))
"""Set to run every program of `CASES`, not one in three."""


def f32(*sizes: int) -> np.ndarray:
    count = int(np.prod(sizes))
    return np.sin(np.arange(1, count + 1, dtype=np.float32)).reshape(sizes)


I32 = np.array([0, 5, 2], np.int32)
KEY = np.array([1, 2], np.uint32)

CASES: dict[str, tuple[str, Callable[[Any, Any, Any], Callable[..., Any]], tuple[Any, ...]]] = {
    "einsum": ("b,3,4 b,4,2", lambda j, n, lax: lambda x, y: n.einsum("bij,bjk->bik", x, y), (f32(5, 3, 4), f32(5, 4, 2))),
    "convolution": ("b,h,w,3 3,3,3,4", lambda j, n, lax: lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), (f32(2, 7, 8, 3), f32(3, 3, 3, 4))),
    "reduce-window": ("b,h,w,3", lambda j, n, lax: lambda x: lax.reduce_window(x, -n.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"), (f32(2, 7, 8, 3),)),
    "top-k": ("b", lambda j, n, lax: lambda x: lax.top_k(x, x.shape[0] // 2), (f32(9),)),
    "sort": ("b,h", lambda j, n, lax: lambda x: (n.sort(x), n.argsort(x, axis=0)), (f32(4, 5),)),
    "cumulative-sum": ("b,3", lambda j, n, lax: lambda x: n.cumsum(x, axis=0), (f32(6, 3),)),
    "gather": ("b,3 n", lambda j, n, lax: lambda x, i: x[i], (f32(6, 3), I32)),
    "scatter": ("b,3 n", lambda j, n, lax: lambda x, i: x.at[i].add(1.0), (f32(6, 3), I32)),
    "reshape": ("2*b,3", lambda j, n, lax: lambda x: x.reshape((2, -1)), (f32(6, 3),)),
    "dynamic-slice": ("b,3 ", lambda j, n, lax: lambda x, i: lax.dynamic_slice(x, (i, 0), (x.shape[0] - 1, 2)), (f32(6, 3), np.int32(1))),
    "scan": ("b,3", lambda j, n, lax: lambda x: lax.scan(lambda c, v: (c + v, c * v), n.zeros(3), x), (f32(6, 3),)),
    "loop": ("b,3", lambda j, n, lax: lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].set(c[i] * i), x), (f32(6, 3),)),
    "branches": ("b,3 ", lambda j, n, lax: lambda x, p: lax.cond(p > 0, lambda v: v * 2, lambda v: n.flip(v, 0), x), (f32(6, 3), np.int32(0))),
    "random": ("2 b,3", lambda j, n, lax: lambda k, x: j.random.uniform(k, x.shape), (KEY, f32(6, 3))),
    "concatenate": ("b,3 n,3", lambda j, n, lax: lambda x, y: n.concatenate([x, y, x]), (f32(6, 3), f32(2, 3))),
    "gradient": ("b,4 4,n", lambda j, n, lax: lambda x, y: j.grad(lambda w: n.sum(n.tanh(x @ w) ** 2))(y), (f32(5, 4), f32(4, 3))),
    "pad": ("b,3", lambda j, n, lax: lambda x: n.pad(x, ((1, 2), (x.shape[0], 0)), mode="edge"), (f32(5, 3),)),
    "sizes": ("b+1,3", lambda j, n, lax: lambda x: x[: x.shape[0] % 4 + 1] * (x.shape[0] // 3), (f32(7, 3),)),
    "split": ("2*b,4", lambda j, n, lax: lambda x: n.split(x, 2), (f32(6, 4),)),
    "repeat": ("b,4", lambda j, n, lax: lambda x: n.repeat(x, 3, axis=0), (f32(6, 4),)),
    "chlo": ("b,8", lambda j, n, lax: lambda x: j.scipy.special.erf(x) + n.sinh(x), (f32(5, 8),)),
}  # fmt: skip
"""Shapes of the arguments (a missing one is a scalar), the function, arguments."""


def exported(name: str) -> tuple[Any, Any]:
    """The artifact of a case, and the function."""
    import jax
    import jax.numpy as jnp
    from jax import export, lax

    shapes, make, arguments = CASES[name]
    scope = export.SymbolicScope()
    given = [
        jax.ShapeDtypeStruct(
            export.symbolic_shape(f"({text})" if text else "()", scope=scope), one.dtype
        )
        for text, one in zip(shapes.split(" "), arguments, strict=True)
    ]
    function = jax.jit(make(jax, jnp, lax))
    return export.export(function)(*given), function


@pytest.mark.parametrize("name", list(CASES) if ALL else list(CASES)[::3])
def test_as_jax(name: str) -> None:
    """The same shapes and values, no size left open, and for other sizes another program."""
    import jax

    from mlirhlo.formats.stablehlo import parse_module
    from mlirhlo.rewrites.stablehlo_refine_shapes import is_dynamic, refine_for

    artifact, function = exported(name)
    text = artifact.mlir_module()
    arguments = CASES[name][2]
    program = parse_module(text)
    assert is_dynamic(program)
    assert not is_dynamic(refine_for(program, [np.shape(a) for a in arguments]))
    found = mlirhlo.parse(text)(*arguments)
    got = found if isinstance(found, tuple) else (found,)
    wanted = jax.tree.leaves(function(*arguments))
    assert [np.shape(a) for a in got] == [a.shape for a in wanted]
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["einsum", "sizes"])
def test_types_of_jaxlib(name: str) -> None:
    """jaxlib's own refinement gives the results the same types."""
    from jaxlib import _jax  # type: ignore[attr-defined]
    from mlir_oracle import bytecode, parse

    from mlirhlo.formats.stablehlo import parse_module, print_module
    from mlirhlo.rewrites.stablehlo_refine_shapes import (
        read_types,
        refine_arguments,
        refine_shapes,
    )

    artifact, _ = exported(name)
    program = parse_module(artifact.mlir_module())
    types = ",".join(f"tensor<{'x'.join(map(str, (*np.shape(a), 'f32')))}>" for a in CASES[name][2])
    refine_arguments(program, read_types(types))
    theirs = str(parse(_jax.mlir.refine_polymorphic_shapes(bytecode(print_module(program)))))
    assert "tensor<?" in print_module(program)
    refine_shapes(program)
    assert signature(print_module(program)) == signature(theirs)


def signature(text: str) -> str:
    """Types of the arguments and results of `@main`."""
    head = text.split("@main(")[1].split(" {\n")[0]
    return " ".join(part.split(">")[0] for part in head.split("tensor<")[1:])
