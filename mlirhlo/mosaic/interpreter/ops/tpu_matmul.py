"""`tpu.matmul`."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.mosaic.attributes import attribute_of, case_of, flag_of, lists_of
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of
from mlirhlo.mosaic.interpreter.problems import unfit
from mlirhlo.mosaic.interpreter.products import Maps, contract
from mlirhlo.mosaic.interpreter.registry import Activation, Run, Scope, means

if TYPE_CHECKING:
    from xdsl.ir import Operation


def maps_of(op: Operation) -> Maps:
    """Loops of both operands and the result: the left operand's dimensions come first."""
    numbers = attribute_of(op, "dimension_numbers")
    left_rank, right_rank = (len(shape_of(op.operands[i].type)) for i in range(2))
    left = list(range(left_rank))
    right = list(range(left_rank, left_rank + right_rank))
    if numbers is None or "dot_dimension_numbers" not in str(numbers):
        if left_rank != 2 or right_rank != 2:
            raise unfit(op, "it has no dimension_numbers")
        contracting: tuple[int, ...] = (0 if flag_of(op, "transpose_lhs") else 1,)
        other: tuple[int, ...] = (1 if flag_of(op, "transpose_rhs") else 0,)
        order: tuple[int, ...] = (0, 1 - contracting[0], 1, 1 - other[0])
        batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    else:
        contracting, other, _, _, order, *batches = lists_of(numbers)
        batch = (batches[0], batches[1])
    for a, b in (*zip(contracting, other, strict=True), *zip(*batch, strict=True)):
        right[b] = left[a]
    pairs = zip(order[0::2], order[1::2], strict=True)
    out = [(right if side else left)[dim] for side, dim in pairs]
    return tuple(left), tuple(right), tuple(out)


@means("tpu.matmul")
def matmul(op: Operation, scope: Scope) -> Run:
    """acc + lhs · rhs, summed in f32 or i32.

    f32 operands are rounded to bf16 first only if the run's options ask for it and the operation does
    not ask for `fp32`.
    """
    maps, dtype = maps_of(op), dtype_in(op.results[0].type)
    precision = case_of(attribute_of(op, "precision"), "bf16")

    def run(frame: Activation, a: Any, b: Any, start: Any) -> Any:
        if frame.core.options.rounds_matmul_operands and precision == "bf16":
            a, b = _rounded(a), _rounded(b)
        return contract(maps, a, b, start, dtype)

    return run


def _rounded(a: Any) -> Any:
    import ml_dtypes

    return a.astype(ml_dtypes.bfloat16) if a.dtype == np.float32 else a
