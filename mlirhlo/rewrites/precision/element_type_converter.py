"""`element-type-converter`: arithmetic of one element type in another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import make, wait_for
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.rewrites.algsimp.common import own_properties, typed
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter

_KEPT = opcodes(lambda row: row.handles_whole) | {"convert", "bitcast-convert"}
"""Opcodes that hand values on, or whose types somebody else has chosen."""


@dataclass(frozen=True)
class ElementTypeConverterPass(HloPass):
    """Computes in another element type what has one that a target cannot compute in.

    Before and after:

        %s = bf16[4] add(%x, %y)
          =>   %s = bf16[4] convert(f32[4] add(f32[4] convert(%x), f32[4] convert(%y)))

    Parameters, constants and custom calls keep their types. Of reductions, loops, fusions and whatever else calls a
    computation it is the computation that changes. Source: XLA's pass of this name, whose types are fixed where it is
    asked for by name.
    """

    name = "element-type-converter"
    exact: ClassVar[bool] = False

    eliminate: str = "bf16"
    """Element type in which nothing is to be computed."""
    replace_with: str = "f32"
    """Element type that takes its place."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Converts; whether there was anything. Raises `HloError` HLO0402 for no element type."""
        for name in (self.eliminate, self.replace_with):
            if name not in PRIMITIVE_TYPES:
                raise error(
                    "HLO0402",
                    f"{self.name}: there is no element type {name!r}",
                    help=f"element types: {', '.join(PRIMITIVE_TYPES)}",
                )
        old, new = PRIMITIVE_TYPES[self.eliminate], PRIMITIVE_TYPES[self.replace_with]
        if old is new:
            return False
        count = 0
        for op in tuple(module.instructions):
            if op.opcode.name in _KEPT or op.called_computations or "-" in _async(op):
                continue
            if any(
                _is(shape, old) for shape in (*op.input_shapes, *([] if op.inputs else [op.shape]))
            ):
                _convert(op, old, new)
                count += 1
        trace.rule_counts[self.name, "element_type_converter"] += count
        return count > 0


def _async(op: Instruction) -> str:
    """The opcode of a part of an asynchronous pair; empty for others."""
    name = op.opcode.name
    return name if name.endswith(("-start", "-done", "-update")) else ""


def _is(shape: Shape, type_: PrimitiveType) -> bool:
    return isinstance(shape, ArrayShape) and shape.element_type is type_


def _changed(shape: Shape, old: PrimitiveType, new: PrimitiveType) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_changed(part, old, new) for part in shape.elements))
    return typed(shape, new) if isinstance(shape, ArrayShape) and _is(shape, old) else shape


def _convert(op: Instruction, old: PrimitiveType, new: PrimitiveType) -> None:
    made: list[Instruction] = []

    def converted(value: SSAValue | Instruction, shape: Shape) -> Instruction:
        made.append(make("convert", [value], shape))
        return made[-1]

    operands: list[SSAValue | Instruction] = []
    for value in op.inputs:
        shape = shape_of(value.type)
        is_old = _is(shape, old)
        operands.append(converted(value, _changed(shape, old, new)) if is_old else value)
    shape = _changed(op.shape, old, new)
    result = make(op.opcode.name, operands, shape, own_properties(op))
    wait_for(result, op.control_predecessors)
    made.append(result)
    if isinstance(shape, TupleShape) and isinstance(op.shape, TupleShape) and shape != op.shape:
        parts: list[Instruction] = []
        for number, (part, wanted) in enumerate(
            zip(shape.elements, op.shape.elements, strict=True)
        ):
            got = make("get-tuple-element", [result], part, {"index": integer(number)})
            made.append(got)
            parts.append(got if part == wanted else converted(got, wanted))
        made.append(make("tuple", parts, op.shape))
    elif shape != op.shape:
        converted(result, op.shape)
    for key in ("sharding", "frontend_attributes"):
        if key in op.properties:
            for each in (result, made[-1]):
                each.properties[key] = op.properties[key]
    Rewriter(op).replace(op, made)
