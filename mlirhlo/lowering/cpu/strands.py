"""Loops whose rounds may run at the same time: cut into strands, each with temporaries of its own.

A `while` says so by the frontend attribute `mlirhlo.parallel`: no round reads what another one writes. What is
carried but the counter may be read, and updated slice by slice, each slice by one round. A loop that
does anything else after sharing (copies what it carries, say) runs as it is written, one round after another.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.func import FuncOp

from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributesAttr
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import WhileOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.builder import UPDATES
from mlirhlo.lowering.plan.arena import aligned, assign_offsets
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    Strands,
    Tree,
    While,
    all_steps,
    is_long,
    touched,
)

PARALLEL = "mlirhlo.parallel"
"""Frontend attribute of a `while` whose rounds do not depend on each other."""

_ROOM_BYTES = 256 << 20
"""What all strands of a loop may have for themselves."""
_A_CORE, _SMALL_BYTES = 4, 16 << 20
"""Strands for each core, as long as what all have for themselves is small."""


def strands_of(op: WhileOp, state: Tree) -> Strands | None:
    """The rounds of a loop that says that they may run at the same time; None for any other loop.

    How often it runs is what `while-loop-trip-count-annotator` has written there.
    """
    said = op.properties.get("frontend_attributes")
    if not isinstance(said, FrontendAttributesAttr) or PARALLEL not in dict(said.data.entries):
        return None
    try:
        config: Any = json.loads(op.backend_config or "{}")
        rounds = int(config["known_trip_count"]["n"])
        first, step = (int(config["known_init_step"][key]) for key in ("init", "step"))
        buffer = cast("Any", state)[int(config["known_induction_variable"]["tuple_index"])]
    except (ValueError, KeyError):
        return None
    if step != 1 or not isinstance(buffer, Buffer) or buffer.shape.element_type.name != "s32":
        return None
    return Strands(buffer, first, rounds)


def settle_strands(
    steps: Sequence[Step], kernels: Mapping[str, FuncOp], results: Sequence[Buffer]
) -> tuple[set[Buffer], list[Buffer]]:
    """Decides about every loop with `strands`; those that stay have their parts of the arena.

    Gives the buffers that strands have for themselves, and a new one for each loop that holds them all.
    """
    own: set[Buffer] = set()
    rooms: list[Buffer] = []
    uses = _uses(steps)
    for loop in _outermost(steps):
        strands = loop.strands
        assert strands is not None
        private = _private(loop, uses, kernels, set(results))
        if private is None or strands.rounds < 2 or not is_long(loop.body):
            loop.strands = None
            continue
        strands.private = private
        strands.size = aligned(assign_offsets(private))
        # Some for each core that there is, as rounds need not take equally long: what is computed does not
        # depend on it.
        cores = max(2, os.cpu_count() or 1)
        small, most = (max(1, room // max(strands.size, 1)) for room in (_SMALL_BYTES, _ROOM_BYTES))
        strands.count = min(strands.rounds, max(cores, min(_A_CORE * cores, small)), most)
        strands.room = _room(strands.size * strands.count)
        for buffer in touched([loop]):
            strands.room.used_at(buffer.first)
            strands.room.used_at(buffer.last)
        own.update(private)
        rooms.append(strands.room)
    return own, rooms


def _room(size: int) -> Buffer:
    return Buffer(ArrayShape(PRIMITIVE_TYPES["u8"], (size,)), size, workspace=True)


def _outermost(steps: Sequence[Step]) -> Iterator[While]:
    """Loops with strands that are in no other one; those inside become ordinary loops."""
    inside: set[int] = set()
    for step in all_steps(steps):
        if isinstance(step, While) and step.strands is not None:
            if id(step) in inside:
                step.strands = None
                continue
            inside.update(id(s) for s in all_steps([*step.condition, *step.body]))
            yield step


def _uses(steps: Sequence[Step]) -> dict[Buffer, int]:
    """How many times steps name each buffer."""
    found: dict[Buffer, int] = {}
    for buffer in touched(steps):
        found[buffer] = found.get(buffer, 0) + 1
    return found


def _private(
    loop: While, uses: Mapping[Buffer, int], kernels: Mapping[str, FuncOp], results: set[Buffer]
) -> list[Buffer] | None:
    """Buffers that nothing but the loop's rounds touches; None if rounds depend on each other."""
    strands = loop.strands
    assert strands is not None
    inside: dict[Buffer, int] = {}
    for buffer in touched([loop]):
        inside[buffer] = inside.get(buffer, 0) + 1
    private = [b for b, n in inside.items() if b.in_arena and n == uses[b] and b not in results]
    shared = set(inside) - set(private) - {strands.counter}
    if not strands.counter.in_arena or not _only_updates(loop.body, shared, kernels):
        return None
    return private


def _only_updates(
    steps: Sequence[Step], shared: set[Buffer], kernels: Mapping[str, FuncOp]
) -> bool:
    """Whether all that is written of shared buffers is slices of them, in place."""
    for step in all_steps(steps):
        match step:
            case Callback():
                return False
            case Copy():
                if step.target in shared:
                    return False
            case Kernel():
                said = cast("Any", kernels[step.name].attributes.get(UPDATES))
                pair = said.get_values() if isinstance(said, DenseArrayBase) else ()
                arguments = [*step.reads, *step.writes]
                for number, target in enumerate(step.writes, len(step.reads)):
                    if target not in shared:
                        continue
                    if not pair or pair[1] != number or arguments[pair[0]] is not target:
                        return False
            case While() | Repeat() | Branch() | Slice():
                pass
    return True
