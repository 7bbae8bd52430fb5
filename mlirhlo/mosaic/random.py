"""Random numbers of keys, drawn by the core's generator. The names are those of `jax.random` and `pltpu`.

A key is two words of 32 bits: `key_ref`, an operand of shape [1, 2] in SMEM that `to_pallas_key` made, or what
`fold_in` gives. Every draw starts the generator anew: the same key gives the same numbers. Around a kernel a key is an
array, `random.key(seed)`, and the numbers are those of JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from mlirhlo.interp.ops.random_bits import threefry_rounds
from mlirhlo.mosaic.language.elements import F32, I32, DTypeLike
from mlirhlo.mosaic.language.faults import bad_shape
from mlirhlo.mosaic.language.functions.arithmetic import cast, shift_right_logical
from mlirhlo.mosaic.language.functions.extras import prng_seed
from mlirhlo.mosaic.language.functions.random import (
    stateful_bernoulli,
    stateful_bits,
    stateful_normal,
    stateful_uniform,
)
from mlirhlo.mosaic.language.functions.shapes import concatenate
from mlirhlo.mosaic.language.grid import program_id
from mlirhlo.mosaic.language.outside.hosted import hosted
from mlirhlo.mosaic.language.outside.keys import ON_ARRAYS, key, key_data, randint, split
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


@dataclass(frozen=True, slots=True)
class Key:
    """Two words, as i32."""

    first: Value
    second: Value


KeyLike: TypeAlias = Key | Ref


def _key(given: Any) -> Key:
    """Raises `HloError` HLO0721 for what is no key."""
    if isinstance(given, Key):
        return given
    if not isinstance(given, Ref) or given.size != 2 or given.space != "smem":
        raise bad_shape(
            f"a key is a reference of shape [1, 2] in SMEM, not {given!r}",
            "pass pltpu.to_pallas_key(key) to the call, with BlockSpec(memory_space=pltpu.SMEM)",
        )
    lead = (0,) * (given.ndim - 1)
    return Key(*(cast(given[(*lead, at)], I32) for at in (0, 1)))


def fold_in(key: KeyLike, data: ArrayLike) -> Key:
    """A key for each number, out of one key: a round of threefry, as Pallas' keys have it."""
    found = _key(key)
    second = found.second + as_value(data, I32)
    turned = (second << 13) | shift_right_logical(second, 19)
    first = found.first + second
    return Key(first, first ^ turned)


def _start(key: KeyLike) -> None:
    found = _key(key)
    prng_seed(found.first, found.second)


def bits(key: KeyLike, shape: Sequence[int] = (), dtype: DTypeLike = np.uint32) -> Value:
    """Random words of 32 bits, without sign or with one."""
    _start(key)
    return stateful_bits(shape, dtype)


def uniform(
    key: KeyLike,
    shape: Sequence[int] = (),
    dtype: DTypeLike = F32,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
) -> Value:
    """Numbers of equal chance from `minval` up to, without, `maxval`."""
    _start(key)
    return stateful_uniform(shape, dtype, minval, maxval)


def bernoulli(key: KeyLike, p: ArrayLike = 0.5, shape: Sequence[int] = ()) -> Value:
    """True with the chance p."""
    _start(key)
    return stateful_bernoulli(p, shape)


def normal(key: KeyLike, shape: Sequence[int] = (), dtype: DTypeLike = F32) -> Value:
    """Numbers of the normal distribution."""
    _start(key)
    return stateful_normal(shape, dtype)


def sample_block(
    sampler_fn: Callable[..., Value],
    global_key: KeyLike,
    block_size: Sequence[int],
    tile_size: Sequence[int],
    total_size: Sequence[int],
    block_index: Sequence[Any] | None = None,
    **options: Any,
) -> Value:
    """A block of an array of random numbers, the same numbers however the array is cut into blocks: each
    tile, of which blocks are whole numbers, has a key of its own, its place in the array in row-major order.

    `block_index` is the step's place in the grid if it is not given. Raises `HloError` HLO0721.
    """
    rank = len(block_size)
    fits = rank == len(tile_size) == len(total_size)
    if not fits or any(b % t for b, t in zip(block_size, tile_size, strict=True)):
        raise bad_shape(
            f"a block of {list(block_size)} of {list(total_size)} in tiles of {list(tile_size)}"
        )
    at = [program_id(dim) for dim in range(rank)] if block_index is None else block_index
    counts = [b // t for b, t in zip(block_size, tile_size, strict=True)]
    wholes = [-(-n // t) for n, t in zip(total_size, tile_size, strict=True)]
    tiles: list[Value] = []
    for inner in product(*map(range, counts)):
        number: Any = 0
        for own, index, count, whole in zip(inner, at, counts, wholes, strict=True):
            number = number * whole + (index * count + own)
        tiles.append(sampler_fn(fold_in(global_key, number), shape=tuple(tile_size), **options))
    for dim in reversed(range(rank)):
        size = counts[dim]
        rows = [tiles[at : at + size] for at in range(0, len(tiles), size)]
        tiles = [concatenate(row, dim) if size > 1 else row[0] for row in rows]
    return tiles[0]


def to_pallas_key(key: Any) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The operand, uint32[..., 1, 2], for keys of JAX: uint32[..., 2], what `jax.random.key_data` gives of
    threefry's. The words are those that JAX makes: two of `jax.random.bits`.

    Raises `HloError` HLO0721 for other arrays.
    """
    data = np.asarray(key)
    if data.dtype != np.uint32 or data.shape[-1:] != (2,):
        raise bad_shape(
            f"a key of {data.dtype}{list(data.shape)}", "pass jax.random.key_data(key): uint32[2]"
        )
    words = np.arange(2, dtype=np.uint32)
    high, low = threefry_rounds(data[..., :1], data[..., 1:], np.zeros_like(words), words)
    return np.asarray(high ^ low)[..., None, :]


PRNGKey, wrap_key_data = key, key_data

__all__ = [
    "Key",
    "KeyLike",
    "PRNGKey",
    "bernoulli",
    "bits",
    "fold_in",
    "key",
    "key_data",
    "normal",
    "randint",
    "sample_block",
    "split",
    "to_pallas_key",
    "uniform",
    "wrap_key_data",
]

# Around kernels, the same names draw JAX's numbers of keys that are arrays.
globals().update(hosted(tuple(ON_ARRAYS), globals(), ON_ARRAYS.get))
