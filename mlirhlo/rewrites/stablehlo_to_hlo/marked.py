"""Ops that the conversion from HLO has marked with the instruction they were.

The form of marks is told in `hlo_to_stablehlo/marks.py`. Marked ops become that instruction again,
with its attributes; layouts come from `xla_shape`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TupleShape,
    compatible,
    parse_shape,
)
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.rewrites.hlo_to_stablehlo.marks import (
    MARK,
    OPCODE,
    OPERANDS,
    SHAPE,
    SHAPE_ATTRIBUTE,
    TARGET_PREFIX,
)
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import symbol_name, text
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, Handler, calls, joined_shape
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

_PARTS = frozenset({"get-tuple-element", "tuple"})


def marked_opcode(op: Operation) -> str | None:
    """The opcode that `op` stands for, when it is marked with one."""
    if op.name == "stablehlo.custom_call":
        target = text(op, "call_target_name")
        if target.startswith(TARGET_PREFIX):
            return target.removeprefix(TARGET_PREFIX)
    found = op.attributes.get(MARK)
    if isinstance(found, DictionaryAttr):
        opcode = found.data.get(OPCODE)
        return opcode.data if isinstance(opcode, StringAttr) else None
    return None


def marked_handler(op: Operation) -> Handler | None:
    """The handler of a marked op; None for others."""
    return None if marked_opcode(op) is None else _instruction


def _mark_of(op: Operation) -> Mapping[str, Attribute]:
    found = op.attributes.get(MARK)
    if found is None and op.name == "stablehlo.custom_call":
        found = op.properties.get("backend_config")
    return found.data if isinstance(found, DictionaryAttr) else {}


def _shape(op: Operation, spelled: str) -> Shape:
    try:
        return parse_shape(spelled)
    except SyntaxProblem as found:
        raise problem("HLO0426", op, f"{spelled!r} is not an HLO shape: {found.message}") from None


def _properties(op: Operation, opcode: str, mark: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The attributes that a mark spells. Raises `HloError` HLO0426."""
    found: dict[str, Attribute] = {}
    specs = OPCODES[opcode].specs
    for key, value in mark.items():
        if key in (OPCODE, OPERANDS, SHAPE):
            continue
        spec = specs.get(key)
        if spec is None or spec.kind.names_computations or not isinstance(value, StringAttr):
            raise problem("HLO0426", op, f"its mark has no attribute {key!r} of {opcode}")
        try:
            found[spec.property_name] = parse_all(value.data, spec.kind.read)
        except SyntaxProblem as wrong:
            raise problem(
                "HLO0426", op, f"its mark's {key} = {value.data!r}: {wrong.message}"
            ) from None
    return found


def _instruction(op: Operation, body: Body) -> Sequence[SSAValue]:
    """The instruction that a marked op was."""
    opcode = marked_opcode(op)
    if opcode is None or opcode not in OPCODES:
        raise problem("HLO0426", op, f"it is marked as {opcode!r}, which is no opcode")
    mark = _mark_of(op)
    properties = {**_properties(op, opcode, mark), **_computations(op, opcode, body)}
    operands = _operands(op, body, mark)
    shape = _result_shape(op, mark)
    if opcode == "add-dependency":
        value = body.emit(opcode, operands, shape_of(operands[0].type), properties)
        return (value, *operands[1:])
    if opcode == "constant":
        properties["literal"] = LiteralAttr(Literal.elided(shape))
    value = body.emit(opcode, operands, shape, properties)
    results = _leaves(value, shape, body) if isinstance(shape, TupleShape) else [value]
    if len(results) != len(op.results):
        raise problem("HLO0426", op, f"its mark's shape {shape} has {len(results)} leaves")
    return results


def _leaves(value: SSAValue, shape: Shape, body: Body) -> list[SSAValue]:
    if not isinstance(shape, TupleShape):
        return [value]
    found: list[SSAValue] = []
    for index, element in enumerate(shape.elements):
        found += _leaves(body.element(value, index), element, body)
    return found


def _result_shape(op: Operation, mark: Mapping[str, Attribute]) -> Shape:
    for spelled in (mark.get(SHAPE), op.attributes.get(SHAPE_ATTRIBUTE)):
        if isinstance(spelled, StringAttr):
            return _shape(op, spelled.data)
    return joined_shape(op)


def _computations(op: Operation, opcode: str, body: Body) -> dict[str, Attribute]:
    """The computations that the instruction calls."""
    keys = OP_CLASSES[opcode].calling_keys
    named: list[Attribute] = []
    if op.name == "func.call":
        named = [op.properties["callee"]]
    else:
        listed = op.properties.get("called_computations")
        if isinstance(listed, ArrayAttr):
            named = list(cast("ArrayAttr[Attribute]", listed).data)
    if not named:
        return {}
    if len(keys) != len(named):
        raise problem("HLO0426", op, f"{opcode} does not call {len(named)} computations")
    base, common = body.base, body.common
    found = [_computation(symbol_name(one), opcode, op, body) for one in named]
    body.base, body.common = base, common
    return {key: calls(one) for key, one in zip(keys, found, strict=True)}


def _computation(name: str, opcode: str, op: Operation, body: Body) -> ComputationOp:
    """The computation of a function; a fusion has one of its own."""
    exporter = body.exporter
    if opcode == "fusion" and name in exporter.functions:
        if name in exporter.fused:
            return exporter.fresh(exporter.functions[name])
        exporter.fused.add(name)
    return exporter.function(name, op)


def _operands(op: Operation, body: Body, mark: Mapping[str, Attribute]) -> list[SSAValue]:
    """The operands, with the tuples and in the layouts that the mark says."""
    values = body.inputs(op)
    spelled = mark.get(OPERANDS)
    if not isinstance(spelled, ArrayAttr):
        return values
    rest = iter(values)
    base, common = body.base, body.common
    body.base, body.common = None, {}

    def build(shape: Shape) -> SSAValue:
        if isinstance(shape, TupleShape):
            return body.tuple([build(element) for element in shape.elements])
        value = next(rest, None)
        if value is None:
            raise problem(
                "HLO0426", op, "its mark's operands have more leaves than it has operands"
            )
        given = shape_of(value.type)
        if isinstance(given, ArrayShape) and given != shape and compatible(given, shape):
            return body.emit("copy", (value,), shape)
        return value

    shapes = [_shape(op, one.data) for one in cast("ArrayAttr[StringAttr]", spelled).data]
    found = [build(shape) for shape in shapes]
    body.base, body.common = base, common
    return found


def restore(op: Operation, body: Body, first: int, results: Sequence[SSAValue]) -> None:
    """Gives what `op` has become (instructions from `first` on) its layout and the attributes that
    StableHLO lacks. Raises `HloError` HLO0426."""
    spelled = op.attributes.get(SHAPE_ATTRIBUTE)
    made = body.ops[first:]
    if isinstance(spelled, StringAttr) and len(results) == 1:
        shape, (value,) = _shape(op, spelled.data), results
        if made and made[-1].results[0] is value and _differs(shape, shape_of(value.type)):
            _retype(value, type_of(shape))
    mark = op.attributes.get(MARK)
    if isinstance(mark, DictionaryAttr) and OPCODE not in mark.data:
        for one in reversed(made):
            if one.opcode.name not in _PARTS:
                one.properties.update(_properties(op, one.opcode.name, mark.data))
                break


def _retype(value: SSAValue, type_: Attribute) -> None:
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def _differs(a: Shape, b: Shape) -> bool:
    return a != b and compatible(a, b)
