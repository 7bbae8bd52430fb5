"""xDSL's arith dialect with comparisons, `select` and casts of vectors, which it lacks, under their
MLIR names.

Source: MLIR's arith dialect.
"""

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


class _Compare(IRDLOperation):
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
        return cls(
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
class CmpiOp(_Compare):
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
class CmpfOp(_Compare):
    """Compares floats; `o…` is false and `u…` true of NaNs."""

    name = "arith.cmpf"
    fastmath = prop_def(xarith.FastMathFlagsAttr, default_value=xarith.FastMathFlagsAttr("none"))
    PREDICATES: ClassVar[tuple[str, ...]] = (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    )


@irdl_op_definition
class SelectOp(IRDLOperation):
    """One of two values by a bit, or lane by lane by a mask."""

    name = "arith.select"
    T: ClassVar = VarConstraint("T", AnyAttr())

    cond = operand_def(base(IntegerType) | VectorType.constr(base(IntegerType)))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())

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
        return cls(operands=operands, result_types=[types[1]], attributes=attributes)

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

    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        """As many lanes come out as go in."""
        source, result = self.source.type, self.result.type
        shapes = [
            cast("VectorType[Attribute]", t).get_shape() if isinstance(t, VectorType) else ()
            for t in (source, result)
        ]
        if shapes[0] != shapes[1]:
            raise VerifyException(f"{source} and {result} have different numbers of lanes")


@irdl_op_definition
class ExtUIOp(_Cast):
    """Wider integers, zeros in front."""

    name = "arith.extui"


@irdl_op_definition
class ExtSIOp(_Cast):
    """Wider integers, copies of the sign in front."""

    name = "arith.extsi"


@irdl_op_definition
class TruncIOp(_Cast):
    """The low bits of integers."""

    name = "arith.trunci"


@irdl_op_definition
class ExtFOp(_Cast):
    """Wider floats."""

    name = "arith.extf"


@irdl_op_definition
class TruncFOp(_Cast):
    """Narrower floats, rounded to nearest even."""

    name = "arith.truncf"


@irdl_op_definition
class SIToFPOp(_Cast):
    """Signed integers to floats."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_Cast):
    """Unsigned integers to floats."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_Cast):
    """Floats to signed integers; poison out of range."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_Cast):
    """Floats to unsigned integers; poison out of range."""

    name = "arith.fptoui"


@irdl_op_definition
class BitcastOp(_Cast):
    """The same bits."""

    name = "arith.bitcast"


@irdl_op_definition
class IndexCastOp(_Cast):
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
