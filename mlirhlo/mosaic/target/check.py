"""Whether the compiler of a TPU generation takes a kernel, said before anything is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import Diagnostic, HloError
from mlirhlo.mosaic.attributes import attribute_of, case_of, integers_of, name_of
from mlirhlo.mosaic.target.budget import MemoryUse, memory_use, over_budget
from mlirhlo.mosaic.target.generations import GENERATIONS, Generation, generation_of
from mlirhlo.mosaic.target.loops import carried_problems
from mlirhlo.mosaic.target.places import source_place
from mlirhlo.mosaic.target.rules import RULES, Question, Refusal, Rule
from mlirhlo.mosaic.target.structure import entry_of, structure_problems, views_are_followed
from mlirhlo.mosaic.target.windows import window_problems

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

_FAMILIES = (
    "elements",
    "casts",
    "vectors",
    "reductions",
    "matmul",
    "memory",
    "copies",
    "structure",
)
"""The modules with rules."""


@dataclass(frozen=True, slots=True)
class TargetReport:
    """The verdict on one kernel for one generation."""

    generation: Generation
    problems: tuple[Diagnostic, ...]
    memory: MemoryUse
    """What the kernel puts into which memory."""

    @property
    def is_accepted(self) -> bool:
        """Whether nothing speaks against the kernel."""
        return not self.problems

    def require(self) -> None:
        """Raises `HloError` with all problems, if there are any."""
        if self.problems:
            raise HloError(*self.problems)


def check_target(
    module: ModuleOp,
    generation: str,
    *,
    operands: Sequence[tuple[int, ...]] | None = None,
    collective_id: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> TargetReport:
    """What speaks against `module` on a generation: `v4`, `v5e`, `v5p`, `v6e` or `tpu7x`.

    `operands` are the shapes of the call's operands, then of its results, where they are known;
    without them the least array that the grid needs is assumed. `collective_id` and
    `vmem_limit_bytes` are those of the call.

    Raises `HloError` HLO0749 for other generations.
    """
    for family in _FAMILIES:
        import_module(f"mlirhlo.mosaic.target.{family}")
    target = generation_of(generation)
    kernel = entry_of(module)
    question = Question(
        target,
        collective_id,
        has_grid=kernel is not None and bool(integers_of(kernel, "iteration_bounds")),
    )
    found: list[tuple[Operation, Refusal]] = list(structure_problems(module, kernel))
    is_sparse = kernel is not None and case_of(attribute_of(kernel, "tpu.core_type")) not in (
        "",
        "tc",
    )
    # The rules are those of TensorCores; a SparseCore's compiler is another one.
    for function in () if is_sparse else module.body.ops:
        found += _of_ops(function, question)
    if kernel is not None and not found:
        found += window_problems(kernel, module, operands)
    use = memory_use(kernel)
    if kernel is not None:
        limit = target.scoped_vmem_bytes if vmem_limit_bytes is None else vmem_limit_bytes
        found += ((kernel, refusal) for refusal in over_budget(use, target, limit))
    problems = tuple(_diagnostic(op, refusal, target) for op, refusal in found)
    return TargetReport(target, problems, use)


def _of_ops(function: Operation, question: Question) -> list[tuple[Operation, Refusal]]:
    found: list[tuple[Operation, Refusal]] = []
    dead = dead_operations(function)
    for op in function.walk():
        if op in dead:
            continue
        for rule in (*RULES.get(name_of(op), ()), views_are_followed):
            refusal = rule(op, question)
            if refusal is not None:
                found.append((op, refusal))
                break
    found += carried_problems(function)
    return found


def dead_operations(function: Operation) -> set[Operation]:
    """Operations that only compute what nobody uses: the compiler drops them before it lowers."""
    dead: set[Operation] = set()
    for op in function.walk(reverse=True):
        if not op.results or op.regions or not _is_droppable(name_of(op)):
            continue
        if all(use.operation in dead for result in op.results for use in result.uses):
            dead.add(op)
    return dead


def _is_droppable(name: str) -> bool:
    dialect = name.partition(".")[0]
    return dialect in ("arith", "math", "ub") or (
        dialect == "vector" and name not in ("vector.maskedload", "vector.load")
    )


def _diagnostic(op: Operation, refusal: Refusal, target: Generation) -> Diagnostic:
    name = "the kernel" if name_of(op) in ("func.func", "builtin.module") else name_of(op)
    return Diagnostic(
        refusal.code,
        f"{target.name} does not take {name}: {refusal.problem}",
        source_place(op),
        help=refusal.help,
    )


def refuse(op: Operation, *rules: Rule) -> None:
    """Raises `HloError` where a rule refuses an operation on the newest generation."""
    target = list(GENERATIONS.values())[-1]
    question = Question(target, collective_id=0, has_grid=True)
    for rule in rules:
        # A rule asks for what its own operations have.
        refusal = rule(op, question) if rule in RULES.get(name_of(op), ()) else None
        if refusal is not None:
            found = _diagnostic(op, refusal, target)
            message = found.message.replace(f"{target.name} does not take", "no TPU takes")
            raise HloError(replace(found, message=message))
