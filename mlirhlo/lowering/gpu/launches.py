"""A scheduled kernel as launches: which buffers they read and write, and code for each kind of work.

A kind is a function under `@launches(kind)` that adds launches for ops that are computed together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.structured import AssembleOp, KernelOp
from mlirhlo.lowering import target
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.gpu.builder import KernelBuilder, gpu_module
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.elements import ElementBuilder, array
from mlirhlo.lowering.gpu.kernel import GpuKernel, Launch
from mlirhlo.lowering.gpu.schedule_checks import check_schedule
from mlirhlo.lowering.hlo_to_loops.elements import Value, buffer_type, memory_type, to_memory
from mlirhlo.lowering.hlo_to_loops.loop_kernels import store
from mlirhlo.lowering.schedule.attributes import Schedule, schedule_of
from mlirhlo.lowering.schedule.map_to_grid import memory_inputs

Launcher: TypeAlias = "Callable[[Plan, Sequence[Any], Schedule], None]"
_LAUNCHERS: dict[str, Launcher] = {}
THREADS = 256
"""Of a block, unless a schedule says otherwise."""
_ALIGNED = 16
"""Bytes that parts of shared memory start at multiples of."""


def launches(kind: str) -> Callable[[Launcher], Launcher]:
    """Decorator: the function adds the launches of a kind of schedule."""

    def register(function: Launcher) -> Launcher:
        _LAUNCHERS[kind] = function
        return function

    return register


@dataclass(frozen=True, slots=True)
class Access:
    """Numbers of the buffers that a launch reads and writes."""

    read: frozenset[int]
    written: frozenset[int]
    in_place: frozenset[int]
    """Those of which an element is read before the element of the same index is written, and never after."""


class Plan:
    """The buffers of a kernel, and its launches as they are added."""

    def __init__(self, kernel: KernelOp, name: str, device: GpuDevice) -> None:
        self.kernel, self.name, self.device = kernel, name, device
        self.types: list[MemRefType[Any]] = []
        """Of all buffers, by number."""
        self.numbers: dict[SSAValue, int] = {}
        """Buffers of the values that stand in memory."""
        self.workspaces: list[int] = []
        self.ops: list[Operation] = []
        """Functions and globals of the module."""
        self.launches: list[Launch] = []
        self.accesses: list[Access] = []
        """Of each launch."""
        self.updates: dict[int, int] = {}
        """By the number of a result, that of the operand of which it holds a copy at first."""
        for value in (*kernel.block.args, *kernel.results_returned):
            self.numbers.setdefault(value, len(self.types))
            self.types.append(buffer_type(array(value)))

    def workspace(self, type_: MemRefType[Any]) -> int:
        """Number of a new buffer that the launches share."""
        bytes_ = prod(type_.get_shape()) * type_.element_type.size
        self.workspaces.append(max(bytes_, 1))
        self.types.append(type_)
        return len(self.types) - 1

    def place(self, value: SSAValue) -> None:
        """Gives a value a workspace unless it has a buffer."""
        if value not in self.numbers:
            self.numbers[value] = self.workspace(buffer_type(array(value)))

    def holds(self, value: SSAValue) -> bool:
        """Whether a value is an operand or what a launch stores, so that it is read from memory."""
        owner = value.owner
        is_stored = not isinstance(owner, Operation) or schedule_of(owner) is not None
        return is_stored and value in self.numbers

    def begins_as(self, result: SSAValue, operand: SSAValue) -> None:
        """Says that a result holds a copy of an operand before the first launch: it is read in its place."""
        self.updates[self.numbers[result]] = self.numbers[operand]
        self.numbers[operand] = self.numbers[result]

    def add(self, launch: Launch, access: Access) -> None:
        """Adds a launch whose function is in `ops`."""
        self.launches.append(launch)
        self.accesses.append(access)

    def begin(
        self,
        reads: Sequence[SSAValue],
        writes: Sequence[SSAValue],
        more: Sequence[int] = (),
        more_read: Sequence[int] = (),
    ) -> LaunchBuilder:
        """A launch that reads and writes values, and further buffers by number."""
        return LaunchBuilder(self, reads, writes, more, more_read)

    def finish(self) -> GpuKernel:
        """All of it."""
        return GpuKernel(
            self.name,
            gpu_module(self.name, self.ops),
            tuple(self.launches),
            tuple(self.workspaces),
            tuple(self._in_place()),
            tuple((operand, result) for result, operand in self.updates.items()),
        )

    def _in_place(self) -> Iterator[tuple[int, int]]:
        """Operands, each with a result that is written when the operand has been read."""
        operands = len(self.kernel.block.args)
        for result in range(operands, operands + len(self.kernel.results_returned)):
            writing = [at for at, access in enumerate(self.accesses) if result in access.written]
            if not writing or result in self.updates:
                continue
            first, after = self.accesses[writing[0]], self.accesses[writing[0] + 1 :]
            for operand in range(operands):
                is_free = operand not in first.read or operand in first.in_place
                if is_free and not any(operand in access.read for access in after):
                    yield operand, result


class LaunchBuilder(KernelBuilder):
    """One launch: a kernel over buffers of a plan."""

    def __init__(
        self,
        plan: Plan,
        reads: Sequence[SSAValue],
        writes: Sequence[SSAValue],
        more: Sequence[int],
        more_read: Sequence[int],
    ) -> None:
        self.plan = plan
        read = dict.fromkeys((*(plan.numbers[v] for v in reads), *more_read))
        written = dict.fromkeys((*(plan.numbers[v] for v in writes), *more))
        self.read, self.written = frozenset(read), frozenset(written)
        self.in_place: frozenset[int] = frozenset()
        """Numbers of buffers that are read before the same index is written; for `Plan.accesses`."""
        self.static_bytes = 0
        """Of other shared memory."""
        self.shared_bytes = 0
        """Of dynamic shared memory that buffers of `shared_arrays` take."""
        entry = plan.name if not plan.launches else f"{plan.name}_{len(plan.launches)}"
        only_read = [n for n in read if n not in written]
        self.numbers = [*only_read, *written]
        super().__init__(entry, [plan.types[n] for n in self.numbers], read_only=len(only_read))
        self.memory = dict(zip(self.numbers, self.arguments, strict=True))
        """Memrefs of the buffers, by number."""
        self.e = ElementBuilder(self, {v: self.memory[plan.numbers[v]] for v in reads})

    def write(self, value: SSAValue, indices: Sequence[Index], element: Value) -> None:
        """Stores an element of a value."""
        shape = array(value)
        buffer = self.memory[self.plan.numbers[value]]
        linear = self.e.linear_of(indices, shape.dimensions)
        if linear is not None:
            for part, number in enumerate(element):
                place = self.add(self.mul(linear, len(element)), part)
                self.store(to_memory(self, number, shape.element_type), self.flat(buffer), [place])
            return
        store(self, buffer, indices, element, shape, 0, None)

    def read_in_place(self, values: Collection[SSAValue]) -> None:
        """Says of which values elements are read before those of the same index are written."""
        self.in_place = frozenset(self.plan.numbers[v] for v in values if v in self.plan.numbers)

    def shared(self, sizes: Sequence[int], element: Attribute) -> SSAValue:
        """As `KernelBuilder.shared`, and counted."""
        self.static_bytes += prod(sizes) * cast("Any", element).size
        return super().shared(sizes, element)

    def shared_arrays(
        self,
        elements: Sequence[PrimitiveType],
        counts: int | Sequence[int],
        *,
        is_aligned: bool = False,
    ) -> list[SSAValue]:
        """Buffers in shared memory of so many elements of each type: dynamic where blocks have less by default, or
        where each has to begin at a multiple of 16 bytes. Parts of complex numbers lie beside each other."""
        counts = [counts] * len(elements) if isinstance(counts, int) else counts
        pairs = list(zip(elements, counts, strict=True))
        sizes = [count * element.byte_size for element, count in pairs]
        shapes = [([count * (1 + e.is_complex)], memory_type(e)) for e, count in pairs]
        if sum(sizes) <= self.plan.device.shared_memory_per_block and not is_aligned:
            return [self.shared(*shape) for shape in shapes]
        whole, views = self.dynamic_shared(), list[SSAValue]()
        for shape, size in zip(shapes, sizes, strict=True):
            views.append(self.view(whole, self.shared_bytes, *shape))
            self.shared_bytes += -(-size // _ALIGNED) * _ALIGNED
        return views

    def launch(
        self,
        blocks: int | tuple[int, int, int],
        threads: int,
        shared_bytes: int = 0,
        cluster: int = 1,
    ) -> None:
        """Ends the kernel and adds the launch, with so many further bytes of dynamic shared memory, and neighbouring
        blocks in clusters. Raises `HloError` HLO0806 where a block has not so much shared memory."""
        shared_bytes += self.shared_bytes
        device = self.plan.device
        whole = self.static_bytes + shared_bytes
        if whole > device.shared_memory_per_block_optin or (
            self.static_bytes > device.shared_memory_per_block
        ):
            raise error(
                "HLO0806",
                f"a block of {self.name} takes {whole} bytes of shared memory, more than {device.name} has for it",
            )
        grid = (blocks, 1, 1) if isinstance(blocks, int) else blocks
        block = (threads, 1, 1)
        self.plan.ops += self.globals
        clusters = (cluster, 1, 1)
        self.plan.ops.append(self.finish_kernel(grid, block, clusters))
        access = Access(self.read, self.written, self.in_place)
        buffers = tuple(self.numbers)
        self.plan.add(
            Launch(self.name, grid, block, buffers, shared_bytes, clusters, tuple(self.maps)),
            access,
        )

    def each_thread(self, count: int, threads: int, body: Callable[[SSAValue], None]) -> int:
        """Code for thread numbers below `count` over all blocks; how many blocks there are."""
        blocks = -(-count // threads)
        index = self.index(self.add(self.mul(self.block_id(), threads), self.thread_id()))
        is_whole = count % threads == 0
        guard = nullcontext() if is_whole else self.if_(self.cmpi("ult", index, self.index(count)))
        with guard, self.e.scope():
            body(index)
        return blocks


def launch_all(kernel: KernelOp, name: str, device: GpuDevice) -> GpuKernel:
    """The launches of a scheduled kernel. Raises `HloError` HLO0802 and HLO0806."""
    from mlirhlo.lowering.gpu import element_ops, kinds

    del element_ops, kinds
    plan = Plan(kernel, name, device)
    groups: dict[int, list[Operation]] = {}
    schedules: dict[int, Schedule] = {}
    for op in kernel.block.ops:
        schedule = schedule_of(op)
        if schedule is not None:
            groups.setdefault(schedule.launch, []).append(op)
            schedules.setdefault(schedule.launch, schedule)
            for value in op.results:
                plan.place(value)
            if isinstance(op, AssembleOp) and schedule.kind == "update":
                plan.begins_as(op.output, op.pieces[0])
    for number in sorted(groups):
        schedule = schedules[number]
        check_schedule(groups[number], schedule, device)
        with target.using(target.PTX):
            _LAUNCHERS[schedule.kind](plan, groups[number], schedule)
    _copies(plan)
    return plan.finish()


def _copies(plan: Plan) -> None:
    """Results that are operands, constants, or the same as another result."""
    count = len(plan.kernel.block.args)
    for number, value in enumerate(plan.kernel.results_returned, count):
        owner = value.owner
        if plan.numbers[value] == number and not isinstance(owner, ConstantOp):
            continue
        from_memory = [value] if plan.numbers[value] != number else []
        b = plan.begin(from_memory, (), [number])

        def body(
            index: SSAValue, b: LaunchBuilder = b, number: int = number, value: SSAValue = value
        ) -> None:
            shape = array(value)
            indices = b.e.unlinear(index, shape.dimensions)
            store(b, b.memory[number], indices, b.e.at(value, indices), shape, 0, None)

        size = prod(array(value).dimensions)
        if size:
            threads = min(THREADS, -(-size // 32) * 32)
            b.launch(b.each_thread(size, threads, body), threads)


def inputs_of(
    plan: Plan, ops: Sequence[Operation], but: Sequence[Operation] = ()
) -> list[SSAValue]:
    """Values in memory that ops read, themselves or through ops that are computed where they are read.

    `but`: results of these are not read from memory.
    """
    hidden = {value for op in but for value in op.results}

    def is_read(value: SSAValue) -> bool:
        return value not in hidden and plan.holds(value)

    return list(dict.fromkeys(v for op in ops for v in memory_inputs(op, is_read)))


def stored_inputs(plan: Plan, values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values in memory that elements of these values are computed from."""
    found: dict[SSAValue, None] = {}
    for value in values:
        if plan.holds(value):
            found[value] = None
        elif isinstance(value.owner, Operation):
            found |= dict.fromkeys(memory_inputs(value.owner, plan.holds))
    return list(found)
