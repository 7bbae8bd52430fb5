"""Callbacks of a program into Python: `jax.pure_callback`, `jax.debug.print` and their kin.

The program names a callback by its number among those that JAX keeps beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.sharding import ShardingKind
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.interp import machine as interp_machine
    from mlirhlo.interp import values as interp_values
    from mlirhlo.interp.custom_calls import options


if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.module import HloModule
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.machine import Machine
    from mlirhlo.interp.registry import Frame, Meaning

_TARGETS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


def machine_with(callbacks: Sequence[Callable[..., Any]]) -> Machine | None:
    """A device on which the program's callbacks have their meaning; None without callbacks."""
    if not callbacks:
        return None

    return interp_machine.Machine(custom_calls=meanings(callbacks))


def meanings(
    callbacks: Sequence[Callable[..., Any]], alone: Mapping[int, int] | None = None
) -> dict[str, Meaning]:
    """What the custom calls mean that name these callbacks by number.

    `alone`: by number, the partition that makes the call for all of its replica; all partitions make the other ones.
    """
    return dict.fromkeys(_TARGETS, _meaning(callbacks, alone or {}))


def partitions_alone(module: HloModule) -> dict[int, int]:
    """By number of a callback, the one partition that a module before partitioning has it called on."""
    found: dict[int, int] = {}
    for op in module.instructions:
        sharding = op.sharding
        if sharding is None or getattr(op, "custom_call_target", "") not in _TARGETS:
            continue
        first = sharding.elements[0] if sharding.elements else sharding
        if first.kind is ShardingKind.MAXIMAL and first.device is not None:
            found[int(options.options_of(op).get("index", -1))] = first.device
    return found


def _meaning(callbacks: Sequence[Callable[..., Any]], alone: Mapping[int, int]) -> Meaning:
    def call(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Any:
        """Raises `HloError` HLO0610 when the callback does, or there is none of the number."""
        number = int(options.options_of(op).get("index", -1))
        if number not in alone:
            return run(op, number, inputs)
        machine, own = frame.machine, alone[number]
        result = run(op, number, inputs) if frame.partition == own else None
        members = tuple(machine.device(frame.replica, p) for p in range(machine.partitions))
        device = machine.device(frame.replica, frame.partition)
        name = f"the callback %{op.instruction_name}"
        return machine.exchange(device, (op, number), members, result, name)[own]

    def run(op: Instruction, number: int, inputs: Sequence[Any]) -> Any:
        if not 0 <= number < len(callbacks):
            raise error("HLO0610", f"%{op.instruction_name}: there is no callback {number}")
        try:
            results: Any = callbacks[number](*inputs)
        except Exception as problem:  # whatever the user's function raises
            raise error(
                "HLO0610",
                f"%{op.instruction_name}: the callback raised {type(problem).__name__}: {problem}",
            ) from problem
        return _as_shaped(op, () if results is None else tuple(results))

    return call


def _as_shaped(op: Instruction, results: tuple[Any, ...]) -> Any:
    """Results as arrays of the types that the instruction declares."""
    import numpy as np

    shape = op.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    what = f"result of the callback %{op.instruction_name}"
    values = tuple(
        interp_values.value_from(np.asarray(value), part, what)
        for value, part in zip(results, parts, strict=True)
    )
    return values if isinstance(shape, TupleShape) else values[0]
