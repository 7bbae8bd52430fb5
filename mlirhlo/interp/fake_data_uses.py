"""What the instructions of a module demand of values that come from outside, as parameters do.

Values are followed from where they come in through everything that hands elements on (reshapes, copies,
conversions, tuples, calls, loops, branches) to the operands that must be indices, identities, sort
keys or states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from xdsl.ir import SSAValue

from mlirhlo.analysis.dataflow import Readers
from mlirhlo.dialects.hlo.attributes.base import symbols_of
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import CONTROL_FLOW, Extreme, Movement, opcodes
from mlirhlo.dialects.hlo.types import shape_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr

    from mlirhlo.dialects.hlo.ops.control_flow import GetTupleElementOp, ParameterOp
    from mlirhlo.dialects.hlo.ops.data_movement import (
        DynamicSliceOp,
        GatherOp,
        ScatterOp,
        SetDimensionSizeOp,
    )

Position = tuple[SSAValue, tuple[int, ...]]
"""A part of a value: the value, and the index of the part in its tuple."""

_SAME = opcodes(
    lambda row: row.forwards or (row.movement is Movement.EXCHANGE and not row.is_asynchronous)
) - {"ragged-all-to-all"} | {"convert", "reduce-precision"}
"""Opcodes whose result is made of their operands' elements."""

_SOME = opcodes(lambda row: (row.moves and row.data is not None) or row.name == "clamp")
"""Opcodes whose result is made of the elements of their data operands."""

_INDEXED = opcodes(lambda row: row.indices is not None or row.name == "scatter") - {"select"}
"""Opcodes with operands that are indices."""

_STARTS = opcodes(lambda row: row.is_async_start and row.moves)
_RUNS = CONTROL_FLOW | {"fusion"}
_IN_SHAPE = opcodes(lambda row: row.elementwise and row.name in _SAME | _SOME) | {"opt-barrier"}
"""Opcodes whose result has the shape of the operand, whether it is in one piece or in parts."""
_DONES = opcodes(lambda row: row.takes_pair)


@dataclass(frozen=True, slots=True)
class IndexDemand:
    """Use as indices: greatest allowed value of each component of an index vector."""

    bounds: tuple[int, ...]
    vector_dimension: int | None = None
    """Dimension of the array along which the components lie; None when that is unknown."""
    is_sorted: bool = False
    is_unique: bool = False


@dataclass(slots=True)
class Demands:
    """All that is demanded of one array."""

    indices: list[IndexDemand] = field(default_factory=list[IndexDemand])
    constant: str | None = None
    """`zero`, `one`, `least` or `greatest`."""
    is_distinct: bool = False
    is_nonzero: bool = False


def demands_on(
    values: Sequence[SSAValue], module: HloModule
) -> dict[tuple[int, tuple[int, ...]], Demands]:
    """Demands by the number of the value and the index of the array in it."""
    callers = _callers(module)
    computations = module.by_name()
    entered = {name: computation.parameters for name, computation in computations.items()}
    readers = Readers()
    found: dict[tuple[int, tuple[int, ...]], Demands] = {}
    for number, source in enumerate(values):
        # Parts are told apart on the way: every position carries the part it started from.
        pending: list[tuple[Position, tuple[int, ...] | None, bool]] = [((source, ()), (), True)]
        seen: set[tuple[SSAValue, tuple[int, ...], tuple[int, ...]]] = set()
        while pending:
            (value, index), part, is_direct = pending.pop()
            assert part is not None
            if (value, index, part) in seen:
                continue
            seen.add((value, index, part))
            owner = cast(Instruction, value.owner)
            computation = cast(ComputationOp, owner.parent_op())
            if computation.root is owner:
                for result, inner in _results(callers.get(computation.computation_name, ())):
                    pending.append(((result, (*inner, *index)), part, is_direct))
            for user, place in readers.of(owner, index):
                if user.opcode.name == "get-tuple-element" and not index:
                    # A part of the value itself: from here on the part is what is followed.
                    step = cast("GetTupleElementOp", user).index
                    pending.append(((user.results[0], ()), (*part, step), is_direct))
                    continue
                if not index:
                    _demand(user, place, is_direct, found, (number, part), computations)
                for target, inner, direct in _flow(user, place, index, entered):
                    pending.append(((target, inner), part, is_direct and direct))
    return found


def _callers(module: HloModule) -> dict[str, list[Instruction]]:
    callers: dict[str, list[Instruction]] = {}
    for op in module.instructions:
        for name in op.called_computations:
            callers.setdefault(name, []).append(op)
    return callers


def _results(callers: list[Instruction] | tuple[()]) -> Iterator[tuple[SSAValue, tuple[int, ...]]]:
    """Where the result of a computation goes in its callers."""
    for op in callers:
        if op.opcode.name in _RUNS:
            yield op.results[0], ()
        elif op.opcode.name == "async-start":
            yield op.results[0], (1,)


def _flow(
    op: Instruction,
    place: int,
    index: tuple[int, ...],
    entered: Mapping[str, tuple[ParameterOp, ...]],
) -> Iterator[tuple[SSAValue, tuple[int, ...], bool]]:
    """Where the elements of operand `place` go: value, index, whether they keep their shape."""
    opcode, result = op.opcode.name, op.results[0]
    if opcode in _SAME or (opcode in _SOME and place in op.opcode.data_operands(len(op.inputs))):
        keeps = shape_of(op.inputs[place].type) == op.shape
        yield result, index, keeps or opcode in _IN_SHAPE
    elif opcode == "tuple":
        yield result, (place, *index), True
    elif opcode == "get-tuple-element":
        if index[0] == cast("GetTupleElementOp", op).index:
            yield result, index[1:], True
    elif opcode == "copy-done":
        if index[:1] == (0,):
            yield result, index[1:], True
    elif opcode in _DONES:
        if index[:1] == (1,):
            yield result, index[1:], True
    elif opcode in _STARTS:
        yield result, (0 if opcode == "copy-start" else 1, *index), True
    else:
        for name in _entered(op, place):
            number = 0 if opcode in ("while", "conditional") else place
            parameters = entered.get(name, ())
            if number < len(parameters):
                yield parameters[number].results[0], index, True
        if opcode == "while":
            yield result, index, True


def _entered(op: Instruction, place: int) -> tuple[str, ...]:
    """Computations whose parameters are (parts of) operand `place`."""
    opcode = op.opcode.name
    if opcode == "conditional":
        if place == 0:
            return ()
        if (branches := op.properties.get("branch_computations")) is None:
            return op.called_computations[place - 1 : place]
        # One of many, without a look at the others.
        return symbols_of(cast("ArrayAttr[SymbolRefAttr]", branches).data[place - 1])
    return op.called_computations if opcode in _RUNS or opcode == "async-start" else ()


def _demand(
    op: Instruction,
    place: int,
    is_direct: bool,
    found: dict[tuple[int, tuple[int, ...]], Demands],
    key: tuple[int, tuple[int, ...]],
    computations: dict[str, ComputationOp],
) -> None:
    def demands() -> Demands:
        return found.setdefault(key, Demands())

    opcode, count = op.opcode.name, len(op.inputs)
    indices = _index_demand(op, place)
    if indices is not None:
        if not is_direct and indices.vector_dimension is not None:
            indices = IndexDemand(indices.bounds, None, indices.is_sorted, indices.is_unique)
        demands().indices.append(indices)
    elif opcode in ("reduce", "reduce-window") and place >= count // 2:
        demands().constant = _identity(op, "to_apply", computations)
    elif opcode == "select-and-scatter" and place == 2:
        demands().constant = _identity(op, "scatter", computations)
    elif opcode == "sort" and place == 0:
        demands().is_distinct = True
    elif opcode == "rng-bit-generator":
        demands().is_nonzero = True


def _index_demand(op: Instruction, place: int) -> IndexDemand | None:
    if op.opcode.name not in _INDEXED:
        return None
    shape = shape_of(op.inputs[0].type)
    match op.opcode.name:
        case "dynamic-slice" if place >= 1:
            sizes = cast("DynamicSliceOp", op).dynamic_slice_sizes
            return _starts(cast(ArrayShape, shape), sizes, place - 1, len(op.inputs) - 1)
        case "dynamic-update-slice" if place >= 2:
            update = cast(ArrayShape, op.input_shapes[1]).dimensions
            return _starts(cast(ArrayShape, shape), update, place - 2, len(op.inputs) - 2)
        case "gather" if place == 1:
            gather = cast("GatherOp", op)
            whole = cast(ArrayShape, shape).dimensions
            bounds = tuple(whole[d] - gather.slice_sizes[d] for d in gather.start_index_map)
            return IndexDemand(bounds or (0,), gather.index_vector_dim, gather.indices_are_sorted)
        case "scatter" if place == (len(op.inputs) - 1) // 2:
            return _scatter_indices(cast("ScatterOp", op))
        case "set-dimension-size" if place == 1:
            dim = cast("SetDimensionSizeOp", op).dimensions[0]
            return IndexDemand((cast(ArrayShape, shape).dimensions[dim],))
        case "conditional" if place == 0:
            return IndexDemand((max(len(op.called_computations) - 1, 0),))
        case _:
            return None


def _starts(whole: ArrayShape, part: tuple[int, ...], dim: int, operands: int) -> IndexDemand:
    bounds = tuple(n - m for n, m in zip(whole.dimensions, part, strict=True))
    if operands == whole.rank and not (operands == 1 and whole.rank > 1):
        return IndexDemand((bounds[dim],))
    return IndexDemand(bounds or (0,), 0)


def _scatter_indices(op: ScatterOp) -> IndexDemand:
    count = (len(op.inputs) - 1) // 2
    whole = cast(ArrayShape, op.input_shapes[0]).dimensions
    update = cast(ArrayShape, op.input_shapes[count + 1]).dimensions
    hidden = {*op.inserted_window_dims, *op.input_batching_dims}
    windows = [d for d in range(len(whole)) if d not in hidden]
    sizes = dict(zip(windows, (update[d] for d in op.update_window_dims), strict=False))
    bounds = tuple(whole[d] - sizes.get(d, 1) for d in op.scatter_dims_to_operand_dims)
    return IndexDemand(
        bounds or (0,), op.index_vector_dim, op.indices_are_sorted, op.unique_indices
    )


def _identity(op: Instruction, key: str, computations: dict[str, ComputationOp]) -> str | None:
    names = symbols_of(op.properties.get(key))
    computation = computations.get(names[0]) if names else None
    if computation is None:
        return None
    root = computation.root
    identity = root.opcode.identity
    if identity is Extreme.ALL_ONES:
        # Of signed integers that is -1, which is not their greatest number.
        shape = root.shape
        is_signed = not isinstance(shape, ArrayShape) or shape.element_type.is_signed
        return None if is_signed else Extreme.GREATEST.value
    return None if identity is None else identity.value
