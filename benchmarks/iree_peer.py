"""IREE as a second peer of `cpu.py`: programs compiled for this processor, called on its own arrays.

Needs `pip install iree-base-compiler iree-base-runtime`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

LIMIT_S = 20
"""The longest that a run may take."""


def is_installed() -> bool:
    """Whether both packages are there."""
    if importlib.util.find_spec("iree") is None:
        return False
    return all(importlib.util.find_spec(f"iree.{part}") for part in ("compiler", "runtime"))


def compiled(
    stablehlo: str, inputs: Sequence[Any], threads: int
) -> tuple[Callable[[], Any], float] | None:
    """A run that waits for its results, and the processor time that compiling took.

    None where IREE does not take the program, as with ops or versions newer than it, or does not end.
    """
    import iree.compiler as compiler  # pyright: ignore[reportMissingImports]

    start = sum(os.times()[:4])  # it compiles in a process of its own
    try:
        with quiet():
            code = compiler.compile_str(
                stablehlo,
                target_backends=["llvm-cpu"],
                input_type="stablehlo",
                extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
            )
    except compiler.CompilerToolError:
        return None
    seconds = sum(os.times()[:4]) - start
    if not ends(code, inputs):
        return None
    return loaded(code, inputs, threads), seconds


def loaded(code: bytes, inputs: Sequence[Any], threads: int) -> Callable[[], Any]:
    """A run of compiled code."""
    import iree.runtime as runtime  # pyright: ignore[reportMissingImports]

    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    context = runtime.SystemContext(config=config)
    module = runtime.VmModule.copy_buffer(context.instance, code)
    context.add_vm_module(module)
    function = context.modules[module.name]["main"]
    arrays = [runtime.asdevicearray(config.device, x) for x in inputs]

    def run() -> Any:
        # Results are on the host, and done, when the call comes back.
        return function(*arrays)

    return run


def ends(code: bytes, inputs: Sequence[Any]) -> bool:
    """Whether a run ends within `LIMIT_S`, tried in another process: its sort takes quadratic time."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "code").write_bytes(code)
        with Path(folder, "inputs").open("wb") as file:
            pickle.dump([np.asarray(x) for x in inputs], file)
        try:
            subprocess.run([sys.executable, __file__, folder], timeout=LIMIT_S, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return False
    return True


def outputs(run: Callable[[], Any]) -> list[Any]:
    """Results of one run, flat."""
    found = run()
    parts = found if isinstance(found, (tuple, list)) else [found]
    return [part.to_host() for part in parts]


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what the compiler writes to the error stream."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


if __name__ == "__main__":
    given = Path(sys.argv[1])
    loaded((given / "code").read_bytes(), pickle.loads((given / "inputs").read_bytes()), 1)()
