"""Small things every stage does: make operations, replace them, change types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    VectorType,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.quick import create_op
from mlirhlo.dialects.tpu.attributes import MemorySpaceAttr, TiledLayoutAttr
from mlirhlo.dialects.tpu.op_classes import class_of
from mlirhlo.dialects.tpu.values import TiledLayout
from mlirhlo.formats.mosaic.reader import default_of, settle
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.tiling import is_memref

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def build(
    name: str,
    operands: Sequence[SSAValue] = (),
    types: Sequence[Attribute] = (),
    attributes: Mapping[str, Attribute] | None = None,
    like: Operation | None = None,
) -> Operation:
    """A detached operation with its defaults; it takes the place and the value names of `like`."""
    cls = class_of(name)
    assert cls is not None, name
    op = create_op(cls, operands, types, {}, attributes=dict(attributes or {}))
    settle(op)
    source: Any = getattr(like, "text_source", None)
    if source is not None:
        op.text_source = source  # type: ignore[attr-defined]
    if like is not None and like.results and op.results:
        op.results[0].name_hint = like.results[0].name_hint
    return op


def attribute(text: str) -> Attribute:
    """The attribute that `text` spells."""
    return default_of(text)


def insert(op: Operation, before: Operation) -> Operation:
    """Puts a detached operation before another one."""
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(op, before)
    return op


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Uses `values` for the results of an operation, and takes it away."""
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)


def functions_of(module: ModuleOp) -> list[Operation]:
    """The functions of a module that have a body."""
    return [op for op in module.body.ops if name_of(op) == "func.func" and op.regions[0].blocks]


def retype(value: SSAValue, type_: Attribute) -> SSAValue:
    """The value with another type, its name kept."""
    if value.type == type_:
        return value
    hint = value.name_hint
    new = Rewriter.replace_value_with_new_type(value, type_)
    new.name_hint = hint
    return new


def retype_all(module: ModuleOp, change: Callable[[Attribute], Attribute]) -> None:
    """Changes the types of all values, and of functions with them."""
    for function in functions_of(module):
        for op in list(function.walk()):
            for at in range(len(op.results)):
                retype(op.results[at], change(op.results[at].type))
            for region in op.regions:
                for block in region.blocks:
                    for at in range(len(block.args)):
                        retype(block.args[at], change(block.args[at].type))
        settle_function_type(function)


def settle_function_type(function: Operation) -> None:
    """Makes the type of a function that of its arguments and of what it returns."""
    block = function.regions[0].blocks[0]
    last = block.last_op
    results = [operand.type for operand in last.operands] if last is not None else []
    type_ = FunctionType.from_lists([argument.type for argument in block.args], results)
    function.properties["function_type"] = type_


def with_layout(type_: Attribute, layout: TiledLayout | None) -> Attribute:
    """A memref type with another layout; without one for None."""
    memref = cast("MemRefType[Any]", type_)
    stated = NoneAttr() if layout is None else TiledLayoutAttr(layout)
    return MemRefType(memref.element_type, memref.shape, stated, memref.memory_space)


def with_shape(type_: Attribute, shape: Sequence[int]) -> Attribute:
    """A memref type with other sizes."""
    memref = cast("MemRefType[Any]", type_)
    return MemRefType(memref.element_type, shape, memref.layout, memref.memory_space)


def with_space(type_: Attribute, space: MemorySpaceAttr) -> Attribute:
    """A memref type in another memory."""
    memref = cast("MemRefType[Any]", type_)
    return MemRefType(memref.element_type, memref.shape, memref.layout, space)


def tiled_layout_of(type_: Attribute) -> TiledLayout | None:
    """The tiled layout of a memref type; None where it states none."""
    if not is_memref(type_):
        return None
    stated = cast("MemRefType[Any]", type_).layout
    return stated.data if isinstance(stated, TiledLayoutAttr) else None


def is_vector(type_: Attribute) -> bool:
    """Whether the type is a vector's."""
    return isinstance(type_, VectorType)


def vector_type(shape: Sequence[int], element: Attribute) -> Attribute:
    """A vector type."""
    return cast("Attribute", VectorType(element, tuple(shape)))


def element_of(type_: Attribute) -> Attribute:
    """The element type of a vector or memref; a scalar's own."""
    return cast("Attribute", getattr(type_, "element_type", type_))


def constant(value: int, type_: Attribute, like: Operation | None = None) -> Operation:
    """An integer constant."""
    return build(
        "arith.constant", (), (type_,), {"value": IntegerAttr(value, cast("Any", type_))}, like
    )


def array_of(attributes: Sequence[Attribute]) -> Attribute:
    """An array attribute."""
    return ArrayAttr(attributes)


def is_static(shape: Sequence[int]) -> bool:
    """Whether all sizes are known."""
    return all(size != DYNAMIC_INDEX for size in shape)


def i32_type() -> Attribute:
    """The type of ids and counters."""
    return i32
