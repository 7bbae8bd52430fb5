"""Random bits: the simulator's generator, as arithmetic on vectors.

A seed is mixed to a key as numpy's `SeedSequence` does it, and bits are numpy's `Philox` (4x64, ten rounds)
of that key, counted from the last seed on. Source: M. E. O'Neill's seed sequence, and "Parallel random
numbers: as easy as 1, 2, 3" (Salmon and others, 2011).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.fast.writer import Val, Writer, tensor, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import Operation

    from mlirhlo.mosaic.fast.memories import Memories, View

SETS, DRAWS = "tpu.prng_set_seed_32", "tpu.prng_random_bits"
_POOL = 4
"""Words of a seed sequence."""
_BLOCKS = SUBLANES * LANES // 8
"""Steps of the counter that fill a register: each gives four words of 64 bits."""
_FACTORS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_STEPS = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10


def draws(function: Operation) -> bool:
    """Whether a function uses the generator, whose steps come one after another."""
    return any(op.name in (SETS, DRAWS) for op in function.walk())


def new_state(p: Memories) -> View:
    """The generator before any seed: its key, of seed 0, and how many steps it made."""
    key = np.random.SeedSequence([0]).generate_state(2, np.uint64).view(np.int64)
    numbers = ", ".join(str(int(word)) for word in (*key, 0))
    return p.memory(p.w.constant(f"[{numbers}]", "i64", (3,)))


def set_seed(p: Memories, state: View, op: Operation) -> None:
    """Starts again with a key of the operands."""
    w = p.w
    low = _key(w, [p.values[value] for value in op.operands])
    words = [_joined(w, low[at], low[at + 1]) for at in (0, 2)]
    p.write(state, _stacked(w, [*words, w.constant(0, "i64")]))


def random_bits(p: Memories, state: View, op: Operation) -> None:
    """i32, register by register."""
    w = p.w
    shape = type_of(op.results[0].type)[0]
    rows, lanes = (1, *shape)[-2:]
    down, across = -(-rows // SUBLANES), -(-lanes // LANES)
    outer = prod(shape[:-2])
    blocks = outer * down * across * _BLOCKS
    held = p.read(state)
    parts = [w.reshape(w.slice(held, [at], [1], [1]), ()) for at in range(3)]
    numbers = w.emit(f"stablehlo.iota dim = 0 : {tensor((blocks,), 'i64')}", (blocks,), "i64")
    first = w.like("add", parts[2], w.constant(1, "i64"))
    counter = w.like("add", numbers, w.broadcast(first, (blocks,)))
    drawn = _philox(w, counter, [w.broadcast(part, (blocks,)) for part in parts[:2]])
    after = w.like("add", parts[2], w.constant(blocks, "i64"))
    p.write(state, _stacked(w, [*parts[:2], after]))
    bits = w.bits(_stacked(w, drawn), (blocks, 4, 2), "i32")
    tiles = w.reshape(bits, (outer, down, across, SUBLANES, LANES))
    order = (outer, down, SUBLANES, across, LANES)
    tiles = w.op("transpose", [tiles], order, "i32", "dims = [0, 1, 3, 2, 4]")
    whole = w.reshape(tiles, (outer, down * SUBLANES, across * LANES))
    kept = w.slice(whole, [0, 0, 0], [outer, rows, lanes], [1, 1, 1])
    p.values[op.results[0]] = w.reshape(kept, shape)


def _stacked(w: Writer, values: Sequence[Val]) -> Val:
    """Values side by side in a new last dimension."""
    shape = values[0].shape
    ones = [w.reshape(value, (*shape, 1)) for value in values]
    wide = (*shape, len(values))
    return w.op("concatenate", ones, wide, values[0].element, f"dim = {len(shape)}")


def _number(w: Writer, number: int, like: Val) -> Val:
    """A number everywhere, given without a sign."""
    bits = int(like.element[1:])
    signed = number - (1 << bits) if number >> (bits - 1) else number
    return w.constant(signed, like.element, like.shape)


def _shifted(w: Writer, value: Val, by: int) -> Val:
    return w.like("shift_right_logical", value, _number(w, by, value))


def _times(w: Writer, value: Val, number: int) -> Val:
    return w.like("multiply", value, _number(w, number, value))


def _joined(w: Writer, low: Val, high: Val) -> Val:
    """Two words as one of 64 bits."""
    return w.bits(_stacked(w, [low, high]), (), "i64")


def _key(w: Writer, seeds: Sequence[Val]) -> list[Val]:
    """Four words of 32 bits of the words of a seed."""
    factor = 0x43B0D7E5

    def hashed(value: Val) -> Val:
        nonlocal factor
        value = w.like("xor", value, _number(w, factor, value))
        factor = factor * 0x931E8875 & 0xFFFFFFFF
        value = _times(w, value, factor)
        return w.like("xor", value, _shifted(w, value, 16))

    def mixed(left: Val, right: Val) -> Val:
        value = w.like("subtract", _times(w, left, 0xCA01F9DD), _times(w, right, 0x4973F715))
        return w.like("xor", value, _shifted(w, value, 16))

    zero = w.constant(0, "i32")
    pool = [hashed(seeds[at] if at < len(seeds) else zero) for at in range(_POOL)]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = mixed(pool[target], hashed(pool[source]))
    for seed in seeds[_POOL:]:
        for target in range(_POOL):
            pool[target] = mixed(pool[target], hashed(seed))
    found: list[Val] = []
    factor = 0x8B51F9DD
    for value in pool:
        made = w.like("xor", value, _number(w, factor, value))
        factor = factor * 0x58F38DED & 0xFFFFFFFF
        made = _times(w, made, factor)
        found.append(w.like("xor", made, _shifted(w, made, 16)))
    return found


def _philox(w: Writer, counter: Val, key: Sequence[Val]) -> list[Val]:
    """Four words of 64 bits for each counter."""
    zero = _number(w, 0, counter)
    state, keys = [counter, zero, zero, zero], list(key)
    for number in range(_ROUNDS):
        if number:
            keys = [
                w.like("add", one, _number(w, step, one))
                for one, step in zip(keys, _STEPS, strict=True)
            ]
        products = [(_high(w, state[at], f), _times(w, state[at], f)) for at, f in _pairs()]
        (high0, low0), (high1, low1) = products
        state = [
            w.like("xor", w.like("xor", high1, state[1]), keys[0]),
            low1,
            w.like("xor", w.like("xor", high0, state[3]), keys[1]),
            low0,
        ]
    return state


def _pairs() -> tuple[tuple[int, int], ...]:
    """Which words are multiplied, by what."""
    return ((0, _FACTORS[0]), (2, _FACTORS[1]))


def _high(w: Writer, value: Val, factor: int) -> Val:
    """The upper 64 bits of a product of 128."""
    mask = 0xFFFFFFFF
    low = w.like("and", value, _number(w, mask, value))
    high = _shifted(w, value, 32)
    first, second = factor & mask, factor >> 32
    middle = w.like("add", _times(w, low, second), _shifted(w, _times(w, low, first), 32))
    rest = w.like("and", middle, _number(w, mask, value))
    rest = w.like("add", _times(w, high, first), rest)
    upper = w.like("add", _times(w, high, second), _shifted(w, middle, 32))
    return w.like("add", upper, _shifted(w, rest, 32))
