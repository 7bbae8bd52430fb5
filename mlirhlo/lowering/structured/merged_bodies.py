"""Bodies put together from those of several maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.element_types import S32, S64, PrimitiveType
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import IndexOp, YieldOp, identity_map
from mlirhlo.dialects.structured.index_maps import value_range
from mlirhlo.lowering.structured.bodies import Body, element_of, scalar_type

_OPCODES = {
    AffineBinaryOpKind.Add: "add",
    AffineBinaryOpKind.Mul: "multiply",
    AffineBinaryOpKind.FloorDiv: "divide",
    AffineBinaryOpKind.Mod: "remainder",
}
"""Of numbers that are not negative."""
_MAX_SPLAT = 1 << 16
"""Elements of a constant that are compared with each other."""


def splat_of(op: ConstantOp) -> Literal | None:
    """The scalar that all elements of a constant are; None where they differ."""
    literal = op.literal
    if literal is None or literal.is_elided:
        return None
    array = literal.array
    if array.size == 0 or array.size > _MAX_SPLAT:
        return None
    flat = array.reshape(-1)
    if array.size > 1 and flat.tobytes() != flat[:1].tobytes() * flat.size:
        return None
    return Literal.from_array(shape_of(scalar_type(element_of(op.output))), flat[0].reshape(()))


class MergedBody(Body):
    """A body whose arguments are added as elements are read."""

    def __init__(self, space: Sequence[int]) -> None:
        super().__init__([])
        self._space = tuple(space)
        self._arguments: dict[tuple[SSAValue, AffineMap], SSAValue] = {}
        self.computed: dict[tuple[SSAValue, AffineMap], SSAValue] = {}
        """Elements of values that are computed here, by the map from the iteration space to theirs."""
        self._constants: dict[Literal, SSAValue] = {}
        self._numbers: dict[AffineExpr, SSAValue] = {}

    def read(self, value: SSAValue, map_: AffineMap) -> SSAValue:
        """The element of a tensor at mapped indices: an argument."""
        key = (value, map_)
        found = self._arguments.get(key)
        if found is None:
            type_ = scalar_type(element_of(value))
            found = self._arguments[key] = self.block.insert_arg(type_, len(self.block.args))
        return found

    def reads(self) -> tuple[list[SSAValue], list[AffineMap]]:
        """Tensors and maps of the arguments."""
        return [value for value, _ in self._arguments], [map_ for _, map_ in self._arguments]

    def constant_of(self, op: ConstantOp) -> SSAValue:
        """The scalar that a constant holds everywhere."""
        literal = splat_of(op)
        assert literal is not None
        found = self._constants.get(literal)
        if found is None:
            found = self._constants[literal] = self.literal(literal)
        return found

    def inlined(
        self, block: Block, given: Sequence[SSAValue], map_: AffineMap
    ) -> tuple[SSAValue, ...]:
        """What a body yields at the index that `map_` gives; its instructions are copied."""
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, given, strict=True))
        is_here = map_.results == identity_map(len(self._space)).results
        for op in block.ops:
            if isinstance(op, YieldOp):
                return tuple(values[v] for v in op.operands)
            if isinstance(op, IndexOp):
                element = S64 if op.result.type == TensorType(i64, []) else S32
                if is_here:
                    values[op.result] = self.index(op.dimension, wide=element is S64)
                else:
                    number = self._number(map_.results[op.dimension])
                    values[op.result] = self.convert(number, element)
                continue
            new = build.create(
                cast("type[Instruction]", type(op)),
                [values[v] for v in op.operands],
                op.results[0].type,
                dict(op.properties),
            )
            build.append(self.block, new)
            values[op.results[0]] = new.output
        raise AssertionError("a body ends in structured.yield")

    def _number(self, expr: AffineExpr) -> SSAValue:
        """An index as a scalar."""
        low, high = value_range(expr, self._space)
        is_wide = max(-low, high, *self._space) >= 1 << 30
        return self._computed_index(expr, S64 if is_wide else S32)

    def _computed_index(self, expr: AffineExpr, element: PrimitiveType) -> SSAValue:
        found = self._numbers.get(expr)
        if found is not None and element_of(found) is element:
            return found
        match expr:
            case AffineDimExpr():
                found = self.convert(self.index(expr.position, wide=element is S64), element)
            case AffineConstantExpr():
                found = self.constant(element, expr.value)
            case _:
                binary = cast(AffineBinaryOpExpr, expr)
                parts = [self._computed_index(part, element) for part in (binary.lhs, binary.rhs)]
                found = self.emit(_OPCODES[binary.kind], parts, element)
        self._numbers[expr] = found
        return found
