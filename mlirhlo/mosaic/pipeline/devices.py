"""Device ids: what the compiler splits into device and core on chips of several cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import integers_of, name_of
from mlirhlo.mosaic.pipeline.building import attribute, constant, functions_of, i32_type, insert

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_AT = {"tpu.enqueue_dma": (4, 5), "tpu.sem_signal": (2, 3), "tpu.wait_dma2": (3, 4)}
"""Where `device_id` and `core_id` stand in the segments."""


def logical_to_physical_device_id(module: ModuleOp) -> None:
    """A remote operation names the core too: core 0, as every device of ours has one core."""
    for function in functions_of(module):
        for op in list(function.walk()):
            found = _AT.get(name_of(op))
            if found is None:
                continue
            device, core = found
            sizes = list(integers_of(op, "operandSegmentSizes") or ())
            if len(sizes) <= core or not sizes[device] or sizes[core]:
                continue
            zero = insert(constant(0, i32_type()), op).results[0]
            at = sum(sizes[:core])
            op.operands = (*op.operands[:at], zero, *op.operands[at:])
            sizes[core] = 1
            text = ", ".join(map(str, sizes))
            op.properties["operandSegmentSizes"] = attribute(f"array<i32: {text}>")
