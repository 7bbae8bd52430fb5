"""Kernels of rows and columns against the interpreter: types, shapes, layouts, reducers, threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.lowering.kernel_support import ARGMAX, agrees, draw, loops_of, reducer, run

import mlirhlo
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.lowering import target
from mlirhlo.lowering.hlo_to_loops.canonical import canonical
from mlirhlo.lowering.hlo_to_loops.fold_plan import Declined, fold_plan

pytest.importorskip("llvmlite")

EPSILON = {"f64": 1e-13, "f32": 1e-5, "bf16": 1.5e-2, "f16": 2e-3, "c64": 1e-5}


def text_of(body: str, *computations: str) -> str:
    return "".join(computations) + "ENTRY e {\n" + body + "\n}\n"


def softmax(type_: str, sizes: str, kept: str, dims: str, folded: str) -> str:
    """Softmax along `folded`, with what is folded as results too."""
    return text_of(
        f"""  x = {type_}[{sizes}] parameter(0)
  low = {type_}[] constant(-inf)
  zero = {type_}[] constant(0)
  m = {type_}[{kept}] reduce(x, low), dimensions={{{folded}}}, to_apply=most
  mb = {type_}[{sizes}] broadcast(m), dimensions={{{dims}}}
  d = {type_}[{sizes}] subtract(x, mb)
  e = {type_}[{sizes}] exponential(d)
  s = {type_}[{kept}] reduce(e, zero), dimensions={{{folded}}}, to_apply=sum
  sb = {type_}[{sizes}] broadcast(s), dimensions={{{dims}}}
  r = {type_}[{sizes}] divide(e, sb)
  l = {type_}[{kept}] log(s)
  ROOT t = ({type_}[{sizes}], {type_}[{kept}]) tuple(r, l)""",
        reducer("most", type_, "maximum"),
        reducer("sum", type_, "add"),
    )


WIDE = replace(target.host(), vector_bytes=64, l2_bytes=1 << 20)
"""Vectors of 16 floats, whatever this processor has."""

LENGTHS = [1, 2, 3, 15, 16, 17, 31, 64, 101, 130, 1027]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("length", LENGTHS)
def test_softmax_of_rows(type_: str, length: int) -> None:
    x = draw(np.random.default_rng(length), type_, (3, length))
    text = softmax(type_, f"3,{length}", "3", "0", "1")
    agrees(text, [x], tolerance=EPSILON[type_])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("length", [32, 100])
def test_dear_results_of_rows(type_: str, length: int) -> None:
    """Those of as many rows as there are lanes are computed at once."""
    x = draw(np.random.default_rng(length), type_, (48, length))
    text = softmax(type_, f"48,{length}", "48", "0", "1")
    agrees(text, [x], tolerance=EPSILON[type_])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16])
@pytest.mark.parametrize("rows", [16, 41])
def test_softmax_of_many_short_rows(type_: str, length: int, rows: int) -> None:
    """Rows that go in the lanes of vectors."""
    x = draw(np.random.default_rng(length), type_, (3, rows, length))
    text = softmax(type_, f"3,{rows},{length}", f"3,{rows}", "0,1", "2")
    agrees(text, [x], tolerance=EPSILON[type_])


def test_short_rows_that_fill_no_vector_are_no_loop_of_their_own() -> None:
    """The last vector of rows begins earlier, and does some again."""
    modules = [mlirhlo.parse(softmax("f32", f"{n},7", f"{n}", "0", "1")) for n in (32, 37)]
    with target.using(WIDE):
        loops = [str(loops_of(module)) for module in modules]
    assert [text.count("scf.parallel") for text in loops] == [1, 1]
    assert [text.count("vector.maskedload") for text in loops] == [16, 16]


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", [2, 3, 5, 6, 8])
def test_several_short_rows_in_a_vector(length: int) -> None:
    """As many vectors are read and written as the rows fill."""
    module = mlirhlo.parse(softmax("f32", f"32,{length}", "32", "0", "1"))
    with target.using(WIDE):
        loops = str(loops_of(module))
    assert "vector.masked" not in loops
    # And the rows' own result.
    assert (loops.count("vector.load"), loops.count("vector.store")) == (length, length + 1)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("length", [1, 3, 8, 10, 16])
@pytest.mark.parametrize("type_", ["f32", "bf16", "u8"])
def test_distances_of_points(type_: str, length: int) -> None:
    """Short rows of an operand that other rows are compared with: none is gathered."""
    sizes = f"7,40,{length}"
    text = text_of(
        f"""  x = {type_}[7,{length}] parameter(0)
  y = {type_}[40,{length}] parameter(1)
  zero = {type_}[] constant(0)
  xs = {type_}[{sizes}] broadcast(x), dimensions={{0,2}}
  ys = {type_}[{sizes}] broadcast(y), dimensions={{1,2}}
  d = {type_}[{sizes}] subtract(xs, ys)
  q = {type_}[{sizes}] multiply(d, d)
  ROOT r = {type_}[7,40] reduce(q, zero), dimensions={{2}}, to_apply=sum""",
        reducer("sum", type_, "add"),
    )
    assert length == 1 or "vector.gather" not in str(loops_of(mlirhlo.parse(text)))
    rng = np.random.default_rng(length)
    x, y = (draw(rng, type_, (n, length)) for n in (7, 40))
    agrees(text, [x, y], tolerance=EPSILON.get(type_, 0.0))


def squares(rows: int) -> str:
    """Rows divided by the sums of their squares."""
    return text_of(
        f"""  x = f32[{rows},1024] parameter(0)
  zero = f32[] constant(0)
  q = f32[{rows},1024] multiply(x, x)
  s = f32[{rows}] reduce(q, zero), dimensions={{1}}, to_apply=sum
  b = f32[{rows},1024] broadcast(s), dimensions={{0}}
  ROOT r = f32[{rows},1024] multiply(x, b)""",
        reducer("sum", "f32", "add"),
    )


def test_rows_from_memory_take_shorter_code() -> None:
    """They are waited for, whatever is done meanwhile."""
    with target.using(WIDE):
        near, far = (str(loops_of(mlirhlo.parse(squares(rows)))) for rows in (64, 4096))
    assert (near.count("vector.load"), far.count("vector.load")) == (4 + 4, 2 + 1)


def test_lanes_of_sums_are_added_by_one_op() -> None:
    with target.using(WIDE):
        loops = str(loops_of(mlirhlo.parse(squares(64))))
    assert loops.count("vector.reduction <add>") == 1
    assert "vector.shuffle" not in loops


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("processor", [target.GENERIC, target.AVX2])
def test_softmax_of_rows_on_other_processors(type_: str, processor: target.Target) -> None:
    """Rows that are worked on together are more, or fewer, than a vector has lanes."""
    x = draw(np.random.default_rng(0), type_, (8, 40))
    with target.using(processor):
        agrees(softmax(type_, "8,40", "8", "0", "1"), [x], tolerance=EPSILON[type_])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("width", [1, 3, 16, 33, 130])
def test_softmax_of_columns(type_: str, width: int) -> None:
    x = draw(np.random.default_rng(width), type_, (9, width))
    agrees(softmax(type_, f"9,{width}", f"{width}", "1", "0"), [x], tolerance=EPSILON[type_])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("threads", [1, 2])
def test_long_rows_and_high_columns_in_pieces(threads: int) -> None:
    rng = np.random.default_rng(0)
    x = draw(rng, "f32", (2, 70001))
    agrees(softmax("f32", "2,70001", "2", "0", "1"), [x], tolerance=2e-5, threads=threads)
    y = draw(rng, "f32", (3001, 50))
    agrees(softmax("f32", "3001,50", "50", "1", "0"), [y], tolerance=2e-5, threads=threads)


def test_results_do_not_depend_on_threads() -> None:
    """Pieces are cut by the size alone."""
    from unit.lowering.kernel_support import run

    module = mlirhlo.parse(
        text_of(
            "  x = f32[300001] parameter(0)\n  zero = f32[] constant(0)\n"
            "  ROOT s = f32[] reduce(x, zero), dimensions={0}, to_apply=sum",
            reducer("sum", "f32", "add"),
        )
    )
    x = draw(np.random.default_rng(0), "f32", (300001,))
    one, two = (run(module, [x], threads)[0] for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


@st.composite
def _folds(draw_: st.DrawFn) -> tuple[str, str, tuple[int, ...], list[int], list[int], str]:
    type_ = draw_(st.sampled_from(["f32", "f64", "bf16", "s32", "u8", "s64", "pred", "c64", "s4"]))
    sizes = tuple(draw_(st.lists(st.sampled_from([1, 2, 3, 5, 16, 33]), min_size=1, max_size=4)))
    rank = len(sizes)
    folded = sorted(draw_(st.sets(st.integers(0, rank - 1), max_size=rank)))
    layout = draw_(st.permutations(range(rank)))
    words = ["add", "multiply", "maximum", "minimum"]
    if type_ == "c64":
        words = ["add", "multiply"]
    elif type_ in ("s32", "u8", "s64", "pred", "s4"):
        words += ["and", "or", "xor"] if type_ != "pred" else ["and", "or"]
    word = draw_(st.sampled_from(words))
    epilogue = draw_(st.sampled_from(["no", "kept", "whole"]))
    return type_, word, sizes, folded, list(layout), epilogue


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_folds())
@pytest.mark.slow
def test_any_fold(case: tuple[str, str, tuple[int, ...], list[int], list[int], str]) -> None:
    type_, word, sizes, folded, layout, epilogue = case
    kept = [d for d in range(len(sizes)) if d not in folded]
    whole = f"{type_}[{','.join(map(str, sizes))}]"
    layout_text = "{" + ",".join(map(str, layout)) + "}"
    part = f"{type_}[{','.join(str(sizes[d]) for d in kept)}]"
    dims = ",".join(map(str, folded))
    combine = "or" if type_ == "pred" else "add"
    root = {
        "no": f"ROOT o = {part} copy(r)",
        "kept": f"ROOT o = {part} {combine}(r, r)",
        "whole": (
            f"b = {whole} broadcast(r), dimensions={{{','.join(map(str, kept))}}}\n"
            f"  ROOT o = {whole}{layout_text} {combine}(b, x)"
        ),
    }[epilogue]
    body = (
        f"  x = {whole}{layout_text} parameter(0)\n  i = {type_}[] parameter(1)\n"
        f"  r = {part} reduce(x, i), dimensions={{{dims}}}, to_apply=f\n  {root}"
    )
    rng = np.random.default_rng(len(body))
    arguments = [draw(rng, type_, sizes), draw(rng, type_, ())]
    tolerance = EPSILON.get(type_, 0.0) * (20 if word == "multiply" else 1)
    agrees(text_of(body, reducer("f", type_, word)), arguments, tolerance=tolerance)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("direction", ["GT", "LT"])
@pytest.mark.parametrize(
    ("sizes", "along"),
    [((5, 100), 1), ((50, 6), 1), ((100, 5), 0), ((3, 40000), 1), ((64, 33), 1)],
)
def test_argmax(type_: str, direction: str, sizes: tuple[int, int], along: int) -> None:
    """Ties go to the first, and so do NaNs. Of several rows of bf16 LLVM can select no shuffle (64, 33)."""
    m, n = sizes
    kept = sizes[1 - along]
    body = f"""  x = {type_}[{m},{n}] parameter(0)
  i = s32[{m},{n}] iota(), iota_dimension={along}
  low = {type_}[] constant({"-inf" if direction == "GT" else "inf"})
  zero = s32[] constant(0)
  r = ({type_}[{kept}], s32[{kept}]) reduce(x, i, low, zero), dimensions={{{along}}}, to_apply=pick
  ROOT a = s32[{kept}] get-tuple-element(r), index=1"""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 50, sizes).astype(PRIMITIVE_TYPES[type_].dtype)
    x[rng.random(sizes) < 2 / sizes[along]] = np.nan
    agrees(text_of(body, ARGMAX.replace("DIRECTION", direction).replace("TYPE", type_)), [x])


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize(("word", "start"), [("maximum", "-inf"), ("minimum", "inf")])
@pytest.mark.parametrize(("length", "rows"), [(16, 12), (40, 12), (40, 11), (128, 12), (1000, 12)])
def test_extremes_know_signs_of_zero_and_numbers_that_are_none(
    type_: str, word: str, start: str, length: int, rows: int
) -> None:
    """Of +0 and -0 the greatest is +0, the least -0; a NaN anywhere in a row is its extreme."""
    rng = np.random.default_rng(length)
    dtype = np.float32 if type_ == "f32" else np.float64
    x = np.full((rows, length), 1.0 if word == "minimum" else -1.0, dtype)
    x[:6, rng.integers(length, size=3)] = 0.0
    x[2:8, rng.integers(length, size=3)] = -0.0
    x[5:7, rng.integers(length)] = np.nan
    x[6:8, rng.integers(length)] = -np.nan
    x[9, -1] = np.nan
    text = text_of(
        f"""  x = {type_}[{rows},{length}] parameter(0)
  i = {type_}[] constant({start})
  ROOT r = {type_}[{rows}] reduce(x, i), dimensions={{1}}, to_apply=best""",
        reducer("best", type_, word),
    )
    (found,) = run(mlirhlo.parse(text), [x], 1, 0)
    # The order of numbers with signs, which totals keep: zeros as the numbers next to them.
    signed = np.where(x == 0, np.copysign(np.finfo(dtype).tiny, x), x)
    wanted = signed.max(1) if word == "maximum" else signed.min(1)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    small = np.abs(wanted) == np.finfo(dtype).tiny
    assert small.any()
    assert np.array_equal(np.signbit(found[small]), np.signbit(wanted[small]))
    assert np.array_equal(found[~small], wanted[~small], equal_nan=True)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize(("word", "start"), [("maximum", "-inf"), ("minimum", "inf")])
@pytest.mark.parametrize("length", [16, 40, 128, 1000])
def test_extremes_are_the_same_along_their_rows(
    type_: str, word: str, start: str, length: int
) -> None:
    """Where a row goes on with its extreme: NaN everywhere for a NaN anywhere, zeros with their signs."""
    rng = np.random.default_rng(length)
    x = rng.standard_normal((length + 2, length)).astype(PRIMITIVE_TYPES[type_].dtype)
    np.fill_diagonal(x, np.nan)
    x[length:] = -0.0
    x[length, rng.integers(length)] = 0.0
    body = f"""  x = {type_}[{length + 2},{length}] parameter(0)
  i = {type_}[] constant({start})
  r = {type_}[{length + 2}] reduce(x, i), dimensions={{1}}, to_apply=best
  b = {type_}[{length + 2},{length}] broadcast(r), dimensions={{0}}
  ROOT d = {type_}[{length + 2},{length}] subtract(x, b)"""
    (found,) = run(mlirhlo.parse(text_of(body, reducer("best", type_, word))), [x], 1, 0)
    assert np.isnan(found[:length]).all()
    zeros = np.array([[0.0 if word == "maximum" else -0.0], [-0.0]], x.dtype)
    wanted = x[length:] - zeros
    assert np.array_equal(found[length:], wanted)
    assert np.array_equal(np.signbit(found[length:]), np.signbit(wanted))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("start", ["0", "-0"])
@pytest.mark.parametrize("length", [16, 40, 1030])
def test_what_is_spread_over_a_row_knows_signs_of_zero_and_numbers_that_are_none(
    start: str, length: int
) -> None:
    """-0 added to +0 is +0, the greater of them too; one NaN makes a row NaN. Nobody asks for elements."""
    x = np.full((3, length), -0.0, np.float32)
    x[1, -1], x[2] = np.nan, -3
    shape = f"f32[3,{length}]"
    text = text_of(
        f"""  x = {shape} parameter(0)
  z = f32[] constant({start})
  s = f32[3] reduce(x, z), dimensions={{1}}, to_apply=sum
  m = f32[3] reduce(x, z), dimensions={{1}}, to_apply=most
  sb = {shape} broadcast(s), dimensions={{0}}
  mb = {shape} broadcast(m), dimensions={{0}}
  ROOT r = ({shape}, {shape}) tuple(sb, mb)""",
        reducer("sum", "f32", "add"),
        reducer("most", "f32", "maximum"),
    )
    for found, last in zip(
        run(mlirhlo.parse(text), [x], 1, 0), (-3.0 * length, float(start)), strict=True
    ):
        wanted = np.empty_like(x)
        wanted[:] = np.array([[float(start)], [np.nan], [last]])
        assert np.array_equal(found, wanted, equal_nan=True)
        assert np.array_equal(np.signbit(found[::2]), np.signbit(wanted[::2]))


def test_what_has_an_order_keeps_it() -> None:
    """A reducer that neither commutes nor associates is no row kernel, and folds in order."""
    text = text_of(
        "  x = s32[3,50] parameter(0)\n  i = s32[] constant(7)\n"
        "  ROOT r = s32[3] reduce(x, i), dimensions={1}, to_apply=f",
        "f {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] subtract(a, b)\n}\n",
    )
    entry = mlirhlo.parse(text).hlo.entry
    found = canonical([(entry.root.output, None)], [p.output for p in entry.parameters])
    assert found is not None
    with pytest.raises(Declined):
        fold_plan(found.outputs, found.operands)
    agrees(text, [draw(np.random.default_rng(0), "s32", (3, 50))])


def test_layer_norm_with_a_residual_as_a_second_result() -> None:
    text = text_of(
        """  x = f32[4,6,50] parameter(0)
  y = f32[4,6,50] parameter(1)
  g = f32[50] parameter(2)
  z = f32[4,6,50] add(x, y)
  zero = f32[] constant(0)
  n = f32[] constant(0.02)
  nb = f32[4,6] broadcast(n), dimensions={}
  s = f32[4,6] reduce(z, zero), dimensions={2}, to_apply=sum
  m = f32[4,6] multiply(s, nb)
  mb = f32[4,6,50] broadcast(m), dimensions={0,1}
  d = f32[4,6,50] subtract(z, mb)
  q = f32[4,6,50] multiply(d, d)
  v = f32[4,6] reduce(q, zero), dimensions={2}, to_apply=sum
  r = f32[4,6] rsqrt(v)
  rb = f32[4,6,50] broadcast(r), dimensions={0,1}
  gb = f32[4,6,50] broadcast(g), dimensions={2}
  a = f32[4,6,50] multiply(d, rb)
  o = f32[4,6,50] multiply(a, gb)
  ROOT t = (f32[4,6,50], f32[4,6,50]) tuple(o, z)""",
        reducer("sum", "f32", "add"),
    )
    rng = np.random.default_rng(0)
    arguments = [draw(rng, "f32", s) for s in ((4, 6, 50), (4, 6, 50), (50,))]
    agrees(text, arguments, tolerance=1e-5)


def test_the_sum_of_a_product_writes_nothing_between() -> None:
    """`reduce_sum(x + y * z)` is one walk over three arrays."""
    text = text_of(
        """  x = f32[64,100] parameter(0)
  y = f32[64,100] parameter(1)
  z = f32[64,100] parameter(2)
  p = f32[64,100] multiply(y, z)
  a = f32[64,100] add(x, p)
  zero = f32[] constant(0)
  ROOT s = f32[] reduce(a, zero), dimensions={0,1}, to_apply=sum""",
        reducer("sum", "f32", "add"),
    )
    rng = np.random.default_rng(0)
    agrees(text, [draw(rng, "f32", (64, 100)) for _ in range(3)], tolerance=1e-5)
    loops = str(loops_of(mlirhlo.parse(text)))
    assert "alloca" not in loops
    assert loops.count("store") == 1


def test_what_is_cheap_for_each_element_is_computed_again() -> None:
    """The difference from a mean is not saved, however long the mean takes; the next row comes into L2."""
    text = text_of(
        """  x = f32[64,512] parameter(0)
  zero = f32[] constant(0)
  s = f32[64] reduce(x, zero), dimensions={1}, to_apply=sum
  n = f32[] constant(500)
  nb = f32[64] broadcast(n), dimensions={}
  m = f32[64] divide(s, nb)
  mb = f32[64,512] broadcast(m), dimensions={0}
  d = f32[64,512] subtract(x, mb)
  q = f32[64,512] multiply(d, d)
  t = f32[64] reduce(q, zero), dimensions={1}, to_apply=sum
  r = f32[64] rsqrt(t)
  rb = f32[64,512] broadcast(r), dimensions={0}
  ROOT o = f32[64,512] multiply(d, rb)""",
        reducer("sum", "f32", "add"),
    )
    agrees(text, [draw(np.random.default_rng(0), "f32", (64, 512))], tolerance=1e-5)
    loops = str(loops_of(mlirhlo.parse(text)))
    assert "alloca" not in loops
    assert "locality<2>" in loops


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("sizes", [(40, 130), (3, 40000), (64, 1024)])
def test_what_is_read_once_is_asked_for_where_no_cache_holds_it(
    type_: str, sizes: tuple[int, int]
) -> None:
    """Beyond the end too."""
    rows, length = sizes
    text = text_of(
        f"""  x = {type_}[{rows},{length}] parameter(0)
  y = {type_}[{length}] parameter(1)
  yb = {type_}[{rows},{length}] broadcast(y), dimensions={{1}}
  p = {type_}[{rows},{length}] multiply(x, yb)
  zero = {type_}[] constant(0)
  ROOT s = {type_}[{rows}] reduce(p, zero), dimensions={{1}}, to_apply=sum""",
        reducer("sum", type_, "add"),
    )
    rng = np.random.default_rng(0)
    arguments = [draw(rng, type_, sizes), draw(rng, type_, (length,))]
    with target.using(replace(target.current(), l2_bytes=64)):
        agrees(text, arguments, tolerance=10 * EPSILON[type_])
        assert "memref.prefetch" in str(loops_of(mlirhlo.parse(text)))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(("count", "elements"), [(1, 1024), (2, 512), (3, 256), (4, 256)])
@pytest.mark.parametrize("l3_bytes", [64, 64 << 20])
def test_what_is_asked_for_shares_the_first_cache(count: int, elements: int, l3_bytes: int) -> None:
    """Four KiB of all operands; what is larger than all caches does not pass through them."""
    names = [f"x{at}" for at in range(count)]
    lines = [f"  {name} = f32[64,1032] parameter({at})" for at, name in enumerate(names)]
    for at, name in enumerate(names[1:]):
        before = names[0] if at == 0 else f"t{at - 1}"
        lines.append(f"  t{at} = f32[64,1032] add({before}, {name})")
    last = f"t{count - 2}" if count > 1 else names[0]
    lines += [
        "  zero = f32[] constant(0)",
        f"  ROOT s = f32[64] reduce({last}, zero), dimensions={{1}}, to_apply=sum",
    ]
    text = text_of("\n".join(lines), reducer("sum", "f32", "add"))
    with target.using(replace(target.current(), l2_bytes=64, l3_bytes=l3_bytes)):
        loops = str(loops_of(mlirhlo.parse(text)))
    assert f"arith.constant {elements} : index" in loops
    assert ("locality<0>" in loops) == (l3_bytes == 64)
    assert ("locality<3>" in loops) == (l3_bytes > 64)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("type_", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("sizes", [(43, 130), (7, 64), (5, 3, 300)])
def test_rows_below_are_asked_for_where_no_cache_holds_them(
    type_: str, sizes: tuple[int, ...]
) -> None:
    """Into the second cache, beyond the end too, and eight at once."""
    shape, kept = ",".join(map(str, sizes)), ",".join(map(str, sizes[1:]))
    text = text_of(
        f"""  x = {type_}[{shape}] parameter(0)
  p = {type_}[{shape}] multiply(x, x)
  zero = {type_}[] constant(0)
  ROOT s = {type_}[{kept}] reduce(p, zero), dimensions={{0}}, to_apply=sum""",
        reducer("sum", type_, "add"),
    )
    arguments = [draw(np.random.default_rng(0), type_, sizes)]
    assert "memref.prefetch" not in str(loops_of(mlirhlo.parse(text)))
    with target.using(replace(target.current(), l2_bytes=64)):
        agrees(text, arguments, tolerance=10 * EPSILON[type_])
        assert "locality<2>" in str(loops_of(mlirhlo.parse(text)))


def test_pieces_of_columns_leave_no_rows_over() -> None:
    """Where rows are a multiple of those that are walked at once there are no loops for the rest."""
    loops: list[int] = []
    for rows in (4096, 4099):
        text = text_of(
            f"""  x = f32[{rows},40] parameter(0)
  zero = f32[] constant(0)
  ROOT s = f32[40] reduce(x, zero), dimensions={{0}}, to_apply=sum""",
            reducer("sum", "f32", "add"),
        )
        agrees(text, [draw(np.random.default_rng(0), "f32", (rows, 40))], tolerance=1e-4)
        loops.append(str(loops_of(mlirhlo.parse(text))).count("scf.for"))
    assert loops[0] < loops[1]


def test_a_program_has_one_text() -> None:
    """Saved values of a row are read in one order, wherever in memory the compiler's objects lie."""
    text = text_of(
        """  x = f32[64,700] parameter(0)
  y = f32[64,700] parameter(1)
  zero = f32[] constant(0)
  p = f32[64,700] exponential(x)
  q = f32[64,700] tanh(y)
  u = f32[64,700] logistic(y)
  pq = f32[64,700] add(p, q)
  pqu = f32[64,700] add(pq, u)
  s = f32[64] reduce(pqu, zero), dimensions={1}, to_apply=sum
  b = f32[64,700] broadcast(s), dimensions={0}
  d = f32[64,700] divide(p, b)
  g = f32[64,700] multiply(q, d)
  ROOT r = f32[64,700] add(g, u)""",
        reducer("sum", "f32", "add"),
    )
    elsewhere: list[object] = []
    texts: set[str] = set()
    for number in range(24):
        texts.add(str(loops_of(mlirhlo.parse(text))))
        elsewhere.append([object() for _ in range(37 * number)])
    assert len(texts) == 1
