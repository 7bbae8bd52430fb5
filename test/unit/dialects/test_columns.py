"""What the table says opcodes are, held against what the interpreter makes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
import pytest
from support import ROOT

import mlirhlo
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.table import ANNOTATIONS, OPCODES, PROVENANCE, STARTED, Role
from mlirhlo.lowering.hlo_to_loops.kernels import kernel_key
from mlirhlo.rewrites.algsimp.common import own_properties
from mlirhlo.runtime.object_code.fingerprint import fingerprint

BODIES = {
    "add-dependency": "t = token[] after-all() ROOT r = f32[12] add-dependency(x, t)",
    "broadcast": "ROOT r = f32[2,12] broadcast(x), dimensions={1}",
    "concatenate": "ROOT r = f32[24] concatenate(x, y), dimensions={0}",
    "copy": "ROOT r = f32[12] copy(x)",
    "domain": 'ROOT r = f32[12] domain(x), domain={kind="sharding", entry={replicated}, exit={replicated}}',
    "dynamic-reshape": "a = s32[] constant(3) b = s32[] constant(4) ROOT r = f32[<=3,<=4] dynamic-reshape(x, a, b)",
    "dynamic-slice": "a = s32[] constant(3) ROOT r = f32[5] dynamic-slice(x, a), dynamic_slice_sizes={5}",
    "dynamic-update-slice": "a = s32[] constant(3) s = f32[5] slice(y), slice={[0:5]}"
    " ROOT r = f32[12] dynamic-update-slice(x, s, a)",
    "gather": "i = s32[2,1] constant({{7},{1}}) ROOT r = f32[2] gather(x, i), offset_dims={}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}",
    "get-tuple-element": "t = (f32[12], f32[12]) tuple(x, y) ROOT r = f32[12] get-tuple-element(t), index=1",
    "opt-barrier": "ROOT r = f32[12] opt-barrier(x)",
    "pad": "ROOT r = f32[20] pad(x, n), padding=4_4",
    "reshape": "ROOT r = f32[3,4] reshape(x)",
    "reverse": "ROOT r = f32[12] reverse(x), dimensions={0}",
    "select": "p = pred[12] compare(x, y), direction=LT ROOT r = f32[12] select(p, x, y)",
    "set-dimension-size": "a = s32[] constant(12) ROOT r = f32[<=12] set-dimension-size(x, a), dimensions={0}",
    "slice": "ROOT r = f32[4] slice(x), slice={[1:9:2]}",
    "transpose": "ROOT r = f32[12] transpose(x), dimensions={0}",
    "tuple": "ROOT r = (f32[12], f32[12]) tuple(x, y)",
}
X = np.array([1, -0.0, 3, np.nan, 5, 6, 7, 8, np.inf, 10, 11, 12], np.float32)
"""Numbers that arithmetic would change."""
Y = np.where(np.isnan(X), np.float32(4), -X)
PAD = np.float32(-77)


def result(body: str) -> Iterator[np.ndarray]:
    head = "ENTRY e { x = f32[12] parameter(0) y = f32[12] parameter(1) n = f32[] parameter(2) "
    out = mlirhlo.parse(f"{head}{body} }}".replace(" ROOT", "\nROOT").replace(") ", ")\n"))(
        X, Y, PAD
    )
    for part in out if isinstance(out, tuple) else (out,):
        yield np.asarray(part)


def test_every_local_move_is_tried() -> None:
    moves = {row.name for row in OPCODES.values() if row.moves and not row.collective}
    assert moves - BODIES.keys() == {"copy-start", "copy-done"}


@pytest.mark.parametrize("opcode", BODIES)
def test_moves_leave_elements_as_they_are(opcode: str) -> None:
    assert OPCODES[opcode].moves
    elements = {*X.view(np.uint32), *Y.view(np.uint32), PAD.view(np.uint32)}
    for part in result(BODIES[opcode]):
        assert part.size
        assert set(part.view(np.uint32).ravel()) <= elements


@pytest.mark.parametrize(
    "row", [r for r in OPCODES.values() if r.elementwise], ids=lambda r: r.name
)
def test_elementwise_rows_have_a_type_a_cost_and_one_meaning(row) -> None:
    assert row.element_ns >= 0.0
    assert not (row.is_plain and row.transcendental)
    assert row.is_root <= row.transcendental
    assert (row.identity is None) or (row.commutes and row.arity == 2)
    data = row.data_operands(row.arity)
    assert set(data) <= set(range(row.arity))
    assert not row.gives_real or tuple(data) == (0,)


def test_data_of_opcodes_with_indices() -> None:
    cases = {
        "dynamic-slice": (3, [0]),
        "scatter": (5, [0, 1, 3, 4]),
        "select": (3, [1, 2]),
        "sort": (2, []),
    }
    for opcode, (count, data) in cases.items():
        assert list(OPCODES[opcode].data_operands(count)) == data


@pytest.mark.parametrize(
    "attribute",
    [
        'metadata={op_name="jit/add"}',
        'origin={{"a"}}',
        "statistics={visualizing_index=0,time=3}",
    ],
)
def test_provenance_is_no_difference(attribute: str) -> None:
    """Common subexpressions merge, kernels are shared and compiled code is kept whatever provenance says."""
    assert attribute.partition("=")[0] in PROVENANCE

    def text(first: str, second: str) -> str:
        return (
            f"ENTRY e {{ x = f32[12] parameter(0)\n a = f32[12] negate(x){first}\n"
            f" b = f32[12] negate(x){second}\n ROOT r = f32[12] add(a, b) }}"
        )

    merged = mlirhlo.parse(text(f", {attribute}", "")).opt("cse").as_text()
    assert merged.count("negate(") == 1
    plain, marked = (mlirhlo.parse(text(first, "")).op for first in ("", f", {attribute}"))
    assert fingerprint(plain) == fingerprint(marked) is not None
    ops = [op for op in HloModule(marked).instructions if op.opcode.name == "negate"]
    assert kernel_key(ops[0], {}) == kernel_key(ops[1], {})
    assert own_properties(ops[0]) == {}


def test_annotations_and_meaning_are_told_apart() -> None:
    assert {"sharding", "backend_config", "control_predecessors", "raw_attributes"} <= ANNOTATIONS
    assert "result_accuracy" not in ANNOTATIONS
    assert not any(
        spec.role is not Role.MEANING for row in OPCODES.values() for spec in row.attributes
    )


_BY_OPCODE = (
    "analysis/shape_inference", "interp", "lowering/hlo_to_loops", "lowering/structured",
    "rewrites/hlo_to_stablehlo", "rewrites/spmd", "analysis/cost",
)  # fmt: skip
_REGISTERS = ("checks", "converts", "emits", "executes", "infers", "rule")


def test_functions_are_registered_for_opcodes_that_there_are() -> None:
    unknown = [
        (path.name, name.value)
        for folder in _BY_OPCODE
        for path in (ROOT / "mlirhlo" / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        for call in node.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func).rsplit(".")[-1] in _REGISTERS
        for name in call.args
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
        if "-" in name.value and name.value not in OPCODES
    ]
    assert unknown == []


def test_columns_agree_with_each_other() -> None:
    for row in OPCODES.values():
        assert not (row.forwards and not row.free), row.name
        assert not (row.idempotent and row.identity is None), row.name
        assert row.identity is None or row.commutes, row.name
        assert not (row.is_trivial and not row.is_index_map), row.name
        assert (row.calls is not None) == any(
            spec.kind.names_computations for spec in row.attributes
        ), row.name
    for start, done in STARTED.items():
        assert OPCODES[start].transfers == OPCODES[done].transfers
        assert OPCODES[start].collective == OPCODES[done].collective
