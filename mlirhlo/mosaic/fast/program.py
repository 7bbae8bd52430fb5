"""A kernel's module as one StableHLO function of its arrays."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, Operation, Region, SSAValue

from mlirhlo.mosaic.attributes import (
    dictionaries_of,
    integer_of,
    integers,
    integers_of,
    lists_of,
    plain,
)
from mlirhlo.mosaic.fast.elementwise import TABLE
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, tensor, type_of
from mlirhlo.mosaic.interpreter import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp

_NOTHING = frozenset(
    {
        "tpu.wait_dma2",
        "tpu.wait_dma",
        "tpu.sem_signal",
        "tpu.sem_wait",
        "tpu.trace_start",
        "tpu.trace_stop",
        "tpu.trace_value",
        "tpu.log",
        "tpu.delay",
        "cf.assert",
    }
)
"""What orders things, or tells of them: here all things are in order."""


@dataclass(frozen=True, slots=True)
class View:
    """A part of a memory."""

    memory: int
    starts: tuple[Val, ...]
    sizes: tuple[int, ...]
    """Of each dimension of the memory."""
    kept: tuple[bool, ...]
    """Which dimensions the reference has."""


class _Program:
    """One function under construction."""

    def __init__(self) -> None:
        self.w = Writer()
        self.values: dict[SSAValue, Val] = {}
        self.views: dict[SSAValue, View | None] = {}
        """Of references; None of semaphores."""
        self.memories: dict[int, Val] = {}
        self.bounds: tuple[int, ...] = ()

    def memory(self, value: Val) -> View:
        """A new memory that holds a value."""
        number = len(self.memories)
        self.memories[number] = value
        zero = self.w.constant(0, "i32")
        rank = len(value.shape)
        return View(number, (zero,) * rank, value.shape, (True,) * rank)

    def empty(self, type_: Any) -> View | None:
        """New memory of a memref type; None for semaphores."""
        if "semaphore" in str(type_.element_type):
            return None
        shape, element = type_of(type_)
        return self.memory(self.w.constant(0, element, shape))

    # Blocks and regions.

    def block(self, block: Block) -> list[Val]:
        """All operations; gives what the terminator yields."""
        for op in block.ops:
            if op.name in ("scf.yield", "tpu.yield", "func.return"):
                return [self.values[value] for value in op.operands]
            if op.name == "scf.condition":
                return [self.values[value] for value in op.operands]
            self.one(op)
        return []

    def one(self, op: Operation) -> None:
        """One operation."""
        special = getattr(self, "do_" + op.name.replace(".", "_"), None)
        if special is not None:
            special(op)
            return
        if op.name in _NOTHING:
            return
        translate = TABLE.get(op.name)
        if translate is None:
            raise has_no_program(op)
        self.values[op.results[0]] = translate(self.w, op, [self.values[v] for v in op.operands])

    def _define(self, op: Operation, values: Sequence[Val]) -> None:
        for result, value in zip(op.results, values, strict=True):
            self.values[result] = value

    def do_scf_if(self, op: Operation) -> None:
        """Both branches give their values and the memories that either changed."""
        before = dict(self.memories)
        texts: list[list[str]] = []
        yielded: list[list[Val]] = []
        after: list[dict[int, Val]] = []
        for region in op.regions:
            self.memories = dict(before)
            with self.w.apart() as lines:
                yielded.append(self.block(region.blocks[0]) if region.blocks else [])
            texts.append(lines)
            after.append({number: self.memories[number] for number in before})
        changed = [n for n in before if any(one[n] is not before[n] for one in after)]
        self.memories = before
        results = [*yielded[0], *(before[n] for n in changed)]
        if not results:
            return
        for lines, values, memories in zip(texts, yielded, after, strict=True):
            lines.append(_return([*values, *(memories[n] for n in changed)]))
        made = [Val(self.w.name(), one.shape, one.element) for one in results]
        head = self._packed(made)
        condition = self.values[op.operands[0]]
        self.w.lines += [
            f'{head[0]} = "stablehlo.if"({condition.name}) ({{',
            *texts[0],
            "}, {",
            *texts[1],
            f"}}) : ({condition.type}) -> {head[1]}",
        ]
        made = head[2]
        self._define(op, made[: len(op.results)])
        for number, value in zip(changed, made[len(op.results) :], strict=True):
            self.memories[number] = value

    def _packed(self, made: list[Val]) -> tuple[str, str, list[Val]]:
        """Name, type and parts of several results."""
        types = ", ".join(one.type for one in made)
        if len(made) == 1:
            return made[0].name, made[0].type, made
        name = made[0].name
        parts = [Val(f"{name}#{at}", one.shape, one.element) for at, one in enumerate(made)]
        return f"{name}:{len(made)}", f"({types})", parts

    def loop(
        self,
        carried: Sequence[Val],
        condition: Any,
        body: Any,
    ) -> list[Val]:
        """A while loop over values and the memories that its body changes; `condition` and `body` take
        the carried values, and give one boolean, and the next ones.
        """
        before = dict(self.memories)
        kept = dict(self.values), dict(self.views)
        with self.w.apart():
            body([Val(one.name, one.shape, one.element) for one in carried])
        changed = [n for n in before if self.memories[n] is not before[n]]
        self.memories = dict(before)
        self.values, self.views = kept
        start = [*carried, *(before[n] for n in changed)]
        inner = [Val(self.w.name(), one.shape, one.element) for one in start]
        count = len(carried)
        for number, value in zip(changed, inner[count:], strict=True):
            self.memories[number] = value
        with self.w.apart() as tests:
            tests.append(_return([condition(inner[:count])]))
        with self.w.apart() as lines:
            following = body(inner[:count])
            lines.append(_return([*following, *(self.memories[n] for n in changed)]))
        self.memories = dict(before)
        made = [Val(self.w.name(), one.shape, one.element) for one in start]
        name, _, parts = self._packed(made)
        pairs = ", ".join(f"{a.name} = {b.name}" for a, b in zip(inner, start, strict=True))
        types = ", ".join(one.type for one in start)
        self.w.lines += [
            f"{name} = stablehlo.while({pairs}) : {types}",
            "cond {",
            *tests,
            "} do {",
            *lines,
            "}",
        ]
        for number, value in zip(changed, parts[count:], strict=True):
            self.memories[number] = value
        return parts[:count]

    def do_scf_for(self, op: Operation) -> None:
        """A while loop that counts."""
        lower, upper, step, *initial = (self.values[value] for value in op.operands)
        block = op.regions[0].blocks[0]

        def condition(values: list[Val]) -> Val:
            return self.w.compare("LT", values[0], upper)

        def body(values: list[Val]) -> list[Val]:
            for argument, value in zip(block.args, values, strict=True):
                self.values[argument] = value
            result = self.block(block)
            return [self.w.like("add", values[0], step), *result]

        first = Val(lower.name, lower.shape, lower.element)
        self._define(op, self.loop([first, *initial], condition, body)[1:])

    def do_scf_while(self, op: Operation) -> None:
        """A while loop whose first region only decides."""
        before, after = (region.blocks[0] for region in op.regions)
        forwarded = list(before.last_op.operands[1:]) if before.last_op is not None else []
        if forwarded != list(before.args):
            raise has_no_program(op, "its condition passes other values on")

        def condition(values: list[Val]) -> Val:
            for argument, value in zip(before.args, values, strict=True):
                self.values[argument] = value
            return self.block(before)[0]

        def body(values: list[Val]) -> list[Val]:
            for argument, value in zip(after.args, values, strict=True):
                self.values[argument] = value
            return self.block(after)

        self._define(op, self.loop([self.values[v] for v in op.operands], condition, body))

    def do_tpu_region(self, op: Operation) -> None:
        """What stands in it."""
        self._define(op, self.block(op.regions[0].blocks[0]))

    do_tpu_trace = do_tpu_region

    # Memories.

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
        box = self.w.read(
            self.memories[view.memory], self._at(op, base, indices), self._sizes(view, shape)
        )
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
        box = self.w.read(self.memories[view.memory], self._at(op, base, indices), span)
        self.values[op.results[0]] = self.w.slice(box, [0] * len(shape), shape, strides)

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
        memory, at = self.memories[view.memory], self._at(op, base, indices)
        sizes = self._sizes(view, value.shape)
        if mask or adds:
            old = self.w.reshape(self.w.read(memory, at, sizes), value.shape)
            if adds:
                value = self.w.like("add", old, value)
            if mask:
                value = self.w.select(mask[0], value, old)
        self.memories[view.memory] = self.w.write(memory, self.w.reshape(value, sizes), at)

    def do_memref_alloca(self, op: Operation) -> None:
        """Memory that holds zeros."""
        self.views[op.results[0]] = self.empty(op.results[0].type)

    do_tpu_sem_alloc = do_memref_alloca

    def do_tpu_memref_slice(self, op: Operation) -> None:
        """A part of a part."""
        base, *indices = op.operands
        view = self.views.get(base)
        if view is None:
            self.views[op.results[0]] = None
            return
        shape, _ = type_of(op.results[0].type)
        if any(size < 0 for size in shape):
            raise has_no_program(op, "of a size known when it runs")
        sizes = self._sizes(view, shape)
        at = self._at(op, base, indices)
        self.views[op.results[0]] = View(view.memory, tuple(at), sizes, view.kept)

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
            if at >= 0 and view.sizes[dim] == target[at]:
                at -= 1
            else:
                kept[dim] = False
        self.views[op.results[0]] = View(view.memory, view.starts, view.sizes, tuple(kept))

    def do_tpu_enqueue_dma(self, op: Operation) -> None:
        """The copy, at once."""
        sizes = integers_of(op, "operandSegmentSizes") or (1, 0, 1, 1, 0, 0, 0)
        if any(sizes[4:]):
            raise has_no_program(op, "to other devices")
        source = self._view(op, op.operands[0])
        target = self._view(op, op.operands[1 + sizes[1]])
        box = self.w.read(self.memories[source.memory], source.starts, source.sizes)
        update = self.w.reshape(box, target.sizes)
        self.memories[target.memory] = self.w.write(
            self.memories[target.memory], update, target.starts
        )

    def do_tpu_iteration_bound(self, op: Operation) -> None:
        """The size of the grid."""
        size = self.bounds[integer_of(op, "dim")]
        self.values[op.results[0]] = self.w.constant(size, "i32")


def _return(values: Sequence[Val]) -> str:
    names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
    return f"stablehlo.return {names} : {types}"


@dataclass(slots=True)
class _Window:
    """Blocks of one array."""

    memory: View
    """All of the array, with what blocks reach beyond it."""
    array: Val
    bounds: tuple[int, ...]
    region: Region
    counts_elements: bool
    low: tuple[int, ...]


def program_of(
    module: ModuleOp,
    inputs: Sequence[tuple[tuple[int, ...], str]],
    results: Sequence[tuple[tuple[int, ...], str]],
    aliases: Mapping[int, int] | None = None,
) -> str:
    """The text of a StableHLO module whose function `main` takes and gives the kernel's arrays; types
    are shapes and element types as MLIR spells them.

    Raises `HloError` HLO0738 for operations that only the simulator has.
    """
    kernel = Kernel(module)
    p = _Program()
    if any(bound < 0 for bound in kernel.bounds):
        raise has_no_program(kernel.op, "with a bound that is an operand")
    p.bounds = kernel.bounds
    arguments = [Val(f"%arg{at}", *one) for at, one in enumerate(inputs)]
    held = list(arguments)
    for number, (shape, element) in enumerate(results):
        shared = (aliases or {}).get(number)
        held.append(arguments[shared] if shared is not None else p.w.constant(0, element, shape))
    block = kernel.op.regions[0].blocks[0]
    params = block.args[len(kernel.bounds) :]
    entries = dictionaries_of(kernel.op, "window_params") or ()
    functions = {str(plain(op.properties["sym_name"])): op for op in module.body.ops}
    windows: list[_Window | None] = []
    for number, value in enumerate(held):
        at = number - kernel.prefetches
        entry: Mapping[str, Any] = entries[at] if 0 <= at < len(entries) else {}
        windows.append(_window(p, value, entry, functions))
        window = windows[-1]
        p.views[params[number]] = p.memory(value) if window is None else None
    for argument in params[len(held) :]:
        p.views[argument] = p.empty(argument.type)
    prefetched = [params[at] for at in range(kernel.prefetches)]

    def step(indices: list[Val]) -> None:
        for argument, index in zip(block.args, indices, strict=False):
            p.values[argument] = index
        places = [_place(p, window, indices, prefetched) for window in windows]
        blocks: list[tuple[View, View]] = []
        for number, (window, place) in enumerate(zip(windows, places, strict=True)):
            if window is None or place is None:
                continue
            kept = (True,) * len(place)
            part = View(window.memory.memory, tuple(place), window.bounds, kept)
            p.views[params[number]] = part
            if number >= len(inputs):
                # Branches carry the block alone, not the array around it.
                own = p.memory(p.w.read(p.memories[part.memory], part.starts, part.sizes))
                p.views[params[number]] = own
                blocks.append((part, own))
        fetched = [p.memories[w.memory.memory] for w in windows[: len(inputs)] if w is not None]
        p.block(block)
        if fetched != [
            p.memories[w.memory.memory] for w in windows[: len(inputs)] if w is not None
        ]:
            raise has_no_program(kernel.op, "that stores to the block of an operand")
        for part, own in blocks:
            p.memories[part.memory] = p.w.write(
                p.memories[part.memory], p.memories[own.memory], part.starts
            )

    total = 1
    for bound in kernel.bounds:
        total *= bound
    if not kernel.bounds:
        step([])
    elif total:

        def body(values: list[Val]) -> list[Val]:
            step(_indices(p.w, values[0], kernel.bounds))
            return [p.w.like("add", values[0], p.w.constant(1, "i32"))]

        def goes_on(values: list[Val]) -> Val:
            return p.w.compare("LT", values[0], p.w.constant(total, "i32"))

        begin = p.w.constant(0, "i32")
        p.loop([Val(begin.name, (), "i32")], goes_on, body)
    outs: list[Val] = []
    for number in range(len(inputs), len(held)):
        window, view = windows[number], p.views[params[number]]
        if window is None:
            assert view is not None
            outs.append(p.memories[view.memory])
            continue
        value = p.memories[window.memory.memory]
        outs.append(p.w.slice(value, window.low, held[number].shape, [1] * len(value.shape)))
    p.w.lines.append(
        f"return {', '.join(v.name for v in outs)} : {', '.join(v.type for v in outs)}"
    )
    given = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    types = ", ".join(tensor(*one) for one in results)
    lines = "\n".join(f"    {line}" for line in p.w.lines)
    return f"module @{kernel.name} {{\n  func.func public @main({given}) -> ({types}) {{\n{lines}\n  }}\n}}\n"


def _window(p: _Program, value: Val, entry: Any, functions: Any) -> _Window | None:
    if "transform_indices" not in entry:
        return None
    bounds = integers(entry["window_bounds"])
    kind = entry.get("window_kind")
    low = high = (0,) * len(bounds)
    if kind is not None:
        low, high = lists_of(kind)[:2]
        more = [*high]
    else:
        more = [-size % block for size, block in zip(value.shape, bounds, strict=True)]
    padded = value
    if any(low) or any(more):
        shape = [n + a + b for n, a, b in zip(value.shape, low, more, strict=True)]
        zero = p.w.constant(0, value.element)
        padded = p.w.op(
            "pad",
            [value, zero],
            shape,
            value.element,
            f"low = {list(low)}, high = {list(more)}, interior = {[0] * len(shape)}",
        )
    region = functions[plain(entry["transform_indices"])].regions[0]
    return _Window(p.memory(padded), value, bounds, region, kind is not None, tuple(low))


def _place(
    p: _Program, window: _Window | None, indices: list[Val], prefetched: Sequence[SSAValue]
) -> list[Val] | None:
    """Where the block of a step begins."""
    if window is None:
        return None
    block = window.region.blocks[0]
    for argument, index in zip(block.args, indices, strict=False):
        p.values[argument] = index
    for argument, ref in zip(block.args[len(indices) :], prefetched, strict=True):
        p.views[argument] = p.views[ref]
    found = p.block(block)
    if window.counts_elements:
        return found
    starts: list[Val] = []
    for number, size in zip(found, window.bounds, strict=True):
        if number.known is not None:
            starts.append(p.w.constant(number.known * size, "i32"))
        else:
            starts.append(p.w.like("multiply", number, p.w.constant(size, "i32")))
    return starts


def _indices(w: Writer, step: Val, bounds: Sequence[int]) -> list[Val]:
    """The indices of the grid at a step, the last dimension fastest."""
    found: list[Val] = []
    for size in reversed(bounds):
        if size == 1:
            found.append(w.constant(0, "i32"))
            continue
        whole = w.constant(size, "i32")
        found.append(w.like("remainder", step, whole))
        step = w.like("divide", step, whole)
    return found[::-1]
