"""Orders in which the instructions of a computation may run, and the memory that each needs.

What an order needs at a moment is the sum of the values that are made and still to be read; parameters and
constants have memory of their own, tuples, bitcasts and reshapes are where their operands are. Three orders
are made, as XLA's memory scheduler makes them: depth-first post-order, operands with more readers first, and
a list of what is ready, the one first that frees most.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirhlo.analysis.call_graph import Context, call_graph
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape


def is_free(op: Instruction) -> bool:
    """Whether its value is where an operand's, or nobody's, memory is."""
    return op.opcode.free or op.opcode.name == "reshape"


def shape_bytes(shape: Shape) -> int:
    """Bytes of all arrays in a shape."""
    if isinstance(shape, TupleShape):
        return sum(map(shape_bytes, shape.elements))
    if not isinstance(shape, ArrayShape):
        return 0
    return shape.element_count * shape.element_type.byte_size


def made_bytes(op: Instruction) -> int:
    """Bytes that an instruction's result needs of its own."""
    return 0 if is_free(op) else shape_bytes(op.shape)


@dataclass(frozen=True, slots=True)
class Lives:
    """When the values of an order are alive."""

    last: Mapping[Instruction, int]
    """Position of the last reader, of each instruction that makes a value that is read; the length of the
    order for what the root holds."""
    sources: Mapping[SSAValue, tuple[Instruction, ...]]
    """Instructions that made what a value holds."""
    bytes: Sequence[int]
    """Needed at each position."""

    @property
    def peak(self) -> int:
        """The most that is needed."""
        return max(self.bytes, default=0)


def lives(
    order: Sequence[Instruction],
    root: Instruction,
    sizes: Mapping[Instruction, int],
    inside: Mapping[Instruction, int] | None = None,
) -> Lives:
    """When the values of an order are alive. `inside`: what an instruction needs while it runs."""
    sources: dict[SSAValue, tuple[Instruction, ...]] = {}
    last: dict[Instruction, int] = {}
    for position, op in enumerate(order):
        read = tuple(dict.fromkeys(s for v in op.inputs for s in sources[v]))
        for source in read:
            last[source] = position
        sources[op.output] = read if is_free(op) else (op,)
    for source in sources[root.output]:
        last[source] = len(order)
    dying: list[int] = [0] * (len(order) + 1)
    for op, position in last.items():
        dying[position] += sizes[op]
    needed: list[int] = []
    live = 0
    for position, op in enumerate(order):
        if op in last:
            live += sizes[op]
        needed.append(live + (inside.get(op, 0) if inside else 0))
        live -= dying[position]
    return Lives(last, sources, needed)


def depth_first(
    instructions: Sequence[Instruction], sizes: Mapping[Instruction, int]
) -> list[Instruction]:
    """Post-order in which operands come first that are read more often, then those with more below them."""
    readers: dict[Instruction, int] = {}
    below: dict[Instruction, int] = {}
    total = sum(sizes.values())
    most = len(instructions)
    for op in instructions:  # definitions stand before uses
        operands = _operands(op)
        users = sum(1 for _ in op.output.uses)
        # Shared operands are counted for each reader; the bounds keep that from growing.
        readers[op] = min(most, max(0, users - 1) + sum(readers[o] for o in operands))
        below[op] = min(total, sizes[op] + sum(below[o] for o in operands))

    def key(op: Instruction) -> tuple[int, int]:
        return -readers[op], -below[op]

    done: set[Instruction] = set()
    ordered: list[Instruction] = []
    used = {o for op in instructions for o in _operands(op)}
    for start in instructions:
        if start in used:
            continue
        stack = [(start, iter(sorted(_operands(start), key=key)))]
        done.add(start)
        while stack:
            op, rest = stack[-1]
            following = next((o for o in rest if o not in done), None)
            if following is None:
                stack.pop()
                ordered.append(op)
            else:
                done.add(following)
                stack.append((following, iter(sorted(_operands(following), key=key))))
    return ordered


def greedy(
    instructions: Sequence[Instruction], sizes: Mapping[Instruction, int]
) -> list[Instruction]:
    """Of what is ready, always the one that frees the most beyond what it makes."""
    sources: dict[Instruction, tuple[Instruction, ...]] = {}
    readers: dict[Instruction, list[Instruction]] = {}
    waiting: dict[Instruction, int] = {}
    users: dict[Instruction, list[Instruction]] = {}
    for op in instructions:
        read = [s for o in dict.fromkeys(_data(op)) for s in sources[o]]
        own = tuple(dict.fromkeys(read))
        sources[op] = own if is_free(op) else (op,)
        if not is_free(op):
            for source in own:
                readers.setdefault(source, []).append(op)
        before = dict.fromkeys(_operands(op))
        waiting[op] = len(before)
        for o in before:
            users.setdefault(o, []).append(op)
    left = {op: len(who) for op, who in readers.items()}
    reads: dict[Instruction, list[Instruction]] = {}
    for source, who in readers.items():
        for op in who:
            reads.setdefault(op, []).append(source)
    place = {op: k for k, op in enumerate(instructions)}

    def entry(op: Instruction) -> tuple[int, int, Instruction]:
        freed = sum(sizes[s] for s in reads.get(op, ()) if left[s] == 1)
        return sizes[op] - freed, place[op], op

    heap = [(e[0], e[1]) for e in map(entry, (op for op in instructions if not waiting[op]))]
    heapq.heapify(heap)
    ordered: list[Instruction] = []
    done: set[Instruction] = set()
    while heap:
        cost, at = heapq.heappop(heap)
        op = instructions[at]
        if op in done:
            continue
        now = entry(op)[0]
        if now > cost:  # what it would have freed is read by another one by now
            heapq.heappush(heap, (now, at))
            continue
        done.add(op)
        ordered.append(op)
        for source in reads.get(op, ()):
            left[source] -= 1
            if left[source] == 1:  # one reader is left, which frees it
                for reader in readers[source]:
                    if reader not in done and not waiting[reader]:
                        heapq.heappush(heap, (entry(reader)[0], place[reader]))
        for user in users.get(op, ()):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(heap, (entry(user)[0], place[user]))
    return ordered


def _data(op: Instruction) -> list[Instruction]:
    return [o for v in op.inputs if isinstance(o := v.owner, Instruction)]


def _operands(op: Instruction) -> list[Instruction]:
    """Operands and control predecessors."""
    return [o for v in op.operands if isinstance(o := v.owner, Instruction)]


ALGORITHMS = ("list", "dfs", "postorder")


def order_by(
    algorithm: str, instructions: Sequence[Instruction], sizes: Mapping[Instruction, int]
) -> list[Instruction]:
    """The order that one of `ALGORITHMS` makes."""
    match algorithm:
        case "list":
            return greedy(instructions, sizes)
        case "dfs":
            return depth_first(instructions, sizes)
        case _:
            return post_order(instructions)


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of one computation, and what it needs."""

    order: Sequence[Instruction]
    lives: Lives
    algorithm: str
    """Which of `ALGORITHMS` made it; empty for the order as it stands."""


def runnable(module: ModuleOp) -> list[ComputationOp]:
    """The computations whose instructions run one after the other, callees first."""
    graph = call_graph(module)
    return [
        c
        for c in graph.post_order()
        if c.is_entry is not None or graph.context(c.computation_name) is Context.SEQUENTIAL
    ]


def schedules(
    module: ModuleOp, algorithms: Sequence[str] = ALGORITHMS, *, given: bool = False
) -> dict[ComputationOp, Schedule]:
    """The order of each computation that needs least, callees first; the first of equal ones.

    `given`: the orders as they stand instead.
    """
    found: dict[ComputationOp, Schedule] = {}
    peaks: dict[str, int] = {}
    for computation in runnable(module):
        instructions = instruction_list(computation)
        sizes = {op: made_bytes(op) for op in instructions}
        inside = {
            op: most
            for op in instructions
            if (most := max((peaks.get(name, 0) for name in op.called_computations), default=0))
        }
        best: Schedule | None = None
        for algorithm in ("",) if given else algorithms:
            order = order_by(algorithm, instructions, sizes) if algorithm else instructions
            alive = lives(order, computation.root, sizes, inside)
            if best is None or alive.peak < best.lives.peak:
                best = Schedule(order, alive, algorithm)
        assert best is not None
        found[computation] = best
        peaks[computation.computation_name] = best.lives.peak
    return found


def peak_bytes(module: ModuleOp) -> int:
    """What the entry, and all it calls, needs in the order as it stands."""
    entry = HloModule(module).entry
    return schedules(module, given=True)[entry].lives.peak
