"""Products of which a `select` takes a part: tiles of which it takes nothing are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support import sampled
from unit.lowering.contraction_support import run
from unit.lowering.kernel_support import draw
from xdsl.dialects import func, scf

import mlirhlo
from mlirhlo.lowering.hlo_to_loops.contractions.kernels import contraction_kernel
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, array
from mlirhlo.runtime.threads import set_thread_count

pytest.importorskip("llvmlite")

NUMBERS = (
    "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}"
)
CAUSAL = """ENTRY e {
  x = TYPE[BATCH,ROWS,DEPTH] parameter(0)
  y = TYPE[BATCH,COLUMNS,DEPTH] parameter(1)
  d = TYPE[BATCH,ROWS,COLUMNS] dot(x, y), NUMBERS
  q = s32[ROWS,COLUMNS] iota(), iota_dimension=0
  k = s32[ROWS,COLUMNS] iota(), iota_dimension=1
  far = s32[ROWS,COLUMNS] broadcast(s32[] constant(SHIFT)), dimensions={}
  moved = s32[ROWS,COLUMNS] add(q, far)
  m = pred[ROWS,COLUMNS] compare(moved, k), direction=DIRECTION
  mask = pred[BATCH,ROWS,COLUMNS] broadcast(m), dimensions={1,2}
  s = TYPE[BATCH,ROWS,COLUMNS] broadcast(TYPE[] constant(3)), dimensions={}
  scaled = TYPE[BATCH,ROWS,COLUMNS] multiply(d, s)
  none = TYPE[BATCH,ROWS,COLUMNS] broadcast(TYPE[] constant(-7)), dimensions={}
  ROOT r = TYPE[BATCH,ROWS,COLUMNS] select(mask, ARMS)
}
"""
GIVEN = """ENTRY e {
  x = TYPE[BATCH,ROWS,DEPTH] parameter(0)
  y = TYPE[BATCH,COLUMNS,DEPTH] parameter(1)
  m = pred[MASK] parameter(2)
  d = TYPE[BATCH,ROWS,COLUMNS] dot(x, y), NUMBERS
  mask = pred[BATCH,ROWS,COLUMNS] broadcast(m), dimensions={DIMS}
  n = TYPE[BATCH,ROWS,COLUMNS] negate(d)
  none = TYPE[BATCH,ROWS,COLUMNS] broadcast(TYPE[] constant(-7)), dimensions={}
  chosen = TYPE[BATCH,ROWS,COLUMNS] select(mask, ARMS)
  ROOT r = TYPE[BATCH,ROWS,COLUMNS] abs(chosen)
}
"""
TOLERANCE = {"f32": 4e-6, "f64": 1e-13, "bf16": 1e-2, "s32": 0.0, "s8": 0.0}


def filled(text: str, **words: object) -> str:
    for word, value in {"numbers": NUMBERS, **words}.items():
        text = text.replace(word.upper(), str(value))
    return text


def agrees(text: str, arguments: list[Any], element: str) -> None:
    module = mlirhlo.parse(text)
    wanted = np.asarray(module(*arguments))
    for threads in (1, 2):
        set_thread_count(threads)
        try:
            (found,) = run(module, arguments, [wanted])
        finally:
            set_thread_count(0)
        apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max()
        assert apart <= TOLERANCE[element] * np.abs(wanted.astype(np.float64)).max(), text


def is_chosen(text: str) -> bool:
    """Whether tiles are made only where one of their elements is taken; all or none are."""
    entry = mlirhlo.parse(text).hlo.entry
    root = entry.root.output
    operands = [p.output for p in entry.parameters]
    kernel = contraction_kernel("kernel", [Output(root, array(root))], operands)
    assert kernel is not None
    tiles = [
        op
        for op in kernel.walk()
        if isinstance(op, func.CallOp) and op.callee.root_reference.data.startswith("tile_")
    ]
    assert tiles
    found = {isinstance(op.parent_op(), scf.IfOp) for op in tiles}
    assert len(found) == 1
    return found.pop()


SIZES = {"batch": 2, "rows": 67, "columns": 70, "depth": 64}


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("arms", ["scaled, none", "none, scaled"])
@pytest.mark.parametrize("direction", ["GE", "LT"])
def test_tiles_above_the_diagonal_are_left_out(arms: str, direction: str) -> None:
    text = filled(CAUSAL, type="f32", shift=0, arms=arms, direction=direction, **SIZES)
    assert is_chosen(text)
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, "f32", (2, n, 64)) for n in (67, 70)], "f32")


def test_short_sums_are_all_made() -> None:
    sizes = {**SIZES, "depth": 16}
    assert not is_chosen(
        filled(CAUSAL, type="f32", shift=0, arms="scaled, none", direction="GE", **sizes)
    )


def test_sums_that_something_else_reads_are_all_made() -> None:
    text = filled(CAUSAL, type="f32", shift=0, arms="scaled, d", direction="GE", **SIZES)
    assert not is_chosen(text)


def test_a_predicate_of_the_sums_leaves_nothing_out() -> None:
    text = filled(CAUSAL, type="f32", shift=0, arms="scaled, none", direction="GE", **SIZES)
    text = text.replace("select(mask", "select(above")
    line = "  above = pred[2,67,70] compare(d, none), direction=GT\n  ROOT"
    assert not is_chosen(text.replace("  ROOT", line))


def test_a_dear_predicate_is_not_computed_twice() -> None:
    text = filled(CAUSAL, type="f32", shift=0, arms="scaled, none", direction="GE", **SIZES)
    text = text.replace("m = pred[67,70] compare(moved, k)", "m = pred[67,70] compare(fq, fk)")
    lines = (
        "  c = f32[67,70] convert(moved)\n  fq = f32[67,70] tanh(c)\n"
        "  fk = f32[67,70] convert(k)\n  m ="
    )
    assert not is_chosen(text.replace("  m =", lines))


def test_all_or_nothing_by_one_bit() -> None:
    """The predicate of a select may be one for all."""
    text = filled(GIVEN, type="f32", mask="", dims="", arms="n, none", **SIZES)
    text = text.replace("select(mask", "select(m")
    assert is_chosen(text)
    rng = np.random.default_rng(1)
    arguments: list[Any] = [draw(rng, "f32", (2, n, 64)) for n in (67, 70)]
    for bit in (False, True):
        agrees(text, [*arguments, np.array(bit)], "f32")


@sampled(6)
def test_any_choice(every: int) -> None:
    phases = (Phase.explicit, Phase.generate)
    settings(max_examples=60 // every, deadline=None, phases=phases)(given(st.data())(any_choice))()


def any_choice(data: st.DataObject) -> None:
    """Diagonals anywhere and masks of every rank, of whole tiles and of single elements."""
    element = data.draw(st.sampled_from(["f32", "f32", "f64", "bf16", "s32", "s8"]))
    sizes: dict[str, int] = {
        "batch": data.draw(st.integers(1, 3)),
        "rows": data.draw(st.one_of(st.integers(1, 40), st.integers(41, 300))),
        "columns": data.draw(st.one_of(st.integers(1, 40), st.integers(41, 300))),
        "depth": data.draw(st.sampled_from([32, 33, 64, 100, 5000])),
    }
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    depth, batch = sizes["depth"], sizes["batch"]
    arguments: list[Any] = [
        draw(rng, element, (batch, sizes[n], depth)) for n in ("rows", "columns")
    ]
    arms = ["PRODUCT", "none"]
    if data.draw(st.booleans()):
        arms.reverse()
    words: dict[str, Any] = {"type": element, "arms": ", ".join(arms), **sizes}
    if data.draw(st.booleans()):
        words |= {"shift": data.draw(st.integers(-300, 300))}
        words |= {"direction": data.draw(st.sampled_from(["GE", "GT", "LE", "LT", "EQ", "NE"]))}
        text = filled(CAUSAL, **words).replace("PRODUCT", "scaled")
    else:
        dims = data.draw(st.sampled_from([(0, 1, 2), (1, 2), (0, 2), (2,), (1,), (0,)]))
        shape = tuple((batch, sizes["rows"], sizes["columns"])[d] for d in dims)
        words |= {"mask": ",".join(map(str, shape)), "dims": ",".join(map(str, dims))}
        text = filled(GIVEN, **words).replace("PRODUCT", "n")
        few = data.draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]))
        arguments.append(rng.random(shape) < few)
    agrees(text, arguments, element)
