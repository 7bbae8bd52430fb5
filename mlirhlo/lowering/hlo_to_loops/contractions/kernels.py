"""Which instructions and fusions these kernels are built for."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import ComputationOp, ConvolutionOp, DotOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.contractions.blocked import blocked_kernel
from mlirhlo.lowering.hlo_to_loops.contractions.convolution import of_convolution
from mlirhlo.lowering.hlo_to_loops.contractions.dot import of_dot
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.lowering.hlo_to_loops.kernels import (
    Computations,
    builds,
    builds_fusions,
    computed,
)
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array

BEFORE = frozenset(
    {
        *("bitcast", "broadcast", "concatenate", "constant", "convert", "copy", "dynamic-slice"),
        *("iota", "pad", "reshape", "reverse", "slice", "transpose"),
    }
)
"""Opcodes on operands that packing computes, beside elementwise ones."""


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
    op = the_contraction([o.value for o in outputs], operands)
    if op is None:
        return None
    own = array(op.output)
    shape = outputs[0].shape
    for output in outputs:
        if output.shape.dimensions != own.dimensions:
            return None
        if physical_order(output.shape) != physical_order(shape):
            return None
    stored = ArrayShape(own.element_type, shape.dimensions, layout=shape.layout)
    if isinstance(op, DotOp):
        contractions = [of_dot(op, operands, stored)]
    else:
        contractions = of_convolution(op, operands, stored)
    return blocked_kernel(name, contractions, operands, outputs) if contractions else None


def the_contraction(
    outputs: Sequence[SSAValue], operands: Sequence[SSAValue]
) -> DotOp | ConvolutionOp | None:
    """The one dot or convolution that outputs come from, element by element; None else."""
    found: DotOp | ConvolutionOp | None = None
    inputs = set(operands)
    after: set[SSAValue] = set()
    seen: set[SSAValue] = set()
    stack = list(outputs)
    while stack:
        value = stack.pop()
        if value in seen or value in inputs:
            continue
        seen.add(value)
        op = value.owner
        if isinstance(op, DotOp | ConvolutionOp):
            if found is not None or _has_more(op):
                return None
            found = op
        elif not isinstance(op, Instruction) or (
            not op.opcode.elementwise and op.opcode.name not in BEFORE
        ):
            return None
        assert isinstance(op, Instruction)
        stack += op.inputs
    if found is None:
        return None
    # From the contraction on, all is element by element on its dimensions.
    for value in seen:
        if not _leads_to(value, found, inputs, after):
            continue
        op = value.owner
        assert isinstance(op, Instruction)
        if op is not found and not (op.opcode.elementwise or op.opcode.name in ("copy", "convert")):
            return None
        if array(value).dimensions != array(found.output).dimensions:
            return None
    if any(v in after for v in found.inputs) or not all(
        v is found.output or _leads_to(v, found, inputs, after) for v in outputs
    ):
        return None
    return found


def _leads_to(
    value: SSAValue, found: Instruction, inputs: set[SSAValue], after: set[SSAValue]
) -> bool:
    """Whether a value is computed from the contraction; remembered in `after`."""
    stack, seen = [value], set[SSAValue]()
    while stack:
        here = stack.pop()
        if here is found.output or here in after:
            after.add(value)
            return True
        if here in seen or here in inputs:
            continue
        seen.add(here)
        op = here.owner
        assert isinstance(op, Instruction)
        if op is not found:
            stack += op.inputs
    return False


def _has_more(op: DotOp | ConvolutionOp) -> bool:
    """Block scales and sparsity, which nothing here has a meaning for."""
    return len(op.inputs) != 2 or op.block_scaling_config is not None
