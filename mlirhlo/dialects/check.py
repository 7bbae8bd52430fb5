"""The `check` and `interpreter` dialects: tests written into StableHLO programs.

A check compares a value with another one, or with a constant; `interpreter.run_parallel` runs functions
on a grid of devices. Neither computes anything a program could use, but for what `run_parallel` returns.
Source: the dialects of the same names in StableHLO's reference interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
)
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.stablehlo.elements import DenseAttr

CHECKS = ("expect_eq", "expect_eq_const", "expect_almost_eq", "expect_almost_eq_const",
          "expect_close", "expect_serialized_eq", "eq", "almost_eq")  # fmt: skip
"""Names of all checks, the two of old programs last."""

_UI64 = IntegerType(64, Signedness.UNSIGNED)


class _TwoValues(IRDLOperation):
    """`check.expect_eq %actual, %expected : tensor<2xf32>`."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    actual = operand_def(T)
    expected = operand_def(T)

    assembly_format = "$actual `,` $expected attr-dict `:` type($actual)"


@irdl_op_definition
class ExpectEqOp(_TwoValues):
    """Equal, of floats bit by bit but that NaNs are equal."""

    name = "check.expect_eq"


def _read_tolerance(parser: Parser, properties: dict[str, Attribute]) -> dict[str, Attribute]:
    """Reads `, tolerance = 0.1` and the attributes, among which it may be too; returns the others."""
    if parser.parse_optional_punctuation(",") is not None:
        parser.parse_keyword("tolerance")
        parser.parse_punctuation("=")
        properties["tolerance"] = FloatAttr(float(parser.parse_number()), Float64Type())
    attributes = parser.parse_optional_attr_dict()
    if "tolerance" in attributes:
        properties["tolerance"] = attributes.pop("tolerance")
    return attributes


def _print_tolerance(
    printer: Printer, tolerance: Attribute | None, attributes: Mapping[str, Attribute]
) -> None:
    """As `_read_tolerance` reads it."""
    others = dict(attributes)
    if tolerance is not None:
        number = cast("FloatAttr[Any]", tolerance)
        if isinstance(tolerance, FloatAttr) and number.type == Float64Type():
            printer.print_string(", tolerance = ")
            printer.print_float(number.value.data, number.type)
        else:
            others["tolerance"] = tolerance
    printer.print_op_attributes(others)


@irdl_op_definition
class ExpectAlmostEqOp(IRDLOperation):
    """Apart by the tolerance at most; 0.0001 unless it is given."""

    name = "check.expect_almost_eq"
    T: ClassVar = VarConstraint("T", AnyAttr())
    actual = operand_def(T)
    expected = operand_def(T)
    tolerance = opt_prop_def(Attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """`check.expect_almost_eq %a, %b, tolerance = 0.1 : tensor<f32>`."""
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        properties: dict[str, Attribute] = {}
        attributes = _read_tolerance(parser, properties)
        parser.parse_punctuation(":")
        types = [parser.parse_type()] * 2
        resolved = parser.resolve_operands(operands, types, parser.pos)
        return cls(operands=resolved, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        _print_tolerance(printer, self.tolerance, self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.actual.type)


@irdl_op_definition
class ExpectCloseOp(IRDLOperation):
    """So many floats lie between the two at most: 3 unless `max_ulp_difference` says otherwise."""

    name = "check.expect_close"
    T: ClassVar = VarConstraint("T", AnyAttr())
    actual = operand_def(T)
    expected = operand_def(T)
    min_ulp_difference = opt_prop_def(IntegerAttr)
    max_ulp_difference = opt_prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """`check.expect_close %a, %b, max_ulp_difference = 3 : tensor<f32>, tensor<f32>`."""
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        properties: dict[str, Attribute] = {}
        while parser.parse_optional_punctuation(",") is not None:
            key = parser.parse_identifier()
            if key not in ("min_ulp_difference", "max_ulp_difference"):
                parser.raise_error(f"unknown bound `{key}`")
            parser.parse_punctuation("=")
            properties[key] = IntegerAttr(parser.parse_integer(), _UI64)
        attributes = parser.parse_optional_attr_dict()
        for key in ("min_ulp_difference", "max_ulp_difference"):
            if key in attributes:
                properties[key] = attributes.pop(key)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        if len(types) == 1:
            types *= 2
        return cls(
            operands=parser.resolve_operands(operands, types, parser.pos),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        for key in ("min_ulp_difference", "max_ulp_difference"):
            value = self.properties.get(key)
            if isinstance(value, IntegerAttr):
                printer.print_string(f", {key} = {value.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.operands, lambda o: printer.print_attribute(o.type))


class _Constant(IRDLOperation):
    """`check.expect_eq_const %actual, dense<1.0> : tensor<2xf32>`."""

    actual = operand_def(AnyAttr())
    value = prop_def(AnyAttr())
    tolerance = opt_prop_def(Attribute)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """The constant says the type."""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        start = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, DenseAttr):
            parser.raise_error("a check compares with a dense constant", start)
        properties: dict[str, Attribute] = {"value": value}
        attributes = _read_tolerance(parser, properties)
        actual = parser.resolve_operand(operand, value.type)
        return cls(operands=[actual], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_ssa_value(self.actual)
        printer.print_string(", ")
        printer.print_attribute(self.value)
        _print_tolerance(printer, self.tolerance, self.attributes)

    def verify_(self) -> None:
        """Value and constant are of one type."""
        if isinstance(self.value, DenseAttr) and self.value.type != self.actual.type:
            raise VerifyException(
                f"compares {self.actual.type} with a constant of {self.value.type}"
            )


@irdl_op_definition
class ExpectEqConstOp(_Constant):
    """Equal to a constant."""

    name = "check.expect_eq_const"


@irdl_op_definition
class ExpectAlmostEqConstOp(_Constant):
    """Nearly a constant."""

    name = "check.expect_almost_eq_const"


@irdl_op_definition
class EqOp(_Constant):
    """Equal to a constant; the old name."""

    name = "check.eq"


@irdl_op_definition
class AlmostEqOp(_Constant):
    """Nearly a constant; the old name."""

    name = "check.almost_eq"


@irdl_op_definition
class ExpectSerializedEqOp(IRDLOperation):
    """Equal to what the probe of that name saw: the first time, or the `iter`-th, counted from 0
    (as `iteration` from 1)."""

    name = "check.expect_serialized_eq"
    actual = operand_def(AnyAttr())
    probe_id = prop_def(StringAttr)
    iter = opt_prop_def(IntegerAttr)
    iteration = opt_prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """`check.expect_serialized_eq %a, probe_id = "p", iteration = 1 : tensor<f32>`."""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        properties: dict[str, Attribute] = {"probe_id": _probe_id(parser)}
        if parser.parse_optional_punctuation(",") is not None:
            key = "iter" if parser.parse_optional_keyword("iter") else "iteration"
            if key == "iteration":
                parser.parse_keyword(key)
            parser.parse_punctuation("=")
            number = IntegerAttr(parser.parse_integer(), IntegerType(32, Signedness.UNSIGNED))
            properties[key] = number
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        actual = parser.resolve_operand(operand, parser.parse_type())
        return cls(operands=[actual], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_ssa_value(self.actual)
        printer.print_string(", probe_id = ")
        printer.print_attribute(self.probe_id)
        for key, number in (("iter", self.iter), ("iteration", self.iteration)):
            if number is not None:
                printer.print_string(f", {key} = {number.value.data}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.actual.type)


def _probe_id(parser: Parser) -> StringAttr:
    parser.parse_keyword("probe_id")
    parser.parse_punctuation("=")
    return StringAttr(parser.parse_str_literal())


CHECK = Dialect(
    "check",
    [
        *(AlmostEqOp, EqOp, ExpectAlmostEqConstOp, ExpectAlmostEqOp, ExpectCloseOp),
        *(ExpectEqConstOp, ExpectEqOp, ExpectSerializedEqOp),
    ],
)
"""Checks."""


@irdl_op_definition
class RunParallelOp(IRDLOperation):
    """Runs functions on replicas × partitions; inputs and results of all devices in their order."""

    name = "interpreter.run_parallel"
    inputs = var_operand_def()
    outputs = var_result_def()
    programs = prop_def(ArrayAttr)
    infeed = opt_prop_def(ArrayAttr)


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Its operand, which is printed."""

    name = "interpreter.print"
    T: ClassVar = VarConstraint("T", AnyAttr())
    operand = operand_def(T)
    result = result_def(T)
    assembly_format = "$operand attr-dict `:` type($result)"


@irdl_op_definition
class ProbeOp(IRDLOperation):
    """Its operand, which is kept under a name."""

    name = "interpreter.probe"
    operand = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    probe_id = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """`interpreter.probe %x, probe_id = "p" : tensor<f32>`."""
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        probe_id = _probe_id(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls(
            operands=[parser.resolve_operand(operand, type_)],
            result_types=[type_],
            properties={"probe_id": probe_id},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_ssa_value(self.operand)
        printer.print_string(", probe_id = ")
        printer.print_attribute(self.probe_id)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)


INTERPRETER = Dialect("interpreter", [PrintOp, ProbeOp, RunParallelOp])
"""What drives the interpreter."""


def check_name(op: Operation) -> str | None:
    """`expect_eq` of `check.expect_eq` or of `stablehlo.custom_call @check.expect_eq`."""
    name = op.name
    if name == "stablehlo.custom_call":
        target = op.properties.get("call_target_name") or op.attributes.get("call_target_name")
        name = target.data if isinstance(target, StringAttr) else ""
    short = name.removeprefix("check.")
    return short if short != name and short in CHECKS else None
