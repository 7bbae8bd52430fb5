"""`gpu-fusion` on random modules: they verify, compute the same, and take no longer by the model."""

from __future__ import annotations

from typing import Any

import pytest
from support import SEED

import mlirhlo
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.fuzz.passes import Reference
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.interp import run_module
from mlirhlo.lowering.gpu.devices import device, name_or_description, read_device, write_device
from mlirhlo.lowering.gpu.fusion import (
    GpuFusionPass,
    _Merger,  # pyright: ignore[reportPrivateUsage]
    modelled_cost,
)
from mlirhlo.lowering.gpu.pipeline import optimize
from mlirhlo.rewrites.passes import Trace

SHARED = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  x = f32[4096,1024] parameter(0)
  w = f32[4096,1024] exponential(x)
  v = f32[1024,4096] transpose(w), dimensions={1,0}
  zero = f32[] constant(0)
  s = f32[1024] reduce(w, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[1024,4096], f32[1024]) tuple(v, s)
}
"""


def before(text: str) -> HloModule:
    """A module as `gpu-fusion` gets it."""
    return HloModule(optimize(mlirhlo.parse(text).op, wanted=lambda name: name != "gpu-fusion"))


def test_random_modules() -> None:
    changed = 0
    for number in range(5, 10):
        case = Module(f"fusion {SEED}:{number}", steps=50)
        try:
            reference = Reference(case.text, case.inputs)
        except (HloError, ValueError):
            continue
        module = before(case.text)
        cost = modelled_cost(module, device())
        changed += GpuFusionPass().run(module, Trace())
        assert not verify_module(module.op), case.text
        results = run_module(module.op, case.inputs)
        assert not reference.difference(results, exact=False), case.text
        assert modelled_cost(module, device()).time(device()) <= cost.time(device()) + 1e-3
    assert changed


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("is_sliced", [False, True])
@pytest.mark.parametrize("summed", [(0,), (0, 2), (0, 1), (0, 1, 2)])
def test_sizes_of_zero_cost_nothing(rank: int, is_sliced: bool, summed: tuple[int, ...]) -> None:
    """Sums over what is empty, in a fusion, of a scalar that is cut to nothing."""
    ones, empty = ",".join("1" * rank), ",".join("1" * (rank - 1) + "0")
    cut = ", ".join(["[0:1]"] * (rank - 1) + ["[0:0]"])
    nothing = f"slice(v), slice={{{cut}}}" if is_sliced else "broadcast(c), dimensions={}"
    sizes = ",".join(str((0, 5, 3)[at]) for at in range(3) if at not in summed)
    module = HloModule(
        mlirhlo.parse(
            f"""HloModule zeros
            of_two {{ a = f64[] parameter(0)  b = f64[] parameter(1)  ROOT r = f64[] multiply(a, b) }}
            inside {{
              x = f32[4] parameter(0)
              c = f64[] constant(1)
              v = f64[{ones}] reshape(c)
              s = f64[{empty}] {nothing}
              t = f64[0,5,3] reshape(s)
              w = f64[{sizes}] reduce(t, c), dimensions={{{",".join(map(str, summed))}}}, to_apply=of_two
              ROOT both = (f32[4], f64[{sizes}]) tuple(x, w)
            }}
            ENTRY e {{
              x = f32[4] parameter(0)
              y = f32[4] negate(x)
              q = (f32[4], f64[{sizes}]) fusion(y), kind=kOutput, calls=inside
              z = f32[4] get-tuple-element(q), index=0
              ROOT r = f32[4] cosine(z)
            }}"""
        ).op
    )
    assert modelled_cost(module, device()).time(device()) >= 0
    GpuFusionPass().run(module, Trace())
    assert not verify_module(module.op)


def test_fuel_bounds_what_is_merged() -> None:
    for fuel in (0, 1):
        module = before(SHARED)
        assert GpuFusionPass(fuel=fuel).run(module, Trace()) is bool(fuel)


def test_a_described_device_is_an_option() -> None:
    h100 = device("h100")
    assert name_or_description(h100) == "h100"
    slower = read_device(
        write_device(h100).replace("memory_bandwidth: 3352", "memory_bandwidth: 352")
    )
    text = name_or_description(slower)
    module = before(SHARED)
    assert GpuFusionPass(gpu=text).run(module, Trace())
    fast, slow = (modelled_cost(module, gpu).time(gpu) for gpu in (h100, slower))
    assert slow > fast


def test_a_kernel_that_was_merged_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module = before(
        "ENTRY e {\n  x = f64[4,4,1] parameter(0)\n  scale = f64[1] parameter(1)\n  offset = f64[1] parameter(2)\n"
        "  n = (f64[4,4,1], f64[1], f64[1]) batch-norm-training(x, scale, offset), epsilon=0.001, feature_index=2\n"
        "  ROOT r = f64[4,4,1] get-tuple-element(n), index=0\n}"
    )
    looks = 0
    best = _Merger._best  # pyright: ignore[reportPrivateUsage]

    def counted(self: _Merger, op: Any) -> Any:
        nonlocal looks
        looks += 1
        assert looks < 100
        return best(self, op)

    monkeypatch.setattr(_Merger, "_best", counted)
    assert GpuFusionPass().run(module, Trace())
    assert verify_module(module.op) == []
