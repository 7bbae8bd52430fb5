"""Whether any two kernels of a computation could be merged, told from outside: no fusion is looked into but for
its reduces, and nothing is planned.

What is asked here is less than what planning asks: kernels that are merged first, whatever else there is, meet all
of it. So where nothing is found, planning merges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    FusionOp,
    GetTupleElementOp,
    Instruction,
    ReduceOp,
    ReturnOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, classes_of
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.fusion import cost
from mlirhlo.rewrites.fusion.graph import INNER, Role, classes_in
from mlirhlo.rewrites.fusion.own_parts import FREE_CLASSES, is_written_first, space_of
from mlirhlo.rewrites.fusion.siblings import MOST_READERS
from mlirhlo.rewrites.fusion.spaces import Fold, FoldKind, reduce_fold

_SEARCH_LIMIT = cost.SEARCH_LIMIT * 3 // 4
"""Kernels that are looked at; fewer than planning looks at, which counts parts of them too."""

_MOVES = classes_in(Role.MOVE)
_KERNELS = classes_in(Role.PRODUCT, Role.UPDATE)
"""Classes that make a kernel in which nothing is one more output."""
_READERS = frozenset({*(INNER - _KERNELS - _MOVES), FusionOp})
_PRODUCERS = (_READERS - FREE_CLASSES) | classes_of(
    lambda row: row.movement in (Movement.SLICE, Movement.GATHER)
)


@dataclass(slots=True)
class Bodies:
    """What fusions hold that decides about merging them, read off the instructions by class."""

    reduces: Mapping[ComputationOp, list[ReduceOp]]
    moving: frozenset[ComputationOp]
    """Those that hold an instruction of `_MOVES`."""
    kernels: frozenset[ComputationOp]
    """Those that hold an instruction of `_KERNELS`."""
    by_name: Mapping[str, ComputationOp]
    _folds: dict[ComputationOp, list[Fold]] = field(
        default_factory=dict[ComputationOp, "list[Fold]"]
    )

    def folds(self, body: ComputationOp) -> list[Fold]:
        """What the reduces of a body do, where they do one thing."""
        if body not in self.reduces:
            return []
        if body not in self._folds:
            self._folds[body] = [f for op in self.reduces[body] if (f := reduce_fold(op))]
        return self._folds[body]

    @staticmethod
    def of(module: HloModule) -> Bodies:
        """Of the module as it is; ask it through `known`."""
        reduces: dict[ComputationOp, list[ReduceOp]] = {}
        for op in module.candidates(ReduceOp):
            reduces.setdefault(holder(op), []).append(cast(ReduceOp, op))
        return Bodies(
            reduces,
            frozenset(map(holder, module.candidates(*_MOVES))),
            frozenset(map(holder, module.candidates(*_KERNELS))),
            module.known(HloModule.by_name),
        )


@dataclass(slots=True)
class Meetings:
    """Kernels of one computation that might be one."""

    module: HloModule
    bodies: Bodies
    computation: ComputationOp
    columns: bool = True
    """Whether reduces of columns may share a kernel with other outputs."""
    places: dict[Instruction, int] = field(default_factory=dict[Instruction, int])

    def any(self) -> bool:
        """Whether there is a pair."""
        listed = instruction_list(self.computation)
        readers: dict[SSAValue, list[Instruction]] = {}
        for op in listed:
            if type(op) in _READERS:
                for value in dict.fromkeys(op.inputs):
                    readers.setdefault(_one_for_all(value), []).append(op)
        if not readers:
            return False
        self.places = {op: place for place, op in enumerate(listed)}
        return any(self._meet(value, found) for value, found in readers.items())

    def _meet(self, value: SSAValue, found: list[Instruction]) -> bool:
        shape = shape_of(value.type)
        if not isinstance(shape, ArrayShape) or shape.is_dynamic or not shape.element_count:
            return False
        maker = cast(Instruction, value.owner)
        made_by = maker.operand.owner if type(maker) is GetTupleElementOp else maker
        is_made = type(made_by) in _PRODUCERS and self._is_taken_apart(made_by)
        is_shared = len(found) > 1 and shape.byte_size >= cost.SMALLEST_SHARED_BYTES
        if not (is_made or (is_shared and type(maker) not in FREE_CLASSES)):
            return False
        users = _users(value)
        found = [op for op in found if self._is_taken_apart(op)]
        if is_shared and type(maker) not in FREE_CLASSES and len(users) <= MOST_READERS:
            if self._are_siblings(found):
                return True
        if not is_made:
            return False
        assert isinstance(made_by, Instruction)
        if len(users) > 1 or self.computation.root in (maker, made_by):
            return (
                not self._writes_itself(maker, made_by)
                and any(self._may_write(op, made_by, value, shape, users) for op in found)
                and not self._writes_first(maker, made_by)
            )
        return any(self._follows(op, made_by, value, shape) for op in found)

    def _is_taken_apart(self, op: object) -> bool:
        """Whether it is no fusion, or one that may be taken apart."""
        if type(op) is not FusionOp:
            return True
        kept = CONTROL_PREDECESSORS in op.properties or "sharding" in op.properties
        body = self._body(op)
        if kept or op.kind == "kCustom" or body in self.bodies.kernels:
            return False
        # All that a loop writes it walks in the same way.
        return body in self.bodies.reduces or len(set(map(space_of, _arrays(op)))) == 1

    def _body(self, op: FusionOp) -> ComputationOp:
        return self.bodies.by_name[op.calls]

    def _inside(self, maker: Instruction, fusion: FusionOp) -> Instruction:
        """The instruction of a fusion that computes what it gives, or the part of it that `maker` is."""
        root = self._body(fusion).root
        if isinstance(maker, GetTupleElementOp) and isinstance(root, TupleOp):
            return cast(Instruction, root.inputs[maker.index].owner)
        return root

    def _writes_itself(self, maker: Instruction, made_by: Instruction) -> bool:
        """Whether it is a fusion of which nobody else writes this, by what computes it."""
        return type(made_by) is FusionOp and type(self._inside(maker, made_by)) not in _PRODUCERS

    def _writes_first(self, maker: Instruction, made_by: Instruction) -> bool:
        """Whether it is a fusion that writes this before another is asked."""
        if type(made_by) is not FusionOp:
            return False
        return is_written_first(self._inside(maker, made_by), columns=self.columns)

    def _folds(self, op: Instruction) -> list[Fold]:
        """Of a reduce, or the reduces in a fusion."""
        if isinstance(op, FusionOp):
            return self.bodies.folds(self._body(op))
        fold = reduce_fold(op) if isinstance(op, ReduceOp) else None
        return [] if fold is None else [fold]

    # ------------------------------------------------------------ one reads the other

    def _may_write(
        self,
        op: Instruction,
        maker: Instruction,
        value: SSAValue,
        shape: ArrayShape,
        users: list[Instruction],
    ) -> bool:
        """Whether a reader may be the kernel that writes the value as well."""
        if op is maker or not self._is_walked(op, maker, value, shape):
            return False
        place = self.places[op]
        early = [user for user in users if user is not op and self.places[user] < place]
        if early and self.module.is_scheduled:
            return False
        return not self._is_reached(op, early)

    def _is_walked(
        self, op: Instruction, maker: Instruction, value: SSAValue, shape: ArrayShape
    ) -> bool:
        """Whether the reader may compute each element of the value once."""
        size, space = shape.element_count, space_of(shape)
        if folds := self._folds(op):
            return any(
                fold.space == space or (_gives(fold, size) and self._is_after(op, value, fold))
                for fold in folds
            )
        results = [(s.element_count, space_of(s)) for s in _arrays(op)]
        if any(space == found for _, found in results):
            return True
        # Values of a reduce of columns, and of rows: spread over them, or a reduce's own.
        made = [f.kind is FoldKind.ROWS for f in self._folds(maker) if _gives(f, size)]
        if not all(made) and any(size == count for count, _ in results):
            return True
        return any(
            count % size == 0 and (count > size or any(made)) for count, _ in results
        ) and self._comes_from_rows(maker)

    def _is_after(self, op: Instruction, value: SSAValue, fold: Fold) -> bool:
        """Whether a fusion may read the value only where its reduce gives one: rows spread theirs too."""
        if fold.kind is FoldKind.ROWS or not isinstance(op, FusionOp):
            return True
        numbers = {n for n, v in enumerate(op.inputs) if _one_for_all(v) is value}
        inner = [p for p in self._body(op).parameters if p.parameter_number in numbers]
        return not any(type(use.operation) in FREE_CLASSES for p in inner for use in p.output.uses)

    def _comes_from_rows(self, maker: Instruction) -> bool:
        """Whether it is computed from a reduce of rows, step by step."""
        seen: set[Instruction] = set()
        stack = [maker]
        while stack:
            op = stack.pop()
            if op in seen or len(seen) > 64:
                continue
            seen.add(op)
            if any(f.kind is FoldKind.ROWS for f in self._folds(op)):
                return True
            if type(op) in _READERS or type(op) is GetTupleElementOp:
                stack += [cast(Instruction, v.owner) for v in op.inputs]
        return len(seen) > 64

    # ------------------------------------------------------------ both read a third

    def _are_siblings(self, found: list[Instruction]) -> bool:
        alike: dict[object, list[Instruction]] = {}
        for op in found:
            for walk in self._walks(op):
                alike.setdefault(walk, []).append(op)
        for ops in alike.values():
            last = ops[-1]
            for op in ops[:-1]:
                if _share_enough(op, last) and not self._is_reached(last, _users_of(op), op):
                    return True
        return False

    def _walks(self, op: Instruction) -> set[object]:
        """What it may go over: equal for kernels that may be one."""
        if folds := self._folds(op):
            return {
                fold.rows or (fold.space, fold.dimensions)
                for fold in folds
                if fold.kind is not FoldKind.OTHER
            }
        if isinstance(op, FusionOp) and self._body(op) in self.bodies.moving:
            return set()
        return {space_of(shape) for shape in _arrays(op)[:1]}

    # ------------------------------------------------------------ rows, and a loop over their result

    def _follows(
        self, op: Instruction, maker: Instruction, value: SSAValue, shape: ArrayShape
    ) -> bool:
        if not isinstance(maker.shape, TupleShape) or self._folds(op):
            return False
        space = space_of(shape)
        if not any(fold.space == space for fold in self._folds(maker)):
            return False
        others = [v for v in op.inputs if v is not value]
        return not any(cast(Instruction, v.owner).operands for v in others)

    # ------------------------------------------------------------ order

    def _is_reached(
        self, target: Instruction, starts: Iterable[Instruction], source: Instruction | None = None
    ) -> bool:
        """Whether `target` needs one of `starts`, or is too far from them to tell, as planning has it."""
        places = self.places
        limit = places[target]
        stack = [op for op in starts if places[op] <= limit]
        seen: set[Instruction] = set()
        count = 0
        while stack:
            op = stack.pop()
            if op is target:
                return True
            if op in seen:
                continue
            seen.add(op)
            count += type(op) is not GetTupleElementOp
            if count > _SEARCH_LIMIT:
                return True
            use = op.results[0].first_use
            while use is not None:
                user = use._operation  # pyright: ignore[reportPrivateUsage]
                if places.get(cast(Instruction, user), limit + 1) <= limit:
                    stack.append(cast(Instruction, user))
                use = use._next_use  # pyright: ignore[reportPrivateUsage]
        return False


def _one_for_all(value: SSAValue) -> SSAValue:
    """Of several get-tuple-elements of one part the first."""
    op = value.owner
    if type(op) is not GetTupleElementOp or type(op.operand.owner) is not FusionOp:
        return value
    return next(
        user.output
        for use in op.operand.uses
        if type(user := use.operation) is GetTupleElementOp and user.index == op.index
    )


def _users(value: SSAValue) -> list[Instruction]:
    """Instructions that read a value, also as another get-tuple-element of the same part."""
    values = [value]
    op = value.owner
    if type(op) is GetTupleElementOp:
        parts = [use.operation for use in op.operand.uses]
        values = [
            part.output
            for part in parts
            if type(part) is GetTupleElementOp and part.index == op.index
        ]
    found = dict.fromkeys(use.operation for v in values for use in v.uses)
    return [cast(Instruction, user) for user in found if type(user) is not ReturnOp]


def _users_of(op: Instruction) -> list[Instruction]:
    found = dict.fromkeys(use.operation for use in op.output.uses)
    return [cast(Instruction, user) for user in found if type(user) is not ReturnOp]


def _arrays(op: Instruction) -> list[ArrayShape]:
    """Shapes of what it writes."""
    shape = op.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return [part for part in parts if isinstance(part, ArrayShape)]


def _gives(fold: Fold, size: int) -> bool:
    """Whether a reduce may give so many numbers."""
    if fold.rows is not None:
        return fold.rows.count == size
    sizes = cast("tuple[int, ...]", fold.space[0])
    kept = prod(n for d, n in enumerate(sizes) if d not in fold.dimensions)
    return fold.kind is FoldKind.OTHER or kept == size


def _share_enough(a: Instruction, b: Instruction) -> bool:
    """Whether what both read is much of what the smaller one moves; see `siblings`."""
    if len(_arrays(a)) + len(_arrays(b)) > cost.MOST_OUTPUTS:
        return False
    one, other = dict.fromkeys(a.inputs), dict.fromkeys(b.inputs)
    if len({**one, **other}) > cost.MOST_INPUTS:
        return False
    shared = sum(_bytes(v) for v in one if v in other)
    moved = min(
        sum(map(_bytes, values)) + sum(s.byte_size for s in _arrays(op))
        for op, values in ((a, one), (b, other))
    )
    return 4 * shared >= moved


def _bytes(value: SSAValue) -> int:
    shape = shape_of(value.type)
    return shape.byte_size if isinstance(shape, ArrayShape) and not shape.is_dynamic else 0
