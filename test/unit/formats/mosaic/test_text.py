# The printer leaves a blank at the end of some lines.
# ruff: noqa: E501, W291
"""Text of kernels: what is mended, what is refused and where, layouts."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.tpu.attributes import TiledLayoutAttr
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.dialects.tpu.values import TiledLayout, VectorLayout
from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.formats.mosaic.templates import nodes_of
from mlirhlo.mosaic.decode import read_kernel

VMEM = "memref<8x128xf32, #tpu.memory_space<vmem>>"
KERNEL = f"""module @k attributes {{stable_mosaic.version = 15 : i64}} {{
  func.func @main(%i: i32, %x: {VMEM}, %y: memref<8x128xf32, #tpu.tiled<(8,128),[1,1]>, #tpu.memory_space<vmem, tc>>) attributes {{dimension_semantics = [#tpu.dimension_semantics<arbitrary>], tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0, %c0] : {VMEM}, vector<8x128xf32>
    %flag = arith.cmpi eq, %i, %i : i32
    %w = scf.if %flag -> (vector<8x128xf32>) {{
      %cst = arith.constant dense<[[1.5, 2.0]]> : vector<1x2xf32>
      %z = arith.addf %v, %v fastmath<nnan,ninf> : vector<8x128xf32>
      scf.yield %z : vector<8x128xf32>
    }} else {{
      scf.yield %v : vector<8x128xf32>
    }}
    %r = tpu.dynamic_rotate %w by %i dim 1 {{stride = 1 : si32, stride_dimension = 0 : si32}} : vector<8x128xf32>, i32 -> vector<8x128xf32>
    tpu.vector_store %x[%c0, %c0], %r {{in_layout = [#mosaic_tc.vpad<"32,{{0,*}},(8,128),-2">], strides = array<i32>}} : {VMEM}, vector<8x128xf32>, 
    return
  }}
}}
"""


def failure(text: str) -> HloError:
    with pytest.raises(HloError) as caught:
        parse_kernel(text)
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "code", "said", "line"),
    [
        ("vector.load %x", "vector.lod %x", "HLO0711", "did you mean 'vector.load'", 4),
        ("%i, %i : i32", "%i, %j : i32", "HLO0711", "%j", 5),
        ("eq, %i", "equal, %i", "HLO0712", "'equal' is none of eq, ne", 5),
        ("by %i dim 1", "by %i dims 1", "HLO0710", "expected 'dim'", 13),
        ("[%c0, %c0], %r {", "[%c0, %c0] %r {", "HLO0710", "expected ','", 14),
        ("<arbitrary>", "<sometimes>", "HLO0710", "one of parallel, arbitrary", 2),
        ("(8,128),[1,1]>", "(8,128)(3,1),[1,1]>", "HLO0710", "does not divide", 2),
        ("vmem, tc", "vmem, gpu", "HLO0710", "one of tc, sc_scalar_subcore", 2),
        ("32,{0,*}", "32,{0,?}", "HLO0710", "no layout of a vector", 14),
        ("strides = array<i32>", "stride = array<i32>", "HLO0712", "needs 'strides'", 14),
        ("%i: i32, ", "%i: i32, " + "(" * 300, "HLO0713", "nested deeper", 2),
    ],
)
def test_errors_say_where(old: str, new: str, code: str, said: str, line: int) -> None:
    assert old in KERNEL
    problem = failure(KERNEL.replace(old, new, 1))
    assert problem.code == code
    assert said in str(problem)
    place = problem.diagnostics[0].place
    assert place is not None
    assert place.line == line


def test_names_of_the_program_are_kept() -> None:
    shown = print_kernel(parse_kernel(KERNEL))
    assert "%w = scf.if %flag" in shown
    assert print_kernel(parse_kernel(shown)) == shown


def test_every_form_and_the_stable_one_are_the_same_kernel() -> None:
    module = parse_kernel(KERNEL)
    generic = print_kernel(module, form="generic")
    assert "add = false" in generic
    for text in (generic, print_kernel(module, form="stable")):
        assert print_kernel(read_kernel(text.encode()), form="generic") == generic


def test_every_form_of_a_row_refers_to_what_the_row_has() -> None:
    for row in ROWS.values():
        if row.form is None or row.form.startswith("!"):
            continue
        known = {slot.name for slot in (*row.operands, *row.results)} | set(row.by_name)
        names = set(re.findall(r"\{:?(\w+)", row.form)) - {"dict", "fn", "all", "outs"}
        assert names <= known, row.name
        assert nodes_of(row.form)


def code_of(text: str) -> str:
    """The code of what is wrong with a text; that of round trips if it prints as it is read."""
    try:
        module = parse_kernel(text)
        shown = print_kernel(module)
        assert print_kernel(parse_kernel(shown)) == shown
        print_kernel(module, form="generic")
        print_kernel(module, form="stable")
    except HloError as problem:
        return problem.code
    return "HLO0714"


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_damaged_text_ends_in_a_coded_error(generator: random.Random) -> None:
    text = KERNEL
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(text))
        end = min(len(text), at + generator.choice((1, 1, 3, 12, 60)))
        kind = generator.randrange(4)
        if kind == 0:
            text = text[:at] + text[end:]
        elif kind == 1:
            text = text[:at] + generator.choice(list('%#!<>{}()[]:,="-x0 9')) + text[end:]
        elif kind == 2:
            text = text[:at] + text[at:end] + text[at:]
        else:
            other = generator.randrange(len(text))
            text = text[:at] + text[other : other + end - at] + text[end:]
    assert code_of(text).startswith("HLO071")


@pytest.mark.parametrize(
    ("tiles", "strides", "shape"),
    [
        (((8, 128), (2, 1)), (2, 1), (16, 256)),
        (((4,), (2,)), (1,), (12,)),
        ((), (3, 1), (2, 3)),
        (((2, 4),), (12, 3, 1), (2, 8, 12)),
    ],
)
def test_every_element_has_its_own_place(
    tiles: tuple[tuple[int, ...], ...], strides: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    layout = TiledLayout(tiles, strides)
    map_ = TiledLayoutAttr(layout).get_affine_map()
    seen: set[int] = set()
    for index in itertools.product(*map(range, shape)):
        offset = layout.offset(index)
        assert map_.eval(list(index), []) == (offset,)
        seen.add(offset)
    count = 1
    for size in shape:
        count *= size
    assert seen == set(range(count))


def test_pairs_of_rows_are_interleaved() -> None:
    layout = TiledLayout(((8, 128), (2, 1)), (1, 1))
    assert [layout.offset((row, 0)) for row in range(4)] == [0, 1, 256, 257]


@pytest.mark.parametrize(
    "text", ["32,{0,0},(8,128)", "16,{*,3},(16,128),-1", "8,{0,*},(32,128),-2,-1"]
)
def test_vector_layouts_are_read(text: str) -> None:
    assert str(VectorLayout.of(text)) == text


def test_a_packed_register_holds_two_tiles() -> None:
    layout = VectorLayout.of("16,{0,0},(8,128)")
    assert layout is not None
    assert layout.tiles_a_register == 2
