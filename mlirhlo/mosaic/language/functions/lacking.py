"""Names of `jax.numpy` and `jax.lax` that no TensorCore has anything for, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any

from mlirhlo.mosaic.language.trace import is_tracing

_ROWS = """
sort argsort: no TensorCore sorts; compare with pltpu.roll of the values in a bitonic network, or count ranks
approx_max_k approx_min_k: use lax.top_k, which is exact
prod cumprod reduce_prod: there are no products over dimensions; multiply halves, or exp(sum(log(x)))
cummax cummin cumlogsumexp associative_scan: combine with pltpu.roll by 1, 2, 4, … under a mask
dynamic_slice dynamic_slice_in_dim dynamic_index_in_dim: values have fixed parts; load ref[pl.ds(start, size)]
dynamic_update_slice dynamic_update_slice_in_dim: values do not change; store to ref[pl.ds(start, size)]
take gather index_take: use take_along_axis within a register, a product with nn.one_hot, or one copy for each row
scatter scatter_add bincount histogram searchsorted digitize: compare with broadcasted_iota and sum, or count in SMEM
flip fliplr flipud rot90 rev: load rows by a loop, or multiply by a permutation
linalg fft: write it with products and loops
nonzero unique where_indices: sizes of values are fixed; sum a mask, or write to SMEM
float64 int64 uint64 double complex64 complex128: no TensorCore has such elements; use those of 32 bits
acos asin atan arccos arcsin arctan: Mosaic has none; atan2 gives angles
acosh asinh atanh arccosh arcsinh arctanh cbrt: Mosaic has none; write it with log, exp and sqrt
map vmap: give the call a grid, or write a loop
"""
_INSTEAD = {
    name: mend
    for names, _, mend in (line.partition(": ") for line in _ROWS.strip().splitlines())
    for name in names.split()
}


def lacking(
    module: str, known: Sequence[str], outside: Callable[[str], Any] = lambda _: None
) -> Callable[[str], Any]:
    """The `__getattr__` of a module: around kernels what `outside` has, else an `AttributeError` that says what to
    write instead.
    """

    def find(name: str) -> Any:
        found = None if is_tracing() or name.startswith("_") else outside(name)
        if found is not None:
            return found
        message = f"module {module!r} has no attribute {name!r}"
        near = get_close_matches(name, known, 1)
        if name in _INSTEAD:
            message += f": {_INSTEAD[name]}"
        elif near:
            message += f"; did you mean {near[0]!r}?"
        raise AttributeError(message)

    return find
