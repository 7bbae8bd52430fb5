"""Vectors as registers: every kernel to the last stage, and moves between any two layouts."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import sample
from unit.mosaic.language.authored import CASES
from unit.mosaic.language.library import LIBRARY_CASES
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, VectorType

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.dialects.tpu.registers import register_grid
from mlirhlo.dialects.tpu.values import VectorLayout
from mlirhlo.formats.mosaic import parse_kernel
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import run_pipeline
from mlirhlo.mosaic.pipeline.building import build, insert
from mlirhlo.mosaic.pipeline.layouts import layout_of, layouts_of

ALL = CASES | LIBRARY_CASES
WHOLE = ("tpu.matmul", "tpu.transpose", "tpu.roll_vectors", "tpu.unroll_vectors")
"""What works on vectors of several registers at the last stage."""
VMEM = "#tpu.memory_space<vmem>"


def left_over(module: ModuleOp) -> Counter[str]:
    """Operations on vectors that are no registers."""
    found: Counter[str] = Counter()
    for op in module.walk():
        arguments = [a for region in op.regions for block in region.blocks for a in block.args]
        for value in (*op.operands, *op.results, *arguments):
            if isinstance(value.type, VectorType) and name_of(op) not in WHOLE:
                shape = tuple(value.type.get_shape())
                if shape[:2] != (8, 128) or len(shape) > 3:
                    found[name_of(op)] += 1
    return found


def names(group: int) -> list[str]:
    return [name for name in sorted(ALL) if name != "random_bits" and "flash" not in name][group::8]


@pytest.mark.slow
@pytest.mark.parametrize("group", sample(range(8), 4))
def test_every_kernel_becomes_registers(group: int) -> None:
    """With the same numbers. (Random bits come in another order, by registers.)"""
    for name in names(group):
        case = ALL[name]
        lowered = case.call.lower(*case.inputs)
        expected = lowered(*case.inputs)
        module = lowered.module.clone()
        run_pipeline(module)
        assert not left_over(module), name
        made = copy.copy(lowered)
        object.__setattr__(made, "module", module)
        found = made(*case.inputs)
        pairs = zip(_list(found), _list(expected), strict=True)
        for a, b in pairs:
            narrow = np.asarray(a).dtype.itemsize < 4
            np.testing.assert_allclose(
                np.asarray(a, np.float64),
                np.asarray(b, np.float64),
                rtol=2e-2 if narrow else 1e-4,
                atol=1e-4,
                err_msg=name,
            )


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


ELEMENTS = {"f32": np.float32, "i32": np.int32, "bf16": None, "i8": np.int8}


def checked(element: str, before: tuple[int, ...], after: tuple[int, ...], body: str) -> None:
    """Runs a kernel of one operation at its first and last stage."""
    import ml_dtypes

    source, result = ("x".join(map(str, shape)) + "x" + element for shape in (before, after))

    def zeros(shape: tuple[int, ...]) -> str:
        return ", ".join(["%c0"] * len(shape))

    text = f"""module @k {{
  func.func @main(%x: memref<{source}, {VMEM}>, %y: memref<{result}, {VMEM}>)
      attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[{zeros(before)}] : memref<{source}, {VMEM}>, vector<{source}>
    {body}
    vector.store %r, %y[{zeros(after)}] : memref<{result}, {VMEM}>, vector<{result}>
    return
  }}
}}
"""
    dtype = np.dtype(ELEMENTS[element] or ml_dtypes.bfloat16)
    values = (np.arange(int(np.prod(before))) % 120).reshape(before).astype(dtype)
    module = parse_kernel(text)
    expected = Kernel(module.clone()).run([values], [(after, dtype)])[0]
    run_pipeline(module)
    assert not left_over(module)
    found = Kernel(module).run([values], [(after, dtype)])[0]
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(expected, np.float64))


sizes = st.integers(1, 20)
elements = st.sampled_from(sorted(ELEMENTS))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(elements, sizes, st.integers(1, 160), st.data())
def test_boxes_of_vectors(element: str, rows: int, lanes: int, data: Any) -> None:
    top, left = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, lanes - 1))
    after = (data.draw(st.integers(1, rows - top)), data.draw(st.integers(1, lanes - left)))
    source, result = (f"vector<{a}x{b}x{element}>" for a, b in ((rows, lanes), after))
    checked(
        element,
        (rows, lanes),
        after,
        f"%r = vector.extract_strided_slice %v {{offsets = [{top}, {left}], "
        f"sizes = {list(after)}, strides = [1, 1]}} : {source} to {result}",
    )


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(elements, st.permutations([0, 1, 2]), st.tuples(sizes, sizes, sizes))
def test_transposes(element: str, order: list[int], shape: tuple[int, ...]) -> None:
    after = tuple(shape[dim] for dim in order)
    source, result = (f"vector<{'x'.join(map(str, s))}x{element}>" for s in (shape, after))
    checked(element, shape, after, f"%r = tpu.transpose %v, {order} : {source} -> {result}")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    elements, st.sampled_from([(16, 256), (6, 4, 128), (2, 12, 24), (768,), (24, 32)]), st.data()
)
def test_reshapes(element: str, shape: tuple[int, ...], data: Any) -> None:
    size = int(np.prod(shape))
    shapes = [
        (size // 128, 128),
        (8, size // 8),
        (size // 16, 16),
        (2, size // 2),
        (4, 3, size // 12),
    ]
    fitting = [s for s in shapes if int(np.prod(s)) == size and 0 not in s]
    after = data.draw(st.sampled_from(fitting))
    source, result = (f"vector<{'x'.join(map(str, s))}x{element}>" for s in (shape, after))
    checked(element, shape, after, f"%r = vector.shape_cast %v : {source} to {result}")


@st.composite
def layouts(draw: Any, bits: int, shape: tuple[int, ...]) -> VectorLayout:
    """Any layout of a vector that begins in the first tile, with or without a dimension put back."""
    packing = 32 // bits
    rows = draw(st.sampled_from([r for r in (1, 2, 4, 8, 16, 32) if packing <= r <= 8 * packing]))
    implicit = draw(st.sampled_from([(), (), (-2,), (-1,)]))
    begin = (draw(st.integers(0, rows - 1)), draw(st.integers(0, 127)))
    layout = VectorLayout(bits, draw(st.sampled_from([(0, 0), begin])), (rows, 128), implicit)
    grid = register_grid(layout, shape)
    assume(grid is not None and grid.count <= 40)
    return layout


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(elements, st.tuples(sizes, st.integers(1, 160)), st.data())
def test_moves_between_any_two_layouts(element: str, shape: tuple[int, int], data: Any) -> None:
    """What is loaded is laid out anew and again before it is stored."""
    import ml_dtypes

    dtype = np.dtype(ELEMENTS[element] or ml_dtypes.bfloat16)
    type_ = f"{shape[0]}x{shape[1]}x{element}"
    ref = f"memref<{type_}, {VMEM}>"
    module = parse_kernel(f"""module @k {{
  func.func @main(%x: {ref}, %y: {ref}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %v = vector.load %x[%c0, %c0] : {ref}, vector<{type_}>
    vector.store %v, %y[%c0, %c0] : {ref}, vector<{type_}>
    return
  }}
}}
""")
    run_pipeline(module, stop_after="relayout-insertion")
    store = next(op for op in module.walk() if name_of(op) == "tpu.vector_store")
    have, last = layout_of(store.operands[0]), layouts_of(store, "in_layout")[0]
    bits = 8 * dtype.itemsize
    chain = [data.draw(layouts(bits, shape)) for _ in range(2)]
    for layout in (*chain, last):
        value = store.operands[0]
        new = build("mosaic_tc.relayout", (value,), (value.type,))
        new.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(have)])
        new.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        store.operands[0] = insert(new, store).results[0]
        have = layout
    run_pipeline(module, start_after="relayout-insertion")
    values = (np.arange(shape[0] * shape[1]) % 120).reshape(shape).astype(dtype)
    found = Kernel(module).run([values], [(shape, dtype)])[0]
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(values, np.float64))


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(elements, st.lists(st.integers(1, 40), min_size=2, max_size=4), st.booleans(), sizes)
def test_joined_vectors(element: str, parts: list[int], along_lanes: bool, other: int) -> None:
    """Parts of one vector, next to each other."""
    dim = int(along_lanes)
    whole = [other, other]
    whole[dim] = sum(parts)
    lines: list[str] = []
    types: list[str] = []
    begin = 0
    for number, size in enumerate(parts):
        box, at = list(whole), [0, 0]
        box[dim], at[dim] = size, begin
        begin += size
        types.append(f"vector<{box[0]}x{box[1]}x{element}>")
        lines.append(
            f"%p{number} = vector.extract_strided_slice %v {{offsets = {at}, sizes = {box}, "
            f"strides = [1, 1]}} : vector<{whole[0]}x{whole[1]}x{element}> to {types[-1]}"
        )
    turned = [*range(1, len(parts)), 0]
    names = ", ".join(f"%p{at}" for at in turned)
    result = f"vector<{whole[0]}x{whole[1]}x{element}>"
    given_types = ", ".join(types[at] for at in turned)
    lines.append(f"%r = tpu.concatenate {names} in {dim} : {given_types} -> {result}")
    shape = (whole[0], whole[1])
    checked(element, shape, shape, "\n    ".join(lines))


def test_what_has_no_registers_says_so() -> None:
    with pytest.raises(HloError) as caught:
        checked(
            "f32",
            (8, 128),
            (8, 128),
            "%c = arith.constant dense<1.0> : vector<8x128xf32>\n"
            "    %i = arith.constant dense<["
            + ", ".join(["[" + ", ".join(["1", "2"] * 64) + "]"] * 8)
            + "]> : vector<8x128xi32>\n"
            "    %f = arith.sitofp %i : vector<8x128xi32> to vector<8x128xf32>\n"
            "    %r = arith.addf %v, %f : vector<8x128xf32>",
        )
    first = caught.value.diagnostics[0]
    assert first.code == "HLO0753"
    assert first.help is not None
    assert first.place is not None


def test_rows_that_differ_are_no_replicated_ones() -> None:
    """A loop that carries a splat which is none from the second round on; the TPU compiler says so too."""
    tile = f"memref<8x128xf32, {VMEM}>"
    module = parse_kernel(f"""module @k {{
      func.func @main(%x: {tile}, %y: {tile}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
        %c0 = arith.constant 0 : index
        %a = arith.constant 0 : i32 %b = arith.constant 3 : i32 %s = arith.constant 1 : i32
        %z = arith.constant dense<0.0> : vector<8x128xf32>
        %v = vector.load %x[%c0, %c0] : {tile}, vector<8x128xf32>
        %r:3 = scf.for %i = %a to %b step %s iter_args(%p = %z, %q = %z, %t = %v)
            -> (vector<8x128xf32>, vector<8x128xf32>, vector<8x128xf32>) : i32 {{
          scf.yield %q, %t, %p : vector<8x128xf32>, vector<8x128xf32>, vector<8x128xf32>
        }}
        vector.store %r#0, %y[%c0, %c0] : {tile}, vector<8x128xf32>
        return }} }}""")
    run_pipeline(module, stop_after="relayout-insertion")
    with pytest.raises(HloError, match="rows differ and are wanted as one") as problem:
        run_pipeline(module, start_after="relayout-insertion")
    assert problem.value.diagnostics[0].code == "HLO0753"


def test_masks_of_words_are_cast_to_those_of_halves() -> None:
    """Each element of a word has the word's."""
    kernel = Kernel(
        parse_kernel(f"""module @k {{ func.func @main(
          %x: memref<8x128xf32, {VMEM}>, %y: memref<8x128xi32, {VMEM}>
        ) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
          %c0 = arith.constant 0 : index
          %v = vector.load %x[%c0, %c0] : memref<8x128xf32, {VMEM}>, vector<8x128xf32>
          %z = arith.constant dense<0.0> : vector<8x128xf32>
          %m = arith.cmpf ogt, %v, %z : vector<8x128xf32>
          %n = tpu.mask_cast %m : vector<8x128xi1> -> vector<8x128x2xi1>
          %a = arith.constant dense<3> : vector<8x128x2xi16>
          %b = arith.constant dense<5> : vector<8x128x2xi16>
          %s = arith.select %n, %a, %b : vector<8x128x2xi1>, vector<8x128x2xi16>
          %w = tpu.bitcast_vreg %s : vector<8x128x2xi16> -> vector<8x128xi32>
          vector.store %w, %y[%c0, %c0] : memref<8x128xi32, {VMEM}>, vector<8x128xi32>
          return }} }}""")
    )
    x = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    (found,) = kernel.run([x], [((8, 128), np.dtype(np.int32))])
    np.testing.assert_array_equal(found, np.where(x > 0, 0x30003, 0x50005))
