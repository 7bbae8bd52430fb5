"""From an HLO module to steps on buffers, for any back end.

Tuples disappear: a value is a tree of buffers, and what only takes values apart or puts them together
costs nothing. Loops keep their state in buffers of their own; the body's results are copied there at
the end of each round. Everything else becomes a kernel, one for all instructions that compute the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from types import GeneratorType
from typing import Generic, TypeAlias, TypeVar, cast

from xdsl.ir import Block, SSAValue

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.literal import Literal
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
from mlirhlo.interp.values import elided
from mlirhlo.lowering.hlo_to_loops.builders import kernel_key
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.plan.arena import assign_offsets
from mlirhlo.lowering.plan.donors import ShapeIndex, aliases_of
from mlirhlo.lowering.plan.in_memory import byte_size, crops, in_memory, is_held, is_same_memory
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.schedule import in_order, updated_last
from mlirhlo.lowering.plan.sharing import share_buffers
from mlirhlo.lowering.plan.spans import Spans
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Held,
    Kernel,
    Repeat,
    Site,
    Step,
    Strands,
    Tree,
    While,
    held,
    is_long,
    leaves,
)
from mlirhlo.nesting import Walk, walked

Values: TypeAlias = list[tuple[Instruction, Tree]]
"""Where the values of instructions are, in the order in which they run; last the entry's root again,
with the buffers of the results."""


KernelT = TypeVar("KernelT")


class Planner(Generic[KernelT]):
    """Plans one module; a back end says what its kernels are."""

    target = ""
    """What runs the code, for messages."""

    def __init__(self, module: HloModule, values: Values | None = None) -> None:
        """`values` is filled, for reports."""
        self.module = module
        self.values = values
        self.computations = module.by_name()
        self.kernels: dict[str, KernelT] = {}
        self.instructions: dict[str, Instruction] = {}
        self.effects = SideEffects.of(module)
        self.orders: dict[ComputationOp, Sequence[Instruction]] = {}
        self.names: dict[object, list[str]] = {}
        """Kernels by what they compute."""
        self.alone: dict[object, tuple[Instruction, list[str]] | None] = {}
        """The only kernel there is so far of a class and shape, of which nobody asked yet what it computes."""
        self.buffers: list[Buffer] = []
        self.constants: list[Buffer] = []
        self.literals: dict[SSAValue, Tree] = {}
        self.sites: list[Site] = []
        self.slots = 0

    # ------------------------------------------------------------ what back ends say

    def build(self, name: str, op: Instruction) -> KernelT | None:
        """The kernel of an instruction; None where Python is to run it."""
        raise NotImplementedError

    def workspaces(self, kernel: KernelT) -> Sequence[int]:
        """Bytes of each buffer that a kernel needs beside operands and results."""
        raise NotImplementedError

    def pairs(self, kernel: KernelT) -> Sequence[tuple[int, int]]:
        """Numbers of operands, each with that of a result that may be written over it."""
        raise NotImplementedError

    def updates(self, kernel: KernelT) -> Sequence[tuple[int, int]]:
        """Numbers of operands that a kernel does not read, each with that of a result, which has to hold a copy of
        the operand before."""
        del kernel
        return ()

    def rounds(self, op: WhileOp) -> int | None:
        """How often a loop runs, where that is known and the condition need not be asked."""
        del op
        return None

    def strands(self, op: WhileOp, state: Tree) -> Strands | None:
        """The rounds of a loop that may run at the same time."""
        del op, state
        return None

    def settle(
        self, steps: list[Step], results: Sequence[Buffer]
    ) -> tuple[set[Buffer], list[Buffer]]:
        """Finishes steps whose buffers are shared; buffers outside of the arena, and new ones in it."""
        del results
        Spans().run(steps)
        return set(), []

    def native(self, op: Instruction, operands: list[Tree], steps: list[Step]) -> Tree | None:
        """Where the value of an instruction is that the back end runs in steps of its own."""
        del op, operands, steps
        return None

    def call_back(self, site: Site, steps: list[Step]) -> None:
        """Adds a step that Python runs, or raises `HloError`."""
        reads = [leaf for tree in site.operands for leaf in leaves(tree)]
        steps.append(Callback(len(self.sites), reads, list(leaves(site.result))))
        self.sites.append(site)

    # ------------------------------------------------------------ the plan

    def plan(self) -> Plan:
        """The plan of the entry. Raises `HloError` HLO0435 or HLO0432 for what has no code."""
        entry = self.module.entry
        parameters: list[Buffer] = []
        trees = [self._parameters(p.shape, parameters) for p in entry.parameters]
        steps: list[Step] = []
        tree = walked(self._computation(entry, trees, steps))
        results, result_tree = self._results(
            tree, entry.root.shape, aliases_of(self.module, trees), steps
        )
        if self.values is not None:
            self.values.append((entry.root, result_tree))
        pairs = {name: self.pairs(kernel) for name, kernel in self.kernels.items()}
        steps = share_buffers(steps, pairs, results)
        own, more = self.settle(steps, results)
        arena = [b for b in self.buffers if b.in_arena and b.first >= 0 and b not in own] + more
        arena_size = assign_offsets(arena)
        for buffer in self.buffers:
            buffer.move_in()
        return Plan(
            steps,
            parameters,
            results,
            self.constants,
            arena_size,
            [p.shape for p in entry.parameters],
            entry.root.shape,
            arena,
            self.sites,
            self.slots,
            trees,
            result_tree,
            self.instructions,
            is_long(steps),
        )

    def _parameters(self, shape: Shape, found: list[Buffer]) -> Tree:
        if isinstance(shape, TupleShape):
            return tuple(self._parameters(s, found) for s in shape.elements)
        if isinstance(shape, TokenShape):
            return ()
        array = in_memory(shape)
        if array is None:
            return self._held()
        buffer = Buffer(array, byte_size(array), parameter=len(found))
        found.append(buffer)
        return buffer

    def _held(self) -> Held:
        self.slots += 1
        return Held(self.slots - 1)

    def _results(
        self,
        tree: Tree,
        shape: Shape,
        aliases: Mapping[ShapeIndex, Buffer],
        steps: list[Step],
    ) -> tuple[list[Buffer], Tree]:
        """Temporaries become results where they are; all else is copied.

        A buffer may have been made for a value of another shape (before a bitcast): as a result it
        has the result's. Results that may lie over a parameter are copied at the very end, when
        parameters have been read; sharing spares the copies that nothing stands against.
        """
        results: list[Buffer] = []
        last: list[tuple[Buffer, Buffer]] = []

        def given(tree: Tree, shape: Shape, index: ShapeIndex) -> Tree:
            if isinstance(tree, Held):
                return tree
            if isinstance(tree, tuple):
                shapes = shape.elements if isinstance(shape, TupleShape) else ()
                parts = enumerate(zip(tree, shapes, strict=True))
                return tuple(given(t, s, (*index, n)) for n, (t, s) in parts)
            wanted = in_memory(shape)
            if wanted is None:
                raise error(
                    "HLO0435",
                    f"a result of {shape} has no code for {self.target}: it is made with known sizes",
                )
            alias = aliases.get(index)
            if alias is None or alias.size != tree.size:
                if tree.in_arena:
                    tree.result, tree.shape = len(results), wanted
                    results.append(tree)
                    return tree
                target = Buffer(wanted, tree.size, result=len(results))
                steps.append(Copy(tree, target))
            else:
                target = Buffer(wanted, tree.size, result=len(results), alias=alias)
                last.append((tree, target))
            results.append(target)
            return target

        placed = given(tree, shape, ())
        steps += self._parallel_copies(*zip(*last, strict=True)) if last else ()
        return results, placed

    def new(self, shape: Shape) -> Tree:
        """Buffers for a new value."""
        if isinstance(shape, TupleShape):
            return tuple(self.new(s) for s in shape.elements)
        if isinstance(shape, TokenShape):
            return ()
        array = in_memory(shape)
        if array is None:
            return self._held()
        buffer = Buffer(array, byte_size(array))
        self.buffers.append(buffer)
        return buffer

    def _computation(
        self, computation: ComputationOp, arguments: Sequence[Tree], steps: list[Step]
    ) -> Walk[Tree]:
        """Steps of a computation on arguments; the buffers of its result."""
        trees: dict[SSAValue, Tree] = {}
        for parameter, tree in zip(computation.parameters, arguments, strict=True):
            trees[parameter.output] = tree
        for op in self._order(computation):
            if not isinstance(op, ParameterOp):
                value = self._instruction(op, trees, steps)
                if isinstance(value, GeneratorType):
                    value = yield value
                trees[op.output] = cast(Tree, value)
            if self.values is not None:
                self.values.append((op, trees[op.output]))
        return trees[computation.root.output]

    def _order(self, computation: ComputationOp) -> Sequence[Instruction]:
        order = self.orders.get(computation)
        if order is None:
            order = self.orders[computation] = in_order(
                computation, is_scheduled=self.module.is_scheduled, effects=self.effects
            )
        return order

    def _instruction(
        self, op: Instruction, trees: dict[SSAValue, Tree], steps: list[Step]
    ) -> Tree | Walk[Tree]:
        """Where the value of an instruction is, or the walk that says it."""
        operands = [trees[v] for v in op.inputs]
        if isinstance(op, ConstantOp):
            return self._constant(op)
        if isinstance(op, TupleOp):
            given = TupleShape(tuple(shape_of(v.type) for v in op.inputs))
            return self._in_layout(tuple(operands), given, op.shape, steps)
        if isinstance(op, GetTupleElementOp):
            return cast("tuple[Tree, ...]", operands[0])[op.index]
        if isinstance(op, WhileOp):
            return self._while(op, operands[0], steps)
        if isinstance(op, ConditionalOp):
            return self._conditional(op, operands, steps)
        if isinstance(op, CallOp):
            callee = self.computations[op.to_apply]
            return self._called(callee, op, operands, op.shape, steps)
        name = op.opcode.name
        if name == "after-all" or (op.opcode.forwards and name != "bitcast"):
            return operands[0] if operands else ()
        if name == "copy" and isinstance(op.shape, TupleShape):
            # Nothing changes an operand, so that its copy may be itself.
            return self._in_layout(operands[0], shape_of(op.inputs[0].type), op.shape, steps)
        if (native := self.native(op, operands, steps)) is not None:
            return native
        if (started := self._asynchronous(op, operands, steps)) is not None:
            return started
        if any(map(is_held, (*operands, op.shape))) or crops(op):
            return self._by_python(op, trees, steps)
        if name == "bitcast" or (op.opcode.keeps_bytes and is_same_memory(op)):
            return _retyped(operands[0], op.shape)
        return self._kernel(op, trees, steps)

    def _asynchronous(
        self, op: Instruction, operands: list[Tree], steps: list[Step]
    ) -> Tree | Walk[Tree] | None:
        """Pairs of a start and an end: the work is done at the start."""
        name = op.opcode.name
        if name == "async-start":
            return self._started(op, operands, steps)
        if name == "copy-start":
            # Nothing changes an operand, so that its copy may be itself.
            copy, _, *context = cast(TupleShape, op.shape).elements
            copied = self._in_layout(operands[0], shape_of(op.inputs[0].type), copy, steps)
            return (copied, operands[0], *map(self.new, context))
        if name in ("async-update", "all-reduce-done"):
            return operands[0]
        if op.opcode.takes_pair:
            return cast("tuple[Tree, ...]", operands[0])[1]
        if name == "copy-done":
            return cast("tuple[Tree, ...]", operands[0])[0]
        return None

    def _started(self, op: Instruction, operands: list[Tree], steps: list[Step]) -> Walk[Tree]:
        callee = self.computations[op.called_computations[0]]
        shape = cast(TupleShape, op.shape)
        result: Tree = yield self._called(callee, op, operands, shape.elements[1], steps)
        return (tuple(operands), result, *map(self.new, shape.elements[2:]))

    def _called(
        self,
        callee: ComputationOp,
        op: Instruction,
        operands: Sequence[Tree],
        shape: Shape,
        steps: list[Step],
    ) -> Walk[Tree]:
        """The steps of a computation in place of an instruction that calls it."""
        arguments = [
            self._in_layout(tree, shape_of(v.type), p.shape, steps)
            for tree, v, p in zip(operands, op.inputs, callee.parameters, strict=True)
        ]
        result: Tree = yield self._computation(callee, arguments, steps)
        return self._in_layout(result, callee.root.shape, shape, steps)

    def _by_python(
        self, op: Instruction, trees: dict[SSAValue, Tree], steps: list[Step]
    ) -> Tree | Walk[Tree]:
        """An instruction without machine code: a fusion is taken apart, all else is called back."""
        operands = [trees[v] for v in op.inputs]
        if isinstance(op, FusionOp):
            return self._called(self.computations[op.calls], op, operands, op.shape, steps)
        result = self.new(op.shape)
        self.call_back(Site(op, operands, result), steps)
        return result

    def _move(self, source: Tree, target: Tree, steps: list[Step]) -> None:
        """Moves what Python holds of a value."""
        sources, targets = tuple(held(source)), tuple(held(target))
        if sources != targets:
            self.call_back(Site(None, [sources], targets), steps)

    def _constant(self, op: ConstantOp) -> Tree:
        literal = op.literal
        assert literal is not None
        found = self.literals.get(op.output)
        if found is None:
            if literal.is_elided:
                raise elided(op.shape)
            found = self.literals[op.output] = self._literal(literal, op.shape)
        return found

    def _literal(self, literal: Literal, shape: Shape) -> Tree:
        if isinstance(shape, TupleShape):
            parts = zip(literal.elements, shape.elements, strict=True)
            return tuple(self._literal(part, s) for part, s in parts)
        if isinstance(shape, TokenShape):
            return ()
        array = in_memory(shape)
        if array is None:
            raise error("HLO0435", f"a constant of {shape} has no code for {self.target}")
        buffer = Buffer(array, byte_size(array), literal=literal)
        self.constants.append(buffer)
        return buffer

    def is_unwritten(self, op: Instruction) -> bool:
        """Whether an instruction gives memory whose contents nobody reads: no code makes it."""
        del op
        return False

    def _kernel(
        self, op: Instruction, trees: dict[SSAValue, Tree], steps: list[Step]
    ) -> Tree | Walk[Tree]:
        result = self.new(op.shape)
        if self.is_unwritten(op):
            return result
        reads = [leaf for v in op.inputs for leaf in leaves(trees[v])]
        writes = list(leaves(result))
        names = self._names(op)
        if names:
            (name,) = names
        else:
            name = f"{op.opcode.name.replace('-', '_')}_{len(self.kernels)}"
            if isinstance(op, FusionOp):
                name = f"fusion_{len(self.kernels)}"
            kernel = self.build(name, op)
            if kernel is None:
                name = ""
            else:
                self.kernels[name] = kernel
            names.append(name)
            self.instructions[name] = op
        if not name:
            return self._by_python(op, trees, steps)
        kernel = self.kernels[name]
        for operand, target in self.updates(kernel):
            updated = writes[target - len(reads)]
            steps.append(Copy(reads[operand], updated))
            reads[operand] = updated
        writes += map(self.workspace, self.workspaces(kernel))
        steps.append(Kernel(name, reads, writes))
        return result

    def key(self, op: Instruction) -> Hashable:
        """Equal for instructions that one kernel can compute."""
        return kernel_key(op, self.computations)

    def _names(self, op: Instruction) -> list[str]:
        """The kernel that computes what an instruction does, if there is one already: to be filled in."""
        # Most kernels of small modules are the only ones of their shape: what they compute is not described.
        outline, mine = (type(op), op.shape), list[str]()
        if outline not in self.alone:
            self.alone[outline] = op, mine
            return mine
        if (first := self.alone[outline]) is not None:
            self.alone[outline] = None
            self.names[self.key(first[0])] = first[1]
        return self.names.setdefault(self.key(op), mine)

    def workspace(self, size_bytes: int) -> Buffer:
        """Memory that one step uses."""
        shape = ArrayShape(PRIMITIVE_TYPES["u8"], (size_bytes,))
        buffer = Buffer(shape, size_bytes, workspace=True)
        self.buffers.append(buffer)
        return buffer

    def _in_layout(self, tree: Tree, have: Shape, want: Shape, steps: list[Step]) -> Tree:
        """A value as its receiver lays it out: before layouts are assigned, operands of a call or a tuple and
        the parameters or elements they become need not agree."""
        if isinstance(have, TupleShape) and isinstance(want, TupleShape):
            parts = cast("tuple[Tree, ...]", tree)
            return tuple(
                self._in_layout(part, h, w, steps)
                for part, h, w in zip(parts, have.elements, want.elements, strict=True)
            )
        if not isinstance(have, ArrayShape) or not isinstance(want, ArrayShape):
            return tree
        if isinstance(tree, Held):
            return tree
        if physical_order(have) == physical_order(want):
            return tree
        value = Block(arg_types=[type_of(have)]).args[0]
        copy = create_op(CopyOp, operands=[value], result_types=[type_of(want)])
        return cast(Tree, self._kernel(copy, {value: tree}, steps))

    def _while(self, op: WhileOp, initial: Tree, steps: list[Step]) -> Walk[Tree]:
        state = self.new(op.shape)
        initial = self._in_layout(initial, shape_of(op.inputs[0].type), op.shape, steps)
        for source, target in zip(leaves(initial), leaves(state), strict=True):
            steps.append(Copy(source, target))
        self._move(initial, state, steps)
        rounds = self.rounds(op)
        if rounds == 0:
            return state
        condition: list[Step] = []
        test: Buffer | None = None
        if rounds is None:
            value: Tree = yield self._on_state(
                op, state, self.computations[op.condition], condition
            )
            (test,) = leaves(value)
        body: list[Step] = []
        callee = self.computations[op.body]
        after: Tree = yield self._on_state(op, state, callee, body)
        after = self._in_layout(after, callee.root.shape, op.shape, body)
        new, old = list(leaves(after)), list(leaves(state))
        body = updated_last(body, new, old)
        body += self._parallel_copies(new, old)
        self._move(after, state, body)
        if test is None:
            assert rounds is not None
            steps.append(Repeat(rounds, body))
        else:
            steps.append(While(condition, test, body, self.strands(op, state)))
        return state

    def _on_state(
        self, op: WhileOp, state: Tree, callee: ComputationOp, steps: list[Step]
    ) -> Walk[Tree]:
        """What the condition or body of a loop gives for its state."""
        given = self._in_layout(state, op.shape, callee.parameters[0].shape, steps)
        return self._computation(callee, [given], steps)

    def _parallel_copies(self, sources: Sequence[Buffer], targets: Sequence[Buffer]) -> list[Step]:
        """Copies as if all at once: what would be overwritten before it is read is saved first."""
        steps: list[Step] = []
        pending = [(s, t) for s, t in zip(sources, targets, strict=True) if s is not t]
        written = {id(b) for _, t in pending for b in (t, t.alias)}
        saved: dict[int, Buffer] = {}
        for source, target in pending:
            if source is target.alias:
                continue
            if id(source) in written and id(source) not in saved:
                copy = cast(Buffer, self.new(source.shape))
                steps.append(Copy(source, copy))
                saved[id(source)] = copy
        steps += [Copy(s if s is t.alias else saved.get(id(s), s), t) for s, t in pending]
        return steps

    def _conditional(
        self, op: ConditionalOp, operands: list[Tree], steps: list[Step]
    ) -> Walk[Tree]:
        result = self.new(op.shape)
        selector, *arguments = operands
        chosen_by = cast(Buffer, selector)
        branch = Branch(chosen_by, chosen_by.shape.element_type.kind is Kind.PRED)
        shapes = [shape_of(v.type) for v in op.inputs[1:]]
        for name, argument, have in zip(op.called_computations, arguments, shapes, strict=True):
            inner: list[Step] = []
            callee = self.computations[name]
            given = self._in_layout(argument, have, callee.parameters[0].shape, inner)
            tree: Tree = yield self._computation(callee, [given], inner)
            tree = self._in_layout(tree, callee.root.shape, op.shape, inner)
            for source, target in zip(leaves(tree), leaves(result), strict=True):
                inner.append(Copy(source, target))
            self._move(tree, result, inner)
            branch.branches.append(inner)
        steps.append(branch)
        return result


def _retyped(tree: Tree, shape: Shape) -> Tree:
    """The same buffer; kernels say for themselves what they see in it."""
    del shape
    return tree
