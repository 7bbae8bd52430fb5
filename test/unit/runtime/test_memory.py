"""Arrays that results are written to, and arrays that no memory holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError

OVERLAPS = {
    "the same": lambda o: (o[:1024], o[:1024]),
    "partly the same": lambda o: (o[:1024], o[1000:2024]),
    "one within strides of the other": lambda o: (o[0:2048:2], o[0:1024]),
}
APART = {
    "beside": lambda o: (o[:1024], o[1024:2048]),
    "between": lambda o: (o[0:2048:2], o[1:2049:2]),
}
"""Two arrays for two results in one array."""


def two_results() -> Any:
    text = (
        "ENTRY e { x = f32[1024] parameter(0)  y = f32[1024] negate(x)  z = f32[1024] exponential(x)"
        "  ROOT t = (f32[1024], f32[1024]) tuple(y, z) }"
    )
    return mlirhlo.compile(mlirhlo.parse(text))


@pytest.mark.parametrize("pick", OVERLAPS.values(), ids=OVERLAPS)
def test_results_in_one_place_are_refused(pick: Any) -> None:
    room = np.zeros(3000, np.float32)
    with pytest.raises(HloError, match=r"HLO0303.*out 1: its memory is also that of out 0"):
        two_results()(np.ones(1024, np.float32), out=pick(room))
    assert not room.any()


@pytest.mark.parametrize("pick", APART.values(), ids=APART)
def test_results_in_parts_of_one_array(pick: Any) -> None:
    x = np.linspace(0, 1, 1024, dtype=np.float32)
    out = pick(np.zeros(3000, np.float32))
    assert two_results()(x, out=out) is out
    assert (out[0] == -x).all()
    assert np.allclose(out[1], np.exp(x))


def test_a_result_over_an_argument_is_computed_first() -> None:
    text = "ENTRY e { x = f32[512] parameter(0)  r = f32[512] reverse(x), dimensions={0}  ROOT z = f32[512] add(x, r) }"
    run, both = mlirhlo.compile(mlirhlo.parse(text)), np.arange(1024, dtype=np.float32)
    want = both[:512] + both[511::-1]
    assert (run(both[:512], out=both[1:513]) == want).all()


def test_an_array_whose_elements_are_in_one_place_takes_no_result() -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1024,), (0,))
    with pytest.raises(HloError, match=r"HLO0303.*in one place"):
        two_results()(np.ones(1024, np.float32), out=(out, np.zeros(1024, np.float32)))


@pytest.mark.parametrize(
    "shape", ["f32[1099511627776]", "f32[4294967296,1073741824]", "f32[3000000,3000000]"]
)
@pytest.mark.parametrize("platform", ["cpu", "interpreter"])
def test_arrays_that_no_memory_holds(shape: str, platform: str) -> None:
    text = f"ENTRY e {{ x = f32[] parameter(0)  y = {shape} broadcast(x), dimensions={{}}"
    text += f"  ROOT r = {shape} add(y, y) }}"
    module, x = mlirhlo.parse(text), np.float32(1)
    with pytest.raises(MemoryError):
        mlirhlo.compile(module)(x) if platform == "cpu" else module(x)


def test_an_arena_that_no_memory_holds() -> None:
    text = (
        "ENTRY e { x = f32[] parameter(0)  y = f32[4294967296,1073741824] broadcast(x), dimensions={}"
        '  c = f32[4294967296,1073741824] custom-call(y), custom_call_target="t"'
        '  ROOT r = f32[] custom-call(c), custom_call_target="t" }'
    )
    with pytest.raises(MemoryError, match="HLO0507"):
        mlirhlo.compile(mlirhlo.parse(text))
