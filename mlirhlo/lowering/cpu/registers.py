"""Which scalars of a loop stay in registers, and what its rounds hand on.

A loop's scalars (counters, places, tests, totals) would go through memory from kernel to kernel: ten
cycles and more in which a round does nothing else. Kernels without loops are few instructions,
which `loop_functions.py` writes where they are called. A scalar that only such kernels write becomes a value;
where a kernel that is called reads it, it is stored too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects import memref
from xdsl.dialects.builtin import BFloat16Type, MemRefType, i8, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.quick import readers_of
from mlirhlo.lowering.hlo_to_loops.elements import memory_type
from mlirhlo.lowering.loops_to_llvm.effort import ops_inside
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
    all_steps,
    touched,
)

_MOST_OPS = 64
"""Of a kernel that is written where it is called."""
_MOST_IN_LOOP = 4096
"""Of all that are written into a loop: LLVM's time grows faster than functions do."""


def is_inlined(kernel: FuncOp) -> bool:
    """Whether a kernel has few instructions and no loop over an array."""
    ops = ops_inside(kernel)
    return len(ops) <= _MOST_OPS and all(op.name != "scf.parallel" for op in ops)


@dataclass
class Registers:
    """What is known of a loop's scalars."""

    types: dict[Buffer, Attribute] = field(default_factory=dict[Buffer, Attribute])
    """Those in registers, with the types of their values."""
    stored: set[Buffer] = field(default_factory=set[Buffer])
    """Those of them that kernels read which are called."""
    outer: Counter[Buffer] = field(default_factory=Counter[Buffer])
    """How often each buffer is named in the whole module."""

    def written(self, steps: Sequence[Step]) -> list[Buffer]:
        """The scalars that steps write, each once."""
        return [b for b in dict.fromkeys(_written(steps)) if b in self.types]

    def carried(self, steps: Sequence[Step], *parts: Sequence[Step]) -> list[Buffer]:
        """The scalars that a loop hands on from round to round, or a branch to what follows.

        `parts` of the loop, `steps`, run one after another and know of each other only what is handed on.
        """
        written = self.written(steps)
        needed: set[Buffer] = set()
        for part in parts:
            needed |= self._read_first(part, set())
        inside = Counter(touched(steps))
        return [b for b in written if b in needed or self.outer[b] > inside[b]]

    def _read_first(self, steps: Sequence[Step], written: set[Buffer]) -> set[Buffer]:
        """What is read before it is written; `written` grows by what surely is."""
        found: set[Buffer] = set()
        for step in steps:
            match step:
                case Kernel() | Callback():
                    found.update(b for b in step.reads if b not in written)
                    written.update(step.writes)
                case Copy():
                    found.update({step.source} - written)
                    written.add(step.target)
                case Slice():
                    found.update(b for b in step.reads if b not in written)
                case While():
                    found |= self._read_first(step.condition, written)
                    found.update({step.test} - written)
                    found |= self._read_first(step.body, set(written))
                case Repeat():
                    found |= self._read_first(step.body, written)
                case Branch():
                    found.update({step.selector} - written)
                    for branch in step.branches:
                        found |= self._read_first(branch, set(written))
        return found


def registers_of(
    loop: While, kernels: Mapping[str, FuncOp], outer: Counter[Buffer]
) -> Registers | None:
    """The scalars of a loop; None where it has to stay among the steps around it.

    `outer`: how often each buffer is named in the whole module, results included.
    """
    found = Registers(outer=outer)
    in_memory: set[Buffer] = set()
    written = sum(len(ops_inside(kernels[name])) for name in _inlined([loop], kernels))
    if written > _MOST_IN_LOOP:
        return None

    def note(buffer: Buffer, type_: Attribute | None) -> None:
        # LLVM 22 hands a bf16 on as an f32 that was rounded, which loses subnormals.
        if isinstance(type_, BFloat16Type | None) or found.types.setdefault(buffer, type_) != type_:
            in_memory.add(buffer)

    for step in all_steps([loop]):
        match step:
            case Kernel():
                kernel = kernels[step.name]
                inlined = is_inlined(kernel)
                for buffer, argument in zip(
                    (*step.reads, *step.writes), kernel.body.blocks[0].args, strict=True
                ):
                    if inlined:
                        note(buffer, _scalar(argument))
                if not inlined:
                    found.stored.update(step.reads)
                    in_memory.update(step.writes)
            case Copy():
                for buffer in (step.source, step.target):
                    single = buffer.shape.rank == 0 and not buffer.shape.element_type.is_complex
                    note(buffer, memory_type(buffer.shape.element_type) if single else None)
            case Slice():
                in_memory.add(step.source)
                for start, _, _ in step.starts:
                    if isinstance(start, Buffer):
                        note(start, i32)
            case While():
                if step.strands is not None:
                    return None
                note(step.test, i8)
            case Branch():
                note(step.selector, i8 if step.by_pred else i32)
            case Repeat():
                pass
            case Callback():
                return None
    for step in all_steps([loop]):
        if isinstance(step, Copy) and len({found.types.get(b) for b in _ends(step)}) > 1:
            in_memory.update(_ends(step))
    for buffer in list(found.types):
        if buffer in in_memory or buffer.part_of is not None:
            del found.types[buffer]
    return found if any(b in found.types for b in _written([loop])) else None


def _ends(copy: Copy) -> tuple[Buffer, Buffer]:
    return copy.source, copy.target


def _scalar(argument: SSAValue) -> Attribute | None:
    """The element type of an argument that is a scalar which is loaded, or stored outside of loops."""
    type_ = cast("MemRefType[Any]", argument.type)
    if type_.get_num_dims():
        return None
    for op in readers_of(argument):
        is_stored = type(op) is memref.StoreOp and op.parent is argument.owner
        if type(op) is not memref.LoadOp and not is_stored:
            return None
    return cast(Attribute, type_.element_type)


def _inlined(steps: Sequence[Step], kernels: Mapping[str, FuncOp]) -> list[str]:
    """The kernels that are written where steps call them, each as often."""
    names = Counter(step.name for step in all_steps(steps) if isinstance(step, Kernel))
    return [n for name, count in names.items() if is_inlined(kernels[name]) for n in [name] * count]


def _written(steps: Sequence[Step]) -> Iterator[Buffer]:
    for step in all_steps(steps):
        if isinstance(step, (Kernel, Callback)):
            yield from step.writes
        elif isinstance(step, Copy):
            yield step.target


def arguments_of(loop: While) -> list[Buffer]:
    """The buffers that a loop is given: all it touches but for parts that it finds itself."""
    inside = {step.target for step in all_steps([loop]) if isinstance(step, Slice)}
    return [b for b in dict.fromkeys(touched([loop])) if b not in inside]
