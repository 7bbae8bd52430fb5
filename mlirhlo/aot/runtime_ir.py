"""LLVM assembly that stands around a module compiled ahead of time: `NAME_run` and what it needs.

`NAME_run(arguments, results, arena, pool)` checks what it is given, chooses the variant that the processor
can run, and calls it under the modes of floating point that generated code counts on. It returns a status,
whose text is `NAME_error(status)`: data of the object. Parallel loops of generated code run on the threads of
`pool`, or where that is null on those of a pool of the process, which is code in the object (`pool.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirhlo.aot.signature import Signature
from mlirhlo.runtime.run_ir import run_main

DONE, NO_ARENA, NO_PROCESSOR, NO_WEIGHTS, BAD_WEIGHTS, FIRST_LEAF = range(6)
"""Status of a run; from `FIRST_LEAF` on: an argument or result, by number, that is null."""

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
            *(f"{self.name}: argument '{leaf.name}' is null" for leaf in self.signature.arguments),
            *(f"{self.name}: result '{leaf.name}' is null" for leaf in self.signature.results),
        ]


def assembly(wrapper: Wrapper) -> str:
    """The functions of one module that its header declares."""
    parts = [_MISSING, _constants(wrapper), run_main(wrapper.machine), _choose(wrapper)]
    if wrapper.weights_header:
        parts.append(_load_weights(wrapper))
    parts.append(_run(wrapper))
    return "\n".join(parts)


TO_BF16 = """
; What LLVM calls to round to bf16, and libraries of compilers before GCC 13 lack.
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %quiet = or i32 %bits, 4194304
  %nan = fcmp uno float %x, %x
  %chosen = select i1 %nan, i32 %quiet, i32 %sum
  %shifted = lshr i32 %chosen, 16
  %short = trunc i32 %shifted to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}
"""


def _bytes(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def _constants(w: Wrapper) -> str:
    lines: list[str] = []
    texts = [m.encode() + b"\0" for m in w.messages]
    for number, text in enumerate(texts):
        lines.append(
            f'@message_{number} = internal constant [{len(text)} x i8] c"{_bytes(text)}", align 1'
        )
    names = ", ".join(f"ptr @message_{number}" for number in range(len(texts)))
    lines.append(f"@messages = internal constant [{len(texts)} x ptr] [{names}], align 8")
    for number, part in enumerate(w.parts):
        text = part.name.encode() + b"\0"
        lines.append(
            f'@variant_{number} = internal constant [{len(text)} x i8] c"{_bytes(text)}", align 1'
        )
        lines.append(f"declare void @{part.entry}(ptr, ptr, ptr)")
    return "\n".join(
        [
            *lines,
            f"""
define ptr @{w.name}_error(i32 %status) {{
entry:
  %known = icmp ult i32 %status, {len(texts)}
  %number = select i1 %known, i32 %status, i32 0
  %wide = zext i32 %number to i64
  %at = getelementptr ptr, ptr @messages, i64 %wide
  %text = load ptr, ptr %at
  ret ptr %text
}}
""",
        ]
    )


_MISSING = """
; The number of the first null pointer, or of all pointers.
define internal i64 @missing(ptr %pointers, i64 %count) {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %read, label %out
read:
  %at = getelementptr ptr, ptr %pointers, i64 %i
  %pointer = load ptr, ptr %at
  %null = icmp eq ptr %pointer, null
  br i1 %null, label %out, label %next
next:
  %i1 = add i64 %i, 1
  br label %look
out:
  ret i64 %i
}
"""


def _choose(w: Wrapper) -> str:
    """`@choose`: number of the variant to run, one more than the last where there is none."""
    last = len(w.parts)
    if not any(part.level for part in w.parts):
        return f"{_NO_LEVEL}{_variant(w)}"
    lines = [f"  %v0 = add i32 {last}, 0"]
    for step, number in enumerate(reversed(range(last))):
        # The most capable variants are the first.
        lines.append(f"  %can{step} = icmp sge i32 %level, {w.parts[number].level}")
        lines.append(f"  %v{step + 1} = select i1 %can{step}, i32 {number}, i32 %v{step}")
    body = "\n".join(lines)
    return f"""{_LEVEL}
@chosen = internal global i32 0, align 4
define internal i32 @choose() {{
entry:
  %known = load atomic i32, ptr @chosen monotonic, align 4
  %is_known = icmp ne i32 %known, 0
  br i1 %is_known, label %out, label %find
find:
  %level = call i32 @level()
{body}
  %word = add i32 %v{last}, 1
  store atomic i32 %word, ptr @chosen monotonic, align 4
  br label %out
out:
  %result = phi i32 [ %known, %entry ], [ %word, %find ]
  %number = sub i32 %result, 1
  ret i32 %number
}}
{_variant(w)}"""


_NO_LEVEL = """
define internal i32 @choose() {
  ret i32 0
}
"""


def _variant(w: Wrapper) -> str:
    cases = " ".join(f"i32 {n}, label %case{n}" for n in range(len(w.parts)))
    blocks = "\n".join(f"case{n}:\n  ret ptr @variant_{n}" for n in range(len(w.parts)))
    return f"""
define ptr @{w.name}_variant() {{
entry:
  %number = call i32 @choose()
  switch i32 %number, label %none [ {cases} ]
{blocks}
none:
  ret ptr null
}}
"""


_CPUID = (
    "call {{ i32, i32, i32, i32 }} asm sideeffect "
    '"cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},~{{dirflag}},~{{fpsr}},~{{flags}}"(i32 {leaf}, i32 0)'
)


def _mask(*bits: int) -> int:
    return sum(1 << bit for bit in bits)


_OF_V2 = _mask(0, 9, 13, 19, 20, 23)
_OF_V3 = _mask(12, 22, 27, 28, 29)
_WIDE_V3, _LZCNT, _SAVED_V3 = _mask(3, 5, 8), _mask(5), 0x06
_WIDE_V4, _SAVED_V4 = _mask(16, 17, 28, 30, 31), 0xE6


def _has(name: str, value: str, mask: int, before: str) -> str:
    return f"""  %{name}_bits = and i32 {value}, {mask}
  %{name}_all = icmp eq i32 %{name}_bits, {mask}
  %{name} = and i1 %{name}_all, {before}"""


_XGETBV = 'asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)'

_LEVEL = f"""
; The level of x86-64 that processor and system have: 1 to 4.
define internal i32 @level() {{
entry:
  %r0 = {_CPUID.format(leaf=0)}
  %most = extractvalue {{ i32, i32, i32, i32 }} %r0, 0
  %has7 = icmp uge i32 %most, 7
  %r1 = {_CPUID.format(leaf=1)}
  %c1 = extractvalue {{ i32, i32, i32, i32 }} %r1, 2
{_has("v2", "%c1", _OF_V2, "true")}
{_has("may", "%c1", _OF_V3, "%v2")}
  %goes = and i1 %may, %has7
  br i1 %goes, label %wide, label %narrow
narrow:
  %low = select i1 %v2, i32 2, i32 1
  ret i32 %low
wide:
  %r7 = {_CPUID.format(leaf=7)}
  %b7 = extractvalue {{ i32, i32, i32, i32 }} %r7, 1
  %rx = {_CPUID.format(leaf=-2147483647)}
  %cx = extractvalue {{ i32, i32, i32, i32 }} %rx, 2
  %saved = call {{ i32, i32 }} {_XGETBV}
  %s = extractvalue {{ i32, i32 }} %saved, 0
{_has("a", "%b7", _WIDE_V3, "true")}
{_has("b", "%cx", _LZCNT, "%a")}
{_has("v3", "%s", _SAVED_V3, "%b")}
{_has("d", "%b7", _WIDE_V4, "%v3")}
{_has("v4", "%s", _SAVED_V4, "%d")}
  %high = select i1 %v4, i32 4, i32 3
  %found = select i1 %v3, i32 %high, i32 2
  ret i32 %found
}}
"""


def _load_weights(w: Wrapper) -> str:
    """`NAME_load_weights(path)`: maps the file once; 0, or the status that says what is wrong."""
    size = w.weights_bytes
    return f"""
@weights = internal global ptr null, align 8
@header = internal constant [{HEADER_BYTES} x i8] c"{_bytes(w.weights_header)}", align 16
declare i32 @open(ptr, i32, ...)
declare i32 @close(i32)
declare i64 @lseek(i32, i64, i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)

define i32 @{w.name}_load_weights(ptr %path) {{
entry:
  %old = load atomic ptr, ptr @weights acquire, align 8
  %has = icmp ne ptr %old, null
  br i1 %has, label %fine, label %open
open:
  %file = call i32 (ptr, i32, ...) @open(ptr %path, i32 524288)
  %opened = icmp sge i32 %file, 0
  br i1 %opened, label %measure, label %bad
measure:
  %size = call i64 @lseek(i32 %file, i64 0, i32 2)
  %fits = icmp eq i64 %size, {size}
  br i1 %fits, label %map, label %other
other:
  %c0 = call i32 @close(i32 %file)
  br label %bad
map:
  %memory = call ptr @mmap(ptr null, i64 {size}, i32 1, i32 2, i32 %file, i64 0)
  %c1 = call i32 @close(i32 %file)
  %number = ptrtoint ptr %memory to i64
  %mapped = icmp ne i64 %number, -1
  br i1 %mapped, label %compare, label %bad
compare:
  %differs = call i32 @memcmp(ptr %memory, ptr @header, i64 {HEADER_BYTES})
  %same = icmp eq i32 %differs, 0
  br i1 %same, label %keep, label %drop
drop:
  %u0 = call i32 @munmap(ptr %memory, i64 {size})
  br label %bad
keep:
  %swap = cmpxchg ptr @weights, ptr null, ptr %memory acq_rel acquire
  %first = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %first, label %fine, label %again
again:
  %u1 = call i32 @munmap(ptr %memory, i64 {size})
  br label %fine
fine:
  ret i32 {DONE}
bad:
  ret i32 {BAD_WEIGHTS}
}}
"""


def _run(w: Wrapper) -> str:
    arguments, results = len(w.signature.arguments), len(w.signature.results)
    arena = "  br label %check_arguments"
    if w.arena_bytes:
        arena = f"""  %where = ptrtoint ptr %arena to i64
  %odd = and i64 %where, {ALIGNMENT - 1}
  %uneven = icmp ne i64 %odd, 0
  %null = icmp eq ptr %arena, null
  %bad = or i1 %uneven, %null
  br i1 %bad, label %no_arena, label %check_arguments
no_arena:
  ret i32 {NO_ARENA}"""
    cases = " ".join(f"i32 {n}, label %case{n}" for n in range(len(w.parts)))
    blocks = "\n".join(_case(w, n) for n in range(len(w.parts)))
    weights = "  br label %choose"
    if w.weights_header:
        weights = f"""  %weights = load atomic ptr, ptr @weights acquire, align 8
  %unloaded = icmp eq ptr %weights, null
  br i1 %unloaded, label %no_weights, label %choose
no_weights:
  ret i32 {NO_WEIGHTS}"""
    return f"""
declare ptr @set_pool(ptr)

define i32 @{w.name}_run(ptr %arguments, ptr %results, ptr %arena, ptr %pool) {{
entry:
{arena}
check_arguments:
  %a = call i64 @missing(ptr %arguments, i64 {arguments})
  %a_all = icmp eq i64 %a, {arguments}
  br i1 %a_all, label %check_results, label %no_argument
no_argument:
  %a_number = add i64 %a, {FIRST_LEAF}
  %a_status = trunc i64 %a_number to i32
  ret i32 %a_status
check_results:
  %r = call i64 @missing(ptr %results, i64 {results})
  %r_all = icmp eq i64 %r, {results}
  br i1 %r_all, label %ready, label %no_result
no_result:
  %r_number = add i64 %r, {FIRST_LEAF + arguments}
  %r_status = trunc i64 %r_number to i32
  ret i32 %r_status
ready:
{weights}
choose:
  %number = call i32 @choose()
  %known = icmp ult i32 %number, {len(w.parts)}
  br i1 %known, label %start, label %no_processor
no_processor:
  ret i32 {NO_PROCESSOR}
start:
  %before = call ptr @set_pool(ptr %pool)
  switch i32 %number, label %done [ {cases} ]
{blocks}
done:
  %after = call ptr @set_pool(ptr %before)
  ret i32 {DONE}
}}
"""


def _case(w: Wrapper, number: int) -> str:
    part, count = w.parts[number], len(w.signature.arguments)
    run = "call void @run_main(ptr @{}, ptr {}, ptr %results, ptr %arena)"
    if not w.weights_header:
        return f"case{number}:\n  {run.format(part.entry, '%arguments')}\n  br label %done"
    lines = [
        f"case{number}:",
        f"  %all{number} = alloca [{count + len(part.weights)} x ptr], align 8",
    ]
    for at in range(count):
        p = f"{number}_{at}"
        lines += [
            f"  %f{p} = getelementptr ptr, ptr %arguments, i64 {at}",
            f"  %p{p} = load ptr, ptr %f{p}",
            f"  %t{p} = getelementptr ptr, ptr %all{number}, i64 {at}",
            f"  store ptr %p{p}, ptr %t{p}",
        ]
    for at, offset in enumerate(part.weights):
        p = f"{number}_{at}"
        lines += [
            f"  %w{p} = getelementptr i8, ptr %weights, i64 {offset}",
            f"  %s{p} = getelementptr ptr, ptr %all{number}, i64 {count + at}",
            f"  store ptr %w{p}, ptr %s{p}",
        ]
    return "\n".join([*lines, f"  {run.format(part.entry, f'%all{number}')}", "  br label %done"])
