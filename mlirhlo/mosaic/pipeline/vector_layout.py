"""Layouts of vectors: `in_layout` and `out_layout` of every operation, and what stands between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr
from xdsl.rewriter import Rewriter

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import build, functions_of, insert, is_vector
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.layouts import Layout, joined, layout_of, layouts_of, native
from mlirhlo.mosaic.pipeline.vector_rules import rule_of
from mlirhlo.mosaic.target.check import refuse
from mlirhlo.mosaic.target.memory import indices_are_aligned, vectors_are_in_vmem
from mlirhlo.mosaic.target.structure import nowhere
from mlirhlo.mosaic.target.tiling import element_name, shape_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Block, Operation, SSAValue

    from mlirhlo.mosaic.target.generations import Generation


def infer_vector_layout(module: ModuleOp, generation: Generation) -> None:
    """Writes on every operation how its vectors lie in registers.

    Raises `HloError` HLO0740, HLO0742 and HLO0743 for operations that no TensorCore has, vectors in
    other memories, and indices that are not provably aligned.
    """
    for function in functions_of(module):
        for op in function.walk():
            if op is not function:
                refuse(op, nowhere, indices_are_aligned, vectors_are_in_vmem)
        _infer(function.regions[0].blocks[0], generation)


def _infer(block: Block, generation: Generation) -> None:
    """The operations of a block, in order: each finds its operands as they were left."""
    for op in list(block.ops):
        if name_of(op) in ("scf.for", "scf.while"):
            _loop(op, generation)
        elif op.regions:
            _branches(op, generation)
        else:
            _state(op, *rule_of(op)(op, generation))


def _branches(op: Operation, generation: Generation) -> None:
    """Results lie as all of the regions can give them."""
    for region in op.regions:
        for block in region.blocks:
            _infer(block, generation)
    ends = _ends(op) if op.results else []
    results = [
        _together(result, [layout_of(end.operands[at]) for end in ends])
        for at, result in enumerate(op.results)
    ]
    for end in ends:
        _state(end, results, [])
    _state(op, _laid(op.operands), results)


def _loop(op: Operation, generation: Generation) -> None:
    """What is carried lies as it begins; where a step leaves it otherwise, as both can have it, and the
    body is looked at once more."""
    plain = 3 if name_of(op) == "scf.for" else 0
    if len(op.operands) != plain + len(op.results):
        raise cannot(op, "that hands on other values than it begins with", "carry as many values")
    began = _laid(op.operands[plain:])
    _bodies(op, began, generation)
    given = [_laid(_carried(end)) for end in reversed(_ends(op))]
    carried = [
        _together(result, [began[at], *(layouts[at] for layouts in given)])
        for at, result in enumerate(op.results)
    ]
    if any(layouts != carried for layouts in (began, *given)):
        for region in op.regions:
            _forget(region.blocks[0])
        _bodies(op, carried, generation)
    for end in _ends(op):
        _state(end, [None] * (len(end.operands) - len(carried)) + carried, [])
    _state(op, [None] * plain + carried, carried)


def _bodies(op: Operation, carried: Sequence[Layout], generation: Generation) -> None:
    """Infers the regions of a loop for what is carried in a layout."""
    for region in op.regions:
        block = region.blocks[0]
        _assume(block, carried)
        _infer(block, generation)


def _ends(op: Operation) -> list[Operation]:
    """The terminators of an operation's regions."""
    ends = (block.last_op for region in op.regions for block in region.blocks)
    return [end for end in ends if end is not None and end.operands]


def _carried(end: Operation) -> Sequence[SSAValue]:
    """What the terminator of a loop's region hands on."""
    return end.operands[int(name_of(end) == "scf.condition") :]


def _laid(values: Sequence[SSAValue]) -> list[Layout]:
    return [layout_of(value) for value in values]


def _together(result: SSAValue, layouts: Sequence[Layout]) -> Layout:
    """The layout that vectors in all of these have; else the native one."""
    if not is_vector(result.type):
        return None
    found = layouts[0] if layouts else None
    for other in layouts[1:]:
        if found is not None and other is not None:
            found = joined(found, other, shape_in(result.type))
    return found or native(result.type)


def _assume(block: Block, carried: Sequence[Layout]) -> None:
    """What a loop carries is said to lie as it is carried."""
    first = block.first_op
    assert first is not None
    arguments = block.args[len(block.args) - len(carried) :]
    for argument, layout in zip(arguments, carried, strict=True):
        if not is_vector(argument.type):
            continue
        users = list(argument.uses)
        new = build("tpu.assume_layout", (argument,), (argument.type,))
        new.results[0].name_hint = argument.name_hint
        _state(new, [layout], [layout])
        insert(new, first)
        for use in users:
            use.operation.operands[use.index] = new.results[0]


def _forget(block: Block) -> None:
    """Takes what was inferred of a block away."""
    for op in list(block.walk()):
        op.attributes.pop("in_layout", None)
        op.attributes.pop("out_layout", None)
        if name_of(op) == "tpu.assume_layout":
            op.results[0].replace_all_uses_with(op.operands[0])
            Rewriter.erase_op(op)


def _state(op: Operation, inputs: Sequence[Layout], outputs: Sequence[Layout]) -> None:
    """Writes layouts where the compiler does: nothing of operands that there never are, but of the
    results of loops and regions also where there are none."""
    name = name_of(op)
    makes_vectors = not op.operands and any(is_vector(result.type) for result in op.results)
    if not makes_vectors and name != "tpu.region":
        op.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(item) for item in inputs])
    if op.results or name in ("scf.for", "tpu.region"):
        op.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(item) for item in outputs])


def relayout_insertion(module: ModuleOp) -> None:
    """Puts `mosaic_tc.relayout` where a value is wanted in another layout than it has."""
    for function in functions_of(module):
        for op in list(function.walk()):
            if op is function:
                continue
            wanted = layouts_of(op, "in_layout")
            for at, operand in enumerate(op.operands):
                have = layout_of(operand)
                want = wanted[at] if at < len(wanted) else have
                if have is None or want is None or have == want:
                    continue
                if element_name(operand.type) == "i1" and have.bits != want.bits:
                    # Masks get another width first.
                    between = replace(want, offsets=have.offsets)
                    operand, have = _relayout(op, operand, have, between), between
                if have != want:
                    operand = _relayout(op, operand, have, want)
                op.operands[at] = operand


def _relayout(op: Operation, value: SSAValue, have: Layout, want: Layout) -> SSAValue:
    """The value as it lies after a new operation before `op`."""
    new = build("mosaic_tc.relayout", (value,), (value.type,), None, op)
    new.results[0].name_hint = value.name_hint
    _state(new, [have], [want])
    return insert(new, op).results[0]
