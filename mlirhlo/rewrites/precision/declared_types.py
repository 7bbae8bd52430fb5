"""`declared-types`: converts stand where XLA:TPU has folded them into other instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import SSAValue

from mlirhlo.analysis.shape_inference import ConstraintError, infer
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.header import ProgramLayout
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule, Listing, holder
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import ConvertOp, GetTupleElementOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import operands_of, replace
from mlirhlo.interp.mixed_types import INFERS_TYPE
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

_TOGETHER = ("batch-norm-", "triangular-solve")
"""How opcodes of `INFERS_TYPE` begin whose operands have to be of one type."""


@dataclass(frozen=True)
class DeclaredTypesPass(HloPass):
    """Makes instructions work in one element type, with converts before and after.

    Before:  `%s = bf16[8] select(%p, f32[8] %x, bf16[8] %y)`
    After:   `%c = f32[8] convert(%y)   %s.1 = f32[8] select(%p, %x, %c)   %s = bf16[8] convert(%s.1)`

    The work is done in the operands' type, of several the widest; a sort, say, works in the types that shape
    inference gives. Keeps: results, bit for bit.
    Source: modules that XLA:TPU has optimised.
    """

    name = "declared-types"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Splits such instructions; whether there were any."""
        del trace
        names: NameUniquer | None = None
        changed = False
        for op in _of_several_types(module):
            data = _data_operands(op)
            if not _infers(op) and (not data or _fits(op, data)):
                continue
            callees = _callees(op, module)
            if _infers(op) and _is_as_inferred(op, data, callees):
                continue
            if names is None:
                names = NameUniquer(
                    n for other in module.instructions if (n := other.instruction_name)
                )
            holder(op).properties.pop("storage_order", None)
            _split(op, data, names, callees)
            changed = True
        return changed


def _of_several_types(module: HloModule) -> list[Instruction]:
    """Instructions whose operands and result are not all arrays of one element type."""
    names: dict[int, str] = {}
    for type_ in module.known(HloModule.result_types):
        element = _element(shape_of(type_))
        names[id(type_)] = "" if element is None else element.name
    found: list[Instruction] = []
    for op in module.known(Listing.of).instructions:
        if operands := operands_of(op):
            there = {names[id(value.type)] for value in (*operands, *op.results)}
            if len(there) > 1 or "" in there:
                found.append(op)
    return found


def _data_operands(op: Instruction) -> Sequence[int]:
    """Numbers of the operands that hold what the result holds; none where types may differ."""
    row, count = op.opcode, len(op.inputs)
    if row.gives_real and (element := _element(op.input_shapes[0])) and element.is_complex:
        return ()  # its result is real
    if row.name == "compare" or row.name.startswith(_TOGETHER):
        return range(count)
    return row.data_operands(count)


def _element(shape: Shape) -> PrimitiveType | None:
    return shape.element_type if isinstance(shape, ArrayShape) else None


def _parts(shape: Shape) -> Sequence[Shape]:
    return shape.elements if isinstance(shape, TupleShape) else (shape,)


def _infers(op: Instruction) -> bool:
    return op.opcode.name in INFERS_TYPE


def _callees(op: Instruction, module: HloModule) -> Mapping[str, ProgramLayout]:
    """Signatures of what an instruction calls."""
    if not op.called_computations:
        return {}
    found = module.by_name()
    return {
        name: ProgramLayout(tuple(p.shape for p in found[name].parameters), found[name].root.shape)
        for name in op.called_computations
    }


def _inferred(
    op: Instruction, operands: Sequence[Shape], callees: Mapping[str, ProgramLayout]
) -> list[PrimitiveType | None]:
    """Element types of the parts of the result, of such operands."""
    shape = infer(op.opcode.name, operands, op.properties, callees)
    return [_element(part) for part in _parts(shape)]


def _is_as_inferred(
    op: Instruction, data: Sequence[int], callees: Mapping[str, ProgramLayout]
) -> bool:
    shapes = op.input_shapes
    try:
        wanted = _inferred(op, shapes, callees)
    except ConstraintError:
        return True  # nothing is known of what no verifier lets pass
    of_operands = {_element(shapes[n]) for n in data}
    return len(of_operands) <= 1 and wanted == [_element(part) for part in _parts(op.shape)]


def _groups(op: Instruction, data: Sequence[int]) -> list[list[int]]:
    """Operands that have to be of one type: of several arrays, those of each."""
    arrays = len(_parts(op.shape))
    if arrays == 1 or _infers(op):
        return [list(data)]
    return [list(data[n::arrays]) for n in range(arrays)]


def _fits(op: Instruction, data: Sequence[int]) -> bool:
    shapes = op.input_shapes
    part = op.shape
    if isinstance(part, ArrayShape):
        element = part.element_type
        if all(type(s := shapes[n]) is ArrayShape and s.element_type is element for n in data):
            return True
    for group, part in zip(_groups(op, data), _parts(op.shape), strict=True):
        types = {_element(shapes[n]) for n in group}
        if op.opcode.name != "compare":
            types.add(_element(part))
        if len(types) > 1 and None not in types:
            return False
    return True


def _widest(types: Sequence[PrimitiveType]) -> PrimitiveType:
    order = (Kind.PRED, Kind.SIGNED, Kind.UNSIGNED)
    return max(types, key=lambda t: (t.kind not in order, t.kind is not Kind.PRED, t.bits))


def _split(
    op: Instruction,
    data: Sequence[int],
    names: NameUniquer,
    callees: Mapping[str, ProgramLayout],
) -> None:
    block = op.parent
    assert block is not None
    shapes = op.input_shapes
    operands = list(op.operands)
    work: list[PrimitiveType | None] = []
    for group in _groups(op, data):
        known = [t for n in group if (t := _element(shapes[n])) is not None]
        if not known:
            continue
        wide = _widest(known) if op.opcode.elementwise or _infers(op) else known[0]
        for n in group:
            shape = shapes[n]
            if isinstance(shape, ArrayShape) and shape.element_type is not wide:
                convert = _convert(operands[n], shape, wide, names.unique("convert"))
                inherit(convert, op)
                block.insert_op_before(convert, op)
                operands[n] = convert.output
        work.append(wide)
    name = op.instruction_name
    if op.opcode.name == "compare":
        work = [_element(op.shape)]
    if _infers(op):
        work = _inferred(op, [shape_of(value.type) for value in operands], callees)
    made = [_with_type(s, t) for s, t in zip(_parts(op.shape), work, strict=True)]
    is_tuple = isinstance(op.shape, TupleShape)
    shape = TupleShape(tuple(made)) if is_tuple else made[0]
    if shape == op.shape:
        copy = create(type(op), operands, type_of(op.shape), dict(op.properties), name)
        inherit(copy, op)
        block.insert_op_before(copy, op)
        replace(op.output, copy.output)
        block.erase_op(op)
        return
    inner = create(
        type(op), operands, type_of(shape), dict(op.properties), names.unique(name or "typed")
    )
    inherit(inner, op)
    block.insert_op_before(inner, op)
    result = _as_declared(inner, op, made, names) if is_tuple else _last(inner, op, name)
    replace(op.output, result)
    block.erase_op(op)


def _last(inner: Instruction, op: Instruction, name: str | None) -> SSAValue:
    shape = cast(ArrayShape, op.shape)
    convert = create(ConvertOp, [inner.output], type_of(shape), {}, name)
    inherit(convert, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(convert, op)
    return convert.output


def _as_declared(
    inner: Instruction, op: Instruction, made: Sequence[Shape], names: NameUniquer
) -> SSAValue:
    """The parts of a tuple, those converted that have to be."""
    block = op.parent
    assert block is not None
    parts: list[SSAValue] = []
    for number, (have, want) in enumerate(zip(made, _parts(op.shape), strict=True)):
        part: Instruction = create(
            GetTupleElementOp,
            [inner.output],
            type_of(have),
            {"index": integer(number)},
            names.unique("part"),
        )
        block.insert_op_before(part, op)
        if have != want:
            part = create(ConvertOp, [part.output], type_of(want), {}, names.unique("convert"))
            block.insert_op_before(part, op)
        parts.append(part.output)
    whole = create(TupleOp, parts, type_of(op.shape), {}, op.instruction_name)
    inherit(whole, op)
    block.insert_op_before(whole, op)
    return whole.output


def _with_type(shape: Shape, element: PrimitiveType | None) -> Shape:
    if not isinstance(shape, ArrayShape) or element is None:
        return shape
    return ArrayShape(element, shape.dimensions, shape.dynamic, shape.layout)


def _convert(value: SSAValue, shape: ArrayShape, element: PrimitiveType, name: str) -> Instruction:
    layout = cast(ArrayShape, shape_of(value.type)).layout
    made = ArrayShape(element, shape.dimensions, shape.dynamic, layout)
    return create(ConvertOp, [value], type_of(made), {}, name)
