"""Regions: branches that are known, loops that never begin, results that nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.quick import replace
from mlirhlo.dialects.stablehlo import OP_CLASSES
from mlirhlo.rewrites.stablehlo_simplify.driver import Simplifier, defining, shape, simplifies
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import number, numbers

Values = Sequence[SSAValue]


@simplifies("case")
def case_of_constant(op: Operation, s: Simplifier) -> Values | None:
    """case(constant) => the branch"""
    index = s.splat(op.operands[0])
    if index is None:
        return None
    chosen = int(index) if 0 <= int(index) < len(op.regions) else len(op.regions) - 1
    return _inlined(op, op.regions[chosen], s)


def _inlined(op: Operation, region: Region, s: Simplifier) -> Values:
    block = region.block
    target = op.parent
    assert target is not None
    ending = block.last_op
    assert ending is not None
    values = list(ending.operands)
    ending.detach()
    ending.erase()
    for inner in list(block.ops):
        inner.detach()
        target.insert_op_before(inner, op)
        s.push(inner)
    return values


@simplifies("while")
def loop_that_never_begins(op: Operation, s: Simplifier) -> Values | None:
    """while(false) => the operands"""
    ending = op.regions[0].block.last_op
    assert ending is not None
    holds = s.splat(ending.operands[0])
    return tuple(op.operands) if holds is not None and not bool(holds) else None


@simplifies("while")
def unchanged_state_of_loop(op: Operation, s: Simplifier) -> Values | None:
    """while with state that its body returns as it is => the regions read it from outside"""
    condition, loop = op.regions[0].block, op.regions[1].block
    ending = loop.last_op
    assert ending is not None
    fixed = [i for i, value in enumerate(ending.operands) if value is loop.args[i]]
    if not fixed:
        return None
    kept = [i for i in range(len(op.operands)) if i not in fixed]
    for index in fixed:
        for block in (condition, loop):
            for use in block.args[index].uses:
                s.push(use.operation)
            replace(block.args[index], op.operands[index])
    returned = OP_CLASSES["stablehlo.return"].create(operands=[ending.operands[i] for i in kept])
    returned.location = ending.location
    loop.insert_op_before(returned, ending)
    ending.detach()
    ending.erase()
    for index in reversed(fixed):
        condition.erase_arg(condition.args[index])
        loop.erase_arg(loop.args[index])
    regions = [op.regions[0], op.regions[1]]
    for region in regions:
        op.detach_region(region)
    made = OP_CLASSES[op.name].create(
        operands=[op.operands[i] for i in kept],
        result_types=[op.results[i].type for i in kept],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=regions,
    )
    made.location = op.location
    parent = op.parent
    assert parent is not None
    parent.insert_op_before(made, op)
    s.push(made)
    by_old = dict(zip(kept, made.results, strict=True))
    return [by_old.get(i, op.operands[i]) for i in range(len(op.operands))]


@simplifies("get_tuple_element")
def element_of_tuple(op: Operation, s: Simplifier) -> Values | None:
    """get_tuple_element(tuple(x, y), i) => the i-th"""
    del s
    made = defining(op.operands[0], "tuple")
    return None if made is None else (made.operands[number(op, "index")],)


@simplifies("reduce")
def reduce_of_nothing(op: Operation, s: Simplifier) -> Values | None:
    """reduce over no dimension => the operands, of no elements => broadcasts of the initial values"""
    count = len(op.results)
    operands, initial = op.operands[:count], op.operands[count:]
    if not numbers(op, "dimensions"):
        return tuple(operands)
    if 0 not in shape(operands[0]) or DYNAMIC_INDEX in shape(op.results[0]):
        return None
    spread: dict[str, Attribute] = {"broadcast_dimensions": integers(())}
    return [
        s.make("broadcast_in_dim", (value,), [result.type], spread).results[0]
        for value, result in zip(initial, op.results, strict=True)
    ]


def _needed(block: Block, value: SSAValue) -> set[SSAValue]:
    """Block arguments that `value` depends on."""
    found: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    stack = [value]
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        seen.add(one)
        if isinstance(one.owner, Block):
            if one.owner is block:
                found.add(one)
            continue
        stack += one.owner.operands
        for region in one.owner.regions:
            for inner in region.walk():
                stack += inner.operands
    return found


@simplifies("reduce")
def unread_results_of_reduce(op: Operation, s: Simplifier) -> Values | None:
    """reduce with results that nothing reads => without them, where the others do not need them"""
    count = len(op.results)
    kept = [i for i, r in enumerate(op.results) if r.first_use is not None]
    if count < 2 or not kept or len(kept) == count:
        return None
    block = op.regions[0].block
    ending = block.last_op
    assert ending is not None
    needed = {a for i in kept for a in _needed(block, ending.operands[i])}
    positions = {index % count for index, a in enumerate(block.args) if a in needed}
    if positions - set(kept):
        return None
    arguments = [*kept, *(count + i for i in kept)]
    operands = [op.operands[i] for i in arguments]
    return _narrowed(op, s, kept, operands, arguments, [ending.operands[i] for i in kept])


@simplifies("sort")
def unread_results_of_sort(op: Operation, s: Simplifier) -> Values | None:
    """sort with results that nothing reads => without them, where the comparator does not need them"""
    block = op.regions[0].block
    used = {a.index // 2 for a in block.args if a.first_use is not None}
    kept = [i for i, r in enumerate(op.results) if r.first_use is not None or i in used]
    if len(kept) == len(op.results) or not any(r.first_use is not None for r in op.results):
        return None
    arguments = [a for i in kept for a in (2 * i, 2 * i + 1)]
    ending = block.last_op
    assert ending is not None
    operands = [op.operands[i] for i in kept]
    return _narrowed(op, s, kept, operands, arguments, list(ending.operands))


def _narrowed(
    op: Operation,
    s: Simplifier,
    kept: Sequence[int],
    operands: Sequence[SSAValue],
    arguments: Sequence[int],
    returned: Sequence[SSAValue],
) -> Values:
    """The op with the results `kept` and the block arguments `arguments` only."""
    region = op.regions[0]
    block = region.block
    old = block.last_op
    assert old is not None
    ending = OP_CLASSES["stablehlo.return"].create(operands=returned)
    ending.location = old.location
    block.insert_op_before(ending, old)
    old.detach()
    old.erase()
    # What only the dropped results needed goes first, so that arguments can go.
    for inner in reversed(list(block.ops)):
        if inner.results and all(r.first_use is None for r in inner.results):
            inner.detach()
            inner.erase()
    for index in range(len(block.args) - 1, -1, -1):
        if index not in arguments:
            block.erase_arg(block.args[index])
    op.detach_region(region)
    made = OP_CLASSES[op.name].create(
        operands=operands,
        result_types=[op.results[i].type for i in kept],
        properties=dict(op.properties),
        regions=[region],
    )
    made.location = op.location
    parent = op.parent
    assert parent is not None
    parent.insert_op_before(made, op)
    s.push(made)
    values: list[SSAValue] = []
    by_old = dict(zip(kept, made.results, strict=True))
    for index in range(len(op.results)):
        values.append(by_old.get(index, made.results[0]))
    return values
