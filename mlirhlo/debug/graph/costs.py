"""What instructions cost, for pages and listings: library calls are known or said to be unknown, never 0.

Sources: XLA's cost analysis (`mlirhlo.analysis.cost`), with the products and convolutions of cuBLAS, cuDNN and
oneDNN counted as the `dot` and the `convolution` that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.cost import CostAnalysis, Options, analyse, analyse_each
from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS, Counts
from mlirhlo.analysis.cost.rules import convolution_flops
from mlirhlo.debug.graph.calls import config_of
from mlirhlo.debug.graph.model import Graph, byte_size
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves

_FMA = 2


class Cost(NamedTuple):
    """Of one instruction, with what it calls."""

    operations: float = 0
    """Of those that are known."""
    accessed: float = 0
    """Bytes."""
    unknown: int = 0
    """Custom calls in it, itself included, whose operations are not known."""


def analyse_with_libraries(
    module: ModuleOp, *, trip_counts: bool = False
) -> tuple[CostAnalysis, set[Instruction]]:
    """Costs of a module, and the custom calls that count nothing because they are not known.

    Raises `HloError` or `ValueError` for a module that is not whole.
    """
    unknown: set[Instruction] = set()
    options = Options(custom_call=_counts_of_libraries(unknown), trip_counts=trip_counts)
    return analyse(module, options), unknown


def _counts_of_libraries(unknown: set[Instruction]) -> Callable[[Instruction, Counts], bool]:
    """Counts a custom call; those that are not known count nothing, and join `unknown`."""

    def count(op: Instruction, counts: Counts) -> bool:
        operations = library_operations(cast(CustomCallOp, op))
        result = _result(op) if operations else op.shape  # without the workspace of a product
        counts.set(BYTES, sum(byte_size(shape) for shape in (result, *op.input_shapes)))
        counts.set(FLOPS, operations or 0)
        if operations is None:
            unknown.add(op)
        return True

    return count


def costs_of(graph: Graph) -> dict[int, Cost]:
    """Costs by node; empty for a module that is not whole, which is still worth looking at."""
    unknown: set[Instruction] = set()
    try:
        options = Options(custom_call=_counts_of_libraries(unknown))
        counted = analyse_each(graph.module.op, options)
    except (HloError, ValueError):
        return {}
    inside = [0] * len(graph.computations)
    done = [False] * len(graph.computations)
    found: dict[int, Cost] = {}
    # Callees come before callers in valid modules; in others their unknown calls are not counted.
    for computation in graph.computations:
        for index in computation.nodes:
            node = graph.nodes[index]
            count = int(node.op in unknown) + sum(inside[c] for c in node.calls if done[c])
            inside[computation.index] += count
            counts = counted.get(node.op)
            if counts is not None:
                operations = counts.get(FLOPS) + counts.get(TRANSCENDENTALS)
                found[index] = Cost(max(operations, 0), max(counts.get(BYTES), 0), count)
        done[computation.index] = True
    return found


def library_operations(op: CustomCallOp) -> int | None:
    """Operations of a call of a library; None where they are not known."""
    target = str(op.custom_call_target)
    counter = next((c for prefix, c in _COUNTERS.items() if target.startswith(prefix)), None)
    if counter is None:
        return 0 if target in _NOTHING else None
    try:
        return counter(op)
    except (LookupError, ValueError, TypeError, AssertionError):
        return None  # a configuration that does not fit the operands


def _gemm(op: CustomCallOp) -> int:
    """Of `__cublas$…`: twice the elements of the result for every contracted one."""
    numbers = config_of(op, "gemm_backend_config")["dot_dimension_numbers"]
    lhs = cast(ArrayShape, op.input_shapes[0])
    contracting = [int(d) for d in numbers.get("lhs_contracting_dimensions", ())]
    return _FMA * _result(op).element_count * prod(lhs.dimensions[d] for d in contracting)


def _onednn_matmul(op: CustomCallOp) -> int:
    """Of `__onednn$matmul`: the last dimension of the left side is contracted, unless transposed."""
    config = config_of(op, "onednn_matmul_config")
    lhs = cast(ArrayShape, op.input_shapes[0])
    width = lhs.dimensions[-2 if config.get("transpose_a") else -1]
    return _FMA * _result(op).element_count * width


def _convolution(op: CustomCallOp) -> int:
    """Of `__cudnn$conv…`: gradients count as the convolution whose gradient they are."""
    first, second = (cast(ArrayShape, shape) for shape in op.input_shapes[:2])
    result = _result(op)
    target = str(op.custom_call_target)
    if "BackwardInput" in target:
        first, result = result, first
    elif "BackwardFilter" in target:
        second, result = result, second
    return convolution_flops(first, second, result, op)


def _result(op: Instruction) -> ArrayShape:
    first = next(leaf for _, leaf in leaves(op.shape))
    assert isinstance(first, ArrayShape)
    return first


_COUNTERS: Mapping[str, Callable[[CustomCallOp], int]] = {
    "__cublas$gemm": _gemm,
    "__cublas$lt$matmul": _gemm,
    "__cudnn$conv": _convolution,
    "__onednn$matmul": _onednn_matmul,
}
"""By the start of the target."""

_NOTHING = frozenset(
    ("AllocateBuffer", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "X64Combine",
     "X64SplitHigh", "X64SplitLow", "annotate_device_placement", "MoveToDevice", "MoveToHost")
)  # fmt: skip
"""Targets that compute nothing."""
