"""Windowed einsums: loops instead of collectives around dots compute the same on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlirhlo.debug.fuzz import partitioning as spmd
from mlirhlo.dialects.hlo import HloModule

ON = "threshold_for_windowed_einsum_mib=0"
OPTIONS = (
    "",
    "unroll_windowed_einsum=true",
    "bidirectional_windowed_einsum=true",
    "unroll_windowed_einsum=true bidirectional_windowed_einsum=true",
)
# Where x[b,m,k], w[b,k,n] and the result [b,m,n] are cut, and how often; the collective that goes.
FORMS = {
    "rows of x": ("m", "n", "n", "all-gather"),
    "columns of w": ("m", "n", "m", "all-gather"),
    "contracted of x": ("k", "n", "n", "all-gather"),
    "contracted of w": ("m", "k", "m", "all-gather"),
    "batch of x": ("b", "n", "n", "all-gather"),
    "batch of w": ("m", "b", "m", "all-gather"),
    "sums for rows": ("k", "k", "m", "reduce-scatter"),
    "sums for columns": ("k", "k", "n", "reduce-scatter"),
    "sums for batches": ("k", "k", "b", "reduce-scatter"),
}


def tiles(dims: str, cut: str, count: int) -> str:
    sizes = ",".join(str(count if d == cut else 1) for d in dims)
    return f"{{devices=[{sizes}]<=[{count}]}}"


def product(sizes: dict[str, int], shardings: tuple[str, str, str], count: int) -> str:
    b, m, k, n = (sizes[d] for d in "bmkn")
    return f"""HloModule m, num_partitions={count}
ENTRY main {{
  x = f32[{b},{m},{k}] parameter(0), sharding={shardings[0]}
  w = f32[{b},{k},{n}] parameter(1), sharding={shardings[1]}
  ROOT d = f32[{b},{m},{n}] dot(x, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}},
    rhs_contracting_dims={{1}}, sharding={shardings[2]}
}}
"""


def inputs_of(sizes: dict[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes.values()))
    return [rng.normal(size=[sizes[d] for d in dims]).astype(np.float32) for dims in ("bmk", "bkn")]


def opcodes(module: object) -> set[str]:
    return {op.opcode.name for op in HloModule(module).instructions}  # type: ignore[arg-type]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_each_collective_becomes_steps(form: str, options: str, count: int) -> None:
    *cuts, collective = FORMS[form]
    # Tiles that do not divide; what stays where it is is large, so that nothing else is cheaper.
    sizes = dict.fromkeys("bmkn", 2 * count - 1)
    sizes["k" if collective == "reduce-scatter" else cuts[2]] = 40 * count - 1
    places = [tiles(d, c, count) for d, c in zip(("bmk", "bkn", "bmn"), cuts, strict=True)]
    text = product(sizes, (places[0], places[1], places[2]), count)
    assert collective in opcodes(spmd.partitioned(text, count))
    found = opcodes(
        spmd.compare(text, count, inputs_of(sizes), options=f"{ON} {options}", bound=1e-4)
    )
    assert "collective-permute" in found
    assert not found & {"all-gather", "reduce-scatter", "all-reduce"}
    steps = count // 2 if "bidirectional" in options and count % 2 == 0 else count
    assert ("while" in found) == ((steps - 1) // (2 if "unroll_" in options else 1) > 1)


def test_small_arrays_and_arrays_of_several_dots_are_gathered() -> None:
    sizes = {"b": 1, "m": 8, "k": 8, "n": 8}
    places = (tiles("bmk", "m", 4), tiles("bkn", "n", 4), tiles("bmn", "n", 4))
    text = product(sizes, places, 4)
    big = "threshold_for_windowed_einsum_mib=1"
    assert "while" not in opcodes(spmd.partitioned(text, 4, options=big))
    without = f"{ON} enable_windowed_einsum_for_all_gather=false"
    assert "while" not in opcodes(spmd.partitioned(text, 4, options=without))
    twice = text.replace("ROOT d =", "d =").replace(
        "\n}",
        f"\n  e = f32[1,8,8] dot(x, w), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, "
        f"lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}, sharding={places[2]}\n"
        f"  ROOT r = f32[1,8,8] add(d, e), sharding={places[2]}\n}}",
    )
    assert "all-gather" in opcodes(spmd.partitioned(twice, 4, options=ON))
    alone = f"{ON} skip_checking_windowed_einsum_users=true"
    assert "while" in opcodes(spmd.compare(twice, 4, inputs_of(sizes), options=alone))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("b", "m"), [(3, 8), (11, 6)])
def test_tiles_that_are_not_parts_of_tiles(b: int, m: int) -> None:
    """Halves of 3 or 11 are not made of eighths: gathered first, where a cut of a cut would never be enough."""
    sizes = {"b": b, "m": m, "k": 8, "n": 1}
    half = "{devices=[2,2,1,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}"
    places = (half, "{replicated}", tiles("bmn", "b", 8))
    spmd.compare(product(sizes, places, 8), 8, inputs_of(sizes))


@st.composite
def shardings(draw: st.DrawFn, rank: int) -> str:
    """Eight devices: tiles in some dimensions, some order, copies of what is left."""
    sizes = [1] * rank
    for cut in draw(st.sampled_from(((8,), (8,), (4, 2), (2, 2), (4,), (2,), ()))):
        sizes[draw(st.integers(0, rank - 1))] *= cut
    left = 8 // math.prod(sizes)
    if left == 8:
        return "{replicated}"
    order = draw(st.sampled_from(("<=[8]", "<=[2,4]T(1,0)", "<=[2,2,2]T(2,0,1)")))
    dims = ",".join(map(str, sizes if left == 1 else (*sizes, left)))
    copies = "" if left == 1 else " last_tile_dim_replicate"
    return f"{{devices=[{dims}]{order}{copies}}}"


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_dot_of_any_shardings(data: st.DataObject) -> None:
    sizes = {d: data.draw(st.sampled_from((1, 2, 3, 4, 6, 8, 11))) for d in "bmkn"}
    places = (data.draw(shardings(3)), data.draw(shardings(3)), data.draw(shardings(3)))
    options = data.draw(st.sampled_from(OPTIONS))
    faster = data.draw(st.sampled_from(("", " choose_faster_windowed_einsum_over_mem=true")))
    text = product(sizes, places, 8)
    spmd.compare(text, 8, inputs_of(sizes), options=f"{ON} {options}{faster}", bound=1e-4)
