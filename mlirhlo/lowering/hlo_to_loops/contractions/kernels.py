"""Which instructions and fusions these kernels are built for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ComputationOp, ConvolutionOp, DotOp, TransposeOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.table import Movement, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.canonical import canonical
from mlirhlo.lowering.hlo_to_loops.contractions.blocked import blocked_kernel
from mlirhlo.lowering.hlo_to_loops.contractions.convolution import of_convolution
from mlirhlo.lowering.hlo_to_loops.contractions.dot import of_dot
from mlirhlo.lowering.hlo_to_loops.contractions.problem import Contraction
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.kernel_frame import values_between
from mlirhlo.lowering.hlo_to_loops.kernels import (
    Computations,
    builds,
    builds_fusions,
    computed,
)
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array

BEFORE = opcodes(
    lambda row: (
        row.elementwise or row.is_index_map or row.movement in (Movement.JOIN, Movement.SLICE)
    )
)
"""Opcodes on operands that packing computes."""


_CONTRACTIONS = frozenset({DotOp, ConvolutionOp})


@builds("dot", "convolution")
def _kernel(name: str, op: Instruction) -> FuncOp:
    outputs = [Output(op.output, array(op.output))]
    found = contraction_kernel(name, outputs, list(op.inputs))
    return found if found is not None else computed(name, outputs, list(op.inputs))


@builds_fusions
def _fusion(name: str, computation: ComputationOp, computations: Computations) -> FuncOp | None:
    del computations
    root = computation.root
    parts: Sequence[SSAValue] = root.inputs if isinstance(root, TupleOp) else (root.output,)
    operands = [p.output for p in computation.parameters]
    if not all(isinstance(shape_of(v.type), ArrayShape) for v in (*parts, *operands)):
        return None
    return contraction_kernel(name, [Output(p, array(p)) for p in parts], operands)


def contraction_kernel(
    name: str, outputs: Sequence[Output], operands: Sequence[SSAValue]
) -> FuncOp | None:
    """The function `name` of operands with one dot or convolution on the way to the outputs.

    None for everything else: see the conditions in the package's docstring.
    """
    values = [o.value for o in outputs]
    made = [v.owner for v in values_between(values, operands)]
    if not any(type(op) in _CONTRACTIONS for op in made):
        return None
    kernel = _kernel_of(name, outputs, operands)
    if kernel is None:
        # Reshapes around it may add and take dimensions of one element alone.
        plain = canonical([(v, None) for v in values], operands)
        if plain is not None:
            ends = [Output(v, array(v)) for v in plain.outputs]
            kernel = _kernel_of(name, ends, plain.operands)
    return kernel


def _kernel_of(name: str, outputs: Sequence[Output], operands: Sequence[SSAValue]) -> FuncOp | None:
    found = the_contraction([o.value for o in outputs], operands)
    if found is None:
        return None
    op, order = found
    shape = outputs[0].shape
    if any(physical_order(o.shape) != physical_order(shape) for o in outputs):
        return None
    stored = ArrayShape(array(op.output).element_type, shape.dimensions, layout=shape.layout)
    if isinstance(op, DotOp):
        contractions: Sequence[Contraction] = [of_dot(op, operands)]
    else:
        contractions = of_convolution(op, operands)
    if not contractions:
        return None
    turned = [_stored(c, order, stored) for c in contractions]
    return blocked_kernel(name, turned, operands, outputs)


def _stored(c: Contraction, order: Sequence[int], shape: ArrayShape) -> Contraction:
    """With a result whose dimension i, of what is stored, is dimension `order[i]`."""
    indices = tuple(c.result.indices[d] for d in order)
    return replace(c, result=replace(c.result, shape=shape, indices=indices), order=tuple(order))


def the_contraction(
    outputs: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> tuple[DotOp | ConvolutionOp, Sequence[int]] | None:
    """The one dot or convolution that outputs come from, element by element, and which of its
    dimension each of theirs is; None else."""
    found: DotOp | ConvolutionOp | None = None
    inputs = set(operands)
    seen: set[SSAValue] = set()
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen or value in inputs:
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, DotOp | ConvolutionOp):
            if found is not None or not op.is_dense:
                return None
            found = op
        elif not isinstance(op, Instruction) or (op.opcode.name not in BEFORE):
            return None
        assert isinstance(op, Instruction)
        stack += op.inputs
    if found is None:
        return None
    orders = _Orders(found, inputs)
    if any(orders.of(v) is not None for v in found.inputs):
        return None
    ends = {orders.of(v) for v in outputs}
    if len(ends) != 1 or orders.is_lost:
        return None
    (order,) = ends
    return None if order is None else (found, order)


class _Orders:
    """For values after a contraction, which dimension of it each of theirs is."""

    def __init__(self, found: Instruction, inputs: set[SSAValue]) -> None:
        self.known: dict[SSAValue, tuple[int, ...] | None] = dict.fromkeys(inputs)
        self.known[found.output] = tuple(range(array(found.output).rank))
        self.first = found
        self.is_lost = False
        """Whether something after it is not element by element."""

    def of(self, value: SSAValue) -> tuple[int, ...] | None:
        """None for a value that does not come from it."""
        if value in self.known:
            return self.known[value]
        stack = [value]
        while stack:
            here = stack[-1]
            op = here.owner
            assert isinstance(op, Instruction)
            missing = [v for v in op.inputs if v not in self.known]
            if missing:
                stack += missing
                continue
            stack.pop()
            if here not in self.known:
                self.known[here] = self._next(op)
        return self.known[value]

    def _next(self, op: Instruction) -> tuple[int, ...] | None:
        orders = {order for v in op.inputs if (order := self.known[v]) is not None}
        if not orders:
            return None
        order = orders.pop()
        if isinstance(op, TransposeOp):
            return tuple(order[d] for d in op.dimensions)
        same = op.opcode.elementwise or op.opcode.name in ("copy", "convert")
        if orders or not same or array(op.output).rank != len(order):
            self.is_lost = True
        return order
