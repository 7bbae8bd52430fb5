"""Opcodes that XLA:CPU does not execute, or not as programs come in: generators for what compares with ourselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import COMMON, Case, computation, sizes

OTHERS: dict[str, Callable[[Choices, str], Case]] = {}
"""By opcode."""


def generates(
    *opcodes: str,
) -> Callable[[Callable[[Choices, str], Case]], Callable[[Choices, str], Case]]:
    """Registers the generator of opcodes."""

    def register(function: Callable[[Choices, str], Case]) -> Callable[[Choices, str], Case]:
        OTHERS.update(dict.fromkeys(opcodes, function))
        return function

    return register


@generates("bitcast")
def bitcast(c: Choices, opcode: str) -> Case:
    """A reshape that moves nothing."""
    name, shape = c.pick(COMMON), c.shape(c.integer(1, 3))
    result = [1, *shape] if c.chance(50) else [int(np.prod(shape))]
    return Case(f"{sizes(name, result)} bitcast(@p0)", [c.values(name, shape)])


@generates("copy-start", "copy-done")
def copies(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 3))
    full = sizes(name, shape)
    before = (f"@s = ({full}, {full}, u32[]) copy-start(@p0)",)
    return Case(f"{full} copy-done(@s)", [c.values(name, shape)], before=before)


@generates("async-start", "async-update", "async-done")
def asynchronous(c: Choices, opcode: str) -> Case:
    name, shape = c.pick(("f32", "s32", "f64")), c.shape(c.integer(0, 3))
    full = sizes(name, shape)
    state = f"(({full}, {full}), {full}, u32[])"
    before = [f"@s = {state} async-start(@p0, @p1), calls=@f"]
    if opcode == "async-update":
        before.append(f"@u = {state} async-update(@s)")
    last = "@u" if opcode == "async-update" else "@s"
    return Case(
        f"{full} async-done({last})",
        [c.small(name, shape), c.small(name, shape)],
        computations=computation("f", [full, full], f"{full} add(@a, @b)"),
        before=tuple(before),
    )


@generates("ragged-dot")
def ragged_dot(c: Choices, opcode: str) -> Case:
    """Rows in groups, each with a matrix of its own; or the contracted dimension in groups."""
    name = c.pick(("f32", "s32", "f64"))
    rows, inner, columns, groups = (c.integer(1, 5) for _ in range(4))
    counts = np.array([c.integer(0, 3) for _ in range(groups)], np.int32)
    if c.chance(60):
        shapes = [rows, inner], [groups, inner, columns], [rows, columns]
        ragged = "rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    else:
        shapes = [rows, inner], [inner, columns], [groups, rows, columns]
        ragged = "rhs_contracting_dims={0}, lhs_ragged_dims={1}"
    lhs, rhs, result = shapes
    return Case(
        f"{sizes(name, result)} ragged-dot(@p0, @p1, @p2), lhs_contracting_dims={{1}}, {ragged}",
        [c.small(name, lhs), c.small(name, rhs), counts],
    )


@generates("stochastic-convert")
def stochastic_convert(c: Choices, opcode: str) -> Case:
    shape = c.shape(c.integer(0, 3))
    bits = c.arranged(np.array([0, 1, 77, 2**31, 2**32 - 1], np.uint32), shape)
    result = c.pick(("s32", "bf16", "s16"))
    return Case(
        f"{sizes(result, shape)} stochastic-convert(@p0, @p1)", [c.small("f32", shape), bits]
    )


@generates("scaled-dot")
def scaled_dot(c: Choices, opcode: str) -> Case:
    """Operands in blocks along the contracted dimension, each with a scale."""
    rows, columns, blocks, block = (
        c.integer(1, 4),
        c.integer(1, 4),
        c.integer(1, 3),
        c.pick((1, 2, 4)),
    )
    inner = blocks * block
    return Case(
        f"f32[{rows},{columns}] scaled-dot(@p0, @p1, @p2, @p3), lhs_contracting_dims={{1}}, "
        "rhs_contracting_dims={0}",
        [
            c.small("f32", [rows, inner]),
            c.small("f32", [rows, blocks]),
            c.small("f32", [inner, columns]),
            c.small("f32", [blocks, columns]),
        ],
    )
