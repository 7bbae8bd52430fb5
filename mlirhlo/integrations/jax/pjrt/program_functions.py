"""Functions of the interface about programs that run Python."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from mlirhlo.integrations.jax.pjrt import compiling
from mlirhlo.integrations.jax.pjrt.client_functions import FLOAT, client_of
from mlirhlo.integrations.jax.pjrt.handed import hand
from mlirhlo.integrations.jax.pjrt.interface import structs
from mlirhlo.integrations.jax.pjrt.machine import text_at
from mlirhlo.integrations.jax.pjrt.programs import program_at


def _compile(args: Any) -> None:
    program = structs()["Program"].from_address(args.program)
    options = text_at(args.compile_options, args.compile_options_size)
    args.executable = compiling.compile_program(client_of(args), program, options)


def _deserialize(args: Any) -> None:
    data = text_at(args.serialized_executable, args.serialized_executable_size)
    args.loaded_executable = compiling.restore(client_of(args), data)


def _optimized_program(args: Any) -> None:
    """The module as it runs: bytes where the caller brought memory, else how many there are."""
    program = structs()["Program"].from_address(args.program)
    data = compiling.module_of(program_at(args.executable))
    form = b"hlo_with_config"
    program.format_size, program.code_size = len(form), len(data)
    program.format = c.addressof(_kept(form))
    if program.code:
        c.memmove(program.code, data, len(data))


@lru_cache(maxsize=1024)
def _kept(text: bytes) -> Any:
    return c.create_string_buffer(text)


def _cost_analysis(args: Any) -> None:
    """Costs as named numbers; computed when somebody asks."""
    program = program_at(args.executable)
    if "costs" not in program.kept:
        program.kept["costs"] = _named(program.costs)
    args.num_properties = len(program.costs)
    args.properties = c.addressof(program.kept["costs"])


def _named(values: Mapping[str, float]) -> Any:
    """An array of named floats."""
    kind = structs()["NamedValue"]
    made = (kind * max(len(values), 1))()
    for one, (name, value) in zip(made, values.items(), strict=False):
        one.struct_size, one.type, one.value_size = c.sizeof(kind), FLOAT, 1
        one.name, one.name_size = c.addressof(_kept(name.encode())), len(name)
        one.value = int(np.float32(value).view(np.uint32))
    return made


FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Client_Compile": _compile,
    "Executable_GetCostAnalysis": _cost_analysis,
    "Executable_OptimizedProgram": _optimized_program,
    "Executable_Serialize": hand(
        lambda args: compiling.serialized(program_at(args.executable)),
        "serialized_executable",
        "serialized_executable_deleter",
    ),
    "Executable_GetCompileOptions": hand(
        lambda args: program_at(args.executable).options,
        "serialized_compile_options",
        "serialized_compile_options_deleter",
    ),
    "LoadedExecutable_GetDeviceAssignment": hand(
        lambda args: compiling.assignment(program_at(args.executable)),
        "serialized_device_assignment",
        "serialized_device_assignment_deleter",
    ),
    "Executable_DeserializeAndLoad": _deserialize,
}
