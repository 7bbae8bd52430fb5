"""The interface's extension about layouts. A layout is handed over as text, `{1,0}`, from minor to major.

The handle of a layout is memory of its own: the count of the text's bytes, then the text (`code._layout_of_buffer`).
"""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Sequence
from typing import Any

from mlirhlo.integrations.jax.pjrt.machine import allocate, numbers_at
from mlirhlo.integrations.jax.pjrt.objects import array_of, objects
from mlirhlo.integrations.jax.pjrt.programs import layout_of, program_at


def handle_of(minor_to_major: Sequence[int]) -> int:
    """A new layout, which `MemoryLayout_Destroy` frees."""
    text = f"{{{','.join(map(str, minor_to_major))}}}".encode()
    made = allocate(8 + len(text))
    c.c_size_t.from_address(made).value = len(text)
    c.memmove(made + 8, text, len(text))
    return made


def default(args: Any) -> None:
    """C's order."""
    args.layout = handle_of(range(args.num_dims)[::-1])


def of_buffer(args: Any) -> None:
    """A buffer's own."""
    buffer = objects()["Buffer"].from_address(args.buffer)
    args.layout = handle_of(numbers_at(buffer.minor_to_major, buffer.num_dims))


def of_results(args: Any) -> None:
    """The layouts of a program's results."""
    found = [layout_of(leaf) for leaf in program_at(args.executable).results]
    args.num_outputs, args.layouts = len(found), _handles(args.executable, "results", found)


def of_parameters(args: Any) -> None:
    """The layouts of a program's parameters."""
    found = [layout_of(leaf) for leaf in program_at(args.executable).parameters]
    args.num_parameters, args.layouts = len(found), _handles(args.executable, "parameters", found)


def _handles(executable: int, what: str, layouts: Sequence[Sequence[int]]) -> int:
    """An array that lives as long as the executable."""
    kept = program_at(executable).kept
    if what not in kept:
        kept[what] = array_of([handle_of(one) for one in layouts])
    return c.addressof(kept[what])
