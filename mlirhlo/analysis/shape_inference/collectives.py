"""Shapes of collectives. Group sizes follow from the declared shape or the replica groups."""

from __future__ import annotations

from collections import Counter
from typing import cast

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    fits,
    infers,
    plain,
    plain_signature,
)
from mlirhlo.analysis.shape_inference.reducers import check_reducer
from mlirhlo.dialects.hlo.attributes.groups import ReplicaGroups
from mlirhlo.dialects.hlo.shapes import (
    UNBOUNDED,
    ArrayShape,
    Shape,
    TupleShape,
    array,
    compatible,
)


def group_size(given: Given) -> int | None:
    """Devices in each group; None when the groups do not say."""
    groups = given.value("replica_groups", ReplicaGroups)
    return None if groups is None else groups.group_size


def _packed(shapes: tuple[Shape, ...]) -> Shape:
    return shapes[0] if len(shapes) == 1 else TupleShape(shapes)


def _has_operands(given: Given, number: int) -> tuple[ArrayShape, ...]:
    if not given.operands:
        raise given.error(number, f"{given.opcode} needs at least one operand")
    return given.arrays(f"operand of {given.opcode}", number)


_OPERANDS = "there is at least one operand, and all are arrays"
_DIMENSION = "one dimension is named, and it is the operands'"


def _dimension(given: Given, operands: tuple[ArrayShape, ...], number: int) -> int:
    numbers = given.ints("dimensions")
    if len(numbers) != 1 or any(not 0 <= numbers[0] < x.rank for x in operands):
        raise given.error(
            number,
            f"{given.opcode} needs one dimension of {plain(operands[0])}; got {list(numbers)}",
            attribute="dimensions",
        )
    return numbers[0]


def _declared_parts(given: Given, result: Shape | None, count: int) -> tuple[Shape, ...] | None:
    """The declared results, one an operand, if their number fits."""
    if result is None:
        return None
    if count == 1 and not isinstance(result, TupleShape):
        return (result,)
    if isinstance(result, TupleShape) and len(result.elements) == count:
        return result.elements
    return None


def _scaled(
    given: Given, x: ArrayShape, dim: int, declared: Shape | None, number: int, *, grow: bool
) -> ArrayShape:
    """`x` with dimension `dim` multiplied (all-gather) or divided (reduce-scatter) by the group
    size, which the declared shape tells, or else the replica groups (constraint `number`)."""
    size = x.dimensions[dim]
    if isinstance(declared, ArrayShape) and declared.rank == x.rank:
        other = declared.dimensions[dim]
        big, small = (other, size) if grow else (size, other)
        if UNBOUNDED not in (big, small) and (big % small if small else big):
            raise given.error(
                number,
                f"dimension {dim} of {plain(x)} cannot become {other}: not a multiple",
                operand=0,
                attribute="dimensions",
            )
        size = other
    else:
        group = group_size(given)
        if group is None:
            raise given.error(
                number,
                "the size of the groups is not known, so the shape must be written",
                attribute="replica_groups",
            )
        if not grow and size != UNBOUNDED and size % group:
            raise given.error(
                number,
                f"dimension {dim} of {plain(x)} cannot be divided by {group} devices",
                attribute="dimensions",
            )
        if size != UNBOUNDED:
            size = size * group if grow else size // group
    sizes = (*x.dimensions[:dim], size, *x.dimensions[dim + 1 :])
    return array(x.element_type, sizes, x.dynamic)


@infers(
    "all-gather",
    c1=_OPERANDS,
    c2=_DIMENSION,
    c3="the gathered dimension is a multiple of the operand's",
)
def all_gather(given: Given) -> Shape:
    """The dimension times the group size."""
    return _packed(_gathered(given, given.shape))


def _gathered(given: Given, result: Shape | None) -> tuple[Shape, ...]:
    operands = _has_operands(given, 1)
    dim = _dimension(given, operands, 2)
    parts = _declared_parts(given, result, len(operands))
    return tuple(
        _scaled(given, x, dim, parts[i] if parts else None, 3, grow=True)
        for i, x in enumerate(operands)
    )


@infers(
    "all-gather-start",
    c1=_OPERANDS,
    c2=_DIMENSION,
    c3="the gathered dimension is a multiple of the operand's",
)
def all_gather_start(given: Given) -> Shape:
    """(operands, results), further elements as declared."""
    shape = given.shape
    result = (
        shape.elements[1] if isinstance(shape, TupleShape) and len(shape.elements) > 1 else None
    )
    return _pair(given, _packed(_gathered(given, result)))


def _pair(given: Given, result: Shape) -> Shape:
    shape = given.shape
    extra = shape.elements[2:] if isinstance(shape, TupleShape) else ()
    return TupleShape((_packed(given.operands), result, *extra))


_PAIR = "the operand is the tuple (operands, results, …) of its start"


@infers("all-gather-done", "collective-permute-done", c1=_PAIR)
def second_element(given: Given) -> Shape:
    """Element 1 of the operand."""
    shape = given.operands[0]
    if not isinstance(shape, TupleShape) or len(shape.elements) < 2:
        raise given.error(1, f"the operand is that of a start, not {plain(shape)}", operand=0)
    return shape.elements[1]


_REDUCER = (
    "to_apply takes two scalars of one element type and gives one, or a tuple for several operands"
)


def check_scalar_reducer(given: Given, operands: tuple[ArrayShape, ...], number: int) -> None:
    """to_apply folds two scalars. As XLA has it they may be of another element type than the
    operands', for it is the operation that counts. Raises constraint `number`."""
    callee = given.callee("to_apply")
    count = len(operands) if len(callee.parameters) == 2 * len(operands) else 1
    elements = callee.parameters[count : 2 * count]
    types = [e.element_type for e in elements if isinstance(e, ArrayShape)]
    if len(types) != count:
        raise given.error(
            number,
            f"Reduction function must take {2 * count} scalars; its signature is"
            f" {plain_signature(callee)}",
            attribute="to_apply",
        )
    check_reducer(given, callee, list(elements), types, number, "to_apply")


@infers("all-reduce", "all-reduce-start", c1=_OPERANDS, c2=_REDUCER)
def all_reduce(given: Given) -> Shape:
    """The operand's shape; a tuple for several."""
    operands = _has_operands(given, 1)
    check_scalar_reducer(given, operands, 2)
    return _packed(given.operands)


@infers("all-reduce-done")
def all_reduce_done(given: Given) -> Shape:
    """The operand's shape."""
    return given.operands[0]


@infers("collective-reduce", c1=_OPERANDS, c2=_REDUCER)
def collective_reduce(given: Given) -> Shape:
    """The operand's shape; a tuple for several."""
    operands = _reduced_operands(given)
    check_scalar_reducer(given, operands, 2)
    return _packed(tuple(operands))


def _reduced_operands(given: Given) -> tuple[ArrayShape, ...]:
    """Operands of a rooted collective; the last is the root when it is dynamic."""
    operands = _has_operands(given, 1)
    return operands[:-1] if given.bool("has_dynamic_root") and len(operands) > 1 else operands


@infers("collective-broadcast", c1=_OPERANDS)
def collective_broadcast(given: Given) -> Shape:
    """The operand's shape; a tuple for several."""
    return _packed(tuple(_reduced_operands(given)))


@infers(
    "reduce-scatter",
    c1=_OPERANDS,
    c2=_DIMENSION,
    c3="the scattered dimension is a multiple of the result's",
    c4=_REDUCER,
)
def reduce_scatter(given: Given) -> Shape:
    """The dimension divided by the group size."""
    operands = _has_operands(given, 1)
    dim = _dimension(given, operands, 2)
    parts = _declared_parts(given, given.shape, len(operands))
    check_scalar_reducer(given, operands, 4)
    return _packed(
        tuple(
            _scaled(given, x, dim, parts[i] if parts else None, 3, grow=False)
            for i, x in enumerate(operands)
        )
    )


@infers(
    "all-to-all",
    c1=_OPERANDS,
    c2="with dimensions there is one operand, and one dimension of it",
    c3="the split dimension is a multiple of the group size",
    c4="without dimensions all operands have one shape",
    c5="without dimensions there is one operand for each device of a group",
)
def all_to_all(given: Given) -> Shape:
    """The operand's shape; without dimensions a tuple of the operands'."""
    operands = _has_operands(given, 1)
    group = group_size(given)
    first = operands[0]
    if "dimensions" in given.properties:
        if len(operands) != 1:  # all-to-all_c2
            raise given.error(
                2,
                f"with dimensions there is one operand, not {len(operands)}",
                attribute="dimensions",
            )
        dim = _dimension(given, operands, 2)
        size = first.dimensions[dim]
        if group and size != UNBOUNDED and size % group:  # all-to-all_c3
            raise given.error(
                3,
                f"AllToAll dimension {dim} of {plain(first)} cannot be split among {group} devices",
                attribute="dimensions",
            )
        return first
    for index, x in enumerate(operands[1:], 1):
        if not compatible(first, x):  # all-to-all_c4
            raise given.error(
                4,
                f"All-to-all has operands with different shapes: {plain(first)} and {plain(x)}",
                operand=index,
            )
    if group is not None and len(operands) != group:  # all-to-all_c5
        raise given.error(
            5,
            f"{len(operands)} operands for groups of {group} devices",
            attribute="replica_groups",
        )
    if len(operands) == 1 and not isinstance(given.shape, TupleShape):
        return first
    return TupleShape(given.operands)


# ---------------------------------------------------------------- collective-permute

_PERMUTE = {
    "c1": "there is at least one operand; with slice_sizes there are four",
    "c2": "no device is a source, or a target, more often than there are slices of a buffer, else once",
    "c3": "in place, input and output are arrays, or tuples of as many",
    "c4": "in place, each buffer has start indices: a tuple of one a dimension, or a tuple of such",
}


@infers("collective-permute", **_PERMUTE)
def collective_permute(given: Given) -> Shape:
    """The operand's shape; a tuple for several; in place the shape of operand 1."""
    if not given.operands:  # c1
        raise given.error(1, f"{given.opcode} needs at least one operand")
    if "slice_sizes" not in given.properties:
        _check_pairs(given, 1)
        return _packed(given.operands)
    if len(given.operands) != 4:  # c1
        raise given.error(
            1,
            "with slice_sizes the operands are input, output and their start indices; got"
            f" {len(given.operands)}",
            attribute="slice_sizes",
        )
    _check_pairs(given, _slice_count(given))
    return given.operands[1]


def _slice_count(given: Given) -> int:
    """How many slices of the first buffer go to other devices; raises c3, c4."""
    source, target = given.operands[:2]
    if isinstance(source, TupleShape) != isinstance(target, TupleShape):  # c3
        raise given.error(3, f"Unmatching input buffers and output buffers: {source} and {target}")
    counts: list[int] = []
    for what, index in (("input", 0), ("output", 1)):
        buffers, starts = given.operands[index], given.operands[2 + index]
        if not isinstance(buffers, TupleShape):
            counts.append(_starts_of(given, buffers, starts, 2 + index))
            continue
        if not isinstance(starts, TupleShape) or len(starts.elements) != len(buffers.elements):
            raise given.error(  # c4
                4, f"Unmatching {what} buffers and {what} offset.", operand=2 + index
            )
        pairs = zip(buffers.elements, starts.elements, strict=True)
        counts += [_starts_of(given, buffer, of_it, 2 + index) for buffer, of_it in pairs]
    if isinstance(source, TupleShape) and isinstance(target, TupleShape):  # c3
        if len(source.elements) != len(target.elements):
            raise given.error(
                3, f"Unmatching input buffers and output buffers: {source} and {target}"
            )
    return counts[0] if counts else 1


def _starts_of(given: Given, buffer: Shape, starts: Shape, operand: int) -> int:
    """How many slices the start indices of a buffer are of; raises c4."""
    if not isinstance(buffer, ArrayShape) or not isinstance(starts, TupleShape):  # c4
        raise given.error(4, "Buffer offset is not tuple.", operand=operand)
    nested = [one for one in starts.elements if isinstance(one, TupleShape)]
    if nested and len(nested) != len(starts.elements):  # c4
        raise given.error(
            4,
            "Buffer offset should either be a tuple of arrays or a tuple of tuples.",
            operand=operand,
        )
    if any(len(one.elements) != buffer.rank for one in nested or [starts]):  # c4
        raise given.error(
            4,
            "Buffer offset index should have the same number of elements as the buffer's rank:"
            f" {starts} of {plain(buffer)}",
            operand=operand,
        )
    return len(nested) or 1


@infers("collective-permute-start", **_PERMUTE)
def collective_permute_start(given: Given) -> Shape:
    """(operands, results), further elements as declared."""
    result = collective_permute(given)
    if "slice_sizes" not in given.properties:
        return _pair(given, result)
    shape = given.shape
    extra = shape.elements[2:] if isinstance(shape, TupleShape) else ()
    return TupleShape((given.operands[0], result, *extra))


def _check_pairs(given: Given, most: int) -> None:
    pairs = cast(
        "tuple[tuple[int, ...], ...]", given.value("source_target_pairs", tuple[object, ...]) or ()
    )
    seen: Counter[tuple[str, int]] = Counter()
    for pair in pairs:
        if len(pair) != 2:
            raise given.error(
                2,
                f"expects 2 elements in each of source_target_pairs, but got {list(pair)}",
                attribute="source_target_pairs",
            )
        for what, device in (("Source", pair[0]), ("Target", pair[1])):
            seen[what, device] += 1
            if seen[what, device] > most:  # c2
                times = "once" if most == 1 else f"{most} times"
                raise given.error(
                    2,
                    f"{what} {device} appears more than {times} in instruction's source-target pairs",
                    attribute="source_target_pairs",
                )


@infers(
    "ragged-all-to-all",
    c1="there are six operands, all arrays",
    c2="input and output have one element type, and the same sizes but for dimension 0",
    c3="the four offsets and sizes are integer arrays of one shape",
)
def ragged_all_to_all(given: Given) -> Shape:
    """The output operand's shape."""
    if len(given.operands) != 6:  # ragged-all-to-all_c1
        raise given.error(1, f"RaggedAllToAll must have 6 operands; got {len(given.operands)}")
    operands = given.arrays("operand of ragged-all-to-all")
    x, out = operands[:2]
    if (
        x.element_type is not out.element_type
        or x.rank != out.rank
        or not all(map(fits, x.dimensions[1:], out.dimensions[1:]))
    ):
        raise given.error(  # ragged-all-to-all_c2
            2,
            f"input {plain(x)} and output {plain(out)} may differ in dimension 0 only",
            operand=1,
        )
    for index, shape in enumerate(operands[2:], 2):
        if not shape.element_type.is_integer or shape.dimensions != operands[2].dimensions:
            raise given.error(  # ragged-all-to-all_c3
                3,
                f"offsets and sizes are integer arrays of one shape; got {plain(shape)} and"
                f" {plain(operands[2])}",
                operand=index,
            )
    return out


@infers("partition-id", "replica-id")
def device_id(given: Given) -> Shape:
    """`u32[]`."""
    return array("u32")


_GLOBAL_IDS = "use_global_device_ids needs a channel_id"
_GLOBAL_IDS_NUMBER = {"all-gather": 4, "all-gather-start": 4, "reduce-scatter": 5}


@checks("all-gather", "all-gather-start", c4=_GLOBAL_IDS)
@checks("reduce-scatter", c5=_GLOBAL_IDS)
@checks("all-reduce", "all-reduce-start", "collective-reduce", c3=_GLOBAL_IDS)
def check_group_mode(given: Given) -> None:
    """Which devices the groups name."""
    if given.bool("use_global_device_ids") and "channel_id" not in given.properties:
        raise given.error(
            _GLOBAL_IDS_NUMBER.get(given.opcode, 3),
            "use_global_device_ids=true needs a channel_id",
            attribute="use_global_device_ids",
        )
