"""A TPU kernel in twenty lines: python examples/scaled_softmax.py"""

import time

import numpy as np

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu_compiler


def scaled_softmax(x_ref, o_ref):
    x = x_ref[...] * 0.5
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    o_ref[...] = e / e.sum(axis=1, keepdims=True)


rows = pl.BlockSpec((8, 256), lambda i: (i, 0))
x = np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)
call = pl.kernel_call(scaled_softmax, x, grid=(8,), in_specs=[rows], out_specs=rows)

kernel = call.lower(x)
print(kernel.as_text().splitlines()[0], "...")  # the module; mosaic-opt and mosaic-run read it
print(len(kernel.dump("dumps")), "stages in dumps/")
for platform in ("interpreter", "cpu"):  # every access checked; machine code
    kernel(x, platform=platform)
    begin = time.perf_counter()
    result = kernel(x, platform=platform)
    print(
        f"{platform}: {1e3 * (time.perf_counter() - begin):.3f} ms, rows sum to {result.sum(axis=1).mean():.4f}"
    )
if tpu_compiler.is_available():  # pip install jax libtpu
    print("v5e:", kernel.compile("v5e"))
