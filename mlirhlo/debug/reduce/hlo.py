"""Reducers of HLO modules: each knows places where a module could be simpler, and makes it so at some of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.reduce.cuts import as_parameter, forget_signature, set_root
from mlirhlo.dialects.hlo.attributes.base import integers, symbol
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HEADER_PREFIX, HloModule, holder
from mlirhlo.dialects.hlo.ops import ConditionalOp, TupleOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, without_layout
from mlirhlo.dialects.hlo.table import COMMON
from mlirhlo.dialects.hlo.types import type_of
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.simplify.dce import DcePass

Places = Callable[[ModuleOp], int]
Apply = Callable[[ModuleOp, Collection[int]], None]


@dataclass(frozen=True, slots=True)
class Reducer:
    """One way to make modules simpler."""

    name: str
    places: Places
    """How many places of a module it could change; they have numbers from 0."""
    apply: Apply
    """Changes a module at some places, in place."""


def tidy(module: ModuleOp) -> None:
    """Removes what is dead: instructions, computations, and parameters of the entry."""
    view = HloModule(module)
    before = len(view.entry.parameters)
    run_pipeline(module, [DcePass(remove_dead_parameters_from_entry_computation=True)])
    if len(view.entry.parameters) != before:
        forget_signature(view)


# ---------------------------------------------------------------- attributes

_ATTRIBUTES = tuple(spec.key.replace("-", "_") for spec in COMMON if spec.key != "metadata")


def _attributes(module: ModuleOp) -> list[tuple[Instruction | ModuleOp, str]]:
    found: list[tuple[Instruction | ModuleOp, str]] = [
        (module, key) for key in module.attributes if key.startswith(HEADER_PREFIX)
    ]
    for op in HloModule(module).instructions:
        found += [(op, key) for key in (*_ATTRIBUTES, CONTROL_PREDECESSORS) if key in op.properties]
    return found


def _drop_attributes(module: ModuleOp, places: Collection[int]) -> None:
    attributes = _attributes(module)
    for place in places:
        op, key = attributes[place]
        if isinstance(op, ModuleOp):
            del op.attributes[key]
            continue
        if key == CONTROL_PREDECESSORS:
            op.operands = list(op.inputs)
        op.properties.pop(key, None)


def drop_metadata(module: ModuleOp) -> None:
    """Removes source locations, which mean nothing to what is computed."""
    for op in HloModule(module).instructions:
        op.properties.pop("metadata", None)
    HloModule(module).set("stack_frames", None)


# ---------------------------------------------------------------- outputs


def _outputs(module: ModuleOp) -> int:
    root = HloModule(module).entry.root
    return len(root.inputs) if isinstance(root, TupleOp) and len(root.inputs) > 1 else 0


def _drop_outputs(module: ModuleOp, places: Collection[int]) -> None:
    entry = HloModule(module).entry
    root = entry.root
    kept = [value for k, value in enumerate(root.inputs) if k not in places]
    if len(kept) == 1 and isinstance(kept[0].owner, Instruction):
        set_root(module, kept[0].owner)
        return
    shapes = [s for k, s in enumerate(_parts(root)) if k not in places]
    new = make("tuple", kept, TupleShape(tuple(shapes)), name=root.instruction_name)
    entry.block.insert_op_before(new, entry.terminator)
    set_root(module, new)


def _parts(op: Instruction) -> Sequence[ArrayShape]:
    shape = op.shape
    assert isinstance(shape, TupleShape)
    return shape.elements  # type: ignore[return-value]


def _operands_of_root(module: ModuleOp) -> int:
    return len(HloModule(module).entry.root.inputs)


def _root_to_operand(module: ModuleOp, places: Collection[int]) -> None:
    value = HloModule(module).entry.root.inputs[min(places)]
    if isinstance(value.owner, Instruction):
        set_root(module, value.owner)


# ---------------------------------------------------------------- values


def _computing(module: ModuleOp) -> list[Instruction]:
    """Instructions that read something or call something, and are worth replacing."""
    view = HloModule(module)
    ordered = [c for c in view.computations if c is not view.entry]
    return [
        op for c in (*ordered, view.entry) for op in c.instructions if op.opcode.name != "parameter"
    ]


def _replace_by_parameters(module: ModuleOp, places: Collection[int]) -> None:
    """Replaces instructions of the entry by parameters of it, those of other computations by zeros."""
    entry = HloModule(module).entry
    instructions = _computing(module)
    for place in sorted(places, reverse=True):
        op = instructions[place]
        if not op.results[0].first_use:
            op.detach()
            op.erase()
        elif holder(op) is entry:
            if op.opcode.name != "constant" or _is_large(op):
                replace(op.results[0], as_parameter(module, op).results[0])
        elif isinstance(op.shape, ArrayShape) and op.opcode.name not in ("constant", "broadcast"):
            _replace_by_zeros(op, op.shape)


def _is_large(op: Instruction) -> bool:
    return isinstance(op.shape, ArrayShape) and op.shape.element_count > 1


def _replace_by_zeros(op: Instruction, shape: ArrayShape) -> None:
    block = op.parent
    assert block is not None
    scalar = ArrayShape(shape.element_type, ())
    literal = Literal.from_array(scalar, np.zeros((), shape.element_type.dtype))
    name = op.instruction_name
    zero = make(
        "constant", (), scalar, {"literal": LiteralAttr(literal)}, name=name and f"{name}.z"
    )
    block.insert_op_before(zero, op)
    value = zero
    if shape.rank:
        value = make(
            "broadcast", (zero,), shape, {"dimensions": integers(())}, name=name and f"{name}.b"
        )
        block.insert_op_before(value, op)
    replace(op.results[0], value.results[0])


def _bypass(module: ModuleOp, places: Collection[int]) -> None:
    """Replaces instructions by an operand of the same type."""
    instructions = _computing(module)
    for place in sorted(places, reverse=True):
        op = instructions[place]
        for value in op.inputs:
            if value.type == op.results[0].type:
                replace(op.results[0], value)
                break


# ---------------------------------------------------------------- control flow


def _regions(module: ModuleOp) -> list[Instruction]:
    return [
        op for op in HloModule(module).instructions if op.opcode.name in ("while", "conditional")
    ]


def _unwrap(branch: int) -> Apply:
    """Replaces loops by a call of their body, conditionals by one of a branch."""

    def apply(module: ModuleOp, places: Collection[int]) -> None:
        regions = _regions(module)
        for place in places:
            op = regions[place]
            if isinstance(op, WhileOp):
                called, operand = op.body, op.inputs[0]
            elif isinstance(op, ConditionalOp) and branch < len(op.called_computations):
                called, operand = op.called_computations[branch], op.inputs[branch + 1]
            else:
                continue
            call = make(
                "call", (operand,), op.shape, {"to_apply": symbol(called)}, name=op.instruction_name
            )
            block = op.parent
            assert block is not None
            block.insert_op_before(call, op)
            replace(op.results[0], call.results[0])

    return apply


_PASSES = (
    *("call-inliner", "defuser", "tuple-simplifier", "simplify-while-loops", "map-inline"),
    *("cse", "flatten-call-graph", "computation-deduplicator", "constant_folding"),
)
"""Passes that make modules smaller, or let other reducers do so."""


def _run_passes(module: ModuleOp, places: Collection[int]) -> None:
    run_pipeline(module, parse_pipeline(",".join(_PASSES[place] for place in sorted(places))))


# ---------------------------------------------------------------- constants and types


def _constants(module: ModuleOp) -> list[Instruction]:
    return [
        op
        for op in HloModule(module).instructions
        if op.opcode.name == "constant" and _is_large(op)
    ]


def _splat_constants(module: ModuleOp, places: Collection[int]) -> None:
    """Replaces constants of many elements by zeros that are broadcast."""
    constants = _constants(module)
    for place in places:
        shape = constants[place].shape
        assert isinstance(shape, ArrayShape)
        _replace_by_zeros(constants[place], shape)


def _layouts(module: ModuleOp) -> list[Instruction]:
    return [
        op
        for op in HloModule(module).instructions
        if isinstance(op.shape, ArrayShape) and without_layout(op.shape) != op.shape
    ]


def _drop_layouts(module: ModuleOp, places: Collection[int]) -> None:
    ops = _layouts(module)
    for place in places:
        shape = ops[place].shape
        assert isinstance(shape, ArrayShape)
        result = ops[place].results[0]
        result._type = type_of(without_layout(shape))  # pyright: ignore[reportPrivateUsage]
    forget_signature(HloModule(module))


REDUCERS = (
    Reducer("drop attributes", lambda m: len(_attributes(m)), _drop_attributes),
    Reducer("drop outputs", _outputs, _drop_outputs),
    Reducer("run passes", lambda _: len(_PASSES), _run_passes),
    Reducer("unwrap loops and branches", lambda m: len(_regions(m)), _unwrap(0)),
    Reducer("unwrap second branches", lambda m: len(_regions(m)), _unwrap(1)),
    Reducer("replace by parameters", lambda m: len(_computing(m)), _replace_by_parameters),
    Reducer("replace by operands", lambda m: len(_computing(m)), _bypass),
    Reducer("root to operand", _operands_of_root, _root_to_operand),
    Reducer("splat constants", lambda m: len(_constants(m)), _splat_constants),
    Reducer("drop layouts", lambda m: len(_layouts(m)), _drop_layouts),
)
"""In the order in which they are tried."""
