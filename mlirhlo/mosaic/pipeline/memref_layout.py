"""Layouts of references: arguments and allocations get tiles, the body works on erased ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import BlockArgument

from mlirhlo.dialects.tpu.values import LANES, TiledLayout
from mlirhlo.mosaic.attributes import attribute_of, name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    functions_of,
    insert,
    is_static,
    retype,
    settle_function_type,
    tiled_layout_of,
    with_layout,
)
from mlirhlo.mosaic.pipeline.memory_spaces import mark_arguments
from mlirhlo.mosaic.target.tiling import (
    dense_strides,
    element_name,
    is_memref,
    is_semaphore,
    layout_for,
    shape_in,
    space_of,
    width_in_bits,
)
from mlirhlo.mosaic.target.views import is_one_tile_wide, rows_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation, SSAValue

_ALLOCATIONS = ("memref.alloca", "memref.alloc", "tpu.sem_alloc", "tpu.internal_scratch")


def infer_memref_layout(module: ModuleOp) -> None:
    """Tiles for arguments and allocations; one tile wide 32-bit arrays are seen as rows.

    Before: `%x: memref<16x128xf32>`. After: `%x: memref<16x128xf32, #tpu.tiled<(8,128),[1,1]>>`, a
    `tpu.reinterpret_cast` to `(1,128)`, and a `tpu.erase_memref_layout` that the body uses.
    """
    for function in functions_of(module):
        block = function.regions[0].blocks[0]
        _mark_whole(function)
        first = block.first_op
        assert first is not None
        for at in range(len(block.args)):
            argument = block.args[at]
            layout = inferred_layout(argument.type)
            if layout is not None:
                _lay_out(retype(argument, with_layout(argument.type, layout)), first)
        for op in list(function.walk()):
            if name_of(op) in _ALLOCATIONS and op.results:
                layout = inferred_layout(op.results[0].type)
                after = op.next_op
                if layout is not None and is_one_tile_wide(op.results[0].type):
                    # What is made here is made of rows.
                    layout = rows_of(op.results[0].type, is_argument=False)
                if layout is not None and after is not None:
                    _lay_out(retype(op.results[0], with_layout(op.results[0].type, layout)), after)
        settle_function_type(function)


def inferred_layout(type_: Attribute) -> TiledLayout | None:
    """The layout of a memref that states none; None for other types and open sizes."""
    if not is_memref(type_) or tiled_layout_of(type_) is not None:
        return None
    shape = shape_in(type_)
    if not is_static(shape):
        return None
    if is_semaphore(type_):
        return TiledLayout((), dense_strides(shape, ()))
    bits = width_in_bits(element_name(type_))
    if space_of(type_) == "smem" and not shape:
        return TiledLayout((), ())
    if space_of(type_) == "smem" and len(shape) == 1:
        return TiledLayout(((LANES,),), dense_strides(shape, ((LANES,),)))
    return layout_for(shape, bits)


def _mark_whole(function: Operation) -> None:
    """Marks references that no grid moves, as they are not in a core's own memory."""
    if attribute_of(function, "tpu.main") is None:
        return
    arguments = function.regions[0].blocks[0].args
    found = [
        at
        for at, a in enumerate(arguments)
        if is_memref(a.type) and (is_semaphore(a.type) or space_of(a.type) == "hbm")
    ]
    mark_arguments(function, found, "llo.passthrough_operand")


def _lay_out(value: SSAValue, before: Operation) -> None:
    """The body uses a reference without layout, made from `value`."""
    users = list(value.uses)
    layout = tiled_layout_of(value.type)
    assert layout is not None
    plain = with_layout(value.type, None)
    base = value
    if is_one_tile_wide(value.type) and isinstance(value, BlockArgument):
        cast_type = with_layout(value.type, rows_of(value.type, is_argument=True))
        cast_op = build("tpu.reinterpret_cast", (value,), (cast_type,), _segments("1, 0, 0"))
        base = insert(cast_op, before).results[0]
    erased = insert(build("tpu.erase_memref_layout", (base,), (plain,)), before).results[0]
    for use in users:
        use.operation.operands[use.index] = erased


def _segments(text: str) -> dict[str, Attribute]:
    return {"operandSegmentSizes": attribute(f"array<i32: {text}>")}
