"""The quick constructor fills exactly the fields that xDSL's own constructor fills."""

import gc
import weakref

import pytest
from xdsl.ir import Block, Operation, OpResult, SSAValue, Use

from mlirhlo.dialects.hlo import build
from mlirhlo.dialects.hlo.attributes.base import integer, integers
from mlirhlo.dialects.hlo.build import append, close, create, make
from mlirhlo.dialects.hlo.ops import AddOp, BroadcastOp, ComputationOp, ParameterOp, ReturnOp
from mlirhlo.dialects.hlo.shapes import array
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.formats.hlo_text import parse_module

VECTOR = array("f32", [4])


def fields(op: Operation) -> dict[str, object]:
    """Every field of an op, links replaced by what they link to in words."""
    found: dict[str, object] = {}
    for name, value in sorted(op.__dict__.items()):
        if name == "results":
            found[name] = [
                (type(r), r.type, r.index, r.op is op, r.first_use, r.name_hint, sorted(r.__dict__))
                for r in op.results
            ]
        elif name == "_operand_uses":
            found[name] = [(type(u), u.operation is op, u.index) for u in op._operand_uses]
        else:
            found[name] = (type(value), value)
    return found


def uses(value: SSAValue) -> list[tuple[str, int]]:
    return [(use.operation.name, use.index) for use in value.uses]


def test_create_fills_the_fields_xdsl_fills() -> None:
    x = make("parameter", [], VECTOR, {"parameter_number": integer(0)})
    y = make("parameter", [], VECTOR, {"parameter_number": integer(1)})
    ours = create(AddOp, [x.output, y.output], type_of(VECTOR), {})
    theirs = AddOp.create(operands=[x.output, y.output], result_types=[type_of(VECTOR)])
    assert type(ours) is type(theirs)
    assert fields(ours) == fields(theirs)
    assert type(ours._operands) is type(theirs._operands)


def test_use_lists_are_those_of_xdsl() -> None:
    ours = make("parameter", [], VECTOR)
    theirs = make("parameter", [], VECTOR)
    for _ in range(3):
        create(AddOp, [ours.output, ours.output], type_of(VECTOR), {})
        AddOp.create(operands=[theirs.output, theirs.output], result_types=[type_of(VECTOR)])
    assert uses(ours.output) == uses(theirs.output)
    walked: list[Use] = []
    use = ours.output.first_use
    previous = None
    while use is not None:
        assert use._prev_use is previous
        walked.append(use)
        previous, use = use, use._next_use
    assert len(walked) == 6


def test_a_created_op_can_be_erased_and_its_operands_replaced() -> None:
    x, y = (make("parameter", [], VECTOR) for _ in range(2))
    total = make("add", [x, y], VECTOR)
    x.output.replace_all_uses_with(y.output)
    assert total.inputs == (y.output, y.output)
    assert x.output.first_use is None
    total.erase()
    assert y.output.first_use is None


def test_append_links_as_add_op_does() -> None:
    def build(quick: bool) -> list[tuple[str, str | None, str | None]]:
        block = Block()
        for _ in range(3):
            op = make("parameter", [], VECTOR)
            if quick:
                append(block, op)
            else:
                block.add_op(op)
        assert block.last_op is not None
        return [
            (op.name, op.prev_op and op.prev_op.name, op.next_op and op.next_op.name)
            for op in block.ops
        ] + [(block.last_op.name, None, None)]

    assert build(quick=True) == build(quick=False)


def test_control_predecessors_are_trailing_operands() -> None:
    x, y = (make("parameter", [], VECTOR) for _ in range(2))
    op = make("negate", [x], VECTOR, control_predecessors=[y])
    assert op.inputs == (x.output,)
    assert op.control_predecessors == (y.output,)
    assert len(op.operands) == 2


def test_names_survive_cloning() -> None:
    x = make("parameter", [], VECTOR, {"parameter_number": integer(0)}, name="param_0.12")
    block = Block()
    append(block, x)
    bcast = make("broadcast", [x], VECTOR, {"dimensions": integers((0,))}, name="b_1")
    append(block, bcast)
    block.add_op(ReturnOp(bcast.output))
    copy = ComputationOp("f", block, is_entry=True).clone()
    copy.verify()
    names = [op.instruction_name for op in copy.instructions]
    assert names == ["param_0.12", "b_1"]
    assert isinstance(copy.root, BroadcastOp)
    assert isinstance(copy.parameters[0], ParameterOp)
    assert isinstance(copy.root.results[0], OpResult)


def test_close_makes_what_xdsl_makes() -> None:
    def block() -> tuple[Block, SSAValue]:
        made = Block()
        x = make("parameter", [], VECTOR, {"parameter_number": integer(0)})
        append(made, x)
        append(made, make("add", [x, x], VECTOR))
        return made, x.output

    first, root = block()
    ours = close("c", first, root)
    second, root_ = block()
    second.add_op(ReturnOp(root_))
    theirs = ComputationOp("c", second)
    ours.verify()
    assert str(ours) == str(theirs)
    links = {"_next_op", "_prev_op", "parent"}  # may be left to the class's None
    assert ours.__dict__.keys() - links == theirs.__dict__.keys() - links
    assert ours.regions[0].parent is ours
    assert ours.terminator.__dict__.keys() - links == theirs.terminator.__dict__.keys() - links
    assert ours.terminator.next_op is None
    assert ours.terminator.prev_op is list(ours.instructions)[-1]
    assert type(ours.terminator._operands) is type(theirs.terminator._operands)
    assert uses(root) == [("hlo.return", 0), ("hlo.add", 1), ("hlo.add", 0)]
    assert [(u.operation.name, u.index) for u in root.uses] == [
        (u.operation.name, u.index) for u in root_.uses
    ]
    assert sorted(ours.regions[0].__dict__) == sorted(theirs.regions[0].__dict__)


def test_modules_that_nobody_holds_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are cycles, and what is made in a pause joins the collector's oldest generation unseen."""
    monkeypatch.setattr(build.Collector, "LEAST", 1_000)
    lines = "".join(f"  n{i} = f32[] negate(n{i - 1})\n" for i in range(1, 500))
    text = f"HloModule m\n\nENTRY e {{\n  n0 = f32[] parameter(0)\n{lines}  ROOT r = f32[] copy(n499)\n}}\n"
    first = weakref.ref(parse_module(text))
    most = 1_000 + len(gc.get_objects())
    made = 0
    while first() is not None and made < most:
        made += sum(1 for _ in parse_module(text).walk())
    assert first() is None


def test_few_modules_of_many_bytes_are_freed_when_the_process_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "HloModule m\n\nENTRY e {\n  ROOT n = f32[] parameter(0)\n}\n"
    monkeypatch.setattr(build.Collector, "collections", gc.get_stats()[2]["collections"])
    monkeypatch.setattr(build.Collector, "LEAST_BYTES", 256 << 20)
    monkeypatch.setattr(build, "_peak_bytes", lambda: 1 << 30)
    monkeypatch.setattr(build.Collector, "peak", 1 << 30)
    monkeypatch.setattr(build.Collector, "made", 0)
    first = weakref.ref(parse_module(text))
    parse_module(text)
    assert first() is not None
    monkeypatch.setattr(build, "_peak_bytes", lambda: 2 << 30)
    parse_module(text)
    assert first() is None


def test_garbage_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again where the program has just done so itself."""
    monkeypatch.setattr(build.Collector, "LEAST", 0)
    gc.collect()
    monkeypatch.setattr(build.Collector, "collections", gc.get_stats()[2]["collections"])

    def collections() -> int:
        """Of all objects, in the next pause."""
        monkeypatch.setattr(build.Collector, "made", 1 << 40)
        before = gc.get_stats()[2]["collections"]
        with build.paused_gc():
            pass
        return gc.get_stats()[2]["collections"] - before

    assert collections() == 1
    gc.collect()
    assert collections() == 0
    assert collections() == 1
