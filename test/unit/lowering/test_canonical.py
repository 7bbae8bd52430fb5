"""Computations on fewer dimensions compute the same: both sides run on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.hlo_to_loops.canonical import Canonical, canonical
from mlirhlo.lowering.hlo_to_loops.elements import physical_dimensions, physical_order

ADD = "f {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] add(a, b)\n}\n"


def canonical_of(module: mlirhlo.Module) -> Canonical:
    entry = module.hlo.entry
    found = canonical([(entry.root.output, None)], [p.output for p in entry.parameters])
    assert found is not None
    return found


def evaluate(found: Canonical, inputs: list[Any]) -> Any:
    module = found.computation.parent_op()
    assert isinstance(module, ModuleOp)
    from xdsl.dialects.builtin import UnitAttr

    found.computation.properties["is_entry"] = UnitAttr()
    return mlirhlo.parse(str(mlirhlo.Module(module)))(*inputs)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("b = s32[3,4] broadcast(r), dimensions={0}\n  ROOT s = s32[3,4] add(x, b)", True),
        ("b = s32[3,4] broadcast(r), dimensions={0}\n  ROOT s = s32[3,4]{0,1} add(x, b)", False),
        ("b = s32[3,4] broadcast(r), dimensions={0}\n  ROOT s = s32[3,4] copy(b)", False),
        ("b = s32[3,1] reshape(r)\n  ROOT s = s32[3,1] add(b, b)", False),
        ("ROOT s = s32[3] add(r, r)", True),
        ("ROOT s = s32[3] broadcast(r), dimensions={0}", False),
    ],
)
def test_what_is_canonical_stays(body: str, stays: bool) -> None:
    module = mlirhlo.parse(
        f"HloModule m\n{ADD}ENTRY e {{\n  x = s32[3,4] parameter(0)\n  z = s32[] constant(0)\n"
        f"  r = s32[3] reduce(x, z), dimensions={{1}}, to_apply=f\n  {body}\n}}\n"
    )
    found = canonical_of(module)
    assert (found.computation is module.hlo.entry) is stays
    assert (found.outputs[0] is module.hlo.entry.root.output) is stays


def physical(array: Any, shape: Any) -> Any:
    return np.ascontiguousarray(array.transpose(physical_order(shape)))


PROGRAMS = {
    "elementwise": ("x = s32[3,4,5] parameter(0)\n  ROOT r = s32[3,4,5] add(x, x)", [[60]]),
    "two layouts": (
        (
            "x = s32[3,4,5]{2,0,1} parameter(0)\n  y = s32[3,4,5] parameter(1)\n"
            "  ROOT r = s32[3,4,5]{2,0,1} add(x, y)"
        ),
        [[4, 3, 5], [3, 4, 5]],
    ),
    "layouts that agree in part": (
        (
            "x = s32[2,3,4,5]{3,2,0,1} parameter(0)\n  y = s32[2,3,4,5] parameter(1)\n"
            "  ROOT r = s32[2,3,4,5]{3,2,0,1} add(x, y)"
        ),
        [[3, 2, 20], [2, 3, 20]],
    ),
    "bias": (
        (
            "x = s32[3,4,5] parameter(0)\n  y = s32[5] parameter(1)\n"
            "  b = s32[3,4,5] broadcast(y), dimensions={2}\n  ROOT r = s32[3,4,5] add(x, b)"
        ),
        [[12, 5], [5]],
    ),
    "mask": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  y = s32[3,1,5,6] parameter(1)\n"
            "  z = s32[3,5,6] reshape(y)\n"
            "  b = s32[3,4,5,6] broadcast(z), dimensions={0,2,3}\n  ROOT r = s32[3,4,5,6] add(x, b)"
        ),
        [[3, 4, 30], [3, 30]],
    ),
    "rows": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  z = s32[] constant(0)\n"
            "  r = s32[3,4] reduce(x, z), dimensions={2,3}, to_apply=f\n"
            "  b = s32[3,4,5,6] broadcast(r), dimensions={0,1}\n  ROOT s = s32[3,4,5,6] add(x, b)"
        ),
        [[12, 30]],
    ),
    "rows in another layout": (
        (
            "x = s32[3,4,5]{0,2,1} parameter(0)\n  z = s32[] constant(0)\n"
            "  ROOT r = s32[4] reduce(x, z), dimensions={0,2}, to_apply=f"
        ),
        [[4, 15]],
    ),
    "kept in another order": (
        (
            "x = s32[3,4,5]{2,0,1} parameter(0)\n  z = s32[] constant(0)\n"
            "  ROOT r = s32[3,4]{1,0} reduce(x, z), dimensions={2}, to_apply=f"
        ),
        [[4, 3, 5]],
    ),
    "columns": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  z = s32[] constant(0)\n"
            "  ROOT r = s32[5,6] reduce(x, z), dimensions={0,1}, to_apply=f"
        ),
        [[12, 30]],
    ),
    "kept ones dropped": (
        (
            "x = s32[3,1,5] parameter(0)\n  z = s32[] constant(1)\n"
            "  r = s32[3,5] reduce(x, z), dimensions={1}, to_apply=f\n"
            "  ROOT s = s32[3,1,5,1] reshape(r)"
        ),
        [[15]],
    ),
    "transpose": (
        "x = s32[3,4,5,6] parameter(0)\n  ROOT r = s32[5,6,3,4] transpose(x), dimensions={2,3,0,1}",
        [[12, 30]],
    ),
    "a transpose that only moves ones": (
        "x = s32[3,1,5] parameter(0)\n  ROOT r = s32[1,3,5] transpose(x), dimensions={1,0,2}",
        [[15]],
    ),
    "a layout that undoes a transpose": (
        "x = s32[3,5] parameter(0)\n  ROOT r = s32[5,3]{0,1} transpose(x), dimensions={1,0}",
        [[15]],
    ),
    "slice": (
        (
            "x = s32[3,4,5,6] parameter(0)\n"
            "  ROOT r = s32[3,2,5,6] slice(x), slice={[0:3],[1:3],[0:5],[0:6]}"
        ),
        [[3, 120]],
    ),
    "slice with strides": (
        (
            "x = s32[3,4,5,6] parameter(0)\n"
            "  ROOT r = s32[3,2,1,6] slice(x), slice={[0:3:1],[0:4:2],[2:3:1],[0:6:1]}"
        ),
        [[3, 4, 5, 6]],
    ),
    "pad": (
        (
            "x = s32[3,1,5,6] parameter(0)\n  z = s32[] parameter(1)\n"
            "  ROOT r = s32[3,3,4,6] pad(x, z), padding=0_0x1_1x1_-2x0_0"
        ),
        [[3, 30], []],
    ),
    "pad inside": (
        (
            "x = s32[3,4,5] parameter(0)\n  z = s32[] parameter(1)\n"
            "  ROOT r = s32[3,8,5] pad(x, z), padding=0_0x1_0_1x0_0"
        ),
        [[3, 4, 5], []],
    ),
    "concatenate": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  y = s32[3,2,5,6] parameter(1)\n"
            "  ROOT r = s32[3,6,5,6] concatenate(x, y), dimensions={1}"
        ),
        [[3, 120], [3, 60]],
    ),
    "concatenate one more": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  y = s32[3,1,5,6] parameter(1)\n"
            "  ROOT r = s32[3,5,5,6] concatenate(x, y), dimensions={1}"
        ),
        [[3, 4, 30], [3, 30]],
    ),
    "iota": (
        (
            "x = s32[3,4,5,6] parameter(0)\n  i = s32[3,4,5,6] iota(), iota_dimension=1\n"
            "  ROOT r = s32[3,4,5,6] add(x, i)"
        ),
        [[3, 4, 30]],
    ),
    "iota of one": (
        (
            "x = s32[3,1,5] parameter(0)\n  i = s32[3,1,5] iota(), iota_dimension=1\n"
            "  ROOT r = s32[3,1,5] add(x, i)"
        ),
        [[15]],
    ),
    "reverse": (
        "x = s32[3,1,5,4] parameter(0)\n  ROOT r = s32[3,1,5,4] reverse(x), dimensions={1,2}",
        [[3, 5, 4]],
    ),
    "reshape": (
        (
            "x = s32[6,10,7] parameter(0)\n  y = s32[60,7] reshape(x)\n  z = s32[7] parameter(1)\n"
            "  b = s32[60,7] broadcast(z), dimensions={1}\n  s = s32[60,7] add(y, b)\n"
            "  ROOT t = s32[6,2,5,7] reshape(s)"
        ),
        [[60, 7], [7]],
    ),
    "reshape that has to stay": (
        (
            "x = s32[6,10] parameter(0)\n  y = s32[6] parameter(1)\n"
            "  b = s32[6,10] broadcast(y), dimensions={0}\n  s = s32[6,10] add(x, b)\n"
            "  t = s32[4,15] reshape(s)\n  z = s32[4] parameter(2)\n"
            "  c = s32[4,15] broadcast(z), dimensions={0}\n  ROOT u = s32[4,15] add(t, c)"
        ),
        [[6, 10], [6], [4]],
    ),
    "reshape in another layout": (
        "x = s32[6,10]{0,1} parameter(0)\n  ROOT y = s32[60] reshape(x)",
        [[10, 6]],
    ),
    "bitcast": (
        "x = s32[6,10]{0,1} parameter(0)\n  ROOT y = s32[5,12] bitcast(x)",
        [[60]],
    ),
    "no rule": (
        (
            "x = s32[6,1,10]{0,1,2} parameter(0)\n  i = s32[] parameter(1)\n  z = s32[] constant(0)\n"
            "  ROOT r = s32[3,1,10] dynamic-slice(x, i, z, z), dynamic_slice_sizes={3,1,10}"
        ),
        [[10, 6], []],
    ),
    "several results": (
        (
            "x = s32[3,4,5] parameter(0)\n  y = s32[3,4,5]{0,2,1} parameter(1)\n  z = s32[] constant(0)\n"
            "  t = (s32[3,4], s32[3,4]) reduce(x, y, z, z), dimensions={2}, to_apply=g\n"
            "  ROOT r = s32[3,4] get-tuple-element(t), index=1"
        ),
        [[3, 4, 5], [4, 5, 3]],
    ),
}

PAIR = (
    "g {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  c = s32[] parameter(2)\n"
    "  d = s32[] parameter(3)\n  e = s32[] add(a, c)\n  h = s32[] call(b, d), to_apply=f\n"
    "  ROOT t = (s32[], s32[]) tuple(e, h)\n}\n"
)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_on_fewer_dimensions(name: str) -> None:
    body, sizes = PROGRAMS[name]
    module = mlirhlo.parse(f"{ADD}{PAIR}ENTRY e {{\n  {body}\n}}\n")
    module.verify()
    found = canonical_of(module)
    assert [list(shape_of(v.type).dimensions) for v in found.operands] == sizes
    rng = np.random.default_rng(0)
    shapes = [p.shape for p in module.hlo.entry.parameters]
    inputs = [rng.integers(0, 5, s.dimensions).astype("i4") for s in shapes]
    given = [
        physical(x, s).reshape(shape_of(v.type).dimensions)
        for x, s, v in zip(inputs, shapes, found.operands, strict=True)
    ]
    shape: Any = module.hlo.entry.root.shape
    expected = physical(np.asarray(module(*inputs)), shape)
    assert np.array_equal(
        np.asarray(evaluate(found, given)).reshape(physical_dimensions(shape)), expected
    )


def test_empty_arrays_stay() -> None:
    module = mlirhlo.parse("s32[0,3] negate(s32[0,3] x)")
    entry = module.hlo.entry
    assert canonical([(entry.root.output, None)], [p.output for p in entry.parameters]) is None
