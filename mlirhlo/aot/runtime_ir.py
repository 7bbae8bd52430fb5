"""The code around a module compiled ahead of time: `NAME_run` and what it needs.

`NAME_run(arguments, results, arena, pool)` checks its arguments, chooses the variant that the processor
can run, and calls it under the modes of floating point that generated code counts on. It returns a status,
whose text is `NAME_error(status)`: data of the object. Parallel loops of generated code run on the threads of
`pool`, or where that is null on those of a pool of the process, which is code in the object (`pool.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from xdsl.dialects.builtin import i8, i32, i64
from xdsl.dialects.llvm import LLVMStructType

from mlirhlo.aot.devices import Tables
from mlirhlo.aot.devices_ir import DONE, MISFIT, NO_THREAD, add_devices
from mlirhlo.aot.signature import Signature
from mlirhlo.lowering.llvm_builder import POINTER, LlvmBuilder, LlvmFunction, Value, array_of
from mlirhlo.runtime.generated.run_ir import add_run_main
from mlirhlo.runtime.threads import FUTEX

NO_ARENA, NO_PROCESSOR, NO_WEIGHTS, BAD_WEIGHTS = range(1, NO_THREAD)
FIRST_LEAF = MISFIT + 1
"""Status of a run, beside `DONE` and those of several devices; from `FIRST_LEAF` on: an argument or result, by number,
that is null."""

ALIGNMENT = 64
"""Bytes; of arenas and weights."""
HEADER_BYTES = 64
"""Of a file of weights: what it has to begin with."""


@dataclass(frozen=True, slots=True)
class Part:
    """A variant: its entry, the level of processor it needs, and where its weights lie in the file."""

    name: str
    entry: str
    level: int
    weights: Sequence[int]


@dataclass(frozen=True, slots=True)
class Wrapper:
    """What the code around a module depends on."""

    name: str
    triple: str
    signature: Signature
    arena_bytes: int
    parts: Sequence[Part]
    weights_header: bytes
    """Of the file of weights; empty where there is none."""
    weights_bytes: int
    devices: Tables | None = None
    """Of programs whose devices meet, or take tiles."""

    @property
    def machine(self) -> str:
        """The processor as `platform` calls it."""
        first = self.triple.partition("-")[0]
        return {"arm64": "aarch64"}.get(first, first)

    @property
    def is_linux(self) -> bool:
        return "-linux-" in self.triple

    @property
    def messages(self) -> list[str]:
        """Texts of all statuses."""
        needs = self.parts[-1].level
        return [
            "",
            f"{self.name}: the arena is null or not at a multiple of {ALIGNMENT} bytes",
            f"{self.name}: the code needs a processor of level x86-64-v{needs}",
            f"{self.name}: the weights are not loaded; call {self.name}_load_weights first",
            f"{self.name}: the file of weights cannot be read, or is of another program",
            f"{self.name}: the system has no thread for one of the devices",
            f"{self.name}: a slice of a ragged-all-to-all is out of bounds",
            *(f"{self.name}: argument '{leaf.name}' is null" for leaf in self.signature.arguments),
            *(f"{self.name}: result '{leaf.name}' is null" for leaf in self.signature.results),
        ]


def add_wrapper(m: LlvmBuilder, wrapper: Wrapper) -> None:
    """Adds the functions of one module that its header declares."""
    for part in wrapper.parts:
        m.external(part.entry, [POINTER] * 3)
    m.external("set_pool", [POINTER], POINTER)
    add_run_main(m, wrapper.machine)
    _add_error(m, wrapper)
    _add_missing(m)
    _add_choose(m, wrapper)
    _add_variant(m, wrapper)
    if wrapper.weights_header:
        _add_load_weights(m, wrapper)
    for number, part in enumerate(wrapper.parts):
        _add_variant_run(m, wrapper, number, part)
    _add_run_variant(m, wrapper)
    if wrapper.devices is not None:
        number, pause = FUTEX.get(wrapper.machine, (0, ""))
        add_devices(m, wrapper.devices, number, pause)
    _add_run(m, wrapper)


def _add_texts(m: LlvmBuilder, name: str, texts: Sequence[str]) -> None:
    """Adds constants `name`, texts side by side, and `name_at`, where each begins."""
    encoded = [text.encode() + b"\0" for text in texts]
    data = b"".join(encoded)
    starts = list(accumulate(map(len, encoded[:-1]), initial=0))
    m.variable(name, array_of(len(data), i8), data, alignment=1, is_constant=True)
    m.variable(f"{name}_at", array_of(len(starts), i32), starts, alignment=4, is_constant=True)


def _text(f: LlvmFunction, name: str, number: Value) -> Value:
    """The text of a number, which is known to be one."""
    return f.address(name).at(i8, f.address(f"{name}_at").item(i32, number.to(i64)).to(i64))


def _add_error(m: LlvmBuilder, w: Wrapper) -> None:
    """`NAME_error(status)`: the text of a status; an unknown one has none."""
    texts = w.messages
    _add_texts(m, "messages", texts)
    f = m.function(f"{w.name}_error", [i32], POINTER, is_public=True)
    (status,) = f.arguments
    f.ret(_text(f, "messages", status.cmp("ult", len(texts)).select(status, 0)))


def _add_missing(m: LlvmBuilder) -> None:
    """`missing(pointers, count)`: the index of the first null pointer, or their count."""
    f = m.function("missing", [POINTER, i64], i64)
    pointers, count = f.arguments
    with f.count(count) as index, f.if_(pointers.item(POINTER, index).cmp("eq", 0)):
        f.ret(index)
    f.ret(count)


def _add_choose(m: LlvmBuilder, w: Wrapper) -> None:
    """`choose()`: number of the variant to run, one more than the last where there is none."""
    if not any(part.level for part in w.parts):
        m.function("choose", [], i32).ret(0)
        return
    _add_level(m)
    m.variable("chosen", i32, alignment=4)
    f = m.function("choose", [], i32)
    chosen, known = f.address("chosen"), f.label(i32)
    before = chosen.load(i32, "monotonic")
    f.jump_if(before.cmp("ne", 0), known, before)
    level = f.call("level")
    number = f.value(len(w.parts), i32)
    for candidate in reversed(range(len(w.parts))):
        # The most capable variants are the first.
        can_run = level.cmp("sge", w.parts[candidate].level)
        number = can_run.select(f.value(candidate, i32), number)
    chosen.store(number + 1, "monotonic")
    (word,) = f.place(known, number + 1)
    f.ret(word - 1)


def _add_variant(m: LlvmBuilder, w: Wrapper) -> None:
    """`NAME_variant()`: the name of the variant that runs here, or null."""
    _add_texts(m, "variants", [part.name for part in w.parts])
    f = m.function(f"{w.name}_variant", [], POINTER, is_public=True)
    number = f.call("choose")
    with f.if_(number.cmp("ult", len(w.parts))):
        f.ret(_text(f, "variants", number))
    f.ret(0)


def _mask(*bits: int) -> int:
    return sum(1 << bit for bit in bits)


_OF_V2 = _mask(0, 9, 13, 19, 20, 23)
_OF_V3 = _mask(12, 22, 27, 28, 29)
_WIDE_V3, _LZCNT, _SAVED_V3 = _mask(3, 5, 8), _mask(5), 0x06
_WIDE_V4, _SAVED_V4 = _mask(16, 17, 28, 30, 31), 0xE6
_CPUID = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
_XGETBV = "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"
_EXTENDED = 0x8000_0001 - (1 << 32)
"""The leaf of `cpuid` that has LZCNT."""


def _cpuid(f: LlvmFunction, leaf: int) -> Value:
    result = LLVMStructType.from_type_list([i32] * 4)
    return f.assembly("cpuid", _CPUID, result, f.value(leaf, i32), f.value(0, i32))


def _has(value: Value, mask: int) -> Value:
    """Whether all these bits are set."""
    number = mask - (1 << 32) if mask >> 31 else mask
    return (value & number).cmp("eq", number)


def _add_level(m: LlvmBuilder) -> None:
    """`level()`: the level of x86-64 that processor and system have, 1 to 4."""
    f = m.function("level", [], i32)
    has_wide_leaf = _cpuid(f, 0).part(0).cmp("uge", 7)
    features = _cpuid(f, 1).part(2)
    has_v2 = _has(features, _OF_V2)
    with f.unless(has_v2 & _has(features, _OF_V3) & has_wide_leaf):
        f.ret(has_v2.select(f.value(2, i32), 1))
    wide, extended = _cpuid(f, 7).part(1), _cpuid(f, _EXTENDED).part(2)
    pair = LLVMStructType.from_type_list([i32, i32])
    saved = f.assembly("xgetbv", _XGETBV, pair, f.value(0, i32)).part(0)
    has_v3 = _has(wide, _WIDE_V3) & _has(extended, _LZCNT) & _has(saved, _SAVED_V3)
    has_v4 = _has(wide, _WIDE_V4) & _has(saved, _SAVED_V4)
    f.ret(has_v3.select(has_v4.select(f.value(4, i32), 3), 2))


_READ_CLOSING, _READABLE, _PRIVATE, _END = 0o2000000, 1, 2, 2
"""open: O_RDONLY | O_CLOEXEC; mmap: PROT_READ, MAP_PRIVATE; lseek: SEEK_END."""


def _add_load_weights(m: LlvmBuilder, w: Wrapper) -> None:
    """`NAME_load_weights(path)`: maps the file once; 0, or the status that says what is wrong."""
    m.variable("weights", POINTER)
    header = array_of(HEADER_BYTES, i8)
    m.variable("header", header, w.weights_header, alignment=16, is_constant=True)
    m.external("open", [POINTER, i32], i32, is_variadic=True)
    m.external("close", [i32], i32)
    m.external("lseek", [i32, i64, i32], i64)
    m.external("mmap", [POINTER, i64, i32, i32, i32, i64], POINTER)
    m.external("munmap", [POINTER, i64], i32)
    m.external("memcmp", [POINTER, POINTER, i64], i32)
    f = m.function(f"{w.name}_load_weights", [POINTER], i32, is_public=True)
    weights, size, good, bad = f.address("weights"), w.weights_bytes, f.label(), f.label()
    f.jump_if(weights.load(POINTER, "acquire").cmp("ne", 0), good)
    file = f.call("open", f.arguments[0], _READ_CLOSING)
    f.jump_if(file.cmp("slt", 0), bad)
    with f.if_(f.call("lseek", file, 0, _END).cmp("ne", size)):
        f.call("close", file)
        f.jump(bad)
    memory = f.call("mmap", f.null, size, _READABLE, _PRIVATE, file, 0)
    f.call("close", file)
    f.jump_if(memory.to(i64).cmp("eq", -1), bad)
    with f.if_(f.call("memcmp", memory, f.address("header"), HEADER_BYTES).cmp("ne", 0)):
        f.call("munmap", memory, size)
        f.jump(bad)
    # Another thread may have been first.
    f.jump_if(weights.replace(f.null, memory, "acq_rel", "acquire"), good)
    f.call("munmap", memory, size)
    f.place(good)
    f.ret(DONE)
    f.place(bad)
    f.ret(BAD_WEIGHTS)


def _add_variant_run(m: LlvmBuilder, w: Wrapper, number: int, part: Part) -> None:
    """`variant_N(arguments, results, arena)`: runs a variant, with its weights behind the arguments.

    Where devices meet, the device's context stands between.
    """
    f = m.function(f"variant_{number}", [POINTER] * 3)
    arguments, results, arena = f.arguments
    if w.weights_header:
        devices = w.devices
        count = len(w.signature.arguments) if devices is None else devices.parameters + 1
        inputs = f.stack(POINTER, count + len(part.weights))
        for index in range(count):
            inputs.at(POINTER, index).store(arguments.item(POINTER, index))
        weights = f.address("weights").load(POINTER, "monotonic")
        for index, offset in enumerate(part.weights):
            inputs.at(POINTER, count + index).store(weights.at(i8, offset))
        arguments = inputs
    f.call("run_main", f.address(part.entry), arguments, results, arena)
    f.ret()


def _add_run_variant(m: LlvmBuilder, w: Wrapper) -> None:
    """`run_variant(number, arguments, results, arena)`: runs a variant by number."""
    f = m.function("run_variant", [i64, POINTER, POINTER, POINTER])
    number, *rest = f.arguments
    for candidate in range(len(w.parts)):
        with f.if_(number.cmp("eq", candidate)):
            f.call(f"variant_{candidate}", *rest)
            f.ret()
    f.ret()


def _add_run(m: LlvmBuilder, w: Wrapper) -> None:
    """`NAME_run(arguments, results, arena, pool)`."""
    f = m.function(f"{w.name}_run", [POINTER] * 4, i32, is_public=True)
    arguments, results, arena, pool = f.arguments
    if w.arena_bytes:
        address = arena.to(i64)
        is_uneven = (address & (ALIGNMENT - 1)).cmp("ne", 0)
        with f.if_(is_uneven | address.cmp("eq", 0)):
            f.ret(NO_ARENA)
    first = FIRST_LEAF
    for pointers, leaves in ((arguments, w.signature.arguments), (results, w.signature.results)):
        missing = f.call("missing", pointers, len(leaves))
        with f.if_(missing.cmp("ne", len(leaves))):
            f.ret((missing + first).to(i32))
        first += len(leaves)
    if w.weights_header:
        with f.if_(f.address("weights").load(POINTER, "acquire").cmp("eq", 0)):
            f.ret(NO_WEIGHTS)
    number = f.call("choose")
    with f.if_(number.cmp("uge", len(w.parts))):
        f.ret(NO_PROCESSOR)
    variant = number.to(i64)
    if w.devices is not None:
        f.ret(f.call("run_devices", arguments, results, arena, pool, variant))
        return
    before = f.call("set_pool", pool)
    f.call("run_variant", variant, arguments, results, arena)
    f.call("set_pool", before)
    f.ret(DONE)
