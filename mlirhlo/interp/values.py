"""Values at the border: what a caller passes in becomes what meanings work with, and back.

Arrays are numpy arrays in logical order with the dtype of their element type; everything else is
converted here, once, with a diagnostic that says which input is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import (
    UNBOUNDED,
    ArrayShape,
    BufferShape,
    Shape,
    TokenShape,
    TupleShape,
)
from mlirhlo.interp.registry import TOKEN, Array, DynamicArray, Value


def value_of_literal(literal: Literal) -> Value:
    """The value of a constant. Raises `HloError` HLO0301 when it is elided."""
    if literal.is_elided:
        raise elided(literal.shape)
    if isinstance(literal.shape, TupleShape):
        return tuple(value_of_literal(element) for element in literal.elements)
    return literal.array


def elided(shape: Shape) -> HloError:
    """The error for a constant whose value was left out of the text."""
    return error(
        "HLO0301",
        f"constant: the value of {shape} is left out of this text ({{...}}), so it cannot be run",
        help="dump again with --xla_dump_large_constants (in Python: print_large_constants), run the "
        ".pb of the same dump, or make values up: run_hlo_module --fake_constants, the pass fill-constants",
    )


def literal_of_value(value: Value, shape: Shape) -> Literal | None:
    """A value as a literal; None for tokens and opaque values."""
    match shape:
        case TupleShape():
            parts = cast("tuple[Value, ...]", value)
            found = [literal_of_value(v, s) for v, s in zip(parts, shape.elements, strict=True)]
            if any(part is None for part in found):
                return None
            return Literal.tuple_of([part for part in found if part is not None])
        case BufferShape():
            return literal_of_value(value, shape.element)
        case ArrayShape():
            array: Any = value.valid if isinstance(value, DynamicArray) else value
            static = replace(shape, dimensions=tuple(array.shape), dynamic=())
            return Literal.from_array(static, array)
        case _:
            return None


def value_from(given: object, shape: Shape, what: str) -> Value:
    """`given` as a value of `shape`; `what` names it in errors.

    Takes numpy arrays, Python scalars and lists, anything with DLPack or `__array__`,
    `DynamicArray`, tuples for tuples. Types convert within their kind (f64 to f32, s64 to s32 when
    every value fits). Raises `HloError` HLO0303.
    """
    match shape:
        case TupleShape():
            parts = cast("Sequence[object]", given)
            if not isinstance(given, (tuple, list)) or len(parts) != len(shape.elements):
                raise error("HLO0303", f"{what}: expects a tuple of {len(shape.elements)} values")
            return tuple(
                value_from(part, element, f"{what}.{position}")
                for position, (part, element) in enumerate(zip(parts, shape.elements, strict=True))
            )
        case ArrayShape():
            return _array_from(given, shape, what)
        case BufferShape():
            return _array_from(given, shape.element, what)
        case TokenShape():
            return TOKEN
        case _:
            return given


def _array_from(given: object, shape: ArrayShape, what: str) -> Value:
    if isinstance(given, DynamicArray):
        _check_sizes(given.sizes, shape, what)
        if given.data.shape == shape.dimensions:
            return DynamicArray(_converted(given.data, shape.element_type, what), given.sizes)
        given = given.valid
    array = _converted(_as_array(given, shape.element_type, what), shape.element_type, what)
    _check_sizes(array.shape, shape, what)
    # A view, so that `for_user` sees that the memory is the caller's.
    return with_bounds(array, shape) if shape.is_dynamic else array.view()


def _check_sizes(sizes: Sequence[int], shape: ArrayShape, what: str) -> None:
    fits = len(sizes) == shape.rank and all(
        size == bound or bound == UNBOUNDED or (shape.is_dynamic_dimension(dim) and size <= bound)
        for dim, (size, bound) in enumerate(zip(sizes, shape.dimensions, strict=True))
    )
    if not fits:
        got = f"{shape.element_type}[{','.join(map(str, sizes))}]"
        raise error("HLO0303", f"{what}: expects {shape.to_string(layout=False)}, got {got}")


def _as_array(given: object, type_: PrimitiveType, what: str) -> Array:
    if isinstance(given, (np.ndarray, np.generic)):
        return np.asarray(cast(Any, given))
    if hasattr(given, "__dlpack__") and type_.numpy_name in np.sctypeDict:
        try:
            return np.from_dlpack(cast(Any, given))
        except (BufferError, RuntimeError, TypeError, ValueError):
            pass  # another device, or a type DLPack lacks: `__array__` may still do
    try:
        if given is None:
            raise TypeError("None is no number")  # numpy's answer is NaN
        if hasattr(given, "__array__"):
            return np.asarray(cast(Any, given))
        return np.asarray(cast(Any, given), dtype=type_.dtype)
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(
            "HLO0303", f"{what}: cannot make an array of {type_} of it: {problem}"
        ) from None


_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_NO_NUMBER = -1


def _kind_of(dtype: np.dtype[Any]) -> int:
    """Bool, integer, float, complex as 0 to 3; ml_dtypes' types by their names."""
    if dtype.kind in _RANK:
        return _RANK[dtype.kind]
    if dtype.kind != "V" or dtype.type is np.void:
        return _NO_NUMBER  # objects, strings, dates, records
    return 1 if dtype.name.startswith(("int", "uint")) else 2


def _converted(array: Array, type_: PrimitiveType, what: str) -> Array:
    dtype = type_.dtype
    if array.dtype == dtype:
        return array
    kind, wanted = _kind_of(array.dtype), _kind_of(dtype)
    if kind == wanted:
        with np.errstate(all="ignore"):
            result = array.astype(dtype)
        if wanted != 1 or bool(np.all(result.astype(array.dtype) == array)):
            return result
        raise error("HLO0303", f"{what}: values of {array.dtype} do not fit {type_}")
    raise error(
        "HLO0303",
        f"{what}: expects elements of {type_}, got {array.dtype}",
        help=f"convert the array first, e.g. x.astype({dtype.name!r})",
    )


def with_bounds(array: Array, shape: ArrayShape) -> DynamicArray:
    """`array` as the part in use of an array with `shape`'s bounds; the rest is zero."""
    bounds = tuple(
        size if bound == UNBOUNDED else bound
        for size, bound in zip(array.shape, shape.dimensions, strict=True)
    )
    if any(size > bound for size, bound in zip(array.shape, bounds, strict=True)):
        sizes = ",".join(map(str, array.shape))
        raise error(
            "HLO0306",
            f"an array of sizes [{sizes}] does not fit the bounds of {shape.to_string(layout=False)}",
        )
    if bounds == array.shape:
        return DynamicArray(array, array.shape)
    data = np.zeros(bounds, dtype=array.dtype)
    data[tuple(slice(0, size) for size in array.shape)] = array
    return DynamicArray(data, array.shape)


def flatten(value: Value) -> Iterator[Value]:
    """The parts of a value that are not tuples, depth first."""
    if isinstance(value, tuple):
        for part in cast("tuple[Value, ...]", value):
            yield from flatten(part)
    else:
        yield value


def arrays_of(value: Value) -> list[Array]:
    """The arrays in a value, tuples flattened, tokens left out, dynamic ones cut to size."""
    found: list[Array] = []
    for part in flatten(value):
        if isinstance(part, DynamicArray):
            found.append(part.valid)
        elif isinstance(part, np.ndarray):
            found.append(cast(Array, part))
    return found


def for_user(value: Value) -> Value:
    """A value as the user gets it: writable, contiguous arrays, no two sharing memory, nor with
    inputs or with the module's constants; dynamic ones cut to size."""
    return _for_user(value, set())


def _for_user(value: Value, seen: set[int]) -> Value:
    if isinstance(value, tuple):
        return tuple(_for_user(part, seen) for part in cast("tuple[Value, ...]", value))
    array = value.valid if isinstance(value, DynamicArray) else value
    if not isinstance(array, np.ndarray):
        return array
    array = cast(Array, array)
    own = array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    result = array if own and id(array) not in seen else array.copy()
    seen.add(id(array))
    return result


def results_of(value: Value) -> list[Array]:
    """The arrays in a value as the user gets them, tuples flattened, tokens left out."""
    return arrays_of(for_user(value))


def unflatten(parts: Iterator[object], shape: Shape) -> object:
    """Nested tuples of `shape` from its leaves in order; tokens take no leaf."""
    if isinstance(shape, TupleShape):
        return tuple(unflatten(parts, element) for element in shape.elements)
    if isinstance(shape, TokenShape):
        return TOKEN
    return next(parts)


def mismatch(value: Value, shape: Shape) -> str | None:
    """What `value` is when it is not a value of `shape`; None when it is one."""
    match shape:
        case TupleShape():
            if not isinstance(value, tuple):
                return describe(value)
            parts = cast("tuple[Value, ...]", value)
            if len(parts) != len(shape.elements):
                return f"a tuple of {len(parts)}"
            for part, element in zip(parts, shape.elements, strict=True):
                inner = mismatch(part, element)
                if inner is not None:
                    return f"{inner} in a tuple"
            return None
        case ArrayShape():
            data = value.data if isinstance(value, DynamicArray) else value
            if not isinstance(data, np.ndarray):
                return describe(value)
            array = cast(Array, data)
            same = array.dtype == shape.element_type.dtype and len(array.shape) == shape.rank
            fits = same and all(
                bound in (size, UNBOUNDED)
                for size, bound in zip(array.shape, shape.dimensions, strict=True)
            )
            return None if fits else describe(value)
        case _:
            return None


def describe(value: Value) -> str:
    """`float32[4,3]` and the like, for messages."""
    if isinstance(value, np.ndarray):
        array = cast(Array, value)
        return f"{array.dtype}[{','.join(map(str, array.shape))}]"
    if isinstance(value, DynamicArray):
        return f"dynamic {describe(value.data)}"
    return type(value).__name__
