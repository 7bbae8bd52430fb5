"""The version of the stable form that is written, and what older readers have no word for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Attribute, Operation

from mlirhlo.diagnostics import error

VERSION = "stable_mosaic.version"
STABLE_VERSION = 15
"""What jaxlib writes."""
GPU_VERSION = "stable_mosaic_gpu.version"
GPU_STABLE_VERSION = 6
"""The same for GPUs."""


def is_for_gpus(module: ModuleOp) -> bool:
    """Whether a kernel is one of Mosaic GPU: its module says for which architecture."""
    return GPU_VERSION in module.attributes or "mosaic_gpu.arch_major" in module.attributes


def stable_version(module: ModuleOp) -> tuple[str, Attribute]:
    """The attribute that the stable form of a module has, and its value."""
    if is_for_gpus(module):
        return GPU_VERSION, IntegerAttr(GPU_STABLE_VERSION, i64)
    return VERSION, IntegerAttr(STABLE_VERSION, i64)


def stated(op: Operation, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """The attributes of an operation as version 15 has them.

    Raises `HloError` HLO0714 for what only newer versions can say.
    """
    name = attributes.get("op_name__", op.name)
    change = _CHANGES.get(str(getattr(name, "data", name)))
    return dict(attributes) if change is None else change(op, dict(attributes))


def _without_strides(op: Operation, attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Version 16 has a segment of strides."""
    segments: Any = attributes.get("operandSegmentSizes")
    sizes = [] if segments is None else [int(size) for size in segments.get_values()]
    if len(sizes) > 3:
        if sizes[3]:
            raise _too_new(op, "its strides are operands")
        attributes["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes[:3])
    return attributes


def _along_the_last(op: Operation, attributes: dict[str, Attribute]) -> dict[str, Attribute]:
    """Version 17 names the dimension."""
    dimension: Any = attributes.pop("dimension", None)
    rank = len(getattr(op.operands[0].type, "get_shape", tuple)())
    if dimension is not None and dimension.value.data != rank - 1:
        raise _too_new(op, f"it runs along dimension {dimension.value.data}, not the last one")
    return attributes


def _too_new(op: Operation, why: str) -> Exception:
    return error(
        "HLO0714",
        f"{op.name} has no form in version {STABLE_VERSION} of the stable form: {why}",
        help="write the pretty or generic form, which have no version",
    )


_CHANGES: dict[str, Callable[[Operation, dict[str, Attribute]], dict[str, Attribute]]] = {
    "tpu.reinterpret_cast": _without_strides,
    "tpu.scan": _along_the_last,
}
