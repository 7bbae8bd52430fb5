"""Contractions of few products for each place of a batch, written out, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from unit.lowering.contraction_support import agrees, draw

import mlirhlo
from mlirhlo.lowering.cpu.compiler import lower

pytest.importorskip("llvmlite")

TYPES = ["f32", "f64", "f16", "bf16", "s32", "s64", "s8", "u4", "pred"]
FORMS = {
    "matrix times vector": ("37,3,3", "37,3", "37,3", "2", "1"),
    "matrices": ("37,3,3", "37,3,3", "37,3,3", "2", "1"),
    "columns in a vector": ("37,3,4", "37,4,4", "37,3,4", "2", "1"),
    "columns turned into a vector": ("37,2,4", "37,4,4", "37,2,4", "2", "2"),
    "a vector of eight": ("37,8,8", "37,8", "37,8", "2", "1"),
    "a vector of sixteen": ("19,16", "19,16,2", "19,2", "1", "1"),
    "numbers": ("37,3", "37,3", "37", "1", "1"),
    "outer products": ("37,4", "37,4", "37,4,4", "", ""),
    "of two dimensions": ("37,2,3,3", "37,2,3,3", "37,2,2", "2,3", "2,3"),
}


def dot(element: str, form: str, *, result: str = "") -> str:
    """A module that is one."""
    left, right, out, lhs, rhs = FORMS[form]
    dims = f"lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}"
    return f"""HloModule m
ENTRY e {{
  x = {element}[{left}] parameter(0)
  y = {element}[{right}] parameter(1)
  ROOT d = {result or element}[{out}] dot(x, y), {dims}
}}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", TYPES)
def test_every_form_of_every_type(element: str, form: str) -> None:
    agrees(dot(element, form))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("types", [("bf16", "f32"), ("s8", "s32")])
def test_sums_of_a_wider_type(types: tuple[str, str], form: str) -> None:
    agrees(dot(types[0], form, result=types[1]))


def loops(text: str) -> str:
    """The stage where a kernel is loops."""
    return str(lower(mlirhlo.parse(text).op).loops)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("form", FORMS)
def test_they_are_written_out(form: str) -> None:
    """One loop, over the batch; no masks, no sums in memory."""
    text = loops(dot("f32", form))
    assert text.count("scf.for") + text.count("scf.parallel") == 1
    assert "create_mask" not in text
    assert "memref.alloca" not in text


AFTER = """HloModule m
ENTRY e {
  x = f32[37,3,3] parameter(0)
  y = f32[37,3,COLUMNS] parameter(1)
  z = f32[37,3,COLUMNS] parameter(2)
  w = f32[COLUMNS] parameter(3)
  d = f32[37,3,COLUMNS] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},
      lhs_contracting_dims={2}, rhs_contracting_dims={1}
  b = f32[37,3,COLUMNS] broadcast(w), dimensions={2}
  s = f32[37,3,COLUMNS] add(d, b)
  m = f32[37,3,COLUMNS] maximum(s, z)
  ROOT r = LAST
}
"""


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("columns", [2, 3, 4, 8, 16])
@pytest.mark.parametrize(
    "last",
    [
        "f32[37,3,COLUMNS] multiply(m, z)",
        "f32[37,3,COLUMNS] tanh(m)",
        "bf16[37,3,COLUMNS] convert(m)",
        "c64[37,3,COLUMNS] complex(m, z)",
        "f32[COLUMNS,37,3] transpose(m), dimensions={2,0,1}",
        "(f32[37,3,COLUMNS], f32[37,3,COLUMNS]) tuple(s, m)",
    ],
)
def test_what_comes_after_the_sums(columns: int, last: str) -> None:
    agrees(AFTER.replace("LAST", last).replace("COLUMNS", str(columns)))


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_read_or_written_outside(form: str) -> None:
    module = mlirhlo.parse(dot("f32", form))
    arguments = [draw(np.random.default_rng(0), p.shape) for p in module.hlo.entry.parameters]
    mlirhlo.compile(module, debug=True)(*arguments)


def _in_any_layout(element: str, sizes: list[int], data: st.DataObject) -> str:
    layout = data.draw(st.permutations(range(len(sizes))))
    return f"{element}[{','.join(map(str, sizes))}]{{{','.join(map(str, layout))}}}"


@pytest.mark.slow
@settings(max_examples=100, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_any_dimension_numbers(data: st.DataObject) -> None:
    """Batch, contracting and free dimensions in any order, operands and result in any layout."""
    element = data.draw(st.sampled_from(["f32", "bf16", "s8", "s32"]))
    sizes = st.sampled_from([1, 2, 3, 4, 5, 8, 16])
    batch = data.draw(st.sampled_from([[16], [17], [3, 7], [2, 1, 9]]))
    depth = [data.draw(sizes) for _ in range(data.draw(st.integers(0, 2)))]
    free = [[data.draw(sizes) for _ in range(data.draw(st.integers(0, 1)))] for _ in range(2)]
    operands: list[str] = []
    attributes: list[str] = []
    for number, side in enumerate(("lhs", "rhs")):
        parts = [("b", i, n) for i, n in enumerate(batch)]
        parts += [("d", i, n) for i, n in enumerate(depth)]
        parts += [("f", i, n) for i, n in enumerate(free[number])]
        order = data.draw(st.permutations(parts))
        where = {p[:2]: at for at, p in enumerate(order)}
        operands.append(f"{_in_any_layout(element, [p[2] for p in order], data)} p{number}")
        for kind, name in (("b", "batch"), ("d", "contracting")):
            numbers = [where[kind, i] for i in range(len(batch if kind == "b" else depth))]
            if numbers:
                attributes.append(f"{side}_{name}_dims={{{','.join(map(str, numbers))}}}")
    shape = _in_any_layout(element, [*batch, *free[0], *free[1]], data)
    agrees(", ".join([f"{shape} dot({', '.join(operands)})", *attributes]))


SHALLOW = {
    "matrix times matrix": ("f32[37,D]", "f32[D,70]", "1", "0"),
    "transposed left operand": ("f32[D,37]", "f32[D,70]", "0", "0"),
    "two depth dimensions": ("f32[37,D,1]", "f32[D,1,70]", "1,2", "0,1"),
}


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize("depth", [1, 3, 5, 6])
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "s8", "s32", "c64"])
@pytest.mark.parametrize("form", SHALLOW)
def test_few_products_for_each_element(form: str, element: str, depth: int) -> None:
    left, right, lhs, rhs = SHALLOW[form]
    left, right = (t.replace("f32", element).replace("D", str(depth)) for t in (left, right))
    agrees(f"""HloModule m
ENTRY e {{
  x = {left} parameter(0)
  y = {right} parameter(1)
  d = {element}[37,70] dot(x, y), lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}
  ROOT r = {element}[37,70] add(d, d)
}}
""")


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    ("depth", "algorithm", "is_elementwise"),
    [(1, "", True), (5, "", True), (6, "", False), (3, ", algorithm=dot_bf16_bf16_f32", False)],
)
def test_few_products_are_not_packed(depth: int, algorithm: str, is_elementwise: bool) -> None:
    """They are computed as elementwise instructions are, without micro-kernels or a workspace."""
    text = loops(f"""HloModule m
ENTRY e {{
  x = f32[400,{depth}] parameter(0)
  y = f32[{depth},300] parameter(1)
  ROOT d = f32[400,300] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{algorithm}
}}
""")
    assert ("@tile_" not in text) == is_elementwise
