"""`async-collective-creator` and `convert-async-collectives-to-sync`: collectives as pairs of start and done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.build import append, make, wait_for
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, OP_CLASSES
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.dialects.hlo.table import OPCODES, STARTED, opcodes
from mlirhlo.dialects.quick import erase, insert_before, readers_of, replace
from mlirhlo.rewrites.algsimp.common import own_properties
from mlirhlo.rewrites.collectives.common import Surroundings
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

_OWN_PAIRS = tuple(start.removesuffix("-start") for start in STARTED if OPCODES[start].collective)
"""Opcodes that have a start and a done of their own."""
_OTHERS = tuple(
    sorted(
        opcodes(lambda row: row.communicates and not (row.is_asynchronous or row.newer))
        - {*_OWN_PAIRS}
    )
)
_STARTS: Mapping[str, str] = {f"{name}-start": name for name in _OWN_PAIRS}


@dataclass(frozen=True)
class AsyncCollectiveCreatorPass(HloPass):
    """Splits collectives into a start and a done, between which a schedule may put other work.

    Before and after:

        %r = f32[8] all-reduce(%x), …   =>   %s = f32[8] all-reduce-start(%x), …   %r = f32[8] all-reduce-done(%s)

    Opcodes without a start of their own become `async-start` and `async-done` of a computation that holds the
    collective. Start and done stand one behind the other; a latency-hiding scheduler moves them apart.
    Source: XLA's pass of this name.
    """

    name = "async-collective-creator"

    opcodes: tuple[str, ...] = (*_OWN_PAIRS, *_OTHERS)
    """Those that are split."""
    least_bytes: int = 0
    """Arrays of fewer bytes together stay as they are."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Splits outside of async computations; whether there was any."""
        kinds = tuple(OP_CLASSES[n] for n in (*_OWN_PAIRS, *_OTHERS) if n in self.opcodes)
        if not module.candidates(*kinds):
            return False
        found = Surroundings.of(module).collectives(*kinds)
        split = [op for op in found if _bytes(op.shape) >= self.least_bytes and _can_start(op)]
        for op in split:
            _split(op)
            trace.rule_counts[self.name, op.opcode.name] += 1
        return bool(split)


def _bytes(shape: Shape) -> int:
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    return sum(getattr(part, "byte_size", 0) for part in parts)


def _can_start(op: Instruction) -> bool:
    """In-place permutes, of four operands, write into one of them."""
    return op.opcode.name != "collective-permute" or len(op.inputs) == 1


def _split(op: Instruction) -> None:
    name, kept = op.opcode.name, own_properties(op)
    shapes = tuple(op.input_shapes)
    if name == "all-reduce":
        start = make("all-reduce-start", op.inputs, op.shape, kept)
    elif name in _OWN_PAIRS:
        given = shapes[0] if len(shapes) == 1 else TupleShape(shapes)
        start = make(f"{name}-start", op.inputs, TupleShape((given, op.shape)), kept)
    else:
        whole = TupleShape((TupleShape(shapes), op.shape))
        thread = holder(op).thread_property.get("execution_thread")
        own = {} if thread is None else {"async_execution_thread": thread}
        start = make("async-start", op.inputs, whole, {"calls": _wrapped(op, kept), **own})
    done = make(f"{name if name in _OWN_PAIRS else 'async'}-done", [start], op.shape)
    for each in (start, done):
        inherit(each, op)
        for key in ("frontend_attributes", "sharding"):
            if key in op.properties:
                each.properties[key] = op.properties[key]
        insert_before(op, each)
    wait_for(start, op.control_predecessors)
    _give(op, done)


def _wrapped(op: Instruction, kept: Mapping[str, Attribute]) -> Attribute:
    """A computation of nothing but the collective."""
    block = Block()
    parameters: list[Instruction] = []
    for number, shape in enumerate(op.input_shapes):
        parameters.append(make("parameter", (), shape, {"parameter_number": integer(number)}))
        append(block, parameters[-1])
    root = make(op.opcode.name, parameters, op.shape, kept)
    inherit(root, op)
    append(block, root)
    return add_computation(op, "async_computation", block, root)


def _give(op: Instruction, new: Instruction) -> None:
    """Lets users of `op`, and what waits for it, have `new`; `op` goes."""
    replace(op.output, new.output)
    erase(op)


@dataclass(frozen=True)
class ConvertAsyncCollectivesToSyncPass(HloPass):
    """Joins start and done of a collective where a schedule has put no work between.

    Before and after, in a schedule:

        %s = f32[8] all-reduce-start(%x), …   %r = f32[8] all-reduce-done(%s)
          =>   %r = f32[8] all-reduce(%x), …, frontend_attributes={async_collective_name="s"}

    Between them stand starts and dones of other collectives at most. Control dependencies of the pair go: the schedule
    says the order. A module without a schedule stays. Source: XLA's pass of this name.
    """

    name = "convert-async-collectives-to-sync"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Joins; whether there was any pair."""
        if not module.is_scheduled:
            return False
        fused, computations = module.known(HloModule.fused_computations), module.by_name()
        count = 0
        for computation in tuple(module.computations):
            if computation.computation_name not in fused:
                for start, done in _pairs(instruction_list(computation), computations):
                    _join(start, done, computations)
                    count += 1
        trace.rule_counts[self.name, "convert_async_collectives_to_sync"] += count
        return count > 0


def _collective(
    start: Instruction, computations: Mapping[str, ComputationOp]
) -> Instruction | None:
    """The collective that an instruction starts, in the computation where it has one; itself where it is one."""
    if start.opcode.name in _STARTS:
        return start
    if start.opcode.name != "async-start":
        return None
    root = computations[start.called_computations[0]].root
    whole = all(value.owner.name == "hlo.parameter" for value in root.inputs)  # type: ignore[union-attr]
    return root if whole and root.opcode.name in (*_OWN_PAIRS, *_OTHERS) else None


def _pairs(
    listed: Sequence[Instruction], computations: Mapping[str, ComputationOp]
) -> list[tuple[Instruction, Instruction]]:
    found: list[tuple[Instruction, Instruction]] = []
    open_: dict[SSAValue, Instruction] = {}
    for op in listed:
        if _collective(op, computations) is not None:
            if [r.name for r in readers_of(op.output)] == [_done_of(op)]:
                open_[op.output] = op
        elif op.opcode.name.endswith("-done") and op.inputs[0] in open_:
            found.append((open_.pop(op.inputs[0]), op))
        elif not op.opcode.name.endswith("-done"):
            open_.clear()
    return found


def _done_of(start: Instruction) -> str:
    return start.name.replace("_start", "_done")


def _join(start: Instruction, done: Instruction, computations: Mapping[str, ComputationOp]) -> None:
    root = _collective(start, computations)
    assert root is not None
    kept = own_properties(root)
    name = _STARTS.get(root.opcode.name, root.opcode.name)
    joined = make(name, start.inputs, done.shape, kept)
    inherit(joined, start)
    entries = {"async_collective_name": start.instruction_name or ""}
    old = start.properties.get("frontend_attributes")
    if isinstance(old, FrontendAttributesAttr):
        entries = dict(old.data.entries) | entries
    joined.properties["frontend_attributes"] = FrontendAttributesAttr(
        FrontendAttributes.of(entries)
    )
    if "sharding" in start.properties:
        joined.properties["sharding"] = start.properties["sharding"]
    insert_before(done, joined)
    for value in (start.output, done.output):
        for reader in readers_of(value):
            if isinstance(reader, Instruction) and value in reader.control_predecessors:
                left = [v for v in reader.control_predecessors if v is not value]
                reader.operands = [*reader.inputs, *left]
                reader.properties[CONTROL_PREDECESSORS] = integer(len(left))
                if not left:
                    del reader.properties[CONTROL_PREDECESSORS]
    _give(done, joined)
    erase(start)
