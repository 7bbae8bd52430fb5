"""Functions that LLVM need not work hard for, and the loops that are cut out of them for that.

LLVM takes its time for every function and loop, whether they count or not. A function whose loops only
call others (the loops over blocks and tiles around a micro-kernel, `main`), or which has none and only
handles scalars (what starts a parallel loop), takes no measurable time itself: it is marked
`optnone`, and `runtime/units.py` compiles what is so marked without optimisation. Loops inside that do work of
their own, such as packing, become functions of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, VectorType
from xdsl.ir import Attribute, Block, Operation

from mlirhlo.dialects.amx import TileType
from mlirhlo.dialects.quick import operands_of
from mlirhlo.lowering.builder import WORK

_LEAST_NS = 25_000
"""Work that is worth waking threads for."""
_LOOPS = frozenset({"scf.for", "scf.while", "scf.parallel"})


def blocks_inside(op: Operation) -> list[Block]:
    """All blocks inside, outer ones first."""
    found = [block for region in op.regions for block in region.blocks]
    for block in found:  # which grows meanwhile
        for inner in block.ops:
            for region in inner.regions:
                found += region.blocks
    return found


def parallel_work(op: scf.ParallelOp) -> int | None:
    """Estimated nanoseconds of all rounds."""
    given = op.attributes.get(WORK)
    return given.value.data if isinstance(given, IntegerAttr) else None


def is_cut(op: scf.ParallelOp) -> bool:
    """Whether the rounds of a loop that is not inside another parallel one go to threads."""
    lower, upper, step = (_constant(v[0].owner) for v in (op.lowerBound, op.upperBound, op.step))
    if step is None:
        return False
    few = lower is not None and upper is not None and upper - lower <= step
    work = parallel_work(op)
    return not few and (work is None or work >= _LEAST_NS)


def _constant(owner: Operation | Block) -> int | None:
    if not isinstance(owner, Operation) or owner.name != "arith.constant":
        return None
    value = owner.properties["value"]
    return value.value.data if isinstance(value, IntegerAttr) else None


@dataclass(frozen=True, slots=True)
class Heavy:
    """Functions whose calls outweigh a loop around them, and who is around such calls."""

    names: Set[str] = frozenset()
    around: Set[int] = frozenset()
    """Identities of ops that hold calls of them."""


NO_FUNCTIONS = Heavy()


def heavy_functions(functions: Iterator[func.FuncOp]) -> Heavy:
    """Those that take longer than being called: they are outside, or have loops."""
    names: set[str] = set()
    calls: list[func.CallOp] = []
    for function in functions:
        is_heavy = not function.body.blocks
        for block in blocks_inside(function):
            for op in block.ops:
                if type(op) is func.CallOp:
                    calls.append(op)
                elif not is_heavy and op.name in _LOOPS:
                    is_heavy = True
        if is_heavy:
            names.add(function.sym_name.data)
    around: set[int] = set()
    for call in calls:
        if call.callee.root_reference.data in names:
            outer = call.parent_op()
            while outer is not None and id(outer) not in around:
                around.add(id(outer))
                outer = outer.parent_op()
    return Heavy(names, around)


def loops_of_light(
    body: Block, heavy: Heavy, *, is_task: bool, is_public: bool
) -> Set[Operation] | None:
    """The loops that do work of their own, of a function that is light without them; None for others.

    `is_task`: whether parallel loops are loops here.
    """
    search = _Search(heavy, is_task)
    if not search.block(body):
        return None
    calls = search.calls or (is_public and not search.found)
    return search.found if calls else None


class _Search:
    def __init__(self, heavy: Heavy, is_task: bool) -> None:
        self.heavy, self.is_task = heavy, is_task
        self.scalars: dict[type[Attribute], bool] = {}
        """Whether values of a kind of type are scalars, or addresses."""
        self.calls = False
        """Whether something was met that outweighs what is around it."""
        self.found: set[Operation] = set()

    def block(self, block: Block) -> bool:
        """Whether all that is done here beside loops to cut is done with scalars."""
        return all(map(self._op, block.ops))

    def _op(self, op: Operation) -> bool:
        if isinstance(op, scf.ParallelOp) and not self.is_task and is_cut(op):
            self.calls = True
            return True
        if op.name in _LOOPS and id(op) not in self.heavy.around:
            self.found.add(op)
            return not op.results and op.name != "scf.while"
        if isinstance(op, func.CallOp):
            self.calls = self.calls or op.callee.root_reference.data in self.heavy.names
        elif op.name != "arith.constant" and not self._is_scalar(op):
            return False
        return not op.regions or all(
            self.block(block) for region in op.regions for block in region.blocks
        )

    def _is_scalar(self, op: Operation) -> bool:
        for value in (*operands_of(op), *op.results):
            kind = type(value.type)
            known = self.scalars.get(kind)
            if known is None:
                known = self.scalars[kind] = not issubclass(kind, (VectorType, AnyFloat, TileType))
            if not known:
                return False
        return True
