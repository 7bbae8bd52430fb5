"""rng: ranges, moments, seeds; the module's random state."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module
from mlirhlo.interp.machine import Machine


def draw(type_: str, distribution: str, a: object, b: object, seed: int = 1) -> np.ndarray:
    text = (
        f"HloModule m\nENTRY e {{ a = {type_}[] parameter(0)\nb = {type_}[] parameter(1)\n"
        f"ROOT r = {type_}[2000] rng(a, b), distribution={distribution} }}\n"
    )
    dtype = PRIMITIVE_TYPES[type_].dtype
    given = [np.asarray(a).astype(dtype), np.asarray(b).astype(dtype)]
    return run_module(parse_module(text), given, machine=Machine(seed=seed), check=True)[0]


@pytest.mark.parametrize("type_", ["f32", "f64", "f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_uniform_floats_stay_below_the_end(type_: str) -> None:
    values = draw(type_, "rng_uniform", -1.0, 3.0).astype(np.float64)
    assert values.min() >= -1
    assert values.max() < 3
    assert abs(values.mean() - 1) < 0.15


@pytest.mark.parametrize(
    "type_", ["s2", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"]
)
def test_uniform_integers_take_every_value(type_: str) -> None:
    low, high = (-1, 1) if type_ == "s2" else (1, 7)
    values = draw(type_, "rng_uniform", low, high).astype(np.int64)
    assert set(values.tolist()) == set(range(low, high))


def test_uniform_over_a_whole_range() -> None:
    values = draw("u64", "rng_uniform", 0, (1 << 64) - 1)
    assert values.max() > np.uint64(1 << 63) > values.min()


def test_normal_has_its_mean_and_deviation() -> None:
    values = draw("f32", "rng_normal", 5.0, 2.0)
    assert abs(values.mean() - 5) < 0.2
    assert abs(values.std() - 2) < 0.2


def test_complex_numbers_have_two_parts() -> None:
    values = draw("c64", "rng_uniform", 0, 1 + 2j)
    assert values.real.max() < 1 < values.imag.max() < 2


def test_seeds_repeat() -> None:
    first, again, other = (draw("f32", "rng_normal", 0.0, 1.0, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_normal_integers() -> None:
    with pytest.raises(HloError, match="HLO0355"):
        draw("s32", "rng_normal", 0, 1)


def test_state_moves_on() -> None:
    text = (
        "HloModule m\nENTRY e {\n a = u64[2] rng-get-and-update-state(), delta=5\n"
        " b = u64[2] rng-get-and-update-state(), delta=1, control-predecessors={a}\n"
        " ROOT t = (u64[2], u64[2]) tuple(a, b)\n}\n"
    )
    first, second = run_module(parse_module(text), [])
    assert first.tolist() == [0x7012395, 0]
    assert second.tolist() == [0x7012395 + 5, 0]
