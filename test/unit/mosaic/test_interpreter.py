"""Kernels written out, for what Pallas does not lower to, and for errors."""

from __future__ import annotations

import base64
import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.mosaic.decode import config_of, read_kernel
from mlirhlo.mosaic.interpreter import Kernel, Options

F32 = np.dtype(np.float32)
I32 = np.dtype(np.int32)
VMEM = "#tpu.memory_space<vmem>"


def text(arguments: list[str], body: str, more: str = "", attributes: str = "") -> str:
    """A module in generic form: `arguments` are the types of %a0, %a1, …"""
    names = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(arguments))
    return f"""
"builtin.module"() ({{
  "func.func"() ({{
  ^bb0({names}):
    %c0 = "arith.constant"() {{value = 0 : index}} : () -> index
    {body}
    "func.return"() : () -> ()
  }}) {{sym_name = "main", function_type = ({", ".join(arguments)}) -> (){attributes}}} : () -> ()
  {more}
}}) : () -> ()
"""


def ref(shape: str) -> str:
    return f"memref<{shape}, {VMEM}>"


def kernel(*args: Any, **more: Any) -> Kernel:
    return Kernel(read_kernel(text(*args, **more).encode()))


def unary(source: str, target: str, op: str) -> Kernel:
    """Loads all of %a0 as %v, stores %r to %a1."""
    ranks = [shape.count("x") for shape in (source, target)]
    zero = [", ".join(["%c0"] * rank) for rank in ranks]
    index = [", ".join(["index"] * rank) for rank in ranks]
    return kernel(
        [ref(source), ref(target)],
        f"""%v = "vector.load"(%a0, {zero[0]}) : ({ref(source)}, {index[0]}) -> vector<{source}>
    {op}
    "vector.store"(%r, %a1, {zero[1]}) : (vector<{target}>, {ref(target)}, {index[1]}) -> ()""",
    )


def failure(run: Any) -> HloError:
    with pytest.raises(HloError) as caught:
        run()
    return caught.value


X = np.arange(1024, dtype=np.float32).reshape(8, 128)
N = np.arange(1024, dtype=np.int32).reshape(8, 128)


def test_bitcast_packs_rows() -> None:
    k = unary(
        "8x128xf32",
        "16x128xbf16",
        '%r = "tpu.bitcast"(%v) : (vector<8x128xf32>) -> vector<16x128xbf16>',
    )
    (got,) = k.run([X], [((16, 128), np.dtype(ml_dtypes.bfloat16))])
    words = X.view(np.uint32)
    assert np.array_equal(got[0::2].view(np.uint16), words & 0xFFFF)
    assert np.array_equal(got[1::2].view(np.uint16), words >> 16)


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ('"tpu.iota"() {dimensions = array<i32: 1, 0>}', np.arange(1024).reshape(128, 8).T),
        ('"tpu.iota"() {dimensions = array<i32: 0>}', np.repeat(np.arange(8), 128).reshape(8, 128)),
    ],
)
def test_iota(op: str, wanted: Any) -> None:
    (got,) = unary("8x128xi32", "8x128xi32", f"%r = {op} : () -> vector<8x128xi32>").run(
        [N], [((8, 128), I32)]
    )
    assert np.array_equal(got, wanted)


def test_rotate_with_stride() -> None:
    k = unary(
        "8x128xi32",
        "8x128xi32",
        '%s = "arith.constant"() {value = 3 : i32} : () -> i32\n'
        '%r = "tpu.dynamic_rotate"(%v, %s) {dimension = 1 : si32, stride = 2 : si32, '
        "stride_dimension = 0 : si32} : (vector<8x128xi32>, i32) -> vector<8x128xi32>",
    )
    (got,) = k.run([N], [((8, 128), I32)])
    assert np.array_equal(got, np.stack([np.roll(N[j], 3 + 2 * j) for j in range(8)]))


def test_gather_takes_the_index_modulo_the_size() -> None:
    index = (N * 7 + 3) % 300
    k = unary(
        "8x128xi32",
        "8x128xi32",
        '%r = "tpu.dynamic_gather"(%v, %v) {dimensions = array<i32: 1>} : '
        "(vector<8x128xi32>, vector<8x128xi32>) -> vector<8x128xi32>",
    )
    (got,) = k.run([index], [((8, 128), I32)])
    assert np.array_equal(got, np.take_along_axis(index, index % 128, axis=1))


def test_scan_and_sort() -> None:
    k = unary(
        "128xi32",
        "128xi32",
        '%m = "arith.constant"() {value = dense<true> : vector<128xi1>} : () -> vector<128xi1>\n'
        '%o, %k, %w = "tpu.sort"(%v, %v, %m) {descending = true} : (vector<128xi32>, '
        "vector<128xi32>, vector<128xi1>) -> (vector<128xi1>, vector<128xi32>, vector<128xi32>)\n"
        '%r = "tpu.scan"(%k) {kind = #tpu.reduction_kind<sum>} : (vector<128xi32>) -> '
        "vector<128xi32>",
    )
    x = np.random.default_rng(0).integers(-50, 50, 128).astype(np.int32)
    (got,) = k.run([x], [((128,), I32)])
    assert np.array_equal(got, np.cumsum(np.sort(x)[::-1]))


def test_pack_and_unpack() -> None:
    k = unary(
        "8x128xi32",
        "8x128xi32",
        '%p = "tpu.pack_elementwise"(%v, %v, %v, %v) {target_type = i8} : '
        f"({', '.join(['vector<8x128xi32>'] * 4)}) -> vector<8x128xi32>\n"
        '%r = "tpu.unpack_elementwise"(%p) {source_type = i8, index = 2 : i32} : '
        "(vector<8x128xi32>) -> vector<8x128xi32>",
    )
    (got,) = k.run([N], [((8, 128), I32)])
    assert np.array_equal(got, N.astype(np.int8))


def test_signed_division_rounds_toward_zero() -> None:
    pairs = np.array([[-7, 7, -7, 7], [2, -2, -2, 2]], np.int32)
    body = """%v = "vector.load"(%a0, %c0, %c0) : (memref<2x4xi32>, index, index) -> vector<2x4xi32>
    %x = "vector.extract"(%v) {static_position = array<i64: 0>} : (vector<2x4xi32>) -> vector<4xi32>
    %y = "vector.extract"(%v) {static_position = array<i64: 1>} : (vector<2x4xi32>) -> vector<4xi32>
    %r = "arith.OP"(%x, %y) : (vector<4xi32>, vector<4xi32>) -> vector<4xi32>
    "vector.store"(%r, %a1, %c0) : (vector<4xi32>, memref<4xi32>, index) -> ()"""
    for op, wanted in {
        "divsi": [-3, -3, 3, 3],
        "remsi": [-1, 1, -1, 1],
        "floordivsi": [-4, -4, 3, 3],
        "ceildivsi": [-3, -3, 4, 4],
    }.items():
        k = kernel(["memref<2x4xi32>", "memref<4xi32>"], body.replace("OP", op))
        (got,) = k.run([pairs], [((4,), I32)])
        assert got.tolist() == wanted, op


def test_blocks_between_branches() -> None:
    k = kernel(
        ["memref<1xi32>", "memref<1xi32>"],
        """%x = "memref.load"(%a0, %c0) : (memref<1xi32>, index) -> i32
    %t = "arith.constant"() {value = 10 : i32} : () -> i32
    "cf.br"(%x) [^loop] : (i32) -> ()
  ^loop(%i: i32):
    %n = "arith.addi"(%i, %i) : (i32, i32) -> i32
    %b = "arith.cmpi"(%n, %t) {predicate = 2 : i64} : (i32, i32) -> i1
    "cf.cond_br"(%b, %n, %n) [^loop, ^end] {operandSegmentSizes = array<i32: 1, 1, 1>} : (i1, i32, i32) -> ()
  ^end(%e: i32):
    "memref.store"(%e, %a1, %c0) : (i32, memref<1xi32>, index) -> ()""",
    )
    assert k.run([np.array([3], np.int32)], [((1,), I32)])[0].tolist() == [12]


def test_memory_nobody_wrote_is_poisoned() -> None:
    nothing = kernel([ref("8x128xf32"), ref("8x128xi32")], "")
    got = nothing.run([], [((8, 128), F32), ((8, 128), I32)])
    assert np.isnan(got[0]).all()
    assert (got[1] == -(1 << 31)).all()


MATMUL = """%v = "vector.load"(%a0, %c0, %c0) : (memref<1x1xf32>, index, index) -> vector<1x1xf32>
    %z = "arith.constant"() {value = dense<0.0> : vector<1x1xf32>} : () -> vector<1x1xf32>
    %r = "tpu.matmul"(%v, %v, %z) {transpose_lhs_hint = false PRECISION} : (V, V, V) -> V
    "vector.store"(%r, %a1, %c0, %c0) : (vector<1x1xf32>, memref<1x1xf32>, index, index) -> ()"""


_PRODUCT = "(vector<1x1xf32>, vector<1x1xf32>, vector<1x1xf32>) -> vector<1x1xf32>"


def test_products_round_their_operands_when_asked_to() -> None:
    x = np.full((1, 1), 1 + 2.0**-9, np.float32)
    for precision, options, wanted in (
        ("", Options(), x * x),
        ("", Options(rounds_matmul_operands=True), 1.0),
        (
            ", precision = #tpu.contract_precision<fp32>",
            Options(rounds_matmul_operands=True),
            x * x,
        ),
    ):
        k = kernel(
            ["memref<1x1xf32>"] * 2,
            MATMUL.replace("PRECISION", precision).replace("(V, V, V) -> V", _PRODUCT),
        )
        assert k.run([x], [((1, 1), F32)], options=options)[0] == wanted


UNIT = "{mxu_index = 0 : i32}"
LOADED = "{mxu_index = 0 : i32, load_staged_rhs = 0 : i32"
V = "vector<8x128xf32>"
SQUARE = "vector<128x128xf32>"


def by_hand(body: str) -> Kernel:
    """A product of %a0 and %a1 by a matrix unit, stored to %a2 where the body makes %r."""
    stored = f'"vector.store"(%r, %a2, %c0, %c0) : ({V}, {ref("8x128xf32")}, index, index) -> ()'
    return kernel(
        [ref("8x128xf32"), ref("128x128xf32"), ref("8x128xf32")],
        f"""%x = "vector.load"(%a0, %c0, %c0) : ({ref("8x128xf32")}, index, index) -> {V}
    %w = "vector.load"(%a1, %c0, %c0) : ({ref("128x128xf32")}, index, index) -> {SQUARE}
    "tpu.matmul_push_rhs"(%w) {UNIT} : ({SQUARE}) -> ()
    {body}
    {stored}""",
    )


ACC = f'"tpu.matmul_acc_lhs"(%x) {LOADED}, acc = 3 : i32}} : ({V}) -> ()\n    '
POP = f'%r = "tpu.matmul_pop"() {{mxu_index = 0 : i32, acc = 3 : i32}} : () -> {V}'
FIFO = f'"tpu.matmul_lhs_fifo"(%x) {LOADED}}} : ({V}) -> ()\n    '
TAKE = f'%r = "tpu.matmul_pop_fifo"() {UNIT} : () -> {V}'


def test_matrix_units_by_hand() -> None:
    w = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)
    for body, times in ((ACC + ACC + POP, 2), (FIFO + FIFO + TAKE, 1)):
        (found,) = by_hand(body).run([X, w], [((8, 128), F32)])
        np.testing.assert_allclose(found, times * (X @ w), rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (POP, "accumulator 3 is empty"),
        (ACC + POP.replace("%r", "%q") + "\n    " + POP, "accumulator 3 is empty"),
        (TAKE, "queue is empty"),
        (ACC.replace(", load_staged_rhs = 0 : i32", "") + POP, "no right side is loaded"),
        (ACC.replace("rhs = 0", "rhs = 1") + POP, "nothing is staged in register 1"),
    ],
)
def test_matrix_units_that_hold_nothing(body: str, said: str) -> None:
    problem = failure(lambda: by_hand(body).run([X, np.eye(128, dtype=F32)], [((8, 128), F32)]))
    assert problem.code == "HLO0702"
    assert said in str(problem)


def test_log_and_random_bits() -> None:
    lines: list[str] = []
    k = unary(
        "8x128xi32",
        "8x128xi32",
        '%s = "arith.constant"() {value = 7 : i32} : () -> i32\n'
        '"tpu.log"(%s) {tag = "seed"} : (i32) -> ()\n'
        '"tpu.prng_set_seed_32"(%s) : (i32) -> ()\n'
        '%p = "tpu.prng_random_bits"() : () -> vector<8x128xi32>\n'
        '"tpu.prng_set_seed_32"(%s) : (i32) -> ()\n'
        '%q = "tpu.prng_random_bits"() : () -> vector<8x128xi32>\n'
        '%t = "tpu.prng_random_bits"() : () -> vector<8x128xi32>\n'
        '%x = "arith.xori"(%p, %q) : (vector<8x128xi32>, vector<8x128xi32>) -> vector<8x128xi32>\n'
        '%r = "arith.ori"(%x, %t) : (vector<8x128xi32>, vector<8x128xi32>) -> vector<8x128xi32>',
    )
    (got,) = k.run([N], [((8, 128), I32)], options=Options(log=lines.append))
    assert lines == ["seed 7"]
    assert len(np.unique(got)) > 1000


# ------------------------------------------------------------ errors


def test_an_unknown_operation_is_named() -> None:
    problem = failure(lambda: kernel([ref("8x128xf32")], '"llo.vadd"() : () -> ()').run([], []))
    assert problem.code == "HLO0700"
    k = kernel([ref("8x128xf32")], '"llo.vadd"() : () -> ()')
    problem = failure(lambda: k.run([], [((8, 128), F32)]))
    assert problem.code == "HLO0701"
    assert "llo.vadd" in str(problem)
    assert "<kernel main>" in str(problem)


@pytest.mark.parametrize(
    "body",
    [
        '%v = "arith.addi"(%c0) : (index) -> index',
        '%v = "arith.cmpi"(%c0, %c0) {predicate = 77 : i64} : (index, index) -> i1',
        '%v = "tpu.iota"() {dimensions = array<i32: 5>} : () -> vector<2x2xi32>',
        '"tpu.sem_signal"(%c0, %c0) {operandSegmentSizes = array<i32: 1, 1, 1>} : (index, index) -> ()',
        '"scf.if"(%c0) : (index) -> ()',
        '%v = "vector.load"(%c0) : (index) -> vector<1xf32>',
    ],
)
def test_malformed_operations_are_named(body: str) -> None:
    problem = failure(lambda: kernel([], body).run([], []))
    assert problem.code in ("HLO0701", "HLO0702", "HLO0712")
    assert problem.diagnostics[0].place is not None
    assert body.split('"')[1] in str(problem)


def test_loads_stay_inside() -> None:
    k = kernel(
        [ref("8x128xf32")],
        f'%c6 = "arith.constant"() {{value = 6 : index}} : () -> index\n'
        f'%v = "vector.load"(%a0, %c6, %c0) : ({ref("8x128xf32")}, index, index) -> vector<4x128xf32>',
    )
    problem = failure(lambda: k.run([], [((8, 128), F32)]))
    assert problem.code == "HLO0702"
    assert "elements 6 to 9 of dimension 0" in str(problem)


def test_promises_are_kept() -> None:
    k = kernel(
        [],
        '%s = "arith.constant"() {value = 7 : i32} : () -> i32\n'
        '%t = "tpu.assume_multiple"(%s) {multiple = 8 : i32} : (i32) -> i32',
    )
    assert "multiple of 8" in str(failure(lambda: k.run([], [])))


def test_a_wait_without_a_copy_is_stuck() -> None:
    sem = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    r = ref("8x128xf32")
    k = kernel(
        [r, r, sem],
        f'"tpu.wait_dma2"(%a2, %a0, %a1) {{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : ({sem}, {r}, {r}) -> ()',
        attributes=", scratch_operands = 1 : i64",
    )
    problem = failure(lambda: k.run([X], [((8, 128), F32)]))
    assert problem.code == "HLO0703"
    assert "needs 4096" in str(problem)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no custom_call_config"),
        ({"custom_call_config": {}}, "no body"),
        ({"custom_call_config": {"body": "?"}}, "not base64"),
    ],
)
def test_configurations_that_hold_no_kernel(options: Any, said: str) -> None:
    problem = failure(lambda: config_of(options))
    assert problem.code == "HLO0700"
    assert said in str(problem)


def test_bodies_that_cannot_be_read() -> None:
    problem = failure(
        lambda: read_kernel(b'"builtin.module"() ({\n  "tpu.delay" oops\n}) : () -> ()')
    )
    assert problem.code == "HLO0710"
    assert problem.diagnostics[0].place is not None
    assert problem.diagnostics[0].place.line == 2
    newest = b'"builtin.module"() ({}) {stable_mosaic.version = 99 : i64} : () -> ()'
    assert "version 99" in str(failure(lambda: read_kernel(newest)))
    assert failure(lambda: read_kernel(b"\xff\xfe")).code == "HLO0700"


def test_old_versions_are_upgraded() -> None:
    old = """"builtin.module"() ({
  "stable_mosaic.func.func"() ({
  ^bb0(%a: memref<3x4xi32>):
    %c = "stable_mosaic.arith.constant"() {value = 0 : index} : () -> index
    %v = "stable_mosaic.tpu.iota"() {dimension = 1 : i32} : () -> vector<3x4xi32>
    "stable_mosaic.vector.store"(%v, %a, %c, %c) : (vector<3x4xi32>, memref<3x4xi32>, index, index) -> ()
    "stable_mosaic.func.return"() : () -> ()
  }) {sym_name = "main", function_type = (memref<3x4xi32>) -> ()} : () -> ()
}) {stable_mosaic.version = 5 : i64} : () -> ()"""
    (got,) = Kernel(read_kernel(old.encode())).run([], [((3, 4), I32)])
    assert got.tolist() == [[0, 1, 2, 3]] * 3


def test_a_text_body_in_a_program() -> None:
    """Two results, one of them in the memory of an operand."""
    r = ref("8x128xf32")
    body = text(
        [r, r, r],
        f"""%v = "vector.load"(%a0, %c0, %c0) : ({r}, index, index) -> vector<1x128xf32>
    "vector.store"(%v, %a1, %c0, %c0) : (vector<1x128xf32>, {r}, index, index) -> ()""",
    )
    config = {"custom_call_config": {"body": base64.b64encode(body.encode()).decode()}}
    attributes = (
        'custom_call_target="tpu_custom_call", output_to_operand_aliasing={{1}: (0, {})}, '
        f"backend_config={json.dumps(config)}"
    )
    module = parse_module(f"""HloModule m
ENTRY e {{
  x = f32[8,128] parameter(0)
  ROOT r = (f32[8,128], f32[8,128]) custom-call(x), {attributes}
}}
""")
    first, second = run_module(module, [X])
    assert np.array_equal(first[:1], X[:1])
    assert np.isnan(first[1:]).all()
    assert np.array_equal(second, X)
