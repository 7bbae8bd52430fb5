"""The walk over a loops module, and what the handlers of its ops share.

Each op has one handler, found by name; structured control flow becomes blocks with arguments. Memrefs
are bare pointers: their shapes and strides are static and go into the address arithmetic, whose
constants are folded on the way. `index` is i64, on GPUs i32 where that is enough.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeVar, cast

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
    i8,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.amx import TileType
from mlirhlo.dialects.interned import dictionary, integer64, integers32, string, symbol_ref
from mlirhlo.dialects.quick import append, create_op, ops_of
from mlirhlo.lowering.builder import SELDOM
from mlirhlo.lowering.loops_to_llvm.effort import (
    NO_FUNCTIONS,
    Heavy,
    loops_of_light,
)
from mlirhlo.lowering.loops_to_llvm.indices import POINTER, IndexBuilder, pointer_in
from mlirhlo.lowering.loops_to_llvm.values import Values

OpT = TypeVar("OpT", bound=Operation)

LESS, NOT_LESS = IntegerAttr(2, i64), IntegerAttr(5, i64)
"""`slt` and `sge`."""
_C = xllvm.CallingConventionAttr("ccc")
_PUBLIC, _PRIVATE = xllvm.LinkageAttr("external"), xllvm.LinkageAttr("internal")
_DEFAULT = IntegerAttr(0, 64)
"""Visibility."""
_VOID = xllvm.LLVMVoidType()
_NO_TAIL_CALL = xllvm.TailCallKindAttr(xllvm.TailCallKind.NONE)
_NO_FAST_MATH = xllvm.FastMathAttr(None)
_NO_OVERFLOW = xllvm.OverflowAttr(None)

Handler = Callable[["Lowering", Any], None]


@functools.lru_cache
def _signature(output: Attribute, *inputs: Attribute) -> xllvm.LLVMFunctionType:
    return xllvm.LLVMFunctionType(inputs, output)


def no_lowering(op: Operation, why: str = "") -> HloError:
    """The error for an op that loops may not hold."""
    return error("HLO0431", f"`{op.name}` has no lowering to the llvm dialect{why}")


def converted(type_: Attribute, index: IntegerType = i64) -> Attribute:
    """The llvm dialect's type for one of the loops stage, where `index` is that integer."""
    kind = type(type_)
    if kind is IndexType:
        return index
    if kind is MemRefType:
        space = cast("MemRefType[Any]", type_).memory_space
        return pointer_in(space.value.data) if isinstance(space, IntegerAttr) else POINTER
    if kind is TileType:
        return llvm.LLVMX86AMXType()
    if kind is VectorType:
        vector = cast("VectorType[Attribute]", type_)
        return VectorType(index, vector.shape) if type(vector.element_type) is IndexType else vector
    return type_


class Lowering(IndexBuilder):
    """One function on its way to the llvm dialect."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        top: dict[str, Operation],
        name: str,
        passthrough: Sequence[ArrayAttr[Any]],
        heavy: Heavy = NO_FUNCTIONS,
        *,
        is_task: bool = False,
        index: IntegerType = i64,
    ) -> None:
        super().__init__(index)
        self.handlers = handlers
        self.top = top
        """Globals and functions made on the way, by their names."""
        self.name = name
        self.passthrough = passthrough
        """Attributes of functions whose time counts, and of those whose does not."""
        self.heavy = heavy
        """What outweighs a loop around it."""
        self.apart: Set[Operation] = frozenset()
        """Loops that become functions of their own."""
        self.callee: FuncOp | None = None
        """A function that is lowered where it is called."""
        self.is_seldom = False
        """Whether its own time does not count beside LLVM's."""
        self.is_task = is_task
        """Whether the thread pool calls it: then nothing in it is cut again."""
        self.values = Values(self.constant_of)
        self.types: dict[int, Attribute] = {}
        """By identity: hashing a type costs more than lowering an op."""
        self.strides: dict[int, Sequence[int]] = {}
        """Of memrefs, in the same way."""
        self.sizes: dict[int, int] = {}
        """Of elements in memory, in bytes, in the same way."""
        self.poisons: dict[int, SSAValue] = {}
        """By the numbers of their types."""
        self.kept: list[Attribute] = []
        """What these know, so that it lives as long as they do."""
        self.argument_attributes: dict[SSAValue, DictionaryAttr] = {}
        """Of the function's arguments, in the llvm dialect."""
        self._numbers = 0

    def function(self, op: FuncOp) -> Operation:
        """The `llvm.func` of a `func.func`."""
        signature = op.function_type
        outputs = [self.convert(t) for t in signature.outputs]
        if len(outputs) > 1:
            raise no_lowering(op, ": a function returns one value at most")
        inputs = [self.convert(t) for t in signature.inputs]
        attributes = [
            dictionary({k: v for k, v in a.data.items() if k.startswith("llvm.")})
            for a in op.arg_attrs or ()
        ]
        self.is_seldom = SELDOM in op.attributes
        if op.body.blocks:
            first = op.body.blocks[0]
            self.judge(first, is_public=_is_public(op))
            arguments = self.begin(inputs)
            self.values.update(zip(first.args, arguments, strict=True))
            self.argument_attributes.update(zip(arguments, attributes, strict=False))
            self.ops(first)
        output = outputs[0] if outputs else _VOID
        return self.end(inputs, attributes, output, is_public=_is_public(op))

    def judge(self, body: Block, *, is_public: bool) -> None:
        """Finds whether the function's own time counts, given its body in the loops stage."""
        found = loops_of_light(body, self.heavy, is_task=self.is_task, is_public=is_public)
        if found is not None:
            self.is_seldom, self.apart = True, found

    def end(
        self,
        inputs: Sequence[Attribute],
        attributes: Sequence[DictionaryAttr] = (),
        output: Attribute | None = None,
        *,
        is_public: bool = False,
    ) -> Operation:
        """The finished function."""
        properties: dict[str, Attribute] = {
            "sym_name": string(self.name),
            "function_type": _signature(_VOID if output is None else output, *inputs),
            "CConv": _C,
            "linkage": _PUBLIC if is_public else _PRIVATE,
            "visibility_": _DEFAULT,
        }
        if attributes:
            properties["arg_attrs"] = ArrayAttr(attributes)
        if self.body.blocks:
            self.remove_unread()
            properties["passthrough"] = self.passthrough[self.is_seldom]
            append(self.entry, create_op(xllvm.BrOp, successors=[self.first]))
        return create_op(xllvm.FuncOp, properties=properties, regions=[self.body])

    def declare(self, name: str, inputs: Sequence[Attribute]) -> None:
        """Says that there is a function outside, without a result."""
        if name not in self.top:
            outside = Lowering(self.handlers, self.top, name, self.passthrough)
            self.top[name] = outside.end(inputs, is_public=True)

    def next_number(self) -> int:
        """Numbers of the functions cut out of this one."""
        self._numbers += 1
        return self._numbers - 1

    def ops(self, block: Block, *, ends: bool = True) -> None:
        """Lowers the ops of a block in order into the current one; not its last unless `ends`."""
        handlers = self.handlers
        for op in ops_of(block)[: None if ends else -1]:
            handler = handlers.get(name := op.name)
            if handler is None:
                if name == "arith.constant":
                    continue  # made when it is read
                raise no_lowering(op)
            if name[:6] == "arith.":
                (result,) = op.results
                if result.first_use is None:
                    continue
            handler(self, op)

    def call(self, name: str, operands: Sequence[SSAValue]) -> bool:
        """Lowers the function of a name where it is called, if that is `callee`; whether it is."""
        callee = self.callee
        if callee is None or callee.sym_name.data != name:
            return False
        body = callee.body.blocks[0]
        self.values.update(zip(body.args, operands, strict=True))
        outer, self.name = self.name, name
        self.ops(body, ends=False)
        self.name = outer
        return True

    def constant_of(self, op: Operation) -> SSAValue:
        """The constant that an `arith.constant` is."""
        (result,) = op.results
        type_ = self.convert(result.type)
        value = op.properties["value"]
        if type(value) is IntegerAttr and type(type_) is IntegerType:
            return self.constant(value.value.data, type_)
        if type(value) is DenseIntOrFPElementsAttr and type_ is not result.type:
            value = DenseIntOrFPElementsAttr.from_list(
                cast(Any, type_), cast(Any, list(value.get_values()))
            )
        made = create_op(xllvm.ConstantOp, (), (type_,), {"value": value})
        append(self.entry, made)
        (found,) = made.results
        return found

    def convert(self, type_: Attribute) -> Attribute:
        """`converted`, remembered."""
        new = self.types.get(id(type_))
        if new is None:
            new = self.types[id(type_)] = converted(type_, self.index)
            self.kept.append(type_)
        return new

    def jump(self, target: Block, values: Sequence[SSAValue] = ()) -> None:
        """Ends the current block by a jump."""
        append(self.block, create_op(xllvm.BrOp, values, successors=[target]))

    def branch(
        self,
        condition: SSAValue,
        then: Block,
        other: Block,
        then_values: Sequence[SSAValue] = (),
        other_values: Sequence[SSAValue] = (),
    ) -> None:
        """Ends the current block by a jump to `then` where `condition` holds, else to `other`."""
        sizes = integers32(1, len(then_values), len(other_values))
        append(
            self.block,
            create_op(
                xllvm.CondBrOp,
                [condition, *then_values, *other_values],
                properties={"operandSegmentSizes": sizes},
                successors=[then, other],
            ),
        )

    def truncate(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """The low bits of an integer."""
        return self.emit(xllvm.TruncOp, (value,), type_, {"overflowFlags": _NO_OVERFLOW})

    def poison(self, type_: Attribute) -> SSAValue:
        """A value that says nothing, one for a function."""
        kind = self.kind(type_)
        found = self.poisons.get(kind)
        if found is None:
            made = create_op(xllvm.UndefOp, (), (type_,))
            append(self.entry, made)
            found = self.poisons[kind] = made.results[0]
        return found

    def scratch(self, size_bytes: int) -> SSAValue:
        """A pointer to that many bytes on the stack, 64 bytes aligned."""
        made = create_op(
            xllvm.AllocaOp,
            [self.constant(size_bytes)],
            [POINTER],
            {"elem_type": i8, "alignment": integer64(64)},
        )
        self.entry.add_op(made)
        return made.results[0]

    def strides_of(self, memref: SSAValue) -> Sequence[int]:
        """Element strides of a memref of the loops stage, remembered."""
        type_ = cast("MemRefType[Any]", memref.type)
        steps = self.strides.get(id(type_))
        if steps is None:
            steps = self.strides[id(type_)] = strides(type_)
            self.kept.append(type_)
        return steps

    def byte_size(self, element: Attribute) -> int:
        """Bytes between neighbours of an element type, remembered; pointers included."""
        size = self.sizes.get(id(element))
        if size is None:
            size = 8 if type(element) is MemRefType else cast(int, cast(Any, element).size)
            self.sizes[id(element)] = size
            self.kept.append(element)
        return size

    def address(self, memref: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """Pointer to an element of a memref of the loops stage."""
        type_ = cast("MemRefType[Any]", memref.type)
        offsets = [
            self.times(self.values[index], stride)
            for index, stride in zip(indices, self.strides_of(memref), strict=True)
        ]
        return self.moved(self.values[memref], offsets, self.convert(type_.element_type))


def counted(
    to: Lowering,
    lower: SSAValue,
    upper: SSAValue,
    step: SSAValue,
    body: Callable[[SSAValue], None],
) -> None:
    """A loop without carried values; the test stands at its end, behind one in front for none."""
    head, after = to.add_block([to.index]), to.add_block()
    known = to.known.get(lower), to.known.get(upper)
    if known[0] is not None and known[1] is not None and known[0] < known[1]:
        to.jump(head, [lower])
    else:
        # The loop's block follows: LLVM would turn a jump to it around.
        none = to.emit(xllvm.ICmpOp, (lower, upper), i1, {"predicate": NOT_LESS})
        to.branch(none, after, head, (), [lower])
    to.enter(head)
    body(head.args[0])
    following = to.add(head.args[0], step)
    again = to.emit(xllvm.ICmpOp, (following, upper), i1, {"predicate": LESS})
    to.branch(again, head, after, [following])
    to.leave(after)


def llvm_call(
    to: Lowering, name: str, operands: Sequence[SSAValue], types: Sequence[Attribute] = ()
) -> Sequence[SSAValue]:
    """Calls a function of the llvm dialect; its results."""
    properties: dict[str, Attribute] = {
        "callee": symbol_ref(name),
        "fastmathFlags": _NO_FAST_MATH,
        "CConv": _C,
        "op_bundle_sizes": integers32(),
        "operandSegmentSizes": integers32(len(operands), 0),
        "TailCallKind": _NO_TAIL_CALL,
    }
    made = create_op(xllvm.CallOp, operands, types, properties)
    append(to.block, made)
    return made.results


def strides(type_: MemRefType[Any]) -> Sequence[int]:
    """Element strides of a memref. Raises `HloError` HLO0431 when they are not static."""
    found = type_.get_strides()
    if found is None or any(s is None for s in found):
        raise error("HLO0431", f"`{type_}` has strides that are not known")
    return cast("Sequence[int]", found)


def _is_public(op: FuncOp) -> bool:
    return op.sym_visibility is None or op.sym_visibility.data != "private" or not op.body.blocks
