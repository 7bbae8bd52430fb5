"""`stochastic_convert_decomposer`: rounding to whole numbers by given random bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind
from mlirhlo.dialects.hlo.ops import StochasticConvertOp
from mlirhlo.rewrites.algsimp.common import array
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_in_place
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


@rule(StochasticConvertOp, contract="zeros")
def stochastic_convert_to_integers(op: StochasticConvertOp, rewriter: Rewriter) -> None:
    """stochastic-convert(x, r) => sign(x) * (floor(|x|) + (r < fraction(|x|) * 2^bits))"""
    source, random, target = (array(v) for v in (*op.inputs, op.output))
    type_ = target.element_type
    if type_.kind is not Kind.SIGNED or source.is_dynamic or not source.element_type.is_float:
        return
    bits = random.element_type.bits
    if bits != source.element_type.bits or bits not in (16, 32, 64):
        return

    def build(graph: Graph, x: Value, random: Value) -> Value:
        size = x.abs()
        whole = size.elementwise("floor")
        fraction = size - whole
        if bits == 16:  # a factor of 2^16 does not fit in the type
            fraction = fraction.convert(PRIMITIVE_TYPES["f32"])
        up = random.compare("LT", (fraction * 2.0**bits).convert(random.type))
        integer = whole.convert(type_)
        rounded = up.select(integer + 1, integer)
        signed = x.compare("LT", 0).select(-rounded, rounded)
        least, most = -(2 ** (type_.bits - 1)), 2 ** (type_.bits - 1) - 1
        signed = x.compare("LE", float(least)).select(least, signed)
        signed = x.compare("GE", float(most)).select(most, signed)
        return x.is_nan().select(0, signed)

    expand_in_place(op, rewriter, build)


@dataclass(frozen=True)
class StochasticConvertDecomposerPass(ExpanderPass):
    """Writes the rounding of floats by random bits with comparisons and selects.

    Before and after:

        %c = s8[4] stochastic-convert(f32[4] %x, u32[4] %r)
          =>   %c = s8[4] select(…compare(%r, convert(fraction * 2^32), direction=LT)…)

    Rounded away from zero where the random bits, as a fraction, lie below what is lost; what does not fit is
    the nearest number that does, and NaN is 0. To signed integers; conversions to floats stay, as XLA has none.
    Source: XLA's pass.
    """

    name = "stochastic_convert_decomposer"
    rules: ClassVar[tuple[Rule, ...]] = (stochastic_convert_to_integers,)
