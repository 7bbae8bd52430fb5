"""What a `mosaic_gpu_v2` call in a program computes: its kernel as PTX, on the simulator of a GPU that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.interp.custom_calls import options_of, unfit
from mlirhlo.mosaic.custom_call import aliases_of
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.gpu.host import imported
from mlirhlo.mosaic.gpu.module import GpuKernel

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp
    from mlirhlo.interp.registry import Frame, Value


@lru_cache(maxsize=64)
def _kernel(body: bytes, name: str, results: int) -> GpuKernel:
    return imported(read_kernel(body, f"<kernel {name}>"), results=results)


def mosaic_gpu_call(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The kernel's results.

    Raises `HloError` as `kernel_of` does, HLO0758 for a kernel that has no code, and what the simulator finds wrong.
    """
    del frame
    kernel = kernel_of(op)
    results = kernel.run(*inputs, gpu=kernel.default_gpu, aliases=aliases_of(op))
    return tuple(results) if isinstance(op.shape, TupleShape) else results[0]


def kernel_of(op: CustomCallOp) -> GpuKernel:
    """The kernel of a call.

    Raises `HloError` HLO0355 for operands and results that are not its arrays, HLO0700 for a kernel that cannot be
    read, HLO0758 for a launch that is not known.
    """
    shape = op.shape
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    arrays = [one for one in (*op.input_shapes, *parts) if isinstance(one, ArrayShape)]
    if len(arrays) != len(op.inputs) + len(parts) or any(one.is_dynamic for one in arrays):
        raise unfit(op, "a kernel has arrays of static sizes")
    body = options_of(op).get("module")
    if not isinstance(body, bytes | str):
        raise unfit(op, "its backend_config has no module")
    data = body if isinstance(body, bytes) else body.encode()
    kernel = _kernel(data, op.instruction_name or "kernel", len(parts))
    stated = [(*one.shape, one.dtype) for one in (*kernel.inputs, *kernel.results)]
    if stated != [(*one.dimensions, one.element_type.dtype) for one in arrays]:
        raise unfit(op, f"its kernel takes and gives {len(stated)} arrays of other shapes or types")
    return kernel
