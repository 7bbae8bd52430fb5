"""The code around kernels, built as ops of the llvm dialect: read by MLIR's readers, and run in pieces."""

from __future__ import annotations

import ctypes
import itertools
import math
import os
import platform
import struct
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers_of_stages import fault_of_mlir, read_by_xdsl
from xdsl.dialects.builtin import ModuleOp, f32, i8
from xdsl.dialects.llvm import FuncOp, LinkageAttr

import mlirhlo.aot.targets as aot_targets
from mlirhlo.aot import pool, runtime_ir
from mlirhlo.aot.runtime_ir import Part, Wrapper
from mlirhlo.aot.signature import Leaf, Signature
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.runtime_symbols import PARALLEL_FOR
from mlirhlo.lowering.stage_text import print_stage
from mlirhlo.runtime.generated import (
    bf16_ir,
    call_ir,
    device_threads_ir,
    meeting_ir,
    pool_ir,
    run_ir,
    threads_ir,
)
from mlirhlo.runtime.jit import Library, compile_object

binding = pytest.importorskip("llvmlite.binding")

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux",
    reason="the pieces are run as code of Linux on x86-64",
)
PAUSE = "llvm.x86.sse2.pause"
_F32 = ArrayShape(PRIMITIVE_TYPES["f32"], (4,))
SIGNATURE = Signature([Leaf(n, _F32, 16) for n in ("x", "y")], [Leaf("result", _F32, 16)])
LEVELS = (4, 3, 0)


def runs(machine: str, *, is_linux: bool = True) -> ModuleOp:
    m = LlvmBuilder()
    pool_ir.add_pool(m)
    run_ir.add_run(m, machine, is_linux=is_linux)
    return m.module()


def wrapper(triple: str, levels: tuple[int, ...] = LEVELS) -> Wrapper:
    parts = [Part(f"x86-64-v{n}", f"main_{at}", n, [64, 128]) for at, n in enumerate(levels)]
    return Wrapper("program", triple, SIGNATURE, 128, parts, b"HEADER".ljust(64, b"\0"), 1000)


def ahead(triple: str, levels: tuple[int, ...] = LEVELS) -> ModuleOp:
    m = LlvmBuilder()
    runtime_ir.add_wrapper(m, wrapper(triple, levels))
    bf16_ir.add_to_bf16(m)
    return m.module()


def ahead_pool(triple: str, *, parallel: bool) -> ModuleOp:
    m = LlvmBuilder()
    pool.add_pool(m, wrapper(triple), parallel=parallel)
    return m.module()


TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "wasm32-unknown-unknown")
MODULES: dict[str, Callable[[], ModuleOp]] = {
    "calls": call_ir.module,
    "runs": lambda: runs("x86_64"),
    "runs elsewhere": lambda: runs("aarch64"),
    "runs without signals": lambda: runs("x86_64", is_linux=False),
    "threads": lambda: threads_ir.module(202, PAUSE, "x86_64"),
    "threads elsewhere": lambda: threads_ir.module(98, "", "aarch64"),
    "meetings": lambda: meeting_ir.module(202, PAUSE),
    "devices": lambda: device_threads_ir.module(202, PAUSE),
    "meetings without futexes": lambda: meeting_ir.module(0, ""),
    **{f"ahead {t}": partial(ahead, t) for t in TRIPLES},
    "ahead without levels": lambda: ahead(TRIPLES[0], (0,)),
    **{f"ahead pool {t}": partial(ahead_pool, t, parallel=True) for t in TRIPLES},
    "ahead without a pool": lambda: ahead_pool(TRIPLES[0], parallel=False),
}


@pytest.mark.parametrize("name", MODULES)
def test_it_is_verified_printed_and_read(name: str) -> None:
    """xDSL's reader gives the same LLVM assembly again, and LLVM takes that."""
    module = MODULES[name]()
    module.verify()
    again = read_by_xdsl(print_stage(module))
    again.verify()
    text = print_llvm(module)
    assert print_llvm(again) == text == print_llvm(MODULES[name]())
    binding.parse_assembly(text).verify()


@pytest.mark.oracle
@pytest.mark.parametrize("name", MODULES)
def test_mlir_reads_it(name: str) -> None:
    pytest.importorskip("jaxlib")
    assert fault_of_mlir(print_stage(MODULES[name]())) == ""


class Pieces:
    """A module of which every function can be called."""

    def __init__(self, module: ModuleOp, externals: dict[str, int] | None = None) -> None:
        functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
        for op in functions:
            op.properties["linkage"] = LinkageAttr("external")
        for op in module.ops:
            if op.name == "llvm.mlir.global" and op.properties.get("value") is not None:
                op.properties["linkage"] = LinkageAttr("external")
        variables = [
            str(op.properties["sym_name"]).strip('"')
            for op in module.ops
            if op.name == "llvm.mlir.global" and op.properties.get("value") is not None
        ]
        names = [*(op.sym_name.data for op in functions), *variables]
        binding.initialize_native_target()
        binding.initialize_native_asmparser()
        self.library = Library([compile_object(print_llvm(module))], names, externals or {})

    def __call__(self, name: str, *arguments: object, result: type | None = None) -> int:
        types: list[Any] = [
            type(a) if not isinstance(a, int) else ctypes.c_int64 for a in arguments
        ]
        function = ctypes.CFUNCTYPE(result, *types)(self.library.address(name))
        return int(function(*arguments) or 0)


@cache
def threads() -> Pieces:
    process = ctypes.CDLL(None)
    names = ("pthread_create", "pthread_join", "pthread_sigmask", "sched_yield", "syscall")
    found = {n: ctypes.cast(getattr(process, n), ctypes.c_void_p).value or 0 for n in names}
    m = LlvmBuilder()
    m.variable("mlirhlo_stop", i8, linkage="external")
    module = threads_ir.module(202, PAUSE, "x86_64")
    stop = next(
        op
        for op in module.ops
        if op.name == "llvm.mlir.global" and op.properties.get("value") is None
    )
    flag = ctypes.c_int8(0)
    threads_flags.append(flag)
    name = str(stop.properties["sym_name"]).strip('"')
    return Pieces(module, {**found, name: ctypes.addressof(flag)})


threads_flags: list[ctypes.c_int8] = []
"""The interrupt flags of the pools, which have to live as long as they do."""


def parts(threads: int, n: int, most: int) -> int:
    """How many ranges a job has, as the module's docstring says it."""
    several = 4 * threads
    wished = n if n < 4 * several else several
    ranges = wished if most >= several and threads > 1 else threads
    return min(ranges, most, n)


def test_a_job_has_as_many_ranges_as_documented() -> None:
    for case in itertools.product((1, 2, 3, 16), (1, 5, 8, 31, 1000), (1, 2, 7, 8, 64, 1000)):
        assert threads()("parts", *case, result=ctypes.c_int64) == parts(*case), case


def test_queues_divide_the_ranges_and_each_is_claimed_once() -> None:
    """Of the own queue first, then of those after it; in another epoch none is left."""
    queues, ranges, epoch = 3, 10, 7
    pieces = threads()
    pieces("fill", ranges, queues, ctypes.c_int32(epoch))

    def claim(queue: int, epoch: int) -> int:
        return pieces("claim", queue, queues, ctypes.c_int32(epoch), result=ctypes.c_int64)

    assert claim(1, epoch + 1) == -1
    assert [claim(1, epoch) for _ in range(11)] == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2, -1]


@pytest.mark.parametrize("step", [1, 3, 100])
def test_pieces_are_the_rounds_in_order(step: int) -> None:
    seen: list[tuple[int, int, int]] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3)

    def see(_: int, begin: int, end: int, range_: int) -> None:
        seen.append((begin, end, range_))

    kernel = kind(see)

    def pointer() -> ctypes.c_void_p:
        return ctypes.cast(kernel, ctypes.c_void_p)

    threads()("pieces", pointer(), ctypes.c_void_p(), 5, 12, 4, step)
    assert seen == [(at, min(at + step, 12), 4) for at in range(5, 12, step)]
    seen.clear()
    threads()("share", pointer(), ctypes.c_void_p(), 10, 3, 100)
    assert seen == [(0, 3, 0), (3, 6, 1), (6, 10, 2)]
    seen.clear()
    threads()(PARALLEL_FOR, pointer(), ctypes.c_void_p(), 10, 1)
    assert seen == [(0, 10, 0)]


def _functions(names: tuple[str, ...]) -> dict[str, int]:
    process = ctypes.CDLL(None)
    return {n: ctypes.cast(getattr(process, n), ctypes.c_void_p).value or 0 for n in names}


@cache
def memory() -> Pieces:
    of_c = (
        "aligned_alloc",
        "free",
        "madvise",
        "malloc_usable_size",
        "sigaction",
        "memset",
        "memcpy",
    )
    return Pieces(runs("x86_64"), _functions(of_c))


def test_classes_of_memory_are_powers_of_two() -> None:
    for size in (0, 1, 63, 64, 65, 128, 129, 1 << 20, (1 << 20) + 1):
        expected = max(6, math.ceil(math.log2(max(size, 1))))
        assert memory()("class_of", size, result=ctypes.c_int64) == expected


def test_arenas_come_back_and_are_aligned() -> None:
    take = memory()
    for class_, alignment in ((6, 64), (12, 1 << 12), (22, 1 << 21)):
        first = take("arena_take", class_, result=ctypes.c_void_p)
        second = take("arena_take", class_, result=ctypes.c_void_p)
        assert first != second
        assert first % alignment == second % alignment == 0
        take("arena_give", ctypes.c_void_p(first), class_)
        assert take("arena_take", class_, result=ctypes.c_void_p) == first
        for address in (first, second):
            take("arena_give", ctypes.c_void_p(address), class_)


def test_a_pool_keeps_so_many_arenas_and_frees_the_others() -> None:
    class_, take = 7, memory()
    kept = ctypes.c_int64.from_address(take.library.address("kept"))
    before = kept.value
    arenas = [take("arena_take", class_, result=ctypes.c_void_p) for _ in range(pool_ir.SLOTS + 3)]
    for address in arenas:
        take("arena_give", ctypes.c_void_p(address), class_)
    assert kept.value == before + (pool_ir.SLOTS << class_)


def test_memory_that_is_resized_keeps_its_content() -> None:
    none = ctypes.c_void_p()
    data = memory()("memory_zeroed", none, 10, 8, result=ctypes.c_void_p)
    assert ctypes.string_at(data, 80) == bytes(80)
    ctypes.memmove(data, b"content!", 8)
    new = memory()("memory_resized", none, ctypes.c_void_p(data), 1000, result=ctypes.c_void_p)
    assert ctypes.string_at(new, 16) == b"content!" + bytes(8)
    memory()("memory_free", none, ctypes.c_void_p(new), 1000)


@cache
def program() -> Pieces:
    """The wrapper of a program on this machine, whose variants add their number to the first result."""
    of_c = ("open", "close", "lseek", "mmap", "munmap", "memcmp")
    return Pieces(ahead(TRIPLES[0]), {**_functions(of_c), **_mains()})


_KEPT: list[object] = []
CALLS: list[tuple[int, list[int]]] = []


def _mains() -> dict[str, int]:
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
    addresses: dict[str, int] = {}
    for number in range(len(LEVELS)):

        def main(arguments: int, _: int, __: int, number: int = number) -> None:
            CALLS.append((number, list((ctypes.c_int64 * 4).from_address(arguments))))

        function = kind(main)
        _KEPT.append(function)
        addresses[f"main_{number}"] = ctypes.cast(function, ctypes.c_void_p).value or 0
    hook = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda pool: pool)
    _KEPT.append(hook)
    return {**addresses, "set_pool": ctypes.cast(hook, ctypes.c_void_p).value or 0}


def test_the_level_of_this_processor() -> None:
    level = program()("level", result=ctypes.c_int32)
    (native,) = aot_targets.variants(TRIPLES[0], ["native"])
    assert level == max(native.level, 1)
    number = program()("choose", result=ctypes.c_int32)
    assert LEVELS[number] == max(n for n in LEVELS if n <= level)
    assert program()("choose", result=ctypes.c_int32) == number


def test_every_status_has_its_text() -> None:
    given = wrapper(TRIPLES[0])
    for status, text in enumerate(given.messages):
        address = program()("program_error", ctypes.c_int32(status), result=ctypes.c_void_p)
        assert ctypes.string_at(address).decode() == text
    address = program()("program_error", ctypes.c_int32(-5), result=ctypes.c_void_p)
    assert ctypes.string_at(address) == b""


def test_a_run_says_what_is_missing() -> None:
    def run(arguments: tuple[int, ...], results: tuple[int, ...], arena: int) -> int:
        pointers = [(ctypes.c_int64 * len(x))(*x) for x in (arguments, results)]
        addresses = [ctypes.c_void_p(ctypes.addressof(p)) for p in pointers]
        arguments_ = (*addresses, ctypes.c_void_p(arena), ctypes.c_void_p())
        return program()("program_run", *arguments_, result=ctypes.c_int32)

    first = runtime_ir.FIRST_LEAF
    assert run((64, 64), (64,), 0) == run((64, 64), (64,), 65) == runtime_ir.NO_ARENA
    assert run((0, 64), (64,), 64) == first
    assert run((64, 0), (64,), 64) == first + 1
    assert run((64, 64), (0,), 64) == first + 2
    assert run((64, 64), (64,), 64) == runtime_ir.NO_WEIGHTS


def test_weights_are_mapped_once_and_stand_behind_the_arguments(tmp_path: Path) -> None:
    path = tmp_path / "program.weights"
    path.write_bytes(b"OTHER".ljust(1000, b"\0"))

    def load(path: str) -> int:
        name = ctypes.create_string_buffer(path.encode())
        address = ctypes.c_void_p(ctypes.addressof(name))
        return program()("program_load_weights", address, result=ctypes.c_int32)

    assert load(str(path)) == load(f"{path}.not") == runtime_ir.BAD_WEIGHTS
    path.write_bytes(b"HEADER".ljust(64, b"\0") + bytes(935))
    assert load(str(path)) == runtime_ir.BAD_WEIGHTS
    path.write_bytes(b"HEADER".ljust(64, b"\0") + bytes(936))
    assert load(str(path)) == load("anything") == runtime_ir.DONE
    weights = ctypes.c_int64.from_address(program().library.address("weights")).value
    assert ctypes.string_at(weights, 6) == b"HEADER"
    pointers = (ctypes.c_int64 * 2)(64, 128)
    address = ctypes.c_void_p(ctypes.addressof(pointers))
    none = ctypes.c_void_p()
    program()("variant_1", address, none, none)
    assert CALLS[-1] == (1, [64, 128, weights + 64, weights + 128])


def test_rounding_to_bf16_is_that_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    m = LlvmBuilder()
    bf16_ir.add_to_bf16(m)
    f = m.function("store", [POINTER, POINTER])
    source, target = f.arguments
    target.store(f.call("__truncsfbf2", source.load(f32)))
    f.ret()
    pieces = Pieces(m.module())
    bits = np.random.default_rng(0).integers(0, 1 << 32, 500, np.uint64).astype(np.uint32)
    special = (0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 0x00000001, 0x80000000)
    for number in (*special, *map(int, bits)):
        value = struct.unpack("<f", struct.pack("<I", number))[0]
        given, result = ctypes.c_uint32(number), ctypes.c_uint16()
        places = [ctypes.c_void_p(ctypes.addressof(x)) for x in (given, result)]
        pieces("store", *places)
        expected = np.float32(value).astype(ml_dtypes.bfloat16)
        if math.isnan(value):
            assert result.value & 0x7F80 == 0x7F80
            assert result.value & 0x7F
        else:
            assert result.value == expected.view(np.uint16), hex(number)


def test_processors_are_counted() -> None:
    names = ("getenv", "atoi", "sched_getaffinity", "pthread_create")
    more = ("pthread_join", "pthread_sigmask", "sched_yield", "syscall")
    module = ahead_pool(TRIPLES[0], parallel=True)
    for op in list(module.ops):
        if op.name == "llvm.mlir.global_dtors":
            op.detach()
        elif "thread_local_" in op.properties:
            del op.properties["thread_local_"]  # the loader of this process knows none
    # Nothing calls it here, and it is in no library.
    externals = {**_functions((*names, *more)), "pthread_atfork": 1}
    found = Pieces(module, externals)("processors", result=ctypes.c_int32)
    assert found == len(os.sched_getaffinity(0))
