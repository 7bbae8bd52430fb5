"""Building instructions quickly.

xDSL's own constructor costs 20 µs an op; filling the fields costs 3. The private fields of xDSL
are written here and nowhere else; `test/unit/dialects/test_build.py` compares every field with what
`Operation.create` yields, so that a new xDSL cannot break this silently.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, SSAValues, Use

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.ops import OP_CLASSES, ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.dialects.quick import region_of

if sys.platform != "win32":
    import resource

InstructionT = TypeVar("InstructionT", bound=Instruction)
OpT = TypeVar("OpT", bound=Operation)

_new = object.__new__


def create(
    cls: type[InstructionT],
    operands: Sequence[SSAValue],
    result_type: Attribute,
    properties: dict[str, Attribute],
    name: str | None = None,
) -> InstructionT:
    """A detached instruction; takes ownership of `properties`. Nothing is checked."""
    op = _new(cls)
    result = _new(OpResult)
    result._type = result_type
    if name is not None:
        result._name = name
    result.op = op
    result.index = 0
    op.results = SSAValues((result,))
    values = SSAValues(operands)
    op._operands = values
    uses: list[Use] = []
    for index, value in enumerate(values):
        use = _new(Use)
        use._operation = op
        use._index = index
        first = value.first_use
        use._next_use = first
        use._prev_use = None
        if first is not None:
            first._prev_use = use
        value.first_use = use
        uses.append(use)
    op._operand_uses = tuple(uses)
    op.properties = properties
    op.attributes = {}
    op.location = UNKNOWN_LOC
    op._successors = ()
    op._successor_uses = ()
    op.regions = ()
    return op


def append(block: Block, op: Operation) -> None:
    """Puts a detached `op` at the end of `block`; as `Block.add_op` without its checks."""
    last = block._last_op
    op.parent = block
    op._prev_op = last
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
    block._last_op = op


def close(
    name: str, block: Block, root: SSAValue, properties: Mapping[str, Attribute] | None = None
) -> ComputationOp:
    """The detached computation of the instructions in `block`, which it ends in `hlo.return`.

    `root` must not have been returned before. Nothing is checked.
    """
    ending = _plain(ReturnOp, {})
    use = _new(Use)
    use._operation = ending
    use._index = 0
    use._prev_use = None
    use._next_use = first = root.first_use
    if first is not None:
        first._prev_use = use
    root.first_use = use
    ending._operands = SSAValues((root,))
    ending._operand_uses = (use,)
    append(block, ending)
    computation = _plain(ComputationOp, {"sym_name": string(name), **(properties or {})})
    region = region_of(block)
    region.parent = computation
    computation.regions = (region,)
    return computation


def _plain(cls: type[OpT], properties: dict[str, Attribute]) -> OpT:
    """An op without operands, results and regions."""
    op = _new(cls)
    op.results = SSAValues(())
    op._operands = SSAValues(())
    op._operand_uses = ()
    op.properties = properties
    op.attributes = {}
    op.location = UNKNOWN_LOC
    op._successors = ()
    op._successor_uses = ()
    op.regions = ()
    return op


def make(
    opcode: str,
    operands: Sequence[Instruction | SSAValue],
    shape: Shape,
    properties: Mapping[str, Attribute] | None = None,
    *,
    name: str | None = None,
    control_predecessors: Sequence[Instruction | SSAValue] = (),
) -> Instruction:
    """A detached instruction of `opcode` with result `shape`; for passes and tests.

    `properties` maps property names (`dimensions`, `to_apply`, …) to attributes.
    """
    values = [
        v.results[0] if isinstance(v, Instruction) else v
        for v in (*operands, *control_predecessors)
    ]
    own = dict(properties or {})
    if control_predecessors:
        own[CONTROL_PREDECESSORS] = integer(len(control_predecessors))
    return create(OP_CLASSES[opcode], values, type_of(shape), own, name)


def wait_for(op: Instruction, others: Sequence[SSAValue]) -> bool:
    """Makes the instructions of these results control predecessors too; whether any was not yet."""
    waits = op.control_predecessors
    more = [value for value in dict.fromkeys(others) if value not in waits]
    if more:
        op.operands = [*op.operands, *more]
        op.properties[CONTROL_PREDECESSORS] = integer(len(waits) + len(more))
    return bool(more)


def _peak_bytes() -> int:
    """The most memory that this process has taken so far; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Collector:
    """What CPython's collector cannot know of objects that joined its oldest generation unseen."""

    LEAST = 1_000_000
    """Objects made, some 160 MB, below which nobody looks for garbage among them."""

    LEAST_BYTES = 256 << 20
    """Growth of the process below which nobody looks either: a constant is one object of any size."""

    made = 0
    """Objects made since all were looked through last."""
    alive = 0
    """Objects there were then."""
    peak = _peak_bytes()
    """Most bytes that the process had taken then."""
    collections = 0
    """Collections of all objects that CPython had counted then."""

    @classmethod
    def may_find_much(cls) -> bool:
        """Whether there may be a quarter more objects than were alive the last time, or a process so much larger."""
        if cls.made > max(cls.LEAST, cls.alive // 4):
            return True
        grown = _peak_bytes() - cls.peak
        return grown > max(cls.LEAST_BYTES, cls.peak // 4)

    @classmethod
    def look_through(cls) -> None:
        """Frees modules that nobody holds any more: they are cycles."""
        # Somebody else may have done so meanwhile.
        if cls.collections == gc.get_stats()[2]["collections"]:
            gc.collect()
        cls.collections = gc.get_stats()[2]["collections"]
        cls.made = cls.alive = 0
        cls.peak = _peak_bytes()
        if not gc.get_freeze_count():
            gc.freeze()
            cls.alive = gc.get_freeze_count()
            gc.unfreeze()


def paused_gc() -> AbstractContextManager[None]:
    """Keeps the garbage collector off while many ops are created; they all stay alive anyway.

    Before that, garbage is looked for where there may be a quarter more objects, or bytes, than the last time; of
    objects, that is when CPython would.
    """
    return _paused_gc() if gc.isenabled() else _PAUSED


_PAUSED = nullcontext()
"""Each pass asks for a pause within that of its compilation."""


@contextmanager
def _paused_gc() -> Generator[None]:
    if Collector.may_find_much():
        Collector.look_through()
    gc.disable()
    before = gc.get_count()[0]
    try:
        yield
    finally:
        Collector.made += max(0, gc.get_count()[0] - before)
        # What was made lives on: it joins the oldest generation unseen, instead of being walked
        # as soon as the collector is on again.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        gc.enable()
