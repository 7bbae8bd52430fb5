"""JAX's linear algebra on the CPU: HLO texts with LAPACK calls, and what they give.

As a script: writes a pickled list of `(name, text, inputs, outputs)` to stdout.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np

Program = tuple[str, str, list[np.ndarray], list[np.ndarray]]


def programs(seed: int) -> list[Program]:
    """The programs, run by a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, str(seed)], capture_output=True, check=True, timeout=600
    )
    return pickle.loads(done.stdout)


def _main(seed: int) -> None:
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from jax import lax
    from jax._src.lax import linalg as hidden

    rng = np.random.default_rng(seed)

    def draw(dtype: Any, *shape: int) -> np.ndarray:
        x = rng.normal(size=shape)
        return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)

    found: list[Program] = []

    def add(name: str, function: Any, *inputs: np.ndarray) -> None:
        lowered = jax.jit(function).lower(*inputs)
        text = lowered.compiler_ir("hlo").as_hlo_module().to_string()
        outputs = [np.asarray(o) for o in jax.tree_util.tree_leaves(lowered.compile()(*inputs))]
        found.append((name, text, list(inputs), outputs))

    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        name = np.dtype(dtype).name
        a, tall, wide = draw(dtype, 2, 5, 5), draw(dtype, 6, 4), draw(dtype, 3, 5)
        symmetric = a + np.conj(np.swapaxes(a, -1, -2))
        positive = a @ np.conj(np.swapaxes(a, -1, -2)) + 5 * np.eye(5).astype(dtype)
        positive[1] = -positive[1]
        add(f"cholesky {name}", lax.linalg.cholesky, positive)
        add(f"lu {name}", lax.linalg.lu, a)
        add(f"qr {name}", lambda x: lax.linalg.qr(x, full_matrices=False), tall)
        add(f"qr wide {name}", lambda x: lax.linalg.qr(x, full_matrices=True), wide)
        add(f"geqp3 {name}", lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False), tall)
        add(f"eigh {name}", lambda x: lax.linalg.eigh(x, symmetrize_input=False), symmetric)
        add(f"svd {name}", lambda x: lax.linalg.svd(x, full_matrices=True), tall)
        add(f"svd thin {name}", lambda x: lax.linalg.svd(x, full_matrices=False), wide)
        add(f"svd values {name}", lambda x: lax.linalg.svd(x, compute_uv=False), tall)
        add(f"eig {name}", lax.linalg.eig, a)
        add(f"hessenberg {name}", lax.linalg.hessenberg, a)
        add(f"schur {name}", lax.linalg.schur, a)
        add(f"tridiagonal {name}", lambda x: lax.linalg.tridiagonal(x, lower=True), symmetric)
        add(
            f"tridiagonal upper {name}", lambda x: lax.linalg.tridiagonal(x, lower=False), symmetric
        )
        add(
            f"triangular_solve {name}",
            lambda x, y: lax.linalg.triangular_solve(
                x, y, left_side=False, lower=True, transpose_a=True, conjugate_a=True
            ),
            a,
            draw(dtype, 2, 3, 5),
        )
        diagonals = [draw(dtype, 2, 6), draw(dtype, 2, 6) + 4, draw(dtype, 2, 6)]
        diagonals = [d.astype(dtype) for d in diagonals]
        diagonals[0][:, 0], diagonals[2][:, -1] = 0, 0
        add(f"gtsv {name}", lax.linalg.tridiagonal_solve, *diagonals, draw(dtype, 2, 6, 2))
        reflectors, taus = (np.asarray(x) for x in hidden.geqrf(jnp.asarray(tall)))
        add(f"orgqr {name}", lax.linalg.householder_product, reflectors, taus)
        add(
            f"ormqr {name}",
            lambda x, y, z: hidden.ormqr(x, y, z, left=True, transpose=True),
            reflectors,
            taus,
            draw(dtype, 6, 3),
        )
    sys.stdout.buffer.write(pickle.dumps(found))


if __name__ == "__main__":
    _main(int(sys.argv[1]))
