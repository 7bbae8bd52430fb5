"""Running partitioned modules: arrays cut into tiles, devices simulated, tiles compared.

What a device has beyond the end of an array is filled with values that spoil any result they get into.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.fuzz.generators.choices import Seeded
from mlirhlo.debug.fuzz.generators.sharded import Program, program
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.sharding import Sharding
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_module, run_spmd
from mlirhlo.interp.machine import Machine
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

LONG = PrintOptions(large_constants=True)
Array = Any


def leaves(shape: Shape) -> tuple[Shape, ...]:
    """Arrays and tokens of a shape, tuples flattened."""
    if isinstance(shape, TupleShape):
        return tuple(leaf for element in shape.elements for leaf in leaves(element))
    return (shape,)


def shardings_of(op: Any) -> list[Sharding | None]:
    """The sharding of each leaf of an instruction's result."""
    count = len(leaves(op.shape))
    if op.sharding is None:
        return [None] * count
    return list(op.sharding.expanded(count).elements)


def tile(array: Array, sharding: Sharding | None, device: int) -> Array:
    """A device's tile; what lies beyond the array, and the array of one device on the others, is NaN, or
    the greatest integer.
    """
    if sharding is None:
        return array
    kind = array.dtype.kind
    fill: Any = True if kind == "b" else np.iinfo(array.dtype).max if kind in "iu" else np.nan
    with np.errstate(invalid="ignore"):
        spoilt = np.full(sharding.tile_sizes(array.shape), fill).astype(array.dtype)
    bounds = sharding.tile_bounds(array.shape, device)
    if bounds is not None:
        part = array[tuple(slice(a, b) for a, b in bounds)]
        spoilt[tuple(slice(n) for n in part.shape)] = part
    return spoilt


def partitioned(
    text: str, count: int, before: str = "sharding-propagation", options: str = ""
) -> Any:
    """The module of one device, valid, as its own text says it."""
    module = parse_module(text)
    first = f"{before}{{num-partitions={count}}}," if before else ""
    run_pipeline(
        module, parse_pipeline(f"{first}spmd-partitioning{{num-partitions={count} {options}}}")
    )
    diagnostics = verify_module(module)
    assert not diagnostics, diagnostics[0]
    return parse_module(print_module(module, LONG))


def refusal(text: str, inputs: Sequence[Array]) -> str | None:
    """Why a module means nothing before partitioning already; None when it does."""
    try:
        module = parse_module(text)
        diagnostics = verify_module(module)
        if diagnostics:
            return str(diagnostics[0])
        run_module(module, list(inputs))
    except HloError as problem:
        return str(problem)
    return None


def compare(
    text: str,
    count: int,
    inputs: Sequence[Array],
    *,
    before: str = "sharding-propagation",
    bound: float = 1e-5,
    floor: float | None = None,
    options: str = "",
) -> Any:
    """Holds the partitioned module's results to the module's own; the partitioned module. Elements may be off by
    a `bound` of themselves and `floor` (the same, unless it is said) of the largest.
    """
    whole = parse_module(text)
    entry = HloModule(whole).entry
    places_in = [s for op in entry.parameters for s in shardings_of(op)]
    places_out = shardings_of(entry.root)
    parts = partitioned(text, count, before, options)
    wanted = run_module(whole, list(inputs))
    given = [
        [tile(a, s, device) for a, s in zip(inputs, places_in, strict=True)]
        for device in range(count)
    ]
    got = run_spmd(parts, given, machine=Machine(1, count), check=True)
    result = HloModule(parts).entry.root.shape
    for device in range(count):
        for found, want, place in zip(got[device], wanted, places_out, strict=True):
            check(
                found, np.asarray(want), place, device, (bound, bound if floor is None else floor)
            )
    assert all(isinstance(s, ArrayShape) for s in leaves(result))
    return parts


def check(
    found: Array,
    want: Array,
    place: Sharding | None,
    device: int,
    bounds_of_error: tuple[float, float],
) -> None:
    """Raises `AssertionError` where a device's tile is not that of the whole array."""
    bound, floor = bounds_of_error
    if place is not None:
        bounds = place.tile_bounds(want.shape, device)
        if bounds is None:
            return  # another device has it
        want = want[tuple(slice(a, b) for a, b in bounds)]
        found = found[tuple(slice(0, b - a) for a, b in bounds)]
    assert found.shape == want.shape, (device, found.shape, want.shape)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(found, want, err_msg=f"device {device}")
        return
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        a, b = found.astype(kind), want.astype(kind)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    np.testing.assert_allclose(a, b, rtol=bound, atol=floor * scale, err_msg=f"device {device}")


# ---------------------------------------------------------------- random programs

DRAWS = 100
"""Programs drawn until one has a meaning before partitioning."""


def random_program(seed: int, opcode: str, number: int) -> Program:
    """The first program of a case that means something, not a shift of floats or such."""
    for draw in range(DRAWS):
        key = f"{seed} {opcode} {number} {draw}"
        drawn = program(Seeded(zlib.crc32(key.encode())), opcode)
        if refusal(drawn.text, drawn.inputs) is None:
            return drawn
    raise AssertionError(f"{opcode}: no program of {DRAWS} has a meaning")


def difference(drawn: Program) -> str:
    """How a program differs when it is partitioned; empty if it does not."""
    try:
        compare(
            drawn.text,
            drawn.partitions,
            drawn.inputs,
            before=drawn.propagation,
            floor=drawn.off,
        )
    except (AssertionError, HloError) as problem:
        return str(problem).strip() or type(problem).__name__
    except Exception as problem:  # noqa: BLE001  whatever the partitioner raises is its failure
        return f"{type(problem).__name__}: {problem}"
    return ""
