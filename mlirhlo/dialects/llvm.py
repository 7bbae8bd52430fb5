"""xDSL's llvm dialect with the ops and forms it lacks, under their MLIR names.

Vectors in `fcmp` and `select`, masks on loads and stores of integers, and conversions, element
access, gathers and `freeze` are what MLIR's own dialect has and xDSL 0.74 has not. Each class here
is written as xDSL would take it; when xDSL has it, the class goes and the name stays.
Source: MLIR's LLVM dialect.
"""

# Definitions of fields and formats widen those of xDSL's classes, which is what the subclasses are for.
# mypy: disable-error-code="arg-type, assignment, misc, override"

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    AnyFloatConstr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.llvm import (
    ATOMIC_ORDERING_KEYWORDS,
    GEP_USE_SSA_VAL,
    FastMathAttr,
    FCmpPredicateFlag,
    LLVMPointerType,
)
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
)
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from mlirhlo.dialects.arith import Extended

_FLOATS = AnyFloatConstr | VectorType.constr(AnyFloatConstr)
_INTEGERS = SignlessIntegerConstraint | VectorType.constr(SignlessIntegerConstraint)
_MASKS = base(IntegerType) | VectorType.constr(base(IntegerType))


@irdl_attr_definition
class LLVMX86AMXType(ParametrizedAttribute, TypeAttribute):
    """`!llvm.x86_amx`: a tile register."""

    name = "llvm.x86_amx"


@irdl_attr_definition
class ZeroAttr(ParametrizedAttribute):
    """`#llvm.zero`: a value of zeros."""

    name = "llvm.zero"


@irdl_op_definition
class FCmpOp(Extended, xllvm.FCmpOp):
    """`fcmp` of scalars or, which xDSL's refuses, of vectors."""

    name = "llvm.fcmp"
    T: ClassVar = VarConstraint("T", _FLOATS)

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(_MASKS)
    predicate = prop_def(IntegerAttr)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))  # noqa: N815

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> FCmpOp:
        """`llvm.fcmp "olt" %a, %b : vector<4xf32>`."""
        flag = parser.parse_str_literal()
        lhs = parser.parse_unresolved_operand()
        parser.parse_characters(",")
        rhs = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_characters(":")
        type_ = parser.parse_type()
        operands = parser.resolve_operands([lhs, rhs], [type_, type_], parser.pos)
        mask = VectorType(i1, type_.shape) if isinstance(type_, VectorType) else i1
        return cls.create(
            operands=operands,
            result_types=[mask],
            properties={"predicate": IntegerAttr(FCmpPredicateFlag(flag).to_int(), i64)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        flag = FCmpPredicateFlag.from_int(self.predicate.value.data)
        printer.print_string(f' "{flag}" ')
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class ICmpOp(Extended, xllvm.ICmpOp):  # pyright: ignore[reportIncompatibleMethodOverride]
    """`icmp` of integers or, which xDSL's refuses, of pointers."""

    name = "llvm.icmp"
    T: ClassVar = VarConstraint("T", _INTEGERS | base(LLVMPointerType))

    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(_MASKS)
    predicate = prop_def(IntegerAttr)
    traits = traits_def(Pure())


@irdl_op_definition
class SelectOp(Extended, xllvm.SelectOp):
    """`select` by one bit or, which xDSL's refuses, by a mask."""

    name = "llvm.select"
    T: ClassVar = VarConstraint("T", AnyAttr())

    cond = operand_def(_MASKS)
    lhs = operand_def(T)
    rhs = operand_def(T)
    res = result_def(T)
    fastmathFlags = prop_def(FastMathAttr, default_value=FastMathAttr(None))  # noqa: N815

    traits = traits_def(Pure())
    assembly_format = None  # reads and prints as xDSL's


class _Cast(IRDLOperation):
    """A conversion `name %arg : from to to`."""

    traits = traits_def(Pure())
    assembly_format = "$arg attr-dict `:` type($arg) `to` type($res)"


@irdl_op_definition
class FPToSIOp(_Cast):
    """Float to signed integer; poison out of range."""

    name = "llvm.fptosi"
    arg = operand_def(_FLOATS)
    res = result_def(_INTEGERS)


@irdl_op_definition
class FPToUIOp(_Cast):
    """Float to unsigned integer; poison out of range."""

    name = "llvm.fptoui"
    arg = operand_def(_FLOATS)
    res = result_def(_INTEGERS)


@irdl_op_definition
class UIToFPOp(_Cast):
    """Unsigned integer to float."""

    name = "llvm.uitofp"
    arg = operand_def(_INTEGERS)
    res = result_def(_FLOATS)


@irdl_op_definition
class FreezeOp(IRDLOperation):
    """Any one value in place of poison."""

    name = "llvm.freeze"
    T: ClassVar = VarConstraint("T", AnyAttr())
    val = operand_def(T)
    res = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$val attr-dict `:` type($val)"


@irdl_op_definition
class ExtractElementOp(IRDLOperation):
    """One lane of a vector."""

    name = "llvm.extractelement"
    T: ClassVar = VarConstraint("T", AnyAttr())
    vector = operand_def(VectorType.constr(T))
    position = operand_def(SignlessIntegerConstraint)
    res = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$vector `[` $position `:` type($position) `]` attr-dict `:` type($vector)"


@irdl_op_definition
class MaskedLoadOp(IRDLOperation):
    """Lanes whose mask is set; the others from `pass_thru`."""

    name = "llvm.intr.masked.load"
    T: ClassVar = VarConstraint("T", base(VectorType))
    data = operand_def(LLVMPointerType)
    mask = operand_def(base(VectorType))
    pass_thru = operand_def(T)
    res = result_def(T)
    alignment = prop_def(IntegerAttr)
    assembly_format = (
        "$data `,` $mask `,` $pass_thru attr-dict `:` functional-type(operands, results)"
    )
    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class MaskedStoreOp(Extended, xllvm.MaskedStoreOp):
    """Stores the lanes whose mask is set, of any element type."""

    name = "llvm.intr.masked.store"
    value = operand_def(base(VectorType))
    data = operand_def(LLVMPointerType)
    mask = operand_def(base(VectorType))
    alignment = prop_def(IntegerAttr)
    assembly_format = None  # reads and prints as xDSL's


@irdl_op_definition
class MaskedGatherOp(IRDLOperation):
    """Lanes from a vector of pointers."""

    name = "llvm.intr.masked.gather"
    T: ClassVar = VarConstraint("T", base(VectorType))
    ptrs = operand_def(base(VectorType))
    mask = operand_def(base(VectorType))
    pass_thru = operand_def(T)
    res = result_def(T)
    alignment = prop_def(IntegerAttr)
    assembly_format = (
        "$ptrs `,` $mask `,` $pass_thru attr-dict `:` functional-type(operands, results)"
    )
    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class MaskedScatterOp(IRDLOperation):
    """Lanes to a vector of pointers, in order of lanes."""

    name = "llvm.intr.masked.scatter"
    value = operand_def(base(VectorType))
    ptrs = operand_def(base(VectorType))
    mask = operand_def(base(VectorType))
    alignment = prop_def(IntegerAttr)
    assembly_format = (
        "$value `,` $ptrs `,` $mask attr-dict `:` type($value) `,` type($mask) `into` type($ptrs)"
    )
    irdl_options = (ParsePropInAttrDict(),)


@irdl_op_definition
class GEPOp(Extended, xllvm.GEPOp):
    """Address arithmetic; with a vector of indices, which xDSL's refuses, a vector of addresses."""

    name = "llvm.getelementptr"
    ptr = operand_def(LLVMPointerType)
    ssa_indices = var_operand_def()
    result = result_def()
    elem_type = prop_def()
    noWrapFlags = prop_def(IntegerAttr, default_value=IntegerAttr(0, 32))  # noqa: N815
    rawConstantIndices = prop_def(DenseArrayBase.constr(i32))  # noqa: N815
    inbounds = opt_prop_def(UnitAttr)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> GEPOp:
        """`llvm.getelementptr %p[%i, 2] : (!llvm.ptr, i64) -> !llvm.ptr, f32`."""
        inbounds = parser.parse_optional_keyword("inbounds") is not None
        ptr = parser.parse_unresolved_operand()
        values, constants = parse_dynamic_index_list_without_types(parser, GEP_USE_SSA_VAL)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        signature = parser.parse_function_type()
        parser.parse_punctuation(",")
        element = parser.parse_type()
        properties: dict[str, Attribute] = {
            "elem_type": element,
            "noWrapFlags": IntegerAttr(0, 32),
            "rawConstantIndices": DenseArrayBase.from_list(i32, list(constants)),
        }
        if inbounds:
            properties["inbounds"] = UnitAttr()
        operands = parser.resolve_operands([ptr, *values], signature.inputs.data, parser.pos)
        return cls.create(
            operands=operands,
            result_types=list(signature.outputs.data),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" " if self.inbounds is None else " inbounds ")
        printer.print_ssa_value(self.ptr)
        print_dynamic_index_list(
            printer, GEP_USE_SSA_VAL, self.ssa_indices, self.rawConstantIndices.iter_values()
        )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([o.type for o in self.operands], [self.result.type])
        printer.print_string(", ")
        printer.print_attribute(self.elem_type)


@irdl_op_definition
class StoreOp(Extended, xllvm.StoreOp):
    """A store that, unlike xDSL's, says in its text that it is atomic."""

    name = "llvm.store"
    value = operand_def()
    ptr = operand_def(LLVMPointerType)
    alignment = opt_prop_def(IntegerAttr)
    ordering = opt_prop_def(IntegerAttr)
    volatile_ = opt_prop_def(UnitAttr)
    nontemporal = opt_prop_def(UnitAttr)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        """`llvm.store %v, %p atomic release {alignment = 8 : i64} : i64, !llvm.ptr`."""
        volatile = parser.parse_optional_keyword("volatile") is not None
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        ptr = parser.parse_unresolved_operand()
        ordering = 0
        if parser.parse_optional_keyword("atomic") is not None:
            keyword = parser.parse_identifier()
            ordering = next(n for n, k in ATOMIC_ORDERING_KEYWORDS.items() if k == keyword)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        properties: dict[str, Attribute] = {"ordering": IntegerAttr(ordering, i64)}
        if volatile:
            properties["volatile_"] = UnitAttr()
        for name in ("alignment", "nontemporal"):
            if name in attributes:
                properties[name] = attributes.pop(name)
        operands = parser.resolve_operands([value, ptr], types, parser.pos)
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" " if self.volatile_ is None else " volatile ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if self.ordering is not None and (number := self.ordering.value.data):
            printer.print_string(f" atomic {ATOMIC_ORDERING_KEYWORDS[number]}")
        attributes = dict(self.attributes)
        for name in ("alignment", "nontemporal"):
            if name in self.properties:
                attributes[name] = self.properties[name]
        printer.print_op_attributes(attributes)
        printer.print_string(" : ")
        printer.print_list([o.type for o in self.operands], printer.print_attribute)


@irdl_op_definition
class GlobalDtorsOp(IRDLOperation):
    """Functions that run when the program ends, or the library is unloaded."""

    name = "llvm.mlir.global_dtors"
    dtors = prop_def(ArrayAttr[SymbolRefAttr])
    priorities = prop_def(ArrayAttr[IntegerAttr])
    data = prop_def(ArrayAttr)
    assembly_format = (
        "`dtors` `=` $dtors `,` `priorities` `=` $priorities `,` `data` `=` $data attr-dict"
    )


ATOMIC_OPERATIONS = (
    *("xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin"),
)
"""By the numbers of MLIR's `AtomicBinOp`."""


@irdl_op_definition
class AddrSpaceCastOp(IRDLOperation):
    """A pointer to the same memory in another address space."""

    name = "llvm.addrspacecast"
    arg = operand_def(LLVMPointerType)
    res = result_def(LLVMPointerType)
    traits = traits_def(Pure())
    assembly_format = "$arg attr-dict `:` type($arg) `to` type($res)"


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Replaces a number in memory by a function of it and a value, at once; the number before."""

    name = "llvm.atomicrmw"
    T: ClassVar = VarConstraint(
        "T", AnyFloatConstr | SignlessIntegerConstraint | base(LLVMPointerType)
    )
    ptr = operand_def(LLVMPointerType)
    val = operand_def(T)
    res = result_def(T)
    bin_op = prop_def(IntegerAttr)
    """Number of one of `ATOMIC_OPERATIONS`."""
    ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)
    """What it is ordered with: `device`, all threads of a GPU; without, all of the system."""
    alignment = opt_prop_def(IntegerAttr)


@irdl_op_definition
class AtomicCmpXchgOp(IRDLOperation):
    """Stores `val` where memory holds `cmp`; what it held before, and whether that was `cmp`."""

    name = "llvm.cmpxchg"
    T: ClassVar = VarConstraint("T", base(LLVMPointerType) | SignlessIntegerConstraint)
    ptr = operand_def(LLVMPointerType)
    cmp = operand_def(T)
    val = operand_def(T)
    res = result_def()
    success_ordering = prop_def(IntegerAttr)
    failure_ordering = prop_def(IntegerAttr)
    syncscope = opt_prop_def(StringAttr)
    alignment = opt_prop_def(IntegerAttr)


_OWN: tuple[type[Operation], ...] = (
    FCmpOp,
    ICmpOp,
    SelectOp,
    FPToSIOp,
    FPToUIOp,
    UIToFPOp,
    FreezeOp,
    ExtractElementOp,
    MaskedLoadOp,
    MaskedStoreOp,
    MaskedGatherOp,
    MaskedScatterOp,
    GEPOp,
    StoreOp,
    GlobalDtorsOp,
    AddrSpaceCastOp,
    AtomicRMWOp,
    AtomicCmpXchgOp,
)
_NAMES = {op.name for op in _OWN}

LLVM = Dialect(
    "llvm",
    [*(op for op in xllvm.LLVM.operations if op.name not in _NAMES), *_OWN],
    [*xllvm.LLVM.attributes, LLVMX86AMXType, ZeroAttr],
)
"""The dialect to register in place of xDSL's."""
