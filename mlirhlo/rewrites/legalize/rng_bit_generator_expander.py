"""`rng-bit-generator-expander`: random bits by integer arithmetic, Threefry-2x32 or Philox-4x32-10."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal, TypeAlias

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind, PrimitiveType
from mlirhlo.dialects.hlo.ops import Instruction, RngBitGeneratorOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass, expand_to_call
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_U32, _U64 = PRIMITIVE_TYPES["u32"], PRIMITIVE_TYPES["u64"]
_Words: TypeAlias = tuple[Value, ...]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)


@rule(RngBitGeneratorOp)
def threefry_bits(op: RngBitGeneratorOp, rewriter: Rewriter) -> None:
    """rng-bit-generator(s), algorithm=rng_three_fry => call(s), 20 rounds of Threefry a counter"""
    if _algorithm(op, rewriter) == "rng_three_fry" and _sizes(op) == 2:
        _expand(op, rewriter, "rng_three_fry")


@rule(RngBitGeneratorOp)
def philox_bits(op: RngBitGeneratorOp, rewriter: Rewriter) -> None:
    """rng-bit-generator(s), algorithm=rng_philox => call(s), 10 rounds of Philox a counter"""
    if _algorithm(op, rewriter) == "rng_philox" and _sizes(op) in (2, 3):
        _expand(op, rewriter, "rng_philox")


def _algorithm(op: RngBitGeneratorOp, rewriter: Rewriter) -> str:
    name = op.algorithm.lower()
    if name != "rng_default":
        return name
    options = rewriter.options
    expander = options.expander if isinstance(options, Callees) else None
    if isinstance(expander, RngBitGeneratorExpanderPass):
        return f"rng_{expander.default_algorithm}"
    return "rng_philox"


def _data(op: Instruction) -> ArrayShape:
    assert isinstance(op.shape, TupleShape)
    found = op.shape.elements[1]
    assert isinstance(found, ArrayShape)
    return found


def _sizes(op: Instruction) -> int | None:
    """Numbers in the state; None where the instruction cannot be expanded."""
    state, data = op.input_shapes[0], _data(op)
    if not isinstance(state, ArrayShape) or state.element_type is not _U64 or state.rank != 1:
        return None
    known = data.element_type.kind in (Kind.SIGNED, Kind.UNSIGNED, Kind.FLOAT)
    if not known or data.is_dynamic or data.element_type.bits > 64:
        return None
    return state.dimensions[0]


def _expand(op: RngBitGeneratorOp, rewriter: Rewriter, algorithm: str) -> None:
    state, data = op.input_shapes[0], _data(op)
    generate = _threefry if algorithm == "rng_three_fry" else philox

    def build(graph: Graph) -> Value:
        given = graph.parameter(state)
        key = given.slice((0, 1)).reshape()
        counter, bits = generate(graph, given, key, data)
        moved = graph.concatenate((key.reshape(1), counter), 0)
        return graph.tuple(moved, _typed(bits, data.element_type))

    expand_to_call(op, rewriter, (str(state), str(data), algorithm), "rng", build)


def _typed(bits: Value, type_: PrimitiveType) -> Value:
    """Bits of 32 or 64 as the type: its low ones."""
    width = PRIMITIVE_TYPES[f"u{type_.bits}"]
    bits = bits.convert(width)
    return bits if type_ is width else bits.bitcast_convert(type_)


def _halves(value: Value) -> _Words:
    """The low and the high word of u64."""
    low = value.convert(_U32)
    return low, (value >> 32).convert(_U32)


def _whole(low: Value, high: Value) -> Value:
    return low.convert(_U64) | (high.convert(_U64) << 32)


# ---------------------------------------------------------------- Threefry


def _threefry(graph: Graph, state: Value, key: Value, data: ArrayShape) -> tuple[Value, Value]:
    start, sizes = state.slice((1, 2)), data.dimensions
    if data.element_type.bits == 64:
        low, high = threefry_rounds(_halves(_counters(graph, start, sizes)), _halves(key))
        return start + prod(sizes), _whole(low, high)
    # Both words of a counter are used, one after the other along a dimension that is even if any is.
    half, dim = _split(sizes)
    words = threefry_rounds(_halves(_counters(graph, start, half)), _halves(key))
    counter = start + prod(half)
    if not sizes:
        return counter, words[0].reshape()
    even = list(sizes)
    even[dim] = 2 * half[dim]
    bits = graph.concatenate(words, dim + 1).reshape(*even)
    if tuple(even) != sizes:
        bits = bits.slice(*((0, n) for n in sizes))
    return counter, bits


def _split(sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Sizes of half the elements, with a dimension of one behind the halved one, and which that is."""
    if not sizes:
        return (1,), 0
    largest = max(range(len(sizes)), key=lambda d: sizes[d])
    dim = next((d for d, n in enumerate(sizes) if n % 2 == 0), largest)
    return (*sizes[:dim], -(-sizes[dim] // 2), 1, *sizes[dim + 1 :]), dim


def _counters(graph: Graph, start: Value, sizes: Sequence[int]) -> Value:
    """The start, and one more for each element after it."""
    found = start.reshape().broadcast(sizes)
    stride = 1
    for dim in reversed(range(len(sizes))):
        if sizes[dim] >= 2:
            found = found + graph.iota(_U64, sizes, dim) * stride
            stride *= sizes[dim]
    return found


def threefry_rounds(words: _Words, keys: _Words) -> _Words:
    """Two words of a counter encrypted with two words of a key, in 20 rounds."""
    x, y = words
    keys = tuple(key.bitcast_convert(_U32) for key in keys)
    third = x.graph.scalar(_U32, _PARITY) ^ keys[0] ^ keys[1]
    keys = (*keys, third)
    x, y = x + keys[0], y + keys[1]
    for block in range(5):
        for rotation in _ROTATIONS[block % 2]:
            x = x + y
            y = (y << rotation) | (y >> 32 - rotation)
            y = x ^ y
        x = x + keys[(block + 1) % 3]
        y = y + keys[(block + 2) % 3] + (block + 1)
    return x, y


# ---------------------------------------------------------------- Philox


def philox(graph: Graph, state: Value, key: Value, data: ArrayShape) -> tuple[Value, Value]:
    """The counter after it and random bits for `data`; of three numbers in `state` the key is the first."""
    is_long = state.sizes[0] >= 3
    counter = state.slice((1, 3)) if is_long else state.reverse(0)
    is_wide = data.element_type.bits == 64
    size = prod(data.dimensions)
    count = -(-size * (2 if is_wide else 1) // 4)
    keys = _halves(key)
    # XLA takes the 128 bits apart and puts them together again; so do we, for the same result.
    parts = [part for k in range(2) for part in _halves(counter.slice((k, k + 1)).reshape())]
    low, high = _whole(*parts[:2]), _whole(*parts[2:])
    added = _add(low, high, graph.iota(_U64, (count,)), (count,))
    moved = _add(low, high, graph.scalar(_U64, count), ())
    counter = graph.concatenate([half.reshape(1) for half in moved], 0)
    words = _philox_rounds((*_halves(added[0]), *_halves(added[1])), keys)
    if is_wide:
        words = (_whole(*words[:2]), _whole(*words[2:]))
    columns = [word.reshape(word.sizes[0], 1) for word in words]
    numbers = graph.concatenate(columns, 1).reshape(count * len(columns))
    bits = numbers.slice((0, size)).reshape(*data.dimensions)
    return (counter if is_long else counter.slice((0, 1))), bits


def _add(low: Value, high: Value, number: Value, sizes: Sequence[int]) -> tuple[Value, Value]:
    """128 bits and 64, with the carry."""
    total = low + number
    carried = total.compare("LT", low)
    above = carried.select((high + 1).broadcast(sizes), high.broadcast(sizes))
    return total, above


def _philox_rounds(words: _Words, keys: _Words) -> _Words:
    a, b, c, d = words
    low, high = keys
    for _ in range(10):
        first, second = _product(a, _PHILOX_FACTORS[0]), _product(c, _PHILOX_FACTORS[1])
        a, b, c, d = second[1] ^ b ^ low, second[0], first[1] ^ d ^ high, first[0]
        low, high = low + _PHILOX_STEPS[0], high + _PHILOX_STEPS[1]
    return a, b, c, d


def _product(word: Value, factor: int) -> _Words:
    """Low and high word of a product."""
    product = word.convert(_U64) * factor
    low = product.convert(_U32)
    return low, (product >> 32).convert(_U32)


@dataclass(frozen=True)
class RngBitGeneratorExpanderPass(ExpanderPass):
    """Writes the generators of random bits by integer arithmetic.

    Before and after:

        %r = (u64[2], u32[8]) rng-bit-generator(%state), algorithm=rng_three_fry
          =>   %r = (u64[2], u32[8]) call(%state), to_apply=%rng

    Instructions of one shape and algorithm share a callee; `call-inliner` puts it in their places. Types narrower
    than 32 bits keep the low bits of a word each. Source: XLA's pass, whose graphs these are.
    """

    name = "rng-bit-generator-expander"
    rules: ClassVar[tuple[Rule, ...]] = (threefry_bits, philox_bits)

    default_algorithm: Literal["philox", "three_fry"] = "philox"
    """What `rng_default` stands for."""
