"""Arrays of dynamic sizes in random modules: set, computed with, moved, folded, and static again at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlirhlo.debug.fuzz.generators.draft import Draft, Scope
from mlirhlo.debug.fuzz.generators.instructions import dims


@dataclass(slots=True)
class Bounded:
    """One array; `apply` draws an instruction that makes the next one of it."""

    module: Draft
    scope: Scope
    name: str
    element: str
    shape: tuple[int, ...]
    is_dynamic: list[bool]
    functions: dict[str, str] = field(default_factory=dict[str, str])

    def text(
        self, shape: Sequence[int] | None = None, dynamic: Sequence[bool] | None = None
    ) -> str:
        """The shape, or another one of the same type."""
        sizes = self.shape if shape is None else shape
        flags = self.is_dynamic if dynamic is None else dynamic
        parts = (f"<={s}" if d else str(s) for s, d in zip(sizes, flags, strict=True))
        return f"{self.element}[{','.join(parts)}]"

    def become(self, shape: Sequence[int], dynamic: Sequence[bool], rest: str) -> None:
        """An instruction on it takes its place."""
        self.shape, self.is_dynamic = tuple(shape), list(dynamic)
        self.name = self.module.emit(self.scope, self.text(), rest)

    def apply(self) -> None:
        """One instruction, mostly; nothing where the one drawn does not fit."""
        c = self.module.c
        kinds = (
            *(self.set_size, self.set_size, self.unary, self.binary, self.transpose, self.reverse),
            *(self.size, self.joined, self.doubled, self.with_one, self.merged, self.pad),
            *(
                self.broadcast,
                self.product,
                self.outer,
                self.sort,
                self.fold,
                self.running,
                self.call,
            ),
            *(self.choice, self.update, self.slice, self.through_tuple),
        )
        kind = c.pick(kinds) if any(self.is_dynamic) else self.set_size
        kind(c.integer(0, len(self.shape) - 1))

    def set_size(self, dim: int) -> None:
        c = self.module.c
        number = np.array(c.integer(0, self.shape[dim]), np.int32)
        size = self.module.source(self.scope, number)
        if self.is_dynamic[dim]:  # what stands beyond the old size has no meaning
            self.size(dim)
            old = self.scope.pool[-1][0]
            size = self.module.emit(self.scope, "s32[]", f"minimum({old}, {size})")
        flags = [d or k == dim for k, d in enumerate(self.is_dynamic)]
        rest = f"set-dimension-size({self.name}, {size}), dimensions={{{dim}}}"
        self.become(self.shape, flags, rest)

    def unary(self, _: int) -> None:
        opcode = self.module.c.pick(("negate", "abs", "copy"))
        self.become(self.shape, self.is_dynamic, f"{opcode}({self.name})")

    def binary(self, _: int) -> None:
        opcode = self.module.c.pick(("add", "multiply", "maximum"))
        self.become(self.shape, self.is_dynamic, f"{opcode}({self.name}, {self.name})")

    def transpose(self, _: int) -> None:
        order = self.module.c.permutation(len(self.shape))
        shape = [self.shape[d] for d in order]
        flags = [self.is_dynamic[d] for d in order]
        self.become(shape, flags, f"transpose({self.name}), dimensions={dims(order)}")

    def reverse(self, dim: int) -> None:
        self.become(self.shape, self.is_dynamic, f"reverse({self.name}), dimensions={{{dim}}}")

    def size(self, dim: int) -> None:
        rest = f"get-dimension-size({self.name}), dimensions={{{dim}}}"
        self.scope.pool.append((self.module.emit(self.scope, "s32[]", rest), ("s32", ())))

    def joined(self, dim: int) -> None:
        if any(d for k, d in enumerate(self.is_dynamic) if k != dim):
            return
        c = self.module.c
        other = [c.integer(1, 3) if d == dim else s for d, s in enumerate(self.shape)]
        extra = self.module.source(self.scope, c.small(self.element, other))
        shape = [s + other[dim] if d == dim else s for d, s in enumerate(self.shape)]
        parts = c.pick((f"{self.name}, {extra}", f"{extra}, {self.name}"))
        self.become(shape, self.is_dynamic, f"concatenate({parts}), dimensions={{{dim}}}")

    def doubled(self, dim: int) -> None:
        shape = [s * 2 if d == dim else s for d, s in enumerate(self.shape)]
        if np.prod(shape) < 200:
            rest = f"concatenate({self.name}, {self.name}), dimensions={{{dim}}}"
            self.become(shape, self.is_dynamic, rest)

    def with_one(self, dim: int) -> None:
        shape = [*self.shape[:dim], 1, *self.shape[dim:]]
        flags = [*self.is_dynamic[:dim], False, *self.is_dynamic[dim:]]
        if len(shape) < 5:
            self.become(shape, flags, f"reshape({self.name})")

    def merged(self, dim: int) -> None:
        if dim + 1 < len(self.shape):
            shape = [
                *self.shape[:dim],
                self.shape[dim] * self.shape[dim + 1],
                *self.shape[dim + 2 :],
            ]
            either = self.is_dynamic[dim] or self.is_dynamic[dim + 1]
            flags = [*self.is_dynamic[:dim], either, *self.is_dynamic[dim + 2 :]]
            self.become(shape, flags, f"reshape({self.name})")

    def pad(self, dim: int) -> None:
        c = self.module.c
        low, high, inner = c.integer(0, 2), c.integer(0, 2), c.integer(0, 1)
        grown = self.shape[dim] + low + high + inner * max(self.shape[dim] - 1, 0)
        shape = [grown if d == dim else s for d, s in enumerate(self.shape)]
        text = "x".join(
            f"{low}_{high}_{inner}" if d == dim else "0_0" for d in range(len(self.shape))
        )
        value = self.module.scalar(self.scope, self.element, c.integer(0, 3))
        self.become(shape, self.is_dynamic, f"pad({self.name}, {value}), padding={text}")

    def broadcast(self, dim: int) -> None:
        if len(self.shape) < 4 and np.prod(self.shape) < 100:
            shape = [*self.shape[:dim], 2, *self.shape[dim:]]
            flags = [*self.is_dynamic[:dim], False, *self.is_dynamic[dim:]]
            kept = [d for d in range(len(shape)) if d != dim]
            self.become(shape, flags, f"broadcast({self.name}), dimensions={dims(kept)}")

    def product(self, dim: int) -> None:
        """With itself, over one dimension: a matrix of all pairs of the others."""
        left = [
            (s, f)
            for d, (s, f) in enumerate(zip(self.shape, self.is_dynamic, strict=True))
            if d != dim
        ]
        if len(left) == 1 and left[0][0]:
            (size, flag) = left[0]
            over = f"lhs_contracting_dims={{{dim}}}, rhs_contracting_dims={{{dim}}}"
            self.become([size, size], [flag, flag], f"dot({self.name}, {self.name}), {over}")

    def outer(self, _: int) -> None:
        if len(self.shape) == 1:
            shape, flags = self.shape * 2, self.is_dynamic * 2
            over = "lhs_contracting_dims={}, rhs_contracting_dims={}"
            self.become(shape, flags, f"dot({self.name}, {self.name}), {over}")

    def sort(self, dim: int) -> None:
        less = self.function("compare", "pred")
        rest = f"sort({self.name}), dimensions={{{dim}}}, to_apply={less}"
        self.become(self.shape, self.is_dynamic, rest)

    def fold(self, dim: int) -> None:
        if len(self.shape) > 1:
            start = self.module.scalar(self.scope, self.element, self.module.c.integer(0, 2))
            shape = [s for d, s in enumerate(self.shape) if d != dim]
            flags = [f for d, f in enumerate(self.is_dynamic) if d != dim]
            how = self.function(self.module.c.pick(("add", "maximum", "multiply")), self.element)
            rest = f"reduce({self.name}, {start}), dimensions={{{dim}}}, to_apply={how}"
            self.become(shape, flags, rest)

    def running(self, dim: int) -> None:
        size = self.shape[dim]
        if size:
            start = self.module.scalar(self.scope, self.element, 0)
            window = "x".join(str(size) if d == dim else "1" for d in range(len(self.shape)))
            edge = "x".join(f"{size - 1}_0" if d == dim else "0_0" for d in range(len(self.shape)))
            how = self.function("add", self.element)
            rest = f"reduce-window({self.name}, {start}), window={{size={window} pad={edge}}}, to_apply={how}"
            self.become(self.shape, self.is_dynamic, rest)

    def slice(self, dim: int) -> None:
        """Of a static dimension; the others whole."""
        if not self.is_dynamic[dim] and self.shape[dim] > 1:
            parts = ", ".join(f"[{int(d == dim)}:{s}]" for d, s in enumerate(self.shape))
            shape = [s - (d == dim) for d, s in enumerate(self.shape)]
            self.become(shape, self.is_dynamic, f"slice({self.name}), slice={{{parts}}}")

    def update(self, _: int) -> None:
        """Into a static array of the same bounds."""
        c = self.module.c
        whole = self.module.source(self.scope, c.small(self.element, self.shape))
        zero = self.module.scalar(self.scope, "s32", 0)
        starts = ", ".join([zero] * len(self.shape))
        rest = f"dynamic-update-slice({whole}, {self.name}, {starts})"
        self.become(self.shape, [False] * len(self.shape), rest)

    def call(self, _: int) -> None:
        name = self.module.name("of_bounded")
        text = self.text()
        self.module.add_computation(
            self.scope,
            f"{name} {{\n  {name}.a = {text} parameter(0)\n  {name}.b = {text} abs({name}.a)\n"
            f"  ROOT {name}.c = {text} add({name}.a, {name}.b)\n}}",
        )
        self.become(self.shape, self.is_dynamic, f"call({self.name}), to_apply={name}")

    def choice(self, _: int) -> None:
        compare = f"compare({self.name}, {self.name}), direction=EQ"
        truth = self.module.emit(self.scope, "pred" + self.text()[len(self.element) :], compare)
        other = self.module.emit(self.scope, self.text(), f"negate({self.name})")
        self.become(self.shape, self.is_dynamic, f"select({truth}, {other}, {self.name})")

    def through_tuple(self, _: int) -> None:
        shape = f"({self.text()}, {self.text()})"
        whole = self.module.emit(self.scope, shape, f"tuple({self.name}, {self.name})")
        self.become(self.shape, self.is_dynamic, f"get-tuple-element({whole}), index=1")

    def function(self, opcode: str, result: str) -> str:
        """A function of two scalars."""
        if opcode not in self.functions:
            name = self.functions[opcode] = self.module.name("of_two")
            extra = ", direction=LT" if opcode == "compare" else ""
            self.module.add_computation(
                self.scope,
                f"{name} {{\n  {name}.a = {self.element}[] parameter(0)\n"
                f"  {name}.b = {self.element}[] parameter(1)\n"
                f"  ROOT {name}.c = {result}[] {opcode}({name}.a, {name}.b){extra}\n}}",
            )
        return self.functions[opcode]

    def finish(self) -> None:
        """Folds what is dynamic; the result goes into the scope's pool."""
        folded = [d for d, flag in enumerate(self.is_dynamic) if flag]
        kept = tuple(s for s, flag in zip(self.shape, self.is_dynamic, strict=True) if not flag)
        if folded:
            start = self.module.scalar(self.scope, self.element, self.module.c.integer(0, 2))
            how = self.function("add", self.element)
            rest = f"reduce({self.name}, {start}), dimensions={dims(folded)}, to_apply={how}"
            self.become(kept, [False] * len(kept), rest)
        self.scope.pool.append((self.name, (self.element, self.shape)))
