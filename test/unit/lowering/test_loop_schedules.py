"""Kernels of structured ops by every schedule that a person may write, against the interpreter bit for bit."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from unit.lowering.kernel_support import Array, draw, run_loops
from xdsl.dialects.builtin import ModuleOp

import mlirhlo
from mlirhlo.cli.opt.gpu_stages import context
from mlirhlo.cli.opt.stage_parsing import parsed
from mlirhlo.cli.opt.stages import lowered, render_module
from mlirhlo.debug.options import Flags
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.formats import load
from mlirhlo.interp.structured import run_kernel
from mlirhlo.lowering.loops import loops_of
from mlirhlo.lowering.loops.passes import (
    CpuChooseAlgorithmPass,
    CpuParallelizePass,
    CpuVectorizePass,
    schedule_all,
)

pytest.importorskip("llvmlite")

SORT = """!a = tensor<5x{n}x{t}>
!i = tensor<5x{n}xi32>
structured.kernel @kernel(%x: !a, %y: !i) -> (!a, !i) {{
  %r, %s = structured.sort ins(%x, %y : !a, !i) dimension 1 stable -> !a, !i {{
  ^bb0(%a: tensor<{t}>, %b: tensor<{t}>, %c: tensor<i32>, %d: tensor<i32>):
    %l = hlo.compare %a, %b {{direction = "GT"}} : tensor<i1>
    structured.yield %l : tensor<i1>
  }}
  structured.return %r, %s : !a, !i
}}"""
"""The second array shows that equal elements keep their order."""
TOP_K = """structured.kernel @kernel(%x: tensor<5x{n}x{t}>) -> (tensor<5x9x{t}>, tensor<5x9xi32>) {{
  %v, %i = structured.top_k %x : tensor<5x{n}x{t}> largest -> tensor<5x9x{t}>, tensor<5x9xi32>
  structured.return %v, %i : tensor<5x9x{t}>, tensor<5x9xi32>
}}"""
BITS = """structured.kernel @kernel(%s: tensor<2xui64>) -> (tensor<{n}x{t}>, tensor<2xui64>) {{
  %n, %r = structured.random_bits "{algorithm}" %s : tensor<2xui64> -> tensor<2xui64>, tensor<{n}x{t}>
  structured.return %r, %n : tensor<{n}x{t}>, tensor<2xui64>
}}"""
POOL = """!a = tensor<3x6x{n}xf32>
!b = tensor<3x3x{n}xf32>
structured.kernel @kernel(%x: !a, %s: !b, %z: tensor<f32>) -> !a {{
  %r = structured.select_and_scatter %x, %s, %z : !a, !b, tensor<f32> windows [1, 2, 1] strides [1, 2, 1]
      dilations [1, 1, 1] base [1, 1, 1] low [0, 0, 0] -> !a {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.compare %a, %b {{direction = "GE"}} : tensor<i1>
    structured.yield %c : tensor<i1>
  }} combiner {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = hlo.add %a, %b : tensor<f32>
    structured.yield %c : tensor<f32>
  }}
  structured.return %r : !a
}}"""


def scheduled(text: str, kind: str, lanes: int, chunk: int) -> ModuleOp:
    """A kernel with a schedule that passes wrote."""
    module = parsed(text, "kernel.mlir", context())
    schedule_all(module)
    for pass_ in (
        CpuChooseAlgorithmPass(kind=kind),
        CpuVectorizePass(lanes=lanes),
        CpuParallelizePass(chunk=chunk),
    ):
        pass_.apply(context(), module)
    return module


def arrays(shapes: list[ArrayShape], seed: int) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [draw(rng, s.element_type.name, s.dimensions) for s in shapes]


def agree(module: ModuleOp, threads: int = 1) -> None:
    """The kernel of a module as machine code, and as its stage means it."""
    kernel = cast(KernelOp, module.body.block.first_op)
    shapes = [cast(ArrayShape, shape_of(a.type)) for a in kernel.block.args]
    inputs = arrays(shapes, 5)
    results = [cast(ArrayShape, shape_of(v.type)) for v in kernel.results_returned]
    actual = run_loops(loops_of(module), inputs, results, threads)
    for have, want in zip(actual, run_kernel(kernel, inputs), strict=True):
        np.testing.assert_array_equal(have, want, str(kernel))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["counting", "radix", "merge"])
@pytest.mark.parametrize(("lanes", "chunk"), [(0, 3), (4, 1)])
def test_sorts(kind: str, lanes: int, chunk: int) -> None:
    for n, t in ((7, "i16"), (150, "f32")):
        agree(scheduled(SORT.format(n=n, t=t), kind, lanes, chunk), threads=2)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("kind", ["select", "collect", "order"])
@pytest.mark.parametrize("lanes", [4, 16])
def test_top_k(kind: str, lanes: int) -> None:
    for n, t in ((20, "i8"), (150, "f32")):
        agree(scheduled(TOP_K.format(n=n, t=t), kind, lanes, 2))


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("lanes", "chunk"), [(0, 5), (4, 4), (32, 64)])
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox"])
def test_random_bits(algorithm: str, lanes: int, chunk: int) -> None:
    for n, t in ((301, "ui32"), (77, "ui64")):
        text = BITS.format(n=n, t=t, algorithm=algorithm)
        agree(scheduled(text, "blocks", lanes, chunk), threads=2)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_select_and_scatter(lanes: int) -> None:
    agree(scheduled(POOL.format(n=11), "windows", lanes, 0))


SCAN = """!a = tensor<5x{n}xi32>
!s = tensor<{s}xi32>
structured.kernel @kernel(%x: !a, %z: !s) -> (!a, !s) {{
  %r, %l = structured.scan ins(%x : !a) inits(%z : !s) dimension {dim} {reverse} associative -> !a, !s {{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = hlo.{word} %b, %a : tensor<i32>
    structured.yield %c, %c : tensor<i32>, tensor<i32>
  }}
  structured.return %r, %l : !a, !s
}}"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("reverse", ["", "reverse"])
@pytest.mark.parametrize(
    ("dim", "kind", "lanes", "chunk"),
    [
        (1, "along", 4, 1),
        (1, "along", 16, 3),
        (1, "elements", 0, 2),
        (0, "across", 8, 1),
        (0, "across", 4, 3),
        (0, "elements", 0, 1),
    ],
)
def test_scans(dim: int, kind: str, lanes: int, chunk: int, reverse: str) -> None:
    """Sums, whose identity is known, and the last number that is not zero."""
    n, rest = (24, 24) if dim == 0 else (21, 5)
    text = SCAN.format(n=n, s=rest, dim=dim, reverse=reverse, word="add")
    agree(scheduled(text, kind, lanes, chunk))
    last = '%q = hlo.compare %a, %o {direction = "EQ"} : tensor<i1>\n    %c = hlo.select %q, %b, %a : tensor<i32>'
    later = text.replace(
        "%c = hlo.add %b, %a : tensor<i32>", f'%o = hlo.constant "0" : tensor<i32>\n    {last}'
    )
    agree(scheduled(later, kind, lanes, chunk))


SCATTER = """!a = tensor<6x{n}xi32>
!u = tensor<40x{n}xi32>
structured.kernel @kernel(%x: !a, %i: tensor<40xi32>, %u: !u) -> !a {{
  %r = structured.scatter targets({x} : !a) indices(%i : tensor<40xi32>) maps [affine_map<(d0, d1) -> (d0)>]
      updates(%u : !u) dimensions [0] limits [5] offsets affine_map<(d0, d1) -> (0, d1)> sorted
      -> !a {{
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %d = hlo.subtract %a, %b : tensor<i32>
    %c = hlo.multiply %d, %b : tensor<i32>
    structured.yield %c : tensor<i32>
  }}
  structured.return %r : !a
}}"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("n", "kind", "lanes", "chunk"),
    [
        (24, "windows", 8, 8),
        (24, "windows", 0, 24),
        (21, "windows", 16, 7),
        (21, "runs", 4, 21),
        (9, "windows", 16, 9),
    ],
)
@pytest.mark.parametrize("target", ["%x", "%n"])
def test_scatters(n: int, kind: str, lanes: int, chunk: int, target: str) -> None:
    """Into an operand, and into a map of one."""
    text = SCATTER.format(n=n, x=target)
    negated = """{
  %n = structured.map ins(%x : !a) maps [affine_map<(d0, d1) -> (d0, d1)>] -> !a {
  ^bb0(%e: tensor<i32>):
    %g = hlo.negate %e : tensor<i32>
    structured.yield %g : tensor<i32>
  }"""
    if target == "%n":
        text = text.replace("{", negated, 1)
    agree(scheduled(text, kind, lanes, chunk), threads=2)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("kind", "lanes", "chunk", "reason"),
    [
        ("windows", 8, 7, "equal parts of 24 columns"),
        ("windows", 0, 8, "no index moves"),
        ("runs", 8, 8, "runs need one sorted index"),
    ],
)
def test_schedules_that_scatters_refuse(kind: str, lanes: int, chunk: int, reason: str) -> None:
    with pytest.raises(HloError, match=reason):
        loops_of(scheduled(SCATTER.format(n=24, x="%x"), kind, lanes, chunk))


TURNED = """structured.kernel @kernel(%x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<8x6xf32>) {
  %t = structured.map ins(%x : tensor<6x8xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<8x6xf32> {
  ^bb0(%a: tensor<f32>):
    %n = hlo.negate %a : tensor<f32>
    %i = structured.index 0 : tensor<i32>
    %f = hlo.convert %i : tensor<f32>
    %m = hlo.multiply %n, %f : tensor<f32>
    structured.yield %m : tensor<f32>
  }
  %r = structured.sort ins(%t : tensor<8x6xf32>) dimension 1 -> tensor<8x6xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %l = hlo.compare %a, %b {direction = "LT"} : tensor<i1>
    structured.yield %l : tensor<i1>
  }
  %o = structured.map ins(%r : tensor<8x6xf32>) maps [affine_map<(d0, d1) -> (d1, d0)>] -> tensor<6x8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %o, %r : tensor<6x8xf32>, tensor<8x6xf32>
}"""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("lanes", [0, 4])
def test_maps_around(lanes: int) -> None:
    """Maps are computed where they are read, and written through where they permute; a result may be written twice."""
    agree(scheduled(TURNED, "counting", lanes, 1))


BEHIND = "  ^bb0(%a: tensor<f32>):\n    structured.yield %a"
"""The body of the map behind the sort."""


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("lanes", [0, 4])
def test_maps_behind_that_compute(lanes: int) -> None:
    """They are computed where the op writes."""
    more = "  ^bb0(%a: tensor<f32>):\n    %n = hlo.negate %a : tensor<f32>\n    structured.yield %n"
    agree(scheduled(TURNED.replace(BEHIND, more), "counting", lanes, 1))


def test_maps_behind_that_read_indices_are_refused() -> None:
    more = (
        "  ^bb0(%a: tensor<f32>):\n    %i = structured.index 0 : tensor<i32>\n"
        "    %n = hlo.convert %i : tensor<f32>\n    structured.yield %n"
    )
    with pytest.raises(HloError, match="computes what"):
        loops_of(scheduled(TURNED.replace(BEHIND, more), "counting", 0, 1))


PROGRAM = """HloModule m
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=LT }
ge { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = pred[] compare(a, b), direction=GE }
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[8,64]{0,1} parameter(0)
 y = f32[8,32]{0,1} parameter(1)
 k = u64[2] parameter(2)
 zero = f32[] constant(0)
 s = f32[8,64]{0,1} sort(x), dimensions={0}, to_apply=less
 t = (f32[8,4], s32[8,4]) topk(s), k=4, largest=true
 p = f32[8,64]{0,1} select-and-scatter(x, y, zero), window={size=1x2 stride=1x2}, select=ge, scatter=sum
 b = (u64[2], u32[8,64]{0,1}) rng-bit-generator(k), algorithm=rng_three_fry
 ROOT r = (f32[8,64]{0,1}, (f32[8,4], s32[8,4]), f32[8,64]{0,1}, (u64[2], u32[8,64]{0,1})) tuple(s, t, p, b) }
"""


def test_programs_are_compiled_from_what_is_printed() -> None:
    """The functions of a whole program are those of its print at stage `scheduled`, and compute what it means."""
    loaded = load(PROGRAM.encode())
    kernels, whole = (
        cast(ModuleOp, lowered(loaded, stage, None, Flags())) for stage in ("scheduled", "loops")
    )
    text = render_module(kernels).decode()
    read = parsed(text, "k", context())
    for op in read.ops:
        if _name(op).startswith("copy"):  # compiled from HLO
            op.detach()
    ours: dict[str, Any] = {_name(op): str(op) for op in loops_of(read).ops}
    assert len(ours) == 4
    assert ours == {_name(op): str(op) for op in whole.ops if _name(op) in ours}
    module = mlirhlo.parse(PROGRAM)
    shapes = [p.shape for p in module.hlo.entry.parameters]
    inputs = arrays(cast("list[ArrayShape]", shapes), 3)
    executable = mlirhlo.compile(module, cached=False)
    assert not executable.callbacks
    for have, want in zip(_leaves(executable(*inputs)), _leaves(module(*inputs)), strict=True):
        np.testing.assert_array_equal(have, want)


def _name(op: Any) -> str:
    return str(op.sym_name.data) if "sym_name" in op.properties else ""


def _leaves(value: Any) -> list[Any]:
    return [x for part in value for x in _leaves(part)] if isinstance(value, tuple) else [value]
