"""Calling compiled modules: descriptors of their arrays, and the built-in function that takes them.

A call whose arguments are exactly what the module takes goes from Python to machine code without a line
of Python in between (`call_ir.py`). Everything else, and everything on builds of Python or NumPy whose
objects lie otherwise, goes through a Python function that converts and explains.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import os
import platform
import struct
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.plan.steps import Buffer
from mlirhlo.lowering.runtime_symbols import STOP
from mlirhlo.runtime import call_layout
from mlirhlo.runtime.cache import builder_code
from mlirhlo.runtime.jit import Library, lock_for_forks

_NEW_SLOT = 94
"""PyArray_NewFromDescr's place in NumPy's C API."""
_SET_HANDLER_SLOT = 304
"""PyDataMem_SetHandler's."""

_FASTCALL, _KEYWORDS = 0x80, 0x02


@dataclass(frozen=True, slots=True)
class Signature:
    """What a module takes and gives."""

    parameters: Sequence[Buffer]
    results: Sequence[Buffer]
    is_tuple: bool
    arena_bytes: int
    is_long: bool
    """Whether other threads of Python should run meanwhile."""


def descriptor(main: int, signature: Signature) -> bytes:
    """The words that `call_ir` reads."""
    handler = _handler()
    buffers = [*signature.parameters, *signature.results]
    offset = (call_layout.HEAD + call_layout.ROW * len(buffers)) * 8
    arena = signature.arena_bytes
    words = [
        main,
        len(signature.parameters),
        len(signature.results),
        int(signature.is_tuple),
        arena,
        max(arena - 1, 63).bit_length(),
        int(signature.is_long),
        id(np.ndarray),
        id(_OUT),
        id(handler) if handler is not None else 0,
    ]
    words += [0] * (call_layout.HEAD - len(words))
    sizes: list[int] = []
    for buffer in buffers:
        dimensions = buffer.shape.dimensions
        alias = 0 if buffer.alias is None else 1 + signature.parameters.index(buffer.alias)
        order = physical_order(buffer.shape)
        words += [id(_dtype(buffer)), len(dimensions), offset + 8 * len(sizes), buffer.size, alias]
        sizes += dimensions
        is_c = order == tuple(range(len(order)))
        words.append(0 if is_c else offset + 8 * len(sizes))
        if not is_c:
            sizes += _strides(dimensions, order, _dtype(buffer).itemsize)
    return struct.pack(f"{len(words) + len(sizes)}Q", *words, *sizes)


_OUT = sys.intern("out")


def _strides(dimensions: Sequence[int], order: Sequence[int], bytes_: int) -> list[int]:
    """Bytes from one index of a dimension to the next; `order` is that of memory, most major first."""
    strides = [0] * len(order)
    for dim in reversed(order):
        strides[dim] = bytes_
        bytes_ *= dimensions[dim]
    return strides


def _dtype(buffer: Buffer) -> np.dtype[Any]:
    return np.dtype(buffer.shape.element_type.dtype)


class Runner:
    """A compiled `main` with its arenas, for arrays whose addresses are known."""

    __slots__ = ("descriptor", "kept")

    def __init__(self, library: Library, main: int, signature: Signature) -> None:
        self.descriptor = descriptor(main, signature)
        dtypes = [_dtype(b) for b in (*signature.parameters, *signature.results)]
        self.kept = (library, dtypes)
        """What the descriptor points to."""

    def run(
        self, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]
    ) -> None:
        """Raises MemoryError when there is none for the temporaries, KeyboardInterrupt where SIGINT ended it."""
        status = _pool().run(self.descriptor, _pointers(inputs), _pointers(outputs))
        if status == call_layout.STOPPED:
            raise KeyboardInterrupt
        if status == call_layout.NO_MEMORY:
            raise MemoryError

    def fast(self, slow: Callable[..., Any]) -> Callable[..., Any] | None:
        """The built-in function; None where this Python has another build. `slow(*arguments, out=)`
        gets the calls that do not fit exactly."""
        caller = _caller()
        return None if caller is None else caller.function((self.descriptor, slow, self))


def _pointers(arrays: Sequence[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])


def logical(values: np.ndarray[Any, Any], shape: ArrayShape) -> np.ndarray[Any, Any]:
    """A view in logical order of an array as it lies in memory."""
    if len(shape.dimensions) < 2:
        return values
    return values.transpose(np.argsort(physical_order(shape)))


# ---------------------------------------------------------------- loading


def _address(function: Any) -> int:
    value = ctypes.cast(function, ctypes.c_void_p).value
    assert value is not None
    return value


_lock = lock_for_forks()


def _pool() -> _Pool:
    # Two threads may want the first one, and code is unmapped with the object that loaded it.
    with _lock:
        return _only_pool()


@functools.cache
def _only_pool() -> _Pool:
    return _Pool()


class _Pool:
    """Arenas, shared by all modules of the process."""

    def __init__(self) -> None:
        functions = [f"memory_{name}" for name in ("new", "zeroed", "resized", "free")]
        names = ["run", "kept_limit", STOP, *functions]
        is_linux = sys.platform == "linux"
        code = builder_code("run_ir", platform.machine(), is_linux=is_linux)
        self.library = Library([code], names)
        self.library.keep()  # a handler of signals is in it
        self.stop = self.library.address(STOP)
        limit = ctypes.c_int64.from_address(self.library.address("kept_limit"))
        limit.value = max(
            limit.value, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8
        )
        self.handler = _Handler(
            b"mlirhlo", 1, _Allocator(None, *map(self.library.address, functions))
        )
        self.address = self.library.address("run")
        self.run = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p
        )(self.address)


def pool_functions() -> dict[str, int]:
    """Addresses of what runs modules (`run_ir`) and of the memory of results (`pool_ir`), for other machine code."""
    pool = _pool()
    return {
        "run": pool.address,
        **{name: pool.library.address(name) for name in ("memory_new", "memory_free")},
    }


class _Allocator(ctypes.Structure):
    """NumPy's `PyDataMemAllocator`."""

    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class _Handler(ctypes.Structure):
    """NumPy's `PyDataMem_Handler`."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    )


def _handler() -> object | None:
    with _lock:
        return _only_handler()


@functools.cache
def _only_handler() -> object | None:
    """The capsule of NumPy's memory handler on the pool, which lives as long as the process: so may
    arrays. None where the system's allocator is not known."""
    if sys.platform != "linux":
        return None
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    pool = _pool()
    # Arrays may be freed after all else at the interpreter's end: the code is never unmapped.
    pool.library.keep()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))
    made: object = new(ctypes.addressof(pool.handler), b"mem_handler", None)
    return made


def externals(text: str) -> dict[str, int]:
    """The address of the byte that ends loops, for LLVM assembly that looks at it."""
    return {STOP: _pool().stop} if f"@{STOP}" in text else {}


def new_array(sizes: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A result's array, undefined, in C order: in memory of the pool as results of `call` are."""
    handler = _handler() if math.prod(sizes) * dtype.itemsize >= call_layout.LARGE else None
    if handler is None:
        return np.empty(sizes, dtype)
    set_handler = _set_handler()
    old = set_handler(handler)
    try:
        return np.empty(sizes, dtype)
    finally:
        set_handler(old)


def _numpy_function(slot: int) -> int:
    """The address of a function of NumPy's C API."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    numpy_api = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    table = ctypes.cast(get(numpy_api, None), ctypes.POINTER(ctypes.c_void_p))
    return int(table[slot] or 0)


@functools.cache
def _set_handler() -> Callable[[object], object]:
    """Gives this thread's NumPy a memory handler; returns the one it had."""
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_numpy_function(_SET_HANDLER_SLOT))


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Caller:
    """Makes built-in functions of `call`."""

    def __init__(self) -> None:
        api = ctypes.pythonapi
        externals = {
            name: _address(getattr(api, name))
            for name in (
                "Py_IncRef",
                "Py_DecRef",
                "PyTuple_New",
                "PyErr_NoMemory",
                "PyErr_CheckSignals",
                "PyErr_SetNone",
                "PyExc_KeyboardInterrupt",
                "PyEval_SaveThread",
                "PyEval_RestoreThread",
                "PyObject_Vectorcall",
                "PyTuple_Type",
            )
        }
        externals["numpy_new"] = _numpy_function(_NEW_SLOT)
        externals["numpy_set_handler"] = _numpy_function(_SET_HANDLER_SLOT)
        externals["run"] = _pool().address
        code = builder_code("call_ir")
        self.library = Library([code], ["call", "copy_word"], externals)
        self.method = _MethodDef(b"call", self.library.address("call"), _FASTCALL | _KEYWORDS, None)
        self._new = api.PyCFunction_NewEx
        self._new.restype = ctypes.py_object
        self._new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]

    def function(self, self_: tuple[Any, ...]) -> Callable[..., Any]:
        """The function with this self."""
        made: Callable[..., Any] = self._new(ctypes.addressof(self.method), self_, None)
        return made


def _caller() -> _Caller | None:
    with _lock:
        return _only_caller()


@functools.cache
def _only_caller() -> _Caller | None:
    """None when objects of this Python or NumPy lie otherwise than `call_ir` takes for granted."""
    if not _is_known_layout():
        return None
    caller = _Caller()
    return caller if _passes(caller) else None


def _is_known_layout() -> bool:
    """Reads live objects where `call_ir` would; writes nothing, so that it is safe anywhere."""
    if (
        sys.implementation.name != "cpython"
        or sysconfig.get_config_var("Py_GIL_DISABLED")
        or hasattr(sys, "getobjects")  # objects of such builds have a longer head
        or struct.calcsize("P") != 8
        or not np.__version__.startswith("2.")
    ):
        return False

    def word(owner: object, offset: int) -> int:
        return ctypes.c_uint64.from_address(id(owner) + offset).value

    data = bytes(range(32))
    array = np.zeros((3, 5), np.float32)
    pair = (data, array)
    dimensions = (ctypes.c_int64 * 2).from_address(word(array, call_layout.ARRAY_DIMS))
    strides = (ctypes.c_int64 * 2).from_address(word(array, call_layout.ARRAY_STRIDES))
    flags = word(array, call_layout.ARRAY_FLAGS) & call_layout.WRITTEN
    return (
        ctypes.string_at(id(data) + call_layout.BYTES_DATA, 32) == data
        and word(pair, call_layout.OBJECT_TYPE) == id(tuple)
        and word(pair, call_layout.VAR_SIZE) == 2
        and word(pair, call_layout.TUPLE_ITEMS) == id(data)
        and word(array, call_layout.OBJECT_TYPE) == id(np.ndarray)
        and word(array, call_layout.ARRAY_DATA) == array.ctypes.data
        and word(array, call_layout.ARRAY_RANK) & 0xFFFFFFFF == 2
        and tuple(dimensions) == (3, 5)
        and tuple(strides) == (20, 4)
        and word(array, call_layout.ARRAY_DTYPE) == id(array.dtype)
        and flags == call_layout.WRITTEN
    )


def _passes(caller: _Caller) -> bool:
    """Calls a function that copies a word, in all the ways the code distinguishes."""
    buffer = Buffer(ArrayShape(PRIMITIVE_TYPES["s64"], (1,)), 8)
    main = caller.library.address("copy_word")
    calls: list[Any] = []

    def slow(*arguments: object, **named: object) -> object:
        calls.append((arguments, named))
        return slow

    word = np.array([0x0123456789ABCDEF])
    given = np.zeros(1, np.int64)
    for is_tuple in (False, True):
        signature = Signature([buffer], [buffer], is_tuple, 100, is_tuple)
        function = caller.function((descriptor(main, signature), slow, word))
        results = (given,) if is_tuple else given
        made = function(word)
        if not isinstance(made, tuple if is_tuple else np.ndarray):
            return False
        if (made[0] != word[0]) if not is_tuple else (made[0][0] != word[0]):
            return False
        given[0] = 0
        if function(word, out=results) is not results or given[0] != word[0]:
            return False
        misfits: tuple[Any, ...] = (1, word[None], word.view("f8"), np.zeros(4, "i8")[::4][:0])
        if any(function(misfit) is not slow for misfit in misfits):
            return False
        if function(word, out=(word,) if is_tuple else word) is not slow:
            return False
        if function() is not slow or function(word, other=1) is not slow:
            return False
    return len(calls) == 14
