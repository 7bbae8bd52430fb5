"""Bytes that JAX gets, and gives back."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any


class Handed:
    """Bytes that the caller gives back through a function it gets with them."""

    def __init__(self) -> None:
        self._alive: dict[int, Any] = {}
        self.free = c.CFUNCTYPE(None, c.c_void_p)(self._free)

    def _free(self, handle: int) -> None:
        self._alive.pop(handle, None)

    def out(self, data: bytes) -> int:
        """The address of a copy, which is also its handle."""
        copy = c.create_string_buffer(data, len(data) + 1)
        self._alive[c.addressof(copy)] = copy
        return c.addressof(copy)


handed = Handed()


def hand(data: Callable[[Any], bytes], handle: str, deleter: str) -> Callable[[Any], None]:
    """A function that hands out serialised bytes."""

    def function(args: Any) -> None:
        found = data(args)
        args.serialized_bytes, args.serialized_bytes_size = handed.out(found), len(found)
        setattr(args, handle, args.serialized_bytes)
        setattr(args, deleter, c.cast(handed.free, c.c_void_p).value)

    return function
