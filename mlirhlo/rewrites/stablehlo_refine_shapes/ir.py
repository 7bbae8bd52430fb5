"""Reading and changing StableHLO ops: constants, types, replacement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, NoneAttr, StringAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects import quick
from mlirhlo.dialects.chlo import OP_CLASSES as CHLO_CLASSES
from mlirhlo.dialects.quick import create_op, put_operand
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.dialects.stablehlo.attributes import TypeExtensions, TypeExtensionsAttr
from mlirhlo.dialects.stablehlo.elements import array_of, dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ELEMENTS = 1024
"""Larger constants are data and no shapes; they are not computed with."""

_CLASSES = {**OP_CLASSES, **CHLO_CLASSES}


def sizes_of(type_: Attribute) -> tuple[int, ...] | None:
    """Sizes of a tensor type, `DYNAMIC_INDEX` for unknown ones; None for other types."""
    return type_.get_shape() if isinstance(type_, TensorType) else None


def element_type_of(type_: Attribute) -> Attribute:
    """Element type of a tensor type."""
    return cast("TensorType[Attribute]", type_).element_type


def is_static(type_: Attribute) -> bool:
    """Whether a type has no unknown size."""
    return DYNAMIC_INDEX not in (sizes_of(type_) or ())


def is_integer(type_: Attribute) -> bool:
    """Whether a type is a tensor of integers or truth values."""
    return sizes_of(type_) is not None and isinstance(element_type_of(type_), IntegerType)


def array_of_value(value: SSAValue) -> NDArray[Any] | None:
    """The elements of a value that is a small constant of integers; None for others."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant":
        return None
    sizes = sizes_of(value.type)
    if sizes is None or not is_integer(value.type):
        return None
    count = 1
    for size in sizes:
        count *= size
    if count > MOST_ELEMENTS:
        return None

    return array_of(owner.properties["value"])


def ints_of_value(value: SSAValue) -> tuple[int, ...] | None:
    """The elements of a constant as numbers; None where the value is not known."""
    found = array_of_value(value)
    return None if found is None else tuple(int(v) for v in found.reshape(-1))


def refined(declared: Attribute, known: Attribute) -> Attribute:
    """`declared` with the sizes that `known` has and it has not."""
    own, other = sizes_of(declared), sizes_of(known)
    if own is None or other is None or len(own) != len(other):
        return declared
    if own == other or DYNAMIC_INDEX not in own:
        return declared
    sizes = [b if a == DYNAMIC_INDEX else a for a, b in zip(own, other, strict=True)]
    made: TensorType[Attribute] = TensorType(
        element_type_of(declared), sizes, _bounds(declared, sizes)
    )
    return made


def _bounds(type_: Attribute, sizes: Sequence[int]) -> Attribute:
    """The encoding of `type_`, without bounds of sizes that are known now."""
    encoding = cast("TensorType[Attribute]", type_).encoding
    if not isinstance(encoding, TypeExtensionsAttr):
        return encoding
    bounds = tuple(
        bound if size == DYNAMIC_INDEX else None
        for bound, size in zip(encoding.data.bounds, sizes, strict=True)
    )
    if all(bound is None for bound in bounds):
        return NoneAttr()
    return TypeExtensionsAttr(TypeExtensions(bounds))


def set_type(value: SSAValue, type_: Attribute) -> bool:
    """Gives a value another type; whether it had another."""
    if value.type == type_:
        return False
    value._type = type_  # pyright: ignore[reportPrivateUsage]
    return True


def new_op(
    name: str,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    properties: Mapping[str, Attribute],
    before: Operation,
) -> Operation:
    """A new op in front of `before`, at its place."""
    op = create_op(_CLASSES[name], operands, types, dict(properties))
    op.location = before.location
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(op, before)
    return op


def constant_before(array: NDArray[Any], type_: Attribute, before: Operation) -> SSAValue:
    """A new constant in front of `before`."""
    properties = {"value": dense(array, type_)}
    return new_op("stablehlo.constant", (), (type_,), properties, before).results[0]


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Puts `values` in the place of the results of `op`, and takes it away."""
    for result, value in zip(op.results, values, strict=True):
        quick.replace(result, value)
    block = op.parent_block()
    assert block is not None
    block.erase_op(op)


WRAPPER = "stablehlo.shape_refinement_operand_wrapper"
"""Target of custom calls that hand on an operand under a type of fewer known sizes."""


def wrap_argument(block: Block, index: int, type_: Attribute) -> None:
    """Lets all readers of an argument see it under `type_`, its former type."""
    import numpy as np

    argument, first = block.args[index], block.first_op
    sizes = sizes_of(argument.type)
    assert first is not None
    assert sizes is not None
    uses = list(argument.uses)
    shape: TensorType[Attribute] = TensorType(i64, [len(sizes)])
    one: TensorType[Attribute] = TensorType(i64, [1])
    known = constant_before(np.array(sizes, np.int64), shape, first)
    properties = {"call_target_name": StringAttr(WRAPPER)}
    call = new_op("stablehlo.custom_call", (argument, known), (type_,), properties, first)
    call.attributes["indices_of_shape_operands"] = dense(np.array([1], np.int64), one)
    for use in uses:
        put_operand(use.operation, use.index, call.results[0])
