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


@pytest.mark.parametrize("sizes", [(0, 4, 2, 2), (3, 4, 0, 2), (3, 4, 2, 0), (0, 0, 2, 2)])
@pytest.mark.parametrize("group", ["batch_group_count=2", "feature_group_count=2", ""])
def test_convolutions_over_nothing_are_padding(sizes: tuple[int, ...], group: str) -> None:
    """Input sizes are a dimension of space, the batch, another of space, features."""
    height, batch, width, features = sizes
    depth = features // 2 if group.startswith("feature") else features
    images = batch // 2 if group.startswith("batch") else batch
    lhs, rhs = f"f32[{height},{batch},{width},{features}]", f"f32[2,{depth},1,2]"
    module = mlirhlo.parse(
        f"ENTRY e {{\n x = {lhs} parameter(0)\n k = {rhs} parameter(1)\n ROOT c = f32[{height + 1},{images},"
        f"{width + 2},2] convolution(x, k), window={{size=2x1 pad=1_1x1_1}}, dim_labels=0b1f_0i1o->0b1f"
        f"{', ' + group if group else ''}\n}}"
    )
    lhs_value = np.ones(sizes, np.float32)
    result = np.asarray(module(lhs_value, np.ones((2, depth, 1, 2), np.float32)))
    assert result.shape == (height + 1, images, width + 2, 2)
    assert not result.any()
