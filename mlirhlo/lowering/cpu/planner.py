"""From an HLO module to steps on buffers.

Tuples disappear: a value is a tree of buffers, and what only takes values apart or puts them together
costs nothing. Loops keep their state in buffers of their own; the body's results are copied there at
the end of each round. Everything else becomes a kernel, one for all instructions that compute the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ComputationOp,
    ConditionalOp,
    ConstantOp,
    CopyOp,
    FusionOp,
    GetTupleElementOp,
    ParameterOp,
    TupleOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import create_op
from mlirhlo.lowering.cpu.arena import assign_offsets
from mlirhlo.lowering.cpu.steps import Branch, Buffer, Copy, Kernel, Step, Tree, While, leaves
from mlirhlo.lowering.hlo_to_loops.elements import buffer_type, physical_order
from mlirhlo.lowering.hlo_to_loops.kernels import build_kernel, kernel_key

_SAME = frozenset({"opt-barrier", "optimization-barrier", "after-all", "domain", "add-dependency"})
"""Instructions whose value is their first operand's."""


@dataclass
class Plan:
    """All there is to run."""

    steps: list[Step]
    kernels: dict[str, FuncOp]
    parameters: list[Buffer]
    results: list[Buffer]
    constants: list[Buffer]
    arena_size: int
    shapes: Sequence[Shape]
    """Of the parameters."""
    result_shape: Shape
    buffers: list[Buffer] = field(default_factory=list[Buffer])


def plan_module(module: ModuleOp) -> Plan:
    """The plan of a module's entry. Raises `HloError` HLO0435 or HLO0432 for what has no code."""
    return _Planner(HloModule(module)).plan()


def byte_size(shape: ArrayShape) -> int:
    """Bytes of an array in memory."""
    return prod(shape.dimensions) * shape.element_type.byte_size


class _Planner:
    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.computations = module.by_name()
        self.kernels: dict[str, FuncOp] = {}
        self.names: dict[object, str] = {}
        """Kernels by what they compute."""
        self.buffers: list[Buffer] = []
        self.constants: list[Buffer] = []
        self.literals: dict[SSAValue, Buffer] = {}

    def plan(self) -> Plan:
        entry = self.module.entry
        parameters: list[Buffer] = []
        trees = [self._parameters(p.shape, parameters) for p in entry.parameters]
        steps: list[Step] = []
        tree = self._computation(entry, trees, steps)
        results = self._results(tree, entry.root.shape, steps)
        _Spans().run(steps)
        arena = [b for b in self.buffers if b.in_arena and b.first >= 0]
        return Plan(
            steps,
            self.kernels,
            parameters,
            results,
            self.constants,
            assign_offsets(arena),
            [p.shape for p in entry.parameters],
            entry.root.shape,
            arena,
        )

    def _parameters(self, shape: Shape, found: list[Buffer]) -> Tree:
        if isinstance(shape, TupleShape):
            return tuple(self._parameters(s, found) for s in shape.elements)
        if isinstance(shape, TokenShape):
            return ()
        buffer = Buffer(_static(shape), byte_size(_static(shape)), parameter=len(found))
        found.append(buffer)
        return buffer

    def _results(self, tree: Tree, shape: Shape, steps: list[Step]) -> list[Buffer]:
        """Temporaries become results where they are; all else is copied.

        A buffer may have been made for a value of another shape (before a bitcast): as a result it
        has the result's.
        """
        results: list[Buffer] = []
        pairs = zip(leaves(tree), _array_leaves(shape), strict=True)
        for number, (leaf, wanted) in enumerate(pairs):
            if leaf.in_arena:
                leaf.result, leaf.shape = number, wanted
                results.append(leaf)
            else:
                target = Buffer(wanted, leaf.size, result=number)
                steps.append(Copy(leaf, target))
                results.append(target)
        return results

    def _new(self, shape: Shape) -> Tree:
        """Buffers for a new value."""
        if isinstance(shape, TupleShape):
            return tuple(self._new(s) for s in shape.elements)
        if isinstance(shape, TokenShape):
            return ()
        array = _static(shape)
        buffer = Buffer(array, byte_size(array))
        self.buffers.append(buffer)
        return buffer

    def _computation(
        self, computation: ComputationOp, arguments: Sequence[Tree], steps: list[Step]
    ) -> Tree:
        """Steps of a computation on arguments; the buffers of its result."""
        trees: dict[SSAValue, Tree] = {}
        for parameter, tree in zip(computation.parameters, arguments, strict=True):
            trees[parameter.output] = tree
        for op in computation.instructions:
            if not isinstance(op, ParameterOp):
                trees[op.output] = self._instruction(op, trees, steps)
        return trees[computation.root.output]

    def _instruction(self, op: Instruction, trees: dict[SSAValue, Tree], steps: list[Step]) -> Tree:
        operands = [trees[v] for v in op.inputs]
        if isinstance(op, ConstantOp):
            return self._constant(op)
        if isinstance(op, TupleOp):
            return tuple(operands)
        if isinstance(op, GetTupleElementOp):
            return cast("tuple[Tree, ...]", operands[0])[op.index]
        if isinstance(op, WhileOp):
            return self._while(op, operands[0], steps)
        if isinstance(op, ConditionalOp):
            return self._conditional(op, operands, steps)
        if isinstance(op, CallOp):
            callee = self.computations[op.to_apply]
            arguments = [
                self._in_layout(tree, shape_of(v.type), p.shape, steps)
                for tree, v, p in zip(operands, op.inputs, callee.parameters, strict=True)
            ]
            result = self._computation(callee, arguments, steps)
            return self._in_layout(result, callee.root.shape, op.shape, steps)
        name = op.opcode.name
        if name in _SAME:
            return operands[0] if operands else ()
        if name == "copy-start" and _keeps_layout(op):
            # Nothing changes an operand, so that its copy may be itself.
            context = cast(TupleShape, op.shape).elements[2:]
            return (operands[0], operands[0], *map(self._new, context))
        if name == "copy-done":
            return cast("tuple[Tree, ...]", operands[0])[0]
        if name == "bitcast" or (name in ("reshape", "copy") and _is_same_memory(op)):
            return _retyped(operands[0], op.shape)
        return self._kernel(op, trees, steps)

    def _constant(self, op: ConstantOp) -> Tree:
        literal = op.literal
        assert literal is not None
        if isinstance(op.shape, TupleShape):
            raise error("HLO0435", "a constant that is a tuple has no code for the CPU")
        found = self.literals.get(op.output)
        if found is None:
            if literal.is_elided:
                from mlirhlo.interp.values import elided

                raise elided(op.shape)
            shape = _static(op.shape)
            found = Buffer(shape, byte_size(shape), literal=literal)
            self.literals[op.output] = found
            self.constants.append(found)
        return found

    def _kernel(self, op: Instruction, trees: dict[SSAValue, Tree], steps: list[Step]) -> Tree:
        result = self._new(op.shape)
        reads = [leaf for v in op.inputs for leaf in leaves(trees[v])]
        writes = list(leaves(result))
        key = kernel_key(op, self.computations)
        name = self.names.get(key)
        if name is None:
            name = f"{op.opcode.name.replace('-', '_')}_{len(self.kernels)}"
            if isinstance(op, FusionOp):
                name = f"fusion_{len(self.kernels)}"
            self.kernels[name] = build_kernel(name, op, self.computations)
            self.names[key] = name
        steps.append(Kernel(name, reads, writes))
        return result

    def _in_layout(self, tree: Tree, have: Shape, want: Shape, steps: list[Step]) -> Tree:
        """A value as its receiver lays it out: before layouts are assigned, a call's operands and
        the parameters they become need not agree."""
        if isinstance(have, TupleShape) and isinstance(want, TupleShape):
            parts = cast("tuple[Tree, ...]", tree)
            return tuple(
                self._in_layout(part, h, w, steps)
                for part, h, w in zip(parts, have.elements, want.elements, strict=True)
            )
        if not isinstance(have, ArrayShape) or not isinstance(want, ArrayShape):
            return tree
        if physical_order(have) == physical_order(want):
            return tree
        value = Block(arg_types=[type_of(have)]).args[0]
        copy = create_op(CopyOp, operands=[value], result_types=[type_of(want)])
        return self._kernel(copy, {value: tree}, steps)

    def _while(self, op: WhileOp, initial: Tree, steps: list[Step]) -> Tree:
        state = self._new(op.shape)
        initial = self._in_layout(initial, shape_of(op.inputs[0].type), op.shape, steps)
        for source, target in zip(leaves(initial), leaves(state), strict=True):
            steps.append(Copy(source, target))
        condition: list[Step] = []
        (test,) = leaves(self._on_state(op, state, self.computations[op.condition], condition))
        body: list[Step] = []
        callee = self.computations[op.body]
        after = self._on_state(op, state, callee, body)
        after = self._in_layout(after, callee.root.shape, op.shape, body)
        body += self._parallel_copies(list(leaves(after)), list(leaves(state)))
        steps.append(While(condition, test, body))
        return state

    def _on_state(self, op: WhileOp, state: Tree, callee: ComputationOp, steps: list[Step]) -> Tree:
        """What the condition or body of a loop gives for its state."""
        given = self._in_layout(state, op.shape, callee.parameters[0].shape, steps)
        return self._computation(callee, [given], steps)

    def _parallel_copies(self, sources: list[Buffer], targets: list[Buffer]) -> list[Step]:
        """Copies as if all at once: what would be overwritten before it is read is saved first."""
        steps: list[Step] = []
        pending = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        written = {id(t) for _, t in pending}
        saved: dict[int, Buffer] = {}
        for source, _ in pending:
            if id(source) in written and id(source) not in saved:
                copy = cast(Buffer, self._new(source.shape))
                steps.append(Copy(source, copy))
                saved[id(source)] = copy
        steps += [Copy(saved.get(id(s), s), t) for s, t in pending]
        return steps

    def _conditional(self, op: ConditionalOp, operands: list[Tree], steps: list[Step]) -> Tree:
        result = self._new(op.shape)
        selector, *arguments = operands
        branch = Branch(cast(Buffer, selector))
        shapes = [shape_of(v.type) for v in op.inputs[1:]]
        for name, argument, have in zip(op.called_computations, arguments, shapes, strict=True):
            inner: list[Step] = []
            callee = self.computations[name]
            given = self._in_layout(argument, have, callee.parameters[0].shape, inner)
            tree = self._computation(callee, [given], inner)
            tree = self._in_layout(tree, callee.root.shape, op.shape, inner)
            for source, target in zip(leaves(tree), leaves(result), strict=True):
                inner.append(Copy(source, target))
            branch.branches.append(inner)
        steps.append(branch)
        return result


def _array_leaves(shape: Shape) -> Iterator[ArrayShape]:
    if isinstance(shape, TupleShape):
        for part in shape.elements:
            yield from _array_leaves(part)
    elif not isinstance(shape, TokenShape):
        yield _static(shape)


def _static(shape: Shape) -> ArrayShape:
    if not isinstance(shape, ArrayShape):
        raise error("HLO0435", f"values of {shape} have no code for the CPU")
    if shape.is_dynamic:
        raise error("HLO0435", f"{shape} is dynamic: only static sizes have code for the CPU")
    return shape


def _is_same_memory(op: Instruction) -> bool:
    """Whether a reshape or copy leaves the bytes where they are."""
    (operand,) = op.inputs
    before, after = (cast(ArrayShape, shape_of(v.type)) for v in (operand, op.output))
    if op.opcode.name == "copy":
        return buffer_type(before) == buffer_type(after) and before.layout == after.layout
    return all(physical_order(s) == tuple(range(s.rank)) for s in (before, after))


def _keeps_layout(op: Instruction) -> bool:
    """Whether a `copy-start` makes its copy in the operand's own layout (of another memory, maybe)."""
    copy, operand, *_ = cast(TupleShape, op.shape).elements
    if not isinstance(copy, ArrayShape) or not isinstance(operand, ArrayShape):
        return False
    return physical_order(copy) == physical_order(operand)


def _retyped(tree: Tree, shape: Shape) -> Tree:
    """The same buffer; kernels say for themselves what they see in it."""
    del shape
    return tree


class _Spans:
    """Walks the steps in order and writes down when buffers are in use."""

    def __init__(self) -> None:
        self.position = 0

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.position += 1
            match step:
                case Kernel():
                    for buffer in (*step.reads, *step.writes):
                        buffer.used_at(self.position)
                case Copy():
                    step.source.used_at(self.position)
                    step.target.used_at(self.position)
                case While():
                    self._loop(step)
                case Branch():
                    step.selector.used_at(self.position)
                    for branch in step.branches:
                        self.run(branch)

    def _loop(self, loop: While) -> None:
        start = self.position
        self.run(loop.condition)
        self.position += 1
        loop.test.used_at(self.position)
        self.run(loop.body)
        self.position += 1
        # What was there before the loop is needed by its next round too.
        for buffer in _touched(loop):
            if buffer.first <= start:
                buffer.used_at(self.position)


def _touched(loop: While) -> set[Buffer]:
    found: set[Buffer] = {loop.test}
    stack: list[Step] = [*loop.condition, *loop.body]
    while stack:
        step = stack.pop()
        match step:
            case Kernel():
                found.update(step.reads, step.writes)
            case Copy():
                found.update((step.source, step.target))
            case While():
                stack += [*step.condition, *step.body]
                found.add(step.test)
            case Branch():
                found.add(step.selector)
                for branch in step.branches:
                    stack += branch
    return found
