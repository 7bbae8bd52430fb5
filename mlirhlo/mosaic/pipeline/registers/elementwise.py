"""Constants, operations that go element by element, and casts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import f32, i32

from mlirhlo.dialects.tpu.attributes import PackFormatAttr
from mlirhlo.importing import LATE
from mlirhlo.mosaic.attributes import attribute_of, name_of
from mlirhlo.mosaic.pipeline.building import attribute, element_of, is_vector
from mlirhlo.mosaic.pipeline.constants import splat
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.registers.moving import (
    parts_of,
    relaid,
    rows_of,
    table_of,
    undefined,
    used_parts,
)
from mlirhlo.mosaic.pipeline.registers.state import (
    Part,
    Registers,
    grid_of,
    is_float,
    layout_in,
    layout_out,
    packing_of,
    register_type,
    typed,
)
from mlirhlo.mosaic.target.tiling import shape_in

with LATE:
    from mlirhlo.mosaic.pipeline.registers import state as registers_state


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.ir import Attribute, Operation, SSAValue

    from mlirhlo.dialects.tpu.values import VectorLayout


def constant(op: Operation, state: Registers) -> Sequence[Sequence[SSAValue]]:
    """One register, for all of a vector of one value."""
    type_, layout = op.results[0].type, layout_out(op)
    register = register_type(layout, type_)
    value = splat(attribute_of(op, "value"), register)
    if value is None:
        raise cannot(
            op,
            "a vector constant of several values",
            "compute it from tpu.iota, or pass it as an operand",
        )
    made = state.emit("arith.constant", (), register, {"value": value})
    return [[made] * grid_of(layout, type_, op).count]


def attributes_of(op: Operation) -> Mapping[str, Attribute]:
    """All attributes but the layouts."""
    kept = {k: v for k, v in op.attributes.items() if k not in ("in_layout", "out_layout")}
    return {**op.properties, **kept}


def elementwise(op: Operation, state: Registers) -> Sequence[Sequence[SSAValue]]:
    """The same operation on each register; vectors of other layouts are moved first."""
    layout = layout_out(op)
    count = grid_of(layout, op.results[0].type, op).count
    operands: list[Sequence[SSAValue]] = []
    for at, value in enumerate(op.operands):
        if is_vector(value.type):
            registers, have = state.operand(at)
            operands.append(relaid(state, Part(registers, have, value.type), layout))
        else:
            operands.append([value] * count)
    type_, attributes = register_type(layout, op.results[0].type), attributes_of(op)
    name = name_of(op)
    return [[state.emit(name, parts, type_, attributes) for parts in zip(*operands, strict=True)]]


def bitcast(op: Operation, state: Registers) -> Sequence[Sequence[SSAValue]]:
    """Rows packed in wider elements are the same words, where both are whole registers."""
    source, result = op.operands[0], op.results[0]
    registers, _ = state.operand(0)
    layout = layout_out(op)
    if grid_of(layout, result.type, op).count != len(registers):
        raise cannot(op, f"{source.type} is not the words of {result.type}")
    type_ = register_type(layout, result.type)
    return [[state.emit("tpu.bitcast_vreg", (one,), type_) for one in registers]]


def cast(op: Operation, state: Registers) -> Sequence[Sequence[SSAValue]]:
    """Numbers of other widths: packed rows become words, are computed with, and are packed again."""
    source, result = op.operands[0].type, op.results[0].type
    before, after = layout_in(op, 0), layout_out(op)
    registers, _ = state.operand(0)
    if before == after:
        return elementwise(op, state)
    part = Part(registers, before, source)
    return [converted(state, part, op, result, after)]


def converted(
    state: Registers, part: Part, op: Operation, result: Attribute, after: VectorLayout
) -> list[SSAValue]:
    """The registers of a cast; of a plain change of width where `op` is none."""
    size = int(np.prod(shape_in(part.type), dtype=int))
    old = packing_of(part.layout)
    table = rows_of(table_of(state, [part], np.arange(size), result, after), old)
    wide = element_of(part.type)
    signed = name_of(op) not in ("arith.extui", "tpu.uitofp", "arith.uitofp")
    inner = f32 if is_float(part.type) else i32
    outer = f32 if is_float(result) else i32
    words: list[SSAValue | None] = [None] * (len(part.registers) * old)
    wanted = (at for one in table for rows in one for at in used_parts(rows))
    for at in dict.fromkeys(wanted):
        register = part.registers[at // old]
        if old == 1:
            words[at] = register
            if str(wide) == "i1":
                words[at] = state.emit("arith.extui", (register,), typed(i32, 1))
        else:
            words[at] = widened(state, register, at % old, signed=signed)
        if inner != outer:
            made = words[at]
            assert made is not None
            to_words = "tpu.sitofp" if outer == f32 and signed else name_of(op)
            words[at] = state.emit(to_words, (made,), typed(outer, 1), attributes_of(op))
    made_parts = parts_of(state, words, table, typed(outer, 1))
    return [narrowed(state, parts, register_type(after, result)) for parts in made_parts]


def widened(state: Registers, register: SSAValue, part: int, *, signed: bool = True) -> SSAValue:
    """Part `part` of the rows of a packed register as f32, or i32."""
    wide = f32 if is_float(register.type) else i32
    if str(element_of(register.type)) == "i1":
        packing = shape_in(register.type)[2]

        register = state.emit(
            "arith.extui", (register,), typed(registers_state.integer_type(32 // packing), packing)
        )
        signed = False
    attributes: dict[str, Attribute] = {
        "index": attribute(f"{part} : i32"),
        "pack_format": PackFormatAttr("compressed"),
    }
    if not signed:
        attributes["integer_extended"] = attribute("false")
    return state.emit("tpu.unpack_subelements", (register,), typed(wide, 1), attributes)


def narrowed(state: Registers, parts: Sequence[SSAValue | None], type_: Attribute) -> SSAValue:
    """The register whose rows are words made narrow."""
    given = [(at, part) for at, part in enumerate(parts) if part is not None]
    if not given:
        return undefined(state, type_)
    if len(parts) == 1:
        return given[0][1]
    return state.emit(
        "tpu.pack_subelements",
        [part for _, part in given],
        type_,
        {
            "pack_format": PackFormatAttr("compressed"),
            "positions": attribute(f"array<i32: {', '.join(str(at) for at, _ in given)}>"),
        },
    )
