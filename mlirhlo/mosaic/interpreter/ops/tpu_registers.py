"""`tpu`: vector registers - loads and stores by sublanes, packed elements, registers of a vector.

A register is 8 sublanes of 128 lanes of 32 bits; narrow elements share a word, `vector<8x128x2xbf16>`.
Memory here is logical: where a reference's type has tiles, a map from places in tiled memory to
elements says which ones a register holds. Places that are no element are padding: undefined when
loaded, dropped when stored.
"""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.ir import Operation

from mlirhlo.dialects.tpu.attributes import LayoutText, TiledLayoutAttr
from mlirhlo.dialects.tpu.registers import places_of, register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, TiledLayout, VectorLayout
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    flag_of,
    integer_of,
    integers_of,
    name_of,
)
from mlirhlo.mosaic.interpreter.bits import from_bits, to_bits
from mlirhlo.mosaic.interpreter.memory import MemRef, dtype_in, shape_of, unwritten
from mlirhlo.mosaic.interpreter.numbers import is_float
from mlirhlo.mosaic.interpreter.problems import fault, unfit
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.dialects.builtin import MemRefType

    from mlirhlo.mosaic.interpreter.registry import Array


@lru_cache(maxsize=256)
def _elements(layout: TiledLayout, shape: tuple[int, ...]) -> Array:
    """By place in tiled memory, the number of the element that lies there; -1 for padding."""
    indices = np.indices(shape).reshape(len(shape), -1)
    offsets = places_of(layout, indices)
    found = np.full(int(offsets.max(initial=0)) + 1, -1, np.int64)
    found[offsets] = np.arange(offsets.size)
    return found


def _layout(op: Operation, type_: Any) -> TiledLayout:
    """The layout of a reference; rows of lanes where its type says none."""
    stated = cast("MemRefType[Any]", type_).layout
    if isinstance(stated, TiledLayoutAttr):
        return stated.data
    shape = shape_of(type_)
    if any(size < 0 for size in shape):
        raise unfit(op, "of a reference whose layout is not known")
    strides = tuple(
        prod(-(-size // (LANES if at == len(shape) - 1 else 1)) for at, size in rest)
        for dim in range(len(shape))
        for rest in [list(enumerate(shape))[dim + 1 :]]
    )
    return TiledLayout(((1, LANES),) if len(shape) > 1 else ((LANES,),), strides)


@means("tpu.load", "tpu.store", "tpu.shuffled_load", "tpu.shuffled_store")
def sublanes(op: Operation, scope: Scope) -> Run:
    """One vector register: sublanes `sublane_stride` apart, or at `sublane_offsets`.

    Sublanes that are masked off are undefined when loaded, and stay as they are when stored.
    """
    is_store = name_of(op).endswith("store")
    base = op.operands[1 if is_store else 0].type
    vector = op.operands[0].type if is_store else op.results[0].type
    shape, dtype = shape_of(vector), dtype_in(vector)
    if len(shape) not in (2, 3):
        raise unfit(op, f"of a vector of shape {list(shape)}")
    layout = _layout(op, base)
    packing = shape[2] if len(shape) == 3 else 1
    rows = np.array(integers_of(op, "sublane_mask") or (1,) * shape[0], np.bool_)
    offsets = integers_of(op, "sublane_offsets")
    steps = np.array(
        [at * integer_of(op, "sublane_stride", 1) for at in range(shape[0])]
        if offsets is None
        else offsets
    )
    # Words of one sublane lie side by side; a word is `packing` elements.
    window = (steps[:, None] * LANES + np.arange(shape[1]))[..., None] * packing
    window = (window + np.arange(packing)).reshape(shape)
    sizes = integers_of(op, "operandSegmentSizes")
    is_masked, adds = sizes is not None and len(sizes) > 3 and sizes[3] == 1, flag_of(op, "add")

    def places(ref: MemRef, at: tuple[Any, ...]) -> Any:
        index = np.array([[int(i)] for i in at])
        # An index of a packed row is that of its first element in the word.
        begin = int(places_of(layout, index)[0])
        elements = _elements(layout, ref.shape)
        where = begin // packing * packing + window
        inside = (where >= 0) & (where < elements.size)
        return np.where(inside, elements[np.clip(where, 0, elements.size - 1)], -1)

    def load(frame: Activation, ref: MemRef, *at: Any) -> Any:
        found = places(ref, at)
        taken = rows.reshape(-1, *(1,) * (len(shape) - 1)) & (found >= 0)
        result = unwritten(shape, dtype)
        result[taken] = ref.read().reshape(-1)[found[taken]]
        return result

    def store(frame: Activation, value: Any, ref: MemRef, *rest: Any) -> Any:
        at, mask = (rest[:-1], rest[-1]) if is_masked else (rest, None)
        found = places(ref, at)
        taken = rows.reshape(-1, *(1,) * (len(shape) - 1)) & (found >= 0)
        if mask is not None:
            taken &= np.broadcast_to(mask if mask.ndim == len(shape) else mask[..., None], shape)
        index = np.unravel_index(found[taken], ref.shape)
        new = value[taken]
        ref.write(index, ref.read()[index] + new if adds else new)
        return ()

    return store if is_store else load


def _layout_of(op: Operation, name: str) -> VectorLayout:
    stated: Any = attribute_of(op, name)
    first = next(iter(stated.data), None) if stated is not None else None
    if isinstance(first, LayoutText) and first.data is not None:
        return first.data
    values = op.operands if name == "in_layout" else op.results
    owner = values[0].owner
    if name == "in_layout" and isinstance(owner, Operation):
        if name_of(owner) == "tpu.roll_vectors":
            return _layout_of(owner, "out_layout")  # Taken apart as it was put together.
    bits = max(1, 32 // max(1, prod(shape_of(_register(op).type)[2:])))
    return VectorLayout(bits, (0, 0), (SUBLANES * (32 // bits), LANES), _implied(values[0].type))


def _register(op: Operation) -> Any:
    return op.operands[0] if name_of(op) == "tpu.roll_vectors" else op.results[0]


def _implied(type_: Any) -> tuple[int, ...]:
    return (-2,) if len(shape_of(type_)) == 1 else ()


@means("tpu.roll_vectors")
def roll_vectors(op: Operation, scope: Scope) -> Run:
    """The vector that registers hold, by the layout in `out_layout`."""
    type_ = op.results[0].type
    grid = register_grid(_layout_of(op, "out_layout"), shape_of(type_))
    if grid is None or prod(grid.shape) != len(op.operands):
        raise unfit(op, f"of {len(op.operands)} registers to {type_}")
    places, dtype = grid.places, dtype_in(type_)

    def run(frame: Activation, *registers: Any) -> Any:
        flat = np.stack([register.reshape(-1) for register in registers]).reshape(-1)
        return flat[places].astype(dtype)

    return run


@means("tpu.unroll_vectors")
def unroll_vectors(op: Operation, scope: Scope) -> Run:
    """The registers of a vector, by the layout in `in_layout`; what is no element is undefined."""
    type_, register = op.operands[0].type, shape_of(op.results[0].type)
    grid = register_grid(_layout_of(op, "in_layout"), shape_of(type_))
    count = len(op.results)
    if grid is None or prod(grid.shape) != count:
        raise unfit(op, f"of {type_} to {count} registers")
    places, dtype = grid.places, dtype_in(op.results[0].type)
    size = prod(register)

    def run(frame: Activation, vector: Any) -> Any:
        flat = unwritten((count * size,), dtype)
        flat[places] = vector
        parts = tuple(part.reshape(register) for part in flat.reshape(count, size))
        return grid.spread(parts) if count > 1 else grid.spread(parts)[0]

    return run


@means("tpu.unpack_subelements")
def unpack_subelements(op: Operation, scope: Scope) -> Run:
    """The part `index` of a packed register, made wide.

    Interleaved: the element at that place of each word; compressed: rows one after another.
    """
    source, result = op.operands[0].type, op.results[0].type
    index, compressed = integer_of(op, "index"), _is_compressed(op)
    wide = shape_of(result)
    dtype, narrow = dtype_in(result), dtype_in(source)
    has_sign = flag_of(op, "integer_extended", default=True) and not flag_of(
        op, "unsigned_integers"
    )

    def run(frame: Activation, a: Any) -> Any:
        keep = wide[2] if len(wide) == 3 else 1
        packing = a.shape[2]
        if compressed:
            rows = np.moveaxis(a, 2, 1).reshape(-1, LANES)
            begin = index * SUBLANES * keep
            part = rows[begin : begin + SUBLANES * keep].reshape(SUBLANES, keep, LANES)
            part = np.moveaxis(part, 1, 2)
        else:
            count = packing // keep
            part = a.reshape(*a.shape[:2], keep, count)[..., index]
        part = part.reshape(wide)
        if not is_float(narrow) and not has_sign and not is_float(dtype):
            return from_bits(to_bits(part).astype(np.uint64), dtype)
        return part.astype(np.int32).astype(dtype) if not is_float(narrow) else part.astype(dtype)

    return run


def _is_compressed(op: Operation) -> bool:
    return case_of(attribute_of(op, "pack_format")) == "compressed"


@means("tpu.pack_subelements")
def pack_subelements(op: Operation, scope: Scope) -> Run:
    """Registers, made narrow, in one packed register; `positions` say which part each becomes."""
    result = op.results[0].type
    shape, dtype = shape_of(result), dtype_in(result)
    compressed = _is_compressed(op)
    positions = integers_of(op, "positions") or tuple(range(len(op.operands)))
    if len(shape) != 3:
        raise unfit(op, f"to {result}")

    def run(frame: Activation, *sources: Any) -> Any:
        keep = sources[0].shape[2] if sources[0].ndim == 3 else 1
        count = shape[2] // keep
        parts = [unwritten((SUBLANES, LANES, keep), dtype) for _ in range(count)]
        for at, source in zip(positions, sources, strict=True):
            if not 0 <= at < count:
                raise fault(f"part {at} of a register of {count}")
            narrow = source if is_float(source.dtype) else _wrapped(source, dtype)
            parts[at] = narrow.astype(dtype).reshape(SUBLANES, LANES, keep)
        if not compressed:
            return np.stack(parts, axis=-1).reshape(shape)
        return _by_rows(parts, shape[2])

    return run


def _by_rows(parts: list[Array], packing: int) -> Array:
    """Rows of the parts one after another, `packing` in a sublane."""
    rows = np.concatenate([np.moveaxis(part, 2, 1).reshape(-1, LANES) for part in parts])
    return np.moveaxis(rows.reshape(SUBLANES, packing, LANES), 1, 2).copy()


@means("tpu.pack_vmsk")
def pack_vmsk(op: Operation, scope: Scope) -> Run:
    """Masks of registers whose rows follow one another; `positions` say which part each is, and what is
    none is false."""
    packing = shape_of(op.results[0].type)[2]
    positions = integers_of(op, "positions") or tuple(range(len(op.operands)))
    shape = shape_of(op.operands[0].type)
    count = packing // prod(shape[2:])
    nothing = np.zeros(shape, np.bool_)

    def run(frame: Activation, *sources: Any) -> Any:
        given = dict(zip(positions, sources, strict=True))
        parts = [given.get(at, nothing) for at in range(count)]
        wide = [part.reshape(SUBLANES, LANES, -1) for part in parts]
        return _by_rows(wide, packing)

    return run


def _wrapped(source: Array, dtype: np.dtype[Any]) -> Array:
    """Integers with the low bits kept."""
    return source if is_float(dtype) else from_bits(to_bits(source), dtype)


@means("tpu.create_subelement_mask")
def create_subelement_mask(op: Operation, scope: Scope) -> Run:
    """Rows of subelements from `from` to before `to`."""
    shape = shape_of(op.results[0].type)
    packing = shape[2] if len(shape) == 3 else 1
    row = np.arange(shape[0])[:, None, None] * packing + np.arange(packing)
    inside = (row >= integer_of(op, "from")) & (row < integer_of(op, "to"))
    mask = np.broadcast_to(inside, (shape[0], shape[1], packing)).reshape(shape)
    return lambda frame: mask
