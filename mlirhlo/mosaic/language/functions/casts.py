"""Elements as other types, by value or by bits."""

from __future__ import annotations

from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DType,
    DTypeLike,
    as_dtype,
    bits_of,
    kind_of,
)
from mlirhlo.mosaic.language.faults import bad_shape, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import cast_bool, from_bool, maximum
from mlirhlo.mosaic.language.trace import emit_one, vector_type
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


def cast(value: Value, dtype: DType) -> Value:
    """The same numbers as elements of another type; what does not fit is undefined."""
    old = value.dtype
    if old == dtype:
        return value
    kinds = kind_of(old) + kind_of(dtype)
    if kinds[1] == "b":
        return cast_bool(value)
    if kinds[0] == "b":
        wide = from_bool(value, I32)
        return wide if dtype == I32 else cast(wide, dtype)
    widths = bits_of(old), bits_of(dtype)
    if kinds == "ff":
        if widths[0] == widths[1]:
            return cast(cast(value, F32), dtype)
        return _to("arith.extf" if widths[1] > widths[0] else "arith.truncf", value, dtype)
    if kinds[0] == "f":
        return _to("arith.fptosi" if kinds[1] == "i" else "arith.fptoui", value, dtype)
    if kinds[1] == "f":
        return _to("arith.sitofp" if kinds[0] == "i" else "arith.uitofp", value, dtype)
    if widths[0] == widths[1]:
        return Value(value.ssa, value.shape, dtype)
    wider = "arith.extsi" if kinds[0] == "i" else "arith.extui"
    return _to(wider if widths[1] > widths[0] else "arith.trunci", value, dtype)


def _to(name: str, value: Value, dtype: DType) -> Value:
    type_ = vector_type(value.shape, dtype)
    return Value(emit_one(name, [value.ssa], type_), value.shape, dtype)


def bitcast_convert_type(value: ArrayLike, dtype: DTypeLike) -> Value:
    """The same bits as elements of a type of the same width."""
    x, new = as_value(value), as_dtype(dtype)
    if bits_of(x.dtype) != bits_of(new):
        raise bad_type(
            f"{x.dtype.name} and {new.name} differ in width", "pltpu.bitcast packs rows instead"
        )
    if kind_of(x.dtype) in "iu" and kind_of(new) in "iu":
        return Value(x.ssa, x.shape, new)
    return _to("arith.bitcast", x, new)


def bitcast(value: ArrayLike, dtype: DTypeLike) -> Value:
    """The same bits as elements of another width: rows are packed, even ones in the low half."""
    x, new = as_value(value), as_dtype(dtype)
    old_bits, new_bits = bits_of(x.dtype), bits_of(new)
    if old_bits == new_bits:
        return bitcast_convert_type(x, new)
    if x.ndim < 2:
        raise bad_shape("bitcast to another width packs rows: it needs two dimensions")
    rows = x.shape[-2] * old_bits
    if rows % new_bits:
        raise bad_shape(f"{x.shape[-2]} rows of {x.dtype.name} are no whole rows of {new.name}")
    shape = (*x.shape[:-2], rows // new_bits, x.shape[-1])
    return Value(emit_one("tpu.bitcast", [x.ssa], vector_type(shape, new)), shape, new)


def relu(value: ArrayLike) -> Value:
    """x, or 0 below it."""
    return maximum(value, 0)


__all__ = ["BOOL", "bitcast", "bitcast_convert_type", "cast", "relu"]
