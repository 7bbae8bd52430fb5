"""GPUs by name and by XLA's description of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu.devices import DEVICES, device, read_device, write_device


@pytest.mark.parametrize("known", DEVICES.values(), ids=DEVICES)
def test_written_device_reads_back(known):
    read = read_device(write_device(known))
    assert replace(read, clock_rate_ghz=known.clock_rate_ghz) == known
    assert read.clock_rate_ghz == pytest.approx(known.clock_rate_ghz)
    for name in (known.name, known.sm, known.description, known.sm.rstrip("a")):
        assert device(name) == known


def test_description_by_xla():
    text = """
    gpu_device_info { core_count: 7 cuda_compute_capability { major: 9 } made_up: 3 }
    platform_name: "CUDA" device_description_str: "A part of one"
    """
    read = read_device(text)
    assert (read.core_count, read.description, read.sm) == (7, "A part of one", "sm_90a")
    assert read.l2_cache_size == device("h100").l2_cache_size


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: device("h1000"), "HLO0800"),
        (lambda: read_device("core_count: {", "gpu.pbtxt"), "HLO0801"),
        (lambda: read_device('platform_name: "CUDA"'), "HLO0801"),
        (
            lambda: read_device("gpu_device_info { cuda_compute_capability { major: 3 } }"),
            "HLO0801",
        ),
    ],
)
def test_refused(call, code):
    with pytest.raises(HloError, match=code):
        call()
