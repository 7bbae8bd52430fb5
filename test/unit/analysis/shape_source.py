"""Random choices for tests of shapes: sizes, element types, dimension numbers, computations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from strategies.drawn import Drawn

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES

TYPES = sorted(name for name, row in PRIMITIVE_TYPES.items() if row.is_array)
FLOATS = ("f32", "bf16", "f64", "f16", "f8e4m3fn", "f8e5m2")


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction without shape, its operands' shapes, the computations it calls."""

    operands: tuple[str, ...]
    body: str
    computations: str = ""

    def __str__(self) -> str:
        lines = [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(self.operands)]
        return "\n".join(
            [
                "HloModule m",
                self.computations,
                "ENTRY e {",
                *lines,
                f"  ROOT r = {self.body}",
                "}",
                "",
            ]
        )


class Source(Drawn):
    """Choices of shapes, most of them right."""

    def size(self) -> int:
        """A size, mostly small and positive."""
        return self.pick((2, 3, 4, 1, 5, 0))

    def sizes(self, low: int = 0, high: int = 3) -> list[int]:
        """Sizes of a random rank."""
        return [self.size() for _ in range(self.integer(low, high))]

    def near(self, sizes: Sequence[int]) -> list[int]:
        """`sizes`, seldom with one changed, taken away or put in."""
        changed = list(sizes)
        if self.rarely(8):
            kind = self.integer(0, 2)
            at = self.integer(0, max(len(changed) - 1, 0))
            if kind == 0 and changed:
                changed[at] = self.size()
            elif kind == 1 and changed:
                del changed[at]
            else:
                changed.insert(at, self.size())
        return changed

    def shaped(self, sizes: Sequence[int], type_: str) -> str:
        """A shape of these sizes, some of them dynamic, seldom in another layout."""
        dims = [str(s) for s in sizes]
        if self.rarely(4):
            for dim in range(len(dims)):
                kind = self.integer(0, 5)
                dims[dim] = f"<={dims[dim]}" if kind in (4, 5) else "?" if kind == 3 else dims[dim]
        layout = ""
        if sizes and self.rarely(3):
            order = self.permutation(len(sizes))
            layout = "{" + ",".join(map(str, order)) + "}"
        if self.rarely(60):
            return self.pick(("token[]", "(f32[2])", "()"))
        return f"{type_}[{','.join(dims)}]{layout}"

    def type(self, mostly: str = "f32") -> str:
        """An element type, mostly the given one."""
        return self.pick(TYPES) if self.rarely(6) else mostly

    def dims(self, rank: int, count: int | None = None) -> list[int]:
        """Different dimension numbers of a rank, seldom wrong."""
        order = self.permutation(rank)
        found = order[: self.integer(0, rank) if count is None else count]
        if self.rarely(10):
            found.append(self.integer(-1, rank))
        return found


def braces(values: Sequence[object]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def computation(name: str, parameters: Sequence[str], root: str) -> str:
    lines = [f"  {name}.{i} = {p} parameter({i})" for i, p in enumerate(parameters)]
    return "\n".join([f"{name} {{", *lines, f"  ROOT {name}.r = {root}", "}", ""])


def reducer(s: Source, type_: str, count: int = 1) -> str:
    types = [s.type(type_) if s.rarely(8) else type_ for _ in range(2 * count)]
    parameters = [f"{t}[]" for t in types]
    if count == 1:
        return computation("f", parameters, f"{types[0]}[] add(f.0, f.1)")
    shapes = ", ".join(parameters[:count])
    return computation(
        "f", parameters, f"({shapes}) tuple({', '.join(f'f.{i}' for i in range(count))})"
    )


GENERATORS: dict[str, Callable[[Source, str], Case]] = {}


def generates(
    *opcodes: str,
) -> Callable[[Callable[[Source, str], Case]], Callable[[Source, str], Case]]:
    def register(function: Callable[[Source, str], Case]) -> Callable[[Source, str], Case]:
        GENERATORS.update(dict.fromkeys(opcodes, function))
        return function

    return register
