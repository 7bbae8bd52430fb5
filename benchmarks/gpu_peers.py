"""Who runs the functions of `gpu.py` on a card: this compiler, XLA:GPU through JAX and cuBLAS."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gpu_cases import BF16, LARGE, Array, Case

import mlirhlo
import mlirhlo.numpy
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu.ptx import nvidia_file
from mlirhlo.mosaic.gpu import library

Work = Callable[[], object]


class Ours:
    """This compiler on a driver: a GPU of this machine, or a simulated one."""

    def __init__(self, gpu: str) -> None:
        self.gpu = gpu

    def compiled(self, case: Case, arrays: tuple[Array, ...]) -> Any:
        """The program, or the kernel, of a case."""
        if case.attention is not None:
            heads, length, size = arrays[0].shape
            call = library.flash_attention_kernel(
                heads, length, size, arrays[0].dtype, causal=case.attention
            )
            return call.lower(*arrays)
        if case.hlo:
            (m, k), n = arrays[0].shape, arrays[1].shape[0]
            module = mlirhlo.parse(case.hlo.format(m=m, n=n, k=k))
        else:
            function = mlirhlo.jit(lambda *given: case.function(mlirhlo.numpy, *given))
            module = function.lower(*arrays).compiler_ir()
        return mlirhlo.compile(module, platform="cuda", gpu=self.gpu)

    def result(self, case: Case, arrays: tuple[Array, ...]) -> Array:
        """What it computes, copied to the host."""
        compiled = self.compiled(case, arrays)
        if case.attention is not None:
            return np.asarray(compiled.run(*arrays, gpu=self.gpu)[0])
        return np.asarray(compiled(*arrays))

    def work(self, case: Case, arrays: tuple[Array, ...]) -> tuple[Work, Work]:
        """A call on arrays in the GPU's memory, and what waits for it."""
        compiled = self.compiled(case, arrays)
        if case.attention is None:
            bound = compiled.bind(*arrays)
            return bound, bound.synchronize
        driver = self.driver()
        made = compiled.compiled(self.gpu)
        addresses = [driver.allocate(array.nbytes, "operand") for array in (*arrays, arrays[0])]
        for address, array in zip(addresses, arrays, strict=False):
            driver.write(address, array.reshape(-1).view(np.uint8))
        code = driver.load(made.ptx, "attention.ptx")
        return lambda: driver.launch(code, made.launch, addresses), driver.synchronize

    def driver(self) -> Any:
        """Of the GPU."""
        from mlirhlo.runtime.cuda.devices import real_driver

        return real_driver(self.gpu)

    def copy(self, size: int) -> tuple[Work, Work]:
        """A copy inside the GPU's memory."""
        driver = self.driver()
        source, target = (driver.allocate(size, "copy") for _ in range(2))
        return lambda: driver.copy(source, target, size), driver.synchronize


class Jax:
    """XLA:GPU. Raises ImportError or RuntimeError where JAX has no GPU."""

    def __init__(self) -> None:
        self.jax = importlib.import_module("jax")
        self.numpy = importlib.import_module("jax.numpy")
        self.device = self.jax.devices("gpu")[0]

    def work(self, case: Case, arrays: tuple[Array, ...]) -> tuple[Work, Work]:
        """As of `Ours`; attention is cuDNN's."""
        held = [self.jax.device_put(array, self.device) for array in arrays]
        if case.attention is not None:
            causal = case.attention

            def function(*given: Any) -> Any:
                q, k, v = (self.numpy.swapaxes(one, 0, 1)[None] for one in given)
                call = self.jax.nn.dot_product_attention
                return call(q, k, v, is_causal=causal, implementation="cudnn")
        else:

            def function(*given: Any) -> Any:
                return case.function(self.numpy, *given)

        run, last = self.jax.jit(function), [None]

        def work() -> object:
            last[0] = run(*held)
            return last[0]

        return work, lambda: self.jax.block_until_ready(last[0])


class Cublas:
    """cuBLAS by ctypes, in the context of our driver. Raises OSError where it is not installed."""

    _BF16, _F32_SUMS = 14, 68
    """cudaDataType and cublasComputeType_t."""

    def __init__(self, ours: Ours) -> None:
        path = nvidia_file("lib/libcublas.so*")
        self._library = ctypes.CDLL("libcublas.so" if path is None else str(path))
        self._driver = ours.driver()
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        stream = ctypes.c_void_p(self._driver.stream.handle)
        self._call("cublasSetStream_v2", self._handle, stream)

    def _call(self, name: str, *arguments: Any) -> None:
        self._driver.call(name, getattr(self._library, name), *arguments)

    def work(self, case: Case, arrays: tuple[Array, ...]) -> tuple[Work, Work] | None:
        """As of `Ours`; None for what is no product of bf16."""
        if case.flops is None or case.attention is not None or case.dtype is not BF16:
            return None
        (m, k), n = arrays[0].shape, arrays[1].shape[1]
        driver, address = self._driver, ctypes.c_void_p
        a, b, c = (driver.allocate(2 * size, "factor") for size in (m * k, k * n, m * n))
        for at, array in zip((a, b), arrays, strict=True):
            driver.write(at, array.reshape(-1).view(np.uint8))
        one, zero = ctypes.c_float(1), ctypes.c_float(0)

        def work() -> None:
            # In its order of columns, the transpose: bᵀ aᵀ.
            kind = self._BF16
            self._call(
                "cublasGemmEx",
                *(self._handle, 0, 0, n, m, k, ctypes.byref(one)),
                *(address(b), kind, n, address(a), kind, k, ctypes.byref(zero)),
                *(address(c), kind, n, self._F32_SUMS, -1),
            )

        return work, driver.synchronize


def peers(ours: Ours) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Who is there, and why others are not."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, make in (("XLA:GPU", Jax), ("cuBLAS", lambda: Cublas(ours))):
        try:
            found[name] = make()
        except (ImportError, OSError, RuntimeError, HloError) as problem:
            missing[name] = str(problem).splitlines()[0]
    return found, missing


__all__ = ["LARGE", "Cublas", "Jax", "Ours", "peers"]
