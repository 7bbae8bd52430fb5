"""JAX's sparse matrices on the CPU: products by its own library, against what that gives."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

jax = pytest.importorskip("jax")

from jax.experimental import sparse  # noqa: E402

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("unused", [0, 3])
@pytest.mark.parametrize("width", [(), (3,)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "complex64"])
def test_rows_times_dense(dtype: str, width: tuple[int, ...], unused: int) -> None:
    """The call takes where rows begin before the columns, in the order of neither `BCSR` nor cuSPARSE."""
    rng = np.random.default_rng(0)
    full = (rng.normal(size=(7, 5)) * 4 * (rng.random((7, 5)) < 0.4)).astype(dtype)
    matrix = sparse.BCSR.fromdense(full, nse=int(np.count_nonzero(full)) + unused)
    other = (rng.normal(size=(5, *width)) * 4).astype(dtype)
    product = jax.jit(lambda a, b: a @ b)
    text = product.lower(matrix, other).compiler_ir("hlo").as_hlo_text()
    assert "cpu_csr_sparse_dense_ffi" in text
    module = mlirhlo.parse(text)
    given = [np.asarray(a) for a in (matrix.data, matrix.indices, matrix.indptr, other)]
    wanted = np.asarray(product(matrix, other))
    for run in (module, mlirhlo.compile(module)):
        np.testing.assert_allclose(run(*given), wanted, rtol=1e-5, atol=1e-5)
