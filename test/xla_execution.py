"""Execution on the real XLA:CPU, and inputs worth executing on: special values of every type.

Programs run in a child process, since XLA aborts on some of them; fast math and excess precision
are off, so that every op rounds to its own type. `SEED` and `SIZE` come from the environment
(`MLIRHLO_SEED`, `MLIRHLO_DIFFERENTIAL`), and pytest prints them with a failing test.
"""

from __future__ import annotations

import atexit
import importlib
import os
import pickle
import select
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import SEED as SEED

from mlirhlo.dialects.hlo.element_types import Kind, PrimitiveType

SIZE = int(os.environ.get("MLIRHLO_DIFFERENTIAL", "1"))
"""Multiplies the number of random cases; 1 in the suite, 20 or more for a search."""

OVERRIDES = [("xla_allow_excess_precision", False), ("xla_cpu_enable_fast_math", False)]


@dataclass(frozen=True, slots=True)
class Refusal:
    """XLA does not take a program, or died of it."""

    reason: str


class XlaCpu:
    """The child process; one for a session, started again when XLA takes it down."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None

    def run(self, text: str, inputs: Sequence[np.ndarray], timeout_s: float = 120) -> Any:
        """Outputs of an HLO text, or a `Refusal`."""
        child = self.child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        back = child.stdout.fileno()
        try:
            _send(child.stdin.fileno(), pickle.dumps((text, [_plain(a) for a in inputs])))
            ready, _, _ = select.select([back], [], [], timeout_s)
            if not ready:
                raise EOFError("timeout")
            answer = pickle.loads(_receive(back))
        except (EOFError, BrokenPipeError) as problem:
            self.stop()
            return Refusal(f"died: {problem}")
        if isinstance(answer, str):
            return Refusal(answer)
        return [_numpy(a) for a in answer]

    def stop(self) -> None:
        """Ends the child."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None

    def _start(self) -> subprocess.Popen[bytes]:
        """A process of its own and no fork: JAX may be running in this one."""
        self.child = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        atexit.register(self.child.kill)
        return self.child


XLA = XlaCpu()


def _plain(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes()


def _numpy(plain: tuple[str, tuple[int, ...], bytes]) -> np.ndarray:
    name, shape, data = plain
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    return np.frombuffer(data, dtype).reshape(shape)


def _send(file: int, data: bytes) -> None:
    data = struct.pack("<q", len(data)) + data
    while data:
        data = data[os.write(file, data) :]


def _receive(file: int) -> bytes:
    def take(count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = os.read(file, min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError("the process ended")
            data += piece
        return data

    return take(struct.unpack("<q", take(8))[0])


def _serve(source: int, target: int) -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    _hlo, _jax = importlib.import_module("jaxlib._hlo"), importlib.import_module("jaxlib._jax")
    # JAX hands LAPACK's routines to XLA when it lowers a call of one; here nothing does.
    importlib.import_module("jaxlib.lapack")._lapack.initialize()
    device = jax.devices("cpu")[0]
    options = _jax.CompileOptions()
    options.env_option_overrides = OVERRIDES
    while True:
        try:
            text, inputs = pickle.loads(_receive(source))
        except EOFError:
            return
        try:
            module = _hlo.hlo_module_from_text(text)
            computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
            mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
            executable = device.client.compile_and_load(mlir, _jax.DeviceList((device,)), options)
            given = [jax.device_put(_numpy(a), device) for a in inputs]
            parts = executable.execute_sharded(given).disassemble_into_single_device_arrays()
            answer: Any = [_plain(np.asarray(part[0])) for part in parts]
        except Exception as problem:  # noqa: BLE001  # whatever XLA raises is the answer
            answer = str(problem)[:2000]
        _send(target, pickle.dumps(answer))


# ---------------------------------------------------------------- programs


def program(lines: Sequence[str], parameters: Sequence[str], computations: str = "") -> str:
    """A module of instructions `shape opcode(p0, …)`, whose results are the outputs in order."""
    text = ["HloModule m", computations, "ENTRY e {"]
    text += [f"  p{i} = {shape} parameter({i})" for i, shape in enumerate(parameters)]
    text += [f"  r{i} = {line}" for i, line in enumerate(lines)]
    results = ", ".join(f"r{i}" for i in range(len(lines)))
    shapes = ", ".join(line.split(" ", 1)[0] for line in lines)
    text += [f"  ROOT t = ({shapes}) tuple({results})", "}"]
    return "\n".join(text) + "\n"


def run_all(
    lines: Sequence[str],
    parameters: Sequence[str],
    inputs: Sequence[np.ndarray],
    computations: str = "",
) -> list[Any]:
    """What XLA gives for every instruction; a `Refusal` for those it does not take.

    All run in one program; when XLA refuses that, halves are tried.
    """
    if not lines:
        return []
    answer = XLA.run(program(lines, parameters, computations), inputs)
    if not isinstance(answer, Refusal):
        return list(answer)
    if len(lines) == 1:
        return [answer]
    half = len(lines) // 2
    return [
        *run_all(lines[:half], parameters, inputs, computations),
        *run_all(lines[half:], parameters, inputs, computations),
    ]


# ---------------------------------------------------------------- values


def random_values(
    type_: PrimitiveType, shape: Sequence[int], rng: np.random.Generator
) -> np.ndarray:
    """Random values of moderate size; integers over their whole range."""
    shape = tuple(shape)
    if type_.kind is Kind.PRED:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if type_.is_integer:
        raw = rng.integers(0, 256, (*shape, type_.byte_size), dtype=np.uint8)
        words = raw.view(f"{'i' if type_.is_signed else 'u'}{type_.byte_size}").reshape(shape)
        return words.astype(type_.dtype)
    if type_.is_complex:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(type_.dtype)
    wide = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, shape))
    return wide.astype(np.float32 if type_.bits < 32 else type_.dtype).astype(type_.dtype)


# ---------------------------------------------------------------- comparing


def differences(
    got: np.ndarray, want: np.ndarray, type_: PrimitiveType, ulps: float = 0.0, floor: float = 0.0
) -> np.ndarray:
    """Flat indices where `got` is not `want`.

    Integers and pred equal; floats within `ulps` units of the last place (or `floor` absolutely),
    NaN with NaN, zeros of the same sign when exact; a denormal may be zero on XLA's side.
    """
    if type_.is_complex:
        return _complex_differences(got, want, type_, ulps, floor)
    if not type_.is_float:
        return (
            np.flatnonzero(got.astype(np.int64) != want.astype(np.int64))
            if (type_.bits < 64)
            else np.flatnonzero(got != want)
        )
    import ml_dtypes

    info = ml_dtypes.finfo(type_.dtype)
    a, b = got.astype(np.float64).reshape(-1), want.astype(np.float64).reshape(-1)
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(b), float(info.smallest_normal)) * float(info.eps)
        near = np.abs(a - b) <= ulps * unit + floor
        same = (a == b) & ((ulps > 0) | (np.signbit(a) == np.signbit(b)) | (a != 0))
        single = 2.0**-126 if type_.bits < 64 else float(info.smallest_normal)
        flushed = (b == 0) & (np.abs(a) < single)
        return np.flatnonzero(~(near & (ulps > 0) | same | flushed | (np.isnan(a) & np.isnan(b))))


def _complex_differences(
    got: np.ndarray, want: np.ndarray, type_: PrimitiveType, ulps: float, floor: float
) -> np.ndarray:
    """Measured by the distance in the plane; infinite and NaN results only have to be so both."""
    a, b = got.astype(np.complex128).reshape(-1), want.astype(np.complex128).reshape(-1)
    eps = float(np.finfo(type_.real.dtype).eps)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= max(ulps, 1.0) * eps * np.abs(b) + floor
    return np.flatnonzero(~near & (np.isfinite(a) | np.isfinite(b)))


if __name__ == "__main__":
    # What XLA prints goes nowhere; answers alone go back.
    answers = os.dup(1)
    os.dup2(2, 1)
    _serve(0, answers)
