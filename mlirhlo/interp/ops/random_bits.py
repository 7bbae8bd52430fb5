"""rng-bit-generator: Threefry-2x32 and Philox-4x32-10, bit for bit as XLA expands them.

The state is `u64[2]` (key, counter), for Philox also `u64[3]` (key, low and high half of the
counter). Sources: "Parallel Random Numbers: As Easy as 1, 2, 3" for the two functions; how results
are laid out and how far the counter moves was measured on XLA:CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.registry import Array, Frame, Value, evaluates

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.random import RngBitGeneratorOp

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint32]]"
Longs: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

_LOW = (1 << 32) - 1
_SHIFT = np.uint64(32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry_2x32(key: int, counters: Longs) -> tuple[Words, Words]:
    """20 rounds of Threefry on each 64-bit counter (low word first); two words for each."""
    return threefry_rounds(np.uint32(key & _LOW), np.uint32(key >> 32), *_words(counters))


def threefry_rounds(low: Any, high: Any, x: Words, y: Words) -> tuple[Words, Words]:
    """20 rounds of Threefry on words `(x, y)` with the key `(low, high)`, all u32."""
    keys = (low, high, low ^ high ^ np.uint32(0x1BD11BDA))
    x, y = x + keys[0], y + keys[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = y ^ x
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + np.uint32(block + 1)
    return x, y


def philox_4x32(key: int, low: Longs, high: Longs) -> tuple[Words, Words, Words, Words]:
    """10 rounds of Philox on each 128-bit counter, given as two halves; four words for each."""
    a, b, c, d = (word.astype(np.uint64) for word in (*_words(low), *_words(high)))
    key_low, key_high = key & _LOW, key >> 32
    for _ in range(10):
        first = np.uint64(0xD2511F53) * a
        second = np.uint64(0xCD9E8D57) * c
        a = (second >> _SHIFT) ^ b ^ np.uint64(key_low)
        b = second & np.uint64(_LOW)
        c = (first >> _SHIFT) ^ d ^ np.uint64(key_high)
        d = first & np.uint64(_LOW)
        key_low = (key_low + 0x9E3779B9) & _LOW
        key_high = (key_high + 0xBB67AE85) & _LOW
    return (
        a.astype(np.uint32),
        b.astype(np.uint32),
        c.astype(np.uint32),
        d.astype(np.uint32),
    )


def _words(values: Longs) -> tuple[Words, Words]:
    return values.astype(np.uint32), (values >> _SHIFT).astype(np.uint32)


def _longs(low: Words, high: Words) -> Longs:
    return low.astype(np.uint64) | (high.astype(np.uint64) << _SHIFT)


def _counters(start: int, count: int) -> Longs:
    return np.arange(count, dtype=np.uint64) + np.uint64(start)


def _split_dimension(dimensions: Sequence[int]) -> int:
    """Dimension along which the two words of a Threefry block alternate: the first even one, else
    the first of the largest.
    """
    for dim, size in enumerate(dimensions):
        if size % 2 == 0:
            return dim
    return list(dimensions).index(max(dimensions))


def threefry_bits(state: Longs, shape: Sequence[int], is_wide: bool) -> tuple[Longs, Array]:
    """New state and bits (u64 when `is_wide`, else u32) of Threefry."""
    key, start = int(state[0]), int(state[1])
    count = math.prod(shape)
    if is_wide:
        bits: Array = _longs(*threefry_2x32(key, _counters(start, count))).reshape(tuple(shape))
    elif not shape:
        count = 1
        bits = threefry_2x32(key, _counters(start, 1))[0].reshape(())
    else:
        dim = _split_dimension(shape)
        half = list(shape)
        half[dim] = (half[dim] + 1) // 2
        count = math.prod(half)
        pair = threefry_2x32(key, _counters(start, count))
        both = np.stack([words.reshape(half) for words in pair], axis=dim + 1)
        full = [*half[:dim], 2 * half[dim], *half[dim + 1 :]]
        bits = both.reshape(full).take(range(shape[dim]), axis=dim)
    return np.array([key, (start + count) % (1 << 64)], dtype=np.uint64), bits


def philox_bits(state: Longs, shape: Sequence[int], is_wide: bool) -> tuple[Longs, Array]:
    """New state and bits (u64 when `is_wide`, else u32) of Philox.

    With a state of two numbers the key is also the high half of the counter.
    """
    key, low = int(state[0]), int(state[1])
    high = int(state[2]) if len(state) > 2 else key
    size = math.prod(shape)
    count = -(-(2 * size if is_wide else size) // 4)
    lows = _counters(low, count)
    # The sum carries into the high half where the low one wraps around.
    highs = np.where(lows < np.uint64(low), np.uint64((high + 1) % (1 << 64)), np.uint64(high))
    words = np.stack(philox_4x32(key, lows, highs), axis=-1).reshape(-1)
    bits: Array = _longs(words[0::2], words[1::2]) if is_wide else words
    moved = (low + (high << 64) + count) % (1 << 128)
    parts = [key, moved % (1 << 64), moved >> 64]
    return np.array(parts[: len(state)], dtype=np.uint64), bits[:size].reshape(tuple(shape))


@evaluates("rng-bit-generator")
def rng_bit_generator(op: RngBitGeneratorOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(new state, bits)`; `rng_default` is Philox, as on XLA:CPU and XLA:GPU.

    Only the bits where the result is one array: XLA:TPU leaves out a new state that nobody reads.
    Raises `HloError` HLO0355 for a state of another shape.
    """
    state = cast(Longs, inputs[0])
    is_threefry = op.algorithm.lower() == "rng_three_fry"
    sizes = (2,) if is_threefry else (2, 3)
    if state.dtype != np.uint64 or state.ndim != 1 or len(state) not in sizes:
        raise error(
            "HLO0355",
            f"rng-bit-generator: {op.algorithm} wants a state of "
            f"{' or '.join(f'u64[{size}]' for size in sizes)}, not {op.input_shapes[0]}",
        )
    gives_state = isinstance(op.shape, TupleShape)
    shape = cast(ArrayShape, op.shape.elements[1] if isinstance(op.shape, TupleShape) else op.shape)
    dtype = shape.element_type.dtype
    is_wide = shape.element_type.bits == 64
    generate = threefry_bits if is_threefry else philox_bits
    new_state, bits = generate(state, shape.dimensions, is_wide)
    # Narrow types keep the low bits of a word each.
    if shape.element_type.bits < 8:
        bits = bits & np.array((1 << shape.element_type.bits) - 1, dtype=bits.dtype)
        values = bits.astype(np.uint8).astype(dtype)
    else:
        values = bits.astype(np.dtype(f"u{dtype.itemsize}"), copy=False).view(dtype)
    return (new_state, values) if gives_state else values
