"""Callbacks of programs into Python, which JAX hands over with each run, and targets of `jax.ffi`.

JAX puts its list of callbacks into the context of a run, through the interface's extension for foreign functions;
a program names a callback by its number there.

Source: facts of `xla/pjrt/c/pjrt_c_api_ffi_extension.h`, and of what jaxlib 0.10.2 hands over.
"""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
import itertools
from typing import TYPE_CHECKING, Any

from mlirhlo.integrations.jax.callbacks import meanings
from mlirhlo.integrations.jax.pjrt.interface import structs
from mlirhlo.integrations.jax.pjrt.machine import text_at
from mlirhlo.interp.machine import Machine

if TYPE_CHECKING:
    from mlirhlo.integrations.jax.pjrt.programs import Program

_numbers = itertools.count(1)
_contexts: dict[int, dict[int, int]] = {}
"""By handle: what was added to a run's context, by the number of its type."""

_types: dict[bytes, int] = {}

handlers: dict[str, int] = {}
"""Addresses of the handlers of `jax.ffi` targets that are for this platform alone, by name."""


def new_context(args: Any) -> None:
    """Makes the context of a run."""
    args.context = next(_numbers)
    _contexts[args.context] = {}


def drop_context(args: Any) -> None:
    """Ends a context."""
    _contexts.pop(args.context, None)


def register_type(args: Any) -> None:
    """Gives a type of what contexts hold a number."""
    name = text_at(args.type_name, args.type_name_size)
    args.type_id = _types.setdefault(name, args.type_id or len(_types) + 1)


def add_data(args: Any) -> None:
    """Adds to a context."""
    _contexts[args.context][args.type_id] = args.data


def register_handler(args: Any) -> None:
    """Takes a target of `jax.ffi`."""
    handlers[text_at(args.target_name, args.target_name_size).decode()] = args.handler


def machine_for(program: Program, args: Any) -> Machine:
    """The devices of a run, on which its callbacks have their meaning."""
    options = structs()["ExecuteOptions"].from_address(args.options)
    return Machine(
        replicas=program.replicas,
        partitions=program.partitions,
        custom_calls={**program.foreign, **meanings(_callbacks(options.context), program.alone)},
    )


def _callbacks(context: int | None) -> list[Any]:
    """The callables in a run's context: a span of pointers to objects of Python's."""
    for data in _contexts.get(context or 0, {}).values():
        start, count = (c.c_size_t * 2).from_address(data)
        pointers = (c.c_void_p * count).from_address(start)
        return [c.cast(pointer or 0, c.py_object).value for pointer in pointers]
    return []
