"""Functions of libraries that kernels call: LAPACK and Fourier transforms, both out of NumPy's wheel.

LAPACK is that of the OpenBLAS which NumPy's wheels carry (Fortran's calling convention, integers of 64
bits). The transforms are the inner loops of `numpy.fft`, found through NumPy's public `PyUFuncObject`
and tried once before they are used. Builds of NumPy that hold neither have no such symbols: what needs them
has no machine code there.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from pathlib import Path
from typing import Any

LAPACK = "mlirhlo_lapack_"
"""Beginning of the symbols of LAPACK's routines: `mlirhlo_lapack_dgeqrf(pointers …, lengths of strings …)`."""
FFT = "mlirhlo_fft_"
"""Beginning of the symbols of transforms: `mlirhlo_fft_complex(arrays, sizes, strides, is forward)`."""

_TRANSFORMS = {
    "complex": "fft",
    "real_even": "rfft_n_even",
    "real_odd": "rfft_n_odd",
    "to_real": "irfft",
}
"""NumPy's names of transforms in double precision. Arrays are the operand, a factor, the result; sizes the
number of lines, elements of a line read and written; strides, in bytes, from line to line of the three, then
from element to element of operand and result."""

_COUNTS_OFFSET, _FUNCTIONS_OFFSET = 16, 32
"""Of the numbers of operands, results and both, and of the table of loops, in a `PyUFuncObject`."""


def address(symbol: str) -> int | None:
    """Where a function is; None for what this NumPy does not have."""
    if symbol.startswith(LAPACK):
        return _lapack(symbol.removeprefix(LAPACK))
    if symbol.startswith(FFT):
        return _transforms().get(symbol.removeprefix(FFT))
    return None


def set_thread_count(count: int) -> None:
    """Sets the number of threads of the libraries that have threads of their own."""
    for library in _libraries():
        function = getattr(library, "scipy_openblas_set_num_threads64_", None)
        if function is not None:
            function(ctypes.c_int(count))


def are_loaded() -> bool:
    """Whether a function of these libraries was looked up."""
    return _libraries.cache_info().currsize > 0


@functools.lru_cache(maxsize=1024)
def _lapack(name: str) -> int | None:
    for library in _libraries():
        function = getattr(library, f"scipy_{name}_64_", None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value
    return None


@functools.cache
def _libraries() -> list[Any]:
    numpy = importlib.import_module("numpy")
    top = Path(str(numpy.__file__)).parent
    found: list[Any] = []
    for folder in (top.parent / "numpy.libs", top / ".dylibs"):
        for path in sorted(folder.glob("*openblas64*")):
            try:
                found.append(ctypes.CDLL(str(path)))
            except OSError:
                continue
    return found


@functools.cache
def _transforms() -> dict[str, int]:
    """Addresses of the loops that work as this module takes for granted."""
    try:
        module = importlib.import_module("numpy.fft._pocketfft_umath")
        functions = {name: getattr(module, numpys) for name, numpys in _TRANSFORMS.items()}
        if any(f.types[0].upper() != "DD->D" for f in functions.values()):
            return {}
    except (ImportError, AttributeError, IndexError):
        return {}
    found: dict[str, int] = {}
    for name, function in functions.items():
        counts = (ctypes.c_int * 3).from_address(id(function) + _COUNTS_OFFSET)
        if list(counts) != [2, 1, 3]:
            return {}
        table = ctypes.c_void_p.from_address(id(function) + _FUNCTIONS_OFFSET).value
        loop = ctypes.c_void_p.from_address(table).value if table else None
        if loop is None:
            return {}
        found[name] = loop
    return found if _works(found["complex"]) else {}


def _works(loop: int) -> bool:
    """Whether a loop transforms [1, 2] to [3, -1], and back with a factor."""
    values = (ctypes.c_double * 4)(1, 0, 2, 0)
    result = (ctypes.c_double * 4)()
    factor = ctypes.c_double(2)
    arrays = (ctypes.c_void_p * 3)(*map(ctypes.addressof, (values, factor, result)))
    sizes = (ctypes.c_int64 * 3)(1, 2, 2)
    strides = (ctypes.c_int64 * 5)(32, 0, 32, 16, 16)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop)
    for is_forward in (1, 0):
        flag = ctypes.c_uint8(is_forward)
        function(arrays, sizes, strides, ctypes.byref(flag))
        if list(result) != [6.0, 0.0, -2.0, 0.0]:
            return False
    return True
