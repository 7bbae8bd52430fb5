"""Shardy's attributes: text as MLIR prints it, and the faults MLIR finds."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from mlirhlo.dialects.sdy import SDY
from mlirhlo.dialects.sdy.values import Mesh, MeshAxis, factor_indices, factor_symbol

PRINTED = [
    '#sdy.mesh<["x"=2, "y"=4]>',
    "#sdy.mesh<[]>",
    "#sdy.mesh<[], device_ids=[3]>",
    '#sdy.mesh<["x"=2], device_ids=[1, 0]>',
    r'#sdy.mesh<["a b\22\\"=2]>',
    "#sdy.sharding<@mesh, []>",
    '#sdy.sharding<@mesh, [{"x"}, {"y", ?}p1], replicated={"z"}, unreduced={"w"}>',
    '#sdy.sharding<@mesh, [{"x":(2)4, "y", ?}p12, {?}, {}p0]>',
    '#sdy.sharding<mesh<["x"=2]>, [{"x"}]>',
    "#sdy.sharding<mesh<[], device_ids=[0]>, []>",
    '#sdy.sharding<@"a b", []>',
    '#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@m, []>]>',
    "#sdy.sharding_per_value<[]>",
    (
        "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=2, j=4, k=8} reduction={j} "
        "need_replication={k} permutation={i} blocked_propagation={i}, custom>"
    ),
    "#sdy.op_sharding_rule<([])->([])>",
    "#sdy.op_sharding_rule<([])->([]), custom>",
    "#sdy.op_sharding_rule<([i, j], [])->([ij]) {i=2, j=4}>",
    (
        '#sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0, result-1]}]}, '
        '{step-1 = [{"x":(1)2 = result-0 -> [operand-0]}]}]>'
    ),
    '#sdy<mesh_axis"x"=2>',
    "#sdy<sub_axis_info(1)2>",
    '#sdy<axis_ref"x">',
    '#sdy<axis_ref"x":(1)2>',
    '#sdy<axis_ref_list{"x", "y":(1)2}>',
    "#sdy<axis_ref_list{}>",
    '#sdy<list_of_axis_ref_lists[{"x"}, {}]>',
    '#sdy<dimension_sharding{"x", ?}p1>',
    "#sdy<dimension_sharding{?}>",
    "#sdy<tensor_mapping[i, jk]>",
    '#sdy<all_to_all_param{"x"}: 0->1>',
    '#sdy<all_to_all_param_list[{"x"}: 0->1, {"y"}: 1->2]>',
    '#sdy<manual_axes{"x", "y"}>',
    "#sdy<manual_axes{}>",
]
"""Printed by MLIR as they stand."""

OTHERWISE = {
    '#sdy.mesh<["x"=2], device_ids=[0,1]>': '#sdy.mesh<["x"=2]>',
    '#sdy.sharding<@m, [], unreduced={"a"},replicated={"b"}>': (
        '#sdy.sharding<@m, [], replicated={"b"}, unreduced={"a"}>'
    ),
    '#sdy<mesh_axis "x" = 2>': '#sdy<mesh_axis"x"=2>',
    '#sdy<manual_axes {"x" , "y"} >': '#sdy<manual_axes{"x", "y"}>',
    "#sdy.op_sharding_rule<([i]) -> ([i]) {i=2} reduction={}>": (
        "#sdy.op_sharding_rule<([i])->([i]) {i=2}>"
    ),
}
"""Text, and how it is printed."""

FAULTS = {
    '#sdy.mesh<["x"=2], device_ids=[]>': "integer",
    '#sdy.mesh<["x"=0]>': "axis size must be at least 1, got: 0",
    '#sdy.mesh<["x"=2, "x"=2]>': 'duplicate axis name: "x"',
    '#sdy.mesh<["x"=2], device_ids=[0,2]>': r"sorted device ids must be iota\(product\(axes\)\)",
    '#sdy.mesh<["x"=2], device_ids=[-1,0]>': "device id must be non-negative, got: -1",
    "#sdy.mesh<[], device_ids=[1,0]>": "axes is empty and device_ids has more than one element",
    '#sdy.mesh<["x"=1,"y"=1], device_ids=[5]>': "sorted device ids",
    '#sdy.sharding<@mesh, [{"x"}], replicated={}>': "string",
    '#sdy.sharding<@mesh::@b, [{"x"}]>': ".",
    '#sdy.sharding<@mesh, [{"x", }]>': "string",
    '#sdy.sharding<@mesh, [{"x"}p01]>': "leading zeros",
    '#sdy.sharding<@mesh, [{"x"}q1]>': "expecting priority in format 'p<number>', got: q1",
    '#sdy.sharding<@mesh, [{"x"}], foo={"y"}>': "expected valid named axis list after comma",
    '#sdy.sharding<@m, [], replicated={"y"}, replicated={"z"}>': "named axis list after comma",
    "#sdy.op_sharding_rule<([i])->()>": ".",
    "#sdy.op_sharding_rule<([i, *])->([i])>": ".",
    "#sdy.op_sharding_rule<([i])->([i]) {j=2}>": "ordered like an iota",
    "#sdy.op_sharding_rule<([i])->([i]) {i=2} permutation={i} need_replication={i}>": ".",
    "#sdy.op_sharding_rule<([a])->([i]) {i=2}>": "from 'i' to 'z'",
    "#sdy.op_sharding_rule<([z_01])->([i]) {i=2}>": "leading zeros",
    "#sdy.op_sharding_rule<([z_x])->([i]) {i=2}>": "integer after 'z_'",
    "#sdy.op_sharding_rule<([i])->([i]), costum>": "custom",
    "#sdy.propagation_edges<[]>": ".",
    '#sdy<axis_ref_list{"x":1}>': ".",
    "#sdy<tensor_mapping[*]>": ".",
}
"""Text that MLIR refuses, and words of our message."""


def _parse(text: str) -> str:
    ctx = Context()
    ctx.load_dialect(Builtin)
    ctx.load_dialect(SDY)
    parser = Parser(ctx, text)
    out = StringIO()
    Printer(out).print_attribute(parser.parse_attribute())
    return out.getvalue()


@pytest.mark.parametrize("text", PRINTED)
def test_text_comes_back(text: str) -> None:
    assert _parse(text) == text


@pytest.mark.parametrize(("text", "printed"), OTHERWISE.items())
def test_text_is_printed_in_one_way(text: str, printed: str) -> None:
    assert _parse(text) == printed


@pytest.mark.parametrize(("text", "words"), FAULTS.items())
def test_faults_are_found(text: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        _parse(text)


@pytest.mark.oracle
def test_mlir_prints_the_same_and_refuses_the_same() -> None:
    mlir = pytest.importorskip("jax._src.interpreters.mlir")
    from jaxlib.mlir import ir

    with mlir.make_ir_context():
        for text in PRINTED:
            assert str(ir.Attribute.parse(text)) == text
        for text, printed in OTHERWISE.items():
            assert str(ir.Attribute.parse(text)) == printed
        for text in FAULTS:
            with pytest.raises(ir.MLIRError):
                ir.Attribute.parse(text)


@pytest.mark.parametrize("index", [0, 17, 18, 19, 117])
def test_factor_names_and_numbers(index: int) -> None:
    assert factor_indices(factor_symbol(index)) == (index,)
    assert factor_indices("i" + factor_symbol(index) + "j") == (0, index, 1)


def test_mesh_knows_its_axes() -> None:
    mesh = Mesh((MeshAxis("x", 2), MeshAxis("y", 4)))
    assert mesh.size == 8
    assert mesh.axis_size("y") == 4
    assert mesh.axis_size("z") is None
    assert Mesh((), (3,)).is_maximal
    assert not Mesh().is_maximal
