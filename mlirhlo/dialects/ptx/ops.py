"""The ops of the `ptx` dialect: a module of PTX, statement by statement.

Registers are no SSA values: they are names in attributes, as PTX assigns them again and again.
`op.location` is the line and column of the statement in the text that it was read from.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.traits import NoTerminator

from mlirhlo.dialects.ptx.attributes import (
    DeclarationAttr,
    GuardAttr,
    OperandsAttr,
    PrototypeAttr,
    SignatureAttr,
    SourceLocationAttr,
)
from mlirhlo.dialects.ptx.values import Guard, Operand, Prototype, Signature, Variable
from mlirhlo.dialects.quick import ops_of


@lru_cache(maxsize=4096)
def split_mnemonic(mnemonic: str) -> tuple[str, tuple[str, ...]]:
    """Opcode and modifiers: `ld.global.u32` is `ld` and (`global`, `u32`)."""
    opcode, *modifiers = mnemonic.split(".")
    return opcode, tuple(modifiers)


@irdl_op_definition
class ModuleOp(IRDLOperation):
    """
    A file of PTX: `.version`, `.target` and `.address_size`, then variables and functions.

    Example: `ptx.module "8.0" "sm_90a" 64 : i64 { … }`
    """

    name = "ptx.module"
    version_text = prop_def(StringAttr, prop_name="version")
    target_text = prop_def(StringAttr, prop_name="target")
    address_size_attr = opt_prop_def(IntegerAttr, prop_name="address_size")
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$version $target ($address_size^)? attr-dict-with-keyword $body"

    @property
    def version(self) -> tuple[int, int]:
        """PTX ISA version: (8, 0)."""
        major, minor = self.version_text.data.split(".")
        return int(major), int(minor)

    @property
    def targets(self) -> tuple[str, ...]:
        """Architecture, and options such as `debug`: ("sm_90a",)."""
        return tuple(target.strip() for target in self.target_text.data.split(","))

    @property
    def address_size(self) -> int:
        """Bits of an address: 64, or 32 where nothing is said."""
        size = self.address_size_attr
        return 32 if size is None else size.value.data

    @property
    def statements(self) -> list[Operation]:
        """Variables, functions and directives in order."""
        return ops_of(self.body.block)

    @property
    def functions(self) -> list[FunctionOp]:
        """Functions, declared or defined, in order."""
        return [op for op in self.statements if isinstance(op, FunctionOp)]


@irdl_op_definition
class VariableOp(IRDLOperation):
    """
    A declaration of registers or variables, in a module or in a function.

    Example: `ptx.variable <".reg .b32 %r<10>;">`
    """

    name = "ptx.variable"
    declaration = prop_def(DeclarationAttr)
    assembly_format = "$declaration attr-dict"

    @property
    def variables(self) -> tuple[Variable, ...]:
        """What is declared, one for each name."""
        return self.declaration.data.variables


@irdl_op_definition
class FunctionOp(IRDLOperation):
    """
    A kernel (`.entry`) or function (`.func`); without a body it is a declaration.

    Example: `ptx.function <".visible .entry k ()"> { … }`
    """

    name = "ptx.function"
    signature_attr = prop_def(SignatureAttr, prop_name="signature")
    body = opt_region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "$signature attr-dict-with-keyword ($body^)?"

    @property
    def is_declaration(self) -> bool:
        """Whether there is no body."""
        return not any(region.blocks for region in self.regions)

    @property
    def signature(self) -> Signature:
        """The head: parameters, results, directives."""
        return self.signature_attr.data

    @property
    def symbol(self) -> str:
        """The function's name."""
        return self.signature.name

    @property
    def is_entry(self) -> bool:
        """Whether it is a kernel."""
        return self.signature.is_entry

    @property
    def parameters(self) -> tuple[Variable, ...]:
        """The parameters in order."""
        return self.signature.parameters


@irdl_op_definition
class ScopeOp(IRDLOperation):
    """
    `{ … }`: names declared in it are its own; labels too.

    Example: `ptx.scope { … }`
    """

    name = "ptx.scope"
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "attr-dict-with-keyword $body"


@irdl_op_definition
class LabelOp(IRDLOperation):
    """
    `name:`; what follows may be an instruction, a table of targets or a call prototype.

    Example: `ptx.label "$L__BB0_1"`
    """

    name = "ptx.label"
    label_attr = prop_def(StringAttr, prop_name="label")
    assembly_format = "$label attr-dict"

    @property
    def label(self) -> str:
        """The name."""
        return self.label_attr.data


@irdl_op_definition
class InstructionOp(IRDLOperation):
    """
    An instruction: guard, opcode with modifiers, operands.

    Example: `ptx.instruction "ld.global.u32" <"%r1, [%rd1+4]"> guard <"@%p1">`
    """

    name = "ptx.instruction"
    mnemonic_attr = prop_def(StringAttr, prop_name="mnemonic")
    guard_attr = opt_prop_def(GuardAttr, prop_name="guard")
    arguments_attr = prop_def(OperandsAttr, prop_name="arguments")
    assembly_format = "$mnemonic $arguments (`guard` $guard^)? attr-dict"

    @property
    def mnemonic(self) -> str:
        """Opcode and modifiers as they are written: `ld.global.u32`."""
        return self.mnemonic_attr.data

    @property
    def opcode(self) -> str:
        """`ld`."""
        return split_mnemonic(self.mnemonic_attr.data)[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """`("global", "u32")`."""
        return split_mnemonic(self.mnemonic_attr.data)[1]

    @property
    def guard(self) -> Guard | None:
        """The predicate under which it is executed; None for always."""
        attribute = self.guard_attr
        return None if attribute is None else attribute.data

    @property
    def arguments(self) -> tuple[Operand, ...]:
        """The operands, destinations first. (`operands` are SSA values, which PTX has none of.)"""
        return self.arguments_attr.data.parts


@irdl_op_definition
class TargetsOp(IRDLOperation):
    """
    The labels or functions that an indirect branch or call may reach; a label stands before it.

    Example: `ptx.targets "branchtargets" ["L1", "L2"]`
    """

    name = "ptx.targets"
    keyword_attr = prop_def(StringAttr, prop_name="keyword")
    names_attr = prop_def(ArrayAttr[StringAttr], prop_name="names")
    assembly_format = "$keyword $names attr-dict"

    @property
    def keyword(self) -> str:
        """`branchtargets` or `calltargets`."""
        return self.keyword_attr.data

    @property
    def names(self) -> tuple[str, ...]:
        """The labels or functions."""
        return tuple(name.data for name in self.names_attr)


@irdl_op_definition
class PrototypeOp(IRDLOperation):
    """
    The type of the functions that an indirect call may reach; a label stands before it.

    Example: `ptx.prototype <".callprototype _ (.param .b64 _);">`
    """

    name = "ptx.prototype"
    prototype_attr = prop_def(PrototypeAttr, prop_name="prototype")
    assembly_format = "$prototype attr-dict"

    @property
    def prototype(self) -> Prototype:
        """Results and parameters."""
        return self.prototype_attr.data


@irdl_op_definition
class LocOp(IRDLOperation):
    """
    `.loc`: where in a source file the instructions that follow come from.

    Example: `ptx.loc <".loc 1 14 0">`
    """

    name = "ptx.loc"
    source = prop_def(SourceLocationAttr)
    assembly_format = "$source attr-dict"


@irdl_op_definition
class FileOp(IRDLOperation):
    """
    `.file`: the name of the source file with a number; time stamp and size may follow.

    Example: `ptx.file 1 : i64 "kernel.py" []`
    """

    name = "ptx.file"
    number = prop_def(IntegerAttr)
    path = prop_def(StringAttr)
    facts = prop_def(ArrayAttr[IntegerAttr])
    assembly_format = "$number $path $facts attr-dict"


@irdl_op_definition
class PragmaOp(IRDLOperation):
    """
    `.pragma "nounroll";` in a module or a body.

    Example: `ptx.pragma ["nounroll"]`
    """

    name = "ptx.pragma"
    strings_attr = prop_def(ArrayAttr[StringAttr], prop_name="strings")
    assembly_format = "$strings attr-dict"

    @property
    def strings(self) -> tuple[str, ...]:
        """The strings."""
        return tuple(text.data for text in self.strings_attr)


@irdl_op_definition
class SectionOp(IRDLOperation):
    """
    `.section`: DWARF data, kept as text.

    Example: `ptx.section ".debug_macinfo" ".b8 0"`
    """

    name = "ptx.section"
    section = prop_def(StringAttr)
    contents = prop_def(StringAttr)
    assembly_format = "$section $contents attr-dict"


@irdl_op_definition
class AliasOp(IRDLOperation):
    """
    `.alias f, g;`: another name of a function.

    Example: `ptx.alias "f" "g"`
    """

    name = "ptx.alias"
    alias = prop_def(StringAttr)
    aliasee = prop_def(StringAttr)
    assembly_format = "$alias $aliasee attr-dict"


def body_of(op: FunctionOp | ScopeOp) -> list[Operation]:
    """The statements of a function or scope; none of a declaration."""
    return [one for region in op.regions for block in region.blocks for one in ops_of(block)]
