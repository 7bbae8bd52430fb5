"""Kernels of single threads, as JAX lowers them for its compiler: the memref, vector, llvm and nvvm dialects.

Their operations are those of one thread already, so that they go to the llvm dialect one by one. A buffer is a
pointer to its start and an offset, as MLIR's descriptors have them: kernels compute with both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith, gpu
from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.quick import append, create_op, new_block
from mlirhlo.lowering.builder import INDEX
from mlirhlo.lowering.gpu.builder import KernelBuilder
from mlirhlo.lowering.gpu.nvvm import HANDLERS as KERNELS
from mlirhlo.lowering.gpu.nvvm import KernelLowering, dynamic_shared
from mlirhlo.lowering.gpu.nvvm_inline import assembly
from mlirhlo.lowering.hlo_to_loops.element_math import FUNCTIONS
from mlirhlo.lowering.loops_to_llvm.convert import Handler
from mlirhlo.lowering.mosaic_gpu.elementwise import MATH
from mlirhlo.lowering.mosaic_gpu.threads_nvvm import INSTRUCTIONS
from mlirhlo.mosaic.attributes import integer_of, integers_of, string_of
from mlirhlo.mosaic.target.places import source_place

_ENDS = frozenset({"func.return", "gpu.terminator"})


def function_of(kernel: Any) -> tuple[gpu.FuncOp, KernelBuilder]:
    """The `gpu.func` of a kernel of single threads."""
    (function,) = kernel.module.ops
    source = function.clone().regions[0].blocks[0]
    count = len(kernel.inputs) + len(kernel.results)
    b = KernelBuilder(
        kernel.name, [a.type for a in source.args[:count]], read_only=len(kernel.inputs)
    )
    maps = [b.tensor_map(described) for described in kernel.maps]
    for argument, new in zip(source.args, (*b.arguments, *maps), strict=True):
        argument.replace_all_uses_with(new)
    _moved(source, b)
    launch = kernel.launch
    threads = (launch.num_threads * 128, 1, 1)
    return b.finish_kernel(launch.block_dims, threads, launch.cluster_dims), b


def _moved(source: Block, b: KernelBuilder) -> None:
    """Moves operations to where the builder writes; functions of numbers become arithmetic."""
    for op in list(source.ops):
        op.detach()
        if op.name in _ENDS:
            continue
        for region in op.regions:
            for block in region.blocks:
                outer, b.block = b.block, new_block()
                _moved(block, b)
                for written in list(b.block.ops):
                    written.detach()
                    block.add_op(written)
                b.block = outer
        _only_declared_properties(op)
        flags = op.properties.get("overflowFlags")
        if isinstance(flags, xllvm.OverflowAttr):
            # MLIR's type of the flags; xDSL's operations print a number.
            op.properties["overflowFlags"] = IntegerAttr(flags.to_int(), i32)
        if op.name == "scf.for":
            _index_loop(op, b)
        name = MATH.get(op.name)
        if name is None:
            b.block.add_op(op)
        else:
            op.results[0].replace_all_uses_with(FUNCTIONS[name](b, *op.operands))


def _only_declared_properties(op: Operation) -> None:
    """Makes properties of MLIR that xDSL's class of an operation lacks attributes, so that the module verifies."""
    if isinstance(op, IRDLOperation):
        declared = type(op).get_irdl_definition().properties
        for name in [name for name in op.properties if name not in declared]:
            op.attributes[name] = op.properties.pop(name)


def _index_loop(op: Operation, b: KernelBuilder) -> None:
    """A loop counts by an index."""
    block = op.regions[0].blocks[0]
    counter = block.args[0]
    if isinstance(counter.type, IndexType):
        return
    for at in range(3):
        op.operands[at] = b.cast_index(op.operands[at], INDEX)
    number = block.insert_arg(INDEX, 0)
    cast_back = create_op(arith.IndexCastOp, [number], [counter.type])
    first = block.first_op
    assert first is not None
    block.insert_op_before(cast_back, first)
    counter.replace_all_uses_with(cast_back.results[0])
    block.erase_arg(counter)


class ThreadLowering(KernelLowering):
    """A kernel of single threads on its way to the llvm dialect; an index has 64 bits."""

    def __init__(self, op: gpu.FuncOp, top: dict[str, Operation], index: Any) -> None:
        del index
        super().__init__(op, top, i64)
        self.handlers = {**KERNELS, **HANDLERS}
        self.views: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
        """Pointers to the starts of buffers, and offsets in elements."""
        self.descriptors: dict[SSAValue, SSAValue] = {}
        """Buffers that structures of LLVM describe."""
        self.registers: dict[SSAValue, Sequence[SSAValue]] = {}
        """Of values of the warp group."""

    def ops(self, block: Block, *, ends: bool = True) -> None:
        """As `Lowering`; what has no lowering is named where it stands. Raises `HloError` HLO0758."""
        for op in list(block.ops)[: None if ends else -1]:
            handler = self.handlers.get(op.name)
            if handler is None and op.name != "arith.constant":
                raise error("HLO0758", f"{op.name} has no code for GPUs", source_place(op))
            if handler is not None:
                try:
                    handler(self, op)
                except HloError as problem:
                    raise problem.at(source_place(op)) from None

    def view(self, value: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The start of a buffer and its offset."""
        return self.views.get(value) or (self.values[value], self.constant(0))

    def see(self, result: SSAValue, start: SSAValue, offset: SSAValue) -> None:
        """A result is a view."""
        element = cast("MemRefType[Any]", result.type).element_type
        self.views[result] = start, offset
        is_plain = self.known.get(offset) == 0
        self.values[result] = start if is_plain else self.offset(start, offset, element)

    def same(self, result: SSAValue, source: SSAValue) -> None:
        """A result is what another value is."""
        if isinstance(source.owner, Operation) and source.owner.name == "arith.constant":
            self.values[result] = self.values[source]
        tables: list[Any] = [self.values, self.views, self.descriptors, self.registers]
        for table in tables:
            if source in table:
                table[result] = table[source]


# ---------------------------------------------------------------- buffers


def _same_buffer(to: ThreadLowering, op: Operation) -> None:
    to.see(op.results[0], *to.view(op.operands[0]))


def _view(to: ThreadLowering, op: Operation) -> None:
    source, shift, *_ = op.operands
    to.see(op.results[0], to.offset(to.values[source], to.values[shift], i8), to.constant(0))


def _dynamic(to: ThreadLowering, op: Operation, name: str, operands: Sequence[SSAValue]) -> Any:
    rest = iter(operands)
    return [
        to.values[next(rest)] if n == DYNAMIC_INDEX else to.constant(n)
        for n in integers_of(op, name) or ()
    ]


def _subview(to: ThreadLowering, op: Operation) -> None:
    source, *dynamic = op.operands
    start, offset = to.view(source)
    starts = _dynamic(to, op, "static_offsets", dynamic)
    for number, stride in zip(starts, to.strides_of(source), strict=True):
        offset = to.add(offset, to.times(number, stride))
    to.see(op.results[0], start, offset)


def _reinterpret(to: ThreadLowering, op: Operation) -> None:
    source, *dynamic = op.operands
    (offset,) = _dynamic(to, op, "static_offsets", dynamic)
    to.see(op.results[0], to.view(source)[0], offset)


def _metadata(to: ThreadLowering, op: Operation) -> None:
    start, offset = to.view(op.operands[0])
    type_: Any = op.operands[0].type
    base, at, *sizes = op.results
    to.see(base, start, to.constant(0))
    to.values[at] = offset
    numbers = (*type_.get_shape(), *to.strides_of(op.operands[0]))
    to.values.update(zip(sizes, map(to.constant, numbers), strict=True))


def _start(to: ThreadLowering, op: Operation) -> None:
    start, _ = to.view(op.operands[0])
    to.values[op.results[0]] = to.emit(xllvm.PtrToIntOp, [start], i64)


# ---------------------------------------------------------------- LLVM's operations


def _cast(to: ThreadLowering, op: Operation) -> None:
    """Buffers and their descriptors; registers of a warp group's value, which are taken apart again."""
    if len(op.operands) != 1:
        to.registers[op.results[0]] = [to.values[v] for v in op.operands]
        return
    (source,) = op.operands
    if len(op.results) > 1:
        to.values.update(zip(op.results, to.registers[source], strict=True))
        return
    (result,) = op.results
    to.same(result, source)
    if isinstance(source.type, MemRefType) and isinstance(result.type, xllvm.LLVMStructType):
        to.descriptors[result] = source


def _extract_value(to: ThreadLowering, op: Operation) -> None:
    (source,), (result,) = op.operands, op.results
    buffer = to.descriptors.get(source)
    if buffer is None:
        _plain(to, op)
        return
    kind, *dim = integers_of(op, "position") or (0,)
    start, offset = to.view(buffer)
    if kind <= 2:
        to.values[result] = start if kind < 2 else offset
        return
    sizes = cast(Any, buffer.type).get_shape() if kind == 3 else to.strides_of(buffer)
    to.values[result] = to.constant(sizes[dim[0]])


def _plain(to: ThreadLowering, op: Operation) -> None:
    operands = [to.values[v] for v in op.operands]
    made = create_op(
        type(op), operands, [to.convert(r.type) for r in op.results], dict(op.properties)
    )
    append(to.block, made)
    to.values.update(zip(op.results, made.results, strict=True))


def _constant(to: ThreadLowering, op: Operation) -> None:
    value, type_ = op.properties["value"], op.results[0].type
    if isinstance(value, IntegerAttr):
        to.values[op.results[0]] = to.constant(integer_of(op, "value"), type_)
    else:
        _plain(to, op)


def _undefined(to: ThreadLowering, op: Operation) -> None:
    to.values[op.results[0]] = to.poison(op.results[0].type)


def _address(to: ThreadLowering, op: Operation) -> None:
    base, *dynamic = op.operands
    numbers = integers_of(op, "rawConstantIndices") or ()
    if len(numbers) != 1:
        raise error("HLO0758", "an address of part of a structure has no code for GPUs")
    index = to.values[dynamic[0]] if dynamic else to.constant(numbers[0])
    if index.type == i32:
        index = to.emit(xllvm.SExtOp, [index], i64)
    to.values[op.results[0]] = to.offset(to.values[base], index, op.properties["elem_type"])


def _assembly(to: ThreadLowering, op: Operation) -> None:
    """Pointers into shared memory have 32 bits here, 64 where the text says so.

    JAX uses what `tcgen05.ld` loads without a wait; PTX wants one before the registers are read.
    """
    text, stated = (string_of(op, name) or "" for name in ("asm_string", "constraints"))
    if text.startswith("tcgen05.ld."):
        text += " tcgen05.wait::ld.sync.aligned;"
    words = stated.split(",")
    operands = [to.values[v] for v in op.operands]
    results = [r.type for r in op.results if not isinstance(r.type, xllvm.LLVMVoidType)]
    for at, word in enumerate(words[len(words) - len(operands) :]):
        if isinstance(operands[at].type, xllvm.LLVMPointerType):
            operands[at] = to.emit(xllvm.PtrToIntOp, [operands[at]], i64 if word == "l" else i32)
    types: Sequence[Attribute] = results
    has_effects = "has_side_effects" in op.properties
    if results and isinstance(results[0], xllvm.LLVMStructType):
        types = tuple(results[0].types)
    # Memory stays as it is around instructions that say nothing of it, as for JAX's compiler.
    outputs = assembly(
        to,
        text,
        operands,
        types,
        constraints=",".join([stated] * bool(stated) + ["~{memory}"] * has_effects),
        has_effects=has_effects,
    )
    if types is not results:
        whole = outputs[0].owner.operands[0]  # type: ignore[union-attr]
        to.values[op.results[0]] = whole
    elif outputs:
        to.values[op.results[0]] = outputs[0]


# ---------------------------------------------------------------- vectors, control


def _slice(to: ThreadLowering, op: Operation) -> None:
    """Neighbours in a vector of one dimension."""
    (start,), (size,) = (integers_of(op, name) or (0,) for name in ("offsets", "sizes"))
    lanes = DenseArrayBase.from_list(i32, list(range(start, start + size)))
    value = to.values[op.operands[0]]
    made = to.emit(
        xllvm.ShuffleVectorOp, [value, to.poison(value.type)], op.results[0].type, {"mask": lanes}
    )
    to.values[op.results[0]] = made


def _reshape(to: ThreadLowering, op: Operation) -> None:
    if op.operands[0].type != op.results[0].type:
        raise error("HLO0758", "vectors of several dimensions in one thread have no code for GPUs")
    to.same(op.results[0], op.operands[0])


def _switch(to: ThreadLowering, op: Operation) -> None:
    default, *regions = op.regions
    after = to.add_block([to.convert(r.type) for r in op.results])
    number, start = to.values[op.operands[0]], to.block
    tests = [*zip(integers_of(op, "cases") or (), regions, strict=True), (None, default)]
    heads = [to.block, *(to.add_block() for _ in tests[1:])]
    for (case, region), head in zip(tests, heads, strict=True):
        to.go_on(head)
        body = head
        if case is not None:
            body = to.add_block()
            equal = {"predicate": IntegerAttr(0, i64)}
            is_case = to.emit(xllvm.ICmpOp, [number, to.constant(case)], i1, cast(Any, equal))
            to.branch(is_case, body, heads[heads.index(head) + 1])
        to.enter(body)
        block = region.blocks[0]
        to.ops(block)
        last = block.last_op
        values = [to.values[v] for v in last.operands] if last is not None else []
        to.jump(after, values)
        to.leave(start)
    to.go_on(after)
    to.values.update(zip(op.results, after.args, strict=True))


_PLAIN = (
    *(
        "add",
        "sub",
        "mul",
        "udiv",
        "sdiv",
        "urem",
        "srem",
        "and",
        "or",
        "xor",
        "shl",
        "lshr",
        "ashr",
    ),
    *(
        "fadd",
        "fsub",
        "fmul",
        "fdiv",
        "trunc",
        "zext",
        "sext",
        "fptosi",
        "fptoui",
        "sitofp",
        "uitofp",
    ),
    *(
        "fpext",
        "fptrunc",
        "bitcast",
        "ptrtoint",
        "inttoptr",
        "icmp",
        "fcmp",
        "select",
        "load",
        "store",
    ),
    *("insertelement", "extractelement", "insertvalue"),
)
_BUFFERS = (
    *("cast", "collapse_shape", "expand_shape", "transpose"),
    *("memory_space_cast", "assume_alignment"),
)

HANDLERS: Mapping[str, Handler] = cast(
    "Mapping[str, Handler]",
    {
        **{f"llvm.{name}": _plain for name in _PLAIN},
        **{f"memref.{name}": _same_buffer for name in _BUFFERS},
        **INSTRUCTIONS,
        "builtin.unrealized_conversion_cast": _cast,
        "gpu.dynamic_shared_memory": dynamic_shared,
        "llvm.extractvalue": _extract_value,
        "llvm.getelementptr": _address,
        "llvm.inline_asm": _assembly,
        "llvm.mlir.constant": _constant,
        "llvm.mlir.undef": _undefined,
        "llvm.mlir.poison": _undefined,
        "memref.extract_aligned_pointer_as_index": _start,
        "memref.extract_strided_metadata": _metadata,
        "memref.reinterpret_cast": _reinterpret,
        "memref.subview": _subview,
        "memref.view": _view,
        "scf.index_switch": _switch,
        "vector.extract_strided_slice": _slice,
        "vector.shape_cast": _reshape,
    },
)
"""What lowers the operations that kernels of warp groups have not."""
