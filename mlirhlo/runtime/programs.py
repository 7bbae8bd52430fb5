"""Programs of front ends: one function prepares a module to run, whoever traced it.

`mlirhlo.jit`, `mlirhlo.jax`, `mlirhlo.tensorflow` and `mlirhlo.torch` hand their modules to `prepare`. What
the user asks for beside the program acts here: XLA's flags and compile options, the variables of JAX and
TensorFlow, dumps and profiles.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirhlo.debug.dump import dumping, flags_for
from mlirhlo.debug.dump.jit_dumps import LegacyDump, dump_program, log_profile, with_logging
from mlirhlo.debug.dump.sink import tell
from mlirhlo.debug.options import asks_for_dumps, wanted_passes
from mlirhlo.debug.options.jax_era import PLATFORMS as JAX_PLATFORMS
from mlirhlo.debug.options.jax_era import JaxSettings, jax_settings
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE
from mlirhlo.integrations.optional import choose

with LATE:
    from mlirhlo.debug.dump import assignment
    from mlirhlo.integrations import xla
    from mlirhlo.interp import engine, values
    from mlirhlo.runtime import compiler, profile


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.machine import Machine
    from mlirhlo.rewrites.pipeline import Instrumentation
    from mlirhlo.runtime.executable import Executable, Watcher

CPU, GPU, INTERPRETER, XLA = PLATFORMS = ("cpu", "gpu", "interpreter", "XLA")
"""What runs a program: machine code, PTX on the simulator, the interpreter, or the real XLA inside JAX or
TensorFlow."""

Run: TypeAlias = "Callable[[Sequence[Any]], Any]"
"""Takes the module's parameters; the result is a numpy array, or a tuple for a tuple."""


def platform_named(name: str | None) -> str:
    """The platform of `PLATFORMS` with this name, in any case.

    None stands for `JAX_PLATFORM_NAME`, and for `cpu` where that is not set. Raises `HloError` HLO0601.
    """
    source = ""
    if name is None and (name := jax_settings().platform_name):
        source = "; JAX_PLATFORM_NAME names it"
    name = str(name or CPU)
    return choose("platform", JAX_PLATFORMS.get(name.lower(), name), PLATFORMS, source)


class Program:
    """A module that is ready to run on a platform."""

    def __init__(
        self,
        module: ModuleOp,
        platform: str,
        run: Run,
        optimize: Callable[[], ModuleOp],
        executable: Executable | None = None,
    ) -> None:
        self.module = module
        """The module before optimisations."""
        self.platform = platform
        self._run, self._optimize = run, optimize
        self.executable = executable
        """The machine code; None on other platforms."""

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """The result for the module's parameters: numpy arrays of their real sizes."""
        return self._run(arguments)

    @cached_property
    def optimized(self) -> ModuleOp:
        """The module as the platform runs it, after all passes of its compiler."""
        return self._optimize()


def prepare(
    module: ModuleOp,
    platform: str,
    options: Mapping[str, object] | None = None,
    *,
    name: str = "",
    source: Callable[[], ModuleOp | None] = lambda: None,
    machine: Machine | None = None,
) -> Program:
    """Makes an HLO module ready to run on a platform of `PLATFORMS`.

    `options`: XLA's debug options, which go over the flags of the environment. `name`: the function as the
    user called it, for the file names of `JAX_DUMP_IR_TO`; empty where the front end writes these files
    itself. `source`: makes the StableHLO that the module was made of, for dumps. `machine`: the device that
    gives custom calls their meaning.

    Raises `HloError` HLO0432 and HLO0435 for what has no machine code, HLO0520, HLO0521 and HLO0524 for
    flags and options that do not fit, HLO0600 and HLO0611 for what the real XLA does not run.
    """
    settings = jax_settings()
    if platform == XLA:
        compiled = xla.XlaProgram(module, options or {})
        obey_for_other_compiler(lambda: module, compiled.optimized)
        return Program(module, platform, compiled, compiled.optimized)
    flags = with_logging(module, flags_for(options))
    set_replicas(module, settings)
    if settings.writes:
        dump_program(settings, module, name)
        _dump_stages(settings, module, platform, flags)
    program = source() if asks_for_dumps(flags.options) else None
    make = {CPU: _machine_code, GPU: _simulated, INTERPRETER: _interpreted}[platform]
    run, executable = make(module, flags, program, machine, settings.hlo_profile)
    return Program(module, platform, run, lambda: _optimized(module, platform, flags), executable)


def obey_for_other_compiler(
    module: Callable[[], ModuleOp], optimized: Callable[[], ModuleOp]
) -> None:
    """Obeys the variables of JAX and TensorFlow for a program that the real XLA has compiled, as far as that
    is possible from outside; what is not, is told once (HLO0525)."""
    settings = jax_settings()
    if settings.writes:
        before = module()
        dump_program(settings, before, "")
        if (dump := LegacyDump.of(settings, before)) is not None:
            dump.unoptimized(before)
            dump.optimized(optimized())
    for name, is_set in (
        ("JAX_DUMP_HLO_PER_PASS", bool(settings.dump_hlo_per_pass)),
        ("JAX_HLO_PROFILE", settings.hlo_profile),
        ("JAX_REPLICA_COUNT", settings.replica_count != 1),
    ):
        if is_set:
            message = f"{name} has no effect on programs that the real XLA compiles"
            tell(("XLA", name), "HLO0525", message, "it has with platform='cpu'", fatal=False)


def set_replicas(module: ModuleOp, settings: JaxSettings) -> None:
    """Writes `JAX_REPLICA_COUNT` to the header of a module."""
    if settings.replica_count != 1:
        HloModule(module).set("replica_count", integer(settings.replica_count))


def _optimized(
    module: ModuleOp, platform: str, flags: Flags, watchers: Sequence[Instrumentation] = ()
) -> ModuleOp:
    if platform == CPU:
        from mlirhlo.lowering.cpu.pipeline import optimize
    elif platform == GPU:
        from mlirhlo.lowering.gpu.pipeline import optimize
    else:
        return module
    return optimize(module, watchers, wanted_passes(flags))


def _dump_stages(settings: JaxSettings, module: ModuleOp, platform: str, flags: Flags) -> None:
    """Writes what `JAX_DUMP_HLO_*` ask for; the passes run once more for it."""
    dump = LegacyDump.of(settings, module)
    if dump is not None:
        dump.unoptimized(module)
        if platform == INTERPRETER:
            dump.started("jit", (), module)
        dump.optimized(_optimized(module, platform, flags, dump.watchers()))


# ---------------------------------------------------------------- platforms


def _machine_code(
    module: ModuleOp,
    flags: Flags,
    program: ModuleOp | None,
    machine: Machine | None,
    profiled: bool,
) -> tuple[Run, Executable]:
    executable = compiler.compile_module(module, flags=flags, program=program)
    if profiled:
        return _profiled_code(module, flags, machine, executable.watcher), executable
    return _runs_on(executable, machine), executable


def _runs_on(executable: Executable, machine: Machine | None) -> Run:
    if machine is None:
        return lambda arguments: executable(*arguments)
    return lambda arguments: executable.run_on(machine, 0, 0, arguments)


def _simulated(
    module: ModuleOp,
    flags: Flags,
    program: ModuleOp | None,
    machine: Machine | None,
    profiled: bool,
) -> tuple[Run, None]:
    """As PTX on the simulator, which has no time of its own to log."""
    del profiled

    executable = compiler.compile_module(module, "gpu", flags=flags, program=program)
    return _runs_on(executable, machine), None


def _profiled_code(
    module: ModuleOp, flags: Flags, machine: Machine | None, watcher: Watcher | None
) -> Run:
    """Logs the time of each kernel of a run."""
    marked = profile.Marked(module, wanted_passes(flags))
    if watcher is not None:
        marked.executable.watch(watcher)

    def run(arguments: Sequence[Any]) -> Any:
        result, events = marked.run(arguments, machine)
        spent: dict[str, float] = {}
        for kernel, start, end in events:
            op = marked.plan.instructions[kernel]
            title = f"%{op.instruction_name or kernel} = {op.opcode.name}"
            spent[title] = spent.get(title, 0.0) + (end - start) / 1e9
        log_profile(HloModule(module).name, spent)
        return result

    return run


def _interpreted(
    module: ModuleOp,
    flags: Flags,
    program: ModuleOp | None,
    machine: Machine | None,
    profiled: bool,
) -> tuple[Run, None]:
    dump = dumping(module, flags, INTERPRETER, program)
    if dump is not None:
        dump.given(module)
        dump.optimized(module)
    interpreter = None if profiled else engine.Interpreter(module, machine)
    tell = None if dump is None else dump.runs()

    def run(arguments: Sequence[Any]) -> Any:
        done = None if tell is None else tell(arguments)
        if interpreter is None:
            result = _profiled(module, machine, arguments)
        else:
            result = interpreter.run(arguments)
        if done is not None:
            done(result)
        return values.for_user(result)

    return run, None


def _profiled(module: ModuleOp, machine: Machine | None, arguments: Sequence[Any]) -> Any:
    """Interprets a module and logs the time of each instruction."""
    name_of = assignment.instruction_names(module)
    spent: dict[str, float] = {}
    last = 0.0

    def hook(instruction: Instruction, inputs: Sequence[Any], value: Any) -> None:
        del inputs, value
        nonlocal last
        now = time.perf_counter()
        title = f"%{name_of(instruction)} = {instruction.opcode.name}"
        spent[title] = spent.get(title, 0.0) + now - last
        last = now

    interpreter = engine.Interpreter(module, machine, hook)
    last = time.perf_counter()
    result = interpreter.run(arguments)
    log_profile(HloModule(module).name, spent)
    return result
