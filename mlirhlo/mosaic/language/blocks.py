"""Where the blocks of an array are: what a pipeline copies at a step."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import index as as_index
from typing import Any

from xdsl.ir import Block

from mlirhlo.mosaic.language.control import when
from mlirhlo.mosaic.language.elements import I32, bits_of
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import maximum, minimum
from mlirhlo.mosaic.language.indexing import Slice, ds, multiple_of
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.specs import Blocked, BlockSpec, BoundedSlice, Element, Squeezed
from mlirhlo.mosaic.language.trace import into
from mlirhlo.mosaic.language.value import Value, as_value, is_number
from mlirhlo.mosaic.target.memory import tiles_of_indices


def sizes_of(spec: BlockSpec) -> tuple[int | None, ...]:
    """The sizes of a block; None for dimensions that the body does not see.

    Raises `HloError` HLO0726 for a spec that does not say them.
    """
    if spec.block_shape is None:
        raise bad_spec("a buffer's spec has no block_shape", "give it one")
    sizes: list[int | None] = []
    for size in spec.block_shape:
        if isinstance(size, Squeezed | None):
            sizes.append(None)
            continue
        sized = isinstance(size, Blocked | Element | BoundedSlice)
        sizes.append(as_index(size.block_size if sized else size))
    return tuple(sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """An array as a spec cuts it."""

    ref: Ref
    spec: BlockSpec
    sizes: tuple[int | None, ...]
    """Of a block; None for dimensions that the body does not see."""
    counts_elements: bool
    padding: Mapping[int, tuple[int, int]]
    """By dimension, what the array is thought to have in front and behind."""
    bounded: tuple[int, ...]
    """Dimensions whose index map gives a slice."""

    @classmethod
    def of(cls, ref: Any, spec: Any) -> Blocks:
        """Raises `HloError` HLO0726 for a spec that does not fit the array."""
        if not isinstance(ref, Ref) or not isinstance(spec, BlockSpec):
            raise bad_spec("emit_pipeline takes references and one BlockSpec for each")
        sizes = ref.shape if spec.block_shape is None else sizes_of(spec)
        block = ref.shape if spec.block_shape is None else spec.block_shape
        if len(sizes) != ref.ndim:
            raise bad_spec(f"a block of {len(sizes)} dimensions for an array of {ref.ndim}")
        padding = {
            dim: size.padding
            for dim, size in enumerate(block)
            if isinstance(size, Element) and any(size.padding)
        }
        for dim, (size, total) in enumerate(zip(sizes, ref.shape, strict=True)):
            if size is not None and size > total + sum(padding.get(dim, ())):
                raise bad_spec(
                    f"a block of {size} in dimension {dim}, of size {total}",
                    "a block is no larger than its array",
                )
        bounded = tuple(dim for dim, size in enumerate(block) if isinstance(size, BoundedSlice))
        if bounded and spec.index_map is None:
            raise bad_spec(
                "a BoundedSlice has no index map", "give one that returns pl.ds(start, size)"
            )
        counts_elements = any(isinstance(size, Element) for size in block)
        return cls(ref, spec, tuple(sizes), counts_elements, padding, bounded)

    @property
    def shape(self) -> tuple[int, ...]:
        """What the body sees."""
        return tuple(size for size in self.sizes if size is not None)

    @property
    def ragged(self) -> list[int]:
        """Dimensions whose last block the end of the array cuts."""
        return [
            dim
            for dim, size in enumerate(self.sizes)
            if size is not None
            and not self.counts_elements
            and dim not in self.bounded
            and self.ref.shape[dim] % size
        ]

    def is_whole(self, grid: Sequence[Any]) -> bool:
        """Whether every step of the grid has the whole array."""
        if self.sizes != self.ref.shape or self.bounded or self.counts_elements:
            return False
        with into(Block()):
            # Asked for what it looks at; what it computes belongs to no program.
            steps = [0 if is_number(size) and size == 1 else as_value(0, I32) for size in grid]
            return all(is_number(number) for number in self.numbers(steps))

    def numbers(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """The block's numbers at a step: one a dimension, then the sizes of bounded slices."""
        if self.spec.index_map is None:
            return (0,) * len(self.sizes)
        found = self.spec.index_map(*indices)
        items = list(found) if isinstance(found, tuple | list) else [found]
        if len(items) != len(self.sizes):
            raise bad_spec(
                f"an index map gives {len(items)} numbers for a block of {len(self.sizes)}"
            )
        counts: list[Any] = []
        for dim, item in enumerate(items):
            if isinstance(item, Slice) != (dim in self.bounded):
                raise bad_spec(
                    f"an index map gives {item!r} for dimension {dim}, which is {self._said(dim)}",
                    "a BoundedSlice takes pl.ds(start, size), other dimensions one number",
                )
            if isinstance(item, Slice):
                items[dim] = item.start
                counts.append(item.size)
        return (*items, *counts)

    def _said(self, dim: int) -> Any:
        block = self.spec.block_shape
        return self.sizes[dim] if block is None else block[dim]

    def _span(self, numbers: Sequence[Any], dim: int) -> tuple[Any, Any, Any] | None:
        """Where a block begins in the array and in the buffer along a dimension, and how much of it is
        there; None where that is the same at every step.
        """
        size, total = self.sizes[dim], self.ref.shape[dim]
        if dim in self.bounded:
            count = numbers[len(self.sizes) + self.bounded.index(dim)]
            return numbers[dim], 0, self._tiled(count, dim)
        if dim not in self.padding or size is None:
            return None
        start = numbers[dim] - self.padding[dim][0]
        begin = _most(start, 0)
        count = _least(start + size, total) - begin
        parts = (begin, begin - start, count)
        first, mine, count = (self._tiled(part, dim) for part in parts)
        return first, mine, count

    def _tiled(self, number: Any, dim: int) -> Any:
        """A number with the promise that it is a multiple of the tile, where that has to be so."""
        tile = tiles_of_indices(self.ref.shape, bits_of(self.ref.dtype)).get(dim, 1)
        return multiple_of(number, tile) if isinstance(number, Value) and tile > 1 else number

    def view(self, numbers: Sequence[Any]) -> Ref:
        """The block in its array, whole."""
        return self.ref.at[
            tuple(
                number
                if size is None
                else ds(
                    number if self.counts_elements or dim in self.bounded else number * size, size
                )
                for dim, (number, size) in enumerate(zip(numbers, self.sizes, strict=False))
            )
        ]

    def part(self, numbers: Sequence[Any], cut: frozenset[int]) -> tuple[Ref, tuple[Any, ...]]:
        """Where the block is in the array, and what of the buffer it fills; dimensions that are `cut`
        have what is left of the array.
        """
        index: list[Any] = []
        mine: list[Any] = []
        for dim, size in enumerate(self.sizes):
            number = numbers[dim]
            if size is None:
                index.append(number)
                continue
            span = self._span(numbers, dim)
            if span is not None:
                start, at, count = span
                index.append(ds(start, count))
                mine.append(ds(at, count))
                continue
            there = self.ref.shape[dim] % size if dim in cut else size
            index.append(ds(number if self.counts_elements else number * size, there))
            mine.append(ds(0, there))
        return self.ref.at[tuple(index)], tuple(mine)

    def is_cut(self, numbers: Sequence[Any]) -> Any:
        """Whether the block does not fill its buffer at this step: a boolean of Python where it can tell."""
        found: Any = False
        for dim, size in enumerate(self.sizes):
            if size is None:
                continue
            span = self._span(numbers, dim)
            if span is not None:
                found = either(found, span[2] < size)
            elif dim in self.ragged:
                found = either(found, numbers[dim] == self.ref.shape[dim] // size)
        return found

    def each_part(
        self, numbers: Sequence[Any], do: Callable[[Ref, tuple[Any, ...] | None], None]
    ) -> None:
        """`do` for the block's place in the array and in the buffer (None: all of it), of the size that
        it has at this step.
        """
        ragged = self.ragged
        for flags in product((False, True), repeat=len(ragged)):
            is_this: Any = True
            for dim, is_cut in zip(ragged, flags, strict=True):
                size = self.sizes[dim]
                assert size is not None
                last = self.ref.shape[dim] // size
                at_end = numbers[dim] == last if is_cut else numbers[dim] < last
                is_this = both(is_this, bool(at_end) if is_number(numbers[dim]) else at_end)
            for dim in (*self.padding, *self.bounded):
                # Nothing is copied of a block that lies in the padding, or of no elements.
                span = self._span(numbers, dim)
                is_this = both(is_this, True if span is None else _is_positive(span[2]))
            cut = frozenset(dim for dim, is_cut in zip(ragged, flags, strict=True) if is_cut)
            is_part = bool(cut or self.padding or self.bounded)

            def one(cut: frozenset[int] = cut, is_part: bool = is_part) -> None:
                array, mine = self.part(numbers, cut)
                do(array, mine if is_part else None)

            when(is_this)(one)


def differs(one: Sequence[Any], other: Sequence[Any]) -> Any:
    """Whether two blocks are different ones: a boolean of Python where it can tell."""
    found: Any = False
    for a, b in zip(one, other, strict=True):
        if is_number(a) and is_number(b):
            found = True if a != b else found
        elif found is not True:
            found = (as_value(a) != b) if found is False else found | (as_value(a) != b)
    return found


def both(one: Any, other: Any) -> Any:
    """`and` of what Python may know."""
    if is_number(one):
        return other if one else False
    if is_number(other):
        return one if other else False
    return one & other


def either(one: Any, other: Any) -> Any:
    """`or` of what Python may know."""
    if is_number(one):
        return True if one else other
    if is_number(other):
        return True if other else one
    return one | other


def _most(one: Any, other: Any) -> Any:
    return max(one, other) if is_number(one) and is_number(other) else maximum(one, other)


def _least(one: Any, other: Any) -> Any:
    return min(one, other) if is_number(one) and is_number(other) else minimum(one, other)


def _is_positive(count: Any) -> Any:
    return bool(count > 0) if is_number(count) else count > 0


__all__ = ["Blocks", "both", "differs", "either", "sizes_of"]
