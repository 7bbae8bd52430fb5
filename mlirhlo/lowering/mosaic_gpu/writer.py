"""Operations of a kernel for warp groups as code of one thread, in the gpu dialect."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    IntegerAttr,
    MemRefType,
    f32,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.gpu import SHARED
from mlirhlo.dialects.interned import integer32, string
from mlirhlo.dialects.nvvm import BarrierOp, InlinePtxOp
from mlirhlo.dialects.quick import append, create_op
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.builder import KernelBuilder, in_space
from mlirhlo.lowering.mosaic_gpu.fragments import (
    COLUMN,
    FLAT,
    NATIVE,
    ROW,
    SPLAT,
    TILE,
    Fragment,
    Layouts,
    offsets,
)
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.mosaic.attributes import integers_of
from mlirhlo.mosaic.interpreter.memory import dtype_in
from mlirhlo.mosaic.target.places import source_place

WARP, GROUP = 32, 128


def bytes_of(element: Attribute) -> int:
    """Of an element in memory."""
    return int(dtype_in(element).itemsize)


class Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Any, scratch: int) -> None:
        self.kernel = kernel
        (function,) = kernel.module.ops
        self.body: Block = kernel.body
        self.layouts = Layouts(self.body)
        flat = [
            MemRefType(
                cast(Any, a.type).element_type, [max(1, prod(cast(Any, a.type).get_shape()))]
            )
            for a in self.body.args
        ]
        self.b = KernelBuilder(kernel.name, flat, read_only=len(kernel.inputs))
        self.values: dict[SSAValue, Any] = {}
        self.has_tensor_memory = any("tmem" in op.name for op in self.body.walk())
        self.declared = (integers_of(function, "mosaic_gpu.shared_bytes") or (0,))[0]
        self.scratch_start = -(-self.declared // 1024) * 1024
        self._scratch_size = scratch
        self.scratch_bytes = 0
        """That a warp group needs, found while it was written."""
        self._views: dict[tuple[int, str], SSAValue] = {}

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        groups: int = self.kernel.launch.num_threads
        return self.scratch_start + self._scratch_size * groups

    def write(self) -> Any:
        """The kernel as a `gpu.func`."""
        b = self.b
        self.thread = b.index(b.rem(b.thread_id(), GROUP))
        self.group = b.index(b.div(b.thread_id(), GROUP))
        self.lane = b.index(b.rem(self.thread, WARP))
        self.warp = b.index(b.div(self.thread, WARP))
        self.is_leader = b.cmpi("eq", self.thread, b.index(0))
        self._shared = b.dynamic_shared()
        address = b.emit(memref.ExtractAlignedPointerAsIndexOp, (self._shared,), INDEX)
        self.base = b.cast_index(address, i32)
        """Where shared memory begins."""
        for number, (argument, buffer) in enumerate(zip(self.body.args, b.arguments, strict=True)):
            type_: Any = argument.type
            shape = tuple(type_.get_shape())
            element = type_.element_type
            self.values[argument] = Place(
                "gmem",
                shape,
                element,
                bytes_of(element),
                (0,) * len(shape),
                tuple(range(len(shape))),
                shape,
                buffer,
                argument=number,
            )
        self.block(self.body)
        launch = self.kernel.launch
        threads = (launch.num_threads * GROUP, 1, 1)
        return b.finish_kernel(launch.block_dims, threads, launch.cluster_dims)

    def block(self, block: Block) -> Sequence[Any]:
        """Writes the operations of a block; what its terminator has."""
        for op in block.ops:
            if op.name in ("scf.yield", "func.return", "scf.condition"):
                return [self.values[v] for v in op.operands]
            try:
                self.op(op)
            except HloError as problem:
                raise problem.at(source_place(op)) from None
        return ()

    def op(self, op: Operation) -> None:
        """Writes one operation."""
        from mlirhlo.lowering.mosaic_gpu.elementwise import elementwise
        from mlirhlo.lowering.mosaic_gpu.operations import OPERATIONS

        found = OPERATIONS.get(op.name)
        if found is not None:
            made = found(self, op)
        elif op.name.startswith(("arith.", "math.")):
            made = [elementwise(self, op)]
        else:
            raise unfit(f"{op.name} has no code for GPUs")
        for result, value in zip(op.results, made or (), strict=False):
            self.values[result] = value

    # ---------------------------------------------------------------- values

    def layout(self, value: SSAValue) -> str:
        """How a value is held. Raises `HloError` HLO0758 for shapes that no layout has."""
        found = self.layouts.of(value)
        if found is None:
            raise unfit(
                f"a warp group cannot hold {list(cast(Any, value.type).get_shape())}",
                "the rows are a multiple of 64 and the columns of 8, or the elements of 128",
            )
        return found

    def fragment(self, value: SSAValue, layout: str | None = None) -> Fragment:
        """A value in its layout, or in another one."""
        found: Fragment = self.values[value]
        return self.held(found, layout or self.layout(value))

    def held(self, found: Fragment, layout: str) -> Fragment:
        """The same value in a layout."""
        if found.layout == layout:
            return found
        if found.layout == SPLAT:
            count = len(offsets(layout, found.shape))
            return Fragment(found.shape, layout, found.registers * count, found.element)
        if layout == SPLAT:
            raise unfit("a value that differs between lanes is used as a scalar")
        return self._through_memory(found, layout)

    def _through_memory(self, found: Fragment, layout: str) -> Fragment:
        place = self.scratch(found.shape, found.element)
        with self.only(self.owns(found.layout)):
            self.store(found, place)
        self.meet()
        made = self.load(place, found.shape, layout, found.element)
        self.meet()
        return made

    @contextmanager
    def only(self, condition: SSAValue) -> Generator[None]:
        """What is written within is for the threads of a condition; those of a warp go on together."""
        with self.b.if_(condition):
            yield
        self.b.sync_warp()

    def owns(self, layout: str) -> SSAValue:
        """Whether the thread is the one among those with the same elements that writes them."""
        b = self.b
        if layout == ROW:
            return b.cmpi("eq", b.index(b.rem(self.lane, 4)), b.index(0))
        if layout == COLUMN:
            return b.cmpi("ult", self.thread, b.index(4))
        if layout == SPLAT:
            return self.is_leader
        return b.cmpi("ult", self.thread, b.index(GROUP))

    def scratch(self, shape: Sequence[int], element: Attribute) -> Place:
        """Shared memory that the warp group may write until it meets twice."""
        size = -(-prod(shape) * bytes_of(element) // 128) * 128
        self.scratch_bytes = max(self.scratch_bytes, size)
        width = bytes_of(element)
        first = self.b.mul(self.group, self._scratch_size // width)
        dims = tuple(range(len(shape)))
        buffer = self.shared_view(self.scratch_start, element)
        place = Place(
            "smem", tuple(shape), element, width, (0,) * len(shape), dims, tuple(shape), buffer
        )
        return _Shifted(place, first)  # type: ignore[return-value]

    def meet(self) -> None:
        """The threads of the warp group meet."""
        b = self.b
        number = b.cast_index(b.index(b.add(self.group, 1)), i32)
        b.effect(BarrierOp, (number, b.constant(GROUP, i32)))

    def indices(self, layout: str, shape: tuple[int, ...]) -> list[tuple[Index, ...]]:
        """For each register the element it holds, of flat ones its index in all dimensions."""
        b = self.b
        quarter = b.div(self.lane, 4)
        row = b.add(b.mul(self.warp, 16), quarter)
        column = b.mul(b.rem(self.lane, 4), 2)
        base: tuple[Index, ...] = {
            TILE: (row, column),
            ROW: (row,),
            COLUMN: (column,),
            FLAT: (self.thread,),
            NATIVE: (self.thread, 0),
            SPLAT: (),
        }[layout]
        found: list[tuple[Index, ...]] = []
        for fixed in offsets(layout, shape):
            index = tuple(b.add(at, more) for at, more in zip(base, fixed, strict=True))
            if layout == FLAT and len(shape) != 1:
                index = self._unravelled(index[0], shape)
            found.append(index)
        return found

    def _unravelled(self, number: Index, shape: Sequence[int]) -> tuple[Index, ...]:
        found: list[Index] = []
        for size in reversed(shape):
            found.append(self.b.rem(number, size))
            number = self.b.div(number, size)
        return tuple(reversed(found))

    # ---------------------------------------------------------------- memory

    def shared_view(self, offset: int, element: Attribute) -> SSAValue:
        """Shared memory from an offset on as elements."""
        key = (offset, str(element))
        if key not in self._views:
            # Views stand where they are asked for first: all of them dominate from the head of the kernel on.
            size = 227 * 1024 // bytes_of(element)
            before, self.b.block = self.b.block, self.b._body  # pyright: ignore[reportPrivateUsage]
            type_ = in_space(MemRefType(element, [size]), SHARED)
            op = create_op(memref.ViewOp, (self._shared, self._offset_constant(offset)), (type_,))
            self._after_base(op)
            self.b.block = before
            self._views[key] = op.results[0]
        return self._views[key]

    def _offset_constant(self, offset: int) -> SSAValue:
        from xdsl.dialects import arith

        op = create_op(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(offset, INDEX)})
        self._after_base(op)
        return op.results[0]

    def _after_base(self, op: Operation) -> None:
        anchor: Any = self._shared.owner
        if not hasattr(self, "_last"):
            self._last: Any = anchor
        anchor.parent.insert_op_after(op, self._last)
        self._last = op

    def load(self, place: Any, shape: tuple[int, ...], layout: str, element: Attribute) -> Fragment:
        """A value from memory."""
        b = self.b
        if place.space == "regs":
            registers = [b.load(place.buffer, [n]) for n in range(len(offsets(layout, shape)))]
            return Fragment(shape, layout, registers, element)
        read: list[SSAValue] = []
        for index in self.indices(layout, shape):
            at = place.linear(index, b)
            if place.space == "cluster":
                read.append(self._from_peer(place, at, element))
            else:
                read.append(b.load(place.buffer, [at]))
        return Fragment(shape, layout, read, element)

    def store(self, value: Fragment, place: Any, atomic: str | None = None) -> None:
        """A value to memory."""
        b = self.b
        if place.space == "regs":
            for n, register in enumerate(value.registers):
                b.store(register, place.buffer, [n])
            return
        if place.space == "cluster":
            raise unfit("shared memory of another block is written", "read it from there")
        for register, index in zip(
            value.registers, self.indices(value.layout, value.shape), strict=True
        ):
            at = place.linear(index, b)
            if atomic is None:
                b.store(register, place.buffer, [at])
            else:
                b.atomic(atomic, register, place.buffer, [b.index(at)])

    def _from_peer(self, place: Place, at: Index, element: Attribute) -> SSAValue:
        b = self.b
        if bytes_of(element) != 4:
            raise unfit("elements of other than four bytes of another block's shared memory")
        kind = "f32" if element == f32 else "b32"
        where = self.address(b.add(b.mul(at, 4), place.offset))
        assert place.rank is not None
        text = (
            "{ .reg .b32 a; mapa.shared::cluster.u32 a, $1, $2; "
            f"ld.shared::cluster.{kind} $0, [a]; }}"
        )
        return self.ptx(text, [where, place.rank], [element])[0]

    def cluster_place(self, dim: int) -> Index:
        """Where the block is along an axis of its cluster."""
        b, launch = self.b, self.kernel.launch
        if launch.sizes:
            (number,) = self.ptx(f"mov.u32 $0, %cluster_ctaid.{'xyz'[dim]};", results=[i32])
            return cast(Index, b.cast_index(number, INDEX))
        own = b.rem(b.block_id(), launch.cluster_size)
        return b.rem(b.div(own, launch.cluster_strides[dim]), launch.cluster[dim])

    def address(self, offset: Index) -> SSAValue:
        """The address of a byte of shared memory."""
        b = self.b
        return b.addi(self.base, b.cast_index(b.index(offset), i32))

    def ptx(
        self,
        text: str,
        operands: Sequence[SSAValue] = (),
        results: Sequence[Attribute] = (),
        ties: int = 0,
    ) -> Sequence[SSAValue]:
        """Instructions as text."""
        properties: dict[str, Attribute] = {"ptx_code": string(text), "ties": integer32(ties)}
        op = create_op(InlinePtxOp, operands, results, properties)
        append(self.b.block, op)
        return op.results

    def to_index(self, value: SSAValue) -> SSAValue:
        """A scalar as an index."""
        return value if value.type == INDEX else self.b.cast_index(value, INDEX)


class _Shifted:
    """Scratch: a place whose elements are counted from another one on."""

    space = "smem"

    def __init__(self, place: Place, first: Index) -> None:
        self.place, self.first, self.buffer = place, first, place.buffer

    def linear(self, index: Sequence[Index], b: Any) -> Index:
        """As of a `Place`."""
        return cast(Index, b.add(self.place.linear(index, b), self.first))


def unfit(message: str, help: str | None = None) -> HloError:
    """HLO0758."""
    return error("HLO0758", message, help=help)
