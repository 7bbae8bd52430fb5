"""The debugging mode: code that reaches where it must not is caught, and ours does not."""

from __future__ import annotations

import runpy
from collections.abc import Callable

import numpy as np
import pytest
from support import ROOT, needs_shared
from xdsl.dialects.builtin import MemRefType, f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.builder import INDEX, FunctionBuilder
from mlirhlo.lowering.cpu import planner

pytest.importorskip("llvmlite")

BUFFER = MemRefType(f32, [40])
Body = Callable[[FunctionBuilder], None]


def _load_behind(b: FunctionBuilder) -> None:
    b.store(b.load(b.arguments[0], [b.mul(_number(b, 20), 2)]), b.arguments[1], [0])


def _number(b: FunctionBuilder, number: int) -> SSAValue:
    """A number that is not folded."""
    with b.loop(number, number + 1, 1, [b.constant(0, INDEX)]) as loop:
        loop.carry(loop.index)
    return loop.results[0]


def _vector_over_the_end(b: FunctionBuilder) -> None:
    b.vector_store(b.vector_load(b.arguments[0], [0], 16), b.arguments[1], [_number(b, 25)])


def _mask_over_the_end(b: FunctionBuilder) -> None:
    mask = b.mask(_number(b, 9), 16)
    b.vector_store(b.vector_load(b.arguments[0], [0], 16), b.arguments[1], [_number(b, 32)], mask)


def _negative_gather(b: FunctionBuilder) -> None:
    offsets = b.subi(b.steps(16), b.constant(1, b.steps(16).type))
    b.vector_store(b.gather(b.arguments[0], [0], offsets), b.arguments[1], [0])


def _half_written(b: FunctionBuilder) -> None:
    with b.loop(0, 32, 16) as i:
        b.vector_store(b.vector_load(b.arguments[0], [i], 16), b.arguments[1], [i])


def _writes_its_operand(b: FunctionBuilder) -> None:
    with b.loop(0, 40, 8) as i:
        b.vector_store(b.vector_load(b.arguments[0], [i], 8), b.arguments[1], [i])
    b.store(b.constant(7, f32), b.arguments[0], [3])


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (_load_behind, "HLO0439", "memref.load of memref<40xf32>"),
        (_vector_over_the_end, "HLO0439", "vector.store of memref<40xf32>"),
        (_mask_over_the_end, "HLO0439", "vector.maskedstore of memref<40xf32>"),
        (_negative_gather, "HLO0439", "vector.gather of memref<40xf32>"),
        (_half_written, "HLO0440", "element 32 (in the order of memory) of f32[40]"),
        (_writes_its_operand, "HLO0439", "parameter 0"),
    ],
)
def test_what_it_catches(
    body: Body, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str, *_: object) -> FuncOp:
        b = FunctionBuilder(name, [BUFFER, BUFFER])
        body(b)
        return b.finish()

    monkeypatch.setattr(planner, "build_kernel", broken)
    executable = mlirhlo.compile(mlirhlo.parse("f32[40] sine(f32[40] x)"), debug=True)
    with pytest.raises(HloError, match=code) as caught:
        executable(np.ones(40, np.float32))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "f32[7,37] sine(f32[7,37] x)",
        "f32[37,7] transpose(f32[7,37] x), dimensions={1,0}",
        "f32[5,3] dynamic-slice(f32[7,37] x, s32[] i, s32[] j), dynamic_slice_sizes={5,3}",
        "f32[7,39] pad(f32[7,37] x, f32[] p), padding=0_0x1_1",
        "f32[7,5] dot(f32[7,37] x, f32[37,5] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "c64[9] sine(c64[9] x)",
    ],
)
def test_what_it_lets_pass(text: str) -> None:
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(0)
    inputs = [
        rng.integers(0, 3, p.shape.dimensions).astype(p.shape.element_type.dtype)  # type: ignore[union-attr]
        for p in module.hlo.entry.parameters
    ]
    expected = module(*inputs)
    np.testing.assert_allclose(mlirhlo.compile(module, debug=True)(*inputs), expected, rtol=1e-5)


@needs_shared
@pytest.mark.slow
def test_programs_of_the_corpus() -> None:
    """Small ones; `tools/check_memory.py` takes all."""
    tool = runpy.run_path(str(ROOT / "tools" / "check_memory.py"))
    outcomes = [tool["check"](path) for path in tool["programs"](3000)[::6]]
    wrong = [o for o in outcomes if o.startswith(("HLO0439", "HLO0440"))]
    assert not wrong, "\n".join(wrong)
    assert outcomes.count("ok") > len(outcomes) / 2
