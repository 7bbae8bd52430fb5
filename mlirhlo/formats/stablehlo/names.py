"""The names that MLIR's printer gives to values and blocks.

The rule is MLIR's: a region's arguments and results are numbered before those of the regions in it,
ops propose names for what they yield, and a name that is taken gets a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirhlo.dialects.stablehlo.op_classes import TableOp


@dataclass(slots=True)
class Names:
    """What values and blocks are called."""

    values: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """`%0`, `%0#1`, `%arg0`, `%cst_1`."""
    packs: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """What stands before `=`: `%0:2`, `%values, %indices`."""
    blocks: dict[Block, str] = field(default_factory=dict[Block, str])
    """`^bb0`."""


@dataclass(slots=True)
class _Counters:
    values: int = 0
    arguments: int = 0
    conflicts: int = 0


class Namer:
    """Names everything in an op."""

    def __init__(self, *, is_generic: bool) -> None:
        self._is_generic = is_generic
        self.names = Names()
        self._used: list[set[str]] = []
        self._counters = _Counters()

    def name(self, op: Operation) -> Names:
        """The names of all values in the regions of `op`, and of its results."""
        self._used = [set()]
        self._number_op(op)
        # Regions wait with the counters and the depth of scopes they start from.
        waiting: list[tuple[Region, int, int, int, int]] = [
            (region, 0, 0, 0, 1) for region in op.regions
        ]
        counters = self._counters
        for entry in range(len(waiting)):
            region = waiting[entry][0]
            waiting[entry] = (region, counters.values, counters.arguments, counters.conflicts, 1)
        while waiting:
            region, values, arguments, conflicts, depth = waiting.pop()
            del self._used[depth:]
            self._used.append(set())
            # In generic form MLIR gives every value of the module a number of its own.
            if not self._is_generic:
                counters.values, counters.arguments = values, arguments
                counters.conflicts = conflicts
            self._number_region(region)
            state = (counters.values, counters.arguments, counters.conflicts, len(self._used))
            for block in region.blocks:
                for inner in block.ops:
                    for nested in inner.regions:
                        waiting.append((nested, *state))
        return self.names

    def _number_region(self, region: Region) -> None:
        counters, values = self._counters, self.names.values
        parent = region.parent
        proposed: dict[SSAValue, str | None] = {}
        if not self._is_generic and parent is not None:
            arguments = region.blocks[0].args if region.blocks else ()
            proposed.update(zip(arguments, self.argument_names(parent, region), strict=False))
        for value, name in proposed.items():
            if name is not None:
                values[value] = "%" + self._unique(name)
        for number, block in enumerate(region.blocks):
            self.names.blocks[block] = f"^bb{number}"
            for argument in block.args:
                if argument in values:
                    continue
                if number == 0:
                    values[argument] = "%" + self._unique(f"arg{counters.arguments}")
                    counters.arguments += 1
                else:
                    values[argument] = f"%{counters.values}"
                    counters.values += 1
            for op in block.ops:
                if op.results:
                    self._number_op(op)

    def _number_op(self, op: Operation) -> None:
        results = op.results
        if not results:
            return
        proposed = [] if self._is_generic else self.result_names(op)
        values = self.names.values
        if not proposed or proposed[0][0] != 0:
            proposed = [(0, None), *proposed]
        # Names are given in the order they are proposed; the first result's number comes last.
        given: dict[int, str] = {}
        for index, name in proposed:
            if name is not None:
                given[index] = self._unique(name)
        if 0 not in given:
            given[0] = str(self._counters.values)
            self._counters.values += 1
        starts = sorted(given)
        count = len(results)
        shown: list[str] = []
        for position, begin in enumerate(starts):
            end = starts[position + 1] if position + 1 < len(starts) else count
            name = given[begin]
            if end - begin == 1:
                values[results[begin]] = f"%{name}"
                shown.append(f"%{name}")
            else:
                for index in range(begin, end):
                    values[results[index]] = f"%{name}#{index - begin}"
                shown.append(f"%{name}:{end - begin}")
        self.names.packs[op] = ", ".join(shown)

    def argument_names(self, op: Operation, region: Region) -> Sequence[str | None]:
        """Names an op proposes for the arguments of the entry block of a region."""
        return _argument_names(op, region)

    def result_names(self, op: Operation) -> list[tuple[int, str | None]]:
        """Names an op proposes for its results: index and name."""
        return _result_names(op)

    def _unique(self, name: str) -> str:
        used = self._used
        if any(name in scope for scope in used):
            while True:
                probe = f"{name}_{self._counters.conflicts}"
                self._counters.conflicts += 1
                if not any(probe in scope for scope in used):
                    name = probe
                    break
        used[-1].add(name)
        return name


def _argument_names(op: Operation, region: Region) -> list[str]:
    """Names an op proposes for the arguments of the entry block of a region."""
    if op.name == "stablehlo.while":
        return ["iterArg"] * (len(region.blocks[0].args) if region.blocks else 0)
    if op.name == "chlo.scan" and isinstance(op, TableOp):
        inputs = op.inputs
        count = len(region.blocks[0].args) if region.blocks else 0
        return ["input"] * len(inputs) + ["carry"] * (count - len(inputs))
    return []


def _result_names(op: Operation) -> list[tuple[int, str | None]]:
    """Names an op proposes for its results: index and name."""
    if not isinstance(op, TableOp):
        propose = _FOREIGN.get(op.name)
        return [(0, propose)] if propose is not None else []
    row = op.row
    if op.name == "stablehlo.constant":
        type_ = op.results[0].type
        element = cast("TensorType", type_).element_type if isinstance(type_, TensorType) else None
        return [(0, "c" if isinstance(element, IntegerType) else "cst")]
    if len(row.results) > 1 and not any(r.is_variadic for r in row.results):
        return [(index, result.name) for index, result in enumerate(row.results)]
    return []


_FOREIGN: dict[str, str] = {}
"""Names that ops of other dialects propose for their first result."""
