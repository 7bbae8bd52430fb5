"""`FunctionBuilder.parallel`, `workspace` and `may_share`, from the builder down to results."""

import ctypes
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, f32, f64, i64
from xdsl.dialects.func import FuncOp

import mlirhlo
from mlirhlo.lowering.builder import IN_PLACE, INDEX, FunctionBuilder
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.runtime import threads
from mlirhlo.runtime.jit import Library, compile_object

pytest.importorskip("llvmlite")

WORK = 1_000_000


@pytest.fixture(params=[1, 3])
def count(request: pytest.FixtureRequest) -> Iterator[int]:
    threads.set_thread_count(request.param)
    yield request.param
    threads.set_thread_count(0)


def text_of(function: FuncOp) -> str:
    module = ModuleOp([function])
    module.verify()
    lowered = convert_to_llvm(module)
    lowered.verify()
    return print_llvm(lowered)


def compiled(function: FuncOp) -> Callable[..., None]:
    text = text_of(function)
    name = function.sym_name.data
    library = Library([compile_object(text)], [name], threads.externals(text))
    kinds = [
        ctypes.c_void_p if isinstance(t, MemRefType) else ctypes.c_int64
        for t in function.function_type.inputs
    ]
    entry = ctypes.CFUNCTYPE(None, *kinds)(library.address(name))

    def call(*arguments: object) -> None:
        assert library is not None
        entry(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments))

    return call


def test_rounds_see_what_stands_outside(count: int) -> None:
    """Scalars, vectors, masks, buffers and constants from around the loop."""
    b = FunctionBuilder("kernel", [MemRefType(f32, [16]), MemRefType(f64, [50, 8]), INDEX])
    source, target, rounds = b.arguments
    vector = b.vector_load(source, [0], 8)
    scalar = b.load(source, [9])
    mask = b.mask(b.constant(5, INDEX), 8)
    scratch = b.scratch([8], f32)
    b.vector_store(b.mulf(vector, b.broadcast(scalar, 8)), scratch, [0])
    with b.parallel(rounds, work=WORK) as i:
        row = b.vector_load(scratch, [0], 8)
        zero = b.constant(0, row.type)
        both = b.addf(b.select(mask, row, zero), vector)
        from mlirhlo.dialects import arith

        b.vector_store(b.cast(arith.ExtFOp, both, f64), target, [i, 0])
    kernel = compiled(b.finish())
    x = np.arange(16, dtype=np.float32)
    out = np.zeros((50, 8))
    kernel(x, out, 40)
    expected = np.where(np.arange(8) < 5, x[:8] * 9, 0) + x[:8]
    np.testing.assert_array_equal(out[:40], np.tile(expected, (40, 1)))
    np.testing.assert_array_equal(out[40:], 0)


def test_each_round_has_scratch_of_its_own(count: int) -> None:
    b = FunctionBuilder("kernel", [MemRefType(i64, [1000])])
    (target,) = b.arguments
    with b.parallel(1000, work=WORK) as i:
        scratch = b.scratch([1], i64)
        b.store(b.cast_index(i, i64), scratch, [0])
        b.store(b.load(scratch, [0]), target, [i])
    function = b.finish()
    (loop,) = [op for op in function.body.block.ops if op.name == "scf.parallel"]
    assert next(op.name for op in loop.regions[0].block.ops) == "memref.alloca"
    out = np.zeros(1000, np.int64)
    compiled(function)(out)
    np.testing.assert_array_equal(out, np.arange(1000))


def test_a_loop_around_a_parallel_one_and_one_inside(count: int) -> None:
    b = FunctionBuilder("kernel", [MemRefType(i64, [4, 6, 5])])
    (target,) = b.arguments
    with b.loop(0, 4) as i, b.parallel(6, work=WORK) as j, b.parallel(5, work=WORK) as k:
        number = b.add(b.mul(b.add(b.mul(i, 6), j), 5), k)
        b.store(b.cast_index(b.index(number), i64), target, [i, j, k])
    out = np.zeros((4, 6, 5), np.int64)
    compiled(b.finish())(out)
    np.testing.assert_array_equal(out.ravel(), np.arange(120))


def test_little_work_stays_where_it_is() -> None:
    texts: list[str] = []
    for work in (100, WORK, None):
        b = FunctionBuilder("kernel", [MemRefType(i64, [8])])
        with b.parallel(8, work=work) as i:
            b.store(b.constant(1, i64), b.arguments[0], [i])
        texts.append(text_of(b.finish()))
    assert [threads.PARALLEL_FOR in text for text in texts] == [False, True, True]
    # No more threads than there is work for; without an estimate all of them.
    assert f"i64 8, i64 {WORK // 10_000})" in texts[1]


def test_a_workspace_is_the_last_argument() -> None:
    b = FunctionBuilder("kernel", [MemRefType(i64, [8])], argument_attributes=[{}])
    room = b.workspace(1 << 20)
    function = b.finish()
    assert room.type == function.function_type.inputs.data[-1]
    assert str(function.attributes["mlirhlo.workspace"]) == "1048576 : i64"
    assert function.function_type == FunctionType.from_lists([MemRefType(i64, [8]), room.type], [])
    function.verify()


def test_what_may_share_is_not_said_to_be_apart() -> None:
    plan = lower(
        mlirhlo.parse(
            "HloModule m\nENTRY e { x = f32[64] parameter(0) ROOT y = f32[64] abs(x) }"
        ).op
    ).plan
    (kernel,) = plan.kernels.values()
    assert str(kernel.attributes[IN_PLACE]) == "[array<i64: 0, 1>]"
    assert kernel.arg_attrs is not None
    assert not any(a.data for a in kernel.arg_attrs)


def test_a_large_module_on_threads(count: int) -> None:
    """Element by element, and with a transpose, whose rows are cut."""
    text = """HloModule m
ENTRY e {
  x = f32[301,1003] parameter(0)
  y = f32[301,1003] parameter(1)
  a = f32[301,1003] add(x, y)
  t = f32[1003,301] transpose(a), dimensions={1,0}
  ROOT r = (f32[301,1003], f32[1003,301]) tuple(a, t)
}"""
    module = mlirhlo.parse(text)
    assert str(lower(module.op).loops).count("scf.parallel") >= 2
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 301, 1003), np.float32)
    total, transposed = mlirhlo.compile(module)(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(transposed, (x + y).T)
    assert count
