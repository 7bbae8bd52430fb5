"""Random whole modules: instructions of every opcode strung together, in calls, loops, branches, fusions, threads.

The operands of the generators of `instructions` are constants, parameters, or values that the module has, fitted to
the shape that is needed. The same seed gives the same module.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.debug.fuzz.generators import every
from mlirhlo.debug.fuzz.generators.bounded import Bounded
from mlirhlo.debug.fuzz.generators.draft import Draft, Scope, Seeded, Type
from mlirhlo.debug.fuzz.generators.instructions import (
    COMMON,
    GENERATORS,
    Case,
    name_of,
    sizes,
)
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, parse_shape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, opcodes

assert every


_OWN_INPUTS = opcodes(
    lambda row: (
        row.about_sizes
        or row.work == "random"
        or (row.library and not row.contracts and row.name != "fft")
    )
) | {"custom-call", "while"}
"""Opcodes of which not all values of an operand have a meaning."""
_PLAIN = tuple(sorted(GENERATORS.keys() - {"parameter", "custom-call"}))
_FUSED = tuple(
    o
    for o in _PLAIN
    if o not in CONTROL_FLOW | {"after-all", "add-dependency"} and o != "rng-bit-generator"
)
MAX_ELEMENTS = 600
MAX_DRAWS = 10


@dataclass(frozen=True, slots=True)
class Function:
    """A computation that may be called again."""

    name: str
    types: tuple[Type, ...]
    results: tuple[Type, ...]
    thread: str


class Module(Draft):
    """One random module: `text` and the `inputs` of its entry."""

    def __init__(
        self, seed: str, *, special: bool = False, steps: int = 10, opcodes: Sequence[str] = ()
    ) -> None:
        """`special`: infinities, NaNs and the like among the numbers. `steps`: instructions of the entry, at most.
        `opcodes`: those that instructions are of, and most arrays are of a few types and shapes then, so that
        instructions meet each other more often; none for all.
        """
        super().__init__(Seeded(seed, special=special))
        self.plain, self.fused = _PLAIN, _FUSED
        if opcodes:
            self.plain = tuple(o for o in opcodes if o in _PLAIN) or _PLAIN
            self.c.types = tuple(self.c.choose.sample(("f32", "s32", "bf16", "f64"), 2))
            self.fused = tuple(o for o in self.plain if o in _FUSED) or _FUSED
        self.functions: list[Function] = []
        self.shards = self.c.rarely(6)
        self.layouts = self.c.rarely(5)
        self.text = self._module(steps)

    def _module(self, steps: int) -> str:
        scope = Scope(self.c.integer(0, 3))
        self._steps(scope, self.c.integer(2, steps))
        count = self.c.integer(1, 4)
        recent = scope.pool[-8:]
        results = [recent[self.c.integer(0, len(recent) - 1)] for _ in range(count)]
        shapes = [self._laid(t) for _, t in results]
        if count == 1 and self.c.rarely(2):
            root = f"ROOT out = {sizes(*results[0][1])} copy({results[0][0]})"
            shapes = [sizes(*results[0][1])]
        else:
            names = ", ".join(name for name, _ in results)
            root = f"ROOT out = ({', '.join(shapes)}) tuple({names})"
        body = [*self.parameters, *scope.lines, root]
        entry = "\n".join(["ENTRY main {", *(f"  {line}" for line in body), "}"])
        return "\n\n".join(["HloModule random", *self.computations, entry]) + "\n"

    # ------------------------------------------------------------ steps

    def _steps(self, scope: Scope, count: int) -> None:
        for _ in range(count):
            self._step(scope)

    def _step(self, scope: Scope) -> None:
        composite: list[Callable[[Scope], None]] = [self.fusion]
        if not scope.fused:
            composite += [
                *(self.call, self.call, self.asynchronous, self.asynchronous),
                *(self.loop, self.branches, self.bounded, self.nested_tuple),
            ]
        if scope.depth and self.c.rarely(3):
            self.c.pick(composite)(scope)
        elif not scope.fused and self.c.rarely(8):
            self.c.pick((self.bounded, self.nested_tuple, self.bits, self.constants))(scope)
        else:
            self.instruction(scope)

    def instruction(self, scope: Scope) -> None:
        """One instruction of any opcode."""
        opcode, case = self._case(scope)
        shape = parse_shape(case.shape)
        prefix = self.name("x") + "."
        text = "\n".join([*case.before, f"@root = {case.line}"])
        for number in reversed(range(len(case.inputs))):
            text = text.replace(f"@p{number}", self._operand(scope, opcode, case.inputs[number]))
        if case.computations:
            self.add_computation(scope, case.computations.replace("@", prefix).rstrip())
        *before, root = text.replace("@", prefix).split("\n")
        scope.lines += before
        root = self.emit(scope, case.shape, root.split(" = ", 1)[1][len(case.shape) + 1 :])
        self.take(scope, root, shape)

    def _case(self, scope: Scope) -> tuple[str, Case]:
        """An opcode and an instruction of it that has a meaning and is not too large; where instructions are to meet,
        one that takes a value as it is, if some draws give one."""
        known = {type_ for _, type_ in scope.pool} if self.c.types else set[Type]()
        for attempt in itertools.count():
            opcode = self.c.pick(self.fused if scope.fused else self.plain)
            case = GENERATORS[opcode](self.c, opcode)
            shape = parse_shape(case.shape)
            parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
            arrays = [p for p in parts if isinstance(p, ArrayShape)]
            is_small = all(math.prod(a.dimensions) <= MAX_ELEMENTS for a in arrays)
            meets = not known or any((name_of(i), i.shape) in known for i in case.inputs)
            if not meets and attempt < MAX_DRAWS:
                continue
            if len(arrays) == len(parts) and is_small and _has_meaning(opcode, case):
                return opcode, case
        raise AssertionError

    def _operand(self, scope: Scope, opcode: str, data: np.ndarray) -> str:
        if opcode not in _OWN_INPUTS and not self.c.rarely(4):
            fit = self.fitted(scope, (name_of(data), data.shape))
            if fit is not None:
                return fit
        if opcode in _OWN_INPUTS and not scope.inline and self.c.rarely(2):
            return self.constant(scope, data)
        return self.source(scope, data)

    def take(self, scope: Scope, name: str, shape: Shape) -> None:
        """Puts the arrays of a value into the pool."""
        if isinstance(shape, TupleShape):
            for index, part in enumerate(shape.elements):
                if scope.fused or not self.c.rarely(5):
                    element = self.emit(
                        scope, str(part), f"get-tuple-element({name}), index={index}"
                    )
                    self.take(scope, element, part)
        elif isinstance(shape, ArrayShape):
            scope.pool.append((name, (shape.element_type.name, shape.dimensions)))

    # ------------------------------------------------------------ computations

    def _some(self, scope: Scope, most: int) -> list[tuple[str, Type]]:
        while not scope.pool:
            self.source(scope, self.c.small("f32", (3,)))
        return [self.c.pick(scope.pool[-6:]) for _ in range(self.c.integer(1, most))]

    def _inner(self, scope: Scope, types: Sequence[Type], **changes: Any) -> Scope:
        inner = Scope(max(scope.depth - 1, 0), scope.fused, True, scope.thread)
        for key, value in changes.items():
            setattr(inner, key, value)
        for number, type_ in enumerate(types):
            name = self.emit(inner, sizes(*type_), f"parameter({number})", "a")
            inner.pool.append((name, type_))
        return inner

    def _close(self, scope: Scope, root: str, stem: str = "f") -> str:
        """Ends a computation whose root is the line `shape opcode(…)`."""
        name = self.name(stem)
        lines = [f"  {line}" for line in [*scope.lines, f"ROOT {self.name('r')} = {root}"]]
        self.add_computation(scope, "\n".join([f"{name} {{", *lines, "}"]))
        return name

    def _results(self, scope: Scope, most: int = 3) -> tuple[str, tuple[Type, ...]]:
        """The line of a root, and what it gives: one array or a tuple."""
        chosen = [self.c.pick(scope.pool[-5:]) for _ in range(self.c.integer(1, most))]
        if scope.fused:  # where nothing may be dead
            text = "\n".join(line.split(" = ", 1)[1] for line in scope.lines) + " "
            unread = [
                (n, t) for n, t in scope.pool if not re.search(rf"{re.escape(n)}(?![\w.])", text)
            ]
            chosen = unread or chosen
        types = tuple(type_ for _, type_ in chosen)
        if len(chosen) == 1:
            opcode = "negate" if types[0][0] in ("f32", "s32") else "copy"
            return f"{sizes(*types[0])} {opcode}({chosen[0][0]})", types
        return f"{_tuple(types)} tuple({', '.join(n for n, _ in chosen)})", types

    def _function(self, scope: Scope, types: Sequence[Type], **changes: Any) -> Function:
        inner = self._inner(scope, types, **changes)
        self._steps(inner, self.c.integer(1, 3))
        root, results = self._results(inner)
        return Function(self._close(inner, root), tuple(types), results, inner.thread)

    def fusion(self, scope: Scope) -> None:
        """A fusion of any instructions."""
        chosen = self._some(scope, 3)
        made = self._function(scope, [t for _, t in chosen], fused=True)
        kind = self.c.pick(("kLoop", "kInput", "kOutput", "kCustom"))
        names = ", ".join(n for n, _ in chosen)
        shape = _result(made.results)
        name = self.emit(scope, shape, f"fusion({names}), kind={kind}, calls={made.name}")
        self.take(scope, name, parse_shape(shape))

    def call(self, scope: Scope) -> None:
        """A call; some functions are called several times."""
        known = [f for f in self.functions if f.thread == scope.thread]
        if known and not self.c.rarely(3):
            function = self.c.pick(known)
        else:
            function = self._function(scope, [t for _, t in self._some(scope, 3)])
            self.functions.append(function)
        for _ in range(self.c.integer(1, 2)):
            operands = self._arguments(scope, function.types)
            shape = _result(function.results)
            name = self.emit(scope, shape, f"call({operands}), to_apply={function.name}")
            self.take(scope, name, parse_shape(shape))

    def _arguments(self, scope: Scope, types: Sequence[Type]) -> str:
        names: list[str] = []
        for type_ in types:
            fit = self.fitted(scope, type_)
            names.append(fit or self.source(scope, self.c.small(*type_)))
        return ", ".join(names)

    def asynchronous(self, scope: Scope) -> None:
        """Start, updates and end of a computation, in a thread of its own or not."""
        thread = scope.thread or self.c.pick(("", "", "parallel", "other"))
        chosen = self._some(scope, 2)
        types = [t for _, t in chosen]
        made = self._function(scope, types, thread=thread)
        operands = ", ".join(n for n, _ in chosen)
        result = _result(made.results)
        shape = f"({_tuple(types)}, {result}, s32[])"
        extra = f', async_execution_thread="{thread}"' if thread else ""
        last = self.name("s")
        scope.lines.append(f"{last} = {shape} async-start({operands}){extra}, calls={made.name}")
        for _ in range(self.c.integer(0, 2)):
            following = self.name("u")
            scope.lines.append(f"{following} = {shape} async-update({last})")
            last = following
        if self.c.rarely(2):
            self.instruction(scope)
        name = self.emit(scope, result, f"async-done({last})")
        self.take(scope, name, parse_shape(result))

    def loop(self, scope: Scope) -> None:
        """A counted loop over some arrays."""
        chosen = self._some(scope, 3)
        types = [t for _, t in chosen]
        state = _tuple([("s32", ()), *types])
        inner = self._inner(scope, ())
        inner.lines.append(f"s = {state} parameter(0)")
        inner.lines.append("i = s32[] get-tuple-element(s), index=0")
        stem = self.name("b")
        for number, type_ in enumerate(types):
            text = f"get-tuple-element(s), index={number + 1}"
            inner.pool.append((self.emit(inner, sizes(*type_), text), type_))
        given = list(inner.pool)
        inner.pool.append(("i", ("s32", ())))
        inner.lines += [f"{stem}.one = s32[] constant(1)", f"{stem}.n = s32[] add(i, {stem}.one)"]
        self._steps(inner, self.c.integer(1, 3))
        following = [
            name if self.c.rarely(5) else self.fitted(inner, t) or name for name, t in given
        ]
        names = ", ".join([f"{stem}.n", *following])
        inner.lines = [_own(line, stem) for line in inner.lines]
        body = self._close(inner, _own(f"{state} tuple({names})", stem), "body")
        test = Scope(0, inline=True, thread=scope.thread)
        limit = self.c.integer(0, 4)
        test.lines = [
            f"{stem}.t = {state} parameter(0)",
            f"{stem}.j = s32[] get-tuple-element({stem}.t), index=0",
            f"{stem}.m = s32[] constant({limit})",
        ]
        condition = self._close(test, f"pred[] compare({stem}.j, {stem}.m), direction=LT", "cond")
        start = self.emit(scope, "s32[]", f"constant({self.c.integer(-1, 2)})", "c")
        names = ", ".join([start, *(n for n, _ in chosen)])
        first = self.emit(scope, state, f"tuple({names})")
        name = self.emit(scope, state, f"while({first}), condition={condition}, body={body}")
        self.take(scope, name, parse_shape(state))

    def branches(self, scope: Scope) -> None:
        """A choice between computations of one result."""
        count = self.c.integer(1, 3)
        results: tuple[Type, ...] = tuple(t for _, t in self._some(scope, 2))
        names: list[str] = []
        operands: list[str] = []
        for _ in range(count):
            chosen = self._some(scope, 2)
            types = [t for _, t in chosen]
            inner = self._inner(scope, ())
            shape = _tuple(types)
            whole = self.emit(inner, shape, "parameter(0)", "a")
            for number, type_ in enumerate(types):
                text = f"get-tuple-element({whole}), index={number}"
                inner.pool.append((self.emit(inner, sizes(*type_), text), type_))
            self._steps(inner, self.c.integer(0, 2))
            fits = [self.fitted(inner, t) or self.source(inner, self.c.small(*t)) for t in results]
            names.append(self._close(inner, f"{_tuple(results)} tuple({', '.join(fits)})", "br"))
            operands.append(self.emit(scope, shape, f"tuple({', '.join(n for n, _ in chosen)})"))
        which = self.fitted(scope, ("s32", ())) or self.emit(scope, "s32[]", "constant(1)", "c")
        shape = _tuple(results)
        text = f"conditional({which}, {', '.join(operands)}), branch_computations={{{', '.join(names)}}}"
        self.take(scope, self.emit(scope, shape, text), parse_shape(shape))

    def nested_tuple(self, scope: Scope) -> None:
        """Tuples in tuples, behind a barrier or not."""
        parts = self._some(scope, 3)
        inner = _tuple([t for _, t in parts])
        first = self.emit(scope, inner, f"tuple({', '.join(n for n, _ in parts)})")
        other, type_ = self._some(scope, 1)[0]
        shape = f"({inner}, {sizes(*type_)})"
        whole = self.emit(scope, shape, f"tuple({first}, {other})")
        if self.c.rarely(2):
            whole = self.emit(scope, shape, f"opt-barrier({whole})")
        self.take(scope, whole, parse_shape(shape))

    def bits(self, scope: Scope) -> None:
        """An array taken for one of another shape or type, and back as floats of 16 bits where it can be."""
        name, (element, shape) = self._some(scope, 1)[0]
        size = PRIMITIVE_TYPES[element].bits
        new = self.c.pick(
            [t for t in COMMON if t != "pred" and PRIMITIVE_TYPES[t].bits == size] or [element]
        )
        other = (math.prod(shape),) if self.c.rarely(2) else shape
        scope.pool.append((self.emit(scope, sizes(new, other), f"bitcast({name})"), (new, other)))
        if new in ("f32", "f64"):
            narrow = self.emit(scope, sizes("bf16", other), f"convert({scope.pool[-1][0]})")
            scope.pool.append((narrow, ("bf16", other)))

    def constants(self, scope: Scope) -> None:
        """A constant that is a tuple."""
        arrays = [
            self.c.small(self.c.pick(COMMON), self.c.shape(self.c.integer(0, 2)))
            for _ in range(self.c.integer(1, 3))
        ]
        shapes = [parse_shape(sizes(name_of(a), a.shape)) for a in arrays]
        whole = Literal.tuple_of(
            [Literal.from_array(shape, a) for shape, a in zip(shapes, arrays, strict=True)]
        )
        text = str(whole.shape)
        name = self.emit(scope, text, f"constant({whole.to_text(large=True)})")
        self.take(scope, name, whole.shape)

    # ------------------------------------------------------------ dynamic sizes

    def bounded(self, scope: Scope) -> None:
        """Arrays of dynamic sizes."""
        chosen = [(n, t) for n, t in scope.pool[-8:] if t[0] in ("f32", "s32") and len(t[1])]
        if not chosen or scope.thread:
            self.instruction(scope)
            return
        name, (element, shape) = self.c.pick(chosen)
        array = Bounded(self, scope, name, element, shape, [False] * len(shape))
        for _ in range(self.c.integer(1, 6)):
            array.apply()
        array.finish()


def _has_meaning(opcode: str, case: Case) -> bool:
    """Whether the opcode computes with the element type: the verifier takes more."""
    if not case.inputs:
        return True
    type_ = PRIMITIVE_TYPES[name_of(case.inputs[0])]
    if opcode.startswith("shift-") or opcode == "mulhi":
        return type_.is_integer
    return not (opcode == "remainder" and type_.is_complex)


def _own(line: str, stem: str) -> str:
    """A line of a loop's body, in which `s` and `i` are the state and the counter."""
    return re.sub(r"(?<![\w.%\[])([si])(?=[,) ])(?! constant)", rf"{stem}.\1", line)


def _tuple(types: Sequence[Type]) -> str:
    return f"({', '.join(sizes(*t) for t in types)})"


def _result(types: Sequence[Type]) -> str:
    return sizes(*types[0]) if len(types) == 1 else _tuple(types)
