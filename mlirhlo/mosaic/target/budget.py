"""Who uses how much of which memory: blocks, scratch and allocations of a kernel.

A block that a grid moves has two buffers, one when its window says `synchronous`; with one step, or
no grid, there is one of each argument. VMEM is counted in whole tiles, as the compiler lays blocks out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from mlirhlo.mosaic.attributes import (
    case_of,
    dictionaries_of,
    integer_of,
    integers,
    integers_of,
    name_of,
)
from mlirhlo.mosaic.target.generations import Generation
from mlirhlo.mosaic.target.rules import BUDGET, Refusal
from mlirhlo.mosaic.target.tiling import (
    element_name,
    is_memref,
    is_semaphore,
    padded_bytes,
    shape_in,
    space_of,
    width_in_bits,
)

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation


@dataclass(frozen=True, slots=True)
class Use:
    """One user of a memory."""

    who: str
    space: str
    """`vmem`, `smem` or `semaphores`."""
    type: str
    buffers: int
    size_bytes: int
    """Bytes of all buffers; a semaphore counts as a word."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """All users of a kernel's memories."""

    uses: tuple[Use, ...]

    def total(self, space: str) -> int:
        """Bytes in one memory."""
        return sum(use.size_bytes for use in self.uses if use.space == space)

    def table(self, generation: Generation) -> str:
        """Who uses what, the largest first, and what there is."""
        rows = sorted(self.uses, key=lambda use: (use.space, -use.size_bytes, use.who))
        lines = [f"{'memory':<11}{'bytes':>12}  {'buffers':<8} {'who':<14} type"]
        lines += [
            f"{use.space:<11}{use.size_bytes:>12}  {use.buffers:<8} {use.who:<14} {use.type}"
            for use in rows
        ]
        for space, limit in (
            ("vmem", generation.scoped_vmem_bytes),
            ("smem", generation.smem_bytes),
        ):
            lines.append(f"{space:<11}{self.total(space):>12}  of {limit} on {generation.name}")
        return "\n".join(lines)


def memory_use(kernel: Operation | None) -> MemoryUse:
    """Who uses what in a kernel."""
    if kernel is None or not kernel.regions or not kernel.regions[0].blocks:
        return MemoryUse(())
    return MemoryUse((*_arguments(kernel), *_allocations(kernel)))


def _arguments(kernel: Operation) -> Iterator[Use]:
    bounds = integers_of(kernel, "iteration_bounds") or ()
    types = [argument.type for argument in kernel.regions[0].blocks[0].args][len(bounds) :]
    prefetches = integer_of(kernel, "scalar_prefetch")
    scratch = integer_of(kernel, "scratch_operands")
    windows = dictionaries_of(kernel, "window_params") or ()
    blocks = len(types) - prefetches - scratch
    for number, type_ in enumerate(types):
        at = number - prefetches
        if at < 0:
            yield from _use(f"prefetch {number}", type_, 1)
        elif at >= blocks:
            yield from _use(f"scratch {at - blocks}", type_, 1)
        else:
            window: Mapping[str, Attribute] = windows[at] if at < len(windows) else {}
            yield from _use(f"operand {at}", type_, _buffers(window, bounds), window)


def _buffers(window: Mapping[str, Attribute], bounds: tuple[int, ...]) -> int:
    if prod(bounds) == 1:
        return 1
    mode = window.get("pipeline_mode")
    return 1 if mode is not None and case_of(mode) == "synchronous" else 2


def _use(
    who: str, type_: Attribute, buffers: int, window: Mapping[str, Attribute] | None = None
) -> Iterator[Use]:
    if not is_memref(type_):
        return
    if is_semaphore(type_):
        count = 1
        for size in shape_in(type_):
            count *= max(size, 1)
        yield Use(who, "semaphores", str(type_), 1, 4 * count)
        return
    space = space_of(type_)
    if space not in ("vmem", "smem"):
        return
    stated: Any = None if window is None else window.get("window_bounds")
    shape = shape_in(type_) if stated is None else integers(stated)
    if any(size < 0 for size in shape):
        return
    size = padded_bytes(shape, width_in_bits(element_name(type_)), is_vector_memory=space == "vmem")
    yield Use(who, space, str(type_), buffers, size * buffers)


def _allocations(kernel: Operation) -> Iterator[Use]:
    for number, op in enumerate(
        op for op in kernel.walk() if name_of(op) in ("memref.alloca", "tpu.sem_alloc")
    ):
        named = op.results[0].name_hint
        yield from _use(named or f"allocation {number}", op.results[0].type, 1)


def over_budget(use: MemoryUse, generation: Generation, limit: int) -> Iterator[Refusal]:
    """What does not fit; `limit` is the VMEM one kernel may use."""
    for space, most, mend in (
        ("vmem", min(limit, generation.vmem_bytes), "smaller blocks, or a higher vmem_limit_bytes"),
        ("smem", generation.smem_bytes, "keep large arrays in VMEM or HBM"),
    ):
        total = use.total(space)
        if total > most:
            first = max((u for u in use.uses if u.space == space), key=lambda u: u.size_bytes)
            yield Refusal(
                BUDGET,
                f"{total} bytes of {space} are used and {most} are there; the largest user is "
                f"{first.who}, {first.size_bytes} bytes in {first.buffers} buffers of {first.type}",
                mend,
            )
