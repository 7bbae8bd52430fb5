"""Arrays without elements, whatever their other dimensions are: at once, and without memory."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

WIDE = 10**12
SPREAD = f"b = f32[{WIDE},0] broadcast(x), dimensions={{1}}"

ENTRIES = {
    "iota": f"ROOT r = f32[{WIDE},0] iota(), iota_dimension=0",
    "iota_last": f"ROOT r = s32[0,{WIDE}] iota(), iota_dimension=1",
    "broadcast": f"ROOT r = f32[{WIDE},0] broadcast(x), dimensions={{1}}",
    "moves": f"{SPREAD}\n e = f32[{WIDE},0] exponential(b)\n t = f32[0,{WIDE}] transpose(e), dimensions={{1,0}}\n"
    f" ROOT r = f32[0,{WIDE}] reverse(t), dimensions={{1}}",
    "reduce": f"{SPREAD}\n ROOT r = f32[0] reduce(b, z), dimensions={{0}}, to_apply=add",
    "reduce_to_one": f"{SPREAD}\n ROOT r = f32[] reduce(b, z), dimensions={{0,1}}, to_apply=add",
    "slice": f"{SPREAD}\n ROOT r = f32[5,0] slice(b), slice={{[3:8],[0:0]}}",
    "pad": f"{SPREAD}\n ROOT r = f32[{WIDE + 1},0] pad(b, z), padding=1_0x0_0",
    "concatenate": f"{SPREAD}\n ROOT r = f32[{2 * WIDE},0] concatenate(b, b), dimensions={{0}}",
    "dot": f"{SPREAD}\n ROOT r = f32[0,0] dot(b, b), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
    "sort": f"{SPREAD}\n ROOT r = f32[{WIDE},0] sort(b), dimensions={{0}}, to_apply=less",
    "windows": f"{SPREAD}\n ROOT r = f32[{WIDE - 1},0] reduce-window(b, z), window={{size=2x1}}, to_apply=add",
}

REDUCERS = """add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
"""


@pytest.mark.parametrize("name", ENTRIES)
def test_empty_arrays_of_huge_other_dimensions(name: str) -> None:
    entry = f"ENTRY e {{\n x = f32[0] parameter(0)\n z = f32[] constant(3)\n {ENTRIES[name]}\n}}"
    module = mlirhlo.parse(REDUCERS + entry)
    result = np.asarray(module(np.zeros(0, np.float32)))
    assert str(list(result.shape)).replace(" ", "") in module.hlo.entry.root.shape.__str__()
    assert result.size == 0 or result == 3
