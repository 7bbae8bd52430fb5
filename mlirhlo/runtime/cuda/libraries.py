"""Functions of NVIDIA's libraries, from their wheels by ctypes: what a plan calls and no kernel computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.interp.custom_calls.lapack import call_routine
from mlirhlo.interp.plans import place_of
from mlirhlo.interp.registry import Frame, Run, Value
from mlirhlo.lowering.gpu.library_calls import LibraryRoutine, library_routine
from mlirhlo.lowering.gpu.ptx import nvidia_file
from mlirhlo.runtime.cuda.driver import Driver

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.lowering.plan.plan import Plan

Array = np.ndarray[Any, Any]

_R_64F, _C_64F = 1, 5
"""cudaDataType."""
_NO_VECTORS, _VECTORS = 0, 1
"""cusolverEigMode_t."""
_MATRIX = (c_int, c_void_p, c_int64)
"""Type of the numbers, address, distance of columns."""
_EIGEN = (c_void_p, c_void_p, c_int, c_int, c_int64, *_MATRIX, c_int, c_void_p, *_MATRIX, *_MATRIX)
"""handle, params, jobvl, jobvr, n, A, W, VL, VR."""
_SIZES = ctypes.POINTER(c_size_t)
SIGNATURES: Mapping[str, Sequence[Any]] = {
    "cusolverDnCreate": (ctypes.POINTER(c_void_p),),
    "cusolverDnCreateParams": (ctypes.POINTER(c_void_p),),
    "cusolverDnSetStream": (c_void_p, c_void_p),
    "cusolverDnXgeev_bufferSize": (*_EIGEN, c_int, _SIZES, _SIZES),
    "cusolverDnXgeev": (*_EIGEN, c_int, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p),
}
"""Arguments of the functions that are called; all return a status, 0 for success. Source: `cusolverDn.h` of CUDA 13."""


def library_meanings(plan: Plan, driver: Driver) -> dict[Instruction, Run]:
    """What runs the library calls of a plan on a GPU; on the simulator nothing but the interpreter does.

    Raises `HloError` HLO0824 for a library that is not installed.
    """
    found: dict[Instruction, Run] = {}
    for site in plan.sites:
        op, routine = site.op, library_routine(site.op)
        if routine is None or driver.ordinal is None or not isinstance(op, CustomCallOp):
            continue
        solver = Solver(driver, _library(op, routine))

        def run(
            inputs: Sequence[Any],
            frame: Frame,
            op: CustomCallOp = op,
            solver: Solver = solver,
            name: str = routine.routine,
        ) -> Value:
            del frame
            return call_routine(name, op, inputs, eig=solver.eig)

        found[op] = run
    return found


def _library(op: CustomCallOp, routine: LibraryRoutine) -> Any:
    target = f"custom call {op.custom_call_target}"
    run = "the simulator (`--gpu=h100`) and the CPU (`--platform=Host`) run it"
    if not routine.library:
        message = f"{target} cannot run on a GPU: NVIDIA's libraries have no `{routine.function}`"
        raise error("HLO0824", message, place_of(op), help=run)
    path = nvidia_file(f"lib/{routine.library}*")
    if path is None:
        message = f"{target} is `{routine.function}` of {routine.library}, which is not installed"
        advice = f"pip install {routine.wheel}; {run}"
        raise error("HLO0824", message, place_of(op), help=advice)
    return ctypes.CDLL(path)


class Solver:
    """cuSOLVER on one GPU."""

    def __init__(self, driver: Any, library: Any) -> None:
        self.driver = driver
        self._functions: dict[str, Callable[..., None]] = {}
        for name, types in SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = list(types), c_int
            self._functions[name] = partial(driver.call, name, function)
        self._handle, self._params = c_void_p(), c_void_p()
        self._functions["cusolverDnCreate"](byref(self._handle))
        self._functions["cusolverDnCreateParams"](byref(self._params))
        self._functions["cusolverDnSetStream"](self._handle, c_void_p(driver.stream.handle))

    def eig(self, matrices: Array) -> tuple[Array, Array]:
        """Eigenvalues and right eigenvectors of matrices of f64 or c128, as `numpy.linalg.eig`."""
        *batch, n, _ = matrices.shape
        values = np.empty((*batch, n), np.complex128)
        vectors = np.empty((*batch, n, n), np.complex128)
        for at in np.ndindex(*batch):
            values[at], vectors[at] = self._eig(matrices[at])
        return values, vectors

    def _eig(self, a: Array) -> tuple[Array, Array]:
        n, driver = len(a), self.driver
        kind = _C_64F if a.dtype.kind == "c" else _R_64F
        sizes = {"a": a.nbytes, "w": 16 * n, "v": a.nbytes, "info": 4}
        memory = {name: driver.allocate(size, name) for name, size in sizes.items()}
        try:
            driver.write(memory["a"], np.frombuffer(a.T.tobytes(), np.uint8))
            matrices = [(kind, memory["a"], n), (_C_64F, memory["w"]), (kind, None, n)]
            head = [self._handle, self._params, _NO_VECTORS, _VECTORS, n]
            head += [x for part in (*matrices, (kind, memory["v"], n)) for x in part]
            on_device, on_host = c_size_t(), c_size_t()
            measure = self._functions["cusolverDnXgeev_bufferSize"]
            measure(*head, kind, byref(on_device), byref(on_host))
            memory["work"] = driver.allocate(on_device.value, "workspace")
            host = ctypes.create_string_buffer(max(on_host.value, 1))
            rest = (memory["work"], on_device, ctypes.cast(host, c_void_p), on_host)
            self._functions["cusolverDnXgeev"](*head, kind, *rest, memory["info"])
            values = driver.read(memory["w"], 16 * n).view(np.complex128)
            columns = driver.read(memory["v"], a.nbytes).view(a.dtype).reshape(n, n)
        finally:
            for address in memory.values():
                driver.free(address)
        return values, _unpacked(values, columns.T)


def _unpacked(values: Array, vectors: Array) -> Array:
    """Eigenvectors of a real matrix, of which two conjugate ones are their real and imaginary part."""
    if vectors.dtype.kind == "c":
        return vectors
    found = vectors.astype(np.complex128)
    for first in np.flatnonzero(values.imag > 0):
        pair = vectors[:, first] + 1j * vectors[:, first + 1]
        found[:, first], found[:, first + 1] = pair, pair.conj()
    return found
