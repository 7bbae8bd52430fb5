"""A kernel under construction: the block that operations go to, and how they get there."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects.stablehlo.locations import file_loc
from mlirhlo.dialects.tpu.attributes import MemorySpaceAttr
from mlirhlo.dialects.tpu.op_classes import class_of
from mlirhlo.dialects.tpu.values import MemorySpace
from mlirhlo.formats.mosaic.reader import default_of, settle
from mlirhlo.mosaic.language.elements import DType, element_type
from mlirhlo.mosaic.language.faults import misuse, span_of, user_frame

attribute: Callable[[str], Attribute] = default_of
"""The attribute that a text spells; cached."""

_state = threading.local()


class Traced:
    """What stands for a scalar (shape `()`) or vector of a kernel."""

    __slots__ = ("dtype", "shape", "ssa")

    def __init__(self, ssa: SSAValue, shape: Sequence[int], dtype: DType) -> None:
        self.ssa = ssa
        self.shape = tuple(shape)
        self.dtype = dtype


@dataclass(slots=True, eq=False)
class Trace:
    """What a kernel function is running in."""

    block: Block
    """Where operations go."""
    grid_indices: tuple[Traced, ...] = ()
    grid: tuple[int | None, ...] = ()
    """Sizes of the grid; None for those known when the kernel runs."""
    names: Mapping[str, int] = field(default_factory=dict[str, int])
    """Dimensions of the grid by their names."""
    mesh: Any = None
    """Axes of the device mesh with their sizes; None for one device."""
    collective_id: int | None = None
    has_communication: bool = False
    is_index_map: bool = False
    natural: set[SSAValue] = field(default_factory=set[SSAValue])
    """Scalars known not to be negative: counters of loops that start at zero or above."""
    cache: dict[str, Any] = field(default_factory=dict[str, Any])
    """What kernels for GPUs know of their launch; `allocate` gives them memory."""


def current(what: str = "this") -> Trace:
    """The kernel being written. Raises `HloError` HLO0720 outside of one."""
    found: Trace | None = getattr(_state, "trace", None)
    if found is None:
        raise misuse(
            f"{what} stands outside of a kernel", "call it in the function given to kernel_call"
        )
    return found


def is_tracing() -> bool:
    """Whether a kernel is being written."""
    return getattr(_state, "trace", None) is not None


@contextmanager
def tracing(trace: Trace) -> Generator[Trace]:
    """Within, operations go to `trace`."""
    before = getattr(_state, "trace", None)
    _state.trace = trace
    try:
        yield trace
    finally:
        _state.trace = before


@contextmanager
def into(block: Block) -> Generator[Block]:
    """Within, operations go to `block`."""
    trace = current()
    before, trace.block = trace.block, block
    trace.cache["depth"] = trace.cache.get("depth", 0) + 1
    try:
        yield block
    finally:
        trace.block = before
        trace.cache["depth"] -= 1


def place_now() -> Attribute | None:
    """The user's line as a location of MLIR."""
    frame = user_frame()
    if frame is None:
        return None
    line, column, _ = span_of(frame.f_code, frame.f_lasti)
    return file_loc(frame.f_code.co_filename, line, column)


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """What a function calls what it is given in order; nothing where Python does not know."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def place_of_function(function: Any) -> Attribute | None:
    """Where a function of the user's begins, as a location of MLIR."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    return None if code is None else file_loc(code.co_filename, code.co_firstlineno, 1)


def emit(
    name: str,
    operands: Sequence[SSAValue] = (),
    results: Sequence[Attribute] = (),
    attributes: Mapping[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
) -> Operation:
    """Appends an operation to the current block."""
    cls = class_of(name)
    assert cls is not None, name
    op = cls.create(
        operands=operands,
        result_types=results,
        attributes=dict(attributes or {}),
        regions=list(regions),
    )
    settle(op)
    location = place_now()
    if location is not None:
        op.location = location  # type: ignore[assignment]
    current(name).block.add_op(op)
    return op


def emit_one(
    name: str,
    operands: Sequence[SSAValue],
    result: Attribute,
    attributes: Mapping[str, Attribute] | None = None,
) -> SSAValue:
    """Appends an operation with one result; gives it."""
    return emit(name, operands, [result], attributes).results[0]


def vector_type(shape: Sequence[int], dtype: DType) -> Attribute:
    """`vector<8x128xf32>`; the element type itself for no dimensions."""
    element: Any = element_type(dtype)
    return VectorType(element, list(shape)) if shape else element


def memref_type(shape: Sequence[int], element: Attribute, space: str) -> MemRefType[Any]:
    """`memref<8x128xf32, #tpu.memory_space<vmem>>`; sizes below zero are dynamic."""
    sizes = [DYNAMIC_INDEX if size < 0 else size for size in shape]
    return MemRefType(element, sizes, memory_space=MemorySpaceAttr(MemorySpace(space)))


def int_attr(value: int, bits: int = 32) -> Attribute:
    """`value : i32`, or of 64 bits."""
    return IntegerAttr(value, i32 if bits == 32 else i64)


def ints(values: Sequence[int], bits: int = 64) -> Attribute:
    """`array<i64: …>`, or of 32 bits."""
    return DenseArrayBase.from_list(i32 if bits == 32 else i64, list(values))


def text(value: str) -> Attribute:
    """A string attribute."""
    return StringAttr(value)


def flag(value: bool) -> Attribute:
    """`true` or `false`."""
    return IntegerAttr.from_bool(value)


UNIT = UnitAttr()
SEGMENTS = "operandSegmentSizes"

__all__ = [
    "SEGMENTS",
    "UNIT",
    "Trace",
    "attribute",
    "current",
    "emit",
    "emit_one",
    "flag",
    "int_attr",
    "into",
    "ints",
    "memref_type",
    "place_now",
    "place_of_function",
    "text",
    "tracing",
    "vector_type",
]
