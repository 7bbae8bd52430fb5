"""A part of a module as a module of its own, with the values that went in and came out in a real run."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from mlirhlo.analysis.call_graph import callees_first
from mlirhlo.debug import replay
from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.conditions import difference
from mlirhlo.debug.trials.sides import execute
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import append, make
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.shapes import TokenShape, TupleShape, leaves
from mlirhlo.interp.values import arrays_of
from mlirhlo.rewrites.cloning import clone_instruction, copy_computation

if TYPE_CHECKING:
    from mlirhlo.interp.registry import Value

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """A module cut out of another."""

    module: ModuleOp
    parameters: tuple[Instruction, ...]
    """What the parameters stand for: instructions of the whole module, in order."""
    results: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """What went in and came out of a part in a run of the whole."""

    inputs: tuple[Value, ...] = field(repr=False)
    outputs: tuple[Value, ...] = field(repr=False)
    executions: int
    """How often the part ran."""
    ended: bool = True
    """Whether the whole did, in the time that it had."""


class _OutOfTime(Exception):
    """The run has taken the time that it had."""


def cut(
    module: HloModule,
    targets: Sequence[Instruction],
    *,
    frontier: Collection[Instruction] = (),
    height: int = -1,
) -> Part:
    """A module whose results are `targets`, with what they are computed from, up to `frontier` and `height` away.

    Parameters stand for the rest. A negative height takes everything; 1 only the targets. Control predecessors are
    left behind; names stay. Raises `HloError` HLO0867 for targets of several computations, HLO0868 where a token
    would have to be a parameter.
    """
    computation = holder(targets[0])
    if any(holder(op) is not computation for op in (*targets, *frontier)):
        raise error("HLO0867", "the instructions stand in several computations")
    kept = _reached(targets, set(frontier), height)
    block, values = Block(), dict[SSAValue, SSAValue]()
    parameters: list[Instruction] = []
    for op in computation.instructions:
        if op not in kept:
            continue
        is_leaf = not op.inputs and op.opcode.name != "parameter"
        if kept[op] or (is_leaf and op not in frontier):
            copy = clone_instruction(op, values, op.instruction_name)
            if copy.properties.pop(CONTROL_PREDECESSORS, None) is not None:
                copy.operands = copy.operands[: len(op.inputs)]
        else:
            copy = _parameter(op, len(parameters))
            parameters.append(op)
        append(block, copy)
        values[op.results[0]] = copy.results[0]
    roots = [values[op.results[0]] for op in targets]
    if len(targets) > 1:
        shape = TupleShape(tuple(op.shape for op in targets))
        root = make("tuple", roots, shape, name="results")
        append(block, root)
        roots = [root.results[0]]
    block.add_op(ReturnOp(roots[0]))
    return Part(_module(module, block, kept, targets), tuple(parameters), tuple(targets))


def _parameter(op: Instruction, number: int) -> Instruction:
    if any(isinstance(leaf, TokenShape) for _, leaf in leaves(op.shape)):
        raise error(
            "HLO0868",
            f"%{op.instruction_name} ({op.opcode.name}) gives a token, which cannot be recorded",
            help="cut elsewhere: --height=-1 takes all that is needed",
        )
    properties = {"parameter_number": integer(number)}
    return make("parameter", (), op.shape, properties, name=op.instruction_name)


def _reached(
    targets: Sequence[Instruction], frontier: set[Instruction], height: int
) -> dict[Instruction, bool]:
    """Instructions to keep, and whether with their operands."""
    kept: dict[Instruction, bool] = {}
    level, distance = list(targets), 0
    while level:
        following: list[Instruction] = []
        for op in level:
            if op in kept:
                continue
            is_whole = op.opcode.name != "parameter" and op not in frontier
            kept[op] = is_whole and (height < 0 or distance < height)
            if kept[op]:
                following += [cast(Instruction, value.owner) for value in op.inputs]
        level, distance = following, distance + 1
    return kept


def _module(
    module: HloModule,
    block: Block,
    kept: Mapping[Instruction, bool],
    targets: Sequence[Instruction],
) -> ModuleOp:
    called = _called(module, [op for op, is_whole in kept.items() if is_whole])
    parts = [copy_computation(computation) for computation in called]
    taken = {part.computation_name for part in parts}
    root = targets[-1].instruction_name or "cut"
    name = next(n for n in ("main", "extracted", f"{root}.entry") if n not in taken)
    made = ModuleOp([*parts, ComputationOp(name, block, is_entry=True)])
    made.properties["sym_name"] = string(f"{module.name}.{root}")
    view = HloModule(made)
    for key in ("stack_frames", "replica_count", "num_partitions"):
        view.set(key, module.get(key))
    return made


def _called(module: HloModule, ops: Sequence[Instruction]) -> list[ComputationOp]:
    """Computations that instructions call, callees first."""
    by_name = module.by_name()
    found: dict[str, None] = {}
    for op in ops:
        for name in op.called_computations:
            order = callees_first(
                name,
                lambda n: [c for o in by_name[n].instructions for c in o.called_computations],
                found.__contains__,
            )
            found.update(dict.fromkeys(order))
    return [by_name[name] for name in found]


def record(
    module: HloModule,
    part: Part,
    arguments: Sequence[object],
    execution: int = 1,
    *,
    timeout: float = math.inf,
) -> Recording:
    """Runs the whole module on the interpreter and keeps what goes in and comes out of a part.

    `execution`: which run of the part, from 1, for one in a loop. `timeout`: seconds of processor time after which
    the run is stopped, for loops that do not end. Raises `HloError` HLO0869 when the part does not run so often, and
    what running raises.
    """
    watched = {id(op) for op in (*part.parameters, *part.results)}
    latest: dict[int, Value] = {}
    last = part.results[-1]
    ends = {id(op) for op in part.results}
    found: list[tuple[tuple[Value, ...], tuple[Value, ...]]] = []
    pending: set[int] = set()
    count = 0
    end = time.process_time() + timeout

    def hook(op: Instruction, _: Sequence[Any], value: Any) -> None:
        nonlocal count
        if time.process_time() > end:
            raise _OutOfTime
        key = id(op)
        if key not in watched:
            return
        latest[key] = _copied(value)
        if key not in ends:
            return
        pending.add(key)
        if len(pending) == len(ends):
            pending.clear()
            count += 1
            if count == execution:
                found.append(
                    (
                        tuple(latest[id(o)] for o in part.parameters),
                        tuple(latest[id(o)] for o in part.results),
                    )
                )

    inputs = replay.inputs_from_values(module.op, [arguments])
    ended = True
    try:
        replay.run(module.op, inputs, hook=hook)
    except _OutOfTime:
        ended = False
    if not found:
        within = "with these inputs" if ended else f"in {timeout:g} s and the module has not ended"
        raise error(
            "HLO0869",
            f"%{last.instruction_name} runs {count} times {within}, run {execution} is asked for",
            help="instructions in reducers and branches that are not taken are not recorded"
            if ended
            else "--timeout=SECONDS gives it more time, --no-record records nothing",
        )
    return Recording(*found[0], count, ended)


def _copied(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_copied(part) for part in cast("tuple[Any, ...]", value))
    return np.array(value) if isinstance(value, np.ndarray) else value


def replays(part: Part, recording: Recording) -> str:
    """How the part's results for the recorded inputs differ from the recorded ones; empty if they do not."""
    expected = arrays_of(cast(Any, recording.outputs))
    actual = execute(part.module, recording.inputs, "interpreter")[: len(expected)]
    if all(rounding.same(a, b) for a, b in zip(expected, actual, strict=True)):
        return ""
    exact = [rounding.Movement(np.zeros(a.shape), 0.0) for a in expected]
    return difference(expected, actual, lambda: exact) or "the last bits differ"
