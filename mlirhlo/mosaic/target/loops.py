"""What loops carry: whether rows or lanes of a carried vector are known to be all the same.

The compiler keeps such vectors as one row, one column or one element. Of a loop it looks at the body
once with what the carried values begin as, and settles on what both have. What is not the same
everywhere only because of another carried value comes too late: there is no way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import Operation

from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.target.rules import SHAPE, Refusal
from mlirhlo.mosaic.target.tiling import shape_in

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Block, SSAValue

Same: TypeAlias = "tuple[bool, ...]"
"""For the last two dimensions of a vector (one of rank 1), whether all along it is the same."""
Found: TypeAlias = "dict[SSAValue, Same]"


def carried_problems(function: Operation) -> Iterator[tuple[Operation, Refusal]]:
    """The values that loops carry as one row, column or element, and that are more after a round."""
    problems: list[tuple[Operation, Refusal]] = []
    for region in function.regions:
        for block in region.blocks:
            _look_at(block, {}, problems)
    yield from problems


def _look_at(block: Block, found: Found, problems: list[tuple[Operation, Refusal]]) -> list[Same]:
    """Notes every value of a block; gives what its terminator passes on."""
    for op in block.ops:
        if name_of(op) in ("scf.for", "scf.while"):
            _look_at_loop(op, found, problems)
            continue
        passed = [_look_at(b, found, problems) for r in op.regions for b in r.blocks]
        for number, result in enumerate(op.results):
            parts = [values[number] for values in passed if number < len(values)]
            found[result] = _all(parts) if parts else _same(op, result.type, found)
    last = block.last_op
    return [] if last is None else [_of(value, found) for value in last.operands]


def _look_at_loop(loop: Operation, found: Found, problems: list[tuple[Operation, Refusal]]) -> None:
    is_for = name_of(loop) == "scf.for"
    blocks = [region.blocks[0] for region in loop.regions]
    begun = [_of(value, found) for value in (loop.operands[3:] if is_for else loop.operands)]

    def round_with(carried: list[Same], noted: list[tuple[Operation, Refusal]]) -> list[Same]:
        for block in blocks:
            arguments = block.args[1:] if is_for else block.args
            found.update(zip(arguments, carried, strict=True))
            carried = _look_at(block, found, noted)
            carried = carried if block is blocks[-1] else carried[1:]  # without the condition
        return carried

    settled = [_all(pair) for pair in zip(begun, round_with(begun, []), strict=True)]
    after = round_with(settled, problems)
    last = blocks[-1].last_op
    assert last is not None
    for number, (value, kept, made) in enumerate(zip(last.operands, settled, after, strict=True)):
        lost = [dim for dim, (a, b) in enumerate(zip(kept, made, strict=True)) if a and not b]
        if lost:
            maker = value.owner if isinstance(value.owner, Operation) else last
            problems.append((maker, _refusal(number, lost[-1] - len(kept))))
    found.update(zip(loop.results, settled if is_for else _of_condition(loop, found), strict=True))


def _of_condition(loop: Operation, found: Found) -> list[Same]:
    last = loop.regions[0].blocks[0].last_op
    return [] if last is None else [_of(value, found) for value in last.operands[1:]]


def _refusal(number: int, dim: int) -> Refusal:
    along = "lanes" if dim == -1 else "rows"
    return Refusal(
        SHAPE,
        f"the loop carries it as value {number}, which begins the same in all {along}, and it differs "
        "in them only from the second round on, by another carried value",
        "compute it from what this round makes of the other value, or begin that with loaded values",
    )


def _of(value: SSAValue, found: Found) -> Same:
    return found.get(value) or _differing(value.type)


def _differing(type_: Attribute) -> Same:
    """Nothing is known; dimensions of size one are the same along them."""
    return tuple(size == 1 for size in shape_in(type_)[-2:])


def _all(parts: list[Same] | tuple[Same, ...]) -> Same:
    return tuple(all(column) for column in zip(*parts, strict=True))


def _same(op: Operation, type_: Attribute, found: Found) -> Same:
    name, shape = name_of(op), shape_in(type_)
    differing = _differing(type_)
    vectors = [value for value in op.operands if shape_in(value.type)]
    if not shape:
        return differing
    if name == "arith.constant" or (name == "vector.broadcast" and not vectors):
        return (True,) * len(differing)
    if name == "vector.broadcast":
        before = shape_in(vectors[0].type)[-2:]
        known = (True,) * (len(differing) - len(before)) + _of(vectors[0], found)
        return known[-len(differing) :]
    if name in ("vector.shape_cast", "tpu.reshape"):
        is_one = all(_of(vectors[0], found))
        return (True,) * len(differing) if is_one else differing
    if name.partition(".")[0] not in ("arith", "math") or not vectors:
        return differing
    if any(shape_in(value.type) != shape for value in vectors):
        return differing
    return _all([_of(value, found) for value in vectors])
