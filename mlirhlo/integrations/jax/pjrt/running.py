"""Running programs that need Python: callbacks, several devices, the interpreter."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import Any

from mlirhlo.dialects.hlo.shapes import TokenShape
from mlirhlo.integrations.jax.pjrt.callbacks import machine_for
from mlirhlo.integrations.jax.pjrt.interface import Code, arguments, structs
from mlirhlo.integrations.jax.pjrt.machine import (
    TOKEN_TYPE,
    PjrtError,
    array_on,
    machine,
    numbers_at,
    type_number,
)
from mlirhlo.integrations.jax.pjrt.objects import objects
from mlirhlo.integrations.jax.pjrt.programs import Leaf, Program, program_at
from mlirhlo.interp.registry import TOKEN
from mlirhlo.lowering.memory_order import physical_order


def execute(args: Any) -> None:
    """Runs a program that machine code alone does not run, on every device of it."""
    program = program_at(args.executable)
    if args.num_devices != len(program.devices):
        raise PjrtError(
            Code.INVALID_ARGUMENT,
            f"the program is for {len(program.devices)} devices, not {args.num_devices}",
        )
    if args.num_args != len(program.parameters):
        raise PjrtError(
            Code.INVALID_ARGUMENT,
            f"the program takes {len(program.parameters)} arguments, not {args.num_args}",
        )
    if program.is_native:
        program.prepare()
    lists = numbers_at(args.argument_lists, args.num_devices)
    given = [numbers_at(one, args.num_args, c.c_size_t) for one in lists]
    results = _run(program, [[_value_on(b) for b in buffers] for buffers in given], args)
    outputs = numbers_at(args.output_lists, args.num_devices)
    for device, (values, output) in enumerate(zip(results, outputs, strict=True)):
        made = [
            _filled(*one)
            for one in zip(program.templates[device], values, program.results, strict=True)
        ]
        for number, buffer in enumerate(made):
            c.c_size_t.from_address(output + c.sizeof(c.c_size_t) * number).value = buffer
    options = structs()["ExecuteOptions"].from_address(args.options)
    kept = numbers_at(options.non_donatable_input_indices, options.num_non_donatable_input_indices)
    for number in program.donated.difference(kept):
        for buffers in given:
            delete(buffers[number])
    if args.device_complete_events:
        for number in range(args.num_devices):
            at = args.device_complete_events + c.sizeof(c.c_size_t) * number
            c.c_size_t.from_address(at).value = machine().ready


def _run(program: Program, arguments: Sequence[Sequence[Any]], args: Any) -> list[list[Any]]:
    """Results by device."""
    executable = program.executable
    if program.owners:
        devices = machine_for(program, args)
        return [_flat(one) for one in executable.run_ranks(devices, arguments, program.owners)]
    if len(arguments) == 1 and not executable.has_callbacks:
        return [_flat(executable(*arguments[0]))]

    simulated = machine_for(program, args)
    if len(arguments) == 1:
        return [_flat(executable.run_on(simulated, 0, 0, arguments[0]))]
    found = simulated.run_devices(
        lambda r, p: executable.run_on(simulated, r, p, arguments[r * program.partitions + p])
    )
    return [_flat(one) for one in found]


def _flat(result: Any) -> list[Any]:
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in _flat(part)]
    return [result]


def _value_on(buffer: int) -> Any:
    """What a parameter gets."""
    is_token = objects()["Buffer"].from_address(buffer).type == type_number(TOKEN_TYPE)
    return TOKEN if is_token else array_on(buffer)


def _filled(made: bytes, value: Any, leaf: Leaf) -> int:
    """The buffer of a result."""
    if isinstance(leaf, TokenShape):
        return machine().buffer(made, machine().storage(0))
    return machine().filled(made, value.transpose(physical_order(leaf)))


def delete(buffer: int) -> None:
    """Deletes a buffer whose value is no longer needed."""
    kind = arguments()["Buffer_Delete"]
    machine().delete(c.addressof(kind(struct_size=c.sizeof(kind), buffer=buffer)))
