"""What the sources repeat, hide or leave without a test gets less: `tools/dev/house.py` counts it."""

from __future__ import annotations

import ast
import sys

import pytest
from support import ROOT

sys.path.insert(0, str(ROOT / "tools" / "dev"))
import house  # pyright: ignore[reportMissingImports]


@pytest.mark.slow
def test_counts_do_not_grow() -> None:
    counts = {name: len(items()) for name, (_, items) in house.COUNTS.items()}
    grown = {n: (c, house.bounds()[n]) for n, c in counts.items() if c > house.bounds()[n]}
    assert grown == {}, "see tools/dev/house.py --list NAME; the second number is the bound"


def test_every_set_of_opcodes_has_a_reason() -> None:
    files = {item.split(":")[0] for item in house.COUNTS["sets"][1]()}
    assert files == house.REASONS.keys()
    assert len(files) <= 10


def test_late_modules_hide_no_circle() -> None:
    circles = [set(group.split()) for group in house.circles()]
    hidden = [
        f"{name} and {target}"
        for name, (_, tree) in house.sources().items()
        for block in tree.body
        if isinstance(block, ast.With) and ast.unparse(block.items[0].context_expr) == "LATE"
        for target in (house._file_of(t) for _, t in house._imports(name, iter(block.body)))
        if any({name, target} <= group for group in circles)
    ]
    assert hidden == [], "LATE is for the time of a start alone"


def test_functions_by_opcode_are_no_table() -> None:
    kinds = {
        '{"add": np.add, "subtract": _subtract, "tuple": lambda: 0}': True,
        '{"add": _own(adds.add), "subtract": Rules._subtract}': True,
        '{"add": Role.SUM, "subtract": Role.SUM}': False,
        '{"add": 1, "subtract": 2}': False,
    }
    for text, expected in kinds.items():
        assert house._is_dispatch(ast.parse(text, mode="eval").body) is expected


def test_every_spelling_of_a_table_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        'A = {"add", "dynamic-slice", "tuple"}\n'
        'B = ("hlo.add", "stablehlo.dynamic_slice", "tuple", "other")\n'
        "C = (AddOp, ops.SubtractOp, TupleOp)\n"
        'D = {"add": 1, "subtract": 2, "tuple": 3}\n'
        'E = "add subtract tuple".split()\n'
        'def f(name):\n    return name in ("add", "subtract", "tuple")\n'
        'NO = ("add", "x", "y", "z", "tuple", "u", "v", "while")\n'
    )
    monkeypatch.setattr(house, "sources", lambda: {"a.py": (source, ast.parse(source))})
    house._nodes.cache_clear()
    displays = house._displays.__wrapped__()
    house._nodes.cache_clear()
    assert [(node.lineno, count, held) for _, node, count, held in displays] == [
        (1, 3, True),
        (2, 3, True),
        (3, 3, True),
        (4, 3, True),
        (5, 3, True),
        (7, 3, False),
    ]
