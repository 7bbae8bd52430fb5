"""Costs on described chips: chips, links, schedules, memory, what-if; XLA's counts where loops run once."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import oracle
import pytest
from support import SEED
from unit.corpus import repository_texts

from mlirhlo.analysis.cost import analyse
from mlirhlo.cli.hlo_cost import main
from mlirhlo.debug.cost import chip, chip_names, estimate
from mlirhlo.debug.cost.analysis import estimate_kernels
from mlirhlo.debug.cost.kernels import Duration, Work, duration
from mlirhlo.debug.cost.links import volume_ns
from mlirhlo.debug.cost.what_if import with_sharding, with_sizes
from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.trials.conditions import load_module
from mlirhlo.diagnostics import HloError

LAYER = """HloModule layer, is_scheduled=true, num_partitions=4
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[512,512] parameter(0), metadata={op_name="x"}
  h = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[512,512] all-reduce-start(h), replica_groups={{0,1,2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=add
  g = f32[512,512] tanh(h), metadata={source_file="f.py" source_line=3}
  d = f32[512,512] all-reduce-done(s)
  ROOT y = f32[512,512] add(g, d)
}
"""
LOOP = """HloModule loop
cond { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0  one = s32[] constant(1)
  j = s32[] add(i, one)  x = f32[64] get-tuple-element(s), index=1  y = f32[64] sine(x)
  ROOT t = (s32[], f32[64]) tuple(j, y) }
ENTRY e { x = f32[64] parameter(0)  z = s32[] constant(0)  t = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(t), condition=cond, body=body  ROOT o = f32[64] get-tuple-element(w), index=1 }
"""
H100 = chip("h100")


def test_every_chip_is_whole_and_cites_its_sources() -> None:
    assert len(chip_names()) >= 12
    for name in chip_names():
        described = chip(name)
        assert described.sources
        assert described.vector_rate("bf16") > 0
        assert described.matrix_rate("s8") >= described.matrix_rate("f32")


PUBLISHED = {
    # GB/s and GB of memory; TFLOP/s of dense products (f64, tf32, bf16, f8, s8); GB/s sent. 0: not published.
    "a100": (2039, 80, 19.5, 156, 312, 0, 624, 300),
    "h100": (3350, 80, 67, 495, 989, 1979, 1979, 450),
    "h200": (4800, 141, 67, 495, 989, 1979, 1979, 450),
    "b200": (8000, 180, 40, 1100, 2250, 4500, 4500, 900),
    "rtx4090": (1008, 24, 1.29, 82.6, 165.2, 330.3, 660.6, 0),
    "mi300x": (5300, 192, 163.4, 653.7, 1307.4, 2614.9, 2614.9, 448),
    "v4": (1200, 32, 0, 0, 275, 0, 275, 300),
    "v5e": (819, 16, 0, 0, 197, 0, 393, 200),
    "v5p": (2765, 95, 0, 0, 459, 0, 918, 600),
    "v6e": (1638, 32, 0, 0, 918, 0, 1836, 400),
    "epyc": (460.8, 0, 3.69, 0, 0, 0, 0, 0),
    "graviton": (307.2, 0, 2.66, 0, 0, 0, 0, 0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_are_those_that_vendors_publish(name: str) -> None:
    described = chip(name)
    link = described.link
    sends = link.bandwidth * (2 * len(link.mesh) if link.topology == "torus" else 1)
    rates = [described.matrix_rate(t) / 1e12 for t in ("f64", "f32", "bf16", "f8e4m3fn", "s8")]
    figures = (described.memory_bandwidth / 1e9, described.memory_bytes / 1e9, *rates, sends / 1e9)
    for figure, published in zip(figures, PUBLISHED[name], strict=True):
        # Memory is published in GB that are 2 ** 30 bytes for some chips.
        allowed = 0.08 if published == PUBLISHED[name][1] else 0.01
        assert not published or figure == pytest.approx(published, rel=allowed)


@pytest.mark.parametrize(
    "text, said",
    [
        ("x = 1", "unknown key 'x'"),
        ("[memory]\nbandwidth = 1", "no 'link'"),
        ('base = "h100"\n[link]\nbandwidth = -1', "no positive number"),
        ('base = "h100"\n[link]\ntopology = "star"', "no topology is named 'star'"),
        ('base = "h101"', "no chip is named 'h101'"),
        ("[", "chip.toml: "),
        ('base = "chip.toml"', "have no end"),
    ],
)
def test_what_is_no_chip_is_told(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chip.toml").write_text(text)
    with pytest.raises(HloError) as raised:
        chip("chip.toml")
    assert raised.value.code == "HLO0870"
    assert said in str(raised.value)


@pytest.mark.parametrize("name", ["h100", "v5p", "rtx4090"])
def test_collectives_take_longer_for_more_bytes_and_devices(name: str) -> None:
    link = replace(chip(name).link, latency_ns=0.0)
    for size in (2, 4, 8, 64):
        gather = volume_ns("all-gather", 1e6, size, link)
        assert volume_ns("all-reduce", 1e6, size, link) == pytest.approx(2 * gather)
        assert volume_ns("all-gather", 2e6, size, link) == pytest.approx(2 * gather)
    assert volume_ns("all-to-all", 1e6, 8, link) >= volume_ns("all-to-all", 1e6, 4, link)


def test_all_gather_of_a_ring_uses_both_directions() -> None:
    link = replace(chip("rtx4090").link, latency_ns=0.0, bandwidth=1e9)
    assert volume_ns("all-gather", 8e9, 8, link) == pytest.approx(3.5e9)


def kinds_of(text: str) -> dict[str, float]:
    """Kinds of work of the last kernel of a module."""
    return list(estimate_kernels(load_module(text, "kinds")).values())[-1].kinds


def test_a_row_takes_whole_vectors() -> None:
    fused = """HloModule rows
fused { x = f32[10,3] parameter(0)  v = f32[%s] parameter(1)  b = f32[10,3] broadcast(v), dimensions={%s}
  ROOT r = f32[10,3] power(x, b) }
ENTRY e { x = f32[10,3] parameter(0)  v = f32[%s] parameter(1)
  ROOT f = f32[10,3] fusion(x, v), kind=kLoop, calls=fused }
"""
    whole = kinds_of(fused % ("", "", ""))
    assert (whole["power-f32"], whole["row"]) == (32, 1)  # one row of 30 elements, in two vectors
    by_rows = kinds_of(fused % ("3", "1", "3"))
    assert (by_rows["power-f32"], by_rows["row"]) == (160, 10)


def test_bytes_are_told_apart_by_cache() -> None:
    size = 1 << 20
    text = f"""ENTRY e {{ x = f32[{size}] parameter(0)  s = f32[1024] slice(x), slice={{[0:1024]}}
  a = f32[1024] tanh(s)  b = f32[1024] negate(a)  c = f32[{size}] exponential(x)
  ROOT t = (f32[1024], f32[{size}]) tuple(b, c) }}
"""
    slice_, tanh, negate, exponential = estimate_kernels(load_module(text, "caches")).values()
    assert slice_.kinds["byte-l3"] == 4096  # the round before has moved the 8 MiB of %c since
    assert tanh.kinds["byte-l1"] == negate.kinds["byte-l1"] == 8192
    assert exponential.kinds["byte-l3"] == 8 * size


def test_measured_costs_are_those_of_memory_or_of_arithmetic() -> None:
    costs = {"launch": 20.0, "byte-l1": 0.5, "tanh-f32": 2.0}
    measured = replace(H100, nanoseconds=costs)
    kinds = {"launch": 1.0, "byte-l1": 100.0, "tanh-f32": 20.0}
    assert duration(Work(kinds=kinds), measured) == Duration(70.0, "memory")
    assert duration(Work(kinds=kinds | {"tanh-f32": 40.0}), measured) == Duration(100.0, "compute")


def test_asynchronous_work_runs_beside_other_work() -> None:
    report = estimate(load_module(LAYER, "layer"), chip("h100"))
    (pair,) = report.overlaps
    rows = {row.name: row.seconds for row in report.instructions}
    assert pair.hidden == pytest.approx(min(rows["g"], pair.seconds))
    waits = max(pair.seconds - rows["g"], 0.0)
    assert report.seconds == pytest.approx(rows["h"] + rows["g"] + waits + rows["y"])
    assert report.critical_path == ("h", "s" if waits else "g", "y")


def test_loops_run_as_often_as_their_counter_says() -> None:
    report = estimate(load_module(LOOP, "loop"), chip("v5e"))
    row = next(row for row in report.instructions if row.name.startswith("y"))
    assert (row.executions, row.transcendentals) == (5, 64)
    assert report.unknown == ()
    unbounded = estimate(load_module(LOOP.replace("constant(1)", "constant(0)"), "loop"), H100)
    assert unbounded.unknown


def test_the_peak_is_the_sum_of_its_buffers(tmp_path: Path) -> None:
    memory = estimate(load_module(LAYER, "layer"), chip("h100")).memory
    assert memory is not None
    assert memory.peak == max(memory.curve) == sum(buffer.bytes for buffer in memory.buffers)
    assert sum(memory.by_source().values()) == memory.peak
    assert b"f.py:3" in gzip.decompress(memory.pprof())
    assert "h" in {buffer.instruction for buffer in memory.buffers}


def test_no_schedule_is_quicker_than_the_critical_path() -> None:
    for number in range(25):
        text = Module(f"cost {SEED}:{number}", steps=10).text
        report = estimate(load_module(text, "random"), chip("a100"))
        assert report.critical_seconds <= report.seconds * (1 + 1e-9)
        assert report.memory is None or report.memory.peak == sum(
            b.bytes for b in report.memory.buffers
        )


def test_other_sizes_and_shardings() -> None:
    text = LAYER.replace(", num_partitions=4", "").replace("all-reduce-done(s)", "negate(s)")
    text = "\n".join(
        line.split(" all-reduce-start")[0] + " abs(h)" if "start" in line else line
        for line in text.splitlines()
        if "use_global" not in line
    )
    module = load_module(text, "whole")
    flops = estimate(module, H100).flops
    assert estimate(with_sizes(module, {512: 1024}), H100).flops > 7 * flops
    part = estimate(with_sharding(module, {"x": (4, 1)}), H100)
    assert part.devices == 4
    assert part.flops < flops / 3
    for change in (
        lambda: with_sizes(module, {7: 8}),
        lambda: with_sharding(module, {"z": (2, 1)}),
        lambda: with_sharding(module, {"x": (2,)}),
        lambda: with_sharding(module, {"x": (1, 1)}),
    ):
        with pytest.raises(HloError) as raised:
            change()
        assert raised.value.code == "HLO0871"


def test_json_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "l.hlo", tmp_path / "l.html"
    file.write_text(LAYER)
    assert main([str(file), "--json", f"--html={page}"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["devices"] == 4
    assert {row["name"] for row in said["instructions"]} >= {"h", "g", "s", "y"}
    assert "<polyline" in page.read_text()
    assert "<script" not in page.read_text()


@pytest.mark.oracle
@pytest.mark.slow
def test_counts_are_those_of_xla() -> None:
    """Of modules without loops and custom calls, for which XLA counts something else."""
    from unit.analysis.test_cost import xla_cost

    texts = [
        text
        for _, text in repository_texts()
        if " while(" not in text and "custom-call(" not in text and len(text) < 60_000
    ]
    answers = oracle.ask(texts, xla_cost)
    compared = 0
    for text, answer in zip(texts, answers, strict=True):
        if answer == "CRASH" or answer.startswith("ERROR"):
            continue
        theirs, report = json.loads(answer), estimate(load_module(text, "dump"), H100)
        assert report.flops == theirs.get("flops", 0.0)
        assert report.bytes == theirs.get("bytes accessed", 0.0)
        assert report.transcendentals == theirs.get("transcendentals", 0.0)
        assert report.flops == analyse(load_module(text, "dump")).flops
        compared += 1
    assert compared > 5
