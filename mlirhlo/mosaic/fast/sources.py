"""Arrays that nothing stores to, in the forms in which blocks of them are multiplied.

A form is made once, in front of the loops that read blocks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from mlirhlo.mosaic.fast.writer import Val, Writer

_FEW_ROWS = 16
"""So few rows are multiplied in another way."""
_OFTEN = 3
"""Times that an array has to be read to be laid out for it."""
_UNITS, _COLUMNS = 16, 32
"""Blocks of right factors are whole numbers of these."""


@dataclass
class Source:
    """An array, and what was made of it."""

    w: Writer
    value: Val
    reads: int = 1
    """Times that all of it is read, block by block."""
    lines: list[str] = field(init=False)
    """Where it is made."""
    _made: dict[object, Val] = field(init=False, default_factory=dict["object", "Val"])

    def __post_init__(self) -> None:
        self.lines = self.w.lines

    def _once(self, key: object, make: Callable[[], Val]) -> Val:
        if key not in self._made:
            inner, self.w.lines = self.w.lines, self.lines
            self._made[key] = make()
            self.w.lines = inner
        return self._made[key]

    def rounded(self) -> Val:
        """In bf16."""
        return self._once("rounded", lambda: self.w.rounded(self.value))

    def in_pairs(self, block: int, *, along_rows: bool) -> Val:
        """Words of two neighbours in bf16, blocks of `block` rows one behind the other: `[…, blocks, units, columns]`.

        Neighbours along the last dimension, which then is turned with the rows; `along_rows`: of two rows.
        """
        return self._once((block, along_rows), lambda: self._in_pairs(block, along_rows))

    def _in_pairs(self, block: int, along_rows: bool) -> Val:
        w, x = self.w, self.value
        *lead, rows, columns = x.shape
        blocks = rows // block
        if not along_rows:
            split = w.reshape(self.rounded(), (*lead, blocks, block, columns // 2, 2))
            words = w.bits(split, (*lead, blocks, block, columns // 2), "ui32")
            rank = len(words.shape)
            order = [*range(rank - 2), rank - 1, rank - 2]
            shape = (*lead, blocks, columns // 2, block)
            return w.op("transpose", [words], shape, "ui32", f"dims = {order}")
        halves: list[Val] = []
        shape = (*lead, rows // 2, columns)
        split = w.reshape(x, (*lead, rows // 2, 2, columns))
        for half in (0, 1):
            starts, sizes = [0] * len(split.shape), list(split.shape)
            starts[-2], sizes[-2] = half, 1
            one = w.reshape(w.slice(split, starts, sizes, [1] * len(sizes)), shape)
            one = w.convert(one, "bf16")
            halves.append(w.convert(w.bits(one, shape, "ui16"), "ui32"))
        low, high = halves
        words = w.like("or", low, w.like("shift_left", high, w.constant(16, "ui32", shape)))
        return w.reshape(words, (*lead, blocks, block // 2, columns))


@dataclass(frozen=True)
class Box:
    """A part of an array."""

    source: Source
    starts: Sequence[Val]
    sizes: tuple[int, ...]

    @property
    def reads(self) -> int:
        """Times that all of the array is read, block by block."""
        return self.source.reads

    def rounded(self) -> Val | None:
        """In bf16: what is read again is rounded once, not with every block; None for anything else."""
        if self.source.reads < 2:
            return None
        return self.source.w.read(self.source.rounded(), self.starts, self.sizes)

    def in_pairs(self, depth: int) -> Val | None:
        """A matrix as `[units, columns, 2]` in bf16, pairs along dimension `depth`; None where that
        does not pay off, or cannot be."""
        source, w = self.source, self.source.w
        *lead, rows, columns = source.value.shape
        if len(self.sizes) < 2 or source.reads < _OFTEN or prod(self.sizes[:-2]) != 1:
            return None
        block, last = self.starts[-2:]
        if last.known != 0 or self.sizes[-1] != columns or rows % self.sizes[-2]:
            return None
        size = self.sizes[-2]
        number = w.numbers.get((block.name, size))
        if block.known is not None and block.known % size == 0:
            number = w.constant(block.known // size, "i32")
        across = columns if depth == 0 else size
        deep = size if depth == 0 else columns
        if number is None or across % _COLUMNS or deep % (2 * _UNITS):
            return None
        words = source.in_pairs(size, along_rows=depth == 0)
        zero = w.constant(0, "i32")
        starts = [*self.starts[:-2], number, zero, zero]
        box = w.read(words, starts, [*(1 for _ in lead), 1, *words.shape[-2:]])
        return w.bits(w.reshape(box, (deep // 2, across)), (deep // 2, across, 2), "bf16")


def product_in_pairs(w: Writer, a: Val, b: Val, depth: int, type_: Val) -> Val | None:
    """The product `a[m, k] b`, summed along the last dimension of `a` and dimension `depth` of `b`, with
    `b` laid out beforehand; None where that is not to be had."""
    box = w.boxes.get(b.name)
    if not w.multiplies_pairs or box is None or (a.element, b.element) != ("bf16", "bf16"):
        return None
    if len(a.shape) != 2 or a.shape[0] <= _FEW_ROWS or len(b.shape) != 2:
        return None
    pairs = box.in_pairs(depth)
    if pairs is None:
        return None
    split = w.reshape(a, (a.shape[0], a.shape[1] // 2, 2))
    return w.op(
        "dot_general",
        [split, pairs],
        type_.shape,
        type_.element,
        "contracting_dims = [1, 2] x [0, 2]",
    )
