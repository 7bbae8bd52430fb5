"""Which neighbouring dimensions of the arrays in a computation can be walked as one.

Every array has its dimensions of more than one element in the order of memory, and a boundary between
each two neighbours. An instruction ties boundaries of its operands to boundaries of its result (both
are kept or both go), or cuts one for good: around a dimension that is sliced, say, or folded beside one
that is kept. What no instruction cuts, anywhere, can go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.elements import physical_order

Boundary: TypeAlias = "tuple[SSAValue, int]"
"""Of an array, between its axes of that number and the next."""

SAME_AS_OPERAND = frozenset({"copy", "opt-barrier"})


def arrays_in(value: SSAValue) -> Sequence[ArrayShape]:
    """Shapes of the arrays of a value."""
    shape = shape_of(value.type)
    parts: Any = shape.elements if isinstance(shape, TupleShape) else (shape,)
    arrays: Sequence[ArrayShape] = parts  # not `cast`, which is a call: asked for all the time
    return arrays


def axes_of(value: SSAValue) -> tuple[int, ...]:
    """Dimensions of more than one element in the order of memory; of a tuple those of its first."""
    shape = arrays_in(value)[0]
    return tuple(d for d in physical_order(shape) if shape.dimensions[d] != 1)


def sizes_of(value: SSAValue) -> tuple[int, ...]:
    """Dimensions of a value's (first) array."""
    return arrays_in(value)[0].dimensions


def is_row_major(value: SSAValue) -> bool:
    """Whether memory has the logical order, for all parts."""
    return all(
        list(order) == sorted(order)
        for shape in arrays_in(value)
        for order in [[d for d in physical_order(shape) if shape.dimensions[d] != 1]]
    )


def matching_groups(
    before: Sequence[int], after: Sequence[int]
) -> list[tuple[range, range]] | None:
    """Ranges of two lists of sizes with equal products, each as short as can be."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        first, second = i, j
        left, right = before[i], after[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                if i == len(before):
                    return None
                left, i = left * before[i], i + 1
            else:
                if j == len(after):
                    return None
                right, j = right * after[j], j + 1
        groups.append((range(first, i), range(second, j)))
    return groups if i == len(before) and j == len(after) else None


def is_regrouping(op: Instruction) -> bool:
    """Whether a reshape or bitcast only groups the axes of memory anew."""
    (operand,), result = op.inputs, op.output
    if op.opcode.name == "reshape":
        return is_row_major(operand) and is_row_major(result)
    before, after = arrays_in(operand)[0].element_type, arrays_in(result)[0].element_type
    return before is after


class Merging:
    """Boundaries of all values that lead from `operands` to `outputs`."""

    def __init__(self, outputs: Iterable[SSAValue], operands: Iterable[SSAValue]) -> None:
        self.operands = set(operands)
        self.order: list[Instruction] = []
        """Instructions, operands first."""
        self._axes: dict[SSAValue, tuple[int, ...]] = {}
        self._groups: dict[SSAValue, tuple[tuple[int, ...], ...]] = {}
        """What was asked for, when all is known."""
        self._parent: dict[Boundary, Boundary] = {}
        self._cut: set[Boundary] = set()
        outputs = list(outputs)
        self._walk(outputs)
        for op in self.order:
            self._constrain(op)
        for output in outputs[1:]:
            # Outputs that could share their loops do.
            if arrays_in(output)[0].dimensions == arrays_in(outputs[0])[0].dimensions:
                self._relate_same(output, outputs[0])

    def groups(self, value: SSAValue) -> tuple[tuple[int, ...], ...]:
        """Axes of a value, those that become one together."""
        found = self._groups.get(value)
        if found is None:
            groups: list[tuple[int, ...]] = []
            for at, axis in enumerate(self.axes(value)):
                if at and self._find((value, at - 1)) not in self._cut:
                    groups[-1] = (*groups[-1], axis)
                else:
                    groups.append((axis,))
            found = self._groups[value] = tuple(groups)
        return found

    def axes(self, value: SSAValue) -> tuple[int, ...]:
        """`axes_of`, remembered."""
        found = self._axes.get(value)
        if found is None:
            found = self._axes[value] = axes_of(value)
        return found

    def _walk(self, outputs: Sequence[SSAValue]) -> None:
        seen: set[SSAValue] = set(self.operands)
        stack: list[tuple[SSAValue, bool]] = [(v, False) for v in reversed(outputs)]
        while stack:
            value, done = stack.pop()
            if done:
                self.order.append(cast(Instruction, value.owner))
            elif value not in seen:
                seen.add(value)
                stack.append((value, True))
                op = cast(Instruction, value.owner)
                stack += [(v, False) for v in reversed(op.inputs)]

    def _find(self, boundary: Boundary) -> Boundary:
        parent = self._parent
        root = boundary
        while (up := parent.get(root)) is not None:
            root = up
        while (up := parent.get(boundary)) is not None:
            parent[boundary] = root
            boundary = up
        return root

    def _tie(self, one: Boundary, other: Boundary) -> None:
        one, other = self._find(one), self._find(other)
        if one != other:
            self._parent[one] = other
            if one in self._cut:
                self._cut.add(other)

    def cut(self, boundary: Boundary) -> None:
        """Keeps two axes apart."""
        self._cut.add(self._find(boundary))

    def cut_all(self, value: SSAValue) -> None:
        """Keeps all axes of a value apart."""
        for at in range(len(self.axes(value)) - 1):
            self.cut((value, at))

    def _relate(self, result: SSAValue, operand: SSAValue, come_from: Mapping[int, int]) -> None:
        """`come_from`: which dimension of the operand a dimension of the result is."""
        leads_to = {y: x for x, y in come_from.items()}
        self._one_side(result, operand, come_from)
        self._one_side(operand, result, leads_to)

    def _relate_same(self, one: SSAValue, other: SSAValue) -> None:
        """Dimensions of the same number are the same."""
        axes = self.axes(one)
        if axes == self.axes(other):
            for at in range(len(axes) - 1):
                self._tie((one, at), (other, at))
        else:
            self._relate(one, other, {d: d for d in axes})

    def _one_side(self, here: SSAValue, there: SSAValue, to: Mapping[int, int]) -> None:
        axes = self.axes(here)
        if len(axes) < 2:
            return
        place = {d: at for at, d in enumerate(self.axes(there))}
        for at, (a, b) in enumerate(pairwise(axes)):
            x, y = (place.get(to.get(d, -1)) for d in (a, b))
            if x is not None and y is not None and y == x + 1:
                self._tie((here, at), (there, x))
            elif x is not None or y is not None:
                self.cut((here, at))

    def _cut_around(self, value: SSAValue, before: Iterable[int], after: Iterable[int]) -> None:
        """Cuts in front of some dimensions and behind some."""
        front, behind = set(before), set(after)
        for at, (a, b) in enumerate(pairwise(self.axes(value))):
            if b in front or a in behind:
                self.cut((value, at))

    def _constrain(self, op: Instruction) -> None:
        result, operands = op.output, op.inputs
        rule = _RULES.get(op.opcode.name)
        if rule is not None:
            rule(self, op)
        elif op.opcode.elementwise or op.opcode.name in SAME_AS_OPERAND:
            for operand in operands:
                if sizes_of(operand):
                    self._relate_same(result, operand)
        else:
            for value in (result, *operands):
                self.cut_all(value)

    # One method for each opcode with a rule.

    def _constant(self, op: Any) -> None:
        del op

    def _broadcast(self, op: Any) -> None:
        self._relate(
            op.output,
            op.operand,
            {d: at for at, d in enumerate(cast("tuple[int, ...]", op.dimensions))},
        )

    def _transpose(self, op: Any) -> None:
        self._relate(op.output, op.operand, dict(enumerate(cast("tuple[int, ...]", op.dimensions))))

    def _reduce(self, op: Any) -> None:
        inputs = op.inputs[: len(op.inputs) // 2]
        rank = len(sizes_of(inputs[0]))
        kept = [d for d in range(rank) if d not in op.dimensions]
        for operand in inputs[1:]:
            self._relate_same(inputs[0], operand)
        self._relate(op.output, inputs[0], dict(enumerate(kept)))

    def _part(self, op: Any) -> None:
        self._relate_same(op.output, op.operand)

    def _iota(self, op: Any) -> None:
        self._cut_around(op.output, [op.iota_dimension], [op.iota_dimension])

    def _reverse(self, op: Any) -> None:
        self._relate_same(op.output, op.operand)
        self._cut_around(op.output, op.dimensions, op.dimensions)

    def _slice(self, op: Any) -> None:
        sizes = sizes_of(op.operand)
        parts = op.slices.dimensions
        partial = [d for d, s in enumerate(parts) if s.limit - s.start != sizes[d] or s.stride != 1]
        strided = [d for d, s in enumerate(parts) if s.stride != 1]
        self._relate(op.output, op.operand, {d: d for d in range(len(sizes))})
        for value in (op.output, op.operand):
            self._cut_around(value, partial, strided)

    def _pad(self, op: Any) -> None:
        edges = op.padding.dimensions
        padded = [d for d, e in enumerate(edges) if e.low or e.high or e.interior]
        spread = [d for d, e in enumerate(edges) if e.interior]
        self._relate(op.output, op.operand, {d: d for d in range(len(edges))})
        for value in (op.output, op.operand):
            self._cut_around(value, padded, spread)

    def _concatenate(self, op: Any) -> None:
        for operand in op.inputs:
            self._relate(op.output, operand, {d: d for d in range(len(sizes_of(operand)))})
            self._cut_around(operand, op.dimensions, ())
        self._cut_around(op.output, op.dimensions, ())

    def _regroup(self, op: Any) -> None:
        operand, result = op.operand, op.output
        before, after = ([sizes_of(v)[d] for d in self.axes(v)] for v in (operand, result))
        groups = matching_groups(before, after) if is_regrouping(op) else None
        if groups is None:
            self.cut_all(operand)
            self.cut_all(result)
            return
        for number, (i, j) in enumerate(groups):
            inner = [(operand, at) for at in i[:-1]] + [(result, at) for at in j[:-1]]
            for one, other in pairwise(inner):
                self._tie(one, other)
            if number:
                self._tie((operand, i[0] - 1), (result, j[0] - 1))


_RULES = {
    "constant": Merging._constant,  # pyright: ignore[reportPrivateUsage]
    "broadcast": Merging._broadcast,  # pyright: ignore[reportPrivateUsage]
    "transpose": Merging._transpose,  # pyright: ignore[reportPrivateUsage]
    "reduce": Merging._reduce,  # pyright: ignore[reportPrivateUsage]
    "get-tuple-element": Merging._part,  # pyright: ignore[reportPrivateUsage]
    "iota": Merging._iota,  # pyright: ignore[reportPrivateUsage]
    "reverse": Merging._reverse,  # pyright: ignore[reportPrivateUsage]
    "slice": Merging._slice,  # pyright: ignore[reportPrivateUsage]
    "pad": Merging._pad,  # pyright: ignore[reportPrivateUsage]
    "concatenate": Merging._concatenate,  # pyright: ignore[reportPrivateUsage]
    "reshape": Merging._regroup,  # pyright: ignore[reportPrivateUsage]
    "bitcast": Merging._regroup,  # pyright: ignore[reportPrivateUsage]
}
