"""Building, moving and erasing ops of any dialect quickly.

xDSL's own constructors cost 10 to 30 µs an op; filling the fields costs 3 to 5. With
`dialects/hlo/build.py`, which does the same for instructions of one result, this is the only place
that writes xDSL's private fields; `test/unit/dialects/test_quick.py` compares every field with what
xDSL's own methods yield.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FileLineColLoc,
    FunctionType,
    IntAttr,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Operation,
    OpResult,
    Region,
    SSAValue,
    SSAValues,
    Use,
)
from xdsl.irdl import IRDLOperation

from mlirhlo.dialects.wide_operands import WideOperands

OpT = TypeVar("OpT", bound=Operation)
AttributeT = TypeVar("AttributeT", bound=Attribute)

MAX_REGION_DEPTH = 80
"""Deepest nesting of regions that is read, made or written; xDSL and passes recurse over them."""
REGION_DEPTH_HELP = f"loops, branches and reducers nest at most {MAX_REGION_DEPTH} deep; call inner ones as functions"

_new = object.__new__
_NO_VALUES: SSAValues[SSAValue] = SSAValues(())
_NO_RESULTS: SSAValues[OpResult] = SSAValues(())

# xDSL's say `id(self)` in Python, an object's own does so without a call. Tables by values are everywhere.
for _node in (SSAValue, Operation, IRDLOperation):
    setattr(_node, "__hash__", object.__hash__)  # noqa: B010 - no type checker lets a method be set


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
    fill_op(op, operands, result_types, properties, regions, successors, attributes)
    return op


def fill_op(
    op: Operation,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: dict[str, Attribute] | None = None,
    regions: Sequence[Region] = (),
    successors: Sequence[Block] = (),
    attributes: dict[str, Attribute] | None = None,
) -> None:
    """What `create_op` does, to the empty object of an op: for constructors."""
    if len(result_types) == 1:
        result = _new(OpResult)
        (result._type,) = result_types
        result.op = op
        result.index = 0
        op.results = SSAValues((result,))
    elif result_types:
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
        op._successors = tuple(successors)
        op._successor_uses = tuple([_use(op, n, block) for n, block in enumerate(successors)])
    else:
        op._successors = ()
        op._successor_uses = ()
    op.regions = tuple(regions)
    for region in regions:
        region.parent = op


def _use(op: Operation, index: int, used: Block) -> Use:
    """A new use."""
    use = _new(Use)
    use._operation = op
    use._index = index
    use._prev_use = None
    use._next_use = first = used.first_use
    if first is not None:
        first._prev_use = use
    used.first_use = use
    return use


def file_location(file: StringAttr, line: IntAttr, column: IntAttr) -> FileLineColLoc:
    """A point in a file."""
    return unchecked(FileLineColLoc, filename=file, line=line, column=column)


def function_type(inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> FunctionType:
    """The type of a function."""
    return unchecked(FunctionType, inputs=array_of(inputs), outputs=array_of(outputs))


def sizes_attribute(sizes: Sequence[int]) -> ArrayAttr[IntAttr]:
    """The sizes of a tensor or memref."""
    return array_of([unchecked(IntAttr, data=size) for size in sizes])


def array_of(items: Sequence[Attribute]) -> ArrayAttr[Any]:
    """An array of attributes."""
    return unchecked(ArrayAttr, data=tuple(items))


def unchecked(cls: type[AttributeT], **fields: Any) -> AttributeT:
    """An attribute with these fields, without xDSL's checks of them."""
    attribute = _new(cls)
    values: Any = attribute.__dict__
    values.update(fields)
    return attribute


def new_block(types: Sequence[Attribute] = ()) -> Block:
    """A detached, empty block with arguments of these types."""
    block = _new(Block)
    block._first_op = block._last_op = None
    block._args = tuple([_argument(block, n, type_) for n, type_ in enumerate(types)])
    return block


def add_argument(block: Block, type_: Attribute) -> BlockArgument:
    """A new argument, the last of a block."""
    argument = _argument(block, len(block._args), type_)
    block._args = (*block._args, argument)
    return argument


def _argument(block: Block, index: int, type_: Attribute) -> BlockArgument:
    argument = _new(BlockArgument)
    argument._type = type_
    argument.block = block
    argument.index = index
    argument.location = UNKNOWN_LOC
    return argument


def add_block(region: Region, block: Block) -> None:
    """Puts a new, detached block at the end of a region."""
    block.parent = region
    last = region._last_block
    if last is None:
        region._first_block = block
    else:
        last._next_block = block
        block._prev_block = last
    region._last_block = block


def region_of(*blocks: Block) -> Region:
    """A region of new, detached blocks."""
    region = _new(Region)
    for block in blocks:
        add_block(region, block)
    return region


def module_of(
    ops: Sequence[Operation],
    attributes: dict[str, Attribute] | None = None,
    name: StringAttr | None = None,
) -> ModuleOp:
    """A module of new, detached ops; takes ownership of the dictionary."""
    block = new_block()
    for op in ops:
        append(block, op)
    properties: dict[str, Attribute] = {} if name is None else {"sym_name": name}
    return create_op(
        ModuleOp, properties=properties, regions=[region_of(block)], attributes=attributes
    )


def operands_of(op: Operation) -> SSAValues[SSAValue]:
    """`op.operands` to read, without a view around them."""
    return op._operands


def owners_of(op: Operation) -> list[Operation | Block]:
    """What makes each operand."""
    return [value.op if type(value) is OpResult else value.owner for value in op._operands]


def jumps_to(block: Block) -> list[tuple[Operation, int]]:
    """The ops that a block is a successor of, and which of them it is; the last that came to be first."""
    found: list[tuple[Operation, int]] = []
    use = block.first_use
    while use is not None:
        found.append((use._operation, use._index))
        use = use._next_use
    return found


def readers_of(value: SSAValue) -> list[Operation]:
    """The op of each use, the last that came to be first."""
    found: list[Operation] = []
    use = value.first_use
    while use is not None:
        found.append(use._operation)
        use = use._next_use
    return found


def ops_of(block: Block) -> list[Operation]:
    """The ops of a block as they are now, in order."""
    found: list[Operation] = []
    op = block._first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def is_nested_too_deep(op: Operation) -> bool:
    """Whether regions in `op` are nested deeper than `MAX_REGION_DEPTH`."""
    level, depth = [op], 0
    while level:
        if depth > MAX_REGION_DEPTH:
            return True
        level = [
            inner
            for outer in level
            for region in outer.regions
            for block in region.blocks
            for inner in ops_of(block)
            if inner.regions
        ]
        depth += 1
    return False


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
    last = block._last_op
    assert last is not None
    insert_before(last, op)


def insert_before(existing: Operation, op: Operation) -> None:
    """Puts a detached op into the block of `existing`, in front of it."""
    block = op.parent = existing.parent
    assert block is not None
    op._next_op = existing
    op._prev_op = before = existing._prev_op
    if before is None:
        block._first_op = op
    else:
        before._next_op = op
    existing._prev_op = op


def detach(op: Operation) -> None:
    """Takes an op out of its block; what it reads it still reads."""
    block = op.parent
    assert block is not None
    op.parent = None
    before, after = op._prev_op, op._next_op
    if before is None:
        block._first_op = after
    else:
        before._next_op = after
        op._prev_op = None
    if after is None:
        block._last_op = before
    else:
        after._prev_op = before
        op._next_op = None


def erase(op: Operation) -> None:
    """Takes an op without regions and successors, whose results nobody reads, away for good."""
    assert not op.regions
    assert all(result.first_use is None for result in op.results)
    if op.parent is not None:
        detach(op)
    for value, use in zip(op._operands, op._operand_uses, strict=True):
        before, after = use._prev_use, use._next_use
        if before is None:
            value.first_use = after
        else:
            before._next_use = after
        if after is not None:
            after._prev_use = before
    op._operand_uses = ()


def retype(value: SSAValue, type_: Attribute) -> None:
    """Gives a value another type, where it is."""
    value._type = type_


def replace(old: SSAValue, new: SSAValue) -> None:
    """As `read_instead`; a `new` without a name takes that of `old`, whole, while xDSL takes `_12` off it."""
    read_instead(old, new)
    if new._name is None:
        new._name = old._name


def read_all_instead(values: Mapping[SSAValue, SSAValue]) -> None:
    """`read_instead` of many: each reader has its operands changed once, however many there are."""
    changed: dict[Operation, list[SSAValue]] = {}
    for old, new in values.items():
        use, first = old.first_use, new.first_use
        if old is new:
            continue
        while use is not None:
            reader, following = use._operation, use._next_use
            operands = changed.get(reader)
            if operands is None:
                operands = changed[reader] = list(reader._operands)
            operands[use._index] = new
            use._prev_use = None
            use._next_use = first
            if first is not None:
                first._prev_use = use
            first = use
            use = following
        old.first_use = None
        new.first_use = first
    for reader, operands in changed.items():
        reader._operands = SSAValues(operands)


def _put(reader: Operation, index: int, value: SSAValue) -> None:
    """Changes one operand; the uses are the caller's."""
    operands: Any = reader._operands
    # What has an operand of its own, such as a loop, is wide by control predecessors alone.
    if len(operands) < WideOperands.LEAST or hasattr(type(reader), "operand"):
        changed = list(operands)
        changed[index] = value
        reader._operands = SSAValues(changed)
        return
    if type(operands) is not WideOperands:
        operands = reader._operands = cast(Any, WideOperands(operands))
    operands[index] = value


def put_operand(reader: Operation, index: int, value: SSAValue) -> None:
    """As xDSL's `reader.operands[index] = value`, which copies all operands each time."""
    use = reader._operand_uses[index]
    reader._operands[index].remove_use(use)
    value.add_use(use)
    _put(reader, index, value)


def read_instead(old: SSAValue, new: SSAValue) -> None:
    """Lets all who read `old` read `new`; unlike xDSL's method it hands no name on."""
    if old is new:
        return
    use, first = old.first_use, new.first_use
    while use is not None:
        reader, index, following = use._operation, use._index, use._next_use
        _put(reader, index, new)
        use._prev_use = None
        use._next_use = first
        if first is not None:
            first._prev_use = use
        first = use
        use = following
    old.first_use = None
    new.first_use = first
