"""Writing StableHLO as arithmetic: `x * x + 1.0` emits the ops before the one being expanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ComplexType, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind, PrimitiveType
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.dialects.stablehlo.attributes import ComparisonDirectionAttr, ComparisonTypeAttr
from mlirhlo.dialects.stablehlo.elements import dense


class Value:
    """A value with operators; the other operand may be a number."""

    __slots__ = ("emitter", "ssa")

    def __init__(self, emitter: Emitter, ssa: SSAValue) -> None:
        self.emitter, self.ssa = emitter, ssa

    @property
    def type(self) -> TensorType[Attribute]:
        """Its tensor type."""
        return cast("TensorType[Attribute]", self.ssa.type)

    @property
    def element_type(self) -> PrimitiveType:
        """Its element type."""
        return BY_MLIR[self.type.element_type]

    def _binary(self, name: str, other: Operand, *, swapped: bool = False) -> Value:
        right = self.emitter.like(other, self)
        pair = (right, self) if swapped else (self, right)
        return self.emitter.op(name, pair, self.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("add", other)

    def __radd__(self, other: Operand) -> Value:
        return self._binary("add", other, swapped=True)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("subtract", other)

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("subtract", other, swapped=True)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("multiply", other)

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("multiply", other, swapped=True)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("divide", other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self._binary("divide", other, swapped=True)

    def __mod__(self, other: Operand) -> Value:
        return self._binary("remainder", other)

    def __pow__(self, other: Operand) -> Value:
        return self._binary("power", other)

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", other)

    def __neg__(self) -> Value:
        return self.emitter.op("negate", (self,), self.type)

    def __invert__(self) -> Value:
        return self.emitter.op("not", (self,), self.type)

    def __getattr__(self, name: str) -> Callable[[], Value]:
        """`x.log()`: a unary op of that name with the same type."""
        if name.startswith("_") or "stablehlo." + name not in OP_CLASSES:
            raise AttributeError(name)
        return lambda: self.emitter.op(name, (self,), self.type)

    def real(self) -> Value:
        """Real part."""
        return self.emitter.op("real", (self,), self.emitter.part_type(self.type))

    def imag(self) -> Value:
        """Imaginary part."""
        return self.emitter.op("imag", (self,), self.emitter.part_type(self.type))

    def is_finite(self) -> Value:
        """Whether neither infinite nor NaN."""
        return self.emitter.op("is_finite", (self,), with_element(self.type, i1))

    def atan2(self, other: Operand) -> Value:
        """Angle of the point (other, self)."""
        return self._binary("atan2", other)

    def maximum(self, other: Operand) -> Value:
        """Greater one."""
        return self._binary("maximum", other)

    def minimum(self, other: Operand) -> Value:
        """Lesser one."""
        return self._binary("minimum", other)

    def compare(self, direction: str, other: Operand) -> Value:
        """Comparison, by the kind of the element type."""
        return self.emitter.compare(direction, self, self.emitter.like(other, self))

    def select(self, yes: Operand, no: Operand) -> Value:
        """`yes` where this predicate holds, else `no`; one of them is a value."""
        model = yes if isinstance(yes, Value) else no
        assert isinstance(model, Value)
        parts = (self, self.emitter.like(yes, model), self.emitter.like(no, model))
        return self.emitter.op("select", parts, model.type)

    def convert(self, element_type: Attribute) -> Value:
        """In another element type."""
        if self.type.element_type == element_type:
            return self
        return self.emitter.op("convert", (self,), with_element(self.type, element_type))

    def bitcast(self, element_type: Attribute) -> Value:
        """The same bits as another element type."""
        return self.emitter.op("bitcast_convert", (self,), with_element(self.type, element_type))


_COMPARISONS: Mapping[Kind, str] = {
    Kind.PRED: "UNSIGNED",
    Kind.UNSIGNED: "UNSIGNED",
    Kind.SIGNED: "SIGNED",
    Kind.FLOAT: "FLOAT",
    Kind.COMPLEX: "FLOAT",
}

Operand: TypeAlias = "Value | float | int"


def with_element(type_: TensorType[Attribute], element_type: Attribute) -> TensorType[Attribute]:
    """The same shape with another element type."""
    return TensorType(element_type, type_.get_shape(), type_.encoding)


class Emitter:
    """Puts ops before `at`, with its location."""

    __slots__ = ("at",)

    def __init__(self, at: Operation) -> None:
        self.at = at

    def value(self, ssa: SSAValue) -> Value:
        """An SSA value with operators."""
        return Value(self, ssa)

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
    ) -> Value:
        """Emits an op with one result."""
        made = OP_CLASSES["stablehlo." + name].create(
            operands=[v.ssa for v in operands], result_types=[type_], properties=properties or {}
        )
        made.location = self.at.location
        block = self.at.parent
        assert block is not None
        block.insert_op_before(made, self.at)
        return Value(self, made.results[0])

    def constant(self, value: float | int | complex | bool, type_: TensorType[Attribute]) -> Value:
        """A tensor whose elements all are `value`."""
        import numpy as np

        element_type = BY_MLIR[type_.element_type]
        array = np.full((), value, dtype=element_type.dtype)
        return self.op("constant", (), type_, {"value": dense(array, type_)})

    def like(self, value: Operand, model: Value) -> Value:
        """`value` as a tensor of the type of `model`."""
        return value if isinstance(value, Value) else self.constant(value, model.type)

    def compare(self, direction: str, lhs: Value, rhs: Value) -> Value:
        """`compare` with its type."""
        kind = _COMPARISONS[lhs.element_type.kind]
        properties: dict[str, Attribute] = {
            "comparison_direction": ComparisonDirectionAttr(direction),
            "compare_type": ComparisonTypeAttr(kind),
        }
        return self.op("compare", (lhs, rhs), with_element(lhs.type, i1), properties)

    def complex(self, real: Operand, imag: Operand) -> Value:
        """A complex number of its parts; one of them is a value."""
        model = real if isinstance(real, Value) else imag
        assert isinstance(model, Value)
        type_ = with_element(model.type, ComplexType(cast(Any, model.type.element_type)))
        return self.op("complex", (self.like(real, model), self.like(imag, model)), type_)

    @staticmethod
    def part_type(type_: TensorType[Attribute]) -> TensorType[Attribute]:
        """Type of the parts of a complex tensor; a real tensor's own."""
        element = type_.element_type
        if isinstance(element, ComplexType):
            return with_element(type_, cast("ComplexType[Any]", element).element_type)
        return type_


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule, highest power first."""
    result: Value | float = coefficients[0]
    for coefficient in coefficients[1:]:
        result = x * result if not isinstance(result, Value) else result * x
        result = result + coefficient
    assert isinstance(result, Value)
    return result


def chebyshev(x: Value, coefficients: Sequence[float]) -> Value:
    """A Chebyshev series by Clenshaw's recurrence, as Cephes' `chbevl`: highest term first."""
    b0: Operand = 0.0
    b1: Operand = 0.0
    b2: Operand = 0.0
    for coefficient in coefficients:
        b2, b1 = b1, b0
        term = x * b1
        b0 = (term - b2 if isinstance(b2, Value) else term) + coefficient
    assert isinstance(b0, Value)
    return (b0 - b2) * 0.5
