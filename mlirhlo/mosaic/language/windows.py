"""Blocks of a call's arrays: the types of the kernel's arguments, and their index functions."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import index as as_index
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DictionaryAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Region

from mlirhlo.dialects.tpu.attributes import ElementWindowAttr
from mlirhlo.dialects.tpu.values import ElementWindow
from mlirhlo.mosaic.language.elements import BOOL, I32, DType, element_type
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    RevisitMode,
    ShapeDtypeStruct,
    Squeezed,
)
from mlirhlo.mosaic.language.trace import (
    Trace,
    attribute,
    emit,
    ints,
    memref_type,
    place_of_function,
    tracing,
    vector_type,
)
from mlirhlo.mosaic.language.value import Value

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

_WHOLE = ("any", "hbm", "host", "semaphore_mem")


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of the call with its block."""

    name: str
    array: ShapeDtypeStruct
    spec: BlockSpec
    space: str
    sizes: tuple[int, ...]
    """Of the block, dimensions of the kernel's argument."""
    hidden: tuple[bool, ...]
    padding: tuple[tuple[int, int], ...] | None = None
    """Of blocks that count elements; None where they are counted whole."""

    @property
    def element(self) -> Attribute:
        """The MLIR type of the elements that the kernel sees."""
        return element_type(stored_as(self.array.dtype))

    @property
    def type(self) -> Attribute:
        """The type of the kernel's argument."""
        return memref_type(self.sizes, self.element, self.space)

    def ref(self, ssa: Any) -> Ref:
        """What the kernel function is given."""
        return Ref(ssa, self.sizes, self.array.dtype, self.space, hidden=self.hidden)


def stored_as(dtype: DType) -> DType:
    """What elements are in the kernel: booleans are i32."""
    return I32 if dtype == BOOL else dtype


def operand_of(name: str, array: ShapeDtypeStruct, spec: Any, grid: Sequence[Any]) -> Operand:
    """An array and its spec. Raises `HloError` HLO0726 when they do not fit."""
    if spec is None:
        spec = BlockSpec()
    if isinstance(spec, MemorySpace):
        spec = BlockSpec(memory_space=spec)
    if not isinstance(spec, BlockSpec):
        raise bad_spec(f"the spec of {name} is {spec!r}", "write pl.BlockSpec(block, index_map)")
    space = (spec.memory_space or (MemorySpace.VMEM if array.shape else MemorySpace.SMEM)).value
    shape = array.shape
    if not shape:
        if space != "smem":
            raise bad_spec(
                f"{name} is a scalar in {space}, where arrays have one dimension at least",
                "give it pl.BlockSpec(memory_space=pltpu.SMEM), or pass it with reshape(1)",
            )
        # One element, in a dimension that the kernel does not see.
        array = ShapeDtypeStruct((1,), array.dtype)
        return Operand(name, array, BlockSpec(memory_space=MemorySpace.SMEM), space, (1,), (True,))
    block = spec.block_shape
    if space in _WHOLE:
        if block is not None:
            raise bad_spec(
                f"{name} is in {space}, where the kernel sees all of it",
                "leave the block out, and copy parts with ref.at[...]",
            )
        return Operand(name, array, spec, space, shape, (False,) * len(shape))
    if block is None:
        block = shape
    if len(block) != len(shape):
        raise bad_spec(
            f"the block of {name} has {len(block)} dimensions, the array {len(shape)}: "
            f"{list(block)} of {list(shape)}",
            "use None for dimensions of which the kernel sees one element",
            spec.place,
        )
    sizes: list[int] = []
    for dim, size in enumerate(block):
        sizes.append(_size(name, dim, size))
    if not grid and tuple(sizes) != shape:
        raise bad_spec(
            f"without a grid the kernel sees all of {name}, not a block of {sizes}",
            "give the call a grid",
        )
    counted = [isinstance(size, Element) for size in block]
    if any(counted) and not all(
        c or isinstance(s, Squeezed | None) for c, s in zip(counted, block, strict=True)
    ):
        raise bad_spec(f"some dimensions of {name} count elements, others blocks")
    padding = None
    if any(counted):
        padding = tuple(s.padding if isinstance(s, Element) else (0, 0) for s in block)
    hidden = tuple(isinstance(size, Squeezed | None) for size in block)
    return Operand(name, array, spec, space, tuple(sizes), hidden, padding)


def _size(name: str, dim: int, size: Any) -> int:
    if isinstance(size, Squeezed | None):
        return 1
    if isinstance(size, BoundedSlice):
        raise bad_spec(
            f"{name} has a BoundedSlice, and the grid of a call moves blocks of one size",
            "give the kernel the array in pl.ANY, and let emit_pipeline move slices of it",
        )
    stated: Any = size.block_size if isinstance(size, Blocked | Element) else size
    if not hasattr(stated, "__index__"):
        raise bad_spec(
            f"dimension {dim} of the block of {name} is {stated!r}, which is no whole number",
            "divide with //" if isinstance(stated, float) else None,
        )
    number = as_index(stated)
    if number < 1:
        raise bad_spec(f"dimension {dim} of the block of {name} is {number}")
    return number


def window(operand: Operand, number: int) -> DictionaryAttr:
    """The entry of `window_params`."""
    if operand.space in _WHOLE:
        return DictionaryAttr({})
    entries: dict[str, Attribute] = {}
    mode = operand.spec.pipeline_mode
    count = mode.buffer_count if mode is not None else None
    if count is None and operand.spec.index_map is None:
        count = 1
    if count is not None:
        if count not in (1, 2):
            raise bad_spec(f"{operand.name} has {count} buffers; there are 1 or 2")
        word = "synchronous" if count == 1 else "double_buffered"
        if count == 1 or mode is not None:
            entries["pipeline_mode"] = attribute(f"#tpu.pipeline_mode<{word}>")
    if mode is not None and mode.revisit is not None:
        entries["revisit_mode"] = attribute(f"#tpu.revisit_mode<{RevisitMode(mode.revisit).value}>")
    entries["transform_indices"] = SymbolRefAttr(f"transform_{number}")
    entries["window_bounds"] = ints(operand.sizes)
    if operand.padding is not None:
        low, high = zip(*operand.padding, strict=True)
        entries["window_kind"] = ElementWindowAttr(ElementWindow(tuple(low), tuple(high)))
    return DictionaryAttr(entries)


def index_function(
    operand: Operand,
    number: int,
    grid: Sequence[int | None],
    prefetched: Sequence[Operand],
    arranged: Callable[[list[Ref]], list[Any]],
) -> FuncOp:
    """The function that gives the block of a step; `arranged` are prefetched references as the call has them."""
    i32 = vector_type((), I32)
    types = [*(i32 for _ in grid), *(one.type for one in prefetched)]
    block = Block(arg_types=types)
    indices = [Value(argument, (), I32) for argument in block.args[: len(grid)]]
    scalars = block.args[len(grid) :]
    refs = arranged([one.ref(at) for one, at in zip(prefetched, scalars, strict=True)])
    rank = len(operand.sizes)
    trace = Trace(block, tuple(indices), tuple(grid), is_index_map=True)
    with tracing(trace):
        found: Any = (0,) * rank
        if operand.spec.index_map is not None:
            _check_parameters(operand, len(indices), len(refs))
            found = operand.spec.index_map(*indices, *refs)
        items = list(found) if isinstance(found, tuple | list) else [found]
        if len(items) != rank:
            raise bad_spec(
                f"the index map of {operand.name} gives {len(items)} numbers for a block of "
                f"{rank} dimensions",
                "return one block number a dimension",
                operand.spec.place,
            )
        values = [scalar(item, "a block number").ssa for item in items]
        end = emit("func.return", values)
        place = place_of_function(operand.spec.index_map)
        if place is not None:
            end.location = place  # type: ignore[assignment]
    name = f"transform_{number}"
    return function(name, block, [i32] * rank, {})


def _check_parameters(operand: Operand, indices: int, refs: int) -> None:
    """An index map takes one index a dimension of the grid, and the scalar-prefetch references."""
    index_map = operand.spec.index_map
    assert index_map is not None
    try:
        signature = inspect.signature(index_map)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * (indices + refs))
    except TypeError as problem:
        more = f" and {refs} scalar-prefetch references" if refs else ""
        raise bad_spec(
            f"the index map of {operand.name} is given {indices} indices{more}, which does not fit "
            f"its parameters: {problem}",
            "it takes an index for each dimension of the grid, then the scalar-prefetch references",
            operand.spec.place,
        ) from problem


def function(
    name: str, block: Block, results: Sequence[Attribute], attributes: dict[str, Attribute]
) -> FuncOp:
    """A `func.func`."""
    from xdsl.dialects.builtin import FunctionType
    from xdsl.dialects.func import FuncOp

    type_ = FunctionType.from_lists([argument.type for argument in block.args], list(results))
    op = FuncOp(name, type_, Region(block))
    op.attributes.update(attributes)
    return op


__all__ = [
    "Operand",
    "function",
    "index_function",
    "operand_of",
    "stored_as",
    "window",
]
