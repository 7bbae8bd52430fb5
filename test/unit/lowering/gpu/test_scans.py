"""Scans by threads together: every way to divide lines, on the simulator, against the interpreter."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.structured import ScanOp
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.schedule.scans import schedule_of_scan
from mlirhlo.lowering.structured import to_structured


def cumulative(
    sizes: tuple[int, ...], dim: int, type_: str = "s32", opcode: str = "add", *, back: bool = False
) -> str:
    """A cumulative fold from 3 on."""
    shape, length = ",".join(map(str, sizes)), sizes[dim]
    window = "x".join(str(length) if d == dim else "1" for d in range(len(sizes)))
    reach = f"0_{length - 1}" if back else f"{length - 1}_0"
    pad = "x".join(reach if d == dim else "0_0" for d in range(len(sizes)))
    return f"""HloModule m
fold {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {opcode}(a, b) }}
ENTRY e {{
  x = {type_}[{shape}] parameter(0)
  z = {type_}[] constant({"(3, 0)" if type_ == "c64" else 3})
  n = {type_}[{shape}] negate(x)
  ROOT r = {type_}[{shape}] reduce-window(n, z), window={{size={window} pad={pad}}}, to_apply=fold
}}
"""


CASES: dict[str, Any] = {
    "a warp a line": ((5, 100), 1),
    "lines that do not fill a block": ((7, 33), 1),
    "several warps": ((3, 1000), 1),
    "several tiles": ((1, 2100), 1),
    "not the last dimension": ((3, 200, 2), 1),
    "a thread a line": ((300, 4), 0),
    "from the end": ((3, 200), 1, "s32", "add", True),
    "wide": ((2, 300), 1, "s64", "maximum"),
    "narrow": ((2, 300), 1, "s8", "add"),
    "complex": ((2, 70), 1, "c64", "multiply"),
    "bf16": ((2, 300), 1, "bf16", "add"),
    "lines that begin within sectors": ((5, 1001), 1),
    "such lines from the end": ((5, 1003), 1, "s64", "add", True),
    "such lines of several elements a thread": ((3, 2102), 1, "bf16", "maximum"),
    "short lines": ((77, 7), 1, "bf16", "add", True),
    "tiles across lines": ((2100, 40), 0, "f32", "maximum", True),
    "tiles across lines, of some threads": ((90, 33), 0, "s8"),
    "short lines across memory": ((70, 9, 3), 1, "c64", "add"),
    "one line": ((100,), 0, "f64", "add", True),
}


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("name", CASES)
def test_scan(name: str) -> None:
    sizes, dim, *more = CASES[name]
    text = cumulative(sizes, dim, *more[:2], back=True in more)
    compare(text)


SHARED: dict[str, Any] = {
    "lines": ((2, 40_000), 1),
    "from the end": ((1, 40_000), 1),
    "two words": ((1, 33_000), 1, "s64"),
    "parts of complex numbers": ((1, 33_001), 1, "c64"),
    "odd, narrow": ((1, 33_001), 1, "bf16", "maximum"),
}


@pytest.mark.one_case_in(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_blocks_share_a_line(name: str) -> None:
    text = cumulative(*SHARED[name], back=name == "from the end")
    view = HloModule(parse_module(text))
    kernel = to_structured(view.entry.root, view.by_name(), "k")
    (op,) = [op for op in kernel.block.ops if isinstance(op, ScanOp)]
    assert schedule_of_scan(op, 0, device("h100")).parts > 1
    compare(text)


def compare(text: str) -> None:
    """Runs a program on the simulator and on the interpreter."""
    module = parse_module(text)
    shape: Any = HloModule(module).entry.parameters[0].shape
    type_ = PRIMITIVE_TYPES[shape.element_type.name]
    numbers = np.random.default_rng(1).integers(-4, 5, shape.dimensions)
    x = (numbers / (4 if type_.is_complex else 1)).astype(type_.dtype)
    (want,) = run_module(module, [x])
    compiled: Any = mlirhlo.compile(mlirhlo.parse(text), platform="gpu", gpu="h100")
    got: Any = compiled(x)
    assert not compiled.findings
    got = np.asarray(got[0] if isinstance(got, tuple | list) else got)
    if type_.is_integer:
        assert np.array_equal(got, want)
    else:
        wide = np.complex128 if type_.is_complex else np.float64
        bound = 2.0**-6 if type_.bits == 16 else 1e-5
        scale = np.abs(want.astype(wide)).max() + prod(want.shape) * 1e-30
        assert np.abs(got.astype(wide) - want.astype(wide)).max() <= bound * scale
