"""The llvm dialect as LLVM's own text.

Straight from the ops, one line an op: constants are written where they are used, block arguments
become phis. LLVM parses the result; what the dialect's verifier accepts must be valid there.
Source: LLVM language reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    VectorType,
)
from xdsl.dialects.llvm import (
    FCmpPredicateFlag,
    FuncOp,
    GlobalOp,
    ICmpPredicateFlag,
    LLVMArrayType,
    LLVMFunctionType,
    LLVMPointerType,
    LLVMStructType,
    LLVMVoidType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.llvm import LLVMX86AMXType
from mlirhlo.lowering.intrinsics import OVERLOADED, mangled
from mlirhlo.lowering.llvm_spelling import byte, float_text, symbol

_FLOATS: Mapping[type[Attribute], str] = {
    BFloat16Type: "bfloat",
    Float16Type: "half",
    Float32Type: "float",
    Float64Type: "double",
}


def print_llvm(module: ModuleOp) -> str:
    """LLVM assembly of a module of `llvm.func` and `llvm.mlir.global` ops.

    Raises `HloError` HLO0430 for an op that is not of the llvm dialect or an intrinsic that is not
    allowed.
    """
    return _Printer().module(module)


class _Printer:
    def __init__(self) -> None:
        self.types: dict[Attribute, str] = {}
        self.declared: dict[str, str] = {}
        """Declarations of intrinsics, by name."""
        self.defined: set[str] = set()
        self.attribute_groups: dict[str, int] = {}
        self.uses_nontemporal = False

    def module(self, module: ModuleOp) -> str:
        lines: list[str] = []
        for op in module.body.block.ops:
            if isinstance(op, FuncOp):
                lines.append(_Function(self, op).text())
            elif isinstance(op, GlobalOp):
                lines.append(self.global_(op))
            else:
                raise _refused(op)
        lines.extend(text for name, text in self.declared.items() if name not in self.defined)
        for text, number in self.attribute_groups.items():
            lines.append(f"attributes #{number} = {{ {text} }}")
        if self.uses_nontemporal:
            lines.append("!0 = !{i32 1}")
        return "\n".join(lines) + "\n"

    def type(self, type_: Attribute) -> str:
        """LLVM's name of a type."""
        text = self.types.get(type_)
        if text is None:
            text = self.types[type_] = self._type(type_)
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
            return "ptr"
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

    def global_(self, op: GlobalOp) -> str:
        name = op.sym_name.data
        self.defined.add(name)
        kind = "constant" if op.constant is not None else "global"
        thread = "thread_local " if op.thread_local_ is not None else ""
        value = "zeroinitializer"
        if isinstance(op.value, StringAttr):
            data = op.value.data.encode("latin-1")
            value = 'c"' + "".join(byte(b) for b in data) + '"'
        elif op.value is not None:
            value = self.constant(op.value, op.global_type)
        align = f", align {op.alignment.value.data}" if op.alignment is not None else ""
        linkage = op.linkage.linkage.data
        return (
            f"@{symbol(name)} = {linkage} {thread}{kind} {self.type(op.global_type)} {value}{align}"
        )

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
            element = (
                cast(Any, type_).element_type
                if isinstance(type_, VectorType)
                else (cast(LLVMArrayType, type_).type)
            )
            spelled = self.type(element)
            values = value.get_values()
            texts = [
                float_text(cast(float, v), element)
                if not isinstance(element, IntegerType)
                else (("true" if v else "false") if cast(Any, element).width.data == 1 else str(v))
                for v in (values[:1] if value.is_splat() else values)
            ]
            if value.is_splat() and isinstance(type_, VectorType):
                return f"splat ({spelled} {texts[0]})"
            if value.is_splat():
                texts *= cast(LLVMArrayType, type_).size.data
            brackets = "<>" if isinstance(type_, VectorType) else "[]"
            return brackets[0] + ", ".join(f"{spelled} {t}" for t in texts) + brackets[1]
        raise error("HLO0430", f"LLVM has no constant `{value}`")


class _Function:
    """Writes one function."""

    def __init__(self, printer: _Printer, op: FuncOp) -> None:
        self.printer = printer
        self.op = op
        self.names: dict[SSAValue, str] = {}
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
                words += _argument_attributes(given[at].data)
            if blocks:
                argument = blocks[0].args[at]
                self.names[argument] = f"%a{at}"
                words.append(f"%a{at}")
            arguments.append(" ".join(words))
        if not blocks:
            printer.declared[name] = f"declare {result} @{symbol(name)}({', '.join(arguments)})"
            return ""
        printer.defined.add(name)
        linkage = op.linkage.linkage.data
        linkage = "" if linkage == "external" else linkage + " "
        group = f" #{printer.group(_function_attributes(op))}"
        for at, block in enumerate(blocks):
            self.blocks[block] = f"b{at}"
            if at:
                for argument in block.args:
                    self.names[argument] = self.fresh()
        for at, block in enumerate(blocks):
            self.lines.append(f"b{at}:")
            if at:
                self.phis(block)
            for inner in block.ops:
                self.instruction(inner)
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
            owner = value.owner
            assert isinstance(owner, Operation)
            # Only phis read what a later line defines.
            text = self.inline(owner) if owner.name in _INLINE else self.fresh()
            self.names[value] = text
        return text

    def typed(self, value: SSAValue) -> str:
        """A value after its type."""
        return f"{self.printer.type(value.type)} {self.ref(value)}"

    def inline(self, op: Operation) -> str:
        """Constants and addresses have no line of their own."""
        name = op.name
        if name == "llvm.mlir.constant":
            return self.printer.constant(op.properties["value"], op.results[0].type)
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
        if not block.args:
            return
        incoming: list[tuple[str, Sequence[SSAValue]]] = []
        for use in block.uses:
            jump = use.operation
            source = jump.parent
            assert source is not None
            incoming.append((self.blocks[source], _passed(jump, use.index)))
        for at, argument in enumerate(block.args):
            pairs = ", ".join(f"[ {self.ref(v[at])}, %{source} ]" for source, v in incoming)
            type_ = self.printer.type(argument.type)
            self.lines.append(f"  {self.names[argument]} = phi {type_} {pairs}")

    def instruction(self, op: Operation) -> None:
        if op.name in _INLINE:
            return
        write = _WRITERS.get(op.name)
        if write is None:
            raise _refused(op)
        text = write(self, op)
        if op.results:
            # A forward reference of a phi may have named it already.
            result = op.results[0]
            name = self.names.get(result)
            if name is None:
                name = self.names[result] = self.fresh()
            text = f"{name} = {text}"
        self.lines.append(f"  {text}")

    def call(self, name: str, op: Operation, operands: Sequence[SSAValue], flags: str = "") -> str:
        """A call of an intrinsic, which is declared on the way."""
        printer = self.printer
        if name not in OVERLOADED:
            raise error(
                "HLO0430",
                f"the intrinsic `{name}` is not one that generated code may call",
                help="mlirhlo/lowering/intrinsics.py lists those that are",
            )
        types = [printer.type(v.type) for v in operands]
        result = printer.type(op.results[0].type) if op.results else "void"
        full = mangled(name, result, types)
        printer.declare(full, result, types)
        arguments = ", ".join(map(self.typed, operands))
        return f"call {flags}{result} @{full}({arguments})"


_INLINE = frozenset(
    {"llvm.mlir.constant", "llvm.mlir.zero", "llvm.mlir.undef", "llvm.mlir.addressof"}
)

_Writer = Callable[[_Function, Operation], str]


def _refused(op: Operation) -> Exception:
    return error("HLO0430", f"`{op.name}` cannot be written as LLVM's text")


def _argument_attributes(given: Mapping[str, Attribute]) -> Iterable[str]:
    for key, value in given.items():
        word = key.removeprefix("llvm.")
        if isinstance(value, IntegerAttr):
            number = value.value.data
            yield f"{word} {number}" if word == "align" else f"{word}({number})"
        else:
            yield word


def _function_attributes(op: FuncOp) -> str:
    words = ["nounwind"]
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
    if jump.name == "llvm.br":
        return jump.operands
    sizes = cast("tuple[int, ...]", cast(Any, jump.properties["operandSegmentSizes"]).get_values())
    start = sizes[0] + sum(sizes[1 : 1 + index])
    return jump.operands[start : start + sizes[1 + index]]


def _flags(op: Operation) -> str:
    """`nuw nsw ` of an integer op, `contract ` and so on of a float one."""
    fast = op.properties.get("fastmathFlags")
    if fast is not None:
        words = [str(f.value) for f in sorted(cast(Any, fast).data, key=str)]
        if len(words) == 7:
            return "fast "
        return "".join(w + " " for w in words)
    overflow = op.properties.get("overflowFlags")
    if isinstance(overflow, IntegerAttr):
        bits = overflow.value.data
        return ("nuw " if bits & 2 else "") + ("nsw " if bits & 1 else "")
    return ""


def _two(opcode: str) -> _Writer:
    def write(f: _Function, op: Operation) -> str:
        lhs, rhs = op.operands
        return f"{opcode} {_flags(op)}{f.typed(lhs)}, {f.ref(rhs)}"

    return write


def _cast_to(opcode: str) -> _Writer:
    def write(f: _Function, op: Operation) -> str:
        return f"{opcode} {f.typed(op.operands[0])} to {f.printer.type(op.results[0].type)}"

    return write


def _intrinsic(name: str) -> _Writer:
    def write(f: _Function, op: Operation) -> str:
        return f.call(name, op, op.operands, _flags(op))

    return write


def _compare(opcode: str, flags: Sequence[str]) -> _Writer:
    def write(f: _Function, op: Operation) -> str:
        lhs, rhs = op.operands
        number = cast(int, cast(Any, op.properties["predicate"]).value.data)
        return f"{opcode} {_flags(op)}{flags[number].strip('_')} {f.typed(lhs)}, {f.ref(rhs)}"

    return write


def _fneg(f: _Function, op: Operation) -> str:
    return f"fneg {_flags(op)}{f.typed(op.operands[0])}"


def _select(f: _Function, op: Operation) -> str:
    return "select " + _flags(op) + ", ".join(map(f.typed, op.operands))


def _freeze(f: _Function, op: Operation) -> str:
    return f"freeze {f.typed(op.operands[0])}"


def _tail(f: _Function, op: Operation) -> str:
    """Alignment and metadata of a load or store."""
    text = ""
    if (alignment := op.properties.get("alignment")) is not None:
        text = f", align {cast(Any, alignment).value.data}"
    if "nontemporal" in op.properties or "nontemporal" in op.attributes:
        f.printer.uses_nontemporal = True
        text += ", !nontemporal !0"
    return text


def _load(f: _Function, op: Operation) -> str:
    type_ = f.printer.type(op.results[0].type)
    return f"load {type_}, {f.typed(op.operands[0])}{_tail(f, op)}"


def _store(f: _Function, op: Operation) -> str:
    return f"store {f.typed(op.operands[0])}, {f.typed(op.operands[1])}{_tail(f, op)}"


def _gep(f: _Function, op: Operation) -> str:
    element = f.printer.type(op.properties["elem_type"])
    values = iter(op.operands[1:])
    raw = cast("tuple[int, ...]", cast(Any, op.properties["rawConstantIndices"]).get_values())
    indices = [f.typed(next(values)) if c == -(1 << 31) else f"i32 {c}" for c in raw]
    inbounds = "inbounds " if "inbounds" in op.properties else ""
    return f"getelementptr {inbounds}{element}, {', '.join([f.typed(op.operands[0]), *indices])}"


def _alloca(f: _Function, op: Operation) -> str:
    element = f.printer.type(op.properties["elem_type"])
    return f"alloca {element}, {f.typed(op.operands[0])}{_tail(f, op)}"


def _extract_element(f: _Function, op: Operation) -> str:
    return f"extractelement {f.typed(op.operands[0])}, {f.typed(op.operands[1])}"


def _insert_element(f: _Function, op: Operation) -> str:
    return "insertelement " + ", ".join(map(f.typed, op.operands))


def _shuffle(f: _Function, op: Operation) -> str:
    mask = cast("DenseArrayBase[Any]", op.properties["mask"]).get_values()
    lanes = "zeroinitializer"
    if any(mask):
        lanes = f"<{', '.join('i32 poison' if m < 0 else f'i32 {m}' for m in mask)}>"
    lhs, rhs = op.operands
    return f"shufflevector {f.typed(lhs)}, {f.typed(rhs)}, <{len(mask)} x i32> {lanes}"


def _extract_value(f: _Function, op: Operation) -> str:
    position = cast("DenseArrayBase[Any]", op.properties["position"]).get_values()
    return f"extractvalue {f.typed(op.operands[0])}, {', '.join(map(str, position))}"


def _insert_value(f: _Function, op: Operation) -> str:
    position = cast("DenseArrayBase[Any]", op.properties["position"]).get_values()
    values = ", ".join(map(f.typed, op.operands))
    return f"insertvalue {values}, {', '.join(map(str, position))}"


def _masked(name: str, alignment_at: int) -> _Writer:
    """Masked memory access; LLVM 22 takes the alignment as an attribute of the pointer."""

    def write(f: _Function, op: Operation) -> str:
        printer = f.printer
        align = cast(int, cast(Any, op.properties["alignment"]).value.data)
        types = [printer.type(v.type) for v in op.operands]
        result = printer.type(op.results[0].type) if op.results else "void"
        full = mangled(name, result, types)
        printer.declare(full, result, types)
        arguments = [f"{t} {f.ref(v)}" for t, v in zip(types, op.operands, strict=True)]
        arguments[alignment_at] = (
            f"{types[alignment_at]} align {align} {f.ref(op.operands[alignment_at])}"
        )
        return f"call {result} @{full}({', '.join(arguments)})"

    return write


def _call_intrinsic(f: _Function, op: Operation) -> str:
    name = cast(StringAttr, op.properties["intrin"]).data
    return f.call(name, op, op.operands, _flags(op))


def _call(f: _Function, op: Operation) -> str:
    result = f.printer.type(op.results[0].type) if op.results else "void"
    operands = list(op.operands)
    callee = op.properties.get("callee")
    if callee is None:
        target = f.ref(operands.pop(0))
    else:
        name = cast(Any, callee).root_reference.data
        target = f"@{symbol(name)}"
        f.printer.declare(name, result, [f.printer.type(v.type) for v in operands])
    arguments = ", ".join(map(f.typed, operands))
    variadic = op.properties.get("var_callee_type")
    if isinstance(variadic, LLVMFunctionType) and variadic.is_variadic:
        result += f" ({', '.join(f.printer.type(t) for t in variadic.inputs)}, ...)"
    return f"call {result} {target}({arguments})"


def _return(f: _Function, op: Operation) -> str:
    return f"ret {f.typed(op.operands[0])}" if op.operands else "ret void"


def _br(f: _Function, op: Operation) -> str:
    return f"br label %{f.blocks[op.successors[0]]}"


def _cond_br(f: _Function, op: Operation) -> str:
    then, other = (f.blocks[b] for b in op.successors)
    return f"br {f.typed(op.operands[0])}, label %{then}, label %{other}"


def _unreachable(f: _Function, op: Operation) -> str:
    del f, op
    return "unreachable"


_WRITERS: Mapping[str, _Writer] = {
    **{
        f"llvm.{name}": _two(name)
        for name in (
            *("add", "sub", "mul", "udiv", "sdiv", "urem", "srem"),
            *("and", "or", "xor", "shl", "lshr", "ashr"),
            *("fadd", "fsub", "fmul", "fdiv", "frem"),
        )
    },
    **{
        f"llvm.{name}": _cast_to(name)
        for name in (
            *("trunc", "zext", "sext", "fptosi", "fptoui", "sitofp", "uitofp"),
            *("fpext", "fptrunc", "bitcast", "ptrtoint", "inttoptr"),
        )
    },
    **{
        f"llvm.intr.{name}": _intrinsic(f"llvm.{name}")
        for name in (
            *("fabs", "ceil", "floor", "sqrt", "fma", "copysign", "maxnum", "minnum"),
            *("vector.reduce.fadd", "vector.reduce.fmul"),
        )
    },
    "llvm.icmp": _compare("icmp", [str(p.value) for p in ICmpPredicateFlag]),
    "llvm.fcmp": _compare("fcmp", [str(p.value) for p in FCmpPredicateFlag]),
    "llvm.fneg": _fneg,
    "llvm.select": _select,
    "llvm.freeze": _freeze,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.getelementptr": _gep,
    "llvm.alloca": _alloca,
    "llvm.extractelement": _extract_element,
    "llvm.insertelement": _insert_element,
    "llvm.shufflevector": _shuffle,
    "llvm.extractvalue": _extract_value,
    "llvm.insertvalue": _insert_value,
    "llvm.intr.masked.load": _masked("llvm.masked.load", 0),
    "llvm.intr.masked.store": _masked("llvm.masked.store", 1),
    "llvm.intr.masked.gather": _masked("llvm.masked.gather", 0),
    "llvm.intr.masked.scatter": _masked("llvm.masked.scatter", 1),
    "llvm.call_intrinsic": _call_intrinsic,
    "llvm.call": _call,
    "llvm.return": _return,
    "llvm.br": _br,
    "llvm.cond_br": _cond_br,
    "llvm.unreachable": _unreachable,
}
