"""Resident blocks, and the modelled time of launches."""

from __future__ import annotations

import pytest

from mlirhlo.lowering.gpu.devices import device
from mlirhlo.simulator.performance import (
    START_NS,
    Resources,
    modelled_time,
    occupancy,
    resources,
)
from mlirhlo.simulator.report import Figures, Traffic


@pytest.mark.parametrize(
    ("gpu", "threads", "registers", "shared", "blocks", "limit"),
    [
        ("a100", 256, 32, 0, 8, "threads"),
        ("a100", 256, 255, 0, 1, "registers"),
        ("a100", 32, 32, 0, 32, "blocks"),
        ("a6000", 1024, 32, 0, 1, "threads"),
        ("h100", 128, 64, 100 << 10, 2, "shared memory"),
        ("h100", 128, 168, 0, 3, "registers"),
        ("h100", 128, 168, 227 << 10, 1, "shared memory"),
        ("h100", 1024, 128, 0, 0, "registers"),
        ("rtx5090", 64, 16, 0, 24, "threads"),
    ],
)
def test_resident_blocks(
    gpu: str, threads: int, registers: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy(device(gpu), threads, Resources(registers, shared))
    assert (found.blocks, found.limit) == (blocks, limit)


FULL = occupancy(device("h100"), 256, Resources(32, 0))
COPY = Figures(
    warp_instructions=10_000_000,
    global_memory=Traffic(requests=2 << 20, sectors=32 << 20),
    units={"memory": float(64 << 20)},
    warps=1 << 20,
    buffer_bytes=1 << 30,
)


def test_a_large_copy_takes_what_memory_takes() -> None:
    time = modelled_time(device("h100"), 1 << 17, COPY, FULL)
    assert time.bound == "memory"
    assert time.nanoseconds - START_NS == pytest.approx(2**30 / 3352, rel=0.01)


def test_scattered_sectors_pass_the_cache_again() -> None:
    many = COPY + Figures(global_memory=Traffic(sectors=32 << 22))
    assert modelled_time(device("h100"), 1 << 17, many, FULL).bound == "cache"


def test_one_warp_waits() -> None:
    loads = Figures(
        warp_instructions=1000,
        global_memory=Traffic(requests=100, sectors=400),
        warps=1,
        buffer_bytes=12800,
    )
    time = modelled_time(device("h100"), 1, loads, FULL)
    assert time.bound == "latency"


def test_products_take_matrix_units() -> None:
    products = Figures(warp_instructions=1 << 20, units={"matrix": 2.0**40}, warps=1 << 12)
    time = modelled_time(device("h100"), 1320, products, FULL)
    assert time.bound == "instructions"
    assert 2**41 / time.nanoseconds / 1000 == pytest.approx(1000, rel=0.1)  # TFLOP/s


PTX = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 %r<4>; .reg .b64 %x<4>; .shared .align 4 .b8 tile[512];
ld.param.u64 %x1, [p]; ld.global.u32 %r1, [%x1]; ld.global.u32 %r2, [%x1+4];
add.u32 %r3, %r1, %r2; st.global.u32 [%x1], %r3; st.shared.u32 [tile], %r1;
ret;
}
"""


def test_registers_are_estimated_without_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlirhlo.lowering.gpu.ptx.nvidia_program", lambda name: None)
    assert resources(PTX, device("h100"), {"k": 100}) == {"k": Resources(16, 612)}
