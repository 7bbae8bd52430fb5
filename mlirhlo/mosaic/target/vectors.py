"""Operations that move elements of vectors: iota, gathers, rotations, reshapes."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.attributes import attribute_of, integer_of, integers_of, name_of
from mlirhlo.mosaic.target.rules import ELEMENTS, SHAPE, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import element_name, shape_in, width_in_bits

if TYPE_CHECKING:
    from xdsl.ir import Block


@refuses("tpu.iota")
def iota_counts_in_integers(op: Operation, question: Question) -> Refusal | None:
    """i32 everywhere; i16 along rows of several registers from generation 6 on."""
    type_ = op.results[0].type
    element, shape = element_name(type_), shape_in(type_)
    bits = width_in_bits(element)
    if element not in ("i32", "i16", "i8"):
        return Refusal(ELEMENTS, f"it counts in i32, not {element}", "make an i32 iota and cast it")
    if len(shape) < 2:
        return Refusal(SHAPE, "a vector of rank 1 has no iota", "make it of rank 2 and reshape it")
    along_rows = any(dim < len(shape) - 1 for dim in integers_of(op, "dimensions") or ())
    several = len(shape) > 1 and shape[-2] > SUBLANES * 2
    if bits == 16 and along_rows and several and question.generation.number < 6:
        return Refusal(
            ELEMENTS,
            "it counts rows in i16 with an addition of i16, which this generation has not",
            "make an i32 iota and cast it",
        )
    return None


@refuses("tpu.dynamic_gather")
def gathers_stay_in_registers(op: Operation, question: Question) -> Refusal | None:
    """A gather picks within one register along its dimension."""
    source, indices = op.operands[0].type, op.operands[1].type
    shape, bits = shape_in(source), width_in_bits(element_name(source))
    dims = integers_of(op, "dimensions") or ()
    if len(dims) == 1 and shape[dims[0]] == 1:
        return None  # There is one element to pick.
    if bits not in (32, 16, 8):
        return Refusal(ELEMENTS, f"{element_name(source)} is not gathered", "cast it before")
    if width_in_bits(element_name(indices)) != bits:
        return Refusal(
            ELEMENTS,
            f"indices of {element_name(indices)} pick elements of {bits} bits",
            f"cast the indices to i{bits}",
        )
    if len(dims) != 1 or len(shape) < 2 or dims[0] < len(shape) - 2:
        return Refusal(
            SHAPE, "it gathers along one of the last two dimensions", "transpose the vector before"
        )
    lanes = dims[0] == len(shape) - 1
    most = LANES if lanes else SUBLANES * (32 // bits)
    if shape[dims[0]] > most:
        return Refusal(
            SHAPE,
            f"dimension {dims[0]} has {shape[dims[0]]} elements, and a register {most}",
            f"gather pieces of {most} and select among them",
        )
    if lanes and bits == 16 and not question.generation.permutes_packed:
        return Refusal(ELEMENTS, "lanes of 16-bit elements are not picked", "cast to 32 bits")
    if not lanes and not question.generation.permutes_sublanes:
        return Refusal(SHAPE, "rows of a register are not picked by indices", "gather lanes")
    if not lanes and bits < 32 and not question.generation.permutes_packed:
        return Refusal(ELEMENTS, "rows of packed elements are not picked", "cast to 32 bits")
    return None


@refuses("tpu.dynamic_rotate")
def rotations_with_strides(op: Operation, question: Question) -> Refusal | None:
    """Rows rotate by different amounts from generation 5 on, matrices always."""
    if attribute_of(op, "stride") is None:
        return None
    element, shape = element_name(op.operands[0].type), shape_in(op.operands[0].type)
    bits, rank = width_in_bits(element), len(shape)
    dim, along = integer_of(op, "dimension"), integer_of(op, "stride_dimension")
    if shape[dim] == 1:
        return None  # There is nothing to rotate.
    if along == rank - 1:
        return Refusal(SHAPE, "lanes do not rotate by different amounts", "transpose before")
    tile = {rank - 1: LANES, rank - 2: SUBLANES * (32 // bits)}.get(dim, 1)
    if shape[dim] % tile:
        return Refusal(
            SHAPE,
            f"with a stride it rotates whole registers, and {shape[dim]} is no multiple of {tile}",
            f"pad dimension {dim} to a multiple of {tile}",
        )
    if along < rank - 2:
        return None
    if dim != rank - 1:
        return Refusal(SHAPE, "by rows it rotates the last dimension", "transpose before")
    if not question.generation.rotates_by_rows:
        return Refusal(SHAPE, "rows do not rotate by different amounts", "rotate row by row")
    if bits < 8 or (bits < 16 and question.generation.number < 6):
        return Refusal(ELEMENTS, f"rows of {element} rotate by one amount", "cast to 32 bits")
    return None


@refuses("tpu.stochastic_convert", "tpu.stochastic_convert_elementwise")
def random_rounding(op: Operation, question: Question) -> Refusal | None:
    """Stochastic rounding came with generation 5."""
    if question.generation.number >= 5:
        return None
    return Refusal(
        ELEMENTS,
        "random rounding is not there before generation 5",
        "add the random bits below the kept ones, mask, and truncate",
    )


def _shapes_of_chain(op: Operation) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes before and after, as of one reshape where several follow each other: the compiler makes
    one of them. Of one that only others use, there is nothing left."""
    after = shape_in(op.results[0].type)
    users = [use.operation for use in op.results[0].uses]
    if users and all(name_of(user) == name_of(op) for user in users):
        return after, after
    source = op.operands[0]
    while isinstance(source.owner, Operation) and name_of(source.owner) == name_of(op):
        source = source.owner.operands[0]
    return shape_in(source.type), after


@refuses("vector.shape_cast", "tpu.reshape")
def columns_become_rows(op: Operation, question: Question) -> Refusal | None:
    """Columns spread along lanes pick rows of a register, which generation 4 cannot."""
    if question.generation.permutes_sublanes:
        return None
    before, after = _shapes_of_chain(op)
    is_column = len(before) >= 2 and before[-1:] == (1,) and before[-2:-1] != (1,)
    if is_column and after[-1:] not in ((), (1,)):
        return Refusal(SHAPE, "a column does not become a row", "keep the dimension of size one")
    return None


@refuses("vector.shape_cast", "tpu.reshape")
def lanes_are_cut_evenly(op: Operation, question: Question) -> Refusal | None:
    """The last dimension changes by whole registers, or by a factor within one; rows are laid end to end,
    and from generation 5 on cut again."""
    before, after = _shapes_of_chain(op)
    if not before or not after or before[-1] == after[-1] or before[-1] == 1:
        return None
    most, least = max(before[-1], after[-1]), min(before[-1], after[-1])
    if most % LANES == least % LANES == 0:
        return None
    if after[-1] == 1:
        return _lanes_become_rows(op, question, before, after)
    if most <= LANES and most % least == 0:
        return None
    if _is_folded(before, after) or (question.generation.number >= 5 and _is_folded(after, before)):
        return None
    return Refusal(
        SHAPE,
        f"the last dimension changes from {before[-1]} to {after[-1]}, which is neither by registers "
        f"of {LANES} lanes nor by a factor within one",
        f"pad it to a multiple of {LANES}, keep the last dimension, or have one more in front",
    )


def _is_folded(many: tuple[int, ...], one: tuple[int, ...]) -> bool:
    """Whether the last dimension of `one` is several of `many`, and both have others in front."""
    sizes = (prod(many[-count:]) for count in range(2, len(many)))
    return len(one) > 1 and one[-1] in sizes


def _lanes_become_rows(
    op: Operation, question: Question, before: tuple[int, ...], after: tuple[int, ...]
) -> Refusal | None:
    """Lanes become rows of one lane: narrow ones of several registers from generation 6 on."""
    lanes, bits = before[-1], width_in_bits(element_name(op.operands[0].type))
    rows = next((size for size in reversed(after) if size != 1), 1)
    if lanes % LANES and lanes != rows:
        return Refusal(
            SHAPE,
            f"rows of {lanes} lanes do not become one column",
            f"pad them to a multiple of {LANES}, or keep a dimension of {lanes} rows",
        )
    if bits == 32 or lanes <= LANES or (bits >= 8 and question.generation.number >= 6):
        return None
    return Refusal(
        SHAPE, f"lanes of {bits}-bit elements do not become rows", "cast to 32 bits before"
    )


@refuses("tpu.pack_elementwise", "tpu.unpack_elementwise")
def words_are_packed(op: Operation, question: Question) -> Refusal | None:
    """bf16 in f32 words, integers in integer words; generation 4 does not unpack bf16."""
    narrow = str(attribute_of(op, "target_type") or attribute_of(op, "source_type"))
    if narrow == "f16":
        return Refusal(ELEMENTS, "f16 is not packed", "use bf16")
    if (
        name_of(op) == "tpu.unpack_elementwise"
        and narrow == "bf16"
        and question.generation.number < 5
    ):
        return Refusal(
            ELEMENTS, "bf16 is not unpacked from words", "shift the word, and bitcast it"
        )
    return None


@refuses("vector.load", "tpu.vector_load", "vector.store", "tpu.vector_store")
def rows_of_narrow_elements(op: Operation, question: Question) -> Refusal | None:
    """Rank one vectors of narrow elements that end within a register need masks by element."""
    type_ = op.results[0].type if op.results else op.operands[0].type
    whole = shape_in(op.operands[0 if op.results else 1].type)
    shape, bits = shape_in(type_), width_in_bits(element_name(type_))
    if len(shape) != 1 or bits >= 16 or shape[0] % (LANES * (32 // bits)) == 0:
        return None
    if whole == shape and (op.results or (bits == 8 and _is_load(op.operands[0].owner))):
        return None
    if bits == 8 and question.generation.number >= 5:
        return None
    return Refusal(
        SHAPE,
        f"{shape[0]} elements of {bits} bits end within a register",
        f"make it of rank 2, or a multiple of {LANES * (32 // bits)} long",
    )


def _is_load(owner: Operation | Block) -> bool:
    return isinstance(owner, Operation) and name_of(owner) in ("vector.load", "tpu.vector_load")


@refuses("vector.extract")
def scalars_are_words(op: Operation, question: Question) -> Refusal | None:
    """A scalar that leaves a vector has 32 bits."""
    result = op.results[0].type
    if shape_in(result) or width_in_bits(element_name(result)) == 32:
        return None
    return Refusal(
        ELEMENTS,
        f"a scalar of {element_name(result)} does not leave a vector",
        "cast the vector to 32 bits before",
    )
