"""Plans: a computation made ready to run, with everything that does not depend on values worked out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isgeneratorfunction
from typing import Any, cast

from xdsl.ir import SSAValue

from mlirhlo.diagnostics import Diagnostic, HloError, Place, out_of_memory
from mlirhlo.dialects.hlo.module import source_of
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.ops.control_flow import ConstantOp, CustomCallOp, ParameterOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, is_too_large
from mlirhlo.dialects.hlo.table import Calls
from mlirhlo.importing import LATE
from mlirhlo.interp.dynamic import lifted, needs_lifting
from mlirhlo.interp.mixed_types import with_declared_types
from mlirhlo.interp.registry import (
    MEANINGS,
    PREPARED,
    READS_MORE,
    Call,
    Frame,
    Program,
    Run,
    Value,
)
from mlirhlo.interp.values import describe, value_of_literal

with LATE:
    from mlirhlo.analysis import verifier


@dataclass(slots=True)
class Step:
    """One instruction of a plan."""

    run: Run
    op: Instruction
    operands: tuple[int, ...]
    """Slots of what is read: the inputs, and of a custom call what its meaning reads beside them."""
    result: int
    """Slot of the result."""
    frees: tuple[int, ...]
    """Slots of operands that nobody reads afterwards."""
    unused: bool
    """Whether nobody reads the result."""
    calls: bool
    """Whether `run` is a generator that yields `Call`s."""


@dataclass(slots=True)
class Plan:
    """A computation, or the part of one that a value needs, as steps over slots."""

    name: str
    steps: list[Step]
    parameters: tuple[tuple[int, int, ParameterOp], ...]
    """Slot, parameter number and op of the parameters that are used."""
    constants: tuple[tuple[int, ConstantOp], ...]
    template: list[Any]
    """Slots before the first step: constants in place, None elsewhere."""
    root: int
    """Slot of the result."""
    parameter_count: int


def make_plan(computation: ComputationOp, program: Program, result: SSAValue | None = None) -> Plan:
    """The plan of `computation`, or of what `result` in it needs.

    The plan of a whole computation has parameters, known constants, what the root needs, and what has a
    side effect or is needed by such an instruction; nothing else can be seen in the results.
    Raises `HloError` HLO0300 for an opcode without meaning and HLO0301 for elided constants.
    """
    block = computation.block
    if result is None:
        result = computation.terminator.root
        needed = _needed(
            result,
            *(
                op.results[0]
                for op in computation.instructions
                if isinstance(op, ParameterOp) or _is_known(op) or program.has_side_effect(op)
            ),
        )
        parameter_count = len(computation.parameters)
    else:
        needed = _needed(result)
        parameter_count = -1
    ops = [op for op in computation.instructions if op in needed]
    slots: dict[SSAValue, int] = {}
    last_use: dict[int, int] = {}
    steps: list[Step] = []
    parameters: list[tuple[int, int, ParameterOp]] = []
    constants: list[tuple[int, ConstantOp]] = []
    template: list[Any] = [None] * len(ops)
    for slot, op in enumerate(ops):
        assert op.parent is block
        slots[op.results[0]] = slot
        if isinstance(op, ParameterOp):
            parameters.append((slot, op.parameter_number, op))
        elif isinstance(op, ConstantOp):
            template[slot] = _constant(op)
            constants.append((slot, op))
        else:
            try:
                operands = tuple(slots[value] for value in _read_by(op))
                run = prepare(op, program)
            except FAILURES as problem:
                raise failed(op, (), problem) from problem
            except HloError as problem:
                raise problem.at(place_of(op)) from problem.__cause__
            for operand in operands:
                last_use[operand] = len(steps)
            steps.append(Step(run, op, operands, slot, (), False, isgeneratorfunction(run)))
    root = slots[result]
    kept = {root, *(slot for slot, _ in constants)}
    for slot, index in last_use.items():
        if slot not in kept:
            steps[index].frees += (slot,)
    for step in steps:
        step.unused = step.result not in last_use and step.result != root
    return Plan(
        computation.computation_name,
        steps,
        tuple(parameters),
        tuple(constants),
        template,
        root,
        parameter_count,
    )


def _is_known(op: Instruction) -> bool:
    return isinstance(op, ConstantOp) and not (op.literal is not None and op.literal.is_elided)


def _needed(*results: SSAValue) -> set[Any]:
    needed: set[Any] = set()
    pending = list(results)
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Instruction) and owner not in needed:
            needed.add(owner)
            pending += _read_by(owner)
    return needed


def _read_by(op: Instruction) -> Sequence[SSAValue]:
    if isinstance(op, CustomCallOp) and op.custom_call_target in READS_MORE:
        return [*op.inputs, *READS_MORE[op.custom_call_target](op)]
    return op.inputs


def _constant(op: ConstantOp) -> Value:
    literal = op.literal
    assert literal is not None
    try:
        return value_of_literal(literal)
    except HloError as problem:
        raise problem.at(place_of(op)) from None


def prepare(op: Instruction, program: Program) -> Run:
    """What runs `op`. Raises `HloError` HLO0300 when the opcode has no meaning."""
    opcode = op.opcode.name
    if _is_nothing(op, program) and (opcode in PREPARED or opcode in MEANINGS):
        return _nothing(op.shape)
    prepared = PREPARED.get(opcode)
    if prepared is not None:
        run = prepared(op, program)
    elif opcode in MEANINGS:
        meaning = MEANINGS[opcode]
        if isgeneratorfunction(meaning):
            return _generator(cast("Callable[..., Generator[Call, Value, Value]]", meaning), op)
        run = partial(meaning, op)
    else:
        raise no_meaning(op)
    run = with_declared_types(op, run)
    return lifted(op, run) if needs_lifting(op) else run


_WHOLE = (Calls.CONTROL, Calls.FUSED, Calls.TARGET)
"""What runs more than what the result is computed from."""


def _is_nothing(op: Instruction, program: Program) -> bool:
    """Whether an instruction only gives an array without elements: nothing is computed, or even numbered, for
    that, as the other dimensions may be of any size."""
    shape = op.shape
    return (
        isinstance(shape, ArrayShape)
        and not shape.is_dynamic
        and 0 in shape.dimensions
        and not op.opcode.collective
        and op.opcode.calls not in _WHOLE
        and not program.has_side_effect(op)
    )


def _nothing(shape: Shape) -> Run:
    import numpy as np

    assert isinstance(shape, ArrayShape)
    empty = np.empty(shape.dimensions, shape.element_type.dtype)
    return lambda inputs, frame: empty


def _generator(meaning: Callable[..., Generator[Call, Value, Value]], op: Instruction) -> Run:
    def run(inputs: Sequence[Any], frame: Frame) -> Generator[Call, Value, Value]:
        return (yield from meaning(op, inputs, frame))

    return run


FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    TypeError,
    ValueError,
)
"""What an instruction may raise when a module was never verified."""


def failed(op: Instruction, inputs: Sequence[Value], problem: Exception) -> HloError:
    """The error for an instruction that does not fit its operands, or the memory: the verifier's, if it has one."""
    if broken := verifier.verify_instruction(op):
        return HloError(broken[0])
    if isinstance(problem, MemoryError) or is_too_large(op.shape):
        name = f"{op.opcode.name}: %{op.instruction_name}"
        return out_of_memory(f"{name} has no memory for {op.shape}: {problem}", place_of(op))
    given = ", ".join(map(describe, inputs)) or "these shapes"
    return HloError(
        Diagnostic(
            "HLO0308",
            f"{op.opcode.name}: %{op.instruction_name} cannot be run on ({given}): "
            f"{problem or type(problem).__name__}",
            place_of(op),
            help="verify the module: shapes or dimension numbers do not fit each other",
        )
    )


def no_meaning(op: Instruction) -> HloError:
    """The error for an instruction that the interpreter cannot run."""
    return HloError(
        Diagnostic(
            "HLO0300",
            f"{op.opcode.name}: %{op.instruction_name} has no meaning in the interpreter",
            place_of(op),
            help="cut the module before it (its operands can be the results), or register a meaning "
            "with mlirhlo.interp.registry.evaluates",
        )
    )


def place_of(op: Instruction) -> Place | None:
    """Where the instruction stands in its text; else its name."""
    source = source_of(op)
    name = op.instruction_name or op.opcode.name
    if source is None:
        return Place("<module>", what=f"%{name}")
    text, offset = source
    return text.place(offset, len(name))
