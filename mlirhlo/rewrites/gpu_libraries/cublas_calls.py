"""Calls of cuBLAS that are still arrays, and the dots that can be one: what the rules about them share."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.ops import BitcastOp, CustomCallOp, DotOp, Instruction, SliceOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import array, element, made_by

TYPES = ("f16", "bf16", "f32", "f64", "c64", "c128")


def is_product(op: DotOp, *, any_type: bool = False) -> bool:
    """Whether it is a product of matrices, or of a matrix and a vector, batched or not."""
    batch = len(op.lhs_batch_dims)
    if len(op.inputs) != 2 or op.control_predecessors or array(op).is_dynamic:
        return False
    ranks = [array(v).rank - batch for v in op.inputs]
    # A matrix times a matrix or a vector, either way round.
    if sorted(ranks) not in ([1, 2], [2, 2]) or len(op.lhs_contracting_dims) != 1:
        return False
    if any(0 in array(v).dimensions for v in (*op.inputs, op.output)):
        return False
    leading = tuple(range(batch))
    if op.lhs_batch_dims != leading or op.rhs_batch_dims != leading:
        return False
    if any_type:
        return True
    types = {element(v).name for v in op.inputs}
    if element(op).name == "s32":
        return types == {"s8"}
    return element(op).name in TYPES and types <= {*TYPES, "s8"} and len(types) == 1


def is_tiny(op: DotOp, threshold: int) -> bool:
    """Whether the free sizes together, times the contracting one, are below a threshold."""
    batch = len(op.lhs_batch_dims)
    depth = array(op.inputs[0]).dimensions[op.lhs_contracting_dims[0]]
    free = sum(prod(array(v).dimensions[batch:]) // depth for v in op.inputs)
    return free * depth < threshold


def config_of_dot(
    op: DotOp, operands: Sequence[SSAValue | Instruction], batch: int
) -> dict[str, Any]:
    """The `gemm_backend_config` of a dot, with the strides of the call's operands."""
    strides = [prod(array(v).dimensions[batch:]) for v in operands]
    precision = [word.upper() for word in op.operand_precision] or ["DEFAULT", "DEFAULT"]
    attributes = str(op.properties.get("frontend_attributes", ""))

    def text(dims: tuple[int, ...]) -> list[str]:
        return [str(d) for d in dims]

    return {
        "alpha_real": 1,
        "beta": 0,
        "dot_dimension_numbers": {
            "lhs_contracting_dimensions": text(op.lhs_contracting_dims),
            "rhs_contracting_dimensions": text(op.rhs_contracting_dims),
            "lhs_batch_dimensions": text(op.lhs_batch_dims),
            "rhs_batch_dimensions": text(op.rhs_batch_dims),
        },
        "alpha_imag": 0,
        "precision_config": {"operand_precision": precision, "algorithm": "ALG_UNSET"},
        "epilogue": "DEFAULT",
        "lhs_stride": str(strides[0]),
        "rhs_stride": str(strides[1]),
        "grad_x": 'grad_x="true"' in attributes,
        "grad_y": 'grad_y="true"' in attributes,
        "damax_output": False,
        "autotune_workspace_size": "0",
        "scale_mode": 0,
    }


def call_of(value: SSAValue, *targets: str) -> CustomCallOp | None:
    """The call, not yet with its workspace, that makes an array."""
    found = made_by(value, CustomCallOp)
    if found is None or found.custom_call_target not in targets or found.control_predecessors:
        return None
    return found if isinstance(found.shape, ArrayShape) else None


def through(value: SSAValue, *targets: str) -> tuple[CustomCallOp, Instruction | None] | None:
    """The call, and the slice of its first elements or the bitcast that stands after it."""
    between = value.owner
    if isinstance(between, SliceOp | BitcastOp) and element(between.inputs[0]) is element(value):
        cut = between.slices if isinstance(between, SliceOp) else None
        starts = () if cut is None else cut.dimensions
        if any(d.start or d.stride != 1 for d in starts):
            return None
        found = call_of(between.inputs[0], *targets)
        return None if found is None else (found, between)
    found = call_of(value, *targets)
    return None if found is None else (found, None)


def uses(value: SSAValue) -> int:
    """How many operands read a value."""
    return len(list(value.uses))
