"""A random module under construction: its choices, its text so far, and values made to fit a type."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import dims, name_of, sizes
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, leaves, parse_shape

T = TypeVar("T")
Type = tuple[str, tuple[int, ...]]
"""Element type and sizes of an array."""


class Seeded(Choices):
    """Choices of a seed, without a search for simple ones; numbers are mostly small."""

    def __init__(self, seed: str, *, special: bool = False) -> None:
        self.choose = random.Random(seed)
        self.special = special
        self.types: tuple[str, ...] = ()
        """Element types that most arrays have; none: any."""
        self.shapes: dict[int, list[int]] = {}

    def integer(self, low: int, high: int) -> int:
        return self.choose.randint(low, high) if low < high else low

    def pick(self, options: Sequence[T]) -> T:
        first = options[0] if options else None
        if self.types and isinstance(first, str) and first in PRIMITIVE_TYPES:
            liked = [option for option in options if option in self.types]
            if liked and not self.rarely(6):
                return super().pick(liked)
        return super().pick(options)

    def shape(self, rank: int, low: int = 1, high: int = 5) -> list[int]:
        if self.types and not self.rarely(6):
            known = self.shapes.setdefault(rank, super().shape(rank, 2, 4))
            return [min(max(size, low), high) for size in known]
        shape = super().shape(rank, low, high)
        if shape and low and self.rarely(40):
            shape[self.integer(0, rank - 1)] = 0
        return shape

    def values(self, name: str, shape: Sequence[int], denormals: bool = True) -> np.ndarray:
        if self.special and self.rarely(3):
            return super().values(name, shape, False)
        if PRIMITIVE_TYPES[name].is_float and self.rarely(3):
            halves = np.arange(-9, 10) / 4
            return self.arranged(halves.astype(PRIMITIVE_TYPES[name].dtype), shape)
        return self.small(name, shape)


@dataclass(slots=True)
class Scope:
    """A computation under construction."""

    depth: int
    fused: bool = False
    inline: bool = False
    """Whether constants are the only new values; else parameters of the entry are too."""
    thread: str = ""
    lines: list[str] = field(default_factory=list[str])
    pool: list[tuple[str, Type]] = field(default_factory=list[tuple[str, Type]])


class Draft:
    """The computations written so far, and the `inputs` of the entry."""

    def __init__(self, choices: Seeded) -> None:
        self.c = choices
        self.numbers = itertools.count()
        self.computations: list[str] = []
        self.inputs: list[np.ndarray] = []
        self.parameters: list[str] = []
        self.shards = False
        """Whether some instructions have shardings."""
        self.layouts = False
        """Whether some arrays have layouts."""

    # ------------------------------------------------------------ pieces of text

    def name(self, stem: str) -> str:
        return f"{stem}.{next(self.numbers)}"

    def emit(self, scope: Scope, shape: str, rest: str, stem: str = "v") -> str:
        """One instruction; its name."""
        name = self.name(stem)
        extra = ""
        if self.shards and self.c.rarely(3) and not scope.fused and "sharding" not in rest:
            extra = ", sharding=" + self._sharding(parse_shape(shape))
        scope.lines.append(f"{name} = {shape} {rest}{extra}")
        return name

    def _sharding(self, shape: Shape) -> str:
        each = [self.c.pick(("{replicated}", "{maximal device=0}")) for _ in leaves(shape)]
        return f"{{{', '.join(each)}}}" if isinstance(shape, TupleShape) else each[0]

    def _laid(self, type_: Type) -> str:
        full = sizes(*type_)
        if not self.layouts or not type_[1] or not self.c.rarely(3):
            return full
        return full + dims(self.c.permutation(len(type_[1])))

    def constant(self, scope: Scope, data: np.ndarray) -> str:
        shape = parse_shape(sizes(name_of(data), data.shape))
        assert isinstance(shape, ArrayShape)
        literal = Literal.from_array(shape, data).to_text()
        return self.emit(scope, str(shape).split("{")[0], f"constant({literal})", "c")

    def source(self, scope: Scope, data: np.ndarray) -> str:
        """An array that comes from outside: a parameter of the program, or a constant."""
        type_ = (name_of(data), data.shape)
        if scope.inline or self.c.rarely(2) or data.size == 0:
            name = self.constant(scope, data)
        else:
            name = f"p.{len(self.inputs)}"
            self.parameters.append(f"{name} = {self._laid(type_)} parameter({len(self.inputs)})")
            self.inputs.append(data)
        scope.pool.append((name, type_))
        return name

    # ------------------------------------------------------------ values that fit

    def fitted(self, scope: Scope, wanted: Type) -> str | None:
        """A value of the pool, made to be of a type; None where none will do."""
        same = [name for name, type_ in scope.pool if type_ == wanted]
        if same and not self.c.rarely(4):
            return self.c.pick(same[-4:])
        if not scope.pool:
            return None
        name, (element, shape) = self.c.pick(scope.pool[-6:])
        if 0 in shape and 0 not in wanted[1]:
            return None
        name = self._converted(scope, name, element, shape, wanted[0])
        return self._resized(scope, name, wanted[0], shape, wanted[1])

    def _converted(
        self, scope: Scope, name: str, old: str, shape: tuple[int, ...], new: str
    ) -> str:
        if old == new:
            return name
        source, target = PRIMITIVE_TYPES[old], PRIMITIVE_TYPES[new]
        if source.is_complex and not target.is_complex:
            old = source.real.name
            name = self.emit(scope, sizes(old, shape), f"real({name})")
        if new == "pred":
            one = self.scalar(scope, old, 1)
            ones = self.emit(scope, sizes(old, shape), f"broadcast({one}), dimensions={{}}")
            return self.emit(scope, sizes(new, shape), f"compare({name}, {ones}), direction=NE")
        return self.emit(scope, sizes(new, shape), f"convert({name})") if old != new else name

    def _resized(
        self, scope: Scope, name: str, element: str, old: tuple[int, ...], new: tuple[int, ...]
    ) -> str:
        have, need = math.prod(old), math.prod(new)
        if old == new:
            return name
        if not old and need and self.c.rarely(2):
            return self.emit(scope, sizes(element, new), f"broadcast({name}), dimensions={{}}")
        if sorted(old) == sorted(new) and len(set(old)) == len(old):
            order = [old.index(size) for size in new]
            return self.emit(
                scope, sizes(element, new), f"transpose({name}), dimensions={dims(order)}"
            )
        if have != need:
            name = self.emit(scope, sizes(element, (have,)), f"reshape({name})")
            if have > need:
                at = self.c.integer(0, have - need)
                name = self.emit(
                    scope, sizes(element, (need,)), f"slice({name}), slice={{[{at}:{at + need}]}}"
                )
            else:
                one = self.scalar(scope, element, 1)
                name = self.emit(
                    scope, sizes(element, (need,)), f"pad({name}, {one}), padding=0_{need - have}"
                )
        if new == (need,) and have != need:
            return name
        return self.emit(scope, sizes(element, new), f"reshape({name})")

    def scalar(self, scope: Scope, element: str, value: int) -> str:
        return self.constant(scope, np.array(value).astype(PRIMITIVE_TYPES[element].dtype))

    def add_computation(self, scope: Scope, text: str) -> None:
        """Computations for the instructions of a scope, in its thread."""
        thread = f', execution_thread="{scope.thread}"' if scope.thread else ""
        self.computations.append(re.sub(r"^\}$", "}" + thread, text, flags=re.MULTILINE))
