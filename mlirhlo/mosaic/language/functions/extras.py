"""Random numbers, packing, messages, marks for profiles."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import StringAttr

from mlirhlo.mosaic.language.control import run_scoped
from mlirhlo.mosaic.language.elements import (
    BOOL,
    F32,
    I32,
    DTypeLike,
    as_dtype,
    bits_of,
    element_type,
)
from mlirhlo.mosaic.language.faults import bad_shape, bad_type
from mlirhlo.mosaic.language.functions.arithmetic import cast_bool
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.trace import (
    emit,
    emit_one,
    flag,
    int_attr,
    ints,
    is_tracing,
    text,
    vector_type,
)
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def prng_seed(*seeds: ArrayLike) -> None:
    """Starts the core's generator of random bits."""
    emit("tpu.prng_set_seed_32", [scalar(seed, "a seed").ssa for seed in seeds])


def prng_random_bits(shape: Sequence[int]) -> Value:
    """Random 32-bit words; the sequence is the hardware's own."""
    target = tuple(shape)
    if len(target) < 2:
        raise bad_shape("random bits have two dimensions at least")
    return Value(emit_one("tpu.prng_random_bits", [], vector_type(target, I32)), target, I32)


def stochastic_round(x: ArrayLike, random_bits: ArrayLike, *, target_dtype: DTypeLike) -> Value:
    """f32 as a narrower float, rounded up or down by chance, of which the bits decide."""
    value, bits, dtype = as_value(x), as_value(random_bits), as_dtype(target_dtype)
    if value.dtype != F32 or bits_of(bits.dtype) != 32:
        raise bad_type("stochastic_round is of f32 elements and 32-bit words")
    type_ = vector_type(value.shape, dtype)
    ssa = emit_one("tpu.stochastic_convert", [value.ssa, bits.ssa], type_)
    return Value(ssa, value.shape, dtype)


def pack_elementwise(xs: Sequence[ArrayLike], *, packed_dtype: DTypeLike) -> Value:
    """Elements of several vectors as parts of one word (uint32), the first lowest."""
    values, dtype = [as_value(x) for x in xs], as_dtype(packed_dtype)
    if not values or {v.shape for v in values} != {values[0].shape}:
        raise bad_shape("pack_elementwise is of vectors of one shape")
    if len(values) * bits_of(dtype) != bits_of(values[0].dtype):
        raise bad_type(f"{len(values)} parts of {dtype.name} do not fill a {values[0].dtype.name}")
    type_ = vector_type(values[0].shape, I32)
    # The attribute is the element type itself.
    more = {"target_type": element_type(dtype)}
    ssa = emit_one("tpu.pack_elementwise", [v.ssa for v in values], type_, more)
    return Value(ssa, values[0].shape, as_dtype("uint32"))


def unpack_elementwise(
    x: ArrayLike, *, index: int, packed_dtype: DTypeLike, unpacked_dtype: DTypeLike
) -> Value:
    """One part of each word."""
    value, packed, dtype = as_value(x), as_dtype(packed_dtype), as_dtype(unpacked_dtype)
    type_ = vector_type(value.shape, dtype)
    more = {"index": int_attr(index), "source_type": element_type(packed)}
    ssa = emit_one("tpu.unpack_elementwise", [value.ssa], type_, more)
    return Value(ssa, value.shape, dtype)


def debug_print(fmt: str, *args: ArrayLike) -> None:
    """Writes a message with scalars in the place of its `{}`; without `{}`, before them. One vector may stand
    at the end, for a last `{}`.
    """
    given = [as_value(value) for value in args]
    holes = len(_PLACEHOLDER.findall(fmt))
    if len(given) == 1 and given[0].shape:
        _print_vector(fmt, given[0])
        return
    for value in given:
        if value.shape:
            raise bad_shape(
                f"debug_print of a vector of shape {list(value.shape)} beside other values",
                "print it alone, one of its elements, or a sum",
            )
    if holes and holes != len(given):
        raise bad_shape(f"{fmt!r} has not one {{}} for each of {len(given)} values")
    numbers = iter(range(len(given)))
    tag = _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", fmt)
    if kind := [value for value in given if value.dtype == BOOL]:
        raise bad_type(f"debug_print of {len(kind)} booleans", "print x.astype(np.int32)")
    emit(
        "tpu.log",
        [value.ssa for value in given],
        (),
        {"tag": text(tag), "formatted": flag(bool(given) and bool(holes))},
    )


def _print_vector(fmt: str, value: Value) -> None:
    if not fmt.endswith("{}") or len(_PLACEHOLDER.findall(fmt)) != 1:
        raise bad_shape(f"{fmt!r} does not end in its only {{}}, where a vector is printed")

    def body(ref: Ref) -> None:
        ref[...] = value
        shape = ints(value.shape)
        emit("tpu.log_buffer", [ref.ssa], (), {"tag": text(fmt[:-2]), "shape": shape})

    run_scoped(body, MemorySpace.VMEM(value.shape, value.dtype))


def touch(ref: Any) -> None:
    """Nothing: tells JAX that a reference is read and written, where operations are in order anyway."""


def delay(nanos: ArrayLike) -> None:
    """Waits."""
    emit("tpu.delay", [scalar(nanos, "a time").ssa])


def trace_value(label: str, value: ArrayLike) -> None:
    """Writes a scalar into the profile."""
    emit("tpu.trace_value", [as_value(value).ssa], (), {"label": text(label)})


def matmul_push_rhs(
    rhs: ArrayLike, staging_register: int, mxu_index: int, *, transpose: bool = False
) -> None:
    """Puts the right side of products, 256x256, into a staging register of a matrix unit (from tpu7x on)."""
    more = {"staging_register": int_attr(staging_register), "transpose": flag(transpose)}
    more["mxu_index"] = int_attr(mxu_index)
    emit("tpu.matmul_push_rhs", [as_value(rhs).ssa], (), more)


def matmul_acc_lhs(
    acc_addr: int, lhs: ArrayLike, mxu_index: int, load_staged_rhs: int | None = None
) -> None:
    """Multiplies rows of 256 elements by the unit's right side, and adds to its sums from `acc_addr` on;
    takes the right side out of a staging register before that, if one is given.
    """
    more = {"acc": int_attr(acc_addr), "mxu_index": int_attr(mxu_index)}
    if load_staged_rhs is not None:
        more["load_staged_rhs"] = int_attr(load_staged_rhs)
    emit("tpu.matmul_acc_lhs", [as_value(lhs).ssa], (), more)


def matmul_pop(acc_addr: int, shape: Sequence[int], dtype: DTypeLike, mxu_index: int) -> Value:
    """The unit's sums from `acc_addr` on, which are zero after that."""
    kind, sizes = as_dtype(dtype), tuple(shape)
    more = {"acc": int_attr(acc_addr), "mxu_index": int_attr(mxu_index)}
    ssa = emit_one("tpu.matmul_pop", [], vector_type(sizes, kind), more)
    return Value(ssa, sizes, kind)


@contextmanager
def named_scope(name: str) -> Generator[None]:
    """Marks what stands within, in profiles and timelines; around a kernel it does nothing."""
    if not is_tracing():
        yield
        return
    emit("tpu.trace_start", [], (), {"message": StringAttr(name), "level": int_attr(10)})
    yield
    emit("tpu.trace_stop")


def debug_check(condition: ArrayLike, message: str) -> None:
    """Stops the kernel with a message where the condition does not hold."""
    value: Any = as_value(condition)
    if value.shape:
        raise bad_shape("debug_check is of one boolean", "reduce it with .all()")
    if value.dtype != BOOL:
        value = cast_bool(value)
    emit("cf.assert", [value.ssa], (), {"msg": text(message)})


__all__ = [
    "debug_check",
    "debug_print",
    "delay",
    "matmul_acc_lhs",
    "matmul_pop",
    "matmul_push_rhs",
    "named_scope",
    "pack_elementwise",
    "prng_random_bits",
    "prng_seed",
    "stochastic_round",
    "touch",
    "trace_value",
    "unpack_elementwise",
]
