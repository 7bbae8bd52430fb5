"""From a module to something that runs: lowering, object code out of the cache, loading.

What lowers is imported by the first module that has to be lowered: a process that finds all of its modules in
the cache does without.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import observe
from mlirhlo.debug.options import process_flags, wanted_passes
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE
from mlirhlo.lowering.observer import SILENT
from mlirhlo.lowering.plan.plan import MAIN, Plan
from mlirhlo.lowering.runtime_symbols import PARALLEL_FOR
from mlirhlo.runtime.cache import object_code, object_codes
from mlirhlo.runtime.executable import Executable
from mlirhlo.runtime.externals import externals
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.object_code.images import link
from mlirhlo.runtime.object_code.modules import keep_module, kept_module, module_key
from mlirhlo.runtime.object_code.units import halves, split
from mlirhlo.runtime.object_code.workers import compile_all

with LATE:
    from mlirhlo.lowering.cpu import compiler
    from mlirhlo.mosaic import kernel_expander
    from mlirhlo.runtime.cuda import devices
    from mlirhlo.runtime.cuda import executable as cuda_executable


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.lowering.observer import Observer

_LARGE = 256 << 10
"""Bytes of assembly from which on kernels are compiled, and kept, one by one: LLVM needs a fifth more for
them than for the whole."""

PLATFORMS = {"cpu": "cpu", "host": "cpu", "gpu": "gpu", "cuda": "gpu"}
"""What modules are compiled for, by all its names."""


def compile_module(
    module: ModuleOp,
    platform: str = "cpu",
    *,
    level: int = 2,
    cached: bool = True,
    debug: bool = False,
    flags: Flags | None = None,
    program: ModuleOp | None = None,
    observer: Observer | None = None,
    gpu: str = "",
) -> Executable:
    """An HLO module as machine code, or as PTX on the simulator.

    `gpu`: the device that is simulated, by name; the default one where it is empty.
    `level`: 0 to 3, LLVM's effort. `debug`: code that checks every access, run with checks of what it
    writes and reads (`checked.py`); slow, and never cached. `cached`: whether object code may come
    from the cache on disk, and goes there. `flags`: XLA's, those of the environment when None.
    `program`: the StableHLO that the module was made of, for dumps. `observer`: who is told of the
    stages instead of the dumps that the flags ask for; it is not told of runs.

    Raises `HloError` HLO0432 and HLO0435 for what has no code, HLO0437 for an unknown platform, HLO0520
    and HLO0521 for flags that cannot be understood.
    """
    platform = platform_of(platform)
    flags = process_flags() if flags is None else flags
    if platform == "gpu":
        return _for_gpu(module, gpu, flags, program, observer)
    told = observe(module, flags, platform, program) if observer is None else observer
    cached = cached and not debug
    # Who watches wants to see all stages.
    key = module_key(module, level, _choices(flags)) if cached and told is SILENT else None
    sites: Sequence[str] | None = None
    plan: Plan
    kept = None if key is None else kept_module(key)
    if kept is None:
        stages = compiler.lower(module, told, wanted_passes(flags), checked=debug)
        sites = stages.sites if debug else None
        text = stages.text
        # What has parallel loops counts as long: they are skipped once a run is to stop.
        plan = replace(stages.plan, is_long=stages.plan.is_long or f"@{PARALLEL_FOR}(" in text)
        objects = _objects(text, level, cached=cached, is_kept=key is not None, told=told)
        code = link(objects, [MAIN]) or objects
        outside = externals(text)
        if key is not None:
            keep_module(key, plan, list(outside), code)
    else:
        plan, code = kept.plan, kept.code
        outside = externals("".join(f"@{name}(" for name in kept.externals))
    return _watched(Executable(plan, Library(code, [MAIN], outside), MAIN, sites), told, observer)


def _for_gpu(
    module: ModuleOp, gpu: str, flags: Flags, program: ModuleOp | None, observer: Observer | None
) -> Executable:
    device = devices.device_of(gpu, flags)
    told = observe(module, flags, "gpu", program, device) if observer is None else observer
    driver = devices.real_driver(gpu)
    compiled = cuda_executable.compile_for_gpu(
        module, device, flags=flags, observer=told, driver=driver
    )
    return _watched(compiled, told, observer)


def _watched(executable: Executable, told: Observer, observer: Observer | None) -> Executable:
    watcher = told.runs() if observer is None else None
    if watcher is not None:
        executable.watch(watcher)
    return executable


def _choices(flags: Flags) -> str:
    """What changes code, apart from the module."""
    options = flags.options
    left_out = (
        options.xla_disable_hlo_passes,
        options.xla_enable_hlo_passes_only,
        options.xla_disable_all_hlo_passes,
    )
    own = "mlirhlo.interp.custom_calls" in sys.modules and _has_own_kernels()
    return f"{left_out} {own}" if any(left_out) or own else ""


def _has_own_kernels() -> bool:
    """Whether somebody registered another meaning of kernels than the simulator's."""
    return not kernel_expander.simulates()


def _objects(
    text: str, level: int, *, cached: bool, is_kept: bool, told: Observer
) -> Sequence[bytes]:
    """Object code of a module: of a large one kernel by kernel, unless somebody wants to see it."""
    if told is not SILENT:
        code = (object_code if cached else compile_object)(text, level=level)
        told.compiled(compiler.UNIT, text, code)
        return [code]
    is_large = len(text) >= _LARGE
    texts = [half for unit in (split(text, MAIN) if is_large else [text]) for half in halves(unit)]
    if cached and (is_large or not is_kept):
        return object_codes(texts, level)
    return (
        compile_all(texts, level) if is_large else [compile_object(t, level=level) for t in texts]
    )


def platform_of(name: str) -> str:
    """A platform of `PLATFORMS` by any of its names. Raises `HloError` HLO0437."""
    found = PLATFORMS.get(str(name).lower())
    if found is None:
        raise error(
            "HLO0437",
            f"nothing compiles for platform {name!r}",
            help=f"there are: {', '.join(PLATFORMS)}; calling the module runs it on the interpreter",
        )
    return found
