"""LLVM assembly of modules and functions, but for the instructions, which writers write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    VectorType,
)
from xdsl.dialects.llvm import (
    FuncOp,
    GlobalOp,
    LLVMArrayType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, TypeAttribute

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.llvm import GlobalDtorsOp, LLVMX86AMXType, ZeroAttr
from mlirhlo.dialects.quick import jumps_to, operands_of, ops_of
from mlirhlo.lowering.intrinsics import OVERLOADED, mangled
from mlirhlo.lowering.llvm_spelling import bytes_text, float_text, symbol

_FLOATS: Mapping[type[Attribute], str] = {
    BFloat16Type: "bfloat",
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
}


_SHARED = 3
"""The address space of shared memory, which holds nothing when a block begins."""
_LARGE_BLOCK = 512
"""Threads of a block from which on ptxas is told that one block at a time will do: else it spills registers to
memory, so that a second one can run beside it."""
KERNEL, BLOCK_SIZE, CLUSTER_SIZE = "nvvm.kernel", "nvvm.reqntid", "nvvm.cluster_dim"
"""Attributes of functions that are launched on a GPU, of the threads of a block, and of the blocks of a cluster."""


Writer: TypeAlias = "Callable[[FunctionText, Operation], str]"
"""An instruction without the name of its result."""


class ModuleText:
    """Writes a module: what its functions share."""

    def __init__(self, writers: Mapping[str, Writer]) -> None:
        """`writers`: how each op is written as an instruction."""
        self.writers = writers
        self.types: dict[int, str] = {}
        """By identity: hashing a type costs more than writing a line."""
        self.words: dict[int, str] = {}
        """The same for flags and masks."""
        self.intrinsics: dict[tuple[object, ...], str] = {}
        """What is called, by the intrinsic and the identities of its types."""
        self.kept: list[Attribute] = []
        """What these know, so that it lives as long as they do."""
        self.declared: dict[str, str] = {}
        """Declarations of intrinsics, by name."""
        self.defined: set[str] = set()
        self.attribute_groups: dict[str, int] = {}
        self.uses_nontemporal = False
        self.uses_invariant = False

    def module(self, module: ModuleOp) -> str:
        lines: list[str] = []
        for op in module.body.block.ops:
            if isinstance(op, FuncOp):
                lines.append(FunctionText(self, op).text())
            elif isinstance(op, GlobalOp):
                lines.append(self.global_(op))
            elif isinstance(op, GlobalDtorsOp):
                lines.append(_destructors(op))
            else:
                raise _refused(op)
        lines.extend(text for name, text in self.declared.items() if name not in self.defined)
        for text, number in self.attribute_groups.items():
            lines.append(f"attributes #{number} = {{ {text} }}")
        if self.uses_nontemporal:
            lines.append("!0 = !{i32 1}")
        if self.uses_invariant:
            lines.append("!1 = !{}")
        return "\n".join(lines) + "\n"

    def type(self, type_: Attribute) -> str:
        """LLVM's name of a type."""
        text = self.types.get(id(type_))
        if text is None:
            text = self.types[id(type_)] = self._type(type_)
            self.kept.append(type_)
        return text

    def _type(self, type_: Attribute) -> str:
        if isinstance(type_, IntegerType):
            return f"i{cast(Any, type_).width.data}"
        if (name := _FLOATS.get(type(type_))) is not None:
            return name
        if isinstance(type_, VectorType):
            (size,) = type_.get_shape()
            return f"<{size} x {self.type(cast(Any, type_).element_type)}>"
        if isinstance(type_, LLVMPointerType):
            return "ptr" + _space(type_.addr_space)
        if isinstance(type_, LLVMVoidType):
            return "void"
        if isinstance(type_, LLVMArrayType):
            return f"[{type_.size.data} x {self.type(type_.type)}]"
        if isinstance(type_, LLVMStructType):
            return "{ " + ", ".join(self.type(t) for t in type_.types) + " }"
        if isinstance(type_, IndexType):
            return "i64"
        if isinstance(type_, LLVMX86AMXType):
            return "x86_amx"
        raise error("HLO0430", f"LLVM has no type for `{type_}`")

    def group(self, attributes: str) -> int:
        """Number of a group of function attributes."""
        return self.attribute_groups.setdefault(attributes, len(self.attribute_groups))

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        if name not in self.declared:
            self.declared[name] = f"declare {result} @{symbol(name)}({', '.join(arguments)})"

    def intrinsic(
        self, name: str, result_type: Attribute | None, types: Sequence[Attribute]
    ) -> str:
        """What a call of an intrinsic calls, after its result's type."""
        key = (name, id(result_type), *map(id, types))
        found = self.intrinsics.get(key)
        if found is None:
            if name not in OVERLOADED:
                raise error(
                    "HLO0430",
                    f"the intrinsic `{name}` is not one that generated code may call",
                    help="mlirhlo/lowering/intrinsics.py lists those that are",
                )
            spelled = [self.type(t) for t in types]
            result = "void" if result_type is None else self.type(result_type)
            full = mangled(name, result, spelled)
            self.declare(full, result, spelled)
            found = self.intrinsics[key] = f"{result} @{full}"
        return found

    def global_(self, op: GlobalOp) -> str:
        name = op.sym_name.data
        self.defined.add(name)
        kind = "constant" if op.constant is not None else "global"
        if op.addr_space.value.data:
            kind = f"addrspace({op.addr_space.value.data}) {kind}"
        thread = "thread_local " if op.thread_local_ is not None else ""
        value = "zeroinitializer"
        if op.addr_space.value.data == _SHARED:
            value = "poison"
        elif isinstance(op.value, BytesAttr):
            value = f"c{bytes_text(op.value.data.decode('latin-1'))}"
        elif isinstance(op.value, StringAttr):
            value = f"c{bytes_text(op.value.data.encode().decode('latin-1'))}"
        elif op.value is not None and not isinstance(op.value, ZeroAttr):
            value = self.constant(op.value, op.global_type)
        align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
        linkage = op.linkage.linkage.data + " "
        if linkage == "external ":
            if op.value is None:
                return f"@{symbol(name)} = external {kind} {self.type(op.global_type)}{align}"
            linkage = ""  # LLVM's word for what is defined elsewhere
        type_ = self.type(op.global_type)
        return f"@{symbol(name)} = {linkage}{thread}{kind} {type_} {value}{align}"

    def constant(self, value: Attribute, type_: Attribute) -> str:
        """A constant of `type_` as LLVM writes it after the type."""
        if isinstance(value, IntegerAttr):
            number = value.value.data
            if isinstance(type_, IntegerType) and cast(Any, type_).width.data == 1:
                return "true" if number & 1 else "false"
            return str(number)
        if isinstance(value, FloatAttr):
            return float_text(value.value.data, type_)
        if isinstance(value, DenseIntOrFPElementsAttr):
            dense = cast(Any, value)
            element = (
                cast(Any, type_).element_type
                if isinstance(type_, VectorType)
                else (cast(LLVMArrayType, type_).type)
            )
            spelled = self.type(element)
            count, data = len(dense), dense.data.data
            first = data[: len(data) // count]
            is_splat = first * count == data  # by bits: zeros have signs
            numbers: Sequence[float] = (
                dense.get_element_type().unpack(first, 1) if is_splat else dense.get_values()
            )
            texts = [
                float_text(v, element)
                if not isinstance(element, IntegerType)
                else (("true" if v else "false") if cast(Any, element).width.data == 1 else str(v))
                for v in numbers
            ]
            if is_splat and isinstance(type_, VectorType):
                return f"splat ({spelled} {texts[0]})"
            if is_splat:
                texts *= cast(LLVMArrayType, type_).size.data
            brackets = "<>" if isinstance(type_, VectorType) else "[]"
            return brackets[0] + ", ".join(f"{spelled} {t}" for t in texts) + brackets[1]
        raise error("HLO0430", f"LLVM has no constant `{value}`")


_CONSTANTS: dict[int, tuple[Attribute, Attribute, str]] = {}
"""Vectors of numbers as they are written, by the identity of what stands beside them with its type."""
_MOST = 1 << 12


def _constant_text(printer: ModuleText, value: Attribute, type_: Attribute) -> str:
    """`ModuleText.constant`; of vectors, which lowerings have one object for, remembered."""
    if type(value) is not DenseIntOrFPElementsAttr:
        return printer.constant(value, type_)
    found = _CONSTANTS.get(id(value))
    if found is None or found[1] is not type_:
        if len(_CONSTANTS) >= _MOST:
            _CONSTANTS.clear()
        found = _CONSTANTS[id(value)] = value, type_, printer.constant(value, type_)
    return found[2]


class FunctionText:
    """Writes one function."""

    def __init__(self, printer: ModuleText, op: FuncOp) -> None:
        self.printer = printer
        self.op = op
        self.names: dict[SSAValue, str] = {}
        self.words: dict[SSAValue, str] = {}
        """Names after their types."""
        self.blocks: dict[Block, str] = {}
        self.lines: list[str] = []
        self.count = 0

    def text(self) -> str:
        op, printer = self.op, self.printer
        signature = op.function_type
        name = op.sym_name.data
        result = printer.type(signature.output)
        given = op.arg_attrs.data if op.arg_attrs is not None else ()
        arguments: list[str] = []
        blocks = list(op.body.blocks)
        for at, type_ in enumerate(signature.inputs):
            words = [printer.type(type_)]
            if at < len(given):
                words += _argument_attributes(printer, given[at].data)
            if blocks:
                argument = blocks[0].args[at]
                self.names[argument] = f"%a{at}"
                words.append(f"%a{at}")
            arguments.append(" ".join(words))
        if not blocks:
            if signature.is_variadic:
                arguments.append("...")
            printer.declared[name] = f"declare {result} @{symbol(name)}({', '.join(arguments)})"
            return ""
        printer.defined.add(name)
        linkage = op.linkage.linkage.data
        linkage = "" if linkage == "external" else linkage + " "
        if KERNEL in op.attributes:
            linkage += "ptx_kernel "
        group = f" #{printer.group(_function_attributes(op))}"
        for at, block in enumerate(blocks):
            self.blocks[block] = f"b{at}"
            if at:
                for argument in block.args:
                    self.names[argument] = self.fresh()
        for at, block in enumerate(blocks):
            self.lines.append(f"b{at}:")
            if at and block.args:
                self.phis(block)
            self.instructions(block)
        body = "\n".join(self.lines)
        head = f"define {linkage}{result} @{symbol(name)}({', '.join(arguments)}){group}"
        return f"{head} {{\n{body}\n}}"

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def ref(self, value: SSAValue) -> str:
        """How a value is written as an operand, without its type."""
        text = self.names.get(value)
        if text is None:
            assert type(value) is OpResult
            owner = value.op
            # Only phis read what a later line defines.
            text = self.inline(owner) if owner.name in _INLINE else self.fresh()
            self.names[value] = text
        return text

    def typed(self, value: SSAValue) -> str:
        """A value after its type."""
        text = self.words.get(value)
        if text is None:
            type_ = value.type
            spelled = self.printer.types.get(id(type_)) or self.printer.type(type_)
            name = self.names.get(value) or self.ref(value)
            text = self.words[value] = f"{spelled} {name}"
        return text

    def inline(self, op: Operation) -> str:
        """Constants and addresses have no line of their own."""
        name = op.name
        if name == "llvm.mlir.constant":
            (result,) = op.results
            return _constant_text(self.printer, op.properties["value"], result.type)
        if name == "llvm.mlir.zero":
            type_ = op.results[0].type
            return "null" if isinstance(type_, LLVMPointerType) else "zeroinitializer"
        if name == "llvm.mlir.undef":
            return "poison"
        if name == "llvm.mlir.addressof":
            target = cast(Any, op.properties["global_name"]).root_reference.data
            return f"@{symbol(target)}"
        raise _refused(op)

    def phis(self, block: Block) -> None:
        sources: list[str] = []
        passed: list[Sequence[SSAValue]] = []
        for jump, index in sorted(jumps_to(block), key=self._order):
            source = jump.parent
            assert source is not None
            sources.append(self.blocks[source])
            passed.append(_passed(jump, index))
        names = self.names
        for argument, *values in zip(block.args, *passed, strict=True):
            pairs = ", ".join(
                [
                    f"[ {names.get(value) or self.ref(value)}, %{source} ]"
                    for value, source in zip(values, sources, strict=True)
                ]
            )
            type_ = self.printer.type(argument.type)
            self.lines.append(f"  {names[argument]} = phi {type_} {pairs}")

    def _order(self, edge: tuple[Operation, int]) -> tuple[int, int]:
        """Of jumps, as they are in the text: the order of uses depends on how a module was built."""
        jump, index = edge
        assert jump.parent is not None
        return int(self.blocks[jump.parent][1:]), index

    def instructions(self, block: Block) -> None:
        """Those of a block after its phis."""
        names, lines, writers = self.names, self.lines, self.printer.writers
        for op in ops_of(block):
            write = writers.get(op.name)
            if write is None:
                if op.name in _INLINE:
                    continue
                raise _refused(op)
            text = write(self, op)
            for result in op.results:
                # A forward reference of a phi may have named it already.
                name = names.get(result)
                if name is None:
                    self.count += 1  # `fresh`, without a call
                    name = names[result] = f"%v{self.count}"
                text = f"{name} = {text}"
            lines.append(f"  {text}")

    def call(self, name: str, op: Operation, operands: Sequence[SSAValue], flags: str = "") -> str:
        """A call of an intrinsic, which is declared on the way."""
        result_type = None
        for result in op.results:
            result_type = result.type
        called = self.printer.intrinsic(name, result_type, [v.type for v in operands])
        return f"call {flags}{called}({', '.join(map(self.typed, operands))})"


_INLINE = frozenset(
    {"llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.undef", "llvm.mlir.addressof"}
)


def _destructors(op: GlobalDtorsOp) -> str:
    type_, names = "{ i32, ptr, ptr }", op.dtors.data
    rows = [
        f"{type_} {{ i32 {number.value.data}, ptr @{symbol(name.root_reference.data)}, ptr null }}"
        for name, number in zip(names, op.priorities.data, strict=True)
    ]
    array = f"[{len(rows)} x {type_}] [{', '.join(rows)}]"
    return f"@llvm.global_dtors = appending global {array}"


def _space(space: Attribute) -> str:
    number = cast(int, cast(Any, space).data) if isinstance(space, IntAttr) else 0
    return f" addrspace({number})" if number else ""


def _refused(op: Operation) -> Exception:
    return error("HLO0430", f"`{op.name}` cannot be written as LLVM's text")


def _argument_attributes(printer: ModuleText, given: Mapping[str, Attribute]) -> Iterable[str]:
    for key, value in given.items():
        word = key.removeprefix("llvm.")
        if word == key:
            yield f'"{word}"'
        elif isinstance(value, TypeAttribute):
            yield f"{word}({printer.type(value)})"
        elif isinstance(value, IntegerAttr):
            number = value.value.data
            yield f"{word} {number}" if word == "align" else f"{word}({number})"
        else:
            yield word


def _function_attributes(op: FuncOp) -> str:
    words = ["nounwind"]
    if (sizes := op.attributes.get(BLOCK_SIZE)) is not None:
        words.append(f'"{BLOCK_SIZE}"="{",".join(map(str, ints(sizes)))}"')
        if prod(ints(sizes)) >= _LARGE_BLOCK:
            words.append('"nvvm.minctasm"="1"')
    if (sizes := op.attributes.get(CLUSTER_SIZE)) is not None:
        words.append(f'"{CLUSTER_SIZE}"="{",".join(map(str, ints(sizes)))}"')
    # Read from text, it is where xDSL's reader puts what follows `attributes`.
    given = op.passthrough or cast("ArrayAttr[Attribute] | None", op.attributes.get("passthrough"))
    if given is not None:
        for item in given:
            if isinstance(item, ArrayAttr):
                key, value = (cast(StringAttr, x).data for x in cast("ArrayAttr[Attribute]", item))
                words.append(f'"{key}"="{value}"')
            else:
                words.append(cast(StringAttr, item).data)
    return " ".join(words)


def _passed(jump: Operation, index: int) -> Sequence[SSAValue]:
    """The operands a jump passes to its successor number `index`."""
    operands = tuple(operands_of(jump))
    if jump.name == "llvm.br":
        return operands
    sizes = ints(jump.properties["operandSegmentSizes"])
    start = sizes[0] + sum(sizes[1 : 1 + index])
    return operands[start : start + sizes[1 + index]]
