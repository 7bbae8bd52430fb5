"""The schedule of an op: which launch computes it, in what shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import BY_MLIR, PrimitiveType
from mlirhlo.dialects.interned import integers64

SCHEDULE = "structured.schedule"


@dataclass(frozen=True, slots=True)
class AnySchedule:
    """The attribute `structured.schedule` of a target; fields of no effect on a kind have their default, and are
    not written."""

    def attribute(self) -> DictionaryAttr:
        """As it stands on an op."""
        return _attribute(self)


@dataclass(frozen=True, slots=True)
class Schedule(AnySchedule):
    """On GPUs: which launch computes an op, in what shape."""

    launch: int
    """Number of the launch; smaller ones come first."""
    kind: str
    """How the work is divided among threads: see `lowering/gpu`, one file a kind."""
    threads: int = 0
    """Threads of a block."""
    vector: int = 0
    """Neighbours that a thread computes at once."""
    row_threads: int = 0
    """Threads that fold one row together, or read a run of a box."""
    column_threads: int = 0
    """Threads that write a run of a box together."""
    parts: int = 0
    """Blocks that share a row or column, or the terms of a product."""
    rows: int = 0
    """Rows of a product that a block computes."""
    columns: int = 0
    """Columns of a product that a block computes."""
    terms: int = 0
    """Terms of a product that are in shared memory at once, in each stage."""
    stages: int = 0
    """Buffers of such terms: so many, but one, are on their way while a block multiplies."""
    warps_down: int = 0
    """Warps that share the rows of a block; the others stand beside them."""
    format: str = ""
    """What factors are rounded to for the matrix units, if that is not their type: `tf32`."""
    rounds: int = 0
    """Rows that the same threads compute in turn."""
    tile: tuple[int, ...] = ()
    """Elements of the results that a block computes, along each group of dimensions."""
    pitches: tuple[int, ...] = ()
    """Distances of neighbours along those groups in shared memory."""
    is_across: int = 0
    """1 where threads of a warp take runs of a box that are neighbours in the other array."""
    swizzle: tuple[int, ...] = ()
    """Of indices `i` of shared memory: `every`, `count` and `unit`; `i` is xored with `i / every % count * unit`."""
    written: tuple[int, ...] = ()
    """Distances as `pitches` in a second array, which results are computed from; none where there is one array."""
    lanes: tuple[int, ...] = ()
    """Lanes of a warp along those groups, where a box is copied to the second array."""
    lines: int = 0
    """Indices of the outermost group that is read that the second array holds at once."""


@lru_cache(1 << 10)
def _attribute(schedule: AnySchedule) -> DictionaryAttr:
    return DictionaryAttr(
        {
            field.name: _written(value)
            for field in fields(schedule)
            if (value := getattr(schedule, field.name)) != field.default
        }
    )


@lru_cache(1 << 10)
def _written(value: str | int | tuple[int, ...]) -> Attribute:
    if isinstance(value, str):
        return StringAttr(value)
    return integers64(*value) if isinstance(value, tuple) else IntegerAttr(value, i64)


def _read(
    field: str | int | tuple[int, ...], attribute: Attribute
) -> str | int | tuple[int, ...] | None:
    """The value of an attribute; None where it has another type than the field, of which this is a value."""
    match field, attribute:
        case str(), StringAttr():
            return attribute.data
        case tuple(), DenseArrayBase():
            return tuple(cast(Any, attribute).get_values())
        case int(), IntegerAttr():
            return attribute.value.data
        case _:
            return None


def element_of(value: SSAValue) -> PrimitiveType:
    """Element type of a tensor."""
    return BY_MLIR[cast(Any, value.type).element_type]


_REQUIRED: Mapping[str, str | int] = {"kind": "", "launch": 0}
"""Values of the fields without a default."""


@lru_cache(maxsize=16)
def _samples(cls: type[AnySchedule]) -> dict[str, str | int | tuple[int, ...]]:
    """A value of each field: its default where it has one."""
    defaults: dict[str, Any] = {f.name: f.default for f in fields(cls)}
    return {name: _REQUIRED.get(name, value) for name, value in defaults.items()}


ScheduleT = TypeVar("ScheduleT", bound=AnySchedule)


def schedule_of(op: Operation) -> Schedule | None:
    """What the attribute of an op says, on GPUs. Raises `HloError` HLO0806 for one that is not a schedule."""
    return read_schedule(op, Schedule)


def read_schedule(op: Operation, cls: type[ScheduleT]) -> ScheduleT | None:
    """What the attribute of an op says on the target that `cls` belongs to; None without one.

    Raises `HloError` HLO0806 for one that is not a schedule.
    """
    attribute = op.attributes.get(SCHEDULE)
    if attribute is None:
        return None
    samples = _samples(cast("Any", cls))
    entries: Mapping[str, Attribute] = (
        attribute.data if isinstance(attribute, DictionaryAttr) else {}
    )
    if not samples.keys() & _REQUIRED.keys() <= entries.keys() <= samples.keys():
        raise error("HLO0806", f"`{attribute}` on `{op.name}` is not a schedule")
    values: dict[str, Any] = {}
    for key, value in entries.items():
        values[key] = _read(samples[key], value)
        if values[key] is None:
            raise error("HLO0806", f"`{key}` of the schedule of `{op.name}` is `{value}`")
    return cls(**values)
