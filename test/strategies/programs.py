"""Random programs for passes: functions of `jax.numpy` on a few small arrays, drawn step by step.

Each step calls one of `STEPS` on values that the program has; what does not fit the drawn shapes is drawn
again. The same seed gives the same program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array: TypeAlias = Any
Step: TypeAlias = Callable[[random.Random, Sequence[Array]], Array]

SHAPES = ((4,), (6,), (1, 4), (4, 4), (2, 6), (3, 4), (4, 1, 3), (2, 3, 4))
TYPES = ("float32", "float32", "float32", "int32", "bfloat16")
MOST_ELEMENTS = 4096

_UNARY = (jnp.negative, jnp.abs, jnp.tanh, jnp.sin, jax.nn.sigmoid, jnp.square, jnp.sign, jnp.exp)
_BINARY = (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum)
_REDUCTIONS = (jnp.sum, jnp.max, jnp.min, jnp.mean, jnp.prod)


def _is_float(x: Array) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _needs(condition: bool) -> None:
    if not condition:
        raise ValueError("the step does not fit what was drawn")


def _axis(r: random.Random, x: Array) -> int:
    _needs(x.ndim > 0)
    return r.randrange(x.ndim)


def _two(r: random.Random, values: Sequence[Array]) -> tuple[Array, Array]:
    x = r.choice(values)
    alike = [v for v in values if v.shape == x.shape and v.dtype == x.dtype]
    return x, r.choice(alike)


def _unary(r: random.Random, values: Sequence[Array]) -> Array:
    return r.choice(_UNARY)(r.choice(values))


def _binary(r: random.Random, values: Sequence[Array]) -> Array:
    return r.choice(_BINARY)(*_two(r, values))


def _with_number(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    number = np.asarray(r.choice((0, 1, 2, -1, 3)), x.dtype)
    operation = r.choice((*_BINARY, *((jnp.divide,) if _is_float(x) else ())))
    return operation(x, number) if r.random() < 0.7 else operation(number, x)


def _quotient(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    _needs(_is_float(x))
    return x / r.choice((jnp.sqrt(jnp.abs(y) + 1), jnp.exp(y), y))


def _select(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    return jnp.where(r.choice((x > y, x == x, x != y)), x, y)


def _reshape(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    sizes = [s for s in (*SHAPES, (x.size,), (1, x.size), (x.size, 1)) if np.prod(s) == x.size]
    return x.reshape(r.choice(sizes))


def _transpose(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    return jnp.transpose(x, r.sample(range(x.ndim), x.ndim))


def _broadcast(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    _needs(x.ndim < 3)
    return jnp.broadcast_to(x, (r.choice((1, 2, 3)), *x.shape))


def _reduce(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    return r.choice(_REDUCTIONS)(x, axis=_axis(r, x)).astype(x.dtype)


def _extreme(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    return r.choice((jnp.argmax, jnp.argmin))(x, axis=_axis(r, x)).astype(jnp.int32)


def _slice(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    axis = _axis(r, x)
    start = r.randrange(x.shape[axis])
    stop = r.randint(start + 1, x.shape[axis])
    return lax.slice_in_dim(x, start, stop, r.choice((1, 1, 2)), axis)


def _dynamic_slice(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    axis = _axis(r, x)
    start = r.choice((jnp.int32(1), jnp.argmax(x.ravel()).astype(jnp.int32)))
    return lax.dynamic_slice_in_dim(x, start, r.randint(1, x.shape[axis]), axis)


def _update(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    axis = _axis(r, x)
    part = lax.slice_in_dim(x, 0, r.randint(1, x.shape[axis]), 1, axis)
    return lax.dynamic_update_slice_in_dim(x, part + part, r.randrange(2), axis)


def _concatenate(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    return jnp.concatenate((x, y), _axis(r, x))


def _pad(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    edges = [(r.choice((0, 0, 1, -1)), r.choice((0, 1)), r.choice((0, 0, 1))) for _ in x.shape]
    return lax.pad(x, np.asarray(0, x.dtype), edges)


def _reverse(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    return jnp.flip(x, _axis(r, x))


def _dot(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    _needs(x.ndim >= 1)
    return jnp.einsum(
        r.choice(("...ij,...kj->...ik", "...ij,...ij->...j")) if x.ndim > 1 else "i,i->", x, y
    )


def _gather(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    axis = _axis(r, x)
    indices = np.asarray([r.randrange(x.shape[axis]) for _ in range(3)])
    return jnp.take(x, jnp.asarray(indices), axis=axis, mode=r.choice(("clip", "fill")))


def _scatter(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    _needs(x.ndim > 0)
    rows = x.at[jnp.asarray([0, x.shape[0] - 1])]
    return rows.add(1) if r.random() < 0.5 else rows.set(2)


def _sort(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    axis = _axis(r, x)
    return jnp.sort(x, axis=axis) if r.random() < 0.6 else jnp.argsort(x, axis=axis)


def _top(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    _needs(x.ndim > 0 and x.shape[-1] > 1)
    return r.choice(lax.top_k(x, 2))


def _cumulative(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    return r.choice((jnp.cumsum, jnp.cumprod))(x, axis=_axis(r, x)).astype(x.dtype)


def _loop(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    count = r.choice((0, 1, 3, 5))
    scaled = r.choice((lambda s: s + y, lambda s: s * 2 - y, lambda s: jnp.maximum(s, y * y)))
    return lax.fori_loop(0, count, lambda _, s: scaled(s), x)


def _branch(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    _needs(x.size > 0)
    first = r.choice((True, x.ravel()[0] > 0))
    return lax.cond(first, lambda a, b: a + b, lambda a, b: a - b, x, y)


def _call(r: random.Random, values: Sequence[Array]) -> Array:
    x, y = _two(r, values)
    return jax.jit(lambda a, b: jnp.maximum(a, b) + a)(x, y)


def _convert(r: random.Random, values: Sequence[Array]) -> Array:
    x = r.choice(values)
    if jnp.issubdtype(x.dtype, jnp.floating):
        return x.astype(r.choice(("float32", "bfloat16")))
    return x.astype(r.choice(("int32", "float32")))


def _iota(r: random.Random, values: Sequence[Array]) -> Array:
    shape = r.choice(SHAPES)
    return lax.broadcasted_iota(jnp.int32, shape, r.randrange(len(shape)))


def _constant(r: random.Random, values: Sequence[Array]) -> Array:
    shape = r.choice(SHAPES)
    if r.random() < 0.5:
        return jnp.full(shape, r.choice((0, 1, 2)), r.choice(TYPES))
    return jnp.asarray(np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 5)


STEPS: tuple[Step, ...] = (
    *(_unary, _unary, _binary, _binary, _binary, _with_number, _with_number, _quotient, _select),
    *(_reshape, _reshape, _transpose, _transpose, _broadcast, _reduce, _reduce, _extreme, _slice),
    *(_dynamic_slice, _update, _concatenate, _pad, _reverse, _dot, _gather, _scatter, _sort, _top),
    *(_cumulative, _loop, _branch, _call, _convert, _iota, _constant),
)


def arguments_of(seed: int) -> list[Array]:
    """Inputs of the program of a seed: small numbers, which sums and products keep exact for long."""
    r = random.Random(seed)
    shapes = [r.choice(SHAPES) for _ in range(2)]
    numbers = np.random.default_rng(seed)
    return [
        numbers.integers(-4, 5, shape).astype(jnp.dtype(r.choice(TYPES)))
        for shape in (*shapes, shapes[0])
    ]


def program(seed: int, steps: int = 16) -> Callable[..., tuple[Array, ...]]:
    """A function of `arguments_of(seed)`, of so many steps; its last values are its results."""

    def run(*arguments: Array) -> tuple[Array, ...]:
        r = random.Random(seed + 1)
        values: list[Array] = list(arguments)
        while len(values) < len(arguments) + steps:
            step = r.choice(STEPS)
            try:
                made = step(r, values[-8:])
            except (TypeError, ValueError):
                continue
            if made.size <= MOST_ELEMENTS and made.dtype != bool:
                values.append(made)
        return tuple(values[-6:])

    return run


def module_text(seed: int, steps: int = 16) -> str:
    """The program as HLO text, unoptimised."""
    lowered = jax.jit(program(seed, steps), keep_unused=True).lower(*arguments_of(seed))
    text: str = cast("Any", lowered.compiler_ir("hlo")).as_hlo_text(True)
    return text
