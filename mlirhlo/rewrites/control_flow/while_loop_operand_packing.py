"""`while-loop-operand-packing`: what every round of a loop multiplies by is laid out for that before it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import DotOp, GetTupleElementOp, ParameterOp, WhileOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.algsimp.common import sized
from mlirhlo.rewrites.control_flow.while_loop_invariant_code_motion import (
    WhileLoopInvariantCodeMotionPass,
)
from mlirhlo.rewrites.control_flow.while_loops import Loop, count_calls, understood
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import inherit


@dataclass(frozen=True)
class WhileLoopOperandPackingPass(HloPass):
    """Lays matrices that a loop multiplies by out in panels of columns, before the loop.

    Before and after, in a body that hands `%w` on:

        %d = f32[32,1024] dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          =>   %r = f32[256,32,32] reshape(%w)   %t = f32[32,256,32] transpose(%r), dimensions={1,0,2}
               %p = f32[32,256,32] copy(%t)
               %e = f32[32,32,32] dot(%x, %p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
               %d = f32[32,1024] reshape(%e)

    and what `%p` takes is moved in front of the loop. A panel is one stretch of memory in the order in
    which a micro-kernel reads it; without it every round reads far apart, or packs anew.

    Right operands of two dimensions and a whole number of panels, of f32 and f64, are laid out so, where the
    left one has more rows than matrix times vector. Needs: nothing to have run; fusions are not looked into.
    """

    name = "while-loop-operand-packing"
    exact = False
    """A library's sums may go in another order for other sizes."""

    columns: int = 32
    """Of a panel."""
    least_rows: int = 5
    """Of the left operand."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Lays out; whether anything was."""
        loops = module.candidates(WhileOp)
        if not loops:
            return False
        computations = module.by_name()
        calls = count_calls(module)
        changed = False
        for op in loops:
            loop = understood(op, computations, calls)
            if loop is None:
                continue
            for dot in tuple(loop.body.instructions):
                if isinstance(dot, DotOp) and self._is_wanted(dot, loop):
                    self._pack(dot)
                    changed = True
        if changed:
            WhileLoopInvariantCodeMotionPass().run(module.afresh(), trace)
        return changed

    def _is_wanted(self, dot: DotOp, loop: Loop) -> bool:
        if len(dot.inputs) != 2 or dot.rhs_batch_dims or len(dot.rhs_contracting_dims) != 1:
            return False
        read = dot.inputs[1].owner
        if not isinstance(read, GetTupleElementOp) or not loop.is_invariant(read.index):
            return False
        if not isinstance(read.operand.owner, ParameterOp):
            return False
        left, right, own = (*dot.input_shapes, dot.shape)
        if not all(isinstance(s, ArrayShape) and _is_in_order(s) for s in (left, right, own)):
            return False
        assert isinstance(left, ArrayShape)
        assert isinstance(right, ArrayShape)
        if right.rank != 2 or right.element_type.name not in ("f32", "f64"):
            return False
        (depth,) = dot.rhs_contracting_dims
        columns = right.dimensions[1 - depth]
        rows = prod(d for n, d in enumerate(left.dimensions) if n not in dot.lhs_contracting_dims)
        whole = columns % self.columns == 0 and columns > self.columns
        return whole and rows >= self.least_rows and left.element_type is right.element_type

    def _pack(self, dot: DotOp) -> None:
        left, weight = dot.inputs
        shape, own = dot.input_shapes[1], dot.shape
        assert isinstance(shape, ArrayShape)
        assert isinstance(own, ArrayShape)
        (depth,) = dot.rhs_contracting_dims
        size, panels = shape.dimensions[depth], shape.dimensions[1 - depth] // self.columns
        if depth == 0:
            split, order = (size, panels, self.columns), (1, 0, 2)
        else:
            split, order = (panels, self.columns, size), (0, 2, 1)
        block = dot.parent
        assert block is not None
        reshaped = make("reshape", [weight], sized(shape, split))
        turned = tuple(split[d] for d in order)
        transposed = make(
            "transpose", [reshaped.output], sized(shape, turned), {"dimensions": integers(order)}
        )
        packed = make("copy", [transposed.output], sized(shape, turned))
        properties = dict(dot.properties) | {"rhs_contracting_dims": integers((1,))}
        sizes = (*own.dimensions[:-1], panels, self.columns)
        product = make("dot", [left, packed.output], sized(own, sizes), properties)
        result = make("reshape", [product.output], own)
        for op in (reshaped, transposed, packed, product, result):
            inherit(op, dot)
            block.insert_op_before(op, dot)
        replace(dot.output, result.output)
        dot.detach()
        dot.erase()


def _is_in_order(shape: ArrayShape) -> bool:
    """Whether dimensions stand in memory as they are written, or nothing says how."""
    layout = shape.layout
    return layout is None or (
        layout.minor_to_major == tuple(range(shape.rank))[::-1] and not layout.tiles
    )
