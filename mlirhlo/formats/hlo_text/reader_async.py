"""Asynchronous instructions: their checks, and the short form `reduce-scatter-start(…)`.

Source: HLO text, "Async forms".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer, str_of, string, symbol_of
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp
from mlirhlo.dialects.hlo.ops.tokens import AsyncStartOp, AsyncUpdateOp
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats.hlo_text.reader_problems import ASYNC, Misfit
from mlirhlo.formats.hlo_text.reader_state import ModuleState, OpcodeInfo, Scope

MAIN_THREAD = "main"

START_KEYS = ("async_execution_thread", "output_to_operand_aliasing", "calls")
"""Attributes of async-start itself; in the short form the others are the wrapped instruction's."""

COPIED = ("metadata", "origin", "backend_config", "frontend_attributes", "statistics")
"""Attributes that the wrapped instruction of the short form gets too."""


def split_opcode(word: str) -> tuple[str, str] | None:
    """`('reduce-scatter', 'async-start')` of `reduce-scatter-start`; None for any other word.

    The wrapped opcode may be unknown.
    """
    if word in OPCODES:
        return None
    for phase in ("start", "update", "done"):
        wrapped = word.removesuffix("-" + phase)
        if wrapped != word:
            return wrapped, "async-" + phase
    return None


def async_parts(type_: Attribute) -> tuple[tuple[Shape, ...], Shape]:
    """Operand shapes and result of an async-start's type. Raises `Misfit`."""
    shape = shape_of(type_)
    if (
        not isinstance(shape, TupleShape)
        or len(shape.elements) < 2
        or not isinstance(shape.elements[0], TupleShape)
    ):
        raise Misfit(
            ASYNC,
            "AsyncStart expects the op shape to be in the form of ((async-operands), async-outputs, state).",
        )
    return shape.elements[0].elements, shape.elements[1]


def wrap(
    state: ModuleState,
    values: Sequence[SSAValue],
    type_: Attribute,
    info: OpcodeInfo,
    properties: dict[str, Attribute],
) -> ComputationOp:
    """The computation that a short-form start stands for. Raises `Misfit`."""
    _, result = async_parts(type_)
    scope = Scope("async_wrapped", 0, all_named=False)
    parameters: list[SSAValue] = []
    for number, value in enumerate(values):
        parameter = build.create(
            ParameterOp, (), value.type, {"parameter_number": integer(number)}, "async_param"
        )
        build.append(scope.block, parameter)
        parameters.append(parameter.results[0])
    own = dict(properties)
    if info.arity >= 0 and len(values) != info.arity:
        raise Misfit(ASYNC, f"expects {info.arity} operands, but has {len(values)} operands")
    wrapped_type = type_of(result)
    if info.check is not None:
        info.check(state, parameters, wrapped_type, own)
    state.fit_sharding(wrapped_type, own)
    op = build.create(info.cls, parameters, wrapped_type, own, "async_op")
    build.append(scope.block, op)
    return state.finish(scope, None, 0, inline=True)


def check_async_start(
    state: ModuleState,
    values: Sequence[SSAValue],
    type_: Attribute | None,
    properties: dict[str, Attribute],
) -> None:
    """Shape, the wrapped computation's one start, threads. Raises `Misfit`."""
    assert type_ is not None  # never inferred
    async_parts(type_)
    name = symbol_of(properties["calls"])
    if name in state.wrapped:
        raise Misfit(
            ASYNC,
            f"computation {name} is wrapped by two async-start instructions",
            help="give each async-start a computation of its own",
        )
    thread = properties.get("async_execution_thread")
    if thread is not None and str_of(thread) in ("", MAIN_THREAD):
        del properties["async_execution_thread"]
    elif thread is not None:
        _set_thread(state, name, str_of(thread))
    state.wrapped.add(name)


def _set_thread(state: ModuleState, name: str, thread: str) -> None:
    """Puts a computation and all it calls on a thread."""
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if (name, thread) in state.on_threads:
            continue
        state.on_threads.add((name, thread))
        computation = state.by_symbol[name]
        computation.properties["execution_thread"] = string(thread)
        for op in computation.instructions:
            waiting += op.called_computations


def check_async_user(
    state: ModuleState,
    values: Sequence[SSAValue],
    type_: Attribute | None,
    properties: dict[str, Attribute],
) -> None:
    """An update or done: its operand is asynchronous; what is repeated agrees. Raises `Misfit`."""
    start = async_start_of(state, values)
    thread = properties.pop("async_execution_thread", None)
    wanted = str_of(start.properties.get("async_execution_thread"), MAIN_THREAD)
    if thread is not None and str_of(thread) != wanted:
        raise Misfit(
            ASYNC, f"Expect async_execution_thread to be {wanted}, but got {str_of(thread)}"
        )
    callee = properties.pop("calls", None)
    if callee is not None and callee != start.properties["calls"]:
        raise Misfit(
            ASYNC,
            f"Expect async_wrapped_computation to be {symbol_of(start.properties['calls'])},"
            f" but got {symbol_of(callee)}",
        )


def async_start_of(state: ModuleState, values: Sequence[SSAValue]) -> AsyncStartOp:
    """The async-start behind the operand of an update or done. Raises `Misfit`."""
    owner = first = values[0].owner if len(values) == 1 else None
    while isinstance(owner, AsyncUpdateOp):
        # That of an update's operand is known since the update was read.
        owner = state.started.get(owner) or cast(Instruction, owner).defining(0)
    if not isinstance(owner, AsyncStartOp):
        raise Misfit(ASYNC, "AsyncUpdate and AsyncDone expect a single async op as their operand.")
    if isinstance(first, AsyncUpdateOp):
        state.started[first] = owner
    return owner


def check_wrapped_opcode(state: ModuleState, values: Sequence[SSAValue], opcode: str) -> None:
    """The opcode in `<opcode>-done` is that of the start. Raises `Misfit`."""
    start = async_start_of(state, values)
    found = state.by_symbol[start.calls].root.opcode.name
    if found != opcode:
        raise Misfit(ASYNC, f"Expect async wrapped opcode to be {found}, but got {opcode}")
