"""The smallest module that shows a fault: known faults, by condition."""

from __future__ import annotations

from pathlib import Path

import pytest
from planted.bugs import WRONG_PASSES, bugs

from mlirhlo.debug.reduce import Event, cuts, hlo, mlir, reduce, sizes
from mlirhlo.debug.trials.conditions import Condition
from mlirhlo.debug.trials.texts import module_text, read_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule

FLOOR = Condition(
    "differs", ("Interpreter:wrong{only=floor_is_lost}", "Interpreter"), load_passes=(WRONG_PASSES,)
)
SMALL = """HloModule small
helper { p = f32[4,6] parameter(0)  f = f32[4,6] floor(p)  ROOT g = f32[4,6] negate(f) }
ENTRY e {
  x = f32[4,6] parameter(0), metadata={op_name="x"}
  k = f32[4,6] constant({...})
  s = f32[4,6] sine(x), sharding={replicated}
  h = f32[4,6] call(s), to_apply=helper
  m = f32[4,6] multiply(h, x)
  ROOT t = (f32[4,6], f32[4,6]) tuple(m, s)
}
"""


@pytest.mark.slow
def test_a_planted_bug_becomes_a_few_instructions() -> None:
    bug = next(bug for bug in bugs() if bug.name == "abs_of_negate_in_loop")
    done = reduce(bug.text, bug.condition, jobs=2)
    assert done.instructions_before > 1000
    assert done.instructions <= 5
    assert done.verdict.holds


@pytest.mark.slow
def test_verdicts_are_kept_and_the_way_is_the_same(tmp_path: Path) -> None:
    text = SMALL.replace("  k = f32[4,6] constant({...})\n", "")
    events: list[Event] = []

    def stop(event: Event) -> None:
        events.append(event)
        if event.is_smaller and len(events) > 3:
            raise KeyboardInterrupt

    known = str(tmp_path / "known")
    with pytest.raises(KeyboardInterrupt):
        reduce(text, FLOOR, verdicts=known, progress=stop)
    again = reduce(text, FLOOR, verdicts=known)
    whole = reduce(text, FLOOR, jobs=2)
    assert again.cached > 0
    assert again.text == reduce(text, FLOOR, verdicts=known).text
    assert again.instructions == whole.instructions == 2


@pytest.mark.slow
def test_a_condition_that_does_not_hold(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="HLO0862"):
        reduce("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\n", FLOOR)


@pytest.mark.slow
def test_stablehlo() -> None:
    text = """func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.add %x, %y : tensor<4xf32>
      %1 = stablehlo.tanh %0 : tensor<4xf32>
      %2 = stablehlo.multiply %1, %y : tensor<4xf32>
      return %2 : tensor<4xf32>
    }"""
    done = reduce(text, Condition("command", command="grep -q tanh"), name="m.mlir")
    assert done.text.count("stablehlo.") == 1


KERNEL = """module {
  func.func @k(%a: memref<8x128xf32, #tpu.memory_space<vmem>>,
               %b: memref<8x128xf32, #tpu.memory_space<vmem>>) {
    %c0 = arith.constant 0 : index
    %0 = vector.load %a[%c0, %c0] : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>
    %1 = math.rsqrt %0 : vector<8x128xf32>
    %2 = arith.mulf %1, %0 : vector<8x128xf32>
    tpu.vector_store %b[%c0, %c0], %2 {strides = array<i32>}
      : memref<8x128xf32, #tpu.memory_space<vmem>>, vector<8x128xf32>,
    return
  }
}
"""


@pytest.mark.slow
def test_kernels() -> None:
    done = reduce(KERNEL, Condition("command", command="grep -q rsqrt"), name="k.mlir")
    assert "mulf" not in done.text
    assert "math.rsqrt" in done.text


# ---------------------------------------------------------------- reducers


def changed(name: str, *places: int, text: str = SMALL) -> str:
    module = read_module(text.encode(), "m.hlo")
    reducer = next(r for r in hlo.REDUCERS if r.name == name)
    assert reducer.places(module) > max(places)
    reducer.apply(module, places)
    hlo.tidy(module)
    return module_text(module)


def test_outputs_are_dropped() -> None:
    assert "ROOT %s" in changed("drop outputs", 0)


def test_attributes_are_dropped() -> None:
    count = len([1 for r in hlo.REDUCERS if r.name == "drop attributes"])
    assert count == 1
    text = changed("drop attributes", 0, text=SMALL.replace("  k = f32[4,6] constant({...})\n", ""))
    assert "sharding" not in text


def test_instructions_become_parameters_and_zeros() -> None:
    names = [op.instruction_name for op in hlo._computing(read_module(SMALL.encode(), "m.hlo"))]
    assert "%m.p" in changed("replace by parameters", names.index("m"))
    assert "%f.z = f32[] constant(0)" in changed("replace by parameters", names.index("f"))


def test_loops_become_calls_of_their_body() -> None:
    text = """HloModule l
c { p = s32[] parameter(0)  z = s32[] constant(9)  ROOT t = pred[] compare(p, z), direction=LT }
b { p = s32[] parameter(0)  ROOT o = s32[] add(p, p) }
ENTRY e { x = s32[] parameter(0)  ROOT w = s32[] while(x), condition=c, body=b }
"""
    assert "call(%x), to_apply=%b" in changed("unwrap loops and branches", 0, text=text)


@pytest.mark.parametrize("position", range(1, 5))
def test_both_ends_are_cut(position: int) -> None:
    for cut in (cuts.keep_before, cuts.keep_behind):
        module = read_module(SMALL.encode(), "m.hlo")
        cut(module, position)
        hlo.tidy(module)
        assert HloModule(module).entry.root is not None
        read_module(module_text(module).encode(), "again.hlo")


def test_sizes_shrink_with_what_is_made_of_them() -> None:
    text = "f32[4,6] x f32[24] y slice={[0:4], [2:6]} window={size=4x6}"
    assert sizes.sizes_of(text) == [24, 6, 4]
    assert "f32[2,6] x f32[12] y slice={[0:2], [2:6]} window={size=2x6}" in sizes.smaller(text, 4)
    assert sizes.elements_of(text) == 48


def test_every_mlir_reducer_leaves_text_that_is_read() -> None:
    for reducer in mlir.MLIR_REDUCERS:
        for place in range(reducer.places(read_module(KERNEL.encode(), "k.mlir"))):
            module = read_module(KERNEL.encode(), "k.mlir")
            reducer.apply(module, [place])
            read_module(module_text(module).encode(), "k.mlir")
