"""Programs with random shardings: an instruction of any opcode, moved about before and behind it; chains of several.

Everything may carry a sharding: tiles in any order of devices, even or not, replication in part, one device,
mesh axes and parts of them, Shardy's attributes. A program computes the same however it is partitioned.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlirhlo.debug.fuzz.generators import every
from mlirhlo.debug.fuzz.generators.choices import Choices
from mlirhlo.debug.fuzz.generators.instructions import (
    GENERATORS,
    Case,
    dims,
    name_of,
    shape_of,
    sizes,
)
from mlirhlo.debug.fuzz.generators.places import COUNTS, SHARDED, Places, arrays_of
from mlirhlo.debug.fuzz.generators.regions import Region
from mlirhlo.debug.fuzz.generators.unexecuted import OTHERS
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, parse_shape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, LINEAR_ALGEBRA_ROWS, REDUCTION_ROWS, opcodes

__all__ = ["OPCODES", "Program", "every", "program"]


@dataclass(slots=True)
class Program:
    """A module before partitioning, its inputs, and how it is partitioned."""

    text: str
    inputs: list[np.ndarray]
    partitions: int
    propagation: str
    """The pass before `spmd-partitioning`; none if empty."""
    off: float = 0.0
    """How far an element may be off, of the largest in the result."""


# ---------------------------------------------------------------- programs


@dataclass(slots=True)
class _Writer:
    """The entry of a program as it grows."""

    c: Choices
    places: Places
    lines: list[str] = field(default_factory=list[str])
    inputs: list[np.ndarray] = field(default_factory=list[np.ndarray])
    head: list[str] = field(default_factory=list[str])

    def add(self, shape: str, rest: str, percent: int = SHARDED) -> str:
        """`shape rest` under a new name, with or without a sharding."""
        name = f"v{len(self.lines)}"
        self.lines.append(
            f"  {name} = {shape} {rest}{self.places.mark(parse_shape(shape), percent)}"
        )
        return name

    def parameter(self, array: np.ndarray) -> str:
        """A parameter of these values."""
        self.inputs.append(np.ascontiguousarray(array).reshape(array.shape))
        shape = sizes(name_of(array), array.shape)
        return self.add(shape, f"parameter({len(self.inputs) - 1})", 80)

    def detour(self, value: str, type_: str, shape: Sequence[int]) -> str:
        """The same array after instructions that move it there and back."""
        c, rank = self.c, len(shape)
        full = sizes(type_, shape)
        match c.integer(0, 8):
            case 8 if type_ in REDUCED_TYPES:
                return Region(c, self.places, self.add, self.head, type_, shape).write(value)
            case 0 if rank > 1:
                order = c.permutation(rank)
                back = [order.index(d) for d in range(rank)]
                there = sizes(type_, [shape[d] for d in order])
                value = self.add(there, f"transpose({value}), dimensions={dims(order)}")
                return self.add(full, f"transpose({value}), dimensions={dims(back)}")
            case 1 if rank and type_ != "f8e8m0fnu":
                edges = [(c.integer(0, 3), c.integer(0, 3)) for _ in shape]
                wide = [n + a + b for n, (a, b) in zip(shape, edges, strict=True)]
                text = "x".join(f"{a}_{b}" for a, b in edges)
                zero = self.add(f"{type_}[]", _zero(type_), 0)
                value = self.add(sizes(type_, wide), f"pad({value}, {zero}), padding={text}")
                bounds = ", ".join(f"[{a}:{a + n}]" for n, (a, _) in zip(shape, edges, strict=True))
                return self.add(full, f"slice({value}), slice={{{bounds}}}")
            case 2:
                flat = sizes(type_, [math.prod(shape)])
                value = self.add(flat, f"reshape({value})")
                return self.add(full, f"reshape({value})")
            case 3 if rank:
                chosen = dims(c.subset(rank, c.integer(1, rank)))
                value = self.add(full, f"reverse({value}), dimensions={chosen}")
                return self.add(full, f"reverse({value}), dimensions={chosen}")
            case 4:
                value = self.add(f"({full}, {full})", f"tuple({value}, {value})")
                value = self.add(f"({full}, {full})", f"opt-barrier({value})")
                return self.add(full, f"get-tuple-element({value}), index={c.integer(0, 1)}")
            case 5:
                rows = c.integer(1, 5)
                place = c.integer(0, rank)
                many = [*shape[:place], rows, *shape[place:]]
                others = [d for d in range(rank + 1) if d != place]
                value = self.add(
                    sizes(type_, many), f"broadcast({value}), dimensions={dims(others)}"
                )
                return self.row(value, type_, many, place, c.integer(0, rows - 1))
            case 6:
                return self.add(full, f'custom-call({value}), custom_call_target="Sharding"', 100)
            case _:
                return self.add(full, f"copy({value})")

    def row(self, value: str, type_: str, shape: Sequence[int], dim: int, at: int) -> str:
        """One row along a dimension, without it: by a static or a dynamic slice, a gather or a sum."""
        c = self.c
        one = [1 if d == dim else n for d, n in enumerate(shape)]
        less = [n for d, n in enumerate(shape) if d != dim]
        if c.chance(60):
            bounds = ", ".join(
                f"[{at}:{at + 1}]" if d == dim else f"[0:{n}]" for d, n in enumerate(shape)
            )
            value = self.add(sizes(type_, one), f"slice({value}), slice={{{bounds}}}")
        else:
            index = self.add("s32[]", f"constant({at})", 0)
            zero = self.add("s32[]", "constant(0)", 0)
            starts = ", ".join(index if d == dim else zero for d in range(len(shape)))
            rest = f"dynamic-slice({value}, {starts}), dynamic_slice_sizes={dims(one)}"
            value = self.add(sizes(type_, one), rest)
        return self.add(sizes(type_, less), f"reshape({value})")

    def operand(self, array: np.ndarray) -> str:
        """An array as a parameter, or made of parameters that hold it."""
        c, type_, shape = self.c, name_of(array), array.shape
        if c.chance(15):
            rows, place = c.integer(1, 5), c.integer(0, array.ndim)
            at = c.integer(0, rows - 1)
            others = np.roll(array.reshape(-1), 1).reshape(shape)
            stacked = np.stack([array if k == at else others for k in range(rows)], place)
            value = self.parameter(stacked)
            return self.row(value, type_, stacked.shape, place, at)
        if c.chance(10) and array.ndim:
            dim = c.integer(0, array.ndim - 1)
            at = c.integer(0, shape[dim])
            parts = np.split(array, [at], dim)
            names = ", ".join(self.parameter(part) for part in parts)
            return self.add(sizes(type_, shape), f"concatenate({names}), dimensions={{{dim}}}")
        value = self.parameter(array)
        while c.chance(25):
            value = self.detour(value, type_, shape)
        return value

    def borrowed(self, array: np.ndarray, pool: Sequence[Array]) -> str | None:
        """A value of `pool` in place of an array, cut to its size; None mostly where there is none."""
        type_, size = name_of(array), array.size
        fits = [v for v in pool if v[1].element_type.name == type_ and v[1].element_count >= size]
        if not fits or not size or not self.c.chance(70):
            return None
        name, shape, _ = self.c.pick(fits)
        if shape.dimensions == array.shape:
            return name
        flat = self.add(sizes(type_, [shape.element_count]), f"reshape({name})")
        if shape.element_count > size:
            start = self.c.integer(0, shape.element_count - size)
            flat = self.add(
                sizes(type_, [size]), f"slice({flat}), slice={{[{start}:{start + size}]}}"
            )
        return self.add(sizes(type_, array.shape), f"reshape({flat})")

    def outlined(
        self, lines: Sequence[str], shapes: Sequence[str], names: Sequence[str], prefix: str
    ) -> str:
        """Lines of `@p0`, `@p1`, … in a computation of their own, called in one of several ways."""
        places, result = self.places, shape_of(lines[-1].split(" = ", 1)[1])
        ways: tuple[str, ...] = ("call", "conditional", "while")
        if any("async-start" in line for line in lines):
            ways = ("call", "while")  # a computation is of one async-start
        way = self.c.pick(ways)
        whole = f"({', '.join(shapes)})"
        body = [f"{prefix}{way} {{"]
        if way == "call" or not shapes:
            way = "call"
            body = [f"{prefix}call {{"]
            body += [f"  @p{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
        else:
            state = whole if way == "conditional" else f"(s32[], {result}, {whole})"
            body.append(f"  @state = {state} parameter(0)")
            inner = "@state"
            if way == "while":
                body.append(f"  @all = {whole} get-tuple-element(@state), index=2")
                inner = "@all"
            body += [
                f"  @p{k} = {shape} get-tuple-element({inner}), index={k}"
                for k, shape in enumerate(shapes)
            ]
        body += [f"  {places.marked(line)}" for line in lines]
        if way != "while":
            body[-1] = body[-1].replace("  @r = ", "  ROOT @r = ", 1)
            self.head.append(_named("\n".join([*body, "}\n"]), prefix))
            if way == "call":
                return self.add(result, f"call({', '.join(names)}), to_apply={prefix}call")
            other = _named("\n".join([*body, "}\n"]), f"{prefix}o_")
            for line in lines:
                for called in re.findall(r"=@(\w+)|{@(\w+)", line):
                    name = "".join(called)
                    other = other.replace(f"{prefix}o_{name}", f"{prefix}{name}")
            other = other.replace(f"{prefix}{way} {{", f"{prefix}other {{")
            self.head.append(other)
            argument = self.add(whole, f"tuple({', '.join(names)})")
            first = self.add("pred[]", f"constant({self.c.pick(('true', 'false'))})", 0)
            return self.add(
                result,
                f"conditional({first}, {argument}, {argument}), "
                f"true_computation={prefix}{way}, false_computation={prefix}other",
            )
        return self._loop(body, lines, result, whole, names, prefix)

    def _loop(
        self,
        body: list[str],
        lines: Sequence[str],
        result: str,
        whole: str,
        names: Sequence[str],
        prefix: str,
    ) -> str:
        state = f"(s32[], {result}, {whole})"
        body += [
            "  @i = s32[] get-tuple-element(@state), index=0",
            "  @one = s32[] constant(1)",
            "  @next = s32[] add(@i, @one)",
            f"  ROOT @out = {state} tuple(@next, @r, @all)",
            "}\n",
        ]
        condition = [
            f"{prefix}condition {{",
            f"  @s = {state} parameter(0)",
            "  @n = s32[] get-tuple-element(@s), index=0",
            "  @most = s32[] constant(2)",
            "  ROOT @less = pred[] compare(@n, @most), direction=LT",
            "}\n",
        ]
        self.head += [_named("\n".join(each), prefix) for each in (body, condition)]
        shape = parse_shape(result)
        leaves = arrays_of(shape) if isinstance(shape, TupleShape) else [shape]
        firsts = [self._zeros(leaf) for leaf in leaves if isinstance(leaf, ArrayShape)]
        first = firsts[0]
        if isinstance(shape, TupleShape):
            first = self.add(result, f"tuple({', '.join(firsts)})")
        argument = self.add(whole, f"tuple({', '.join(names)})")
        zero = self.add("s32[]", "constant(0)", 0)
        start = self.add(state, f"tuple({zero}, {first}, {argument})")
        rest = f"while({start}), condition={prefix}condition, body={prefix}while"
        return self.add(result, f"get-tuple-element({self.add(state, rest)}), index=1")

    def _zeros(self, shape: ArrayShape) -> str:
        type_ = shape.element_type.name
        zero = self.add(f"{type_}[]", _zero(type_), 0)
        return self.add(str(shape), f"broadcast({zero}), dimensions={{}}")


def _zero(type_: str) -> str:
    by_type = {"pred": "false", "f8e8m0fnu": "1", "c64": "(0, 0)", "c128": "(0, 0)"}
    return f"constant({by_type.get(type_, '0')})"


def _named(text: str, prefix: str) -> str:
    """The text with the names of one case; Shardy's mesh is everyone's."""
    return re.sub("@(?!mesh,)", prefix, text)


REDUCED_TYPES = ("pred", "f32", "f64", "s32", "s64", "u8", "u32", "c64")
"""Types that a collective may sum."""
SUMS = frozenset(
    {row.name for row in (*LINEAR_ALGEBRA_ROWS, *REDUCTION_ROWS)} - {"map"}
    | {"scatter", "custom-call"}
)
"""Their results depend on the order of operands, or are not exact, for any but small integers."""


def program(c: Choices, opcode: str) -> Program:
    """A program about one opcode: alone, or behind and before some others that take its result."""
    partitions = c.pick(COUNTS)
    writer = _Writer(c, Places(c, partitions, is_shardy=c.rarely(4)))
    opcodes = [opcode]
    while c.chance(35) and len(opcodes) < 4:
        opcodes.insert(c.integer(0, len(opcodes)), c.pick(OPCODES))
    off, roots = 0.0, list[Array]()
    for number, each in enumerate(opcodes):
        case = MAKERS[each](c, each)
        off = max(off, case.scaled)
        roots = [*roots[-2:], *_instance(writer, case, each, f"c{number}_", roots)]
    while c.chance(35):
        at = c.integer(0, len(roots) - 1)
        name, shape, is_tame = roots[at]
        roots[at] = (writer.detour(name, shape.element_type.name, shape.dimensions), shape, is_tame)
    return _finished(writer, roots, off)


def _instance(
    writer: _Writer, case: Case, opcode: str, prefix: str, pool: Sequence[Array]
) -> list[Array]:
    """A case as part of a program: here, or in a computation that is called; its results."""
    c, places = writer.c, writer.places
    is_tame = opcode not in SUMS
    names = [
        writer.borrowed(array, [v for v in pool if v[2] or is_tame]) or writer.operand(array)
        for array in case.inputs
    ]
    computations = case.computations
    if opcode in CONTROL_FLOW:
        computations = "\n".join(places.marked(line) for line in computations.split("\n"))
    writer.head.append(_named(computations, prefix))
    lines = [*case.before, f"@r = {case.line}"]
    if c.chance(25) and not any("<=" in line for line in lines):
        result = writer.outlined(lines, [name_and_sizes(a) for a in case.inputs], names, prefix)
    else:
        for line in lines:
            for k, name in reversed([*enumerate(names)]):
                line = line.replace(f"@p{k}", name)
            writer.lines.append("  " + places.marked(_named(line, prefix)))
        result = f"{prefix}r"
    whole = parse_shape(case.shape)
    is_exact = is_tame and opcode in TAME and all(map(_is_small, case.inputs))
    if isinstance(whole, ArrayShape):
        return [(result, whole, is_exact)]
    assert isinstance(whole, TupleShape)
    return [
        (writer.add(str(s), f"get-tuple-element({result}), index={k}"), s, is_exact)
        for k, s in enumerate(arrays_of(whole))
    ]


Array = tuple[str, ArrayShape, bool]
"""Name, shape, and whether its values are small integers."""
TAME = (
    opcodes(
        lambda row: (
            (row.moves and not row.collective)
            or (row.exact and row.arity in (1, 2) and row.data is not None)
        )
    )
    | {"add", "subtract"}
    | {"sign", "iota"}
)
"""What these make of small integers are such."""


def name_and_sizes(array: np.ndarray) -> str:
    """The shape of an array as text."""
    return sizes(name_of(array), array.shape)


def _is_small(array: np.ndarray) -> bool:
    if array.dtype.kind == "b":
        return True
    if array.dtype.name not in ("float32", "float64", "int32", "int64"):
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.all((np.abs(array) <= 8) & (array == np.round(array))))


def _finished(writer: _Writer, roots: Sequence[Array], off: float) -> Program:
    c, places = writer.c, writer.places
    if len(roots) == 1 and c.chance(40):
        name, shape, _ = roots[0]
        root = f"  ROOT r = {shape} copy({name}){places.mark(shape, 50, closed=True)}"
    else:
        shapes = ", ".join(str(s) for _, s, _ in roots)
        whole = TupleShape(tuple(s for _, s, _ in roots))
        end = places.mark(whole, 70)
        root = f"  ROOT r = ({shapes}) tuple({', '.join(n for n, _, _ in roots)}){end}"
    head = f"HloModule m, num_partitions={places.partitions}{places.header()}\n"
    lines = [head, *writer.head, "ENTRY e {", *writer.lines, root, "}"]
    propagation = "shardy-xla" if places.is_shardy else "sharding-propagation"
    if not places.is_shardy and c.rarely(5):
        propagation = ""
    return Program("\n".join(lines) + "\n", writer.inputs, places.partitions, propagation, off)


MAKERS = {**GENERATORS, **OTHERS}
OPCODES: tuple[str, ...] = tuple(sorted(MAKERS))
