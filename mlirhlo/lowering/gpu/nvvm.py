"""The gpu dialect to the llvm dialect with NVVM intrinsics.

Control flow, memory and arithmetic are lowered as in loops (`loops_to_llvm`); pointers have address spaces, and
`index` is i32 unless a buffer has more elements than that can count. Arguments that are `llvm.readonly` and
`llvm.noalias` are read as memory that nothing writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import gcd, prod
from typing import Any, cast

from xdsl.dialects import arith, gpu, math, memref
from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    VectorType,
    f32,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects import llvm
from mlirhlo.dialects.gpu import GLOBAL, SHARED, DynamicSharedMemoryOp, Shuffle, ShuffleOp
from mlirhlo.dialects.interned import UNIT, dictionary, integer64, symbol_ref
from mlirhlo.dialects.quick import append, create_op, module_of, operands_of, ops_of, region_of
from mlirhlo.lowering.gpu.kernel import KNOWN_CLUSTER, OF_THREADS
from mlirhlo.lowering.gpu.nvvm_atomics import HANDLERS as ATOMICS
from mlirhlo.lowering.gpu.nvvm_clusters import HANDLERS as CLUSTERS
from mlirhlo.lowering.gpu.nvvm_inline import HANDLERS as INLINE
from mlirhlo.lowering.gpu.nvvm_matrices import HANDLERS as MATRICES
from mlirhlo.lowering.gpu.nvvm_warp_groups import HANDLERS as WARP_GROUPS
from mlirhlo.lowering.llvm_module_text import BLOCK_SIZE, CLUSTER_SIZE, KERNEL
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.lowering.loops_to_llvm.convert import Handler, Lowering
from mlirhlo.lowering.loops_to_llvm.handlers import HANDLERS as LOOPS
from mlirhlo.lowering.loops_to_llvm.indices import pointer_in
from mlirhlo.lowering.loops_to_llvm.memory import access

ALIGNMENT = 16
"""Bytes that every buffer starts at a multiple of."""
SHARED_ALIGNMENT = 1024
"""Of buffers in shared memory: a whole pattern of swizzled rows."""
_WARP = 0xFFFFFFFF
_SPECIAL = {"thread_id": "tid", "block_id": "ctaid", "block_dim": "ntid", "grid_dim": "nctaid"}
_SHUFFLES = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}
_VIEWS = frozenset(
    f"memref.{name}"
    for name in ("subview", "view", "reinterpret_cast", "cast", "collapse_shape", "expand_shape")
)


def to_nvvm(module: gpu.ModuleOp) -> ModuleOp:
    """A module of the llvm dialect for the kernels of a `gpu.module`.

    Raises `HloError` HLO0804.
    """
    top: dict[str, Operation] = {}
    functions: list[Operation] = []
    index = index_type(module)
    for op in ops_of(module.body.block):
        if isinstance(op, gpu.FuncOp):
            functions.append(_lowering_of(op)(op, top, index).kernel())
        elif isinstance(op, memref.GlobalOp):
            top[op.sym_name.data] = _global(op)
        elif isinstance(op, FuncOp):
            name = op.sym_name.data
            to = Lowering(HANDLERS, top, name, _PASSTHROUGH, is_task=True, index=index)
            functions.append(to.function(op))
        else:
            raise _no_lowering(op)
    return module_of([*top.values(), *functions])


def _lowering_of(op: gpu.FuncOp) -> type[KernelLowering]:
    if OF_THREADS not in op.attributes:
        return KernelLowering
    # Built on this module.
    lowering: type[KernelLowering] = import_module(
        "mlirhlo.lowering.mosaic_gpu.threads"
    ).ThreadLowering
    return lowering


def index_type(module: gpu.ModuleOp) -> IntegerType:
    """i32 where that counts the bytes of every buffer, else i64."""
    for op in module.body.block.ops:
        for type_ in op.function_type.inputs if isinstance(op, gpu.FuncOp) else ():
            if isinstance(type_, MemRefType):
                sizes = [n for n in type_.get_shape() if n != DYNAMIC_INDEX]
                if prod(sizes) * cast(Any, type_).element_type.size >= 1 << 31:
                    return i64
    return i32


def space_of(type_: Attribute) -> int:
    """The address space of a memref."""
    space = cast("MemRefType[Any]", type_).memory_space
    return space.value.data if isinstance(space, IntegerAttr) else 0


def _no_lowering(op: Operation, why: str = "") -> HloError:
    return error("HLO0804", f"`{op.name}` has no lowering to NVVM{why}")


def _global(op: memref.GlobalOp) -> Operation:
    """Shared memory has no content at first; what has is constant, in global memory."""
    type_ = cast("MemRefType[Any]", op.type)
    space = space_of(type_) or GLOBAL
    properties: dict[str, Attribute] = {
        "global_type": xllvm.LLVMArrayType(
            IntAttr(prod(type_.get_shape())), cast(Attribute, type_.element_type)
        ),
        "sym_name": op.sym_name,
        "linkage": xllvm.LinkageAttr("internal"),
        "addr_space": IntegerAttr(space, i32),
        "alignment": integer64(_alignment(type_)),
    }
    if space != SHARED:
        properties |= {"constant": UNIT, "value": op.initial_value}
    return create_op(xllvm.GlobalOp, properties=properties, regions=[region_of()])


def _alignment(type_: MemRefType[Any]) -> int:
    """What LLVM may take a buffer to be aligned to: no more than divides its size, as it reads whole aligned
    vectors where some of their elements are wanted."""
    size = prod(type_.get_shape()) * type_.element_type.size
    most = SHARED_ALIGNMENT if space_of(type_) == SHARED else ALIGNMENT
    return gcd(size, most) if size > 0 else 1


class KernelLowering(Lowering):
    """One `gpu.func` on its way to the llvm dialect."""

    def __init__(self, op: gpu.FuncOp, top: dict[str, Operation], index: IntegerType) -> None:
        super().__init__(
            HANDLERS,
            top,
            op.sym_name.data,
            _PASSTHROUGH,
            is_task=True,
            index=index,
        )
        self.op = op
        self.constant_arguments: set[SSAValue] = set()
        """Memrefs that nothing writes while the kernel runs."""

    def kernel(self) -> Operation:
        """The `llvm.func`."""
        op = self.op
        body = op.body.blocks[0]
        inputs = [self.convert(t) for t in op.function_type.inputs]
        given = cast("ArrayAttr[DictionaryAttr] | None", op.attributes.get("arg_attrs"))
        attributes = [dict(a.data) for a in given or ()] or [{} for _ in inputs]
        for argument, words in zip(body.args, attributes, strict=True):
            type_: Attribute = argument.type
            if isinstance(type_, MemRefType) and "llvm.byval" not in words:
                words["llvm.align"] = integer64(_alignment(cast("MemRefType[Any]", type_)))
            if "llvm.readonly" in words and "llvm.noalias" in words:
                self.constant_arguments.add(argument)
        self.values.update(zip(body.args, self.begin(inputs), strict=True))
        self.ops(body)
        made = self.end(inputs, [dictionary(a) for a in attributes], is_public=True)
        if op.kernel is not None:
            made.attributes[KERNEL] = UNIT
        if op.known_block_size is not None:
            made.attributes[BLOCK_SIZE] = op.known_block_size
        if (cluster := op.attributes.get(KNOWN_CLUSTER)) is not None:
            made.attributes[CLUSTER_SIZE] = cluster
        return made

    def is_constant(self, source: SSAValue) -> bool:
        """Whether a memref is an argument, or a part of one, that nothing writes."""
        while not isinstance(source.owner, Block) and source.owner.name in _VIEWS:
            source = source.owner.operands[0]
        if isinstance(source.owner, memref.GetGlobalOp):
            return space_of(source.type) != SHARED
        return source in self.constant_arguments

    def special(self, name: str, dim: str = "") -> SSAValue:
        """A special register as an index."""
        dims = f".{dim}" if dim else ""
        value = intrinsic(self, f"llvm.nvvm.read.ptx.sreg.{name}{dims}", [], i32)
        return value if self.index is i32 else self.emit(xllvm.ZExtOp, [value], self.index)


_PASSTHROUGH: Sequence[ArrayAttr[Any]] = (ArrayAttr(()), ArrayAttr(()))


def _identity(name: str) -> Handler:
    def lower(to: KernelLowering, op: Any) -> None:
        # The same everywhere in the kernel: read at its start.
        here, to.block = to.block, to.entry
        to.values[op.result] = to.special(_SPECIAL[name], cast(str, op.dimension.data))
        to.block = here

    return cast(Handler, lower)


def _barrier(to: KernelLowering, op: gpu.BarrierOp) -> None:
    del op
    intrinsic(to, "llvm.nvvm.barrier.cta.sync.aligned.all", [to.constant(0, i32)], None)


def _shuffle(to: KernelLowering, op: ShuffleOp) -> None:
    """Of 32 bits at once; narrower ones are widened, wider ones go in halves. All threads of the warp take part."""
    width = to.known.get(to.values[op.width]) if to.index is i32 else None
    if width is None:
        owner = op.width.owner
        number = owner.properties.get("value") if isinstance(owner, Operation) else None
        if not isinstance(number, IntegerAttr):
            raise _no_lowering(op, " of a width that is not known")
        width = number.value.data
    mode = op.mode.data
    clamp = (32 - width) << 8 | (0 if mode is Shuffle.Up else 31)
    rest = [to.values[op.offset], to.constant(clamp, i32)]
    value = to.values[op.value]
    type_ = value.type

    def moved(part: SSAValue) -> SSAValue:
        kind = "f32" if part.type == f32 else "i32"
        name = f"llvm.nvvm.shfl.sync.{_SHUFFLES[mode]}.{kind}"
        return intrinsic(to, name, [to.constant(_WARP, i32), part, *rest], part.type)

    bits = cast(int, cast(Any, type_).bitwidth)
    if type_ in (f32, i32):
        to.values[op.shuffle_result] = moved(value)
        return
    integer = IntegerType(bits)
    if not isinstance(type_, IntegerType):
        value = to.emit(xllvm.BitcastOp, [value], integer)
    if bits < 32:
        value = to.truncate(moved(to.emit(xllvm.ZExtOp, [value], i32)), integer)
    else:
        shift = to.constant(32, i64)
        low = to.truncate(value, i32)
        high = to.truncate(to.emit(xllvm.LShrOp, [value, shift], i64), i32)
        low, high = (to.emit(xllvm.ZExtOp, [moved(v)], i64) for v in (low, high))
        flags: dict[str, Attribute] = {"overflowFlags": IntegerAttr(0, i32)}
        high = to.emit(xllvm.ShlOp, [high, shift], i64, flags)
        value = to.emit(xllvm.OrOp, [high, low], i64)
    if not isinstance(type_, IntegerType):
        value = to.emit(xllvm.BitcastOp, [value], type_)
    to.values[op.shuffle_result] = value


def _wide_shift(cls: type[Operation]) -> Handler:
    """By no more than the width, where numbers have 64 bits: LLVM takes a choice of 0 beyond the width for the
    instruction's own, which sees 32 bits of the number."""

    def lower(to: KernelLowering, op: Operation) -> None:
        x, by = (to.values[o] for o in op.operands)
        if by.type == i64:
            by = intrinsic(to, "llvm.umin", [by, to.constant(64, i64)], i64)
        to.values[op.results[0]] = to.emit(cls, [x, by], x.type, _shift_flags(cls))

    return cast(Handler, lower)


def _exp2(to: KernelLowering, op: math.Exp2Op) -> None:
    """Of f32, by the instruction that approximates it."""
    operand = to.values[op.operand]
    if operand.type != f32:
        raise _no_lowering(op, f" of {operand.type}")
    to.values[op.result] = intrinsic(to, "llvm.nvvm.ex2.approx.f", [operand], f32)


def _quotient(to: KernelLowering, op: arith.DivfOp) -> None:
    """Approximate ones of f32 by the instruction that divides within two units in the last place."""
    operands = [to.values[v] for v in (op.lhs, op.rhs)]
    if operands[0].type == f32 and FastMathFlag.APPROX_FUNC in op.fastmath.data:
        to.values[op.result] = intrinsic(to, "llvm.nvvm.div.full", operands, f32)
    else:
        LOOPS["arith.divf"](to, op)


def _shift_flags(cls: type[Operation]) -> dict[str, Attribute]:
    return {"overflowFlags": IntegerAttr(0, i32)} if cls is xllvm.ShlOp else {}


def _address_of(to: Lowering, name: StringAttr, type_: Attribute) -> SSAValue:
    pointer = pointer_in(space_of(type_) or GLOBAL)
    made = create_op(xllvm.AddressOfOp, (), [pointer], {"global_name": cast(Attribute, name)})
    append(to.entry, made)
    return made.results[0]


def _get_global(to: KernelLowering, op: memref.GetGlobalOp) -> None:
    address = _address_of(to, cast(Any, op.name_), op.memref.type)
    if not space_of(op.memref.type):
        made = create_op(llvm.AddrSpaceCastOp, [address], [pointer_in(0)])
        append(to.entry, made)
        address = made.results[0]
    to.values[op.memref] = address


def _space_cast(to: KernelLowering, op: memref.MemorySpaceCastOp) -> None:
    type_ = to.convert(op.dest.type)
    to.values[op.dest] = to.emit(llvm.AddrSpaceCastOp, [to.values[op.source]], type_)


def dynamic_shared(to: KernelLowering, op: DynamicSharedMemoryOp) -> None:
    """The shared memory whose size the launch says."""
    name = "dynamic_shared"
    if name not in to.top:
        properties: dict[str, Attribute] = {
            "global_type": xllvm.LLVMArrayType(IntAttr(0), i8),
            "sym_name": StringAttr(name),
            "linkage": xllvm.LinkageAttr("external"),
            "addr_space": IntegerAttr(SHARED, i32),
            "alignment": integer64(SHARED_ALIGNMENT),
        }
        to.top[name] = create_op(xllvm.GlobalOp, properties=properties, regions=[region_of()])
    pointer = pointer_in(SHARED)
    made = create_op(xllvm.AddressOfOp, (), [pointer], {"global_name": symbol_ref(name)})
    append(to.entry, made)
    to.values[op.results[0]] = made.results[0]


def _load(to: KernelLowering, op: Operation) -> None:
    """Of a scalar or a vector; a vector is aligned to the whole of it when the op says so."""
    base, *indices = operands_of(op)
    (result,) = op.results
    properties = _access(to, op, result.type)
    type_ = to.convert(result.type)
    made = create_op(xllvm.LoadOp, [to.address(base, indices)], [type_], properties)
    if to.is_constant(base):
        made.attributes["invariant"] = UNIT
    append(to.block, made)
    to.values[result] = made.results[0]


def _store(to: KernelLowering, op: Operation) -> None:
    value, base, *indices = operands_of(op)
    properties = _access(to, op, value.type)
    to.emit(xllvm.StoreOp, [to.values[value], to.address(base, indices)], None, properties)


def _access(to: KernelLowering, op: Operation, type_: Attribute) -> dict[str, Attribute]:
    element = (
        cast(Attribute, cast(Any, type_).element_type) if isinstance(type_, VectorType) else type_
    )
    properties = access(to, op, element)
    properties.pop("nontemporal", None)
    alignment = op.properties.get("alignment") or op.attributes.get("alignment")
    if alignment is not None:
        properties["alignment"] = alignment
    return properties


def _return(to: KernelLowering, op: Operation) -> None:
    del op
    append(to.block, create_op(xllvm.ReturnOp))


HANDLERS: Mapping[str, Handler] = {
    **LOOPS,
    **MATRICES,
    **WARP_GROUPS,
    **INLINE,
    **CLUSTERS,
    **ATOMICS,
    **{f"gpu.{name}": _identity(name) for name in _SPECIAL},
    **cast(
        "Mapping[str, Handler]",
        {
            "gpu.barrier": _barrier,
            "gpu.shuffle": _shuffle,
            "gpu.dynamic_shared_memory": dynamic_shared,
            "gpu.return": _return,
            "func.return": _return,
            "math.exp2": _exp2,
            "arith.divf": _quotient,
            "arith.shli": _wide_shift(xllvm.ShlOp),
            "arith.shrui": _wide_shift(xllvm.LShrOp),
            "memref.load": _load,
            "memref.store": _store,
            "vector.load": _load,
            "vector.store": _store,
            "memref.get_global": _get_global,
            "memref.memory_space_cast": _space_cast,
        },
    ),
}
"""Every op of a kernel that has a lowering."""
