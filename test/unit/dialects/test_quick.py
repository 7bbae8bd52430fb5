"""`create_op` fills what `Operation.create` fills, so that a new xDSL cannot break it silently."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    FileLineColLoc,
    FunctionType,
    IndexType,
    IntAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    i32,
    i64,
)
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.element_types import F32
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.dialects.quick import (
    add_argument,
    add_block,
    append,
    create_op,
    detach,
    erase,
    file_location,
    function_type,
    insert_before,
    jumps_to,
    module_of,
    new_block,
    ops_of,
    owners_of,
    prepend,
    put_operand,
    read_instead,
    readers_of,
    region_of,
)
from mlirhlo.dialects.structured import ScanOp, identity_map
from mlirhlo.dialects.structured.base import StructuredOp, maps_attribute
from mlirhlo.dialects.wide_operands import WideOperands
from mlirhlo.lowering.builder.types import memref_of


def fields(op: Operation | Block | BlockArgument | Region) -> dict[str, object]:
    """Every field an op carries, those that hold identities as what they hold."""
    names = {slot for cls in type(op).__mro__ for slot in getattr(cls, "__slots__", ())}
    names |= set(getattr(op, "__dict__", {}))
    return {name: getattr(op, name, None) for name in names}


def shape(op: Operation) -> tuple[object, ...]:
    return (
        [o.type for o in op.operands],
        [(r.type, r.index, r.op is op, r.first_use) for r in op.results],
        op.properties,
        op.attributes,
        op.location,
        list(op.successors),
        len(op.regions),
    )


def test_the_fields_are_those_of_create() -> None:
    values = AnyOp.create(result_types=[f32, f32])
    quick = create_op(arith.AddiOp, values.results, [f32])
    slow = arith.AddiOp.create(operands=values.results, result_types=[f32])
    quick.properties |= slow.properties  # defaults are the caller's
    assert set(fields(quick)) == set(fields(slow))
    assert shape(quick) == shape(slow)
    assert [u.operation for u in values.results[0].uses] == [slow, quick]
    quick.erase()
    slow.erase()
    assert not list(values.results[0].uses)


def test_a_module_is_as_its_own_constructor_makes_it() -> None:
    name, attributes = StringAttr("m"), {"a": StringAttr("b")}
    quick = module_of([AnyOp.create() for _ in range(2)], dict(attributes), name)
    slow = ModuleOp([AnyOp.create() for _ in range(2)], attributes, name)
    assert set(fields(quick)) == set(fields(slow))
    assert shape(quick) == shape(slow)
    assert quick.is_structurally_equivalent(slow)
    assert all(op.parent_op() is quick for op in quick.ops)
    assert shape(module_of([])) == shape(ModuleOp([]))


def test_appending_links_what_adding_does() -> None:
    quick, slow = Block(), Block()
    for block, add in ((quick, append), (slow, Block.add_op)):
        for _ in range(3):
            add(block, AnyOp.create())
        ops = list(block.ops)
        assert [op.parent for op in ops] == [block] * 3
        assert [op.next_op for op in ops] == [*ops[1:], None]
        assert [op.prev_op for op in ops] == [None, *ops[:-1]]
        assert (block.first_op, block.last_op) == (ops[0], ops[-1])
        ops[1].detach()
        assert list(block.ops) == [ops[0], ops[2]]


@pytest.mark.parametrize("there", [0, 1, 2])
@pytest.mark.parametrize("new", [0, 1, 3])
def test_prepending_links_what_inserting_does(there: int, new: int) -> None:
    block = Block([AnyOp.create() for _ in range(there)])
    before = ops_of(block)
    first = [AnyOp.create() for _ in range(new)]
    prepend(block, first)
    ops = [*first, *before]
    assert ops_of(block) == list(block.ops) == ops
    assert [op.parent for op in ops] == [block] * len(ops)
    assert list(reversed(block.ops)) == ops[::-1]
    if ops:
        assert (block.first_op, block.last_op) == (ops[0], ops[-1])


def test_many_results_and_regions() -> None:
    bounds = AnyOp.create(result_types=[IndexType()] * 3)
    body = Region(Block(arg_types=[IndexType()]))
    loop = create_op(scf.ForOp, bounds.results, (), regions=[body])
    assert body.parent is loop
    assert loop.regions == (body,)
    two = create_op(AnyOp, (), [f32, IndexType()])
    assert shape(two) == shape(AnyOp.create(result_types=[f32, IndexType()]))


def test_successors_are_uses_of_blocks() -> None:
    target = Block()
    jump = create_op(cf.BranchOp, successors=[target])
    assert list(jump.successors) == [target]
    assert [use.operation for use in target.uses] == [jump]


def test_successors_of_several_are_those_of_create() -> None:
    first, second = Block(), Block()
    quick = create_op(AnyOp, successors=[first, second, first])
    slow = AnyOp.create(successors=[first, second, first])
    assert set(fields(quick)) == set(fields(slow))
    assert list(quick.successors) == list(slow.successors)
    assert [u.index for u in quick.successor_uses] == [u.index for u in slow.successor_uses]
    wanted = [(slow, 2), (slow, 0), (quick, 2), (quick, 0)]
    assert [(use.operation, use.index) for use in first.uses] == jumps_to(first) == wanted
    quick.successors = []
    assert jumps_to(first) == wanted[:2]
    assert jumps_to(second) == [(slow, 1)]


@pytest.mark.parametrize("count", range(4))
def test_blocks_and_regions_are_as_their_own_constructors_make_them(count: int) -> None:
    types = [f32, IndexType(), f32][:count]
    quick, slow = new_block(types), Block(arg_types=types)
    assert set(fields(quick)) == set(fields(slow))
    for one, other in zip(quick.args, slow.args, strict=True):
        assert set(fields(one)) == set(fields(other))
        assert (one.type, one.index, one.location) == (other.type, other.index, other.location)
        assert (one.block, one.first_use, one.name_hint) == (quick, None, None)
    assert (quick.first_op, quick.last_op, quick.parent) == (None, None, None)
    blocks = [new_block() for _ in range(count)]
    region, wanted = region_of(*blocks), Region([Block() for _ in range(count)])
    assert set(fields(region)) == set(fields(wanted))
    last = new_block(types)
    add_block(region, last)
    there = [*blocks, last]
    assert list(region.blocks) == there
    assert [block.prev_block for block in there] == [None, *there[:-1]]
    assert [block.next_block for block in there] == [*there[1:], None]
    assert all(block.parent is region for block in there)


def links(block: Block, values: list[OpResult]) -> tuple[object, ...]:
    """All that moving and erasing change, with ops as their places in `block`."""
    place = {op: number for number, op in enumerate(block.ops)}
    there = list(block.ops)
    return (
        [place.get(op.next_op) if op.next_op else None for op in there],
        [place.get(op.prev_op) if op.prev_op else None for op in there],
        [[values.index(o) for o in op.operands] for op in there],  # type: ignore[arg-type]
        [[(place[use.operation], use.index) for use in value.uses] for value in values],
        (place.get(block.first_op), place.get(block.last_op)),  # type: ignore[arg-type]
    )


def readers() -> tuple[Block, list[OpResult]]:
    """A block of ops that read three values in turn, and the values."""
    values = list(AnyOp.create(result_types=[f32, f32, f32]).results)
    a, b, c = values
    block = Block([AnyOp.create(operands=o) for o in ([a, b, a], [c], [a, b], [b, c], [a])])
    return block, values


@pytest.mark.parametrize("which", range(5))
def test_moving_and_erasing_link_what_xdsl_does(which: int) -> None:
    (quick, some), (slow, others) = readers(), readers()
    erase(list(quick.ops)[which])
    slow.erase_op(list(slow.ops)[which])
    assert links(quick, some) == links(slow, others)
    moved, target = list(quick.ops)[-1], list(quick.ops)[which % 3]
    detach(moved)
    assert (moved.parent, moved.prev_op, moved.next_op) == (None, None, None)
    insert_before(target, moved)
    there = list(slow.ops)
    slow.insert_op_before(slow.detach_op(there[-1]), there[which % 3])
    assert links(quick, some) == links(slow, others)


@pytest.mark.parametrize(("old", "new"), [(0, 1), (1, 0), (2, 0), (1, 1)])
def test_reading_another_value_instead(old: int, new: int) -> None:
    (quick, some), (slow, others) = readers(), readers()
    assert readers_of(some[old]) == [use.operation for use in some[old].uses]
    read_instead(some[old], some[new])
    others[old].replace_all_uses_with(others[new])
    assert links(quick, some) == links(slow, others)
    assert all(owners_of(op) == [o.owner for o in op.operands] for op in quick.ops)


def test_values_are_found_in_tables_without_a_call() -> None:
    values = [*Block(arg_types=[f32, f32]).args, *AnyOp.create(result_types=[f32, f32]).results]
    assert all(type(value).__hash__ is object.__hash__ for value in values)
    numbers = {value: number for number, value in enumerate(values)}
    assert [numbers[value] for value in values] == [0, 1, 2, 3]
    assert type(AnyOp.create()).__hash__ is object.__hash__


def test_equal_ops_are_verified_once_and_others_each() -> None:
    numbers = AnyOp.create(result_types=[i32, f32, i64])
    whole, real, wide = numbers.results

    def add(left: SSAValue, right: SSAValue, **extra: Attribute) -> Operation:
        op = arith.AddiOp.create(operands=[left, right], result_types=[left.type])
        op.properties |= {"overflowFlags": arith.IntegerOverflowAttr("none"), **extra}
        return op

    for _ in range(3):
        add(whole, whole).verify()
        add(wide, wide).verify()
        for op in (
            add(whole, wide),
            add(real, real),
            add(whole, whole, overflowFlags=StringAttr("none")),
            add(whole, whole, other=StringAttr("a")),
            arith.AddiOp.create(operands=[whole], result_types=[i32]),
            arith.AddiOp.create(operands=[whole, whole]),
        ):
            with pytest.raises(VerifyException):
                op.verify()


def test_traits_are_verified_each_time() -> None:
    for _ in range(2):
        scf.YieldOp.create().verify()
    inside = scf.YieldOp.create()
    ModuleOp([inside])
    with pytest.raises(VerifyException, match="expects parent op"):
        inside.verify()


@pytest.mark.parametrize(
    ("quick", "slow"),
    [
        (function_type([f32, i32], [f32]), FunctionType.from_lists([f32, i32], [f32])),
        (function_type([], []), FunctionType.from_lists([], [])),
        (memref_of(f32, 3, 4), MemRefType(f32, [3, 4])),
        (memref_of(f32), MemRefType(f32, [])),
        (type_of(ArrayShape(F32, (3, 4))), TensorType(f32, [3, 4])),
        (maps_attribute([identity_map(2)]), ArrayAttr([AffineMapAttr(identity_map(2))])),
        (
            file_location(StringAttr("f"), IntAttr(1), IntAttr(2)),
            FileLineColLoc(StringAttr("f"), IntAttr(1), IntAttr(2)),
        ),
    ],
)
def test_attributes_are_those_of_xdsl(quick: Attribute, slow: Attribute) -> None:
    quick.verify()
    assert quick == slow
    assert hash(quick) == hash(slow)
    assert str(quick) == str(slow)
    assert set(vars(quick)) - {"_hlo_shape"} == set(vars(slow))


def test_an_argument_more() -> None:
    quick, slow = new_block([f32]), Block(arg_types=[f32])
    added, expected = add_argument(quick, i32), slow.insert_arg(i32, 1)
    assert quick.args[1] is added
    assert list(quick.arg_types) == list(slow.arg_types)
    assert set(fields(added)) == set(fields(expected))
    assert (added.index, added.block) == (1, quick)


def test_constructors_of_structured_ops_are_those_of_xdsl() -> None:
    array, state = AnyOp.create(
        result_types=[TensorType(f32, [3, 4]), TensorType(f32, [3])]
    ).results
    types = [array.type, state.type]
    quick = ScanOp([array], [state], 1, types, Region(Block()), reverse=True)
    slow = ScanOp.__new__(ScanOp)
    super(StructuredOp, slow).__init__(
        operands=[[array], [state]],
        result_types=[types],
        properties={"dimension": quick.dimension, "reverse": quick.reverse, "associative": None},
        regions=[Region(Block())],
    )
    assert set(fields(quick)) == set(fields(slow))
    assert shape(quick) == shape(slow)
    assert quick.body.parent is quick


@pytest.mark.parametrize("width", [3, WideOperands.LEAST, WideOperands.LEAST + 1])
def test_operands_that_change_one_by_one_are_a_tuple_to_all(width: int) -> None:
    values = [AnyOp.create(result_types=[i32]).results[0] for _ in range(width)]
    other = AnyOp.create(result_types=[i32]).results[0]
    reader, twin = (AnyOp.create(operands=values) for _ in range(2))
    put_operand(reader, 1, other)
    twin.operands[1] = other
    read_instead(values[2], other)  # of both
    expected = (values[0], other, other, *values[3:])
    for op in (reader, twin):
        operands = op._operands  # pyright: ignore[reportPrivateUsage]
        assert operands == expected
        assert expected == operands
        assert hash(operands) == hash(expected)
        assert operands[:2] == expected[:2]
        assert isinstance(operands[:2], tuple)
        joined: Any = operands
        assert operator.add(joined, (other,)) == (*expected, other)
        assert operator.add((other,), joined) == (other, *expected)
    assert not list(values[1].uses)
    assert not list(values[2].uses)
    assert {(use.operation, use.index) for use in other.uses} == {
        (op, index) for op in (reader, twin) for index in (1, 2)
    }
    assert reader.clone().operands[2] is other


def test_one_of_many_operands_changes_without_a_copy_of_the_others() -> None:
    values = [AnyOp.create(result_types=[i32]).results[0] for _ in range(WideOperands.LEAST)]
    reader = AnyOp.create(operands=values)
    put_operand(reader, 0, values[1])
    operands = reader._operands  # pyright: ignore[reportPrivateUsage]
    put_operand(reader, 2, values[1])
    read_instead(values[3], values[1])
    assert reader._operands is operands  # pyright: ignore[reportPrivateUsage]
