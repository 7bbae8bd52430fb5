"""What the configuration of a GPU library call means: scales, contracted dimensions, algorithm.

Source: the graphs of XLA itself, which tests compare with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mlirhlo.debug.graph.model import Node
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves

_GEMM = ("__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8")
_CONVOLUTION = "__cudnn$conv"
_ACTIVATIONS = {
    "kNone": "none", "kSigmoid": "sigmoid", "kRelu": "relu", "kRelu6": "relu6", "kReluX": "reluX",
    "kTanh": "tanh", "kBandPass": "bandpass", "kElu": "elu", "kLeakyRelu": "leakyrelu",
}  # fmt: skip


def library_call_fields(node: Node) -> list[str]:
    """Lines `key=value` for a cuBLAS or cuDNN call; empty for every other instruction."""
    if node.opcode != "custom-call":
        return []
    target = cast(str, cast(Any, node.op).custom_call_target)
    if target in _GEMM:
        return _gemm(node, config_of(node.op, "gemm_backend_config"))
    if target.startswith(_CONVOLUTION):
        return _convolution(config_of(node.op, "cudnn_conv_backend_config"))
    return []


def config_of(op: Instruction, key: str) -> Mapping[str, Any]:
    """The part `key` of a call's configuration; empty where there is none."""
    try:
        whole: Any = json.loads(op.backend_config or "{}")
    except ValueError:
        return {}
    found: Any = cast("dict[str, Any]", whole).get(key, whole) if isinstance(whole, dict) else {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _gemm(node: Node, config: Mapping[str, Any]) -> list[str]:
    if not config:
        return []
    lines: list[str] = []
    first = next((leaf for _, leaf in leaves(node.shape)), None)
    is_complex = isinstance(first, ArrayShape) and first.element_type.name in ("c64", "c128")
    real, imaginary = config.get("alpha_real", 0), config.get("alpha_imag", 0)
    if is_complex and (real != 1 or imaginary != 1):
        lines += [f"alpha_real={_number(real)}", f"alpha_imag={_number(imaginary)}"]
    elif not is_complex and real != 1:
        lines.append(f"alpha={_number(real)}")
    if config.get("beta", 0) not in (0, 1):
        lines.append(f"beta={_number(config['beta'])}")
    numbers = cast("Mapping[str, Any]", config.get("dot_dimension_numbers", {}))
    for side in ("lhs", "rhs"):
        for short, long, always in (
            ("batch_dims", "batch", False),
            ("contracting_dims", "contracting", True),
        ):
            dims = cast("list[Any]", numbers.get(f"{side}_{long}_dimensions", []))
            if dims or always:
                lines.append(f"{side}_{short}={{{','.join(map(str, dims))}}}")
    if "selected_algorithm" in config:
        lines.append(f"algorithm={config['selected_algorithm']}")
    if config.get("epilogue", "DEFAULT") != "DEFAULT":
        lines.append(f"epilogue={config['epilogue']}")
    return lines


def _convolution(config: Mapping[str, Any]) -> list[str]:
    if not config:
        return []
    lines: list[str] = []
    if config.get("conv_result_scale", 1) != 1:
        lines.append(f"conv_result_scale={_number(config['conv_result_scale'])}")
    if config.get("side_input_scale", 0) not in (0, 1):
        lines.append(f"side_input_scale={_number(config['side_input_scale'])}")
    mode = config.get("activation_mode", "kNone")
    lines.append(f"activation_mode={_ACTIVATIONS.get(str(mode), mode)}")
    algorithm = config.get("algorithm")
    if isinstance(algorithm, dict):
        chosen = cast("Mapping[str, Any]", algorithm)
        lines.append(f"algo=eng{chosen.get('algo_id', 0)}{{}}")
    return lines


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
