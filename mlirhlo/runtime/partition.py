"""Modules as clusters of machine code around the custom calls that have none.

    executable = mlirhlo.compile(module, clusters=True)
    executable.parts                  # ("cluster_0", "custom-call my_target", "cluster_1")

Without it such a call is a callback in the middle of the code. Here the code ends before it and goes on
after it, so that each cluster is one call and the custom call runs between two of them, in Python's own
time. The clusters grow as those of TensorFlow's auto-clustering (`analysis/clustering.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.clustering import Clustering, OrderedGraph
from mlirhlo.analysis.effects import SideEffects
from mlirhlo.debug.cut import Part, cut
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.interp.engine import Interpreter
from mlirhlo.runtime.callbacks import describe

if TYPE_CHECKING:
    from mlirhlo.interp.registry import Value
    from mlirhlo.runtime.executable import Executable


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Instructions that one call computes."""

    name: str
    part: Part
    executable: Executable

    def run(self, values: dict[Instruction, Any]) -> None:
        """Adds the results to `values`."""
        result = self.executable(*(values[op] for op in self.part.parameters))
        results = result if len(self.part.results) > 1 else (result,)
        values.update(zip(self.part.results, results, strict=True))


@dataclass(frozen=True, slots=True)
class _Outside:
    """An instruction without machine code."""

    name: str
    op: Instruction
    interpreter: Interpreter

    def run(self, values: dict[Instruction, Any]) -> None:
        """Adds the result to `values`."""
        inputs: list[Value] = [values[cast(Instruction, value.owner)] for value in self.op.inputs]
        values[self.op] = self.interpreter.evaluate(self.op, inputs)


class ClusteredExecutable:
    """A module whose custom calls run between calls of machine code; called as an `Executable` is."""

    def __init__(
        self, whole: Executable, module: HloModule, steps: Sequence[_Cluster | _Outside]
    ) -> None:
        self._whole, self._module, self._steps = whole, module, steps
        self._interpreter = Interpreter(module.op)

    @property
    def parts(self) -> tuple[str, ...]:
        """Clusters and instructions between them, in the order in which they run."""
        return tuple(step.name for step in self._steps)

    @property
    def callbacks(self) -> Mapping[str, int]:
        """How often clusters called back into Python: for custom calls in loops and branches."""
        counts: dict[str, int] = {}
        for step in self._steps:
            if isinstance(step, _Cluster):
                for name, count in step.executable.callbacks.items():
                    counts[name] = counts.get(name, 0) + count
        return counts

    def __call__(self, *arguments: object) -> Any:
        """The result. Raises `HloError` HLO0303 for arguments of other types, and what custom calls raise."""
        inputs = self._whole.checked(arguments)
        values: dict[Instruction, Any] = dict(
            zip(self._module.entry.parameters, inputs, strict=True)
        )
        for op in self._module.entry.instructions:
            if op.opcode.name == "constant":
                values[op] = self._interpreter.evaluate(op, ())
        for step in self._steps:
            step.run(values)
        return values[self._module.entry.root]


def compile_clusters(
    module: ModuleOp, compile_one: Callable[[ModuleOp], Executable]
) -> Executable | ClusteredExecutable:
    """The module as clusters of code, or whole where all has code, or code has effects or tokens to hand on.

    `compile_one` compiles a module. Raises as that does.
    """
    whole = compile_one(module)
    targets = whole.custom_calls
    view = HloModule(module)
    ops = [op for op in view.entry.instructions if op.opcode.name not in ("parameter", "constant")]
    outside = {op: None for op in ops if str(getattr(op, "custom_call_target", "")) in targets}
    effects = SideEffects.of(view)
    if not outside or any(effects.of_instruction(op) for op in ops if op not in outside):
        return whole
    interpreter = Interpreter(module)
    steps: list[_Cluster | _Outside] = []
    try:
        for group in _groups(ops, outside, effects):
            if group[0] in outside:
                steps.append(_Outside(describe(group[0]), group[0], interpreter))
            elif results := _results(view, own := set(group)):
                part = cut(view, results, frontier={op for op in ops if op not in own})
                number = sum(isinstance(step, _Cluster) for step in steps)
                steps.append(_Cluster(f"cluster_{number}", part, compile_one(part.module)))
    except HloError as problem:
        if problem.diagnostics[0].code == "HLO0868":  # a token between two clusters
            return whole
        raise
    return ClusteredExecutable(whole, view, steps)


def _groups(
    ops: Sequence[Instruction], outside: Mapping[Instruction, None], effects: SideEffects
) -> list[list[Instruction]]:
    """Clusters and single instructions outside, in an order in which they can run."""
    number = {op: index for index, op in enumerate(ops)}
    graph = OrderedGraph(len(ops))
    last: Instruction | None = None
    for op in ops:
        for value in op.operands:
            producer = cast(Instruction, value.owner)
            if producer in number:
                graph.insert(number[producer], number[op])
        if effects.of_instruction(op):
            if last is not None:
                graph.insert(number[last], number[op])
            last = op
    single = {number[op]: [op] for op in ops if op not in outside}
    clusters = Clustering(graph, single, lambda a, b: [*a, *b])
    clusters.grow(lambda source, target: True)
    groups = {number[op]: [op] for op in outside} | clusters.values
    order = [node for node in reversed(graph.post_order()) if node in groups]
    return [sorted(groups[node], key=number.__getitem__) for node in order]


def _results(view: HloModule, own: set[Instruction]) -> list[Instruction]:
    """Instructions of a cluster that others read, in order; none where it is dead."""
    root = view.entry.root
    return [
        op
        for op in view.entry.instructions
        if op in own and (op is root or any(use.operation not in own for use in op.results[0].uses))
    ]
