"""Reads of memory nobody wrote: allowed where a select or a mask discards them, else HLO0731."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirhlo import mosaic as pl
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import numpy as jnp
from mlirhlo.mosaic import tpu as pltpu

X = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)


def rows() -> Any:
    return lax.broadcasted_iota(jnp.int32, (8, 128), 0)


def selected(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(rows() < 100, x[...], s[...])


def selected_later(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(
        pl.program_id(0) == 0, x[...], jnp.exp(s[...].astype(jnp.bfloat16)).astype(jnp.float32)
    )


def selected_moved(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(rows() >= 0, x[...], jnp.broadcast_to(s[0:1, :].reshape(1, 128), (8, 128)))


def selected_sum(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(rows() >= 0, x[...], jnp.sum(s[...], axis=0, keepdims=True))


def masked_off(x: Any, o: Any, s: Any) -> None:
    o[...] = x[...]
    pltpu.store(o, s[...], mask=rows() > 100)


def put_back(x: Any, o: Any, s: Any) -> None:
    @pl.loop(0, 2)
    def _(half: Any) -> None:
        mask = (rows() >= half * 4) & (rows() < half * 4 + 4)
        o[...] = jnp.where(mask, x[...], o[...])


def in_a_branch(x: Any, o: Any, s: Any) -> None:
    old = lax.cond(pl.program_id(0) == 0, lambda: s[...], lambda: x[...])
    o[...] = jnp.where(rows() >= 0, x[...], old)


def half_selected(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(rows() < 4, x[...], s[...])


def copied(x: Any, o: Any, s: Any) -> None:
    o[...] = s[...]


def accumulated(x: Any, o: Any, s: Any) -> None:
    s[...] += x[...]
    o[...] = s[...]


def times_zero(x: Any, o: Any, s: Any) -> None:
    o[...] = x[...] + s[...] * 0.0


def summed(x: Any, o: Any, s: Any) -> None:
    o[...] = x[...] + jnp.sum(s[...], axis=0, keepdims=True)


def decided(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(s[...] > 0, x[...], x[...])


def shifted(x: Any, o: Any, s: Any) -> None:
    o[...] = jnp.where(rows() >= 0, x[...], 0)
    s[...] = pltpu.roll(s[...], 1, 0)


def carried(x: Any, o: Any, s: Any) -> None:
    o[...] = lax.fori_loop(0, 2, lambda _, c: c + x[...], s[...])


def chosen(x: Any, o: Any, s: Any) -> None:
    o[...] = x[...]
    pl.when(jnp.max(s[...]) > 0)(lambda: None)
    o[...] = lax.cond(s[...].max() > 0, lambda: x[...], lambda: x[...] + 1)


def call(body: Callable[..., None], **options: Any) -> Any:
    return pl.kernel_call(
        body, X, grid=(1,), scratch_shapes=[pltpu.VMEM((8, 128), np.float32)], **options
    )


@pytest.mark.parametrize(
    "body",
    [selected, selected_later, selected_moved, selected_sum, masked_off, put_back, in_a_branch],
)
def test_discarded_reads_are_no_faults(body: Callable[..., None]) -> None:
    assert np.array_equal(call(body)(X), X)


@pytest.mark.parametrize(
    "body",
    [half_selected, copied, accumulated, times_zero, summed, decided, shifted, carried, chosen],
)
def test_reads_that_come_to_something_are(body: Callable[..., None]) -> None:
    with pytest.raises(HloError, match="never written") as caught:
        call(body)(X)
    (said,) = caught.value.diagnostics
    assert said.code == "HLO0731"
    assert "uninitialized_memory='zero'" in str(said.help)
    assert "s[...]" in str(said) or "s[0:1" in str(said)


def test_zeros_may_be_read() -> None:
    zero = pl.InterpretParams(uninitialized_memory="zero")
    assert np.array_equal(call(accumulated, interpret=zero)(X), X)
