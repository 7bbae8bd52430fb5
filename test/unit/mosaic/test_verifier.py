"""Numbered constraints of kernels: a case that breaks each, and real kernels that break none."""

from __future__ import annotations

import pytest
from support import SHARED, needs_shared

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.verifier import CONSTRAINTS, verify_kernel

SAMPLES = SHARED / "reference" / "mosaic_samples"
VMEM, SMEM = "#tpu.memory_space<vmem>", "#tpu.memory_space<smem>"
SEM = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
F, B, S = (
    f"memref<8x128xf32, {VMEM}>",
    f"memref<8x128xbf16, {VMEM}>",
    f"memref<8x128xf32, {SMEM}>",
)
V, W = "vector<8x128xf32>", "vector<8x128xbf16>"
ARGUMENTS = f"%f: {F}, %b: {B}, %s: {S}, %g: {SEM}, %h: memref<2x{SEM[7:]}"
LOAD = "operandSegmentSizes = array<i32: 1, {}, 0>, strides = array<i32{}>"
STORE = "operandSegmentSizes = array<i32: 1, 1, {}, 0>, strides = array<i32{}>, add = false"


def load(base: str, type_: str, vector: str, indices: str = "%c, %c", strides: str = "") -> str:
    count = indices.count("%")
    types = ", ".join([type_, *["index"] * count])
    attributes = LOAD.format(count, strides)
    return f'%r = "tpu.vector_load"({base}, {indices}) <{{{attributes}}}> : ({types}) -> {vector}'


def store(base: str, type_: str, value: str, indices: str = "%c, %c", strides: str = "") -> str:
    count = indices.count("%")
    types = ", ".join([V if value == "%v" else W, type_, *["index"] * count])
    attributes = STORE.format(count, strides)
    return f'"tpu.vector_store"({value}, {base}, {indices}) <{{{attributes}}}> : ({types}) -> ()'


def strided(name: str, type_: str, vector: str, strides: str) -> str:
    base = "%f" if type_ == F else "%b"
    if name == "load":
        return (
            f'%r = "tpu.strided_load"({base}, %c, %c) <{{strides = array<i32: {strides}>}}> : '
            f"({type_}, index, index) -> {vector}"
        )
    return (
        f'"tpu.strided_store"(%v, {base}, %c, %c) <{{strides = array<i32: {strides}>}}> : '
        f"({V}, {type_}, index, index) -> ()"
    )


def one(name: str, operand: str, before: str, after: str, attributes: str = "") -> str:
    return f'%r = "{name}"({operand}) <{{{attributes}}}> : ({before}) -> {after}'


def matmul(
    numbers: str, rhs: str = "vector<128x128xf32>", acc: str = "%v", result: str = V, rank: str = V
) -> str:
    return (
        f'%w2 = "arith.constant"() <{{value = dense<1.0> : {rhs}}}> : () -> {rhs}\n    '
        f'%r = "tpu.matmul"(%v, %w2, {acc}) <{{dimension_numbers = '
        f"#tpu.dot_dimension_numbers<{numbers}>, transpose_lhs_hint = false}}> : "
        f"({rank}, {rhs}, {V if acc == '%v' else W}) -> {result}"
    )


PLAIN = "[1], [0], [0], [1], [0, 0, 1, 1], [], []"


def copy(source: str, types: tuple[str, str], segments: str, rest: str = "", more: str = "") -> str:
    target = "%f" if types[1] == F else "%b"
    wait = ", %g" if segments[9] == "1" else ""
    operands = f"{source}{', %g' if segments[3] == '1' else ''}, {target}{wait}{rest}"
    spelled = [types[0], *([SEM] if segments[3] == "1" else []), types[1]]
    spelled += [SEM] if wait else []
    spelled += ["i32"] * rest.count("%")
    return (
        f'"tpu.enqueue_dma"({operands}) <{{operandSegmentSizes = array<i32: {segments}>'
        f"{more}}}> : ({', '.join(spelled)}) -> ()"
    )


CASES: dict[str, str] = {
    "vector_load_c1": load("%f", F, W),
    "vector_load_c2": load("%s", S, V),
    "vector_load_c3": load("%f", F, V, strides=": 2, 1"),
    "vector_load_c4": load("%f", F, V, "%c"),
    "vector_load_c5": load("%f", F, V, "%k, %c"),
    "vector_store_c1": store("%f", F, "%w"),
    "vector_store_c2": store("%s", S, "%v"),
    "vector_store_c3": store("%f", F, "%v", strides=": 2, 1"),
    "vector_store_c4": store("%f", F, "%v", "%c"),
    "vector_store_c5": store("%f", F, "%v", "%k, %c"),
    "strided_load_c1": strided("load", F, W, "1, 1"),
    "strided_load_c2": strided("load", F, V, "-1, 1"),
    "strided_load_c3": strided("load", F, V, "1"),
    "strided_store_c1": strided("store", B, V, "1, 1"),
    "strided_store_c2": strided("store", F, V, "0, 1"),
    "strided_store_c3": strided("store", F, V, "1"),
    "load_c1": f"%r = vector.load %f[%c, %c] : {F}, {W}",
    "load_c2": f"%r = vector.load %f[%k, %c] : {F}, {V}",
    "store_c1": f"vector.store %w, %f[%c, %c] : {F}, {W}",
    "store_c2": f"vector.store %v, %f[%k, %c] : {F}, {V}",
    "iota_c1": "%r = tpu.iota {dimensions = array<i32: 0, 0>} : vector<8x128xi32>",
    "iota_c2": f"%r = tpu.iota {{dimensions = array<i32: 0>}} : {V}",
    "concatenate_c1": one("tpu.concatenate", "%v", V, V, "dimension = 0 : i32"),
    "concatenate_c2": one("tpu.concatenate", "%v, %v", f"{V}, {V}", V, "dimension = 0 : i32"),
    "transpose_c1": one("tpu.transpose", "%v", V, V, "permutation = array<i64: 1, 0>"),
    "reshape_c1": one("tpu.reshape", "%v", V, "vector<8x64xf32>"),
    "shape_cast_c1": one("vector.shape_cast", "%v", V, "vector<8x64xf32>"),
    "memref_reshape_c1": one("tpu.memref_reshape", "%f", F, F.replace("8x128", "4x128")),
    "memref_reshape_c2": one("tpu.memref_reshape", "%f", F, S),
    "dynamic_rotate_c1": one(
        "tpu.dynamic_rotate", "%v, %i", f"{V}, i32", V, "dimension = 0 : si32, stride = 1 : si32"
    ),
    "dynamic_rotate_c2": one(
        "tpu.dynamic_rotate", "%v, %i", f"{V}, i32", V, "dimension = 2 : si32"
    ),
    "dynamic_gather_c1": one(
        "tpu.dynamic_gather", "%v, %j", f"{V}, vector<4x128xi32>", V, "dimensions = array<i32: 0>"
    ),
    "bitcast_c1": one("tpu.bitcast", "%v", V, W),
    "memref_bitcast_c1": one("tpu.memref_bitcast", "%f", F, B),
    "memref_bitcast_c2": one("tpu.memref_bitcast", "%f", F, S.replace("f32", "i32")),
    "matmul_c1": matmul(PLAIN, acc="%w"),
    "matmul_c2": matmul(PLAIN, acc="%w", result=W),
    "matmul_c3": matmul("[1], [0], [0], [1], [1, 1, 0, 0], [], []"),
    "matmul_c4": matmul(PLAIN, rhs="vector<64x128xf32>"),
    "matmul_c5": matmul("[1], [0], [0], [0], [0, 0, 1, 0], [], []"),
    "reduce_index_c1": one(
        "tpu.reduce_index", "%v", V, V, "axis = 0 : i32, kind = #tpu.reduction_kind<arg_max>"
    ),
    "reduce_index_c2": one(
        "tpu.reduce_index",
        "%v",
        V,
        "vector<128xi32>",
        "axis = 0 : i32, kind = #tpu.reduction_kind<sum>",
    ),
    "reciprocal_c1": one("tpu.reciprocal", "%j", "vector<4x128xi32>", "vector<4x128xi32>"),
    "weird_c1": one("tpu.weird", "%v", V, V),
    "assume_multiple_c1": one("tpu.assume_multiple", "%i", "i32", "i32", "multiple = 0 : i32"),
    "assume_multiple_c2": one("tpu.assume_multiple", "%i", "i32", "i32", "multiple = 2 : i32"),
    "memref_squeeze_c1": one("tpu.memref_squeeze", "%f", F, F.replace("8x128", "128")),
    "memref_squeeze_c2": one("tpu.memref_squeeze", "%f", F, S),
    "memref_slice_c1": f"%r = tpu.memref_slice %f[%i, %i] : {F} -> {F.replace('8x128', '16x128')}",
    "memref_slice_c2": f"%r = tpu.memref_slice %f[%i, %i] : {F} -> {S}",
    "enqueue_dma_c1": copy("%f", (F, B), "1, 0, 1, 1, 0, 0, 0"),
    "enqueue_dma_c2": copy("%f", (F, F), "1, 0, 1, 0, 0, 0, 0"),
    "enqueue_dma_c3": copy("%f", (F, F), "1, 1, 1, 1, 0, 0, 0"),
    "enqueue_dma_c4": copy("%f", (F, F), "1, 0, 1, 1, 0, 0, 0", more=", priority = 2 : i32"),
    "sem_signal_c1": f"tpu.sem_signal %f, %i : {F}",
    "sem_wait_c1": "tpu.sem_wait %h, %i : memref<2x" + SEM[7:],
    "core_id_c1": "%r = tpu.core_id : i32",
    "subcore_id_c1": "%r = tpu.subcore_id : i32",
    "func_c1": "",
    "func_c2": "",
    "func_c3": "",
    "func_c4": "",
    "for_c1": f"%r = scf.for %x = %c to %k step %k iter_args(%q = %v) -> ({V}) {{ }}",
    "while_c1": (
        '%r = "scf.while"(%i) ({ ^bb0(%a: i32): %t = arith.constant true'
        '  "scf.condition"(%t) : (i1) -> () },'
        ' { ^bb0(%a: i32): "scf.yield"(%a) : (i32) -> () }) : (i32) -> i32'
    ),
    "if_c1": (
        "%t = arith.constant true"
        '  %r = "scf.if"(%t) ({ "scf.yield"() : () -> () }, { "scf.yield"(%i) : (i32) -> () }) : (i1) -> i32'
    ),
    "region_c1": '%r = "tpu.region"() ({ "tpu.yield"() : () -> () }) : () -> i32',
}


def kernel(number: str) -> str:
    """A kernel that breaks the constraint."""
    more, grid = "", ""
    if number == "func_c1":
        more = "dimension_semantics = [], iteration_bounds = array<i64: 2>, "
    if number == "func_c3":
        more = "scratch_operands = 127 : i64, "
    if number == "func_c2":
        grid = "%n: i32, "
        more = (
            "dimension_semantics = [#tpu.dimension_semantics<arbitrary>], "
            "iteration_bounds = array<i64: 2>, window_params = "
            "[{transform_indices = @t, window_bounds = array<i64: 16, 128>}], "
        )
    return f"""module {{
  func.func @main({grid}{ARGUMENTS}) attributes {{{more}tpu.core_type = #tpu.core_type<tc>}} {{
    %c = arith.constant 0 : index
    %k = arith.constant 1 : index
    %i = arith.constant 3 : i32
    %v = arith.constant dense<1.0> : {V}
    %w = arith.constant dense<1.0> : {W}
    %j = arith.constant dense<1> : vector<4x128xi32>
    {CASES[number]}
    {"return" if number != "func_c4" else ""}
  }}
}}
"""


NUMBERS = {
    row.number
    for rows in CONSTRAINTS.values()
    for row in rows
    if not row.operation.startswith("mosaic_gpu.")
}


def test_every_constraint_has_a_case() -> None:
    assert set(CASES) == NUMBERS


@pytest.mark.parametrize("number", CASES)
def test_a_broken_constraint_is_named(number: str) -> None:
    with pytest.raises(HloError) as caught:
        verify_kernel(read_kernel(kernel(number).encode(), "k.mlir"))
    found = caught.value.diagnostics[0]
    assert found.code == "HLO0737"
    assert found.message.endswith(f"({number})"), found.message
    assert found.place is not None
    assert found.place.line > 0


@needs_shared
@pytest.mark.slow
def test_real_kernels_break_none() -> None:
    files = [*(SAMPLES / "kernels").iterdir(), *(SAMPLES / "ops").iterdir()]
    for file in files:
        verify_kernel(read_kernel(file.read_bytes(), file.name))
