"""Running partitioned modules: arrays cut into tiles, devices simulated, tiles compared.

What a device has beyond the end of an array is filled with values that spoil any result they get into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirhlo.analysis.verifier import verify_module
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
    if isinstance(shape, TupleShape):
        return tuple(leaf for element in shape.elements for leaf in leaves(element))
    return (shape,)


def shardings_of(op: Any) -> list[Sharding | None]:
    count = len(leaves(op.shape))
    if op.sharding is None:
        return [None] * count
    return list(op.sharding.expanded(count).elements)


def tile(array: Array, sharding: Sharding | None, device: int) -> Array:
    """A device's tile; what lies beyond the array is NaN, or the greatest integer."""
    bounds = None if sharding is None else sharding.tile_bounds(array.shape, device)
    if sharding is None or not bounds:
        return array
    part = array[tuple(slice(a, b) for a, b in bounds)]
    missing = [
        (0, n - m) for n, m in zip(sharding.tile_sizes(array.shape), part.shape, strict=True)
    ]
    kind = array.dtype.kind
    fill: Any = True if kind == "b" else np.iinfo(array.dtype).max if kind in "iu" else np.nan
    return np.pad(part, missing, constant_values=fill)


def partitioned(
    text: str, count: int, before: str = "sharding-propagation", options: str = ""
) -> Any:
    """The module of one device, valid, as its own text says it."""
    module = parse_module(text)
    first = f"{before}{{num-partitions={count}}}," if before else ""
    run_pipeline(
        module, parse_pipeline(f"{first}spmd-partitioning{{num-partitions={count} {options}}}")
    )
    assert verify_module(module) == []
    return parse_module(print_module(module, LONG))


def compare(
    text: str,
    count: int,
    inputs: Sequence[Array],
    *,
    before: str = "sharding-propagation",
    bound: float = 1e-5,
    options: str = "",
) -> Any:
    """Holds the partitioned module's results to the module's own; the partitioned module."""
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
            check(found, np.asarray(want), place, device, bound)
    assert all(isinstance(s, ArrayShape) for s in leaves(result))
    return parts


def check(found: Array, want: Array, place: Sharding | None, device: int, bound: float) -> None:
    bounds = None if place is None else place.tile_bounds(want.shape, device)
    if bounds is not None:
        want = want[tuple(slice(a, b) for a, b in bounds)]
        found = found[tuple(slice(0, b - a) for a, b in bounds)]
    assert found.shape == want.shape, (device, found.shape, want.shape)
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(found, want, err_msg=f"device {device}")
        return
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    a, b = found.astype(kind), want.astype(kind)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
    np.testing.assert_allclose(a, b, rtol=bound, atol=bound * scale, err_msg=f"device {device}")
