"""References: memories that are values, and views of them."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from xdsl.ir import Operation, SSAValue

from mlirhlo.mosaic.attributes import integer_of, integers_of
from mlirhlo.mosaic.fast.packing import in_rows
from mlirhlo.mosaic.fast.sources import Box, Source
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, tensor, type_of


@dataclass(frozen=True, slots=True)
class View:
    """A part of a memory."""

    memory: int
    starts: tuple[Val, ...]
    sizes: tuple[int, ...]
    """Of each dimension of the memory; the most there can be where `counts` says how many."""
    kept: tuple[bool, ...]
    """Which dimensions the reference has."""
    counts: Mapping[int, Val] = field(default_factory=dict["int", "Val"])
    """By dimension of the memory, sizes known when the program runs."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A part of a memory in another form: its elements in another shape, or of another type."""

    view: View
    forth: Callable[[Val], Val]
    back: Callable[[Val], Val]


class Memories:
    """What references are, and the operations on them."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self.values: dict[SSAValue, Val] = {}
        self.views: dict[SSAValue, View | None] = {}
        """Of references; None of semaphores."""
        self.memories: dict[int, Val] = {}
        self._sources: dict[int, Source] = {}
        """Of memories of floats that nothing stores to."""
        self._shown: dict[int, Shown] = {}
        """Memories that are others in another form."""
        self._made = 0
        self.counts_semaphores = False
        """Whether semaphores are numbers, of kernels that read them."""

    def memory(self, value: Val, *, is_constant: bool = False, reads: int = 1) -> View:
        """A new memory that holds a value; `is_constant` where nothing ever stores to it; `reads`: times
        that all of it is read."""
        number, self._made = self._made, self._made + 1
        self.memories[number] = value
        if is_constant and value.element in ("f32", "bf16"):
            self._sources[number] = Source(self.w, value, reads)
        zero = self.w.constant(0, "i32")
        rank = len(value.shape)
        return View(number, (zero,) * rank, value.shape, (True,) * rank)

    def _held(self, memory: int) -> Val:
        """What a memory holds."""
        shown = self._shown.get(memory)
        return self.memories[memory] if shown is None else shown.forth(self.read(shown.view))

    def _hold(self, memory: int, value: Val) -> None:
        """Replaces what a memory holds."""
        shown = self._shown.get(memory)
        if shown is None:
            self.memories[memory] = value
        else:
            self.write(shown.view, shown.back(value))

    def _show(
        self,
        op: Operation,
        shape: Sequence[int],
        forth: Callable[[Val], Val],
        back: Callable[[Val], Val],
    ) -> None:
        """The result of an operation is its operand in another form."""
        view = self.views.get(op.operands[0])
        if view is None or view.counts:
            raise has_no_program(op, "of this reference")
        number, self._made = self._made, self._made + 1
        self._shown[number] = Shown(view, forth, back)
        zero = self.w.constant(0, "i32")
        rank = len(shape)
        self.views[op.results[0]] = View(number, (zero,) * rank, tuple(shape), (True,) * rank)

    def do_tpu_memref_reshape(self, op: Operation) -> None:
        """The same elements in another shape."""
        view, shape = self._view(op, op.operands[0]), type_of(op.results[0].type)[0]
        self._show(
            op,
            shape,
            lambda value: self.w.reshape(value, shape),
            lambda value: self.w.reshape(value, view.sizes),
        )

    def do_tpu_memref_bitcast(self, op: Operation) -> None:
        """The same bits as other elements: rows in words."""
        before, narrow = type_of(op.operands[0].type)
        shape, element = type_of(op.results[0].type)
        view, w = self._view(op, op.operands[0]), self.w

        def forth(value: Val) -> Val:
            return in_rows(w, w.reshape(value, before), shape, element)

        def back(value: Val) -> Val:
            return w.reshape(in_rows(w, value, before, narrow), view.sizes)

        self._show(op, shape, forth, back)

    def _box(self, memory: int, starts: Sequence[Val], sizes: Sequence[int]) -> Val:
        """A box of a memory."""
        box = self.w.read(self._held(memory), starts, sizes)
        source = self._sources.get(memory)
        known = self.w.boxes.get(box.name)
        # A block that stays may be a part of an array that is read more often.
        if source is not None and (known is None or known.reads < source.reads):
            self.w.boxes[box.name] = Box(source, starts, tuple(sizes))
        return box

    def tell_reads(self, memory: int, elements: int) -> None:
        """Says how many elements are read of a memory in all."""
        if source := self._sources.get(memory):
            source.reads = elements // max(1, prod(source.value.shape))

    def empty(self, type_: Any) -> View | None:
        """New memory of a memref type; None for semaphores that nobody reads."""
        shape, element = type_of(type_)
        if element == "!tpu.semaphore" and self.counts_semaphores:
            element = "i32"
        elif "semaphore" in element:
            return None
        return self.memory(self.w.constant(0, element, shape))

    def read(self, view: View) -> Val:
        """All that a view shows."""
        return self._box(view.memory, view.starts, view.sizes)

    def write(self, view: View, value: Val) -> None:
        """Replaces all that a view shows."""
        self._hold(view.memory, self.w.write(self._held(view.memory), value, view.starts))

    def _at(self, op: Operation, ref: SSAValue, indices: Sequence[SSAValue]) -> list[Val]:
        view = self._view(op, ref)
        rest = iter(indices)
        found: list[Val] = []
        for start, kept in zip(view.starts, view.kept, strict=True):
            found.append(self._sum(start, self.values[next(rest)]) if kept else start)
        return found

    def _view(self, op: Operation, ref: SSAValue) -> View:
        view = self.views.get(ref)
        if view is None:
            raise has_no_program(op, "of this reference")
        return view

    def _sum(self, a: Val, b: Val) -> Val:
        if a.known is not None and b.known is not None:
            return self.w.constant(a.known + b.known, "i32")
        if a.known == 0:
            return b
        return a if b.known == 0 else self.w.like("add", a, b)

    def _sizes(self, view: View, shape: Sequence[int]) -> tuple[int, ...]:
        """The box of a shape in the memory's own dimensions."""
        ranks = sum(view.kept)
        rest = iter([*[1] * (ranks - len(shape)), *shape])
        return tuple(next(rest) if kept else 1 for kept in view.kept)

    def do_vector_load(self, op: Operation) -> None:
        """A box."""
        base, *indices = op.operands
        shape, _ = type_of(op.results[0].type)
        view = self._view(op, base)
        box = self._box(view.memory, self._at(op, base, indices), self._sizes(view, shape))
        self.values[op.results[0]] = self.w.reshape(box, shape)

    def do_tpu_vector_load(self, op: Operation) -> None:
        """A box; masks are of stores."""
        if (integers_of(op, "operandSegmentSizes") or (1, 0, 0))[2]:
            raise has_no_program(op, "masked")
        self.do_vector_load(op)

    do_memref_load = do_vector_load

    def do_tpu_strided_load(self, op: Operation) -> None:
        """The box around all elements, then every stride-th of it."""
        base, *indices = op.operands
        shape, _ = type_of(op.results[0].type)
        strides = integers_of(op, "strides") or ()
        view = self._view(op, base)
        if not all(view.kept) or 0 in strides:
            raise has_no_program(op, "of this reference")
        span = [(n - 1) * s + 1 for n, s in zip(shape, strides, strict=True)]
        box = self.w.read(self._held(view.memory), self._at(op, base, indices), span)
        self.values[op.results[0]] = self.w.slice(box, [0] * len(shape), shape, strides)

    def do_tpu_strided_store(self, op: Operation) -> None:
        """Every stride-th element of a box replaced."""
        value, base, *indices = op.operands
        new, strides = self.values[value], integers_of(op, "strides") or ()
        view = self._view(op, base)
        if not all(view.kept):
            raise has_no_program(op, "of this reference")
        w, at = self.w, self._at(op, base, indices)
        span = [(n - 1) * s + 1 for n, s in zip(new.shape, strides, strict=True)]
        memory = self._held(view.memory)
        none = [0] * len(span)
        more = f"low = {none}, high = {none}, interior = {[s - 1 for s in strides]}"
        given = w.constant(1, "i1", new.shape)
        spread, mask = (
            w.op("pad", [one, w.constant(0, one.element)], span, one.element, more)
            for one in (new, given)
        )
        box = w.select(mask, spread, w.read(memory, at, span))
        self._hold(view.memory, w.write(memory, box, at))

    def do_tpu_vector_store(self, op: Operation) -> None:
        """A box replaced, where the mask holds."""
        sizes = integers_of(op, "operandSegmentSizes") or (1, 1, len(op.operands) - 2, 0)
        value, base, *rest = op.operands
        masked = [self.values[rest.pop()]] if sizes[3] else []
        self._store(op, self.values[value], base, rest, masked, integer_of(op, "add") != 0)

    def do_memref_store(self, op: Operation) -> None:
        """One element replaced."""
        value, base, *indices = op.operands
        self._store(op, self.values[value], base, indices, [], False)

    do_vector_store = do_memref_store

    def _store(
        self,
        op: Operation,
        value: Val,
        base: SSAValue,
        indices: Sequence[SSAValue],
        mask: list[Val],
        adds: bool,
    ) -> None:
        view = self._view(op, base)
        memory, at = self._held(view.memory), self._at(op, base, indices)
        sizes = self._sizes(view, value.shape)
        if mask or adds:
            old = self.w.reshape(self.w.read(memory, at, sizes), value.shape)
            if adds:
                value = self.w.like("add", old, value)
            if mask:
                value = self.w.select(mask[0], value, old)
        self._hold(view.memory, self.w.write(memory, self.w.reshape(value, sizes), at))

    def do_memref_alloca(self, op: Operation) -> None:
        """Memory that holds zeros."""
        self.views[op.results[0]] = self.empty(op.results[0].type)

    do_tpu_sem_alloc = do_memref_alloca

    def do_tpu_sem_signal(self, op: Operation) -> None:
        """More in a semaphore of this core."""
        if not self.counts_semaphores:
            return
        if any((integers_of(op, "operandSegmentSizes") or ())[2:]):
            raise has_no_program(op, "of another core's semaphore")
        self._count(op, "add")

    def do_tpu_sem_wait(self, op: Operation) -> None:
        """Less in it: what is waited for is there."""
        if self.counts_semaphores:
            self._count(op, "subtract")

    def _count(self, op: Operation, name: str) -> None:
        view, by = self._view(op, op.operands[0]), self.values[op.operands[1]]
        held = self.read(view)
        self.write(view, self.w.like(name, held, self.w.broadcast(by, held.shape)))

    def do_tpu_sem_read(self, op: Operation) -> None:
        """What it holds."""
        held = self.read(self._view(op, op.operands[0]))
        self.values[op.results[0]] = self.w.reshape(held, ())

    def do_tpu_memref_slice(self, op: Operation) -> None:
        """A part of a part."""
        base, *indices = op.operands
        view = self.views.get(base)
        if view is None:
            self.views[op.results[0]] = None
            return
        shape, _ = type_of(op.results[0].type)
        sizes = list(self._sizes(view, shape))
        counts = iter(indices[len(shape) :])
        known = dict(view.counts)
        for dim, size in enumerate(sizes):
            if size < 0:
                sizes[dim], known[dim] = view.sizes[dim], self.values[next(counts)]
            elif dim in known:
                del known[dim]
        at = self._at(op, base, indices[: len(shape)])
        self.views[op.results[0]] = View(view.memory, tuple(at), tuple(sizes), view.kept, known)

    def do_tpu_memref_squeeze(self, op: Operation) -> None:
        """The same part, without dimensions of size one."""
        view = self.views.get(op.operands[0])
        if view is None:
            self.views[op.results[0]] = None
            return
        target = type_of(op.results[0].type)[0]
        kept, at = list(view.kept), len(target) - 1
        for dim in range(len(kept) - 1, -1, -1):
            if not kept[dim]:
                continue
            if at >= 0 and (target[at] < 0 or view.sizes[dim] == target[at]):
                at -= 1
            else:
                kept[dim] = False
        self.views[op.results[0]] = replace(view, kept=tuple(kept))

    def do_tpu_enqueue_dma(self, op: Operation) -> None:
        """The copy, at once."""
        sizes = integers_of(op, "operandSegmentSizes") or (1, 0, 1, 1, 0, 0, 0)
        if any(sizes[4:]):
            raise has_no_program(op, "to other devices")
        source = self._view(op, op.operands[0])
        target = self._view(op, op.operands[1 + sizes[1]])
        if source.counts:
            self._copy_part(op, source, target)
        else:
            self.write(target, self.w.reshape(self.read(source), target.sizes))

    def _copy_part(self, op: Operation, source: View, target: View) -> None:
        """A copy of as many elements as are known when it runs: boxes of the most there can be, in which
        elements beyond stay. A box begins where all of it is in its memory.
        """
        w, zero = self.w, self.w.constant(0, "i32")
        pairs = [[dim for dim, kept in enumerate(view.kept) if kept] for view in (source, target)]
        if len(pairs[0]) != len(pairs[1]):
            raise has_no_program(op, "of these shapes")
        most = [min(source.sizes[a], target.sizes[b]) for a, b in zip(*pairs, strict=True)]
        boxes: list[Val] = []
        begins: list[list[Val]] = []
        shifts: list[dict[int, Val]] = []
        for view, dims in zip((source, target), pairs, strict=True):
            shape = self._held(view.memory).shape
            starts, moved = list(view.starts), dict[int, Val]()
            for at, dim in enumerate(dims):
                if dim in view.counts:
                    last = w.constant(shape[dim] - most[at], "i32")
                    starts[dim] = w.like("minimum", starts[dim], last)
                    moved[at] = w.like("subtract", view.starts[dim], starts[dim])
            sizes = [1] * len(shape)
            for at, dim in enumerate(dims):
                sizes[dim] = most[at]
            boxes.append(w.reshape(w.read(self._held(view.memory), starts, sizes), most))
            begins.append(starts)
            shifts.append(moved)
        new, old = boxes
        for at, dim in enumerate(pairs[0]):
            count = source.counts.get(dim)
            if count is None:
                continue
            size, here, there = most[at], shifts[0][at], shifts[1].get(at, zero)
            low = [size if one == at else 0 for one in range(len(most))]
            wide = [n + 2 * m for n, m in zip(most, low, strict=True)]
            more = f"low = {low}, high = {low}, interior = {[0] * len(most)}"
            padded = w.op("pad", [new, w.constant(0, new.element)], wide, new.element, more)
            begin = w.like("subtract", here, there)
            begin = w.like("add", begin, w.constant(size, "i32"))
            places = [begin if one == at else zero for one in range(len(most))]
            new = w.read(padded, places, most)
            numbers = tensor(most, "i32")
            number = w.emit(f"stablehlo.iota dim = {at} : {numbers}", most, "i32")
            first, end = (w.broadcast(one, most) for one in (there, w.like("add", there, count)))
            inside = w.like("and", w.compare("GE", number, first), w.compare("LT", number, end))
            new = w.select(inside, new, old)
        memory = self._held(target.memory)
        sizes = [1] * len(memory.shape)
        for at, dim in enumerate(pairs[1]):
            sizes[dim] = most[at]
        self._hold(target.memory, w.write(memory, w.reshape(new, sizes), begins[1]))
