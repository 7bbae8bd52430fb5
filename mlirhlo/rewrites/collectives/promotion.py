"""`all-reduce-promotion`: sums over devices of narrow types in types of 32 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AllReduceOp, ConvertOp, ReduceScatterOp
from mlirhlo.rewrites.algsimp.common import Builder, array, element, is_array, own_properties, typed
from mlirhlo.rewrites.collectives.common import Surroundings
from mlirhlo.rewrites.computations import binary_computation
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, RuleDriver, RulePass, rule
from mlirhlo.rewrites.spmd.reducers import opcode_of


def _wide(type_: PrimitiveType) -> PrimitiveType | None:
    """The type of 32 bits that has all numbers of a narrower one."""
    if type_.bits >= 32 or type_.is_complex:
        return None
    if type_.is_float:
        return PRIMITIVE_TYPES["f32"]
    if type_.is_integer:
        return PRIMITIVE_TYPES["s32" if type_.is_signed else "u32"]
    return None


@rule(AllReduceOp, ReduceScatterOp, contract="rounding")
def reduction_of_narrow(op: AllReduceOp | ReduceScatterOp, rewriter: Rewriter) -> None:
    """all-reduce(x) => convert(all-reduce(convert(x))), in the type of 32 bits; reduce-scatter too"""
    if len(op.inputs) != 1 or not is_array(op) or array(op).is_dynamic:
        return
    narrow = element(op)
    wide = _wide(narrow)
    options = rewriter.options
    if isinstance(options, AllReducePromotionPass) and narrow.name not in options.types:
        return
    computation = rewriter.computation(op.to_apply)
    opcode = None if computation is None else opcode_of(computation)
    if wide is None or opcode is None:
        return
    b = Builder(op, rewriter)
    x = b(ConvertOp, op.inputs[0], shape=typed(array(op.inputs[0]), wide))
    kept = own_properties(op) | {"to_apply": binary_computation(op, opcode, wide)}
    made = b(type(op), x, shape=typed(array(op), wide), **kept)
    b.like(ConvertOp, made)
    b.done()


@dataclass(frozen=True)
class AllReducePromotionPass(RulePass):
    """Reduces arrays of narrow types over devices in the type of 32 bits.

    Before and after:

        %r = u16[8] all-reduce(%x), to_apply=%add_u16, …
          =>   %r = u16[8] convert(u32[8] all-reduce(u32[8] convert(%x)), to_apply=%add_u32, …)

    Signed integers become `s32`, others `u32`, floats `f32`; floats are then rounded once. The reduction has to be
    one binary instruction. Source: XLA's pass of this name; XLA:GPU promotes `s16` and `u16`, XLA:CPU `bf16`.
    """

    name = "all-reduce-promotion"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (reduction_of_narrow,)

    types: tuple[str, ...] = ("s16", "u16")
    """Element types that are promoted."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Promotes outside of async computations, which hold one instruction only; whether there was any."""
        if not module.candidates(AllReduceOp, ReduceScatterOp):
            return False
        driver = RuleDriver(
            module.op, self.selected(), trace=trace, name=self.name, options=self, once=True
        )
        found = Surroundings.of(module).collectives(AllReduceOp, ReduceScatterOp)
        return driver.apply_to(found, self.fuel) > 0
