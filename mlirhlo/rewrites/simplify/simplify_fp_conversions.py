"""`simplify-fp-conversions`: pairs of conversions between floats go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.ops import ConvertOp
from mlirhlo.rewrites.algsimp.common import Builder, element, forward, same_array
from mlirhlo.rewrites.rules import Rewriter, Rule, RulePass, rule


@rule(ConvertOp)
def convert_of_widening(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(convert(x)) => convert(x), or x where it has the type already; the first one loses nothing"""
    _without_inner(op, rewriter, loses=False)


@rule(ConvertOp, contract="rounding", needs=("allow_excess_precision",))
def convert_of_narrowing(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(convert(x)) => convert(x), or x where it has the type already; the first one rounds"""
    _without_inner(op, rewriter, loses=True)


def _without_inner(op: ConvertOp, rewriter: Rewriter, *, loses: bool) -> None:
    inner = op.operand.owner
    if not isinstance(inner, ConvertOp) or inner.control_predecessors:
        return
    source = inner.operand
    types = [element(v) for v in (source, op.operand, op.output)]
    if not all(type_.is_float for type_ in types) or loses is _holds(types[1], types[0]):
        return
    if same_array(source, op.output):
        forward(op, rewriter, source)
        return
    b = Builder(op, rewriter)
    b.like(ConvertOp, source)
    b.done()


def _holds(wide: PrimitiveType, narrow: PrimitiveType) -> bool:
    """Whether every number of `narrow` is one of `wide`, infinities and NaN too."""
    import ml_dtypes

    if wide is narrow:
        return True
    if wide.bits <= narrow.bits or narrow.bits < 16:
        return False
    finfo: Any = cast(Any, ml_dtypes).finfo
    a, b = finfo(wide.dtype), finfo(narrow.dtype)
    return bool(a.nmant >= b.nmant and a.maxexp >= b.maxexp and a.minexp <= b.minexp)


@dataclass(frozen=True)
class SimplifyFpConversionsPass(RulePass):
    """Removes conversions of floats to another type and on to a third, or back.

    Before and after:

        %w = f32[4] convert(%x)   %n = bf16[4] convert(%w)      =>   %x, of bf16[4]

    With `allow_excess_precision` roundings in between are skipped too: f32 to bf16 and back is then f32
    itself, which has more precision than the program asked for (XLA's default).
    Source: reference of the passes, "simplify-fp-conversions".
    """

    name = "simplify-fp-conversions"
    rules: ClassVar[tuple[Rule, ...]] = (convert_of_widening, convert_of_narrowing)

    allow_excess_precision: bool = False
    """Skips roundings too; results change by them."""
