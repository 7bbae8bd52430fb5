"""Functions that call themselves: each call has its own registers and its own part of local memory.

A call copies the caller's registers aside and moves the addresses of its local variables on by one frame; its end
does the opposite. `level` counts the frames of each thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mlirhlo.diagnostics import error
from mlirhlo.simulator import lanes as sets
from mlirhlo.simulator.lanes import Array, Lanes

if TYPE_CHECKING:
    from mlirhlo.simulator.cohort import Cohort


def frame_base(cohort: Cohort, lanes: Lanes, level: int | None, step: int) -> NDArray[np.int64]:
    """Where the local memory of threads begins in the arena, `step` frames from the present one."""
    base = cohort.local_base[lanes]
    if level is not None:
        base = base + (cohort.slots[level][lanes] + step) * cohort.code.frame_bytes
    return base


def push(cohort: Cohort, lanes: Lanes, caller: str) -> None:
    """A function begins a call of itself, directly or through others."""
    code = cohort.code
    recursion = code.recursions[caller]
    if (int(cohort.slots[recursion.level][lanes].max()) + 2) * code.frame_bytes > code.local_bytes:
        raise error(
            "HLO0775",
            f"call: {caller} needs more than {code.local_bytes} bytes of local memory for its calls",
            cohort.launch.place(cohort.pc),
            help="let the recursion end earlier, or turn it into a loop",
        )
    for depth, group in sets.split(lanes, cohort.depth[lanes]):
        for slot, kept in _kept(cohort, int(depth), caller):
            kept[group] = cohort.slots[slot][group]
    _move(cohort, lanes, caller, 1)


def pop(cohort: Cohort, lanes: Lanes, caller: str) -> None:
    """The call has ended."""
    _move(cohort, lanes, caller, -1)
    for depth, group in sets.split(lanes, cohort.depth[lanes]):
        for slot, kept in _kept(cohort, int(depth), caller):
            cohort.slots[slot][group] = kept[group]


def _kept(cohort: Cohort, depth: int, caller: str) -> list[tuple[int, Array]]:
    """The registers of a function, each with what was copied aside at a depth of calls."""
    key = f"registers of {caller} at {depth}"
    registers = cohort.code.recursions[caller].registers
    if key not in cohort.extra:
        cohort.extra[key] = [np.zeros_like(cohort.slots[slot]) for slot in registers]
    return list(zip(registers, cohort.extra[key], strict=True))


def _move(cohort: Cohort, lanes: Lanes, caller: str, sign: int) -> None:
    recursion = cohort.code.recursions[caller]
    step = sign * cohort.code.frame_bytes
    for slot in recursion.addresses:
        array = cohort.slots[slot]
        array[lanes] += np.array(step).astype(array.dtype)
    cohort.slots[recursion.level][lanes] += sign
