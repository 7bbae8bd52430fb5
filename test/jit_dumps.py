"""One program, compiled by JAX or by us with dumps, each time in a process of its own.

`XLA_FLAGS` are read once a process. The processes fork from one that has JAX and mlirhlo imported,
since importing takes longer than the rest.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["jax", "jax.numpy", "mlirhlo", __name__])


def jit_mlp() -> object:
    """The program by JAX, on XLA:CPU."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*")
    table = np.arange(64, dtype=np.float32).reshape(8, 8)

    def mlp(x: jax.Array, b: jax.Array) -> jax.Array:
        return jax.nn.softmax(jnp.maximum(x @ table + b, 0.0), axis=-1)

    return jax.jit(mlp)(np.ones((4, 8), np.float32), np.ones(8, np.float32)).shape


def compiled_mlp(path: str) -> object:
    """The same program by us, from a file that XLA dumped."""
    import mlirhlo

    run = mlirhlo.compile(mlirhlo.load(path), cached=False)
    return run(np.ones((4, 8), np.float32), np.ones(8, np.float32)).shape


def _run(folder: Path, flags: str, program: Path | None) -> None:
    """In the child: the shape of the result, or what went wrong, goes to `FOLDER.said`."""
    said = os.open(f"{folder}.said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.environ["XLA_FLAGS"] = f"--xla_dump_to={folder} {flags}"
    print(jit_mlp() if program is None else compiled_mlp(str(program)))
    sys.stdout.flush()


def dumped(folder: Path, flags: str, program: Path | None = None) -> str:
    """Dump to `folder` under XLA's `flags`, by us where a `program` is given; what was printed."""
    child = _CONTEXT.Process(target=_run, args=(folder, flags, program))
    child.start()
    child.join(300)
    printed = Path(f"{folder}.said").read_text()
    assert child.exitcode == 0, printed
    return printed
