"""A TPU kernel to paste: python examples/double_add.py"""

import numpy as np

from mlirhlo import mosaic as pl
from mlirhlo.mosaic import tpu_compiler


def double_add(x_ref, y_ref, o_ref):
    o_ref[...] = 2.0 * x_ref[...] + y_ref[...]


rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
x = np.ones((1024, 128), np.float32)
kernel = pl.kernel_call(double_add, x, grid=(128,), in_specs=[rows] * 2, out_specs=rows).lower(x, x)
print("runs:", np.all(kernel(x, x) == 3), np.all(kernel(x, x, platform="cpu") == 3))
print("dumps:", len(kernel.dump("dumps")), "stages, which mosaic-opt and mosaic-run read")
print("times:", kernel.timeline(x, x, generation="v5e").title)
if tpu_compiler.is_available():  # pip install jax libtpu
    print("compiles:", kernel.compile("v5e"))
