"""Types of results: inferred as MLIR infers them, unknown sizes and bounds included."""

from __future__ import annotations

import re

import pytest
from unit.analysis.stablehlo_mlir import refusals
from unit.analysis.stablehlo_programs import program
from xdsl.ir import Operation

from mlirhlo.analysis.stablehlo import ConstraintError, Given, infer_types, verify_op
from mlirhlo.dialects.stablehlo.signatures import SIGNATURES
from mlirhlo.dialects.stablehlo.table import ROWS
from mlirhlo.formats.stablehlo import parse_module

_B = "#stablehlo.bounds"
_REDUCER = (
    "({^bb0(%x: tensor<f32>, %y: tensor<f32>):"
    ' %z = "stablehlo.add"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32>'
    ' "stablehlo.return"(%z) : (tensor<f32>) -> ()})'
)

INFERRED = {
    "abs : (tensor<?x3xcomplex<f32>>)": "tensor<?x3xf32>",
    "add : (tensor<?x3xf32>, tensor<2x?xf32>)": "tensor<2x3xf32>",
    f"add : (tensor<?xf32, {_B}<4>>, tensor<?xf32, {_B}<3>>)": f"tensor<?xf32, {_B}<3>>",
    f"add : (tensor<?xf32, {_B}<4>>, tensor<?xf32>)": f"tensor<?xf32, {_B}<4>>",
    f"add : (tensor<?xf32, {_B}<4>>, tensor<3xf32>)": "tensor<3xf32>",
    "complex : (tensor<?xf64>, tensor<?xf64>)": "tensor<?xcomplex<f64>>",
    "select : (tensor<i1>, tensor<?xf32>, tensor<4xf32>)": "tensor<4xf32>",
    "concatenate <{dimension = 0 : i64}> : (tensor<2x?xf32>, tensor<3x4xf32>)": "tensor<5x4xf32>",
    "concatenate <{dimension = 0 : i64}> : (tensor<?x4xf32>, tensor<3x4xf32>)": "tensor<?x4xf32>",
    f"concatenate <{{dimension = 0 : i64}}> : (tensor<?xf32, {_B}<4>>, tensor<3xf32>)": (
        f"tensor<?xf32, {_B}<7>>"
    ),
    f"concatenate <{{dimension = 1 : i64}}> : (tensor<?x2xf32, {_B}<4, ?>>, tensor<?x3xf32>)": (
        f"tensor<?x5xf32, {_B}<4, ?>>"
    ),
    "transpose <{permutation = array<i64: 1, 0>}> : (tensor<?x3xf32>)": "tensor<3x?xf32>",
    f"transpose <{{permutation = array<i64: 1, 0>}}> : (tensor<?x3xf32, {_B}<4, ?>>)": (
        f"tensor<3x?xf32, {_B}<?, 4>>"
    ),
    "slice <{start_indices = array<i64: 1>, limit_indices = array<i64: 4>,"
    " strides = array<i64: 2>}> : (tensor<?xf32>)": "tensor<2xf32>",
    "pad <{edge_padding_low = array<i64: 1>, edge_padding_high = array<i64: 1>,"
    f" interior_padding = array<i64: 1>}}> : (tensor<?xf32, {_B}<4>>, tensor<f32>)": (
        f"tensor<?xf32, {_B}<9>>"
    ),
    "dynamic_slice <{slice_sizes = array<i64: 2>}> : (tensor<?xf32>, tensor<i32>)": "tensor<2xf32>",
    "get_dimension_size <{dimension = 0 : i64}> : (tensor<?xf32>)": "tensor<i32>",
    "set_dimension_size <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>)": (
        f"tensor<?xf32, {_B}<4>>"
    ),
    "set_dimension_size <{dimension = 0 : i64}> : (tensor<4xf32>, tensor<i32>) where 1 = dense<4>": (
        "tensor<4xf32>"
    ),
    "gather <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],"
    " start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}>"
    " : (tensor<4x3xf32>, tensor<?x1xi32>)": "tensor<?x3xf32>",
    f"reduce <{{dimensions = array<i64: 1>}}> {_REDUCER}"
    f" : (tensor<?x3xf32, {_B}<4, ?>>, tensor<f32>)": f"tensor<?xf32, {_B}<4>>",
    f"reduce_window <{{window_dimensions = array<i64: 2>}}> {_REDUCER}"
    f" : (tensor<?xf32, {_B}<4>>, tensor<f32>)": f"tensor<?xf32, {_B}<3>>",
    "all_to_all <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64,"
    " replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>"
    f" : (tensor<?x3xf32, {_B}<4, ?>>)": f"tensor<?x6xf32, {_B}<2, ?>>",
    "fft <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}>"
    f" : (tensor<?x8xf32, {_B}<4, ?>>)": f"tensor<?x5xcomplex<f32>, {_B}<4, ?>>",
    "cholesky : (tensor<?x4x?xf32>)": "tensor<?x4x?xf32>",
    "chlo.top_k <{k = 2 : i64}> : (tensor<?x?xf32>)": "tensor<?x2xf32>",
    "chlo.broadcast_add : (tensor<?x1xf32>, tensor<4xf32>)": "tensor<?x4xf32>",
    "compare <{comparison_direction = #stablehlo<comparison_direction EQ>}>"
    " : (tensor<?xf32>, tensor<3xf32>)": "tensor<3xi1>",
    "clamp : (tensor<f32>, tensor<?xf32>, tensor<f32>)": "tensor<?xf32>",
    "dynamic_broadcast_in_dim <{broadcast_dimensions = array<i64: 1, 2, 3>,"
    " known_nonexpanding_dimensions = array<i64: 1>}>"
    " : (tensor<3x1x?xf32>, tensor<4xi64>)": "tensor<?x3x1x?xf32>",
    "partition_id : ()": "tensor<ui32>",
    "rng <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>"
    " : (tensor<f32>, tensor<f32>, tensor<2xi64>)": "tensor<?x?xf32>",
    "rng <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}>"
    " : (tensor<f32>, tensor<f32>, tensor<2xi64>) where 2 = dense<[2, 3]>": "tensor<2x3xf32>",
}
"""Ops without their results, and the type of the first."""

_MERGED = ("compare", "chlo.broadcast_add")
"""MLIR takes less from the operands of these: it keeps the sizes of one, or asks when expanding."""


def _written(text: str, *results: str) -> str:
    text, _, rest = text.partition(" where ")
    shown = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return program(f"{text} -> {shown}" + (f" where {rest}" if rest else ""))


def _op(text: str, *results: str) -> Operation:
    name = text.split(" ")[0]
    full = name if "." in name else f"stablehlo.{name}"
    module = parse_module(_written(text, *results))
    return next(op for op in module.walk() if op.name == full)


def _results_of(text: str, kind: str) -> tuple[str, ...]:
    return (kind, kind.replace("f32", "i32")) if text.startswith("chlo.top_k") else (kind,)


@pytest.mark.parametrize(("text", "expected"), INFERRED.items())
def test_type_is_inferred(text: str, expected: str) -> None:
    inferred = infer_types(_op(text, *_results_of(text, expected)))
    assert inferred is not None
    assert str(inferred[0]) == expected


@pytest.mark.slow
@pytest.mark.oracle
def test_mlir_infers_the_same() -> None:
    """MLIR names the type it infers when a declared one does not fit, but for elementwise ops."""
    pytest.importorskip("jax")
    wrong = [_written(text, *_results_of(text, "tensor<7x7x7x7xf32>")) for text in INFERRED]
    compared = 0
    for (text, expected), said in zip(INFERRED.items(), refusals(wrong), strict=True):
        named = re.search(r"inferred type\(s\) '(.*?)'(?:, '.*')? are incompatible", said)
        if named is not None and text.split(" ")[0] not in _MERGED:
            assert named[1] == expected, text
            compared += 1
    assert compared > 15
    right = [_written(text, *_results_of(text, kind)) for text, kind in INFERRED.items()]
    assert not any(refusals(right))


_ELEMENTS = (
    "i1", "i2", "i4", "i8", "i16", "i32", "i64", "ui2", "ui4", "ui8", "ui16", "ui32", "ui64",
    "f8E5M2", "f8E4M3FN", "f8E4M3", "f8E3M4", "f8E8M0FNU", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN",
    "bf16", "f16", "f32", "f64", "complex<f32>", "complex<f64>",
)  # fmt: skip
_SAME = [
    name
    for name, row in SIGNATURES.items()
    if len(row.results) == 1 and row.operands in (row.results, row.results * 2)
    and set("".join(row.operands)) <= set("PSUFCQA")
    and not ROWS[f"stablehlo.{name}"].regions
    and not any(p.is_required for p in ROWS[f"stablehlo.{name}"].properties)
]  # fmt: skip
"""Ops of one type throughout that need no attributes."""


@pytest.mark.slow
@pytest.mark.oracle
def test_mlir_takes_the_same_element_types() -> None:
    pytest.importorskip("jax")
    asked = [(name, element) for name in _SAME for element in _ELEMENTS]
    texts: list[str] = []
    for name, element in asked:
        kind = f"tensor<2x{element}>"
        operands = ", ".join([kind] * len(SIGNATURES[name].operands))
        texts.append(program(f"{name} : ({operands}) -> {kind}"))
    for (name, element), text, said in zip(asked, texts, refusals(texts), strict=True):
        found = [op for op in parse_module(text).walk() if op.name == f"stablehlo.{name}"]
        assert (verify_op(found[0]) is None) == (not said), (name, element)
    assert len(asked) > 1000


def test_a_builder_infers_before_there_is_an_op() -> None:
    op = _op("add : (tensor<?xf32>, tensor<4xf32>)", "tensor<4xf32>")
    given = Given("add", tuple(value.type for value in op.operands), {})
    inferred = infer_types(given)
    assert inferred is not None
    assert str(inferred[0]) == "tensor<4xf32>"
    wrong = Given("transpose", given.operands[:1], {})
    with pytest.raises(ConstraintError, match="requires attribute 'permutation'"):
        infer_types(wrong)


def test_what_operands_do_not_say_is_not_inferred() -> None:
    assert infer_types(_op("reshape : (tensor<4xf32>)", "tensor<2x2xf32>")) is None
    assert infer_types(_op('custom_call <{call_target_name = "f"}> : ()', "tensor<2xf32>")) is None
