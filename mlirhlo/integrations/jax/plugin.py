"""Passes in a compiler behind PJRT's C interface, also where it has no device: libtpu, XLA:GPU.

JAX registers passes with a plugin when it starts a client of it. A compilation for a device that
is not there (`jax.experimental.topologies`) never has a client, so here the plugin's extension for
passes is called directly. Source: the C interface's extension "XLA transform", version 1, as
observed with libtpu 0.0.51 and the CUDA plugin of jaxlib 0.10.2.
"""

from __future__ import annotations

import ctypes as c
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from mlirhlo.diagnostics import error
from mlirhlo.integrations.optional import require

_EXTENSION_TYPE = 24
_VERSION = 1
_INTERNAL = 13
"""Absl's code for an internal error."""


class _Base(c.Structure):
    """Head of every extension; they are a linked list."""


_Base._fields_ = [
    ("struct_size", c.c_size_t),
    ("type", c.c_int),
    ("next", c.POINTER(_Base)),
]


class _Bytes(c.Structure):
    _fields_: ClassVar = [("data", c.c_void_p), ("size", c.c_size_t)]


class _Outcome(c.Structure):
    _fields_: ClassVar = [
        ("api_version", c.c_int64),
        ("data", c.c_void_p),
        ("cleanup", c.c_void_p),
        ("has_error", c.c_bool),
        ("code", c.c_int),
        ("message", _Bytes),
    ]


class _TransformArgs(c.Structure):
    _fields_: ClassVar = [
        ("struct_size", c.c_size_t),
        ("outcome", _Outcome),
        ("module", _Bytes),
        ("transformed", _Bytes),
        ("changed", c.c_bool),
    ]


_TRANSFORM = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(_TransformArgs))


class _Callbacks(c.Structure):
    _fields_: ClassVar = [
        ("version", c.c_int64),
        ("destroy", c.c_void_p),
        ("transform", _TRANSFORM),
    ]


class _RegisterArgs(c.Structure):
    _fields_: ClassVar = [
        ("struct_size", c.c_size_t),
        ("name", c.c_char_p),
        ("name_size", c.c_size_t),
        ("stage", c.c_int),
        ("callbacks", c.POINTER(_Callbacks)),
    ]


class _ClearArgs(c.Structure):
    _fields_: ClassVar = [
        ("struct_size", c.c_size_t),
        ("stage", c.c_int),
        ("name", c.c_char_p),
        ("name_size", c.c_size_t),
        ("callbacks", c.c_void_p),
        ("cleared", c.c_bool),
    ]


class _Extension(c.Structure):
    _fields_: ClassVar = [
        ("base", _Base),
        ("register", c.CFUNCTYPE(c.c_void_p, c.POINTER(_RegisterArgs))),
        ("clear", c.CFUNCTYPE(c.c_void_p, c.POINTER(_ClearArgs))),
    ]


class PluginTransforms:
    """The extension of one plugin."""

    def __init__(self, extension: _Extension) -> None:
        self._extension: Any = extension
        self._alive: list[Any] = []
        """Callbacks, for good: the compiler keeps their addresses."""

    def register(self, name: str, stage: int, hook: Callable[[bytes], bytes | None]) -> None:
        """Calls `hook` at a stage of every compilation. Raises `HloError` HLO0606."""
        callbacks = _Callbacks(_VERSION, None, _TRANSFORM(_callback(hook)))
        self._alive.append(callbacks)
        encoded = name.encode()
        args = _RegisterArgs(
            c.sizeof(_RegisterArgs), encoded, len(encoded), stage, c.pointer(callbacks)
        )
        if self._extension.register(c.byref(args)):
            raise error("HLO0606", f"the compiler does not take a pass named {name!r}")

    def clear(self, name: str, stage: int) -> bool:
        """Takes the pass out; whether there was one."""
        encoded = name.encode()
        args = _ClearArgs(c.sizeof(_ClearArgs), stage, encoded, len(encoded), None, False)
        failed = self._extension.clear(c.byref(args))
        return not failed and bool(args.cleared)


def _callback(hook: Callable[[bytes], bytes | None]) -> Callable[[Any, Any], None]:
    """A hook as the compiler calls it; an error becomes the compilation's."""
    kept: list[Any] = []
    """What the last call handed over; the compiler copies it before it calls again."""

    def bytes_for(compiler: bytes) -> _Bytes:
        buffer = c.create_string_buffer(compiler, len(compiler))
        kept.append(buffer)
        return _Bytes(c.addressof(buffer), len(compiler))

    def call(_: Any, pointer: Any) -> None:
        args = pointer.contents
        kept.clear()
        try:
            result = hook(c.string_at(args.module.data, args.module.size))
            if result is not None:
                args.transformed = bytes_for(result)
                args.changed = True
        except BaseException as problem:  # noqa: BLE001 - nothing may pass through C
            args.outcome.has_error = True
            args.outcome.code = _INTERNAL
            args.outcome.message = bytes_for(str(problem).encode("utf-8", "replace"))

    return call


def prepare_tpu() -> None:
    """What libtpu's start needs on a machine without a TPU; settings that are there stay."""
    for name, value in (
        ("TPU_SKIP_MDS_QUERY", "1"),  # no metadata server is asked
        ("TPU_ACCELERATOR_TYPE", "v5litepod-4"),  # any; it silences warnings
        ("TPU_WORKER_HOSTNAMES", "localhost"),
        ("ALLOW_MULTIPLE_LIBTPU_LOAD", "1"),  # another process may have it loaded
    ):
        os.environ.setdefault(name, value)


_found: dict[str, PluginTransforms | None] = {}


def plugin_transforms(platform: str) -> PluginTransforms | None:
    """The extension of the compiler for `tpu` or `gpu`; None where it is not installed or has none.

    Raises `HloError` HLO0600 when it is installed and cannot be loaded.
    """
    if platform not in _found:
        path = _library(platform)
        _found[platform] = None if path is None else _extension_of(path)
    return _found[platform]


def _library(platform: str) -> str | None:
    """File of a plugin."""
    if platform == "tpu":
        if importlib.util.find_spec("libtpu") is None:
            return None
        prepare_tpu()
        path: str = require("libtpu", "tpu", "compiling for TPUs").get_library_path()
        return path
    if platform == "gpu" and (folders := importlib.util.find_spec("jax_plugins")) is not None:
        for folder in folders.submodule_search_locations or ():
            for file in sorted(Path(folder).glob("xla_*/xla_*_plugin.so"), reverse=True):
                return str(file)
    return None


def _extension_of(path: str) -> PluginTransforms | None:
    try:
        library = c.CDLL(path)
        library.GetPjrtApi.restype = c.POINTER(c.c_void_p)
    except (OSError, AttributeError) as problem:
        raise error("HLO0600", f"{path} cannot be loaded: {problem}") from None
    # The interface starts with its size and the first extension.
    extension = c.cast(library.GetPjrtApi()[1], c.POINTER(_Base))
    while extension and extension.contents.type != _EXTENSION_TYPE:
        extension = extension.contents.next
    if not extension or extension.contents.struct_size < c.sizeof(_Extension):
        return None
    return PluginTransforms(c.cast(extension, c.POINTER(_Extension)).contents)
