"""The `ptx` dialect: NVIDIA's PTX as ops, with operands and declarations as frozen values."""

from __future__ import annotations

from xdsl.ir import Dialect

from mlirhlo.dialects.ptx import attributes, ops
from mlirhlo.dialects.ptx.ops import (
    AliasOp,
    FileOp,
    FunctionOp,
    InstructionOp,
    LabelOp,
    LocOp,
    ModuleOp,
    PragmaOp,
    PrototypeOp,
    ScopeOp,
    SectionOp,
    TargetsOp,
    VariableOp,
)
from mlirhlo.dialects.ptx.values import (
    Address,
    Component,
    Group,
    Guard,
    Immediate,
    Negated,
    Operand,
    Operands,
    Pair,
    Register,
    Signature,
    Sink,
    SourceLocation,
    Special,
    Symbol,
    Variable,
    Vector,
)

PTX = Dialect(
    "ptx",
    [
        *(ModuleOp, VariableOp, FunctionOp, ScopeOp, LabelOp, InstructionOp, TargetsOp),
        *(PrototypeOp, LocOp, FileOp, PragmaOp, SectionOp, AliasOp),
    ],
    [
        attributes.OperandsAttr,
        attributes.GuardAttr,
        attributes.DeclarationAttr,
        attributes.SignatureAttr,
        attributes.PrototypeAttr,
        attributes.SourceLocationAttr,
    ],
)
"""The dialect: every op and attribute."""

__all__ = [
    "PTX",
    "Address",
    "AliasOp",
    "Component",
    "FileOp",
    "FunctionOp",
    "Group",
    "Guard",
    "Immediate",
    "InstructionOp",
    "LabelOp",
    "LocOp",
    "ModuleOp",
    "Negated",
    "Operand",
    "Operands",
    "Pair",
    "PragmaOp",
    "PrototypeOp",
    "Register",
    "ScopeOp",
    "SectionOp",
    "Signature",
    "Sink",
    "SourceLocation",
    "Special",
    "Symbol",
    "TargetsOp",
    "Variable",
    "VariableOp",
    "Vector",
    "ops",
]
