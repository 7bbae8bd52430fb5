"""Machine code of LLVM assembly, and getting it into this process, by llvmlite.

LLVM's middle end is left out: what the lowering writes is already in vectors. The code is made for
the CPU it runs on. llvmlite holds one lock around every call of LLVM's, so compiling in two threads
takes turns; objects may be made in other processes and loaded here.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import os
import platform
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE
from mlirhlo.lowering import target as targets
from mlirhlo.lowering.runtime_symbols import TO_BF16
from mlirhlo.runtime.object_code.combining import gains_by_combining
from mlirhlo.runtime.object_code.images import Image, Loaded, link

with LATE:
    from mlirhlo.runtime.generated import bf16_ir

if TYPE_CHECKING:
    from threading import RLock

T = TypeVar("T")

LIGHT = "; not to be optimised\n"
"""The first line of assembly that is worth no effort at all."""

Code: TypeAlias = "Image | Sequence[bytes]"
"""Ready to be loaded: an image, or relocatable objects where there are no images."""


def lock_for_forks() -> RLock:
    """A lock that nobody holds in a child: whoever forks waits for it."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        free = lock.release
        os.register_at_fork(before=lock.acquire, after_in_parent=free, after_in_child=free)
    return lock


_numbers = itertools.count()
_lock = lock_for_forks()


@dataclass(frozen=True, slots=True)
class Cpu:
    """What code is made for."""

    name: str
    """LLVM's name of the processor."""
    features: str
    """`+avx2,-avx512f,…`."""
    triple: str = ""
    """LLVM's name of the target; this machine's where it is empty."""


@functools.cache
def _binding() -> Any:
    """llvmlite, which has no types of its own."""
    return importlib.import_module("llvmlite.binding")


@functools.cache
def host() -> Cpu:
    """The processor of this machine, less what the system keeps from this process.

    Every process has to ask for the tile registers, also one that finds all its code in the cache.
    """
    llvm = _binding()
    allowed = targets.host().features
    given = llvm.get_host_cpu_features().flatten().split(",")
    kept = [f for f in given if f.startswith("-") or f[1:] in allowed]
    return Cpu(llvm.get_host_cpu_name(), ",".join(kept))


_PROCESSOR = ("vendor_id", "cpu family", "model", "stepping", "flags")
"""Lines of Linux's `/proc/cpuinfo` from which LLVM knows the features of a processor."""


@functools.cache
def host_words() -> str:
    """All that code for this machine depends on, but LLVM: as Linux has it on x86, or as LLVM has it.

    What is in the cache is found without importing LLVM.
    """
    lines = dict[str, str]()
    if sys.platform == "linux" and platform.machine() == "x86_64":
        with suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            first = file.read().partition("\n\n")[0]
            lines = {
                k.strip(): v.strip() for k, _, v in (x.partition(":") for x in first.splitlines())
            }
    if any(name not in lines for name in _PROCESSOR):
        return str(host())
    tiles = "amx_tile" in lines["flags"].split() and targets.may_use_tiles()
    return f"{[lines[name] for name in _PROCESSOR]} {tiles}"


@functools.lru_cache(maxsize=1024)
def _target_machine(cpu: Cpu, level: int) -> Any:
    llvm = _binding()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if cpu.triple:
        llvm.initialize_native_asmparser()
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        target = llvm.Target.from_triple(cpu.triple)
    else:
        target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cpu.name, features=cpu.features, opt=level, reloc="pic", codemodel="small"
    )


def _module(text: str) -> Any:
    """Parsed and verified assembly. Raises `HloError` HLO0433 with LLVM's words."""
    llvm = _binding()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as problem:
        raise error(
            "HLO0433",
            f"LLVM refuses the code: {str(problem).strip()}",
            help="this is a fault of the lowering, not of the program; please report it",
        ) from None
    return module


_OPTIONS = {
    # What gains nothing for what the lowering writes:
    "disable-lsr": "true",  # loops here carry the addresses that loop-strength reduction would look for
    "enable-misched": "false",  # it is in an order of few live values
    "disable-machine-cse": "true",  # nothing is written twice
    "disable-cgp": "true",  # addresses stand where they are used, conditions before their jumps
    "disable-post-ra": "true",  # processors with wide vectors reorder instructions by themselves
    # What finds nothing in it:
    "disable-constant-hoisting": "true",
    "disable-early-ifcvt": "true",
    "disable-early-taildup": "true",
    "disable-machine-dce": "true",
    "disable-mergeicmps": "true",
    "disable-partial-libcall-inlining": "true",
    "disable-postra-machine-licm": "true",
    "disable-postra-machine-sink": "true",
    "disable-replace-with-vec-lib": "true",
    "disable-ssc": "true",
    "disable-tail-duplicate": "true",
    "enable-shrink-wrap": "false",
}
"""What LLVM leaves out: four tenths of its time, for code that is no slower (`benchmarks/cpu.py`). The passes of the
second group change no instruction of the kernels there but the order of a few."""
_OF_PLAIN = {
    "combiner-disabled": "true",
    "disable-copyprop": "true",  # it saves a move here and there
    "disable-x86-domain-reassignment": "true",
    "x86-machine-combiner": "false",  # it reorders the sums of some addresses
    "x86-tile-ra": "false",
}
"""What finds next to nothing in assembly that gains nothing by combining."""
_NEWEST = 22
"""The last LLVM that is known to have them all."""
_COMBINING = 22
"""The first LLVM that can leave out combining."""
_OPPOSITE = {"true": "false", "false": "true"}


def _spelled(options: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"-{option}={value}" for option, value in options.items())


def _defaults(options: Mapping[str, str]) -> tuple[str, ...]:
    return _spelled({option: _OPPOSITE[value] for option, value in options.items()})


_OF_ALL = _spelled(_OPTIONS), _defaults(_OPTIONS)
_OF_ALL_PLAIN = _spelled(_OPTIONS | _OF_PLAIN), _defaults(_OPTIONS | _OF_PLAIN)
"""For this assembly, and afterwards."""


@functools.lru_cache(maxsize=1024)
def _options_file(options: Sequence[str]) -> str | None:
    """Options as a file in memory; None where the system has none."""
    if not hasattr(os, "memfd_create"):
        return None
    file = os.memfd_create(_IN_MEMORY)
    os.write(file, " ".join(options).encode())
    return f"/proc/self/fd/{file}"


_IN_MEMORY = "mlirhlo-options"


def _set(options: Sequence[str]) -> None:
    """Sets options of LLVM's: all by one call where they are in a file, as each call looks at every option.

    An option that is not there ends the process: later LLVMs do without.
    """
    if _binding().llvm_version_info[0] > _NEWEST:
        return
    path = _options_file(options)
    try:
        # Somebody may have closed it, and opened another.
        if path is not None and _IN_MEMORY in os.readlink(path):
            options = (f"@{path}",)
    except OSError:
        pass
    for option in options:
        _binding().set_option("mlirhlo", option)


@contextmanager
def _compiling(text: str, cpu: Cpu) -> Generator[None]:
    """LLVM without the passes that gain nothing for this assembly.

    Its options are the whole process's, others get them back as they are by default.
    """
    with _lock:
        can = _binding().llvm_version_info[0] >= _COMBINING and "+avx512vl" in cpu.features
        is_plain = can and not gains_by_combining(text)
        ours, defaults = _OF_ALL_PLAIN if is_plain else _OF_ALL
        _set(ours)
        try:
            yield
        finally:
            _set(defaults)


_LONG = 64 << 10
"""Bytes of assembly that LLVM may take a good part of a second for."""


def interruptible(work: Callable[[], T]) -> T:
    """The result of `work`, on a thread of its own where a signal could not end it in time.

    Whoever interrupts the main thread need not wait: LLVM goes on alone, and what it makes is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as problem:  # noqa: BLE001  raised by whoever waits
            result.set_exception(problem)

    threading.Thread(target=run, daemon=True, name="mlirhlo LLVM").start()
    return result.result()


def compile_object(text: str, cpu: Cpu | None = None, level: int = 2) -> bytes:
    """Relocatable object code of LLVM assembly, for this machine unless `cpu` says otherwise.

    `level`: 0 to 3, LLVM's effort in code generation; none for text that begins with `LIGHT`.
    Raises `HloError` HLO0433.
    """
    if text.startswith(LIGHT):
        level = 0
    cpu = cpu or host()

    def made() -> bytes:
        with _compiling(text, cpu) if level else _lock:
            return cast(bytes, _target_machine(cpu, level).emit_object(_module(text)))

    return interruptible(made) if len(text) >= _LONG else made()


def compile_assembly(text: str, cpu: Cpu | None = None, level: int = 2) -> str:
    """The same as assembly to read."""
    cpu = cpu or host()
    with _compiling(text, cpu):
        machine = _target_machine(cpu, level)
        return cast(str, machine.emit_assembly(_module(text)))


def optimize_assembly(text: str) -> str:
    """What LLVM's passes over its IR (`-O2`) leave of LLVM assembly, for this machine.

    Machine code is not made of it: the lowering leaves next to nothing for these passes, and they take
    as long as code generation. It shows what LLVM makes of the code, and is what dumps call
    `ir-with-opt`. Raises `HloError` HLO0433.
    """
    llvm = _binding()
    with _lock:
        module = _module(text)
        tuning = llvm.create_pipeline_tuning_options(speed_level=2)
        builder = llvm.create_pass_builder(_target_machine(host(), 2), tuning)
        builder.getModulePassManager().run(module, builder)
        return f"{module}"


@functools.cache
def _session() -> Any:
    """LLVM's linker in memory, in the form that keeps the sections of an object together.

    The older one maps them one by one, wherever there is room; in a process that holds gigabytes they
    may come to lie more than 2 GiB apart, which PC-relative addresses cannot say, and LLVM aborts.
    """
    return _binding().create_lljit_compiler(_target_machine(host(), 2), use_jit_link=True)


def _calls(code: Code, symbol: str) -> bool:
    """Whether code may call a function that is not in it."""
    if isinstance(code, Image):
        return any(name == symbol for _, name in code.outer)
    return any(symbol.encode() in data for data in code)


@functools.cache
def _rounding() -> Library:
    return Library([compile_object(bf16_ir.assembly())], [TO_BF16])


def _to_bf16() -> int:
    """Address of the function that rounds to bf16."""
    # Two threads may want the first one: the code of a second would be unmapped while modules call it.
    with _lock:
        return _rounding().address(TO_BF16)


class Library:
    """Machine code loaded into this process; its functions live as long as it does."""

    def __init__(
        self,
        code: Code,
        functions: Sequence[str],
        externals: Mapping[str, int] | None = None,
    ) -> None:
        """`functions`: what `address` will be asked for;
        `externals`: addresses of what is called.

        Raises `HloError` HLO0434 when a function is missing.
        """
        image = code if isinstance(code, Image) else link(code, functions)
        outside = dict(externals or {})
        if TO_BF16 not in functions and _calls(image or code, TO_BF16):
            outside.setdefault(TO_BF16, _to_bf16())
        self._owners: tuple[object, ...]
        try:
            if isinstance(image, Image):
                loaded = Loaded(image, outside)
                self._owners = (loaded,)
                self._addresses = {n: loaded.start + image.functions[n] for n in functions}
            else:
                assert not isinstance(code, Image)
                self._link(code, functions, outside)
        except KeyError as problem:
            raise error("HLO0434", f"compiled code needs {problem}, which is not there") from None
        except (OSError, RuntimeError) as problem:
            raise error("HLO0434", f"compiled code cannot be loaded: {problem}") from None

    def _link(
        self, objects: Sequence[bytes], functions: Sequence[str], externals: Mapping[str, int]
    ) -> None:
        """Leaves it to LLVM's linker."""
        with _lock:
            builder = _binding().JITLibraryBuilder()
            for data in objects:
                builder = builder.add_object_img(data)
            for name, address in externals.items():
                builder = builder.import_symbol(name, address)
            for name in functions:
                builder = builder.export_symbol(name)
            builder = builder.add_current_process()
            tracker = builder.link(_session(), f"mlirhlo.{next(_numbers)}")
            self._owners = tracker, _session()
            self._addresses = {name: int(tracker[name]) for name in functions}

    def keep(self) -> None:
        """Never unmaps the code, not even at the interpreter's end."""
        for owner in self._owners:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))

    def address(self, function: str) -> int:
        """Where a function starts."""
        return self._addresses[function]
