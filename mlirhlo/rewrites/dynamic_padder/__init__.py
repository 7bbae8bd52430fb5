"""`dynamic_padder`: arrays of dynamic sizes as static ones with their sizes beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    CallOp,
    ComputationOp,
    ConditionalOp,
    Instruction,
    ParameterOp,
    WhileOp,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.table import Calls, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.quick import read_instead
from mlirhlo.rewrites.algsimp.common import own_properties
from mlirhlo.rewrites.dynamic_padder import control, folding, movement, places
from mlirhlo.rewrites.dynamic_padder.bounded import (
    HANDLERS,
    Bounded,
    FunctionsLike,
    Handler,
    Scope,
    Tree,
    is_dynamic,
    taken_apart,
)
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit

FAMILIES = (control, folding, movement, places)
"""The modules whose functions `HANDLERS` holds, by opcode."""
_PLACES_STAY = {"map"} | opcodes(
    lambda row: row.communicates and not (row.splits_groups or row.is_asynchronous)
)
"""Opcodes that, beside element-wise ones, give each place what one place of the operand gives."""
_ABOUT_SIZES = tuple(classes_of(lambda row: row.about_sizes))


@dataclass(frozen=True)
class DynamicPadderPass(HloPass):
    """Computes with the bounds of dynamic dimensions, and carries the sizes in use as scalars.

    Before and after:

        %d = f32[<=8,3] set-dimension-size(%x, %n), dimensions={0}
        %r = f32[3] reduce(%d, %zero), dimensions={0}, to_apply=%add
          =>   %in_use = pred[8,3] compare(iota(), broadcast(%n)), direction=LT
               %r = f32[3] reduce(select(%in_use, %x, broadcast(0)), %zero), dimensions={0}, to_apply=%add

    Element-wise instructions compute what is out of use too (of arrays that are not equally large, a single
    element is repeated, else the smallest size counts); what takes elements together has it masked: by
    the neutral element of a reduction, or, where none is known, by a flag beside each element, so that any
    function and any initial value give what they gave. Windows see initial values, products zeros, sorts put
    it last, places that are read are clamped by sizes in use; reshapes that cut dynamic dimensions, pads,
    concatenations and reverses put elements where the sizes say. Loops, calls and conditionals carry sizes in
    their tuples. The entry keeps its signature: `PadToStatic` and `SliceToDynamic` convert at the edges, and
    around instructions that are not in this list, which stay dynamic (fusions, custom calls, transforms along a
    dynamic dimension, …).
    Pitfall: sizes are not checked when the program runs. Source: XLA's DynamicPadder and
    DynamicDimensionInference; the interpreter's meaning of dynamic arrays.
    """

    name = "dynamic_padder"

    checks: bool = False
    """Leaves `dynamic-reshape` as it is: sizes that do not fit its operand are an error where it runs."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Rewrites every computation that runs as a whole; whether anything changed."""
        if not module.candidates(*_ABOUT_SIZES) and not any(
            map(is_dynamic, module.known(HloModule.result_shapes))
        ):
            return False
        functions = _Functions(module)
        changed = False
        for computation in functions.running:
            changed |= _Rewrite(computation, functions, checks=self.checks).run()
        return changed


# ---------------------------------------------------------------- signatures


class _Functions(FunctionsLike):
    """Signatures of computations: an array is dynamic in all callers and callees if it is in one."""

    def __init__(self, module: HloModule) -> None:
        self.bodies = module.by_name()
        kept = self._kept(module)
        self.running = [c for c in module.computations if c.computation_name not in kept]
        self._parameters: dict[str, list[Shape]] = {}
        self._results: dict[str, Shape] = {}
        for computation in self.running:
            ordered = sorted(computation.parameters, key=lambda p: p.parameter_number)
            self._parameters[computation.computation_name] = [p.shape for p in ordered]
            self._results[computation.computation_name] = computation.root.shape
        calls = [
            op
            for computation in self.running
            for op in computation.instructions
            if isinstance(op, CallOp | ConditionalOp | WhileOp)
            and not kept.intersection(op.called_computations)
        ]
        while any(self._agree(op) for op in calls):
            pass

    def parameters(self, name: str) -> Sequence[Shape] | None:
        """See `FunctionsLike`."""
        return self._parameters.get(name)

    def result(self, name: str) -> Shape:
        """See `FunctionsLike`."""
        return self._results[name]

    def _kept(self, module: HloModule) -> set[str]:
        """Computations that anything but calls, conditionals and loops calls, and what these call."""
        pending = [
            name
            for op in module.instructions
            if op.opcode.calls is not Calls.CONTROL
            for name in op.called_computations
        ]
        kept: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in kept:
                kept.add(name)
                pending += [
                    n for op in self.bodies[name].instructions for n in op.called_computations
                ]
        return kept

    def _agree(self, op: CallOp | ConditionalOp | WhileOp) -> bool:
        """Marks dynamic on both sides of a call what is on one; whether that was news."""
        names = op.called_computations
        shapes = [shape_of(value.type) for value in op.inputs]
        before = [(self._parameters[n], self._results[n]) for n in names]
        if isinstance(op, WhileOp):
            state = _either(op.shape, shapes[0], self._results[op.body])
            for name in names:
                state = _either(state, self._parameters[name][0])
            for name in names:
                self._parameters[name] = [state]
            self._results[op.body] = state
        else:
            given = shapes[1:] if isinstance(op, ConditionalOp) else shapes
            result = _either(op.shape, *(self._results[n] for n in names))
            for k, name in enumerate(names):
                own = given[k : k + 1] if isinstance(op, ConditionalOp) else given
                self._parameters[name] = [
                    _either(a, b) for a, b in zip(self._parameters[name], own, strict=True)
                ]
                self._results[name] = result
        return before != [(self._parameters[n], self._results[n]) for n in names]


def _either(first: Shape, *others: Shape) -> Shape:
    """The first shape, dynamic where any is."""
    for other in others:
        if isinstance(first, TupleShape) and isinstance(other, TupleShape):
            pairs = zip(first.elements, other.elements, strict=True)
            first = TupleShape(tuple(_either(a, b) for a, b in pairs))
        elif isinstance(first, ArrayShape) and isinstance(other, ArrayShape) and other.is_dynamic:
            marks = first.dynamic or (False,) * first.rank
            first = replace(first, dynamic=tuple(map(max, marks, other.dynamic)))
    return first


# ---------------------------------------------------------------- one computation


class _Rewrite(Scope):
    """The walk over one computation, operands before users."""

    def __init__(self, computation: ComputationOp, functions: _Functions, *, checks: bool) -> None:
        super().__init__(computation, functions)
        self.stays = frozenset({"dynamic-reshape"}) if checks else frozenset[str]()
        self.is_entry = computation.is_entry is not None
        self.replaced: list[Instruction] = []

    def run(self) -> bool:
        """Whether anything changed."""
        for op in tuple(self.computation.instructions):
            self.here = op
            if isinstance(op, ParameterOp):
                self._parameter(op)
            elif (
                isinstance(op, _ABOUT_SIZES)
                or is_dynamic(op.shape)
                or any(self._is_known(value) for value in op.inputs)
                or any(self._has_signature(name) for name in op.called_computations)
            ):
                self._instruction(op)
        self._root()
        for op in reversed(self.replaced):
            self._erase(op)
        if self.made:
            self.computation.properties.pop("storage_order", None)
        return self.made > 0

    def _is_known(self, value: SSAValue) -> bool:
        return value in self.trees or is_dynamic(shape_of(value.type))

    def _has_signature(self, name: str) -> bool:
        """Whether a called computation takes or gives dynamic arrays."""
        parameters = self.functions.parameters(name)
        if parameters is None:
            return False
        return any(map(is_dynamic, (*parameters, self.functions.result(name))))

    def _parameter(self, op: ParameterOp) -> None:
        parameters = self.functions.parameters(self.computation.computation_name)
        assert parameters is not None
        shape = parameters[op.parameter_number]
        if self.is_entry or not is_dynamic(shape):
            return
        made = make(
            "parameter", [], taken_apart(shape), own_properties(op), name=op.instruction_name
        )
        self.emit(made)
        self.trees[op.output] = self.split(made.output, shape)
        self.replaced.append(op)

    def _instruction(self, op: Instruction) -> None:
        operands = [self.tree(value) for value in op.inputs]
        handler = None if op.opcode.name in self.stays else _handler(op)
        tree = None if handler is None else handler(self, op, operands)
        if tree is None:
            self._leave(op, operands)
            return
        if isinstance(op.shape, ArrayShape):
            tree = _declared(tree, op.shape)
        if isinstance(tree, Bounded) and tree.packed is op.output:
            self.trees[op.output] = tree  # stays for those who want it in one
            return
        if isinstance(tree, Bounded) and tree.is_whole and not is_dynamic(op.shape):
            tree = tree.data.op.output
        self.made += 1
        self.replaced.append(op)
        if isinstance(tree, SSAValue):
            read_instead(op.output, tree)
        else:
            self.trees[op.output] = tree

    def _leave(self, op: Instruction, operands: Sequence[Tree]) -> None:
        """Lets an instruction be dynamic, on operands that are put together for it."""
        shapes = [shape_of(value.type) for value in op.inputs]
        given = [self.packed(tree, shape) for tree, shape in zip(operands, shapes, strict=True)]
        if given != list(op.inputs):
            op.operands = [*given, *op.control_predecessors]

    def _root(self) -> None:
        """The result: dynamic arrays for the caller of the program, else static ones with sizes."""
        terminator = self.computation.terminator
        root, self.here = terminator.root, self.computation.root
        tree = self.tree(root)
        self.before = terminator
        if self.is_entry:
            found = self.packed(tree, shape_of(root.type))
        else:
            found = self.joined(tree, self.functions.result(self.computation.computation_name))
        if found is not root:
            owner = found.owner
            assert isinstance(owner, Instruction)
            inherit(owner, self.here)
            terminator.operands = [found]

    def _erase(self, op: Instruction) -> None:
        """Takes an instruction away; those that wait for it wait for what stands for it."""
        tree = self.trees.get(op.output)
        while isinstance(tree, tuple):
            tree = tree[0]
        if isinstance(tree, Bounded):
            read_instead(op.output, tree.data.op.output)
        self.computation.block.erase_op(op)


def _declared(tree: Tree, shape: ArrayShape) -> Tree:
    """Without the sizes of dimensions that are not declared dynamic: of these, all is in use."""
    if not isinstance(tree, Bounded):
        return tree
    marks = shape.dynamic or (False,) * shape.rank
    sizes = tuple(s if mark else None for s, mark in zip(tree.sizes, marks, strict=True))
    return tree if sizes == tree.sizes else Bounded(tree.data, sizes)


def _handler(op: Instruction) -> Handler | None:
    row = op.opcode
    if row.elementwise or row.name in _PLACES_STAY:
        return movement.elementwise
    if row.name == "bitcast-convert" and op.shape != op.input_shapes[0]:
        first, second = op.shape, op.input_shapes[0]
        assert isinstance(first, ArrayShape)
        assert isinstance(second, ArrayShape)
        return movement.elementwise if first.rank == second.rank else None
    return HANDLERS.get(row.name)


__all__ = ["DynamicPadderPass"]
