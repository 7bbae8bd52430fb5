"""Loops of a few known steps are written out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import constant, functions_of, insert, replace
from mlirhlo.mosaic.target.divisible import constant_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation, SSAValue

MOST_STEPS = 4
"""Steps up to which a loop is written out."""
MOST_OPERATIONS = 64
"""Operations of a body up to which it is repeated."""


def late_loop_unroll(module: ModuleOp) -> None:
    """Innermost `scf.for` loops of at most `MOST_STEPS` known steps become their steps."""
    for function in functions_of(module):
        for op in list(function.walk(reverse=True)):
            if name_of(op) == "scf.for" and op.parent is not None:
                _unroll(op)


def _unroll(loop: Operation) -> None:
    bounds = [constant_of(operand) for operand in loop.operands[:3]]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None or step <= 0:
        return
    block = loop.regions[0].blocks[0]
    body = [op for op in block.ops if op is not block.last_op]
    count = len(range(lower, upper, step))
    if not 0 < count <= MOST_STEPS or len(body) > MOST_OPERATIONS:
        return
    if any(op.regions for op in body):
        return
    carried: list[SSAValue] = list(loop.operands[3:])
    last = block.last_op
    assert last is not None
    for at in range(lower, upper, step):
        variable = insert(constant(at, block.args[0].type), loop).results[0]
        known: dict[SSAValue, SSAValue] = dict(zip(block.args, (variable, *carried), strict=True))
        for op in body:
            insert(op.clone(known), loop)
        carried = [known.get(value, value) for value in last.operands]
    replace(loop, carried)
