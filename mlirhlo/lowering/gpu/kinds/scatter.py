"""Kinds `scatter`, `scatter_by_one` and `scatter_in_order`.

Results begin as the targets. Of the first kind, a thread combines an update, or neighbours, into memory: atomically
where several may go to one element. Of the second, a thread combines all that may meet, in their order. Of the third,
updates are sorted by the element they go to, and a thread combines those of one element in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from math import prod

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr

from mlirhlo.dialects.hlo.element_types import BF16, F16, S32, S64
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.structured import ScatterOp, sizes_of
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.gpu.element_ops import index_of
from mlirhlo.lowering.gpu.elements import array, regrouped
from mlirhlo.lowering.gpu.kinds.neighbours import read_neighbours
from mlirhlo.lowering.gpu.kinds.sorter import Sorter
from mlirhlo.lowering.gpu.launches import THREADS, LaunchBuilder, Plan, launches, stored_inputs
from mlirhlo.lowering.hlo_to_loops.elements import (
    Value,
    buffer_type,
    memory_type,
    to_memory,
    to_register,
)
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places
from mlirhlo.lowering.schedule.attributes import Schedule
from mlirhlo.lowering.schedule.scatters import is_apart, opcode_of, parallel_dims, serial_dims
from mlirhlo.lowering.schedule.updates import is_result


@launches("scatter")
def scatter(plan: Plan, ops: Sequence[ScatterOp], schedule: Schedule) -> None:
    """A thread an update, or neighbours."""
    vector = schedule.vector or 1
    for op in ops:
        if not _begin(plan, op):
            continue
        b = _launch(plan, op)

        def body(number: SSAValue, b: LaunchBuilder = b, op: ScatterOp = op) -> None:
            first = b.e.unlinear(b.index(b.mul(number, vector)), op.space)
            lanes = [b.e.beside(first, lane, op.space) for lane in range(vector)]
            for value in op.updates:
                read_neighbours(b, value, lanes)
            updates = [[b.e.at(value, at) for value in op.updates] for at in lanes]
            pairs = _has_pairs(op, b.plan.device, vector)
            targets = [_target(b, op, at) for at in (lanes[::2] if pairs else lanes)]
            if pairs:
                memory = b.memory[b.plan.numbers[op.outputs[0]]]
                parts = [value for ((value,),) in updates]
                for (target, valid), *pair in zip(targets, parts[::2], parts[1::2], strict=True):
                    with nullcontext() if valid is None else b.if_(valid), b.e.scope():
                        b.add_pair(pair, memory, target)
                return
            for (target, valid), update in zip(targets, updates, strict=True):
                with nullcontext() if valid is None else b.if_(valid), b.e.scope():
                    if is_apart(op):
                        _store(
                            b, op, target, b.e.body(op.combiner, [*_old(b, op, target), *update])
                        )
                    else:
                        _update_atomically(b, op, target, update[0])

        count = prod(op.space) // vector
        threads = schedule.threads or min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)


@launches("scatter_by_one")
def scatter_by_one(plan: Plan, ops: Sequence[ScatterOp], schedule: Schedule) -> None:
    """A thread for all updates that may go to one element."""
    for op in ops:
        if not _begin(plan, op):
            continue
        b = _launch(plan, op)
        space, parallel, serial = op.space, parallel_dims(op), serial_dims(op)

        def body(
            number: SSAValue,
            b: LaunchBuilder = b,
            op: ScatterOp = op,
            parallel: Sequence[int] = parallel,
            serial: Sequence[int] = serial,
        ) -> None:
            at: list[Index] = [0] * len(op.space)
            _assign(at, parallel, b.e.unlinear(number, [op.space[d] for d in parallel]))
            with ExitStack() as stack:
                for dim in serial:
                    at[dim] = stack.enter_context(b.loop(0, op.space[dim], nonempty=True))
                    stack.enter_context(b.e.scope())
                target, valid = _target(b, op, at)
                stack.enter_context(nullcontext() if valid is None else b.if_(valid))
                stack.enter_context(b.e.scope())
                update = [b.e.at(value, at) for value in op.updates]
                _store(b, op, target, b.e.body(op.combiner, [*_old(b, op, target), *update]))

        count = prod(space[d] for d in parallel)
        threads = schedule.threads or min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)


@launches("scatter_in_order")
def scatter_in_order(plan: Plan, ops: Sequence[ScatterOp], schedule: Schedule) -> None:
    """Numbers of elements and of updates, sorted; then a thread for each element that updates go to."""
    del schedule
    for op in ops:
        if _begin(plan, op):
            _InOrder(plan, op).launch()


# Results as they begin


def _begin(plan: Plan, op: ScatterOp) -> bool:
    """Lets results begin as the targets; whether there is more to do."""
    rest = [number for number in range(len(op.outputs)) if not _begins_as_target(plan, op, number)]
    if rest and 0 not in sizes_of(op.outputs[0]):
        _copy_targets(plan, op, rest)
    return 0 not in op.space and 0 not in sizes_of(op.outputs[0])


def _begins_as_target(plan: Plan, op: ScatterOp, number: int) -> bool:
    """Whether a target is an operand of the kernel that is read for nothing else, and the result its buffer."""
    target, result = op.targets[number], op.outputs[number]
    if not isinstance(target.owner, Block) or not target.has_one_use():
        return False
    if not is_result(result, plan.kernel):
        return False
    plan.begins_as(result, target)
    return True


def _copy_targets(plan: Plan, op: ScatterOp, numbers: Sequence[int]) -> None:
    sizes = sizes_of(op.outputs[0])
    count = prod(sizes)
    targets, results = [op.targets[n] for n in numbers], [op.outputs[n] for n in numbers]
    b = plan.begin(stored_inputs(plan, targets), results)

    def body(index: SSAValue) -> None:
        at = b.e.unlinear(index, sizes)
        for value, target in zip(results, targets, strict=True):
            b.write(value, at, b.e.at(target, at))

    threads = min(THREADS, -(-count // 32) * 32)
    b.launch(b.each_thread(count, threads, body), threads)


# One update


def _launch(plan: Plan, op: ScatterOp) -> LaunchBuilder:
    return plan.begin(stored_inputs(plan, [*op.indices, *op.updates]), op.outputs)


def _assign(at: list[Index], dims: Sequence[int], indices: Sequence[Index]) -> None:
    for dim, index in zip(dims, indices, strict=True):
        at[dim] = index


def _target(
    b: LaunchBuilder, op: ScatterOp, at: Sequence[Index]
) -> tuple[list[Index], SSAValue | None]:
    """Where an update goes, and whether that is in the array."""
    e, space = b.e, op.space
    target = list(e.mapped(op.offset_map, at, space))
    valid: SSAValue | None = None
    for value, map_, dim, limit in zip(
        op.indices, op.index_maps, op.indexed, op.largest, strict=True
    ):
        start = index_of(e, value, e.mapped(map_, at, space))
        test = b.cmpi("ule", start, b.index(limit))
        valid = test if valid is None else b.andi(valid, test)
        target[dim] = b.add(start, target[dim])
    return target, valid


def _old(b: LaunchBuilder, op: ScatterOp, target: Sequence[Index]) -> list[Value]:
    """What the results hold."""
    at = [Coordinate(i) for i in target]
    return [Places(b, 0).load(b.memory[b.plan.numbers[v]], array(v), at) for v in op.outputs]


def _store(
    b: LaunchBuilder, op: ScatterOp, target: Sequence[Index], elements: Sequence[Value]
) -> None:
    for value, element in zip(op.outputs, elements, strict=True):
        b.write(value, target, element)


_SIGNED = {"add": "addi", "maximum": "maxs", "minimum": "mins"}
_UNSIGNED = {"add": "addi", "maximum": "maxu", "minimum": "minu"}
_BITS = {"and": "andi", "or": "ori", "xor": "xori"}


def _instruction(op: ScatterOp, device: GpuDevice) -> str | None:
    """The kind of atomic update that a device has an instruction for; None where it swaps."""
    element, opcode = array(op.outputs[0]).element_type.real, opcode_of(op)
    if element.is_float:
        is_native = (
            element.bits >= 32
            or element is F16
            or (element is BF16 and device.capability >= (9, 0))
        )
        return "addf" if opcode == "add" and is_native else None
    if element.bits not in (32, 64):
        return None
    return ((_SIGNED if element.is_signed else _UNSIGNED) | _BITS).get(opcode)


def _has_pairs(op: ScatterOp, device: GpuDevice, vector: int) -> bool:
    """Whether neighbours of 16 bits are added together: both lie in one word of the target."""
    element = array(op.outputs[0]).element_type
    if is_apart(op) or element.bits != 16 or _instruction(op, device) != "addf" or vector % 2:
        return False
    sizes, column = (
        sizes_of(op.outputs[0]),
        op.offset_map.results[-1] if sizes_of(op.outputs[0]) else None,
    )
    is_last = isinstance(column, AffineDimExpr) and column.position == len(op.space) - 1
    return is_last and len(sizes) - 1 not in op.indexed and sizes[-1] % 2 == 0


def _update_atomically(
    b: LaunchBuilder, op: ScatterOp, target: Sequence[Index], update: Value
) -> None:
    memory = b.memory[b.plan.numbers[op.outputs[0]]]
    element = array(op.outputs[0]).element_type
    kind = _instruction(op, b.plan.device)
    if kind is not None:
        places = [[*target, part] for part in (0, 1)] if element.is_complex else [target]
        for at, part in zip(places, update, strict=True):
            b.atomic(kind, part, memory, at)
        return

    def new(old: SSAValue) -> SSAValue:
        with b.e.scope():
            ((value,),) = b.e.body(op.combiner, [(to_register(b, old, element),), update])
        return to_memory(b, value, element)

    b.atomic_update(memory, target, new)


# In order


class _InOrder:
    """Updates of one scatter, sorted: those that may meet along a line, for all others beside."""

    def __init__(self, plan: Plan, op: ScatterOp) -> None:
        self.plan, self.op = plan, op
        starts = {d for map_ in op.index_maps for expr in map_.results for d in expr.used_dims()}
        self.serial = serial_dims(op)
        parallel = parallel_dims(op)
        self.batch = [d for d in parallel if d in starts]
        """Dimensions with sorted lines of their own."""
        self.window = [d for d in parallel if d not in starts]
        """Those along which updates follow the first one."""
        self.length = prod(op.space[d] for d in self.serial)
        sizes = (*(op.space[d] for d in self.batch), self.length)
        is_small = prod(sizes_of(op.outputs[0])) < (1 << 31) - 1
        self.element = S32 if is_small else S64
        self.nowhere = (1 << self.element.bits - 1) - 1
        """The number of the element that an update goes to which is left out."""
        self.shapes = [ArrayShape(self.element, sizes), ArrayShape(S32, sizes)]

    def launch(self) -> None:
        """All launches."""
        plan, op = self.plan, self.op
        ordered = [plan.workspace(buffer_type(shape)) for shape in self.shapes]
        inputs = stored_inputs(plan, op.indices)

        def less(b: LaunchBuilder, x: Sequence[Value], y: Sequence[Value]) -> SSAValue:
            return b.cmpi("slt", x[0][0], y[0][0])

        Sorter(plan, self.shapes, len(self.batch), inputs, self._numbers, less).sort(ordered)
        self.keys, self.places = ordered
        inputs = stored_inputs(plan, [*op.indices, *op.updates])
        b = plan.begin(inputs, op.outputs, (), ordered)
        window = [op.space[d] for d in self.window]
        sizes = (*self.shapes[0].dimensions, *window)

        def body(number: SSAValue) -> None:
            at = b.e.unlinear(number, sizes)
            rank = len(self.batch) + 1
            self._combine(b, at[:rank], at[rank:])

        count = prod(sizes)
        threads = min(THREADS, -(-count // 32) * 32)
        b.launch(b.each_thread(count, threads, body), threads)

    def _at(
        self, b: LaunchBuilder, line: Sequence[Index], number: Index, window: Sequence[Index] = ()
    ) -> list[Index]:
        """Indices of an update by its number in a line."""
        at: list[Index] = [0] * len(self.op.space)
        _assign(at, self.batch, line)
        _assign(at, self.serial, b.e.unlinear(number, [self.op.space[d] for d in self.serial]))
        _assign(at, self.window, window or [0] * len(self.window))
        return at

    def _numbers(self, b: LaunchBuilder, at: tuple[Index, ...]) -> list[Value]:
        """The number of the element that the first update of a window goes to, and that of the update."""
        target, valid = _target(b, self.op, self._at(b, at[:-1], at[-1]))
        wide, narrow = memory_type(self.element), memory_type(S32)
        key = b.constant(0, wide)
        for index, size in zip(target, sizes_of(self.op.outputs[0]), strict=True):
            digit = b.cast_index(b.index(index), wide)
            key = b.addi(b.muli(key, b.constant(size, wide)), digit)
        if valid is not None:
            key = b.select(valid, key, b.constant(self.nowhere, wide))
        return [(key,), (b.cast_index(b.index(at[-1]), narrow),)]

    def _combine(self, b: LaunchBuilder, at: Sequence[Index], window: Sequence[Index]) -> None:
        """Combines the updates of an element, in the thread of the first of them."""
        *line, first = at
        op, (keys, places) = self.op, (b.memory[self.keys], b.memory[self.places])

        def key_at(index: Index) -> SSAValue:
            return b.load(keys, [*line, index])

        own = key_at(first)
        one, begin = b.constant(1, INDEX), b.index(first)
        before = b.select(b.cmpi("eq", begin, b.index(0)), begin, b.subi(begin, one))
        is_first = b.ori(b.cmpi("eq", begin, b.index(0)), b.cmpi("ne", key_at(before), own))
        is_first = b.andi(is_first, b.cmpi("ne", own, b.constant(self.nowhere, own.type)))

        def update(index: Index) -> tuple[list[Index], list[Value]]:
            number = b.cast_index(b.load(places, [*line, index]), INDEX)
            here = self._at(b, line, number, window)
            return here, [b.e.at(value, here) for value in op.updates]

        with b.if_(is_first), b.e.scope():
            here, new = update(begin)
            target, _ = _target(b, op, here)
            state = b.e.body(op.combiner, [*_old(b, op, target), *new])
            counts = [len(v) for v in state]

            def goes_on(values: Sequence[SSAValue]) -> SSAValue:
                inside = b.cmpi("ult", values[0], b.index(self.length))
                index = b.select(inside, values[0], begin)
                return b.andi(inside, b.cmpi("eq", key_at(index), own))

            def follow(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
                with b.e.scope():
                    _, new = update(values[0])
                    after = b.e.body(op.combiner, [*regrouped(values[1:], counts), *new])
                return [b.addi(values[0], one), *(part for v in after for part in v)]

            flat = [part for v in state for part in v]
            result = b.repeat_while([b.addi(begin, one), *flat], goes_on, follow)
            _store(b, op, target, regrouped(result[1:], counts))
