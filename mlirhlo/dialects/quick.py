"""Building ops of any dialect quickly.

xDSL's own constructors cost 10 to 30 µs an op; filling the fields costs 3 to 5. With
`dialects/hlo/build.py`, which does the same for instructions of one result, this is the only place
that writes xDSL's private fields; `test/unit/dialects/test_quick.py` compares every field with what
`Operation.create` yields.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, SSAValues, Use

OpT = TypeVar("OpT", bound=Operation)

_new = object.__new__
_NO_VALUES: SSAValues[SSAValue] = SSAValues(())
_NO_RESULTS: SSAValues[OpResult] = SSAValues(())


def create_op(
    cls: type[OpT],
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: dict[str, Attribute] | None = None,
    *,
    regions: Sequence[Region] = (),
    successors: Sequence[Block] = (),
    attributes: dict[str, Attribute] | None = None,
) -> OpT:
    """A detached op; takes ownership of the dictionaries and regions.

    Nothing is checked, and properties with a default are absent unless given.
    """
    op = _new(cls)
    if result_types:
        results: list[OpResult] = []
        for index, result_type in enumerate(result_types):
            result = _new(OpResult)
            result._type = result_type
            result.op = op
            result.index = index
            results.append(result)
        op.results = SSAValues(results)
    else:
        op.results = _NO_RESULTS
    if operands:
        op._operands = SSAValues(operands)
        uses: list[Use] = []
        for index, value in enumerate(operands):
            use = _new(Use)
            use._operation = op
            use._index = index
            use._prev_use = None
            use._next_use = first = value.first_use
            if first is not None:
                first._prev_use = use
            value.first_use = use
            uses.append(use)
        op._operand_uses = tuple(uses)
    else:
        op._operands = _NO_VALUES
        op._operand_uses = ()
    op.properties = {} if properties is None else properties
    op.attributes = {} if attributes is None else attributes
    op.location = UNKNOWN_LOC
    if successors:
        op._successors = ()
        op._successor_uses = ()
        op.successors = successors
    else:
        op._successors = ()
        op._successor_uses = ()
    op.regions = ()
    for region in regions:
        op.add_region(region)
    return op


def operands_of(op: Operation) -> SSAValues[SSAValue]:
    """`op.operands` to read, without a view around them."""
    return op._operands


def ops_of(block: Block) -> list[Operation]:
    """The ops of a block as they are now, in order."""
    found: list[Operation] = []
    op = block._first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def append(block: Block, op: Operation) -> None:
    """Puts a new, detached op at the end of a block."""
    op.parent = block
    last = block._last_op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
        op._prev_op = last
    block._last_op = op


def prepend(block: Block, ops: Sequence[Operation]) -> None:
    """Puts new, detached ops in front of all others of a block, in their order."""
    first, last = block._first_op, None
    for op in ops:
        op.parent = block
        if last is None:
            block._first_op = op
        else:
            last._next_op = op
            op._prev_op = last
        last = op
    if last is None:
        return
    if first is None:
        block._last_op = last
    else:
        last._next_op = first
        first._prev_op = last


def insert_before_last(block: Block, op: Operation) -> None:
    """Puts a new, detached op before the last of a block, its terminator."""
    op.parent = block
    last = block._last_op
    assert last is not None
    op._next_op = last
    op._prev_op = before = last._prev_op
    if before is None:
        block._first_op = op
    else:
        before._next_op = op
    last._prev_op = op
