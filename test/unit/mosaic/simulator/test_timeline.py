"""The timeline of a simulated run, against arithmetic and against cycles that others measured on a v4."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from browser import browser, needs_browser

from mlirhlo import mosaic as pl
from mlirhlo.cli.mosaic_run import main
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic import lax
from mlirhlo.mosaic import tpu as pltpu
from mlirhlo.mosaic.timeline import CHIPS
from mlirhlo.mosaic.timeline.channels import Channel

X = np.zeros((32768, 128), np.float32)
HBM = pl.BlockSpec(memory_space=pl.ANY)
# Cycles on a v4, of the tutorial that docs/kernel-timeline.md names: buffers, rows of a tile.
MEASURED = {
    ("one", 512): 102958,
    ("inputs", 512): 67660,
    ("both", 512): 67929,
    ("both", 1024): 53147,
    ("both", 2048): 43872,
}


def streamed(buffers: str, rows: int) -> Any:
    """2x + 1 through tiles, with copies written out."""
    tiles = len(X) // rows

    def kernel(x_hbm: Any, o_hbm: Any, x_vmem: Any, o_vmem: Any, x_sem: Any, o_sem: Any) -> None:
        def at(tile: Any) -> Any:
            return pl.ds(pl.multiple_of(tile * rows, rows), rows)

        def load(tile: Any, slot: Any) -> Any:
            return pltpu.make_async_copy(x_hbm.at[at(tile)], x_vmem.at[slot], x_sem.at[slot])

        def store(tile: Any, slot: Any) -> Any:
            return pltpu.make_async_copy(o_vmem.at[slot], o_hbm.at[at(tile)], o_sem.at[slot])

        def body(tile: Any, carry: Any) -> Any:
            slot = 0 if buffers == "one" else lax.rem(tile, 2)
            out = slot if buffers == "both" else 0
            if buffers == "one":
                load(tile, 0).start()
            load(tile, slot).wait()
            if buffers != "one":
                pl.when(tile + 1 < tiles)(lambda: load(tile + 1, 1 - slot).start())
            if buffers == "both":
                pl.when(tile >= 2)(lambda: store(tile - 2, slot).wait())
            o_vmem[out] = x_vmem[slot] * 2.0 + 1.0
            store(tile, out).start()
            if buffers != "both":
                store(tile, 0).wait()
            return carry

        if buffers != "one":
            load(0, 0).start()
        lax.fori_loop(0, tiles, body, 0)
        if buffers == "both":
            store(tiles - 2, 0).wait()
            store(tiles - 1, 1).wait()

    return pl.kernel_call(
        kernel,
        X,
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=[
            *[pltpu.VMEM((2, rows, 128), np.float32)] * 2,
            *[pltpu.SemaphoreType.DMA((2,))] * 2,
        ],
        name="streamed",
    )


def blocked(rows: int = 512, **more: Any) -> Any:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0 + 1.0

    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    return pl.kernel_call(
        kernel, X, grid=(len(X) // rows,), in_specs=[spec], out_specs=spec, **more
    )


@pytest.mark.parametrize(("buffers", "rows"), MEASURED)
def test_cycles_are_near_those_of_a_v4(buffers: str, rows: int) -> None:
    taken = streamed(buffers, rows).lower(X).timeline(X, generation="v4")
    assert taken.cycles == pytest.approx(MEASURED[buffers, rows], rel=0.10)


def test_blocks_of_a_grid_are_fetched_ahead() -> None:
    """The compiler's pipeline is double buffering by hand."""
    taken = blocked().lower(X).timeline(X, generation="v4")
    by_hand = streamed("both", 512).lower(X).timeline(X, generation="v4")
    assert taken.cycles == pytest.approx(by_hand.cycles, rel=0.02)
    (core,) = taken.cores
    assert core.moved == {"in": X.nbytes, "out": X.nbytes}
    assert core.computed + core.stalled == pytest.approx(taken.cycles)
    assert core.flops == 2 * X.size
    copies = [event for event in core.events if event.kind == "copy"]
    assert len(copies) == 128
    assert all(event.begin < event.end <= taken.cycles for event in copies)


def test_one_buffer_hides_nothing() -> None:
    once = pl.BlockSpec((512, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] * 2.0 + 1.0

    call = pl.kernel_call(kernel, X, grid=(64,), in_specs=[once], out_specs=once)
    taken = call.lower(X).timeline(X, generation="v4")
    assert taken.cycles == pytest.approx(MEASURED["one", 512], rel=0.10)


@pytest.mark.parametrize("generation", CHIPS)
def test_a_large_product_reaches_the_matrix_units(generation: str) -> None:
    chip = CHIPS[generation]
    x = np.zeros((1024, 1024), np.float32)

    def kernel(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
        o_ref[...] = lax.dot(x_ref[...], y_ref[...])

    taken = pl.kernel_call(kernel, x).lower(x, x).timeline(x, x, generation=generation)
    (core,) = taken.cores
    assert core.matrix_flops == 2 * 1024**3
    assert core.units["mxu"] == 1024**3 / chip.macs
    what, best = taken.roofline
    assert what in ("matrix units", "HBM")
    assert 0 < best < taken.cycles


def test_bandwidth_is_shared_and_latency_is_not() -> None:
    channel = Channel(10.0)
    first, second = channel.start(0, 100, 1000), channel.start(0, 100, 1000)
    third = channel.start(0, 100, 0)
    assert (first.finish(), second.finish(), third.finish()) == (300, 300, 100)
    late = channel.start(300, 50, 100)
    assert late.finish() == 360


def test_a_neighbour_is_waited_for() -> None:
    def kernel(x_ref: Any, o_ref: Any, sent: Any, arrived: Any) -> None:
        other = 1 - lax.axis_index("x")
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id=other)
        pl.semaphore_wait(barrier, 1)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, arrived, other)
        copy.start()
        copy.wait()

    x = np.arange(2 * 8 * 128, dtype=np.float32).reshape(2, 8, 128)
    call = pl.kernel_call(
        kernel,
        pl.ShapeDtypeStruct((8, 128), np.float32),
        in_specs=[HBM],
        out_specs=HBM,
        scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
        mesh={"x": 2},
        compiler_params=pltpu.CompilerParams(collective_id=0),
    )
    types = [pl.ShapeDtypeStruct((8, 128), np.float32)]
    taken = call.lower(*types).timeline(x, generation="v5p")
    chip = CHIPS["v5p"]
    assert [core.device for core in taken.cores] == [0, 1]
    for core in taken.cores:
        assert core.moved == {"remote": 4096}
        # A signal, then a copy: a hop each.
        assert core.now > 2 * chip.cycles(chip.link_seconds)
    assert "device 1 core 0" in taken.summary()


def test_a_trace_names_lines_and_nests_nothing(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    blocked(timeline=str(file), target="v6e")(X)
    trace = json.loads(file.read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    assert trace["otherData"]["generation"] == "v6e"
    tracks: dict[int, list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            tracks.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(spans))
    computed = [event for event in events if event.get("cat") == "compute"]
    assert len(computed) == 64
    assert "test_timeline.py" in computed[0]["args"]["source"]


def test_names_are_escaped_in_a_picture(tmp_path: Path) -> None:
    taken = blocked(name="a").lower(X).timeline(X)
    taken.name = "<script>&"
    file = tmp_path / "t.svg"
    taken.write(str(file))
    root = ET.fromstring(file.read_text())
    texts = [item.text or "" for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("<script>& on v5e")
    bars = [item for item in root.iter("{http://www.w3.org/2000/svg}rect") if len(item)]
    assert len(bars) > 128
    with pytest.raises(HloError, match=r"\.json or \.svg") as caught:
        taken.write(str(tmp_path / "t.txt"))
    assert caught.value.code == "HLO0754"


def test_a_run_without_one_has_no_clock() -> None:
    from mlirhlo.mosaic.interpreter import Kernel

    kernel = Kernel(blocked().lower(X).module)
    kernel.run([X], [(X.shape, X.dtype)])
    assert not kernel._timed  # pyright: ignore[reportPrivateUsage]


def test_the_tool_prints_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "k.mlir"
    kernel.write_text(blocked().as_text(X))
    arrays = ["--operands=f32[32768,128]", "--results=f32[32768,128]"]
    file = tmp_path / "t.svg"
    assert main([str(kernel), *arrays, f"--timeline={file}", "--target=v4"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"kernel on v4, modelled: \d+ cycles of 1.05 GHz", out)
    assert "wait for x_ref" in out
    assert file.read_text().startswith("<svg")
    assert main([str(kernel), *arrays, "--timeline=-", "--target=v3"]) == 1
    assert "HLO0749" in capsys.readouterr().err


@needs_browser
@pytest.mark.slow
def test_a_browser_draws_the_picture(tmp_path: Path) -> None:
    file = tmp_path / "t.svg"
    blocked().lower(X).timeline(X).write(str(file))
    with browser(tmp_path / "profile") as page:
        page.driver.get(file.as_uri())
        assert page.run("return document.documentElement.tagName") == "svg"
        widths = page.run(
            "return [...document.querySelectorAll('rect')].map(r => r.getBoundingClientRect().right)"
        )
        assert len(widths) > 128
        page.screenshot(tmp_path / "t.png")
        assert max(widths) <= page.run("return document.documentElement.width.baseVal.value") + 1
