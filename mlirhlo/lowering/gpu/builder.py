"""Building kernels of the gpu dialect.

b = KernelBuilder("scale", [memref_of(f32, 1024), memref_of(f32, 1024)], read_only=1)
x, out = b.arguments
i = b.add(b.mul(b.block_id(), 256), b.thread_id())
b.store(b.mulf(b.load(x, [i]), b.constant(2.0, f32)), out, [i])
kernel = b.finish_kernel(grid=(4, 1, 1), block=(256, 1, 1))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects import gpu, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    TensorType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.llvm import LLVMArrayType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.gpu import (
    GLOBAL,
    SHARED,
    DynamicSharedMemoryOp,
    Shuffle,
    ShuffleModeAttr,
    ShuffleOp,
)
from mlirhlo.dialects.interned import (
    UNIT,
    dictionary,
    integer32,
    integer64,
    integers32,
    integers64,
    string,
    symbol_ref,
)
from mlirhlo.dialects.memref import AtomicYieldOp, GenericAtomicRMWOp, GlobalOp
from mlirhlo.dialects.nvgpu import (
    DeviceAsyncCopyOp,
    DeviceAsyncCreateGroupOp,
    DeviceAsyncWaitOp,
    LdMatrixOp,
    MBarrierArriveOp,
    MBarrierFenceOp,
    MBarrierInitOp,
    MBarrierTryWaitParityOp,
    MmaSyncOp,
    TmaAsyncLoadOp,
    WarpgroupMmaOp,
)
from mlirhlo.dialects.nvvm import AddPairOp, MatchSyncOp, NanosleepOp, SyncWarpOp
from mlirhlo.dialects.quick import append, create_op, new_block, prepend, region_of
from mlirhlo.lowering.builder import INDEX, NOALIAS, FunctionBuilder, Index, vector_of
from mlirhlo.lowering.gpu.kernel import KNOWN_CLUSTER, MapParameter
from mlirhlo.lowering.gpu.nvvm_atomics import ATOMIC_KINDS

Sizes = tuple[int, int, int]
READONLY = "llvm.readonly"
_WARP = -1
"""All threads of a warp, as a mask."""
TENSOR_MAP_BYTES = 128
MAP_ATTRIBUTES: Mapping[str, Attribute] = {
    "llvm.byval": LLVMArrayType(IntAttr(TENSOR_MAP_BYTES), i8),
    "llvm.align": integer64(64),
    "nvvm.grid_constant": UNIT,
}
"""Of parameters that are tensor maps."""


def in_space(type_: MemRefType[Any], space: int) -> MemRefType[Any]:
    """A memref type in a memory space."""
    return MemRefType(
        cast(Attribute, type_.element_type), type_.shape, type_.layout, IntegerAttr(space, i64)
    )


class KernelBuilder(FunctionBuilder):
    """Builds one `gpu.func` that is launched, and the shared memory it uses."""

    def __init__(
        self, name: str, argument_types: Sequence[MemRefType[Any]], *, read_only: int = 0
    ) -> None:
        """Arguments are buffers in global memory, the first `read_only` of which nothing writes."""
        super().__init__(name, [in_space(t, GLOBAL) for t in argument_types])
        self._read_only = read_only
        self.globals: list[GlobalOp] = []
        """For the `gpu.module` around the kernel."""
        self._flat: dict[SSAValue, SSAValue] = {}
        self.maps: list[MapParameter] = []
        """Parameters behind the buffers."""

    def _identity(self, cls: type[Any], dim: str) -> SSAValue:
        dimension = gpu.DimensionAttr(gpu.DimensionEnum(dim))
        op = create_op(cls, (), (INDEX,), {"dimension": dimension})
        self._heads.append(op)
        return cast(SSAValue, op.results[0])

    def thread_id(self, dim: str = "x") -> SSAValue:
        """Number of the thread in its block."""
        return self._identity(gpu.ThreadIdOp, dim)

    def block_id(self, dim: str = "x") -> SSAValue:
        """Number of the block in the grid."""
        return self._identity(gpu.BlockIdOp, dim)

    def barrier(self) -> None:
        """All threads of the block come here before any goes on."""
        self.effect(gpu.BarrierOp, ())

    def warp_shuffle(self, mode: str, value: SSAValue, offset: int, width: int = 32) -> SSAValue:
        """The value of the thread of the warp whose lane is this one's, changed by `offset` as `mode` says."""
        operands = [value, self.constant(offset, i32), self.constant(width, i32)]
        properties: dict[str, Attribute] = {"mode": ShuffleModeAttr(Shuffle(mode))}
        op = create_op(ShuffleOp, operands, (value.type, i1), properties)
        append(self.block, op)
        return op.results[0]

    def sync_warp(self) -> None:
        """All threads of the warp come here before any goes on, and see what the others wrote."""
        self.effect(SyncWarpOp, [self.constant(_WARP, i32)])

    def match_any(self, value: SSAValue) -> SSAValue:
        """Which threads of the warp have the same 32 bits, as bits of a number."""
        properties: dict[str, Attribute] = {"kind": integer32(0)}
        return self.emit(MatchSyncOp, [self.constant(_WARP, i32), value], i32, properties)

    def shared(self, sizes: Sequence[int], element: Attribute) -> SSAValue:
        """A buffer in shared memory, of no content at first."""
        return self._global(in_space(MemRefType(element, sizes), SHARED), "shared", UNIT)

    def _global(self, type_: MemRefType[Any], word: str, value: Attribute) -> SSAValue:
        name = f"{self.name}_{word}_{len(self.globals)}"
        properties: dict[str, Attribute] = {
            "sym_name": string(name),
            "sym_visibility": string("private"),
            "type": type_,
            "initial_value": value,
        }
        if value is not UNIT:
            properties["constant"] = UNIT
        self.globals.append(create_op(GlobalOp, properties=properties))
        op = create_op(memref.GetGlobalOp, (), (type_,), {"name": symbol_ref(name)})
        self._heads.append(op)
        return op.results[0]

    def table(self, numbers: Sequence[float], element: Attribute) -> SSAValue:
        """A constant buffer in global memory that holds these numbers."""
        key = (tuple(numbers), element)
        found = self._tables.get(key)
        if found is None:
            type_ = in_space(MemRefType(element, [len(numbers)]), GLOBAL)
            data = DenseIntOrFPElementsAttr.from_list(
                TensorType(cast(Any, element), [len(numbers)]), list(numbers)
            )
            found = self._tables[key] = self._global(type_, "table", data)
        return found

    def flat(self, buffer: SSAValue) -> SSAValue:
        """A buffer as one dimension, in the order of memory; one value for each buffer."""
        found = self._flat.get(buffer)
        if found is None:
            type_ = cast("MemRefType[Any]", buffer.type)
            count = prod(type_.get_shape())
            statics = {"static_offsets": 0, "static_sizes": count, "static_strides": 1}
            properties: dict[str, Attribute] = {
                **{key: integers64(n) for key, n in statics.items()},
                "operandSegmentSizes": integers32(1, 0, 0, 0),
            }
            line = MemRefType(type_.element_type, [count], NoneAttr(), type_.memory_space)
            op = create_op(memref.ReinterpretCastOp, (buffer,), (line,), properties)
            self._heads.append(op)
            found = self._flat[buffer] = op.results[0]
        return found

    def dynamic_shared(self) -> SSAValue:
        """Bytes of shared memory, as many as the launch says."""
        type_ = in_space(MemRefType(i8, [DYNAMIC_INDEX]), SHARED)
        return self.emit(DynamicSharedMemoryOp, (), type_)

    def tensor_map(self, described: MapParameter) -> SSAValue:
        """A parameter behind the others that describes a buffer to copies."""
        self.maps.append(described)
        return self._body.insert_arg(MemRefType(i8, [TENSOR_MAP_BYTES]), len(self._body.args))

    def view(
        self, buffer: SSAValue, start: int, sizes: Sequence[int], element: Attribute
    ) -> SSAValue:
        """Bytes of a buffer, from a start on, as elements."""
        space = cast(Any, buffer.type).memory_space.value.data
        type_ = in_space(MemRefType(element, sizes), space)
        return self.emit(memref.ViewOp, (buffer, self.index(start)), type_)

    def atomic(
        self, kind: str, value: SSAValue, target: SSAValue, indices: Sequence[Any]
    ) -> SSAValue:
        """Combines a number in memory with a value, at once; the number before. Kinds are `ATOMIC_KINDS`."""
        operands = [value, target, *map(self.index, indices)]
        properties: dict[str, Attribute] = {"kind": integer64(ATOMIC_KINDS.index(kind))}
        return self.emit(memref.AtomicRMWOp, operands, value.type, properties)

    def add_pair(
        self, values: Sequence[SSAValue], target: SSAValue, indices: Sequence[Any]
    ) -> None:
        """Adds two numbers of 16 bits to neighbours in memory, the first of which is at a multiple of 4 bytes."""
        pair = self.constant(0.0, vector_of(values[0].type, 2))
        for lane, value in enumerate(values):
            pair = self.insert(value, pair, lane)
        self.effect(AddPairOp, [pair, target, *map(self.index, indices)])

    def atomic_update(
        self,
        target: SSAValue,
        indices: Sequence[Index],
        body: Callable[[SSAValue], SSAValue],
    ) -> None:
        """Replaces an element in memory by what `body` makes of it, at once; it is computed anew when another thread
        was faster. An element of less than 32 bits is in a word of the buffer."""
        type_ = cast("MemRefType[Any]", target.type).element_type
        outer, inner = self.block, new_block([type_])
        self.block = inner
        append(self.block, create_op(AtomicYieldOp, [body(inner.args[0])]))
        self.block = outer
        operands = [target, *map(self.index, indices)]
        append(outer, create_op(GenericAtomicRMWOp, operands, (type_,), regions=[region_of(inner)]))

    def sleep(self, nanoseconds: int) -> None:
        """Lets other threads run for a while."""
        append(self.block, create_op(NanosleepOp, properties={"duration": integer32(nanoseconds)}))

    def repeat_while(
        self,
        initial: Sequence[SSAValue],
        test: Callable[[Sequence[SSAValue]], SSAValue],
        body: Callable[[Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> Sequence[SSAValue]:
        """Values that `body` replaces as long as `test` of them holds."""
        types = [v.type for v in initial]
        outer, before, after = self.block, new_block(types), new_block(types)
        self.block = before
        condition = test(before.args)
        append(self.block, create_op(scf.ConditionOp, [condition, *before.args]))
        self.block = after
        append(self.block, create_op(scf.YieldOp, body(after.args)))
        self.block = outer
        op = create_op(scf.WhileOp, initial, types, regions=[region_of(before), region_of(after)])
        append(outer, op)
        return op.results

    def ldmatrix(
        self, source: SSAValue, indices: Sequence[Index], *, transpose: bool = False
    ) -> SSAValue:
        """Four matrices of 8 x 8 numbers of 16 bits from shared memory, a register of each for a lane."""
        properties: dict[str, Attribute] = {"transpose": UNIT} if transpose else {}
        operands = [source, *map(self.index, indices)]
        return self.emit(LdMatrixOp, operands, vector_of(i32, 4), properties)

    def mma(self, kind: str, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """`a * b + c` of fragments of a warp."""
        return self.emit(MmaSyncOp, (a, b, c), c.type, {"kind": string(kind)})

    def copy_async(
        self,
        target: tuple[SSAValue, Sequence[Index]],
        source: tuple[SSAValue, Sequence[Index]],
        elements: int,
        read: SSAValue | None = None,
    ) -> None:
        """Copies neighbours to shared memory while the thread goes on; `read`: how many of them, zeros follow."""
        (to, at), (of, where) = target, source
        operands = [to, *map(self.index, at), of, *map(self.index, where)]
        sizes = integers32(1, len(at), 1, len(where), int(read is not None))
        properties: dict[str, Attribute] = {
            "dst_elements": integer64(elements),
            "operandSegmentSizes": sizes,
        }
        more = [] if read is None else [read]
        self.effect(DeviceAsyncCopyOp, [*operands, *more], properties)

    def end_copy_group(self) -> None:
        """Makes a group of the copies begun since the last one."""
        self.effect(DeviceAsyncCreateGroupOp, ())

    def wait_for_copies(self, left: int) -> None:
        """Waits for all groups of copies but the last `left`."""
        self.effect(DeviceAsyncWaitOp, (), {"num_groups": integer64(left)})

    def barrier_init(self, barriers: SSAValue, index: Index, count: int) -> None:
        """Makes a barrier whose phase ends when so many threads have arrived."""
        self.effect(MBarrierInitOp, (barriers, self.index(index)), {"count": integer64(count)})

    def barrier_fence(self) -> None:
        """Lets copies see the barriers that the thread has made."""
        self.effect(MBarrierFenceOp, ())

    def barrier_arrive(self, barriers: SSAValue, index: Index, bytes_: int = 0) -> None:
        """Arrives at a barrier, whose phase then waits for so many bytes of copies too."""
        properties: dict[str, Attribute] = {"tx_count": integer64(bytes_)} if bytes_ else {}
        self.effect(MBarrierArriveOp, (barriers, self.index(index)), properties)

    def barrier_wait(self, barriers: SSAValue, index: Index, parity: Index) -> None:
        """Waits until the phase of a parity has ended."""
        operands = (barriers, self.index(index), self.index(parity))
        self.effect(MBarrierTryWaitParityOp, operands)

    def copy_box(
        self,
        target: tuple[SSAValue, Sequence[Index]],
        barrier: tuple[SSAValue, Index],
        tensor_map: SSAValue,
        coordinates: Sequence[Index],
    ) -> None:
        """Copies the box of a tensor map at coordinates, the fastest first; the barrier gets the bytes."""
        (to, at), (barriers, index) = target, barrier
        operands = [to, *map(self.index, at), barriers, self.index(index), tensor_map]
        sizes = integers32(1, len(at), 1, 1, 1, len(coordinates))
        properties: dict[str, Attribute] = {"operandSegmentSizes": sizes}
        self.effect(TmaAsyncLoadOp, [*operands, *map(self.index, coordinates)], properties)

    def warp_group_mma(
        self,
        factors: Sequence[tuple[SSAValue, Sequence[Index]]],
        sums: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
    ) -> list[SSAValue]:
        """Sums of a warp group with products of tiles added; properties are those of `WarpgroupMmaOp`."""
        (a, at_a), (b, at_b) = factors
        operands = [a, *map(self.index, at_a), b, *map(self.index, at_b), *sums]
        sizes = integers32(1, len(at_a), 1, len(at_b), len(sums))
        all_ = {**properties, "operandSegmentSizes": sizes}
        op = create_op(WarpgroupMmaOp, operands, [v.type for v in sums], all_)
        append(self.block, op)
        return list(op.results)

    def finish_kernel(self, grid: Sizes, block: Sizes, cluster: Sizes = (1, 1, 1)) -> gpu.FuncOp:
        """Ends the kernel; it is launched with this grid of blocks, in clusters of that size."""
        append(self.block, create_op(gpu.ReturnOp))
        prepend(self._body, self._heads)
        written: dict[str, Attribute] = {NOALIAS: UNIT}
        read: dict[str, Attribute] = {NOALIAS: UNIT, READONLY: UNIT}
        buffers = len(self._body.args) - len(self.maps)
        words = [read if at < self._read_only else written for at in range(buffers)]
        words += [dict(MAP_ATTRIBUTES)] * len(self.maps)
        properties: dict[str, Attribute] = {
            "function_type": FunctionType.from_lists([a.type for a in self._body.args], ()),
            "kernel": UNIT,
        }
        attributes: dict[str, Attribute] = {
            "sym_name": string(self.name),
            "arg_attrs": ArrayAttr([dictionary(w) for w in words]),
            "gpu.known_block_size": integers32(*block),
            "gpu.known_grid_size": integers32(*grid),
        }
        if prod(cluster) > 1:
            attributes[KNOWN_CLUSTER] = integers32(*cluster)
        return create_op(
            gpu.FuncOp,
            properties=properties,
            regions=[region_of(self._body)],
            attributes=attributes,
        )


def gpu_module(name: str, ops: Sequence[Operation]) -> gpu.ModuleOp:
    """A `gpu.module` of functions and globals."""
    return create_op(
        gpu.ModuleOp, properties={"sym_name": string(name)}, regions=[region_of(Block(ops))]
    )
