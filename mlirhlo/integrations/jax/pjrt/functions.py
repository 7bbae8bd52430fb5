"""The interface as a whole: machine code, and functions that run Python."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from functools import cache
from typing import Any

from mlirhlo.integrations.jax.pjrt import (
    buffer_functions,
    callbacks,
    client_functions,
    code,
    layouts,
    program_functions,
    running,
)
from mlirhlo.integrations.jax.pjrt.interface import (
    EXTENSIONS,
    VERSION,
    api_struct,
    arguments,
    extension_arguments,
    extension_struct,
)
from mlirhlo.integrations.jax.pjrt.machine import callback, machine, unimplemented


def _no_attributes(args: Any) -> None:
    args.attributes, args.num_attributes = 0, 0


_FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Plugin_Attributes": _no_attributes,
    "ExecuteContext_Create": callbacks.new_context,
    "ExecuteContext_Destroy": callbacks.drop_context,
    **client_functions.FUNCTIONS,
    **program_functions.FUNCTIONS,
    **buffer_functions.FUNCTIONS,
}


_SLOW = {
    "LoadedExecutable_Execute": running.execute,
    "Client_BufferFromHostBuffer": buffer_functions.from_host,
    "Buffer_ToHostBuffer": buffer_functions.to_host,
    "Layouts_Buffer_MemoryLayout": layouts.of_buffer,
}

_EXTENSIONS: dict[str, dict[str, Callable[[Any], None]]] = {
    "Layouts": {
        "Client_GetDefaultLayout": layouts.default,
        "Topology_GetDefaultLayout": layouts.default,
        "Executable_GetOutputLayouts": layouts.of_results,
        "Executable_GetParameterLayouts": layouts.of_parameters,
    },
    "FFI": {
        "Type_Register": callbacks.register_type,
        "UserData_Add": callbacks.add_data,
        "Register_Handler": callbacks.register_handler,
    },
}


@cache
def interface() -> Any:
    """The interface as JAX takes it; lives as long as the process."""
    library = machine().library
    machine().slow.update(_SLOW)
    native = {*code.getters(), *code.FUNCTIONS}
    kind = api_struct()
    api: Any = kind(struct_size=c.sizeof(kind), version_size=24, major=VERSION[0], minor=VERSION[1])
    api.kept = []
    for name, taken in arguments().items():
        if name in native:
            setattr(api, name, library.address(name))
        else:
            _set(api, name, callback(taken, _FUNCTIONS.get(name) or _missing(name)))
    for extension, functions in _EXTENSIONS.items():
        kind = extension_struct(extension)
        made: Any = kind(c.sizeof(kind), EXTENSIONS[extension][0], api.extension_start)
        made.kept = []
        for name, taken in extension_arguments(extension).items():
            if (whole := f"{extension}_{name}") in native:
                setattr(made, name, library.address(whole))
            else:
                _set(made, name, callback(taken, functions[name]))
        api.kept.append(made)
        api.extension_start = c.addressof(made)
    return api


def _set(struct: Any, field: str, function: Any) -> None:
    struct.kept.append(function)
    setattr(struct, field, c.cast(function, c.c_void_p).value)


def _missing(name: str) -> Callable[[Any], None]:
    def function(args: Any) -> None:
        raise unimplemented(f"there is no PJRT_{name}")

    return function
