"""xDSL's memref dialect with the ops and the forms it lacks, under their MLIR names.

Source: MLIR's memref dialect.
"""

# Definitions of fields and formats widen those of xDSL's classes, which is what the subclasses are for.
# mypy: disable-error-code="assignment, misc, override"

from __future__ import annotations

from typing import Any, ClassVar, cast

from xdsl.dialects import memref as xmemref
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    SignlessIntegerConstraint,
    StringAttr,
    TensorType,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl import (
    base as instance_of,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator

from mlirhlo.dialects.arith import Extended


@irdl_op_definition
class GlobalOp(Extended, xmemref.GlobalOp):
    """Memory with a name, in the form that MLIR prints."""

    name = "memref.global"
    sym_name = prop_def(StringAttr)
    sym_visibility = prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = prop_def(instance_of(UnitAttr) | instance_of(DenseIntOrFPElementsAttr))
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr)

    @classmethod
    def parse(cls, parser: Parser) -> GlobalOp:
        """`memref.global "private" constant @name : memref<2xi8> = dense<[1, 2]> {alignment = 64 : i64}`."""
        visibility = parser.parse_optional_str_literal()
        properties: dict[str, Attribute] = {"sym_visibility": StringAttr(visibility or "public")}
        if parser.parse_optional_keyword("constant") is not None:
            properties["constant"] = UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        type_ = cast("MemRefType[Any]", parser.parse_type())
        properties["type"] = type_
        parser.parse_punctuation("=")
        if parser.parse_optional_keyword("uninitialized") is not None:
            properties["initial_value"] = UnitAttr()
        else:
            parser.parse_keyword("dense")
            tensor: Any = TensorType(type_.element_type, type_.get_shape())
            properties["initial_value"] = parser.parse_dense_int_or_fp_elements_attr(tensor)
        attributes = dict(parser.parse_optional_attr_dict())
        if "alignment" in attributes:
            properties["alignment"] = attributes.pop("alignment")
        return cls.create(properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(f' "{self.sym_visibility.data}" ')
        if self.constant is not None:
            printer.print_string("constant ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        printer.print_string(" = ")
        if isinstance(self.initial_value, DenseIntOrFPElementsAttr):
            cast(Any, self.initial_value).print_without_type(printer)
        else:
            printer.print_string("uninitialized")
        alignment = {} if self.alignment is None else {"alignment": self.alignment}
        printer.print_op_attributes({**alignment, **self.attributes})


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Brings an element into the caches; an address out of bounds does nothing."""

    name = "memref.prefetch"
    memref = operand_def(instance_of(MemRefType))
    indices = var_operand_def(IndexType)
    is_write = prop_def(BoolAttr, prop_name="isWrite")
    locality = prop_def(IntegerAttr, prop_name="localityHint")
    """0: not needed again, to 3: kept in all caches."""
    is_data_cache = prop_def(BoolAttr, prop_name="isDataCache")

    @classmethod
    def parse(cls, parser: Parser) -> PrefetchOp:
        """`memref.prefetch %m[%i], read, locality<3>, data : memref<8xf32>`."""
        memref = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(",")
        is_write = parser.expect(
            lambda: parser.parse_optional_keyword_in(("read", "write")), "read or write"
        )
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        with parser.in_angle_brackets():
            locality = parser.parse_integer()
        parser.parse_punctuation(",")
        cache = parser.expect(
            lambda: parser.parse_optional_keyword_in(("data", "instr")), "data or instr"
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type(), *(IndexType() for _ in indices)]
        operands = parser.resolve_operands([memref, *indices], types, parser.pos)
        properties: dict[str, Attribute] = {
            "isWrite": BoolAttr.from_bool(is_write == "write"),
            "localityHint": IntegerAttr(locality, i32),
            "isDataCache": BoolAttr.from_bool(cache == "data"),
        }
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_ssa_value(self.memref)
        with printer.in_square_brackets():
            printer.print_list(self.indices, printer.print_ssa_value)
        access = "write" if self.is_write.value.data else "read"
        cache = "data" if self.is_data_cache.value.data else "instr"
        printer.print_string(f", {access}, locality<{self.locality.value.data}>, {cache}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)


@irdl_op_definition
class GenericAtomicRMWOp(IRDLOperation):
    """Replaces an element by what the body yields of it, at once; the element before."""

    name = "memref.generic_atomic_rmw"
    T: ClassVar = VarConstraint("T", AnyFloatConstr | SignlessIntegerConstraint)
    memref = operand_def(instance_of(MemRefType))
    indices = var_operand_def(IndexType)
    result = result_def(T)
    body = region_def("single_block")


@irdl_op_definition
class AtomicYieldOp(IRDLOperation):
    """Ends the body of a `memref.generic_atomic_rmw`."""

    name = "memref.atomic_yield"
    result = operand_def()
    traits = traits_def(IsTerminator(), HasParent(GenericAtomicRMWOp))


_OWN = (AtomicYieldOp, GenericAtomicRMWOp, GlobalOp, PrefetchOp)
_NAMES = {op.name for op in _OWN}

MemRef = Dialect(
    "memref",
    [*(op for op in xmemref.MemRef.operations if op.name not in _NAMES), *_OWN],
    list(xmemref.MemRef.attributes),
)
"""The dialect to register in place of xDSL's."""
