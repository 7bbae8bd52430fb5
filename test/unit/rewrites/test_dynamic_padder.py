"""`dynamic_padder`: programs compute the same for every size in use, whatever stands beyond it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dynamic_programs import module, same, texts, valid
from support import sample_rows

import mlirhlo
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo import HloModule
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.dynamic_padder import DynamicPadderPass
from mlirhlo.rewrites.dynamic_padder.bounded import is_dynamic
from mlirhlo.rewrites.passes import Trace

LONG = PrintOptions(large_constants=True)
NEED_ELEMENTS = {"dynamic_slice", "gather", "gather_dynamic_places", "gather_rows"}
"""Those that read an element whatever the sizes."""
READ_ALL = {
    "concatenate", "dot_not_alike", "gather_rows", "loop_from_static", "not_alike", "scatter_some", "slice",
    "three_not_alike",
}  # fmt: skip
"""Those that read more of `x` than `v`."""


def _dynamic_left(module: HloModule) -> list[str]:
    return [
        op.opcode.name
        for op in module.instructions
        if op.opcode.name != "parameter" and any(map(is_dynamic, (op.shape, *op.input_shapes)))
    ]


@pytest.mark.parametrize(
    ("name", "body", "sizes"),
    sample_rows(texts(), 4),
    ids=lambda v: v if isinstance(v, str) and v.isidentifier() else "",
)
def test_every_size_gives_the_same(name: str, body: str, sizes: tuple[int, ...]) -> None:
    text = module(body, sizes)
    before, after = parse_module(text), parse_module(text)
    assert DynamicPadderPass().run(HloModule(after), Trace())
    after.verify()
    assert verify_module(after) == [], print_module(after)
    left = set(_dynamic_left(HloModule(after)))
    assert left <= {"custom-call", "tuple"}, left
    again = print_module(after, LONG)
    assert not DynamicPadderPass().run(HloModule(after), Trace())
    assert print_module(after, LONG) == again
    rng = np.random.default_rng(3)
    bounds = (sizes[0], sizes[1] if len(sizes) > 1 else 6)
    least = int(name in NEED_ELEMENTS)
    others = range(least, bounds[1] + 1, 2) if len(sizes) > 1 or ", m)" in body else (0,)
    for n, m in itertools.product(range(least, bounds[0] + 1), others):
        x = rng.integers(-4, 5, sizes).astype(np.float32)
        used = np.zeros(sizes, bool)
        used[tuple(slice(0, k) for k in (n, m)[: len(sizes)])] = True
        if name not in READ_ALL:
            x[~used] = np.nan  # nobody may see it
        arguments: list[object] = [x, np.int32(n), np.int32(m)]
        want = [valid(out) for out in run_module(before, arguments)]
        got = [valid(out) for out in run_module(parse_module(again), arguments)]
        assert all(same(a, b) for a, b in zip(want, got, strict=True)), (
            f"{name}, n={n}, m={m}, x={x}\n{text}{again}\nwant {want}\ngot {got}"
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["join", "loop", "scatter", "sort", "split", "sum", "update"])
def test_machine_code_gives_the_same(name: str) -> None:
    body, sizes = next((body, sizes) for found, body, sizes in texts() if found == name)
    text = module(body, sizes)
    executable = mlirhlo.compile(mlirhlo.parse(text))
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    for n in range(1, sizes[0] + 1):
        arguments: list[object] = [x, np.int32(n), np.int32(2)]
        want = [valid(out) for out in run_module(parse_module(text), arguments)]
        found = executable(*arguments)
        got = [valid(out) for out in (found if isinstance(found, tuple) else (found,))]
        assert all(same(a, b) for a, b in zip(want, got, strict=True)), (n, want, got)
