"""From an HLO module to one relocatable object: variants lowered one by one, joined with what runs them."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from mlirhlo.aot import devices, elf, runtime_ir
from mlirhlo.aot.pool import add_pool
from mlirhlo.aot.runtime_ir import ALIGNMENT, HEADER_BYTES, Part, Wrapper
from mlirhlo.aot.signature import Signature, identifier, signature_of
from mlirhlo.aot.targets import HOST, Variant, variants
from mlirhlo.debug.options import process_flags, wanted_passes
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.lowering import routines
from mlirhlo.lowering import target as targets
from mlirhlo.lowering.cpu.emit import MAIN, emit_module
from mlirhlo.lowering.cpu.pipeline import optimize_in_place
from mlirhlo.lowering.cpu.planner import CpuPlan, plan_module
from mlirhlo.lowering.llvm_builder import LlvmBuilder
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.plan.in_memory import physical_bytes
from mlirhlo.lowering.plan.passes import check_sizes
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.runtime.generated.bf16_ir import add_to_bf16
from mlirhlo.runtime.jit import compile_object

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from mlirhlo.aot.config import Config

_WEIGHT_BYTES = 1024
"""Constants from this size on are weights, which may go to a file."""
_MAGIC = b"MLIRHLOW"

LAPACK_SYMBOL = "scipy_{}_64_"
"""How the LAPACK to link spells a routine: OpenBLAS with integers of 64 bits, as NumPy's wheels have it."""

_ENTRIES = ("run", "error", "variant", "set_threads", "load_weights")
_PTHREAD = ("pthread_create", "pthread_join", "pthread_atfork")
_OF_C = frozenset(
    (
        *("memcpy", "memset", "memmove", "memcmp", "open", "close", "lseek", "mmap", "munmap"),
        *("getenv", "atoi", "syscall", "sched_yield", "sched_getaffinity"),
        *("_GLOBAL_OFFSET_TABLE_", "__tls_get_addr", "pthread_sigmask"),
    )
)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A module compiled ahead of time."""

    name: str
    """What its symbols and files begin with."""
    triple: str
    variants: Sequence[str]
    signature: Signature
    arena_bytes: int
    object: bytes
    """Relocatable."""
    weights: bytes = b""
    """The file of weights; empty where they are in the object."""
    libraries: Sequence[str] = field(default_factory=tuple[str, ...])
    """What has to be linked beside the C library, as a linker's options."""

    replicas: int = 1
    partitions: int = 1
    """Devices of a program whose devices meet are replicas times partitions; 1 of others."""

    @property
    def is_elf(self) -> bool:
        return self.object[:4] == b"\x7fELF"


def compile_ahead(
    module: ModuleOp,
    name: str = "",
    *,
    triple: str = HOST,
    march: Sequence[str] = (),
    weights_in_file: bool = False,
    config: Config | None = None,
    lapack_symbol: str = LAPACK_SYMBOL,
) -> Ahead:
    """Compiles an HLO module to one object for a target.

    `name`: of the program, an identifier of C; the module's where it is empty. `march`: processors by name
    (`x86-64-v2`, `native`), each of which gets code of its own. `weights_in_file`: constants from 1 KiB on go
    to `Ahead.weights` instead of the object. `config`: names of arguments and results. `lapack_symbol`: how
    routines of LAPACK are spelled, with `{}` for the routine.

    Raises `HloError` HLO0840 for an instruction without code of its own, HLO0841 for an unknown target,
    HLO0842 for a config that does not fit.
    """
    name = _checked_name(name, module)
    chosen = variants(triple, march)
    program = devices.program_of(module)
    lowered = [_lower(program.module, v, weights_in_file) for v in chosen]
    tables = devices.tables_of(program, [one.plan for one in lowered])
    if tables is None:
        program = devices.Program(module)
    elif "-linux-" not in triple:
        raise error(
            "HLO0841",
            f"{triple}: a program whose devices meet runs on threads of Linux",
            help="choose a target with linux in its name, or compile the program of one device",
        )
    weights, offsets = _weights_file([one.weights for one in lowered])
    wrapper = Wrapper(
        name,
        triple,
        _signature(module, program, lowered[0].plan, config),
        max(one.plan.arena_size for one in lowered) if tables is None else tables.total_bytes,
        [Part(v.name, _entry(n), v.level, offsets[n]) for n, v in enumerate(chosen)],
        weights[:HEADER_BYTES],
        len(weights),
        tables,
    )
    text = _joined(wrapper, lowered, chosen, lapack_symbol)
    least = chosen[-1]
    code = compile_object(text, least.cpu)
    return Ahead(
        name,
        triple,
        [v.name for v in chosen],
        wrapper.signature,
        wrapper.arena_bytes,
        code,
        weights,
        _libraries(code, text, lapack_symbol),
        program.replicas,
        program.partitions,
    )


def _signature(
    module: ModuleOp, program: devices.Program, plan: CpuPlan, config: Config | None
) -> Signature:
    """The arrays of callers: whole ones, or those of every device."""
    if program.tiles is not None:
        return signature_of(HloModule(module), program.arguments, program.results, config)
    taken, results = ([b.shape for b in each] for each in (plan.parameters, plan.results))
    return signature_of(HloModule(module), taken, results, config, program.count)


def _checked_name(name: str, module: ModuleOp) -> str:
    if not name:
        return identifier(HloModule(module).name)
    if identifier(name) != name:
        raise error("HLO0842", f"name '{name}': not an identifier of C")
    return name


@dataclass(slots=True)
class _Lowered:
    plan: CpuPlan
    text: str
    weights: list[bytes]


def _lower(module: ModuleOp, variant: Variant, weights_in_file: bool) -> _Lowered:
    """The module as LLVM assembly for one processor."""
    with paused_gc(), targets.using(variant.target):
        fused = clone_module(module)
        check_sizes(fused, "the CPU")
        optimize_in_place(fused, (), wanted_passes(process_flags()))
        plan = plan_module(fused)
        _check_callbacks(plan)
        weights = _take_weights(plan) if weights_in_file else []
        loops = emit_module(plan)
        llvm = convert_to_llvm(loops, features=variant.attributes, entry=MAIN)
        text = print_llvm(llvm)
    _check_routines(plan, text)
    return _Lowered(plan, text, weights)


def _check_callbacks(plan: CpuPlan) -> None:
    for site in plan.sites:
        if site.op is not None and not site.is_native:
            op = site.op
            message = f"%{op.instruction_name or op.opcode.name} = {op.opcode.name}"
            target = op.properties.get("custom_call_target")
            if target is not None:
                message += f"({str(target).strip(chr(34))})"
            raise error(
                "HLO0840",
                f"{message} runs in Python, which code compiled ahead of time does without",
                help="compile the part without it (hlo-cut takes one out), or replace the instruction",
            )


def _check_routines(plan: CpuPlan, text: str) -> None:
    """Raises `HloError` HLO0840 for routines that only NumPy has."""
    if f"@{routines.FFT}" not in text:
        return
    for function in re.split(r"\ndefine ", text):
        if f"@{routines.FFT}" in function and " @" in function.partition("(")[0]:
            kernel = function.partition("@")[2].partition("(")[0]
            op = next((o for k, o in plan.instructions.items() if kernel.startswith(k)), None)
            if op is not None:
                raise error(
                    "HLO0840",
                    f"%{op.instruction_name or 'fft'} = fft of this length is NumPy's own, which code "
                    "compiled ahead of time does without",
                    help="lengths up to 65536, and longer ones along the last dimension whose prime factors "
                    "are at most 17, are machine code",
                )


def _take_weights(plan: CpuPlan) -> list[bytes]:
    """Makes large constants parameters behind the module's own, and the context of a device that meets others."""
    first = len(plan.parameters) + bool(plan.sites)
    taken: list[bytes] = []
    kept = [b for b in plan.constants if b.size < _WEIGHT_BYTES]
    for buffer in plan.constants:
        if buffer.size >= _WEIGHT_BYTES:
            data = physical_bytes(buffer)
            number = first + len(taken)
            for other in (buffer, *(b for b in plan.buffers if b.home is buffer)):
                other.parameter, other.literal = number, None
            plan.buffers.append(buffer)
            taken.append(data)
    plan.constants[:] = kept
    return taken


def _weights_file(weights: Sequence[Sequence[bytes]]) -> tuple[bytes, list[list[int]]]:
    """A file with each array once, and where the arrays of each variant are in it."""
    offsets: dict[bytes, int] = {}
    body = bytearray()
    places: list[list[int]] = []
    for arrays in weights:
        places.append([])
        for data in arrays:
            digest = hashlib.sha256(data).digest()
            if digest not in offsets:
                body += bytes(-len(body) % ALIGNMENT)
                offsets[digest] = HEADER_BYTES + len(body)
                body += data
            places[-1].append(offsets[digest])
    if not body:
        return b"", places
    head = _MAGIC + hashlib.sha256(body).digest()
    return head.ljust(HEADER_BYTES, b"\0") + bytes(body), places


def _entry(number: int) -> str:
    return f"{MAIN}_{number}"


_CONSTANT = re.compile(r"^@(constant_\d+) = (.*)$", re.MULTILINE)


def _joined(
    wrapper: Wrapper, lowered: Sequence[_Lowered], chosen: Sequence[Variant], lapack: str
) -> str:
    """All of a program as one text, in which only what the header declares is seen from outside."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    parallel = any("@mlirhlo_parallel_for(" in one.text for one in lowered)
    pool = LlvmBuilder(attributes := _attributes(chosen[-1]))
    add_pool(pool, wrapper, parallel=parallel)
    text = print_llvm(pool.module())
    mark = hashlib.sha256(f"{text} {wrapper.triple}".encode()).hexdigest()[:8]
    shared = _parsed(llvm, text, wrapper.triple)
    around = LlvmBuilder(attributes)
    runtime_ir.add_wrapper(around, wrapper)
    if any("bfloat" in one.text for one in lowered):
        add_to_bf16(around)
    base = _parsed(llvm, print_llvm(around.module()), wrapper.triple)
    names = [v.name for v in (*shared.functions, *shared.global_variables) if not v.is_declaration]
    base.link_in(shared)
    for number, one in enumerate(lowered):
        text = _renamed(one.text, number, lapack)
        part = llvm.parse_assembly(text)
        part.triple = wrapper.triple
        for value in (*part.functions, *part.global_variables):
            # Others have functions of these names too; internal ones get new names.
            if not value.is_declaration and value.name != _entry(number):
                value.linkage = "linkonce_odr" if value.name.startswith("weights_") else "internal"
        base.link_in(part)
    outside = {f"{wrapper.name}_{entry}" for entry in _ENTRIES}
    for value in (*base.functions, *base.global_variables):
        if value.is_declaration or value.name.startswith("llvm."):
            continue
        if value.name in names:
            if value.name != "set_threads":
                value.name = f"mlirhlo_aot_{mark}_{value.name}"
            value.linkage, value.visibility = "linkonce_odr", "hidden"
        elif value.name not in outside:
            value.linkage = "internal"
    text = str(base).replace("@set_threads(", f"@{wrapper.name}_set_threads(")
    return text.replace(
        f"define linkonce_odr hidden void @{wrapper.name}_set_threads(",
        f"define void @{wrapper.name}_set_threads(",
    )


def _attributes(variant: Variant) -> Sequence[Attribute]:
    """LLVM's attributes of our own functions, for the least of the processors."""
    # Where there are several, the processor is not known yet.
    attributes = {"target-cpu": "x86-64"} if variant.level else variant.attributes
    return [ArrayAttr([StringAttr(k), StringAttr(v)]) for k, v in attributes.items()]


def _parsed(llvm: Any, text: str, triple: str) -> Any:
    module = llvm.parse_assembly(text)
    module.triple = triple
    return module


def _renamed(text: str, number: int, lapack: str) -> str:
    """A variant's assembly, in which constants are named by their content, its entry by its number."""
    names: dict[str, str] = {}
    for name, rest in _CONSTANT.findall(text):
        names[name] = f"weights_{hashlib.sha256(rest.encode()).hexdigest()[:24]}"
    text = re.sub(r"@(constant_\d+)\b", lambda m: f"@{names.get(m[1], m[1])}", text)
    text = _once(text)
    text = re.sub(rf"@{MAIN}\b(?=\()", f"@{_entry(number)}", text)
    return re.sub(rf"@{routines.LAPACK}(\w+)", lambda m: f"@{lapack.format(m[1])}", text)


def _once(text: str) -> str:
    """Two constants of one content are one line."""
    seen: set[str] = set()
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("@weights_"):
            if line in seen:
                continue
            seen.add(line)
        lines.append(line)
    return "\n".join([*lines, ""])


def _libraries(code: bytes, text: str, lapack: str) -> list[str]:
    """What a linker has to be told beside the C library."""
    if code[:4] != b"\x7fELF":
        return []
    needed = set(elf.symbols(code)[1])
    found = ["-pthread"] if needed & set(_PTHREAD) else []
    start, _, end = lapack.partition("{}")
    of_lapack = {n for n in needed if n.startswith(start) and n.endswith(end) and start + end}
    if of_lapack and f"@{start}" in text:
        found.append("-lscipy_openblas64_" if lapack == LAPACK_SYMBOL else "-llapack")
    else:
        of_lapack = set[str]()
    if needed - of_lapack - _OF_C - set(_PTHREAD):
        found.append("-lm")
    return found
