"""A kernel's module on arrays, without the Python that wrote it: what `mosaic-run` does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.mosaic.attributes import dictionaries_of, integer_of, integers_of
from mlirhlo.mosaic.interpreter import Kernel, Options
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from mlirhlo.mosaic.interpreter.registry import Array

_TYPE = re.compile(r"\s*(\w+)\[([0-9,\s]*)\]\s*\Z")


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`f32[32,128]`."""

    element: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.element}[{','.join(map(str, self.shape))}]"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Elements as numpy has them."""
        return PRIMITIVE_TYPES[self.element].dtype


def parse_type(text: str) -> ArrayType:
    """Reads `f32[32,128]`. Raises `HloError` HLO0736."""
    match = _TYPE.match(text)
    if match is None or match[1] not in PRIMITIVE_TYPES:
        raise error("HLO0736", f"{text!r} is no type of an array", help="write it as f32[32,128]")
    return ArrayType(match[1], tuple(int(size) for size in match[2].split(",") if size.strip()))


def type_of(array: Array) -> ArrayType:
    """The type of an array."""
    for row in PRIMITIVE_TYPES.values():
        if row.is_array and row.numpy_name and row.dtype == array.dtype:
            return ArrayType(row.name, tuple(array.shape))
    raise error("HLO0736", f"kernels have no arrays of {array.dtype}")


def types_of_arguments(kernel: Kernel) -> list[ArrayType]:
    """Operands and results of a kernel whose arguments are whole arrays: one without a grid.

    Raises `HloError` HLO0736 for others: their blocks do not say how large the arrays are.
    """
    if dictionaries_of(kernel.op, "window_params") or integers_of(kernel.op, "iteration_bounds"):
        raise error(
            "HLO0736",
            f"the blocks of @{kernel.name} do not say how large its arrays are",
            help="state all of them: --operand=f32[32,128] for each operand, --result for each result",
        )
    types = [argument.type for argument in kernel.op.regions[0].blocks[0].args]
    scratch = integer_of(kernel.op, "scratch_operands")
    found: list[ArrayType] = []
    for type_ in types[: len(types) - scratch]:
        if not isinstance(type_, MemRefType):
            raise error("HLO0736", f"@{kernel.name} has an argument of type {type_}")
        block = cast("MemRefType[Attribute]", type_)
        found.append(type_of(np.empty(shape_of(block), dtype_in(block))))
    return found


def random_arrays(types: Sequence[ArrayType], seed: int = 0) -> list[Array]:
    """Small numbers: of a normal distribution, or 0 to 7 for integers."""
    generator = np.random.default_rng(seed)
    made: list[Array] = []
    for one in types:
        kind = PRIMITIVE_TYPES[one.element]
        values: Any = (
            generator.normal(size=one.shape)
            if kind.is_float
            else generator.integers(0, 8 if kind.bits > 3 else 2, one.shape)
        )
        made.append(values.astype(one.dtype))
    return made


def run_module(
    module: ModuleOp,
    operands: Sequence[Array],
    results: Sequence[ArrayType],
    *,
    devices: int = 1,
    aliases: Mapping[int, int] | None = None,
    options: Options,
    internal_scratch_in_bytes: int = 0,
) -> list[list[Array]]:
    """The results of each device; every operand has a leading dimension of `devices` if these are
    several.
    """
    kernel = Kernel(module, internal_scratch_in_bytes)
    shards = [operands]
    if devices > 1:
        shards = [[array[at] for array in operands] for at in range(devices)]
    types = [(one.shape, one.dtype) for one in results]
    return kernel.run_on(shards, types, aliases=aliases, options=options)
