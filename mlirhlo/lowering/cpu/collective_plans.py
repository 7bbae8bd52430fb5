"""Plans of collectives: a step each, or one for a start and one for its done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.lowering.cpu.collectives import (
    FOLDS,
    IDS,
    MOVES,
    base_of,
    block_elements,
    fold_kernel,
    is_native,
    lone_collective,
    operands_of,
    reducer_of,
    start_of,
)
from mlirhlo.lowering.plan.steps import Collective, Site, Step, Tree, leaves

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.dialects.hlo.shapes import ArrayShape
    from mlirhlo.lowering.plan.planner import Planner


class CollectivePlanner:
    """What a planner does about collectives."""

    def __init__(self, planner: Planner[FuncOp]) -> None:
        self.planner = planner
        self._folds: dict[tuple[str, ArrayShape, int], str | None] = {}
        self._open: dict[Instruction, Collective] = {}
        """By a start that was planned, the step in which it ends."""

    def plan(self, op: Instruction, operands: list[Tree], steps: list[Step]) -> Tree | None:
        """Where the value of a collective is; None for what is none, or Python runs."""
        name = op.opcode.name
        if name.endswith("-done"):
            start = start_of(op)
            ending = None if start is None else self._open.get(start)
            if ending is not None:
                steps.append(ending)
            return None
        if name == "async-start":
            inner = lone_collective(self.planner.computations[op.called_computations[0]])
            return None if inner is None else self._start(op, inner, operands, steps)
        if base_of(op) not in FOLDS | MOVES | IDS:
            return None
        if name.endswith("-start"):
            return self._start(op, op, operands, steps)
        result = self.planner.new(op.shape)
        step = self._step(op, operands, result)
        if step is None:
            return None
        steps.append(step)
        return result

    def _start(
        self, op: Instruction, inner: Instruction, operands: list[Tree], steps: list[Step]
    ) -> Tree | None:
        """The first step of a pair; `inner` is the collective itself."""
        is_bare = op.opcode.name == "all-reduce-start"
        parts = [op.shape] * 2 if is_bare else list(cast(TupleShape, op.shape).elements)
        result = self.planner.new(parts[1])
        step = self._step(inner, operands, result, is_split=True)
        if step is None:
            return None
        steps.append(replace(step, ends=False))
        self._open[op] = replace(step, starts=False)
        if is_bare:
            return result
        given = tuple(operands) if isinstance(parts[0], TupleShape) else operands[0]
        return (given, result, *map(self.planner.new, parts[2:]))

    def _step(
        self, op: Instruction, operands: list[Tree], result: Tree, *, is_split: bool = False
    ) -> Collective | None:
        if not is_native(op, operands, result):
            return None
        folds: list[str] = []
        if base_of(op) in FOLDS:
            for shape in operands_of(op):
                fold = self._fold(op, shape)
                if fold is None:
                    return None
                folds.append(fold)
        planner = self.planner
        reads = [b for tree in operands for b in leaves(tree)]
        step = Collective(len(planner.sites), reads, list(leaves(result)), folds=folds)
        planner.sites.append(Site(op, operands, result, is_native=True, is_split=is_split))
        return step

    def _fold(self, op: Instruction, shape: ArrayShape) -> str | None:
        planner = self.planner
        key = (reducer_of(op), shape, block_elements(op, shape))
        if key not in self._folds:
            name = f"fold_{len(planner.kernels)}"
            kernel = fold_kernel(name, op, shape, planner.computations)
            self._folds[key] = None
            if kernel is not None and (0, 2) in planner.pairs(kernel):
                if not planner.workspaces(kernel):
                    planner.kernels[name] = kernel
                    self._folds[key] = name
        return self._folds[key]
