"""Parameters of a launch as NVIDIA's driver takes them: addresses, and tensor maps behind them, in one buffer."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirhlo.lowering.gpu.kernel import Launch, MapParameter
from mlirhlo.runtime.cuda.graphs import call

_MAP_BYTES, _MAP_ALIGNMENT = 128, 64
_TYPES = {1: 0, 2: 1, 4: 2, 8: 4}
"""`CUtensorMapDataType` by bytes of an element: unsigned integers, as copies only move bits."""
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
"""`CUtensorMapSwizzle` by bytes."""
_PROMOTE_128 = 2
"""`CU_TENSOR_MAP_L2_PROMOTION_L2_128B`."""


def parameter_buffer(launch: Launch, addresses: Sequence[int]) -> np.ndarray[Any, Any]:
    """The bytes of all parameters, each at its alignment.

    Raises `HloError` HLO0822 for a map that the driver refuses.
    """
    pointers = np.array(addresses, np.uint64).view(np.uint8)
    if not launch.maps:
        return pointers
    start = -(-pointers.size // _MAP_ALIGNMENT) * _MAP_ALIGNMENT
    size = start + _MAP_BYTES * len(launch.maps)
    whole = np.zeros(size + _MAP_ALIGNMENT, np.uint8)
    shift = -whole.ctypes.data % _MAP_ALIGNMENT
    data = whole[shift : shift + size]
    data[: pointers.size] = pointers
    for number, described in enumerate(launch.maps):
        where = data.ctypes.data + start + number * _MAP_BYTES
        _encode(where, described, addresses[described.parameter])
    return data


def _encode(where: int, described: MapParameter, address: int) -> None:
    rank = len(described.dimensions)
    wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*described.strides)
    call(
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(where),
        _TYPES[described.element_bytes],
        rank,
        ctypes.c_void_p(address),
        wide(*described.dimensions),
        strides,
        narrow(*described.box),
        narrow(*[1] * rank),
        0,
        _SWIZZLES[described.swizzle_bytes],
        _PROMOTE_128,
        0,
    )
