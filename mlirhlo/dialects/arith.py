"""xDSL's arith dialect with comparisons, `select` and casts of vectors, which it lacks, under their
MLIR names. Each class derives from xDSL's where it has one, so that xDSL's passes know it.

Source: MLIR's arith dialect.
"""

# Definitions of fields and formats widen those of xDSL's classes, which is what the subclasses are for.
# mypy: disable-error-code="assignment, misc, override"

from __future__ import annotations

from typing import ClassVar, Self, cast

from xdsl.dialects import arith as xarith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i1
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


def _same_shape(type_: Attribute) -> Attribute:
    """The mask that a comparison of `type_` gives."""
    return VectorType(i1, type_.shape) if isinstance(type_, VectorType) else i1


class Extended(IRDLOperation):
    """An op with xDSL's of the same name as its second base; it is verified by its own definition alone."""

    def verify_(self) -> None:
        """In place of xDSL's method, which holds the op against xDSL's definition too."""


class _Compare(Extended):
    """`arith.cmpf olt, %a, %b : vector<4xf32>`."""

    T: ClassVar = VarConstraint("T", AnyAttr())

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(base(IntegerType) | VectorType.constr(base(IntegerType)))
    predicate = prop_def(IntegerAttr)

    traits = traits_def(Pure())

    PREDICATES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Predicate, operands, their type."""
        start = parser.pos
        word = parser.parse_identifier()
        if word not in cls.PREDICATES:
            parser.raise_error(f"unknown predicate `{word}`", start)
        names: list[UnresolvedOperand] = []
        for _ in range(2):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.create(
            operands=parser.resolve_operands(names, [type_, type_], parser.pos),
            result_types=[_same_shape(type_)],
            properties={"predicate": IntegerAttr(cls.PREDICATES.index(word), 64)},
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(f" {self.PREDICATES[self.predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpiOp(_Compare, xarith.CmpiOp):
    """Compares integers."""

    name = "arith.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = (
        "eq",
        "ne",
        "slt",
        "sle",
        "sgt",
        "sge",
        "ult",
        "ule",
        "ugt",
        "uge",
    )


@irdl_op_definition
class CmpfOp(_Compare, xarith.CmpfOp):
    """Compares floats; `o…` is false and `u…` true of NaNs."""

    name = "arith.cmpf"
    fastmath = prop_def(xarith.FastMathFlagsAttr, default_value=xarith.FastMathFlagsAttr("none"))
    PREDICATES: ClassVar[tuple[str, ...]] = (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    )


@irdl_op_definition
class SelectOp(Extended, xarith.SelectOp):
    """One of two values by a bit, or lane by lane by a mask."""

    name = "arith.select"
    T: ClassVar = VarConstraint("T", AnyAttr())

    cond = operand_def(base(IntegerType) | VectorType.constr(base(IntegerType)))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = None  # that of xDSL's knows no masks

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        """`arith.select %c, %a, %b : f32`, with masks `: vector<4xi1>, vector<4xf32>`."""
        names = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_characters(",")
            names.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_characters(":")
        first = parser.parse_type()
        second = parser.parse_type() if parser.parse_optional_punctuation(",") else None
        types = [i1, first, first] if second is None else [first, second, second]
        operands = parser.resolve_operands(names, types, parser.pos)
        return cls.create(operands=operands, result_types=[types[1]], attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)


class _Cast(IRDLOperation):
    """`arith.extui %x : vector<4xi8> to vector<4xi32>`."""

    input = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    traits = traits_def(Pure())
    assembly_format = None  # some of xDSL's classes have methods for the same form

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Operand, its type, the result's."""
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_characters(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        operands = parser.resolve_operands([name], [source], parser.pos)
        types = [parser.parse_type()]
        return cls.create(operands=operands, result_types=types, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_ssa_value(self.input)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.input.type)
        printer.print_string(" to ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        """As many lanes come out as go in."""
        source, result = self.input.type, self.result.type
        shapes = [
            cast("VectorType[Attribute]", t).get_shape() if isinstance(t, VectorType) else ()
            for t in (source, result)
        ]
        if shapes[0] != shapes[1]:
            raise VerifyException(f"{source} and {result} have different numbers of lanes")


@irdl_op_definition
class ExtUIOp(_Cast, xarith.ExtUIOp):
    """Wider integers, zeros in front."""

    name = "arith.extui"


@irdl_op_definition
class ExtSIOp(_Cast, xarith.ExtSIOp):
    """Wider integers, copies of the sign in front."""

    name = "arith.extsi"


@irdl_op_definition
class TruncIOp(_Cast, xarith.TruncIOp):
    """The low bits of integers."""

    name = "arith.trunci"


@irdl_op_definition
class ExtFOp(_Cast, xarith.ExtFOp):
    """Wider floats."""

    name = "arith.extf"


@irdl_op_definition
class TruncFOp(_Cast, xarith.TruncFOp):
    """Narrower floats, rounded to nearest even."""

    name = "arith.truncf"


@irdl_op_definition
class SIToFPOp(_Cast, xarith.SIToFPOp):
    """Signed integers to floats."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_Cast, xarith.UIToFPOp):
    """Unsigned integers to floats."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_Cast, xarith.FPToSIOp):
    """Floats to signed integers; poison out of range."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_Cast, xarith.FPToUIOp):
    """Floats to unsigned integers; poison out of range."""

    name = "arith.fptoui"


@irdl_op_definition
class BitcastOp(_Cast, xarith.BitcastOp):
    """The same bits."""

    name = "arith.bitcast"


@irdl_op_definition
class IndexCastOp(_Cast, xarith.IndexCastOp):
    """Between `index` and integers; signs are copied."""

    name = "arith.index_cast"


_OWN: tuple[type[Operation], ...] = (
    *(BitcastOp, CmpfOp, CmpiOp, ExtFOp, ExtSIOp, ExtUIOp, FPToSIOp, FPToUIOp),
    *(IndexCastOp, SelectOp, SIToFPOp, TruncFOp, TruncIOp, UIToFPOp),
)
_NAMES = {op.name for op in _OWN}

Arith = Dialect(
    "arith",
    [*(op for op in xarith.Arith.operations if op.name not in _NAMES), *_OWN],
    list(xarith.Arith.attributes),
)
"""The dialect to register in place of xDSL's."""
