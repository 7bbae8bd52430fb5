"""Costs on pages: library calls are known or unknown, never nothing."""

from typing import Any

import pytest

from mlirhlo.debug.graph.costs import Cost, costs_of
from mlirhlo.debug.graph.model import Graph
from mlirhlo.formats.hlo_text import parse_module

GEMM = (
    'backend_config={"gemm_backend_config":{"alpha_real":1,"beta":0,"dot_dimension_numbers":'
    '{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}'
)


def costs(text: str) -> dict[str, Cost]:
    graph = Graph(parse_module(text))
    found = costs_of(graph)
    return {graph.nodes[index].name: cost for index, cost in found.items()}


def calls(
    target: str, *, config: str = "", attributes: str = "", result: str = "f32[4,16]"
) -> Cost:
    text = f"""HloModule m

ENTRY e {{
  x = f32[4,8] parameter(0)
  y = f32[8,16] parameter(1)
  ROOT c = {result} custom-call(x, y), custom_call_target="{target}"{attributes}{", " + config if config else ""}
}}
"""
    return costs(text)["c"]


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul", "__cublas$lt$matmul$f8"])
def test_products_of_cublas(target: str) -> None:
    assert calls(target, config=GEMM) == Cost(2 * 4 * 16 * 8, 4 * (4 * 8 + 8 * 16 + 4 * 16), 0)
    with_workspace = calls(target, config=GEMM, result="(f32[4,16], s8[4194304])")
    assert with_workspace == calls(target, config=GEMM), "a workspace is not accessed once a byte"
    assert calls(target).unknown == 1, "without a configuration nobody knows"


def test_products_of_onednn() -> None:
    assert calls("__onednn$matmul").operations == 2 * 4 * 16 * 8
    transposed = 'backend_config={"onednn_matmul_config":{"transpose_a":true}}'
    assert calls("__onednn$matmul", config=transposed).operations == 2 * 4 * 16 * 4


@pytest.mark.parametrize(
    "target",
    ["lapack_sgetrf_ffi", "__cublas$triangularSolve", "__cudnn$norm", "__onednn$softmax", "mine"],
)
def test_others_are_unknown(target: str) -> None:
    assert calls(target).unknown == 1
    assert calls(target).operations == 0


def test_annotations_compute_nothing() -> None:
    assert calls("Sharding") == Cost(0, 4 * (4 * 8 + 8 * 16 + 4 * 16), 0)


CONVOLUTION = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f"
SHAPES = {"input": "f32[2,8,8,4]", "filter": "f32[6,3,3,4]", "output": "f32[2,8,8,6]"}


@pytest.mark.parametrize(
    ("target", "operands", "result"),
    [
        ("__cudnn$convForward", ("input", "filter"), "output"),
        ("__cudnn$convBackwardInput", ("output", "filter"), "input"),
        ("__cudnn$convBackwardFilter", ("input", "output"), "filter"),
    ],
)
def test_convolutions_of_cudnn(target: str, operands: tuple[str, str], result: str) -> None:
    """Each counts what the convolution counts, or the one whose gradient it is."""
    head = "HloModule m\n\nENTRY e {\n"
    plain = costs(
        f"{head}  x = {SHAPES['input']} parameter(0)\n  y = {SHAPES['filter']} parameter(1)\n"
        f"  ROOT c = {SHAPES['output']} convolution(x, y), {CONVOLUTION}\n}}\n"
    )["c"]
    a, b = operands
    call = costs(
        f"{head}  x = {SHAPES[a]} parameter(0)\n  y = {SHAPES[b]} parameter(1)\n"
        f'  ROOT c = ({SHAPES[result]}, u8[0]) custom-call(x, y), {CONVOLUTION}, custom_call_target="{target}"\n}}\n'
    )["c"]
    assert call.operations == plain.operations > 0
    assert call.accessed == plain.accessed


def test_callers_of_unknown_calls_say_so() -> None:
    text = """HloModule m

f {
  p = f32[4] parameter(0)
  u = f32[4] custom-call(p), custom_call_target="mine"
  ROOT a = f32[4] add(u, p)
}

ENTRY e {
  x = f32[4] parameter(0)
  ROOT c = f32[4] call(x), to_apply=f
}
"""
    found = costs(text)
    assert (found["c"].operations, found["c"].unknown) == (4, 1)
    assert (found["a"].operations, found["a"].unknown) == (4, 0)


def test_statistics_name_unknown_calls(capsys: Any, tmp_path: Any) -> None:
    from mlirhlo.cli.hlo_view import main

    path = tmp_path / "m.hlo"
    path.write_text(
        'HloModule m\n\nENTRY e {\n  ROOT c = f32[4] custom-call(), custom_call_target="mine"\n}\n'
    )
    assert main([str(path), "stats"]) == 0
    out = capsys.readouterr().out
    assert "custom_calls_of_unknown_cost: 1" in out
    assert "flops: 0" in out
