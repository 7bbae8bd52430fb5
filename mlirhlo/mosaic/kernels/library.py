"""What every kernel of the library is: a function that writes a `kernel_call` for operand types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.language.call import KernelCall
from mlirhlo.mosaic.language.kernel import Kernel
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct


class LibraryKernel:
    """Called on arrays it runs, `lower` gives the kernel for types; options are the builder's."""

    def __init__(self, build: Callable[..., KernelCall]) -> None:
        self._build = build
        self._calls: dict[Any, KernelCall] = {}
        self.__doc__ = build.__doc__
        self.__name__ = build.__name__
        self.__wrapped__ = build

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def call(self, *types: Any, **options: Any) -> KernelCall:
        """The `kernel_call` for operand types (arrays, or `ShapeDtypeStruct`)."""
        structs = [ShapeDtypeStruct(type_.shape, type_.dtype) for type_ in types]
        key = (tuple(structs), tuple(sorted((name, repr(v)) for name, v in options.items())))
        found = self._calls.get(key)
        if found is None:
            found = self._calls[key] = self._build(*structs, **options)
        return found

    def lower(self, *types: Any, **options: Any) -> Kernel:
        """The kernel for operand types."""
        call = self.call(*types, **options)
        return call.lower(*types)

    def __call__(
        self,
        *arrays: Any,
        platform: str | None = None,
        interpret: Any = None,
        **options: Any,
    ) -> Any:
        """The results for numpy arrays; under a mesh each has a leading dimension for each axis."""
        held = [np.asarray(array) for array in arrays]
        lead = len(options.get("mesh") or {})
        types = [ShapeDtypeStruct(array.shape[lead:], array.dtype) for array in held]
        call = self.call(*types, **options)
        return replace(call, platform=platform, interpret=interpret)(*held)


def kernel(build: Callable[..., KernelCall]) -> LibraryKernel:
    """Decorator of a builder."""
    return LibraryKernel(build)


def unfit(name: str, problem: str, help: str | None = None) -> HloError:
    """HLO0726: operands that a kernel of the library does not take."""
    return error("HLO0726", f"{name}: {problem}", help=help)


def block_of(size: int, wanted: int, multiple: int) -> int:
    """A block of at most `wanted` that is a multiple, or the whole dimension if that is smaller."""
    return size if size <= wanted else max(multiple, wanted // multiple * multiple)


def rows_of(dtype: Any) -> int:
    """Rows of one tile: 8 of 32-bit elements, 16 of 16-bit ones, 32 of bytes."""
    return 8 * max(1, 4 // max(1, int(np.dtype(dtype).itemsize)))
