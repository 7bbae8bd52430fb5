"""Arguments made up for a module obey what its instructions demand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module
from mlirhlo.interp.fake_data import HIGH, LOW, make_fake_arguments
from mlirhlo.interp.fake_data_uses import demands_on
from mlirhlo.interp.values import mismatch

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def fake(body: str, computations: str = "", **options: Any) -> list[Any]:
    module = parse_module(f"HloModule m\n{computations}ENTRY e {{\n{body}\n}}\n")
    values = make_fake_arguments(module, **options)
    for value, parameter in zip(values, HloModule(module).entry.parameters, strict=True):
        assert mismatch(value, parameter.shape) is None
    run_module(module, values)
    return values


@pytest.mark.parametrize("type_", [t for t, row in PRIMITIVE_TYPES.items() if row.is_array])
@pytest.mark.parametrize("large_range", [False, True])
def test_every_type_has_values(type_: str, large_range: bool) -> None:
    (x,) = fake(f"ROOT p = {type_}[300] parameter(0)", large_range=large_range)
    row = PRIMITIVE_TYPES[type_]
    assert x.dtype == row.dtype
    if row.is_float:
        wide = x.astype(np.float64)
        assert not np.isnan(wide).any()
        assert np.isfinite(wide).all()
        if not large_range:
            assert np.abs(wide).max() <= 0.25
        elif row.bits >= 16:
            assert np.abs(wide).max() > 10
    assert len({str(v) for v in x.tolist()}) > 1


def test_floats_are_small() -> None:
    (x,) = fake("ROOT p = f32[1000] parameter(0)")
    assert LOW <= x.min() < LOW + 0.01
    assert HIGH - 0.01 < x.max() < HIGH


def test_integers_fill_their_type() -> None:
    (x,) = fake("ROOT p = s8[1000] parameter(0)")
    assert x.min() < -100
    assert x.max() > 100


def test_seeds_repeat_and_parameters_differ() -> None:
    body = "p = f32[5] parameter(0)\nq = f32[5] parameter(1)\nROOT r = f32[5] add(p, q)"
    a, b = fake(body, seed=1)
    again, _ = fake(body, seed=1)
    other, _ = fake(body, seed=2)
    np.testing.assert_array_equal(a, again)
    assert not np.array_equal(a, b)
    assert not np.array_equal(a, other)


def test_dynamic_slice_starts_stay_inside() -> None:
    for seed in range(20):
        _, i, j = fake(
            "x = f32[8,5] parameter(0)\ni = s32[] parameter(1)\nj = u8[] parameter(2)\n"
            "ROOT r = f32[3,5] dynamic-slice(x, i, j), dynamic_slice_sizes={3,5}",
            seed=seed,
        )
        assert 0 <= i <= 5
        assert j == 0


def test_update_starts_through_a_loop_a_tuple_and_a_fusion() -> None:
    computations = """
go { s = (s32[], f32[8], s64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT }
update { x = f32[8] parameter(0)
  k = s64[] parameter(1)
  k32 = s32[] convert(k)
  u = f32[6] constant({1,2,3,4,5,6})
  ROOT r = f32[8] dynamic-update-slice(x, u, k32) }
step { s = (s32[], f32[8], s64[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  k = s64[] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] fusion(x, k), kind=kLoop, calls=update
  ROOT t = (s32[], f32[8], s64[]) tuple(j, y, k) }
"""
    body = """
  p = (f32[8], s64[]) parameter(0)
  x = f32[8] get-tuple-element(p), index=0
  k = s64[] get-tuple-element(p), index=1
  zero = s32[] constant(0)
  s = (s32[], f32[8], s64[]) tuple(zero, x, k)
  ROOT w = (s32[], f32[8], s64[]) while(s), condition=go, body=step"""
    found = {int(fake(body, computations, seed=seed)[0][1]) for seed in range(20)}
    assert found <= {0, 1, 2}
    assert len(found) > 1


def test_gather_indices_by_component_when_they_must_be_sorted() -> None:
    _, indices = fake(
        "x = f32[9,3] parameter(0)\ni = s32[6,2] parameter(1)\n"
        "ROOT r = f32[6] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}, indices_are_sorted=true"
    )
    assert (indices >= 0).all()
    assert (indices < [9, 3]).all()
    rows = [tuple(row) for row in indices.tolist()]
    assert rows == sorted(rows)


def test_scatter_indices_are_unique_through_a_reshape() -> None:
    _, indices, _ = fake(
        "x = f32[7] parameter(0)\ni = s32[7] parameter(1)\nu = f32[7] parameter(2)\n"
        "c = s32[7,1] reshape(i)\n"
        "ROOT r = f32[7] scatter(x, c, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add",
        ADD,
    )
    assert sorted(indices.tolist()) == list(range(7))


@pytest.mark.parametrize(
    ("opcode", "type_", "want"),
    [
        ("add", "f32", 0),
        ("multiply", "f32", 1),
        ("minimum", "f32", np.inf),
        ("maximum", "bf16", -np.inf),
        ("maximum", "s8", -128),
        ("minimum", "u16", 65535),
        ("and", "pred", True),
        ("or", "pred", False),
    ],
)
def test_initial_values_are_identities(opcode: str, type_: str, want: object) -> None:
    computations = (
        f"c {{ a = {type_}[] parameter(0)\n b = {type_}[] parameter(1)\n"
        f" ROOT r = {type_}[] {opcode}(a, b) }}\n"
    )
    _, start = fake(
        f"x = {type_}[5] parameter(0)\ni = {type_}[] parameter(1)\n"
        f"ROOT r = {type_}[] reduce(x, i), dimensions={{0}}, to_apply=c",
        computations,
    )
    assert start == want


def test_sort_keys_differ() -> None:
    computations = (
        "c { a = f32[] parameter(0)\n b = f32[] parameter(1)\n x = s32[] parameter(2)\n"
        " y = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
    )
    keys, _ = fake(
        "k = f32[500] parameter(0)\nv = s32[500] parameter(1)\n"
        "ROOT r = (f32[500], s32[500]) sort(k, v), dimensions={0}, to_apply=c",
        computations,
    )
    assert len(set(keys.tolist())) == 500


def test_random_states_are_not_zero() -> None:
    module = parse_module(
        "HloModule m\nENTRY e { s = u64[2] parameter(0)\n"
        "ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=rng_philox }\n"
    )
    view = HloModule(module)
    assert demands_on([view.entry.parameters[0].output], view)[0, ()].is_nonzero
    assert (np.asarray(make_fake_arguments(module)[0]) > 0).all()


def test_tokens_and_dynamic_shapes() -> None:
    values = fake(
        "t = token[] parameter(0)\nd = f32[<=4,2] parameter(1)\nROOT r = f32[<=4,2] add-dependency(d, t)"
    )
    assert values[1].shape == (4, 2)
