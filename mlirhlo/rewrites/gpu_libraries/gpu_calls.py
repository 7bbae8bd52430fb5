"""Custom calls of GPU libraries: making them with the backend configuration that XLA prints, and reading it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.ops import CustomCallOp, GetTupleElementOp, Instruction
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.interp.custom_calls.gpu import gpu_gemm
from mlirhlo.rewrites.rules import Rewriter

GEMM, LT, F8 = "__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"
GEMM_CONFIG, CONV_CONFIG = "gemm_backend_config", "cudnn_conv_backend_config"
NORM_CONFIG = "cudnn_norm_backend_config"

_LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    GEMM_CONFIG: {"alpha_real": 1, "alpha_imag": 0, "beta": 0, "epilogue": "DEFAULT"},
    CONV_CONFIG: {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 1},
}
"""What the calls mean when fields of their configuration are not there."""
_AROUND = {"operation_queue_id": "0"}
_AFTER: Mapping[str, Any] = {
    "force_earliest_schedule": False,
    "reification_cost": [],
    "device_type": "DEVICE_TYPE_INVALID",
}


def number(value: float) -> float:
    """As JSON prints it: without a fraction that is zero."""
    return int(value) if float(value).is_integer() else value


def config_of(op: CustomCallOp, key: str) -> Mapping[str, Any]:
    """The part `key` of a call's configuration, with the fields that it leaves out."""
    return {**_LEFT_OUT.get(key, {}), **gpu_gemm.config_of(op, key)}


def config_text(key: str, config: Mapping[str, Any]) -> str:
    """The `backend_config` around the part `key`."""
    return json.dumps({**_AROUND, key: dict(config), **_AFTER}, separators=(",", ":"))


def with_config(op: Instruction, key: str, **fields: object) -> dict[str, Attribute]:
    """The properties of a call with some fields of its configuration set."""
    assert isinstance(op, CustomCallOp)
    config = {**gpu_gemm.config_of(op, key), **fields}
    return {**op.properties, "backend_config": string(config_text(key, config))}


def make_call(
    target: str,
    operands: Sequence[SSAValue | Instruction],
    shape: Shape,
    key: str,
    config: Mapping[str, Any],
    properties: Mapping[str, Attribute] | None = None,
) -> CustomCallOp:
    """A detached custom call."""
    own: dict[str, Attribute] = {
        **(properties or {}),
        "custom_call_target": string(target),
        "backend_config": string(config_text(key, config)),
    }
    made = make("custom-call", operands, shape, own)
    assert isinstance(made, CustomCallOp)
    return made


def element(call: Instruction, index: int, shape: Shape) -> GetTupleElementOp:
    """A detached get-tuple-element."""
    made = make("get-tuple-element", [call], shape, {"index": integer(index)})
    assert isinstance(made, GetTupleElementOp)
    return made


def put(rewriter: Rewriter, op: Instruction, *made: Instruction) -> None:
    """Lets the last of new instructions stand for `op`, what was only read by `op` gone.

    The first takes the place of the call or instruction in the source.
    """
    before = [value.owner for value in op.inputs]
    for key in ("sharding", "frontend_attributes"):
        if key in op.properties and key not in made[-1].properties:
            made[-1].properties[key] = op.properties[key]
    rewriter.replace(op, made)
    rewriter.erase_unread(*before)
