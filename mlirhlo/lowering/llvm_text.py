"""LLVM assembly of modules of the llvm dialect, and how each op is written as an instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.llvm import (
    ATOMIC_ORDERING_KEYWORDS,
    GEP_USE_SSA_VAL,
    FastMathAttr,
    FCmpPredicateFlag,
    ICmpPredicateFlag,
    LLVMFunctionType,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.llvm import ATOMIC_OPERATIONS
from mlirhlo.dialects.quick import operands_of
from mlirhlo.lowering.intrinsics import mangled
from mlirhlo.lowering.llvm_module_text import FunctionText, ModuleText, Writer
from mlirhlo.lowering.llvm_spelling import symbol


def _flags(f: FunctionText, op: Operation) -> str:
    """`nuw nsw ` of an integer op, `contract ` and so on of a float one."""
    properties = op.properties
    given = properties.get("fastmathFlags") or properties.get("overflowFlags")
    if given is None:
        return ""
    known = f.printer.words
    text = known.get(id(given))
    if text is None:
        text = known[id(given)] = _flag_words(given)
        f.printer.kept.append(given)
    return text


def _flag_words(given: Attribute) -> str:
    if isinstance(given, FastMathAttr):
        words = [str(f.value) for f in sorted(given.data, key=str)]
        if len(words) == 7:
            return "fast "
        return "".join(w + " " for w in words)
    if isinstance(given, IntegerAttr):
        bits = given.value.data
        return ("nuw " if bits & 2 else "") + ("nsw " if bits & 1 else "")
    return ""


def _two(opcode: str) -> Writer:
    def write(f: FunctionText, op: Operation) -> str:
        lhs, rhs = operands_of(op)
        other = f.names.get(rhs) or f.ref(rhs)
        return f"{opcode} {_flags(f, op) if op.properties else ''}{f.typed(lhs)}, {other}"

    return write


def _cast_to(opcode: str) -> Writer:
    def write(f: FunctionText, op: Operation) -> str:
        return f"{opcode} {f.typed(operands_of(op)[0])} to {f.printer.type(op.results[0].type)}"

    return write


def _intrinsic(name: str) -> Writer:
    def write(f: FunctionText, op: Operation) -> str:
        return f.call(name, op, operands_of(op), _flags(f, op))

    return write


def _compare(opcode: str, flags: Sequence[str]) -> Writer:
    def write(f: FunctionText, op: Operation) -> str:
        lhs, rhs = operands_of(op)
        number = cast(int, cast(Any, op.properties["predicate"]).value.data)
        return f"{opcode} {_flags(f, op)}{flags[number].strip('_')} {f.typed(lhs)}, {f.ref(rhs)}"

    return write


def _fneg(f: FunctionText, op: Operation) -> str:
    return f"fneg {_flags(f, op)}{f.typed(operands_of(op)[0])}"


def _select(f: FunctionText, op: Operation) -> str:
    return "select " + _flags(f, op) + ", ".join(map(f.typed, operands_of(op)))


def _freeze(f: FunctionText, op: Operation) -> str:
    return f"freeze {f.typed(operands_of(op)[0])}"


def _tail(f: FunctionText, op: Operation) -> str:
    """Alignment and metadata of a load or store."""
    text = ""
    if (alignment := op.properties.get("alignment")) is not None:
        text = f", align {cast(Any, alignment).value.data}"
    if "nontemporal" in op.properties or "nontemporal" in op.attributes:
        f.printer.uses_nontemporal = True
        text += ", !nontemporal !0"
    if "invariant" in op.attributes:
        f.printer.uses_invariant = True
        text += ", !invariant.load !1"
    return text


def _load(f: FunctionText, op: Operation) -> str:
    (address,), (result,) = operands_of(op), op.results
    ordering = op.properties.get("ordering")
    number = 0 if ordering is None else cast(Any, ordering).value.data
    atomic, order = (
        ("atomic ", f"{_scope(op)} {ATOMIC_ORDERING_KEYWORDS[number]}") if number else ("", "")
    )
    return f"load {atomic}{f.printer.type(result.type)}, {f.typed(address)}{order}{_tail(f, op)}"


def _store(f: FunctionText, op: Operation) -> str:
    value, address = operands_of(op)
    ordering = op.properties.get("ordering")
    if ordering is None or not (number := cast(Any, ordering).value.data):
        return f"store {f.typed(value)}, {f.typed(address)}{_tail(f, op)}"
    order = f"{_scope(op)} {ATOMIC_ORDERING_KEYWORDS[number]}"
    return f"store atomic {f.typed(value)}, {f.typed(address)}{order}{_tail(f, op)}"


def _atomic_rmw(f: FunctionText, op: Operation) -> str:
    address, value = map(f.typed, operands_of(op))
    number = cast(int, cast(Any, op.properties["bin_op"]).value.data)
    order = f"{_scope(op)} {_ordering(op, 'ordering')}"
    return f"atomicrmw {ATOMIC_OPERATIONS[number]} {address}, {value}{order}"


def _atomic_cmpxchg(f: FunctionText, op: Operation) -> str:
    orders = " ".join(_ordering(op, f"{name}_ordering") for name in ("success", "failure"))
    return f"cmpxchg {', '.join(map(f.typed, operands_of(op)))}{_scope(op)} {orders}"


def _scope(op: Operation) -> str:
    scope = op.properties.get("syncscope")
    return "" if scope is None else f' syncscope("{cast(StringAttr, scope).data}")'


def _ordering(op: Operation, name: str) -> str:
    return ATOMIC_ORDERING_KEYWORDS[cast(Any, op.properties[name]).value.data]


def _inline_asm(f: FunctionText, op: Operation) -> str:
    texts = [cast(StringAttr, op.properties[name]).data for name in ("asm_string", "constraints")]
    asm, constraints = (f'"{text.translate(_ESCAPED)}"' for text in texts)
    effects = "sideeffect " if "has_side_effects" in op.properties else ""
    result = f.printer.type(op.results[0].type) if op.results else "void"
    arguments = ", ".join(map(f.typed, operands_of(op)))
    return f"call {result} asm {effects}{asm}, {constraints}({arguments})"


_ESCAPED = {ord(c): f"\\{ord(c):02X}" for c in '"\\\n\t'}


def _gep(f: FunctionText, op: Operation) -> str:
    properties = op.properties
    element = f.printer.type(properties["elem_type"])
    pointer, *values = map(f.typed, operands_of(op))
    indices = ints(properties["rawConstantIndices"])
    if len(indices) > len(values):
        rest = iter(values)
        values = [next(rest) if c == GEP_USE_SSA_VAL else f"i32 {c}" for c in indices]
    inbounds = "inbounds " if "inbounds" in properties else ""
    return f"getelementptr {inbounds}{', '.join([element, pointer, *values])}"


def _alloca(f: FunctionText, op: Operation) -> str:
    element = f.printer.type(op.properties["elem_type"])
    return f"alloca {element}, {f.typed(operands_of(op)[0])}{_tail(f, op)}"


def _extract_element(f: FunctionText, op: Operation) -> str:
    return f"extractelement {f.typed(operands_of(op)[0])}, {f.typed(operands_of(op)[1])}"


def _insert_element(f: FunctionText, op: Operation) -> str:
    return "insertelement " + ", ".join(map(f.typed, operands_of(op)))


def _shuffle(f: FunctionText, op: Operation) -> str:
    mask, known = op.properties["mask"], f.printer.words
    text = known.get(id(mask))
    if text is None:
        text = known[id(mask)] = _mask(ints(mask))
        f.printer.kept.append(mask)
    lhs, rhs = operands_of(op)
    return f"shufflevector {f.typed(lhs)}, {f.typed(rhs)}, {text}"


def _mask(lanes: Sequence[int]) -> str:
    words = "zeroinitializer"
    if any(lanes):
        words = f"<{', '.join('i32 poison' if n < 0 else f'i32 {n}' for n in lanes)}>"
    return f"<{len(lanes)} x i32> {words}"


def _extract_value(f: FunctionText, op: Operation) -> str:
    position = cast("DenseArrayBase[Any]", op.properties["position"]).get_values()
    return f"extractvalue {f.typed(operands_of(op)[0])}, {', '.join(map(str, position))}"


def _insert_value(f: FunctionText, op: Operation) -> str:
    position = cast("DenseArrayBase[Any]", op.properties["position"]).get_values()
    values = ", ".join(map(f.typed, operands_of(op)))
    return f"insertvalue {values}, {', '.join(map(str, position))}"


def _masked(name: str, alignment_at: int) -> Writer:
    """Masked memory access; LLVM 22 takes the alignment as an attribute of the pointer."""

    def write(f: FunctionText, op: Operation) -> str:
        printer = f.printer
        align = cast(int, cast(Any, op.properties["alignment"]).value.data)
        types = [printer.type(v.type) for v in operands_of(op)]
        result = printer.type(op.results[0].type) if op.results else "void"
        full = mangled(name, result, types)
        printer.declare(full, result, types)
        arguments = [f"{t} {f.ref(v)}" for t, v in zip(types, operands_of(op), strict=True)]
        arguments[alignment_at] = (
            f"{types[alignment_at]} align {align} {f.ref(operands_of(op)[alignment_at])}"
        )
        return f"call {result} @{full}({', '.join(arguments)})"

    return write


def _call_intrinsic(f: FunctionText, op: Operation) -> str:
    name = cast(StringAttr, op.properties["intrin"]).data
    return f.call(name, op, operands_of(op), _flags(f, op))


def _call(f: FunctionText, op: Operation) -> str:
    result = f.printer.type(op.results[0].type) if op.results else "void"
    operands = list(operands_of(op))
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


def _return(f: FunctionText, op: Operation) -> str:
    return f"ret {f.typed(operands_of(op)[0])}" if operands_of(op) else "ret void"


def _br(f: FunctionText, op: Operation) -> str:
    return f"br label %{f.blocks[op.successors[0]]}"


def _cond_br(f: FunctionText, op: Operation) -> str:
    then, other = (f.blocks[b] for b in op.successors)
    return f"br {f.typed(operands_of(op)[0])}, label %{then}, label %{other}"


def _unreachable(f: FunctionText, op: Operation) -> str:
    del f, op
    return "unreachable"


WRITERS: Mapping[str, Writer] = {
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
            "addrspacecast",
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
    "llvm.atomicrmw": _atomic_rmw,
    "llvm.cmpxchg": _atomic_cmpxchg,
    "llvm.inline_asm": _inline_asm,
}


def print_llvm(module: ModuleOp) -> str:
    """LLVM assembly of a module of `llvm.func` and `llvm.mlir.global` ops.

    Raises `HloError` HLO0430 for an op that is not of the llvm dialect or an intrinsic that is not
    allowed.
    """
    return ModuleText(WRITERS).module(module)
