"""Functions that LLVM need not work hard for, and the loops that are cut out of them for that.

LLVM takes its time for every function and loop, whether they count or not. A function whose loops only
call others (the loops over blocks and tiles around a micro-kernel, `main`), or which has none and only
handles scalars (what starts a parallel loop), takes no measurable time itself: it is marked
`optnone`, and `runtime/object_code/units.py` compiles what is so marked without optimisation. Loops inside that do work
of their own, such as packing, become functions of theirs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Set
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirhlo.dialects.amx import TileType
from mlirhlo.dialects.quick import operands_of, ops_of
from mlirhlo.lowering.builder import WORK

_LEAST_NS = 25_000
"""Work that is worth waking threads for."""
_LOOPS = frozenset({"scf.for", "scf.while", "scf.parallel"})


def ops_inside(op: Operation) -> list[Operation]:
    """All ops inside, outer ones first."""
    found: list[Operation] = []
    _put_inner(op, found)
    for inner in found:  # which grows meanwhile
        if inner.regions:
            _put_inner(inner, found)
    return found


def _put_inner(op: Operation, found: list[Operation]) -> None:
    for region in op.regions:
        block = region.first_block
        while block is not None:
            found += ops_of(block)
            block = block.next_block


def parallel_work(op: scf.ParallelOp) -> int | None:
    """Estimated nanoseconds of all rounds."""
    given = op.attributes.get(WORK)
    return given.value.data if isinstance(given, IntegerAttr) else None


def bounds(op: scf.ParallelOp, dim: int) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Lower bound, upper bound and step of a dimension."""
    count = len(op.regions[0].blocks[0].args)
    lower, upper, step = operands_of(op)[dim : 3 * count : count]
    return lower, upper, step


def is_cut(op: scf.ParallelOp) -> bool:
    """Whether the rounds of a loop that is not inside another parallel one go to threads."""
    lower, upper, step = (_constant(v.owner) for v in bounds(op, 0))
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


def heavy_functions(functions: Iterable[func.FuncOp]) -> Heavy:
    """Those that take longer than being called: they are outside, or have loops."""
    names: set[str] = set()
    calls: list[func.CallOp] = []
    for function in functions:
        is_heavy = not function.body.blocks
        for op in ops_inside(function):
            if type(op) is func.CallOp:
                calls.append(op)
            elif op.name in _LOOPS:
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
        self.calls = False
        """Whether something was met that outweighs what is around it."""
        self.found: set[Operation] = set()

    def block(self, block: Block) -> bool:
        """Whether all that is done here beside loops to cut is done with scalars."""
        return all(map(self._op, ops_of(block)))

    def _op(self, op: Operation) -> bool:
        name = op.name
        if name in _LOOPS:
            if type(op) is scf.ParallelOp and not self.is_task and is_cut(op):
                self.calls = True
                return True
            if id(op) not in self.heavy.around:
                self.found.add(op)
                return not op.results and name != "scf.while"
        if type(op) is func.CallOp:
            self.calls = self.calls or op.callee.root_reference.data in self.heavy.names
        elif name != "arith.constant" and not _handles_scalars(op):
            return False
        return not op.regions or all(
            self.block(block) for region in op.regions for block in region.blocks
        )


def _handles_scalars(op: Operation) -> bool:
    values = (*operands_of(op), *op.results)
    return all(_is_scalar(type(value.type)) for value in values)


@functools.lru_cache(maxsize=1024)
def _is_scalar(kind: type[Attribute]) -> bool:
    """Whether values of a kind of type are scalars, or addresses."""
    return not issubclass(kind, (VectorType, AnyFloat, TileType))
