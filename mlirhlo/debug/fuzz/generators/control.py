"""Calls, branches, loops, tuples, tokens, constants, random bits."""

from __future__ import annotations

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices, type_of
from mlirhlo.debug.fuzz.generators.instructions import (
    COMMON,
    Case,
    arguments,
    computation,
    executes,
    name_of,
    pick_reducer,
    sizes,
)
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape, parse_shape


@executes("call", "fusion")
def call(c: Choices, opcode: str) -> Case:
    name, fold = pick_reducer(c)
    shape = c.shape(c.integer(0, 2), 0)
    full = sizes(name, shape)
    how = "to_apply=@f" if opcode == "call" else "kind=kLoop, calls=@f"
    return Case(
        f"{full} {opcode}(@p0, @p1), {how}",
        [c.small(name, shape), c.small(name, shape)],
        computations=computation("f", [full, full], f"{full} {fold}(@a, @b)"),
    )


@executes("conditional")
def conditional(c: Choices, opcode: str) -> Case:
    """By a predicate, or by an index that may be out of range (then the last branch runs)."""
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 2), 0)
    full = sizes(name, shape)
    count = c.integer(1, 3)
    by_index = c.integer(0, 1) == 1
    if not by_index:
        count = 2
    folds = [c.pick(("add", "multiply")) for _ in range(count)]
    branches = [
        computation(f"f{i}", [full], f"{full} {fold}(@a, @a)") for i, fold in enumerate(folds)
    ]
    names = ", ".join(f"@f{i}" for i in range(count))
    keys = (
        f"branch_computations={{{names}}}"
        if by_index
        else "true_computation=@f0, false_computation=@f1"
    )
    which = np.array(c.integer(-1, 3), np.int32) if by_index else np.array(c.integer(0, 1) == 1)
    inputs = [which, *(c.small(name, shape) for _ in range(count))]
    return Case(
        f"{full} conditional({arguments(count + 1)}), {keys}",
        inputs,
        computations="".join(branches),
    )


@executes("while")
def while_(c: Choices, opcode: str) -> Case:
    """A counted loop over a tuple."""
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 2), 0)
    full, fold = sizes(name, shape), c.pick(("add", "multiply"))
    state = f"(s32[], {full})"
    body = computation(
        "f",
        [state],
        "@i = s32[] get-tuple-element(@a), index=0",
        f"@x = {full} get-tuple-element(@a), index=1",
        "@one = s32[] constant(1)",
        "@n = s32[] add(@i, @one)",
        f"@y = {full} {fold}(@x, @x)",
        f"{state} tuple(@n, @y)",
    )
    condition = computation(
        "g",
        [state],
        "@gi = s32[] get-tuple-element(@a), index=0",
        f"@m = s32[] constant({c.integer(0, 3)})",
        "pred[] compare(@gi, @m), direction=LT",
    )
    return Case(
        f"{state} while(@t), condition=@g, body=@f",
        [np.array(c.integer(-2, 4), np.int32), c.small(name, shape)],
        computations=body + condition,
        before=(f"@t = {state} tuple(@p0, @p1)",),
    )


@executes("tuple", "get-tuple-element", "opt-barrier", "parameter")
def tuples(c: Choices, opcode: str) -> Case:
    inputs = [c.values(c.pick(COMMON), c.shape(c.integer(0, 2), 0)) for _ in range(c.integer(1, 3))]
    shapes = [sizes(name_of(i), i.shape) for i in inputs]
    whole = f"({', '.join(shapes)})"
    if opcode in ("tuple", "parameter"):
        return Case(f"{whole} tuple({arguments(len(inputs))})", inputs)
    before = (f"@t = {whole} tuple({arguments(len(inputs))})",)
    if opcode == "opt-barrier":
        return Case(f"{whole} opt-barrier(@t)", inputs, before=before)
    at = c.integer(0, len(inputs) - 1)
    return Case(f"{shapes[at]} get-tuple-element(@t), index={at}", inputs, before=before)


@executes("after-all", "add-dependency", "domain")
def tokens(c: Choices, opcode: str) -> Case:
    data = c.values(c.pick(COMMON), c.shape(c.integer(0, 2), 0))
    full = sizes(name_of(data), data.shape)
    if opcode == "domain":
        sides = "entry={replicated}, exit={replicated}"
        return Case(f'{full} domain(@p0), domain={{kind="sharding", {sides}}}', [data])
    before = ("@k = token[] after-all()", "@l = token[] after-all(@k, @k)")
    return Case(f"{full} add-dependency(@p0, @l)", [data], before=before)


@executes("constant")
def constant(c: Choices, opcode: str) -> Case:
    """A literal, printed exactly."""
    name, shape = c.pick(COMMON), c.shape(c.integer(0, 2), 0)
    data = c.values(name, shape)
    if type_of(name).is_float:  # the payload of a NaN is not compared
        data = np.where(np.isnan(data.astype(np.float64)), data.dtype.type(1), data)
    full = parse_shape(sizes(name, shape))
    assert isinstance(full, ArrayShape)
    return Case(f"{sizes(name, shape)} constant({Literal.from_array(full, data).to_text()})", [])


@executes("rng-bit-generator")
def rng_bit_generator(c: Choices, opcode: str) -> Case:
    algorithm = c.pick(("rng_three_fry", "rng_philox"))
    words = 2 if algorithm == "rng_three_fry" else c.pick((2, 3))
    # Of signed bits XLA:CPU makes arrays of the unsigned type.
    name, shape = c.pick(("u32", "u64", "u16", "u8")), c.shape(c.integer(0, 3), 1, 6)
    state = np.array([c.integer(0, (1 << 64) - 1) for _ in range(words)], np.uint64)
    return Case(
        f"(u64[{words}], {sizes(name, shape)}) rng-bit-generator(@p0), algorithm={algorithm}",
        [state],
    )


@executes("custom-call")
def custom_call(c: Choices, opcode: str) -> Case:
    """The targets that JAX's programs hold on CPU beside LAPACK's, which have tests of their own."""
    if c.integer(0, 1):
        data = c.values(c.pick(COMMON), c.shape(c.integer(0, 2), 1))
        full = sizes(name_of(data), data.shape)
        return Case(f'{full} custom-call(@p0), custom_call_target="Sharding"', [data])
    columns = c.integer(1, 9)
    k = c.integer(1, columns)
    data = (np.array([c.permutation(columns) for _ in range(c.integer(1, 3))]) - 2).astype("f4")
    result = [data.shape[0], k]
    return Case(
        f"({sizes('f32', result)}, {sizes('s32', result)}) custom-call(@p0), "
        f'custom_call_target="TopK", called_computations={{@f}}',
        [data],
        computations=computation(
            "f", ["f32[]", "f32[]", "s32[]", "s32[]"], "pred[] compare(@a, @b), direction=GT"
        ),
    )
