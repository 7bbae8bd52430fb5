"""Arrays in a GPU's memory, handed over without a copy: `__cuda_array_interface__` and DLPack, in and out.

    results = executable.on_device(torch_tensor, cupy_array, numpy_array)
    torch.from_dlpack(results)

Source: CUDA array interface, version 3; DLPack 0.8 (`dlpack.h`), capsules without a version.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import wrong_type
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.runtime.cuda.driver import Driver

if TYPE_CHECKING:
    from mlirhlo.lowering.plan.steps import Buffer
    from mlirhlo.runtime.cuda.runner import GpuRunner

CUDA = 2
"""DLPack's number for memory of NVIDIA's GPUs."""
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLPack's type codes by numpy's kinds."""
_BFLOAT = 4
_NAME, _USED = b"dltensor", b"used_dltensor"


class DeviceArray:
    """A dense row-major array in the memory of a GPU; it frees its memory when nothing has it any more."""

    def __init__(
        self,
        driver: Driver,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        owner: object = None,
    ) -> None:
        """Takes over the memory, unless it has an owner, which is kept."""
        self.driver, self.address, self.shape, self.dtype = driver, address, shape, dtype
        self._owner = owner
        if owner is None:
            weakref.finalize(self, driver.free, address)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<{self.dtype.name}{list(self.shape)} on {'GPU' if self.is_real else 'a simulated GPU'}>"

    @property
    def is_real(self) -> bool:
        """Whether other libraries can reach the memory."""
        return self.driver.ordinal is not None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        del copy
        data = self.driver.read(self.address, self.nbytes).view(self.dtype).reshape(self.shape)
        return np.array(data, dtype or self.dtype)

    @property
    def __cuda_array_interface__(self) -> Mapping[str, object]:
        if not self.is_real:
            raise AttributeError("an array of a simulated GPU is not in a GPU's memory")
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        if self.driver.ordinal is None:
            raise BufferError("an array of a simulated GPU is not in a GPU's memory")
        return CUDA, self.driver.ordinal

    def __dlpack__(self, *, stream: object = None, **others: object) -> object:
        """A capsule; what was launched has ended by then, so that any stream may read."""
        del stream, others
        _, ordinal = self.__dlpack_device__()
        self.driver.synchronize()
        return _capsule(self, ordinal)


# ---------------------------------------------------------------- running on them


def run_on_device(runner: GpuRunner, arguments: Sequence[object], *, donate: bool) -> Any:
    """As `GpuExecutable.on_device`."""
    plan, driver = runner.program.plan, runner.driver
    parameters, kept = _parameters(runner, arguments)
    results: list[DeviceArray] = []
    for buffer in plan.results:
        _check_order("result", buffer)
        shape = buffer.shape.dimensions
        over = None if buffer.alias is None else buffer.alias.parameter
        if over is not None and donate:
            array = DeviceArray(driver, parameters[over], shape, _dtype(buffer), kept[over])
        else:
            address = driver.allocate(buffer.size, "result")
            array = DeviceArray(driver, address, shape, _dtype(buffer))
            if over is not None:
                driver.copy(parameters[over], address, buffer.size)
                parameters[over] = address
        results.append(array)
    runner.run_in_memory(parameters, [array.address for array in results])
    driver.synchronize()
    del kept
    return _result(runner, results)


def _parameters(runner: GpuRunner, arguments: Sequence[object]) -> tuple[list[int], list[object]]:
    """The addresses of arguments, and what holds their memory."""
    plan = runner.program.plan
    if len(arguments) != len(plan.parameters):
        expected = f"{len(plan.parameters)} arrays, the leaves of the parameters"
        raise wrong_type("arguments", expected, arguments)
    placed = [
        _placed(f"argument {number}", buffer, value, runner.driver)
        for number, (buffer, value) in enumerate(zip(plan.parameters, arguments, strict=True))
    ]
    return [address for address, _ in placed], [owner for _, owner in placed]


def _result(runner: GpuRunner, results: Sequence[DeviceArray]) -> Any:
    is_tuple = isinstance(runner.program.plan.result_shape, TupleShape)
    return tuple(results) if is_tuple else results[0]


class Bound:
    """A program on arrays that stay the same: calls read and write the same memory, and copy nothing.

    A call returns when the work is in the GPU's queue; `np.asarray` of the result, or `synchronize`, waits for it.
    """

    def __init__(self, runner: GpuRunner, arguments: Sequence[object]) -> None:
        """As `GpuExecutable.bind`."""
        plan, driver = runner.program.plan, runner.driver
        parameters, self._kept = _parameters(runner, arguments)
        results: list[DeviceArray] = []
        for buffer in plan.results:
            _check_order("result", buffer)
            over = None if buffer.alias is None else buffer.alias.parameter
            owner: object = None
            if over is None:
                address = driver.allocate(buffer.size, "result")
            else:
                address, owner = parameters[over], self._kept[over]
            shape = buffer.shape.dimensions
            results.append(DeviceArray(driver, address, shape, _dtype(buffer), owner))
        self.result: Any = _result(runner, results)
        """What calls write: a `DeviceArray`, or a tuple of them."""
        self._follow = runner.bound(parameters, [array.address for array in results])
        self.synchronize = driver.synchronize

    def __call__(self) -> Any:
        """Runs once more; the result."""
        self._follow()
        return self.result


def _placed(name: str, buffer: Buffer, value: object, driver: Driver) -> tuple[int, object]:
    """The address of an argument, and what keeps it."""
    _check_order(name, buffer)
    shape, dtype = buffer.shape.dimensions, _dtype(buffer)
    array = foreign(value, driver)
    if array is None:
        data = np.ascontiguousarray(np.asarray(value, dtype))
        if data.shape != shape:
            raise wrong_type(name, f"an array of {buffer.shape}", value)
        made = DeviceArray(driver, driver.allocate(buffer.size, name), shape, dtype)
        driver.write(made.address, data.reshape(-1).view(np.uint8))
        return made.address, made
    if (array.shape, array.dtype_name) != (shape, dtype.name):
        got = f"{array.dtype_name}{list(array.shape)}"
        raise wrong_type(name, f"an array of {buffer.shape}, not {got}", value)
    return array.address, array.owner


def _dtype(buffer: Buffer) -> np.dtype[Any]:
    return buffer.shape.element_type.dtype


def _check_order(name: str, buffer: Buffer) -> None:
    order = physical_order(buffer.shape)
    if order != tuple(range(len(order))):
        raise wrong_type(name, f"a host array, since {buffer.shape} is not row-major", buffer)


# ---------------------------------------------------------------- arrays of others


@dataclass(frozen=True, slots=True)
class Foreign:
    """Memory of somebody else, as long as `owner` is kept."""

    address: int
    shape: tuple[int, ...]
    dtype_name: str
    owner: object


def foreign(value: Any, driver: Driver) -> Foreign | None:
    """What an array in the driver's memory is; None for a value that is no array of a GPU.

    Raises `HloError` HLO0508 for one that is not dense and row-major, or on another GPU.
    """
    if isinstance(value, DeviceArray):
        if value.driver is not driver:
            raise wrong_type("argument", "an array on the GPU of the program", value)
        return Foreign(value.address, value.shape, value.dtype.name, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None and driver.ordinal is not None:
        return _of_interface(interface, value)
    where = getattr(value, "__dlpack_device__", None)
    if where is None or isinstance(value, np.ndarray) or where()[0] != CUDA:
        return None
    if where()[1] != driver.ordinal:
        raise wrong_type("argument", f"an array on GPU {driver.ordinal}", value)
    return _of_capsule(value.__dlpack__(), value)


def _of_interface(interface: Mapping[str, Any], owner: object) -> Foreign:
    shape = tuple(interface["shape"])
    dtype = np.dtype(interface["typestr"])
    _check_dense(shape, interface.get("strides"), dtype.itemsize, owner)
    return Foreign(interface["data"][0], shape, dtype.name, owner)


def _check_dense(shape: tuple[int, ...], strides: Any, unit: int, owner: object) -> None:
    """Raises `HloError` HLO0508 unless elements follow each other in row-major order."""
    expected = unit
    for size, stride in reversed(list(zip(shape, strides or (), strict=False))):
        if size > 1 and stride != expected:
            raise wrong_type("argument", "a dense row-major array", owner, "make it contiguous")
        expected *= size


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_shared: dict[int, tuple[object, ...]] = {}
"""Arrays that others use, with what describes them, by the address of the description."""


def _forget(address: int) -> None:
    _shared.pop(address, None)


_delete = _Deleter(_forget)
"""For those who took an array, when they are done with it."""


def _api(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(ctypes.pythonapi, name)
    function.restype, function.argtypes = result, arguments
    return function


_new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _forget_unused(capsule: int) -> None:
    if _is_valid(capsule, _NAME):
        _forget(_raw_pointer(capsule, _NAME))


_unused = _Destructor(_forget_unused)
"""For capsules that nothing took the array out of."""


def _capsule(array: DeviceArray, ordinal: int) -> object:
    rank, dtype = len(array.shape), array.dtype
    code = _BFLOAT if dtype.name == "bfloat16" else _KINDS.get(dtype.kind)
    if code is None:
        raise BufferError(f"DLPack has no type for {dtype.name}")
    sizes = (ctypes.c_int64 * max(rank, 1))(*array.shape)
    kind = _Type(code, 8 * dtype.itemsize, 1)
    tensor = _Tensor(array.address, _Device(CUDA, ordinal), rank, kind, sizes, None, 0)
    managed = _Managed(tensor, None, _delete)
    address = ctypes.addressof(managed)
    _shared[address] = (array, managed, sizes)
    return _new(address, _NAME, _unused)


def _of_capsule(capsule: object, owner: object) -> Foreign:
    managed = _Managed.from_address(_pointer(capsule, _NAME))
    _rename(capsule, _USED)
    tensor = managed.tensor
    address = ctypes.addressof(managed)
    taken = _Taken(address, managed.deleter)
    shape = tuple(tensor.shape[d] for d in range(tensor.rank))
    strides = [tensor.strides[d] for d in range(tensor.rank)] if tensor.strides else None
    _check_dense(shape, strides, 1, owner)
    code, bits = tensor.dtype.code, tensor.dtype.bits
    if code == _BFLOAT:
        name = "bfloat16"
    else:
        letter = next((k for k, number in _KINDS.items() if number == code), "V")
        name = "bool" if letter == "b" else np.dtype(f"{letter}{bits // 8}").name
    return Foreign((tensor.data or 0) + tensor.offset, shape, name, taken)


class _Taken:
    """An array out of a capsule; given back when nothing uses it any more."""

    def __init__(self, address: int, deleter: Any) -> None:
        weakref.finalize(self, lambda: deleter(address) if deleter else None)
