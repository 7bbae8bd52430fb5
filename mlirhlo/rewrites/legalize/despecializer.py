"""`despecializer`, and what brings forms that one compiler chose back to plain ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import integers
from mlirhlo.dialects.hlo.attributes.dimensions import WindowDimension
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp, CopyOp, CustomCallOp, ReduceOp, ReduceWindowOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.rewrites.algsimp.common import Builder, array, is_array, sized
from mlirhlo.rewrites.control_flow.defuser import DefuserPass
from mlirhlo.rewrites.memory.schedules import ControlDepRemoverPass, HloDeschedulerPass
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.precision.float_normalization import Bf16MixedPrecisionRemovalPass
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule

_HINTS = ("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked")


@rule(CustomCallOp)
def hint_about_indices(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(i), custom_call_target="AssumeGatherIndicesInBound" => copy(i)"""
    if op.custom_call_target in _HINTS and len(op.inputs) == 1 and is_array(op):
        b = Builder(op, rewriter)
        b.like(CopyOp, op.inputs[0])
        b.done()


@rule(ReduceWindowOp)
def window_of_everything(op: ReduceWindowOp, rewriter: Rewriter) -> None:
    """reduce-window(x), all of one dimension for each of its elements => broadcast(reduce(x))"""
    if len(op.inputs) != 2 or not is_array(op) or array(op).is_dynamic:
        return
    x, init = op.inputs
    sizes, parts = array(x).dimensions, op.window.dimensions
    wide = [d for d, part in enumerate(parts) if part != WindowDimension()]
    if array(op).dimensions != sizes or len(wide) != 1:
        return
    (dim,) = wide
    n = sizes[dim]
    if parts[dim] != WindowDimension(2 * n - 1, 1, n - 1, n - 1):
        return
    others = tuple(d for d in range(len(sizes)) if d != dim)
    b = Builder(op, rewriter)
    found = b(
        ReduceOp,
        x,
        init,
        shape=sized(array(x), [sizes[d] for d in others]),
        dimensions=integers((dim,)),
        to_apply=op.properties["to_apply"],
    )
    b.broadcast(found, others, op.shape)
    b.done()


@dataclass(frozen=True)
class AssumeGatherIndicesInBoundRewriteToCopyPass(RulePass):
    """Copies indices where a custom call tells the compiler something about them.

    Before and after:

        %j = s32[4,1] custom-call(%i), custom_call_target="AssumeGatherIndicesInBound"   =>   %j = s32[4,1] copy(%i)

    Also `GatherScatterIndicesBitpacked`. Source: XLA's pass of this name.
    """

    name = "AssumeGatherIndicesInBoundRewriteToCopy"
    rules: ClassVar[tuple[Rule, ...]] = (hint_about_indices,)


@dataclass(frozen=True)
class ReduceWindowToReduceAndBroadcastPass(RulePass):
    """Reduces a dimension once where a window reduces all of it for each of its elements.

    Before and after:

        %w = f32[4,3] reduce-window(%x, %init), window={size=1x5 pad=0_0x2_2}, to_apply=%add
          =>   %r = f32[4] reduce(%x, %init), dimensions={1}, …   %w = f32[4,3] broadcast(%r), dimensions={0}

    Source: XLA's pass of this name.
    """

    name = "ReduceWindowToReduceAndBroadcast"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (window_of_everything,)


@dataclass(frozen=True)
class SubByteSizeSetterPass(HloPass):
    """Lets layouts say how many bits an element of less than a byte takes.

    Before and after:

        %x = s4[8]{0} parameter(0)   =>   %x = s4[8]{0:E(4)} parameter(0)

    Types of less than 8 bits but `pred` are packed; the size of others is taken out of their layouts. The layout of
    the entry's parameters and result says the same. Source: XLA's pass of this name.
    """

    name = "sub-byte-size-setter"

    remove: bool = False
    """Takes the sizes out of all layouts instead."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Changes the types; whether any was another."""
        del trace
        changed = False
        for op in module.instructions:
            type_ = _sized_type(op.output.type, self.remove)
            if type_ != op.output.type:
                op.output._type = type_  # pyright: ignore[reportPrivateUsage]  the builder's way
                changed = True
            if isinstance(op, ConstantOp) and op.literal is not None:
                shape = _sized(op.literal.shape, self.remove)
                if shape != op.literal.shape and isinstance(shape, ArrayShape):
                    op.properties["literal"] = LiteralAttr(_reshaped(op.literal, shape))
                    changed = True
        layout = module.program_layout
        parameters = tuple(_sized(shape, self.remove) for shape in layout.parameters)
        result = _sized(layout.result, self.remove)
        if module.get("entry_computation_layout") is not None and (
            (parameters, result) != (layout.parameters, layout.result)
        ):
            module.set_program_layout(parameters, result)
            changed = True
        return changed


def _reshaped(literal: Literal, shape: ArrayShape) -> Literal:
    """The same elements in another layout."""
    return Literal(shape, None) if literal.is_elided else Literal.from_array(shape, literal.array)


@lru_cache(maxsize=1 << 12)
def _sized_type(type_: Attribute, remove: bool) -> Attribute:
    return type_of(_sized(shape_of(type_), remove))


def _sized(shape: Shape, remove: bool) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(_sized(part, remove) for part in shape.elements))
    if not isinstance(shape, ArrayShape) or shape.layout is None:
        return shape
    bits = shape.element_type.bits
    packed = bits < 8 and shape.element_type.name != "pred" and not remove
    return shape.with_layout(replace(shape.layout, element_size_bits=bits if packed else 0))


@dataclass(frozen=True)
class DespecializerPass(HloPass):
    """Takes back what a compiler chose, so that a program can be compiled or run elsewhere.

    Before and after:

        HloModule m, is_scheduled=true   …   ROOT %r = f32[4] fusion(%x), kind=kLoop, calls=%f
          =>   HloModule m   …   ROOT %r = f32[4] negate(%x)

    Runs `hlo-descheduler`, `control-dep-remover`, `defuser`, `bf16-mixed-precision-removal` and
    `sub-byte-size-setter{remove=true}`. Source: XLA's pass of this name.
    """

    name = "despecializer"
    exact: ClassVar[bool] = False

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Runs the passes; whether any changed the module."""
        changed = False
        for pass_ in (
            HloDeschedulerPass(),
            ControlDepRemoverPass(),
            DefuserPass(),
            Bf16MixedPrecisionRemovalPass(),
            SubByteSizeSetterPass(remove=True),
        ):
            changed |= pass_.run(module.afresh(), trace)
        return changed
