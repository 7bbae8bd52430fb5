"""In which order the instructions of a computation run: the one that needs least memory.

A scheduled module keeps its order, and so does a computation with side effects or control dependencies.
Otherwise the order as written is compared with two walks from the root, operands first: in their own
order, and the larger values first. What an order needs is the greatest sum of the values that are still
to be read; a walk is taken if it needs less. In the body of a loop, what replaces a part of the state runs after
all that reads the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.schedules import lives, made_bytes
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.lowering.plan.steps import Buffer, Kernel, Step, all_steps, named


def in_order(
    computation: ComputationOp, *, is_scheduled: bool, effects: SideEffects
) -> Sequence[Instruction]:
    """The instructions as they run."""
    given = list(computation.instructions)
    if is_scheduled or len(given) < 4 or sum(bool(op.inputs) for op in given) < 2:
        return given
    if not all(_is_movable(op, effects) for op in given):
        return given
    root = computation.root
    sizes = {op: made_bytes(op) for op in given}
    best, least = given, lives(given, root, sizes).peak

    def larger_first(op: Instruction) -> int:
        return -sizes[op]

    for key in (None, larger_first):
        walked = list(_from_root(root, key))
        if len(walked) < len(given):  # what nobody reads goes last
            reached = set(walked)
            walked += [op for op in given if op not in reached]
        needed = lives(walked, root, sizes).peak
        if needed < least:
            best, least = walked, needed
    return best


def _is_movable(op: Instruction, effects: SideEffects) -> bool:
    name = op.opcode.name
    return not (
        op.control_predecessors
        or name.endswith(("-start", "-done", "-update"))
        or (name != "parameter" and effects.of_instruction(op))
    )


def _from_root(
    root: Instruction, key: Callable[[Instruction], int] | None
) -> Iterator[Instruction]:
    """All that a root is computed from, operands first."""
    seen = {root}
    stack: list[tuple[Instruction, Iterator[Instruction]]] = [(root, _operands(root, key))]
    while stack:
        op, operands = stack[-1]
        following = next((o for o in operands if o not in seen), None)
        if following is None:
            stack.pop()
            yield op
        else:
            seen.add(following)
            stack.append((following, _operands(following, key)))


def _operands(op: Instruction, key: Callable[[Instruction], int] | None) -> Iterator[Instruction]:
    found = [owner for v in op.inputs if isinstance(owner := v.owner, Instruction)]
    return iter(found if key is None else sorted(found, key=key))


MAX_INSIDE = 256
"""Steps inside of a step that are looked at: each of the loops around them would look at all of them again."""


def updated_last(body: Sequence[Step], new: Sequence[Buffer], old: Sequence[Buffer]) -> list[Step]:
    """The body of a loop with each kernel that makes the `new` value of a part of its state out of the `old` one
    behind the last step that reads the old one, if none before reads the new one: it may then write over it.

    A body with a loop of more than `MAX_INSIDE` steps stays as it is.
    """
    replaced = dict(zip(new, old, strict=True))
    uses: dict[Buffer, list[int]] = {}
    for at, step in enumerate(body):
        inside = list(islice(all_steps([step]), MAX_INSIDE + 1))
        if len(inside) > MAX_INSIDE:
            return list(body)
        for buffer in dict.fromkeys(buffer for each in inside for buffer in named(each)):
            uses.setdefault(buffer, []).append(at)
    behind: dict[int, list[Step]] = {}
    moved: set[int] = set()
    for at, step in enumerate(body):
        if not isinstance(step, Kernel):
            continue
        ends = [uses[replaced[b]][-1] for b in step.writes if replaced.get(b) in step.reads]
        last = max(ends, default=at)
        if last > at and all(not at < n <= last for b in step.writes for n in uses[b]):
            behind.setdefault(last, []).append(step)
            moved.add(at)
    found: list[Step] = []
    for at, step in enumerate(body):
        found += [] if at in moved else [step]
        found += behind.get(at, ())
    return found
