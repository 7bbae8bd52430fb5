"""A wheel of a program: its shared library, and a module that calls it with numpy arrays by ctypes."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Sequence

from mlirhlo.aot.compiler import Ahead
from mlirhlo.aot.signature import Leaf
from mlirhlo.diagnostics import error

_TIME = (1980, 1, 1, 0, 0, 0)
"""The first that an archive can say: the same bytes every time."""

_DTYPES = {
    "pred": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
    "s1": "int8", "s2": "int8", "s4": "int8", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64",
    "u1": "uint8", "u2": "uint8", "u4": "uint8", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "bf16": "uint16",
}  # fmt: skip
"""By element type; floats that numpy lacks are their bits."""

_MODULE = '''"""{name}, compiled ahead of time: `run(...)` takes and gives numpy arrays.

Arguments, in order or by name:
{arguments}
Results:
{results}
Needs numpy alone. Any number of threads may call `run` at the same time.
"""

import ctypes
import os

import numpy as np

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_library = ctypes.CDLL(os.path.join(_FOLDER, "lib{name}.so"))
_run = _library.{name}_run
_run.restype = ctypes.c_int32
_run.argtypes = [ctypes.c_void_p] * 4
_error = _library.{name}_error
_error.restype = ctypes.c_char_p
_error.argtypes = [ctypes.c_int32]
_library.{name}_variant.restype = ctypes.c_char_p

ARENA_BYTES = {arena}
_ALIGNMENT = 64
_ARGUMENTS = {argument_rows}
_RESULTS = {result_rows}
_NAMES = [row[0] for row in _ARGUMENTS]


def _check(status):
    if status:
        raise RuntimeError(_error(status).decode())

{weights}
def _as_argument(value, row):
    name, dtype, shape, order = row
    array = np.asarray(value)
    if array.dtype != dtype:
        if hasattr(value, "dtype") and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(f"{{name}}: expected {{dtype}}, got {{array.dtype}}")
        array = array.astype(dtype)
    if array.shape != shape:
        raise ValueError(f"{{name}}: expected shape {{shape}}, got {{array.shape}}")
    return np.ascontiguousarray(array.transpose(order))


def run(*arguments, threads=None, **named):
    """The results: one array, or a tuple of them. `threads`: of the process from now on."""
    if threads is not None:
        _library.{name}_set_threads(ctypes.c_int32(threads))
    values = dict(zip(_NAMES, arguments))
    unknown = [name for name in named if name not in _NAMES]
    if len(arguments) > len(_NAMES) or unknown or values.keys() & named.keys():
        raise TypeError("run() takes " + (", ".join(_NAMES) or "no arguments"))
    values.update(named)
    missing = [name for name in _NAMES if name not in values]
    if missing:
        raise TypeError("run() lacks " + ", ".join(missing))
    inputs = [_as_argument(values[row[0]], row) for row in _ARGUMENTS]
    outputs = [np.empty([shape[d] for d in order], dtype) for _, dtype, shape, order in _RESULTS]
    arena = np.empty(ARENA_BYTES + _ALIGNMENT, np.uint8)
    pointers = ctypes.c_void_p * max(len(inputs), 1)
    targets = ctypes.c_void_p * max(len(outputs), 1)
    start = arena.ctypes.data + -arena.ctypes.data % _ALIGNMENT
    _check(
        _run(pointers(*[a.ctypes.data for a in inputs]), targets(*[a.ctypes.data for a in outputs]), start, None)
    )
    results = [
        array.transpose(np.argsort(order)) for array, (_, _, _, order) in zip(outputs, _RESULTS)
    ]
    return {result}


def variant():
    """The processor whose code runs here."""
    found = _library.{name}_variant()
    return found and found.decode()
'''

_WEIGHTS = """
_library.{name}_load_weights.argtypes = [ctypes.c_char_p]
_check(_library.{name}_load_weights(os.fsencode(os.path.join(_FOLDER, "{name}.weights"))))

"""


def wheel(ahead: Ahead, library: bytes, version: str) -> tuple[str, bytes]:
    """Name and content of a wheel. Raises `HloError` HLO0843 for a target without wheels."""
    machine = ahead.triple.partition("-")[0]
    if "-linux-" not in ahead.triple:
        raise error("HLO0843", f"{ahead.triple}: wheels are made for Linux", help="say --emit=obj")
    name = ahead.name
    tag = f"py3-none-linux_{machine}"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": _module(ahead).encode(),
        f"{name}/lib{name}.so": library,
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
            f"Summary: {name}, compiled ahead of time\nRequires-Dist: numpy\n"
        ).encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: hlo-aot\nRoot-Is-Purelib: false\nTag: {tag}\n"
        ).encode(),
    }
    if ahead.weights:
        files[f"{name}/{name}.weights"] = ahead.weights
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.external_attr = (0o755 if path.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return f"{name}-{version}-{tag}.whl", made.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _module(ahead: Ahead) -> str:
    arguments, results = ahead.signature.arguments, ahead.signature.results
    return _MODULE.format(
        name=ahead.name,
        arena=ahead.arena_bytes,
        arguments=_described(arguments),
        results=_described(results),
        argument_rows=_rows(arguments),
        result_rows=_rows(results),
        weights=_WEIGHTS.format(name=ahead.name) if ahead.weights else "",
        result="results[0]" if len(results) == 1 else "tuple(results)",
    )


def _described(leaves: Sequence[Leaf]) -> str:
    return (
        "".join(f"    {leaf.name}: {leaf.shape.to_string()}\n" for leaf in leaves) or "    none\n"
    )


def _rows(leaves: Sequence[Leaf]) -> str:
    rows = [
        f'    ("{leaf.name}", np.dtype("{_DTYPES.get(leaf.element, "uint8")}"), '
        f"{tuple(leaf.dimensions)}, {leaf.order}),\n"
        for leaf in leaves
    ]
    return f"[\n{''.join(rows)}]"
