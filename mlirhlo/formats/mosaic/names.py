"""The names that kernels' values are printed with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1
from xdsl.ir import Operation, Region

from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.formats.stablehlo.names import Namer, Names

_NUMBERED = re.compile(r"(.+?)_\d+\Z")


_OWN_NAMES = {
    "memref.alloc": "alloc",
    "memref.alloca": "alloca",
    "memref.cast": "cast",
    "memref.dim": "dim",
    "memref.extract_aligned_pointer_as_index": "intptr",
    "memref.memory_space_cast": "memspacecast",
    "memref.assume_alignment": "assume_align",
    "memref.collapse_shape": "collapse_shape",
    "memref.expand_shape": "expand_shape",
    "memref.reinterpret_cast": "reinterpret_cast",
    "memref.reshape": "reshape",
    "memref.subview": "subview",
    "memref.transpose": "transpose",
    "memref.view": "view",
}
"""What ops call their results where the program gives no name."""


def _hint(value: Any) -> str | None:
    """The name a program gave, without the number that made it unique."""
    name = cast("str | None", value.name_hint)
    if name is None:
        return None
    match = _NUMBERED.match(name)
    return match[1] if match is not None else name


class KernelNamer(Namer):
    """As MLIR names values; a value that had a name keeps it if `keep_names` says so."""

    def __init__(self, *, is_generic: bool, keep_names: bool = True) -> None:
        super().__init__(is_generic=is_generic)
        self._keep_names = keep_names

    def argument_names(self, op: Operation, region: Region) -> Sequence[str | None]:
        """Names of the arguments of the entry block."""
        del op
        if not self._keep_names or not region.blocks:
            return []
        return [_hint(argument) for argument in region.blocks[0].args]

    def result_names(self, op: Operation) -> list[tuple[int, str | None]]:
        """Names of results, with their indices."""
        kept: list[tuple[int, str | None]] = []
        if self._keep_names:
            found = [(index, _hint(result)) for index, result in enumerate(op.results)]
            kept += [(index, name) for index, name in found if name is not None]
        return kept or _proposed(op)


def _proposed(op: Operation) -> list[tuple[int, str | None]]:
    row = ROWS.get(op.name)
    if row is None:
        return []
    if op.name == "arith.constant":
        return [(0, _constant_name(op))]
    own = _OWN_NAMES.get(op.name)
    if own is not None:
        return [(0, own)]
    dimension: Any = op.properties.get("dimension")
    if getattr(dimension, "name", "") == "gpu.dim":
        return [(0, f"{op.name.partition('.')[2]}_{dimension.data.value}")]
    if len(row.results) < 2:
        return []
    begin = 0
    found: list[tuple[int, str | None]] = []
    for slot, size in zip(row.results, row.sizes(row.results, len(op.results)), strict=True):
        if size:
            found.append((begin, slot.name))
        begin += size
    return found


def _constant_name(op: Operation) -> str:
    value = op.properties.get("value")
    if not isinstance(value, IntegerAttr):
        return "cst"
    integer: Any = cast(Any, value)
    number = integer.value.data
    if integer.type == i1:
        return "true" if number else "false"
    name = str(integer.type)
    return f"c{number}" if name == "index" else f"c{number}_{name}"


def numbered(module: ModuleOp) -> Names:
    """One number after the other in the order of the text, `arg` before those of arguments.

    This is how `mosaic_bytecode.py` and the stable form of ours name values.
    """
    names = Names()
    _number_op(module, names)
    return names


def _number_op(op: Operation, names: Names) -> None:
    values = names.values
    for result in op.results:
        values[result] = f"%{len(values)}"
    if op.results:
        names.packs[op] = ", ".join(values[result] for result in op.results)
    for region in op.regions:
        for number, block in enumerate(region.blocks):
            names.blocks[block] = f"^bb{number}"
            for argument in block.args:
                values[argument] = f"%arg{len(values)}"
            for inner in block.ops:
                _number_op(inner, names)
