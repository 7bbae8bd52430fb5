"""Every program of the corpus that has outputs, as written and as XLA optimised it.

What optimised modules may round otherwise, and how that is proved, says
`tools/optimised_numerics.py`, which prints the counts too.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from support import CORPUS, ROOT, needs_shared

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module, run_spmd

sys.path.insert(0, str(ROOT / "tools"))

import optimised_numerics as numerics

pytestmark = needs_shared


def programs(variant: str, *, sharded: bool = False) -> list[Any]:
    return [
        pytest.param(entry, id=entry["name"])
        for entry in numerics.programs(variant, sharded=sharded)
    ]


def named(name: str) -> Any:
    manifest = json.loads((CORPUS / "MANIFEST.json").read_text())
    return next(entry for entry in manifest["programs"] if entry["name"] == name)


def check(entry: Any, got: Any, wanted: Any) -> None:
    types = [row["dtype"] for row in numerics.data_of(entry)["meta"]["out"]]
    assert numerics.differences(entry, got, wanted, types) == []


def as_recorded(entry: Any, variant: str) -> None:
    data = numerics.data_of(entry)
    module = numerics.module_of(entry, variant)
    check(entry, run_module(module, data["inputs"], check=True), data["outputs"])


@pytest.mark.parametrize("entry", programs("hlo"))
def test_as_written(entry: Any) -> None:
    as_recorded(entry, "hlo")


@pytest.mark.parametrize("entry", programs("cpu_after_opt"))
def test_as_xla_cpu_optimised_it(entry: Any) -> None:
    as_recorded(entry, "cpu_after_opt")


@pytest.mark.parametrize("entry", programs("gpu_after_opt"))
def test_as_xla_gpu_optimised_it(entry: Any) -> None:
    """XLA:GPU leaves out pairs of converts (excess precision), and rounds as written otherwise."""
    verdict = numerics.judge(entry, "gpu_after_opt")
    assert verdict.kind in ("as recorded", "as without round trips"), verdict.detail


@pytest.mark.slow
@pytest.mark.parametrize("entry", programs("tpu_after_opt"))
def test_as_xla_tpu_optimised_it(entry: Any) -> None:
    """XLA:TPU converts operands of dots and convolutions to bf16, and nothing else sets it off."""
    verdict = numerics.judge(entry, "tpu_after_opt")
    assert verdict.kind in ("as recorded", "as lifted"), verdict.detail
    if verdict.kind == "as lifted":
        assert "first: %" in verdict.detail
        assert " = bf16[" in verdict.detail
    for a, b in zip(verdict.outputs, numerics.data_of(entry)["outputs"], strict=True):
        # Even so, one rounding to bf16 in front of a sum costs little of the largest value.
        if a.size and a.dtype.kind in "fc":
            wide = np.complex128 if a.dtype.kind == "c" else np.float64
            finite = np.isfinite(b.astype(wide))
            x, y = a.astype(wide)[finite], b.astype(wide)[finite]
            assert np.all(np.abs(x - y) <= 0.03 * np.max(np.abs(y), initial=1e-30))


def test_the_gpu_module_lacks_the_round_trips() -> None:
    """The pairs of converts of the program as written are not in XLA:GPU's module of it."""
    entry = named("ew_f8_variants")
    assert numerics.without_round_trips(numerics.module_of(entry, "hlo")) == 7
    assert numerics.without_round_trips(numerics.module_of(entry, "gpu_after_opt")) == 0
    assert numerics.judge(entry, "gpu_after_opt").kind == "as without round trips"


def test_round_trips_are_dropped_where_digits_get_lost_alone() -> None:
    module = parse_module("""HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  n = s32[4] parameter(1)
  narrow = bf16[4] convert(x)
  back = f32[4] convert(narrow)
  wide = f64[4] convert(x)
  same = f32[4] convert(wide)
  whole = s32[4] convert(x)
  truncated = f32[4] convert(whole)
  short = s8[4] convert(n)
  wrapped = s32[4] convert(short)
  elsewhere = f64[4] convert(narrow)
  ROOT r = (f32[4], f32[4], f32[4], s32[4], f64[4]) tuple(back, same, truncated, wrapped, elsewhere)
}
""")
    assert numerics.without_round_trips(module) == 1
    root = HloModule(module).entry.root
    assert [value.name_hint for value in root.operands] == [
        "x",
        "same",
        "truncated",
        "wrapped",
        "elsewhere",
    ]


@pytest.mark.parametrize(("name", "variant"), [("mlp_forward", "tpu"), ("ew_f8_variants", "gpu")])
def test_another_fault_is_not_taken_for_rounding(
    name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, honest = named(name), numerics.module_of

    def wrong(entry: Any, which: str) -> Any:
        module = honest(entry, which)
        if which == "hlo":
            return module
        text = print_module(module)
        assert " add(" in text
        return parse_module(text.replace(" add(", " subtract(", 1))

    assert numerics.judge(entry, f"{variant}_after_opt").kind.startswith("as ")
    monkeypatch.setattr(numerics, "module_of", wrong)
    assert numerics.judge(entry, f"{variant}_after_opt").kind == "differs"


def test_the_tool_prints_the_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["", "--variant=tpu_opt", "--only=^(mlp_forward|fusion_chain)$"]
    )
    assert numerics.main() == 0
    out = capsys.readouterr().out
    assert "tpu_opt mlp_forward: as lifted; output 0 (f32): max err 0.000239" in out
    assert out.splitlines()[-1].startswith("tpu_opt: 2 programs: ")
    assert "1 as recorded" in out


@pytest.mark.parametrize("variant", ["cpu_spmd", "cpu_after_opt"])
@pytest.mark.parametrize("entry", programs("cpu_spmd", sharded=True))
def test_partitioned(entry: Any, variant: str) -> None:
    module = numerics.module_of(entry, variant)
    data = numerics.data_of(entry)
    given, wanted = data["parts_in"], data["parts_out"]
    count = entry["devices"]
    got = run_spmd(module, [[value[d] for value in given] for d in range(count)], check=True)
    for device in range(count):
        check(entry, got[device], [value[device] for value in wanted])
