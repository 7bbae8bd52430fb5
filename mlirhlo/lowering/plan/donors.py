"""Which parameter's memory each result may be given.

`input_output_alias` says it result by result. A parameter that `buffer_donor` gives away belongs to no
result: as in XLA's `optimize-input-output-buffer-alias`, it goes to the first of its size that has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.lowering.plan.in_memory import byte_size, in_memory
from mlirhlo.lowering.plan.steps import Buffer, Tree

ShapeIndex: TypeAlias = "tuple[int, ...]"
"""Numbers of parts, from the outermost tuple inwards."""


def aliases_of(module: HloModule, parameters: Sequence[Tree]) -> dict[ShapeIndex, Buffer]:
    """Where results may lie, by their index in the result; each parameter is named once by donors."""
    aliases, donors = module.input_output_alias, module.buffer_donor
    found: dict[ShapeIndex, Buffer] = {}
    for entry in aliases.entries if aliases is not None else ():
        tree = _part(parameters[entry.parameter_number], entry.parameter_index)
        if isinstance(tree, Buffer):
            found[entry.output_index] = tree
    if donors is None:
        return found
    free = [(index, size) for index, size in _sizes(module.entry.root.shape) if index not in found]
    taken = set(map(id, found.values()))
    for number, index in donors.entries:
        donor = _part(parameters[number], index)
        if not isinstance(donor, Buffer) or id(donor) in taken:
            continue
        for at, (result, size) in enumerate(free):
            if size == donor.size:
                found[result] = donor
                taken.add(id(donor))
                del free[at]
                break
    return found


def _part(tree: Tree, index: ShapeIndex) -> Tree:
    for at in index:
        tree = cast("tuple[Tree, ...]", tree)[at]
    return tree


def _sizes(shape: Shape, index: ShapeIndex = ()) -> Iterator[tuple[ShapeIndex, int]]:
    """Bytes of the arrays of a result that are in memory, by their index."""
    if isinstance(shape, TupleShape):
        for number, element in enumerate(shape.elements):
            yield from _sizes(element, (*index, number))
    elif (array := in_memory(shape)) is not None:
        yield index, byte_size(array)
