"""Random modules of instructions that move, keep and mix dimensions, with entry layouts in any order."""

from __future__ import annotations

import random
from collections.abc import Callable

SIZES = (2, 3, 4)


def dims(shape: tuple[int, ...]) -> str:
    """`f32[2,3]`."""
    return f"f32[{','.join(map(str, shape))}]"


class Layouts:
    """One module; `text` is its HLO."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.computations: list[str] = []
        self.number = 0
        self.text = self.module()

    def name(self) -> str:
        """A fresh name."""
        self.number += 1
        return f"v.{self.number}"

    def laid(self, shape: tuple[int, ...]) -> str:
        """A shape in some layout."""
        order = self.random.sample(range(len(shape)), len(shape))
        return f"{dims(shape)}{{{','.join(map(str, order))}}}" if shape else dims(shape)

    def module(self) -> str:
        """All of it."""
        pick = self.random
        shapes = [pick.choice([(2, 3), (3, 4), (2, 3, 4), (4, 3, 2)]) for _ in range(3)]
        given = [self.laid(shape) for shape in shapes]
        lines = [f"  p.{k} = {text} parameter({k})" for k, text in enumerate(given)]
        lines.append("  zero = f32[] constant(0)")
        pool = {f"p.{k}": shape for k, shape in enumerate(shapes)}
        self.instructions(lines, pool, pick.randint(3, 9), 1)
        results = pick.choices(sorted(pool), k=pick.randint(1, 3))
        types = [self.laid(pool[name]) for name in results]
        result = f"({', '.join(types)})"
        lines.append(f"  ROOT out = {result} tuple({', '.join(results)})")
        header = f"HloModule random, entry_computation_layout={{({', '.join(given)})->{result}}}"
        plus = "plus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}"
        entry = "\n".join(["ENTRY main {", *lines, "}"])
        return "\n\n".join([header, plus, *self.computations, entry])

    def instructions(
        self, lines: list[str], pool: dict[str, tuple[int, ...]], count: int, depth: int
    ) -> None:
        """Adds instructions that read and extend the pool of arrays."""
        kinds: list[Callable[[list[str], str, dict[str, tuple[int, ...]]], None]] = [
            self.transpose,
            self.transpose,
            self.reshape,
            self.reduce,
            self.broadcast,
            self.binary,
            self.dot,
            self.unary,
            self.scan,
        ]
        for _ in range(count):
            name = self.random.choice(sorted(pool))
            if depth and self.random.random() < 0.2:
                self.loop(lines, name, pool)
            else:
                self.random.choice(kinds)(lines, name, pool)

    def add(
        self,
        lines: list[str],
        pool: dict[str, tuple[int, ...]],
        shape: tuple[int, ...],
        text: str,
    ) -> str:
        """One instruction, in a layout that the pass may forget."""
        made = self.name()
        lines.append(f"  {made} = {self.laid(shape)} {text}")
        pool[made] = shape
        return made

    def transpose(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """Any permutation."""
        order = self.random.sample(range(len(pool[a])), len(pool[a]))
        shape = tuple(pool[a][dim] for dim in order)
        self.add(lines, pool, shape, f"transpose({a}), dimensions={{{','.join(map(str, order))}}}")

    def reshape(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """Two dimensions merged, one of one element added, or one split."""
        old = pool[a]
        at = self.random.randrange(len(old))
        shape = self.random.choice(
            [
                (*old[:at], 1, *old[at:]),
                (*old[: at - 1], old[at - 1] * old[at], *old[at + 1 :]) if at else (*old, 1),
                (*old[:at], 2, old[at] // 2, *old[at + 1 :]) if old[at] % 2 == 0 else (1, *old),
            ]
        )
        self.add(lines, pool, shape, f"reshape({a})")

    def reduce(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """A sum over one dimension."""
        at = self.random.randrange(len(pool[a]))
        shape = pool[a][:at] + pool[a][at + 1 :]
        if shape:
            text = f"reduce({a}, zero), dimensions={{{at}}}, to_apply=plus"
            self.add(lines, pool, shape, text)

    def broadcast(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """One more dimension."""
        if len(pool[a]) > 3:
            return
        at = self.random.randrange(len(pool[a]) + 1)
        shape = (*pool[a][:at], self.random.choice(SIZES), *pool[a][at:])
        left = [dim for dim in range(len(shape)) if dim != at]
        self.add(lines, pool, shape, f"broadcast({a}), dimensions={{{','.join(map(str, left))}}}")

    def unary(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """Element by element, or a copy."""
        self.add(lines, pool, pool[a], f"{self.random.choice(['negate', 'copy', 'cosine'])}({a})")

    def binary(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """With another array of that shape."""
        b = self.random.choice([name for name in sorted(pool) if pool[name] == pool[a]])
        self.add(lines, pool, pool[a], f"{self.random.choice(['add', 'maximum'])}({a}, {b})")

    def dot(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """A matrix with itself."""
        if len(pool[a]) == 2:
            shape = (pool[a][0], pool[a][0])
            text = f"dot({a}, {a}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
            self.add(lines, pool, shape, text)

    def scan(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """Partial sums over one dimension, and the last of them."""
        shape = pool[a]
        at = self.random.randrange(len(shape))
        part = shape[:at] + shape[at + 1 :]
        step, start, whole = self.name(), self.name(), self.name()
        self.computations.append(
            f"{step} {{\n  a = {dims(part)} parameter(0)\n  b = {dims(part)} parameter(1)\n"
            f"  c = {dims(part)} add(a, b)\n  ROOT t = ({dims(part)}, {dims(part)}) tuple(c, c)\n}}"
        )
        lines.append(f"  {start} = {dims(part)} broadcast(zero), dimensions={{}}")
        lines.append(
            f"  {whole} = ({self.laid(shape)}, {self.laid(part)}) scan({a}, {start}), "
            f"dimensions={{{at}}}, num_carries=1, to_apply={step}"
        )
        for index, one in enumerate((shape, part)):
            if one:
                self.add(lines, pool, one, f"get-tuple-element({whole}), index={index}")

    def loop(self, lines: list[str], a: str, pool: dict[str, tuple[int, ...]]) -> None:
        """Three rounds over one array, which is mixed with its transpose where it is square."""
        shape, number = pool[a], self.name()
        state = f"(s32[], {dims(shape)})"
        inside = [
            f"  s = {state} parameter(0)",
            "  i = s32[] get-tuple-element(s), index=0",
            f"  e = {dims(shape)} get-tuple-element(s), index=1",
            "  one = s32[] constant(1)",
            "  next = s32[] add(i, one)",
            "  zero = f32[] constant(0)",
        ]
        own = {"e": shape}
        self.instructions(inside, own, 4, 0)
        last = [name for name in own if own[name] == shape][-1]
        inside.append(f"  ROOT r = {state} tuple(next, {last})")
        self.computations.append("\n".join([f"body.{number} {{", *inside, "}"]))
        self.computations.append(
            f"condition.{number} {{\n  s = {state} parameter(0)\n"
            "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(3)\n"
            "  ROOT c = pred[] compare(i, n), direction=LT\n}"
        )
        lines.append(f"  start.{number} = s32[] constant(0)")
        lines.append(f"  init.{number} = {state} tuple(start.{number}, {a})")
        lines.append(
            f"  loop.{number} = {state} while(init.{number}), "
            f"condition=condition.{number}, body=body.{number}"
        )
        made = self.name()
        lines.append(f"  {made} = {dims(shape)} get-tuple-element(loop.{number}), index=1")
        pool[made] = shape
