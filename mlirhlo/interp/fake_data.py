"""Arguments for a module that comes without, and constants that its text leaves out: random, but such
that it runs as it would for real.

The rules are those of XLA's tools: indices stay inside what they index, initial values of reductions
are their identities, sort keys differ, states of random generators are not zero. The numbers
themselves come from numpy's generator, so they differ from XLA's for the same seed.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from mlirhlo.diagnostics import out_of_memory
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.element_types import Kind
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    BufferShape,
    Shape,
    TupleShape,
    is_too_large,
)
from mlirhlo.interp.fake_data_uses import Demands, IndexDemand, demands_on
from mlirhlo.interp.registry import TOKEN, Array, Value
from mlirhlo.interp.values import literal_of_value

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

LOW, HIGH = -0.1, 0.2
"""Floats are uniform between these, so that long programs neither overflow nor vanish."""

_SPECIAL = (0.0, -0.0, 1.0, -1.0)
"""Values that `large_range` mixes in."""


def make_fake_arguments(module: ModuleOp, seed: int = 42, large_range: bool = False) -> list[Value]:
    """One value for each parameter of the entry computation; the same for the same seed.

    `large_range`: floats of all magnitudes, with zeros and ones among them, instead of small ones.
    Integers fill their type's range unless they are used as indices.
    """
    view = HloModule(module)
    parameters = view.entry.parameters
    with paused_gc():
        demands = demands_on([parameter.output for parameter in parameters], view)
    arguments: list[Value] = []
    for number, parameter in enumerate(parameters):
        generator = np.random.default_rng([seed, number])
        arguments.append(_value(parameter.shape, number, (), demands, generator, large_range))
    return arguments


def fill_constants(module: HloModule, seed: int = 42) -> list[ConstantOp]:
    """Gives constants whose values the text leaves out (`{...}`) made-up ones; which these were.

    By the same rules as `make_fake_arguments`, the same for the same seed; parts that are known stay.
    """
    found = [
        op
        for op in module.candidates(ConstantOp)
        if isinstance(op, ConstantOp) and op.literal is not None and op.literal.is_elided
    ]
    demands = demands_on([op.output for op in found], module)
    for number, op in enumerate(found):
        generator = np.random.default_rng([seed, number])
        value = _value(op.shape, number, (), demands, generator, False)
        known = op.literal
        made = literal_of_value(value, op.shape)
        assert known is not None
        assert made is not None
        op.properties["literal"] = LiteralAttr(_known_where_known(known, made))
    return found


def _known_where_known(known: Literal, made: Literal) -> Literal:
    if not known.is_elided:
        return known
    if not known.elements:
        return made
    parts = zip(known.elements, made.elements, strict=True)
    return Literal.tuple_of([_known_where_known(a, b) for a, b in parts])


def _value(
    shape: Shape,
    number: int,
    index: tuple[int, ...],
    demands: dict[tuple[int, tuple[int, ...]], Demands],
    generator: Any,
    large_range: bool,
) -> Value:
    match shape:
        case TupleShape():
            return tuple(
                _value(part, number, (*index, k), demands, generator, large_range)
                for k, part in enumerate(shape.elements)
            )
        case BufferShape():
            return _value(shape.element, number, index, demands, generator, large_range)
        case ArrayShape():
            if is_too_large(shape):
                raise out_of_memory(f"no memory can hold {shape}")
            return fake_array(
                shape, demands.get((number, index), Demands()), generator, large_range
            )
        case _:
            return TOKEN


def fake_array(shape: ArrayShape, demands: Demands, generator: Any, large_range: bool) -> Array:
    """An array of `shape` that meets the demands."""
    sizes, type_ = shape.dimensions, shape.element_type
    dtype = type_.dtype
    if demands.constant is not None:
        return np.full(sizes, _constant(demands.constant, dtype), dtype)
    if demands.indices and type_.is_integer:
        return _indices(sizes, demands.indices, generator).astype(dtype)
    if demands.is_distinct and type_.kind is not Kind.PRED:
        return _distinct(sizes, dtype, generator)
    if type_.kind is Kind.PRED:
        return cast(Array, generator.integers(0, 2, sizes).astype(bool))
    if type_.is_integer:
        low, high = _integer_range(dtype)
        wide = np.uint64 if dtype == np.uint64 else np.int64
        low = max(low, 1) if demands.is_nonzero else low
        return cast(
            Array, generator.integers(low, high, sizes, dtype=wide, endpoint=True).astype(dtype)
        )
    if type_.is_complex:
        part = type_.real.dtype
        result: Any = np.empty(sizes, dtype)
        result.real = _floats(sizes, part, generator, large_range)
        result.imag = _floats(sizes, part, generator, large_range)
        return cast(Array, result)
    return _floats(sizes, dtype, generator, large_range)


def _integer_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


def _constant(name: str, dtype: np.dtype[Any]) -> Any:
    """The identity of a reduction: `zero`, `one`, `least` or `greatest`."""
    if name in ("zero", "one"):
        return np.asarray(int(name == "one")).astype(dtype)
    if dtype == np.bool_:
        return np.bool_(name == "greatest")
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return dtype.type(_integer_range(dtype)[name == "greatest"])
    value = np.asarray(np.inf if name == "greatest" else -np.inf).astype(dtype)
    if np.isinf(value):
        return value
    info = ml_dtypes.finfo(dtype)
    return info.max if name == "greatest" else info.min


def _floats(sizes: Sequence[int], dtype: np.dtype[Any], generator: Any, large_range: bool) -> Array:
    info = ml_dtypes.finfo(dtype)
    has_sign = float(info.min) < 0
    if large_range:
        low, high = math.log2(float(info.tiny)), math.log2(float(info.max))
        values = np.exp2(generator.uniform(low, high, sizes))
        if has_sign:
            values = np.where(generator.random(sizes) < 0.5, -values, values)
        picks = generator.integers(0, 20 * len(_SPECIAL), sizes)
        for k, special in enumerate(_SPECIAL if has_sign else (1.0,)):
            values = np.where(picks == k, special, values)
    else:
        values = generator.uniform(LOW, HIGH, sizes)
        values = values if has_sign else np.abs(values) + float(info.tiny)
    return cast(Array, np.asarray(values).astype(dtype))


def _distinct(sizes: Sequence[int], dtype: np.dtype[Any], generator: Any) -> Array:
    """Values of which no two are equal, as far as the type has that many."""
    count = math.prod(sizes)
    order: Any = generator.permutation(count)
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        low, high = _integer_range(dtype)
        span = high - low + 1
        return cast(
            Array,
            ((order % min(span, 1 << 62)) + max(low, -(count // 2))).astype(dtype).reshape(sizes),
        )
    # Whole numbers around zero are exact in every float type that has room for them.
    return cast(Array, (order - count // 2).astype(np.float64).astype(dtype).reshape(sizes))


def _indices(sizes: Sequence[int], demands: Sequence[IndexDemand], generator: Any) -> Array:
    """Indices within bounds; whole index vectors where one use wants them sorted or unique."""
    strict = [d for d in demands if d.is_sorted or d.is_unique]
    first = strict[0] if strict else demands[0]
    components = len(first.bounds)
    dim = first.vector_dimension
    fits = dim is not None and (sizes[dim] if dim < len(sizes) else 1) == components
    if not strict or not fits or dim is None:
        highest = max(min(bound for d in demands for bound in d.bounds), 0)
        values: Any = generator.integers(0, highest, sizes, endpoint=True)
        if strict and len(sizes) == 1:
            if first.is_unique and sizes[0] <= highest + 1:
                values = generator.permutation(highest + 1)[: sizes[0]]
            values = np.sort(values) if first.is_sorted else values
        return cast(Array, np.asarray(values))
    lowest = [
        max(
            min((d.bounds[k] if len(d.bounds) == components else min(d.bounds)) for d in demands), 0
        )
        for k in range(components)
    ]
    space = math.prod(bound + 1 for bound in lowest)
    others = [size for k, size in enumerate(sizes) if k != dim]
    rows = math.prod(others)
    if first.is_unique and rows <= space:
        numbers: Any = generator.choice(space, rows, replace=False)
    else:
        numbers = generator.integers(0, space, rows)
    numbers = np.sort(numbers) if first.is_sorted else numbers
    vectors = np.stack(np.unravel_index(numbers, [bound + 1 for bound in lowest]))
    vectors = vectors.reshape((components, *others))
    return np.moveaxis(vectors, 0, dim) if dim < len(sizes) else vectors[0]
