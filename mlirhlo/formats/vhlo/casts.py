"""Operations of other dialects between those of VHLO: casts where values pass from one to the other.

VHLO has types of its own, so a value of it cannot be the operand of another dialect's operation. In
memory both have the same types and no casts are needed; they are made for writing.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.dialects.quick import put_operand


def insert_casts(module: ModuleOp, is_vhlo: Callable[[Operation], bool]) -> ModuleOp:
    """The module, or a copy of it with casts where operations of two kinds meet."""
    if not _meets(module, is_vhlo):
        return module
    copy = module.clone()
    for op in _operations(copy):
        if op is copy or isinstance(op, UnrealizedConversionCastOp):
            continue
        own = is_vhlo(op)
        casts: dict[SSAValue, SSAValue] = {}
        for index, value in enumerate(op.operands):
            if side_of(value, is_vhlo) is own or side_of(value, is_vhlo) is None:
                continue
            cast = casts.get(value)
            if cast is None:
                made = UnrealizedConversionCastOp.create(
                    operands=[value], result_types=[value.type], location=op.location
                )
                block = op.parent_block()
                assert block is not None
                block.insert_op_before(made, op)
                cast = casts[value] = made.results[0]
            put_operand(op, index, cast)
    return copy


def _meets(module: ModuleOp, is_vhlo: Callable[[Operation], bool]) -> bool:
    return any(
        op is not module
        and any(side_of(value, is_vhlo) not in (None, is_vhlo(op)) for value in op.operands)
        for op in _operations(module)
    )


def side_of(value: SSAValue, is_vhlo: Callable[[Operation], bool]) -> bool | None:
    """Whether a value is of VHLO; None for the results of casts, which are of either."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent is None or is_vhlo(parent)
    return None if isinstance(owner, UnrealizedConversionCastOp) else is_vhlo(owner)


def _operations(module: ModuleOp) -> list[Operation]:
    found: list[Operation] = []
    waiting: list[Operation] = [module]
    while waiting:
        op = waiting.pop()
        found.append(op)
        for region in op.regions:
            for block in region.blocks:
                waiting += block.ops
    return found
