"""Dots of transposes, slices and reshapes, which are read where their operands stand."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from unit.lowering.contraction_support import agrees

import mlirhlo
from mlirhlo.dialects.hlo.ops import DotOp
from mlirhlo.lowering.hlo_to_loops.contractions.dot import of_dot

pytest.importorskip("llvmlite")

HEADS = """ENTRY e {
  x = TYPE[2,40,3,4,64] parameter(0)
  s = TYPE[2,40,1,4,64] slice(x), slice={[0:2], [0:40], [1:2], [0:4], [0:64]}
  q = TYPE[2,40,4,64] reshape(s)
  qt = TYPE[2,4,40,64] transpose(q), dimensions={0,2,1,3}
  y = TYPE[2,50,4,70] parameter(1)
  u = TYPE[2,50,4,64] slice(y), slice={[0:2], [0:50], [0:4], [5:69]}
  kt = TYPE[2,4,50,64] transpose(u), dimensions={0,2,1,3}
  ROOT d = TYPE[2,4,40,50] dot(qt, kt), BATCH, lhs_contracting_dims={3}, rhs_contracting_dims={3}
}
""".replace("BATCH", "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}")


def test_heads_are_parts_of_memory() -> None:
    entry = mlirhlo.parse(HEADS.replace("TYPE", "f32")).hlo.entry
    dot = entry.root
    assert isinstance(dot, DotOp)
    found = of_dot(dot, [p.output for p in entry.parameters])
    batch, head, depth, row, column = range(5)
    line = 3 * 4 * 64
    assert found.lhs.value is entry.parameters[0].output
    assert found.lhs.is_linear
    assert found.lhs.strides() == (4 * 64, {batch: 40 * line, head: 64, depth: 1, row: line})
    assert found.rhs.is_linear
    assert found.rhs.strides() == (5, {batch: 50 * 280, head: 70, depth: 1, column: 280})


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "s8", "s16", "c64"])
def test_heads_of_every_type(element: str) -> None:
    agrees(HEADS.replace("TYPE", element))


def _moved(name: str, element: str, dimensions: Sequence[int], data: st.DataObject) -> str:
    """Lines that compute `name` from a parameter by moves, its number being `NUMBER`."""
    lines: list[str] = []
    here, at = list(dimensions), 0
    for at in range(data.draw(st.integers(0, 4))):
        own = f"  {f'{name}{at}' if at else name} = {element}[{_list(here)}]"
        match data.draw(st.sampled_from(["transpose", "slice", "reshape"])):
            case "transpose":
                order = data.draw(st.permutations(range(len(here))))
                lines.append(f"{own} transpose({name}{at + 1}), dimensions={{{_list(order)}}}")
                here = [here[order.index(d)] for d in range(len(here))]
            case "slice":
                starts = [data.draw(st.sampled_from([0, 0, 1, 3, 16])) for _ in here]
                steps = [data.draw(st.sampled_from([1, 1, 1, 2])) for _ in here]
                ends = [a + (n - 1) * s + 1 for a, n, s in zip(starts, here, steps, strict=True)]
                parts = zip(starts, ends, steps, strict=True)
                bounds = ", ".join(f"[{a}:{e}:{s}]" for a, e, s in parts)
                lines.append(f"{own} slice({name}{at + 1}), slice={{{bounds}}}")
                here = [e + data.draw(st.sampled_from([0, 0, 1, 5])) for e in ends]
            case _:
                lines.append(f"{own} reshape({name}{at + 1})")
                here = [n for n in here if n != 1]
                for _ in range(data.draw(st.integers(0, 2))):
                    here.insert(data.draw(st.integers(0, len(here))), 1)
    layout = data.draw(st.permutations(range(len(here))))
    layout = layout if data.draw(st.integers(0, 2)) == 0 else range(len(here))[::-1]
    shape = f"{element}[{_list(here)}]" + (f"{{{_list(layout)}}}" if here else "")
    last = name if not lines else f"{name}{len(lines)}"
    return "\n".join([f"  {last} = {shape} parameter(NUMBER)", *reversed(lines)])


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


@settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_operands_moved_in_any_way(data: st.DataObject) -> None:
    element = data.draw(st.sampled_from(["f32", "f32", "f64", "bf16", "s8", "c64", "s32"]))
    size = st.sampled_from([1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 40, 64, 65, 100, 130])
    few = st.sampled_from([1, 2, 3])
    batch = data.draw(st.lists(few, max_size=2))
    depth, rows, columns = (data.draw(st.lists(size, min_size=1, max_size=2)) for _ in range(3))
    while (
        prod((*batch, *depth, *rows, *columns)) > 3_000_000
        or max(map(prod, (rows, columns, depth))) > 4000
    ):
        rows, columns, depth = rows[:1], columns[:1], depth[:1]
        if all(len(part) == 1 for part in (rows, columns, depth)):
            break
    lines, numbers = [], []
    for number, (name, free) in enumerate((("x", rows), ("y", columns))):
        kinds = [
            *(("batch", n) for n in range(len(batch))),
            *(("depth", n) for n in range(len(depth))),
        ]
        order = data.draw(st.permutations([*kinds, *[("free", 0)] * len(free)]))
        left = iter(free)
        sizes = [
            batch[n] if kind == "batch" else depth[n] if kind == "depth" else next(left)
            for kind, n in order
        ]
        lines.append(_moved(name, element, sizes, data).replace("NUMBER", str(number)))
        side = ("lhs", "rhs")[number]
        numbers.append(
            f"{side}_batch_dims={{{_list([order.index(('batch', n)) for n in range(len(batch))])}}}"
        )
        numbers.append(
            f"{side}_contracting_dims={{{_list([order.index(('depth', n)) for n in range(len(depth))])}}}"
        )
    shape = f"{element}[{_list([*batch, *rows, *columns])}]"
    text = "\n".join(lines) + f"\n  ROOT d = {shape} dot(x, y), {', '.join(numbers)}\n"
    agrees(f"HloModule moved\n\nENTRY e {{\n{text}}}\n", data.draw(st.integers(0, 1000)))
