"""Loads and stores: memories they reach, element types, and alignment of indices.

A dynamic index into a tiled dimension has to be provably a multiple of the tile: 128 lanes, and the
rows of the array's tile. Static indices may be anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from mlirhlo.dialects.stablehlo.elements import array_of
from mlirhlo.dialects.tpu.values import LANES
from mlirhlo.mosaic.attributes import attribute_of, flag_of, integers_of, name_of
from mlirhlo.mosaic.target.divisible import constant_of, is_divisible
from mlirhlo.mosaic.target.rules import (
    ALIGNMENT,
    ELEMENTS,
    LOWERING,
    SHAPE,
    SPACE,
    Question,
    Refusal,
    refuses,
)
from mlirhlo.mosaic.target.tiling import (
    element_name,
    is_memref,
    rows_of_tile,
    shape_in,
    space_of,
    width_in_bits,
)
from mlirhlo.mosaic.target.views import layout_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.ir import SSAValue

VECTOR_LOADS = ("vector.load", "tpu.vector_load", "tpu.strided_load", "vector.maskedload")
VECTOR_STORES = ("vector.store", "tpu.vector_store", "tpu.strided_store", "vector.maskedstore")


def base_of(op: Operation) -> SSAValue:
    """The reference that a load or store is of."""
    return next(operand for operand in op.operands if is_memref(operand.type))


def indices_of(op: Operation) -> Sequence[SSAValue]:
    """The indices of a load or store."""
    base = base_of(op)
    at = list(op.operands).index(base) + 1
    return op.operands[at : at + len(shape_in(base.type))]


def vector_of(op: Operation) -> Any:
    """The type of what is loaded or stored."""
    if op.results:
        return op.results[0].type
    return next(o.type for o in op.operands if str(o.type).startswith("vector"))


def mask_of(op: Operation) -> bool | None:
    """What the mask of a masked access is everywhere, where it is a constant; None for other masks."""
    mask = next(operand for operand in op.operands if element_name(operand.type) == "i1")
    source, shape = mask.owner, shape_in(mask.type)
    if not isinstance(source, Operation):
        return None
    if name_of(source) == "vector.constant_mask":
        sizes = integers_of(source, "mask_dim_sizes") or ()
        return True if sizes == shape else False if 0 in sizes else None
    if name_of(source) != "arith.constant" or (value := attribute_of(source, "value")) is None:
        return None
    bits = array_of(value)
    return True if bits.all() else None if bits.any() else False


@refuses(*VECTOR_LOADS, *VECTOR_STORES)
def vectors_are_in_vmem(op: Operation, question: Question) -> Refusal | None:
    """Vectors are read and written in VMEM."""
    space = space_of(base_of(op).type)
    if space == "vmem":
        return None
    mend = "read scalars with memref.load" if space == "smem" else "copy it to VMEM first"
    return Refusal(SPACE, f"vectors are in VMEM, and this reference is in {space.upper()}", mend)


@refuses("memref.load", "memref.store")
def scalars_are_in_smem(op: Operation, question: Question) -> Refusal | None:
    """Scalars are read and written in SMEM."""
    space = space_of(base_of(op).type)
    if space == "smem":
        return None
    return Refusal(
        SPACE,
        f"scalars are in SMEM, and this reference is in {space.upper()}",
        "move the array to SMEM, or load a 1x1 vector and vector.extract it",
    )


@refuses(*VECTOR_LOADS, *VECTOR_STORES)
def tiles_are_of_two_dimensions(op: Operation, question: Question) -> Refusal | None:
    """Registers are of rows and lanes: a reshape that cuts lines into more keeps no such tile."""
    layout = layout_of(base_of(op))
    if layout is None or len(layout.tiles[0]) == min(2, len(layout.strides)):
        return None
    return Refusal(
        SHAPE,
        "the reference is a reshaped one, whose rows do not fill the rows of registers",
        "load it before the reshape, and reshape the vector",
    )


@refuses("tpu.vector_load", "tpu.vector_store", "vector.maskedload", "vector.maskedstore")
def masks_are_of_words(op: Operation, question: Question) -> Refusal | None:
    """Masked accesses are of 32-bit elements."""
    element = element_name(base_of(op).type)
    if flag_of(op, "add"):
        return Refusal(LOWERING, "nothing adds in VMEM", "load, add, and store")
    is_masked = any(element_name(operand.type) == "i1" for operand in op.operands)
    if is_masked and name_of(op).startswith("vector.") and mask_of(op) is not None:
        return None  # The compiler loads or stores all of it, or nothing.
    if is_masked and op.results:
        return Refusal(LOWERING, "loads are not masked", "load all of it, and arith.select")
    if not is_masked or width_in_bits(element) == 32:
        return None
    return Refusal(
        ELEMENTS,
        f"a masked access is of 32-bit elements, not {element}",
        "load the old value, arith.select, and store without a mask",
    )


@refuses(*VECTOR_LOADS[:2], *VECTOR_STORES[:2], "vector.maskedload", "vector.maskedstore")
def indices_are_aligned(op: Operation, question: Question) -> Refusal | None:
    """Dynamic indices into tiled dimensions are multiples of the tile."""
    base, indices = base_of(op), list(indices_of(op))
    shape, bits = shape_in(base.type), width_in_bits(element_name(base.type))
    vector = shape_in(vector_of(op))
    rank = len(shape)
    for dim, tile in tiles_of_indices(shape, bits).items():
        index = indices[dim]
        if constant_of(index) is not None or is_divisible(index, tile):
            continue
        sizes = (1,) * (rank - len(vector)) + vector
        if dim == rank - 2 and bits == 32 and _rows_are_free(shape, sizes, indices):
            continue
        return Refusal(
            ALIGNMENT,
            f"the index in dimension {dim} is not provably a multiple of the tile ({tile})",
            f"multiply it by {tile}, or promise it with tpu.assume_multiple",
        )
    return None


def _rows_are_free(
    shape: tuple[int, ...], sizes: tuple[int, ...], indices: Sequence[SSAValue]
) -> bool:
    """32-bit rows can be reached singly, and in arrays one register wide also several at once."""
    if sizes[-2] == 1:
        return True
    return shape[-1] <= LANES and constant_of(indices[-1]) is not None


def tiles_of_indices(shape: Sequence[int], bits: int) -> dict[int, int]:
    """By tiled dimension, what a dynamic index has to be a multiple of."""
    rank = len(shape)
    if rank == 0:
        return {}
    if rank == 1:
        return {0: LANES * (32 // bits)}
    return {rank - 2: rows_of_tile(shape[-2], bits), rank - 1: LANES}


@refuses("tpu.strided_load", "tpu.strided_store")
def strides_are_of_rows(op: Operation, question: Question) -> Refusal | None:
    """A stride is along rows of an array one register wide."""
    strides = integers_of(op, "strides") or ()
    shape = shape_in(base_of(op).type)
    if not strides or not shape:
        return None
    if strides[-1] != 1:
        return Refusal(
            SHAPE, f"the last dimension has stride {strides[-1]}, not 1", "load all lanes"
        )
    is_store, bits = not op.results, width_in_bits(element_name(base_of(op).type))
    if is_store and bits != 32:
        return Refusal(ELEMENTS, "strided stores are of 32-bit elements", "store row by row")
    if bits != 32 and any(constant_of(index) is None for index in indices_of(op)):
        return Refusal(
            ALIGNMENT, "with a stride, packed rows have static indices", "cast to 32 bits before"
        )
    rows, packed = (1, *shape_in(vector_of(op)))[-2], 32 // bits
    if rows % packed and any(stride != 1 for stride in strides):
        return Refusal(
            SHAPE,
            f"with a stride, {rows} rows of packed elements are no multiple of {packed}",
            f"load {packed} rows and take a part of them, or cast to 32 bits before",
        )
    if (is_store or any(stride != 1 for stride in strides)) and shape[-1] > LANES:
        return Refusal(
            SHAPE,
            f"the last dimension of the reference has {shape[-1]} elements, not {LANES}",
            f"make the reference {LANES} lanes wide",
        )
    return None
