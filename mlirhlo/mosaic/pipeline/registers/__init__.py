"""Vectors become registers: each operation works on values of 8x128 words.

`apply_vector_layout` goes through a function in order. Every operation on vectors has a rule that gives
the registers of its results; `tpu.matmul` and `tpu.transpose` alone keep working on vectors, as
wide as a matrix unit, put together by `tpu.roll_vectors` and taken apart by `tpu.unroll_vectors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.rewriter import Rewriter

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import functions_of, is_vector, replace
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.layouts import CASTS, layouts_of
from mlirhlo.mosaic.pipeline.registers import (
    counts,
    elementwise,
    memory,
    products,
    reductions,
    regions,
    shapes,
    turns,
)
from mlirhlo.mosaic.pipeline.registers.others import OTHERS
from mlirhlo.mosaic.pipeline.registers.state import Registers, Rule, layout_out
from mlirhlo.mosaic.pipeline.vector_rules import is_elementwise
from mlirhlo.mosaic.target.check import refuse
from mlirhlo.mosaic.target.memory import strides_are_of_rows
from mlirhlo.mosaic.target.vectors import gathers_stay_in_registers

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from mlirhlo.mosaic.target.generations import Generation

_RULES: dict[str, Rule] = {
    "arith.constant": elementwise.constant,
    **dict.fromkeys(CASTS, elementwise.cast),
    "tpu.bitcast": elementwise.bitcast,
    "mosaic_tc.relayout": shapes.relayout,
    "tpu.assume_layout": shapes.assume_layout,
    "tpu.reshape": shapes.same,
    "vector.shape_cast": shapes.same,
    "vector.broadcast": shapes.broadcast,
    "vector.extract": shapes.extract,
    "vector.extract_strided_slice": shapes.extract_strided_slice,
    "tpu.concatenate": shapes.concatenate,
    "tpu.repeat": shapes.repeat,
    "tpu.transpose": shapes.transpose,
    "tpu.gather": shapes.gather,
    "tpu.iota": counts.iota,
    "tpu.dynamic_rotate": turns.rotate,
    "tpu.rotate": turns.rotate,
    "tpu.dynamic_gather": turns.gather,
    "tpu.reduce": reductions.reduce,
    "tpu.reduce_index": reductions.reduce_index,
    "tpu.vector_load": memory.load,
    "tpu.vector_store": memory.store,
    "tpu.strided_load": memory.strided,
    "tpu.strided_store": memory.strided,
    "tpu.matmul": products.matmul,
    **OTHERS,
}
_ENDS = ("scf.yield", "scf.condition", "tpu.yield")
_AS_THEY_ARE = ("tpu.roll_vectors", "tpu.unroll_vectors")
_MADE = (*_AS_THEY_ARE, "tpu.transpose")
"""Operations on whole vectors that say how these lie."""


def apply_vector_layout(module: ModuleOp, generation: Generation) -> None:
    """Unrolls vectors to registers; the layouts stated on operations go.

    Raises `HloError` HLO0741 and HLO0748 for strides and gathers that registers cannot do, HLO0753 for
    what has no form on registers.
    """
    for function in functions_of(module):
        state = Registers(generation.mxu)
        for op in list(function.walk()):
            if op is not function:
                refuse(op, strides_are_of_rows, gathers_stay_in_registers)
                _apply(op, state)
        for op in function.walk():
            is_end = name_of(op) in _ENDS and regions.has_vectors(op.operands)
            if not op.regions and not is_end and name_of(op) not in _MADE:
                _forget(op)


def _forget(op: Operation) -> None:
    """Takes the layouts away; the compiler leaves those of no operands, and so do we."""
    for name in ("in_layout", "out_layout"):
        if layouts_of(op, name):
            del op.attributes[name]


def _apply(op: Operation, state: Registers) -> None:
    """Replaces one operation by operations on registers."""
    state.op = op
    name = name_of(op)
    if op.regions:
        regions.with_regions(op, state)
        return
    if name in _ENDS:
        regions.end(op, state)
        return
    if name in _AS_THEY_ARE or not regions.has_vectors((*op.operands, *op.results)):
        return
    rule = _RULES.get(name)
    if rule is None and is_elementwise(op):
        rule = elementwise.elementwise
    if rule is None:
        raise cannot(op, "it has no form on vector registers")
    made = rule(op, state)
    if not op.results:
        Rewriter.erase_op(op)
        return
    values = [
        state.rolled(registers, result.type, layout_out(op, at))
        if is_vector(result.type)
        else registers[0]
        for at, (result, registers) in enumerate(zip(op.results, made, strict=True))
    ]
    replace(op, values)
