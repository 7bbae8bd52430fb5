"""`Traced`, `Lowered`, `Compiled`: the stages of a function of JAX's, executed here, with JAX's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from mlirhlo.analysis.buffer_assignment import assign_buffers
from mlirhlo.analysis.cost import analyse
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.importing import LATE
from mlirhlo.integrations.computation import XlaComputation
from mlirhlo.integrations.ir import module_of
from mlirhlo.integrations.jax import values
from mlirhlo.integrations.jax.callbacks import machine_with
from mlirhlo.integrations.jax.lowering import dump_lowered, lower
from mlirhlo.integrations.jax.options import OptionValue, check_options, options_for_us
from mlirhlo.integrations.jax.static import StaticArguments
from mlirhlo.integrations.optional import choose, require
from mlirhlo.runtime.programs import XLA, Program, obey_for_other_compiler, platform_named, prepare

with LATE:
    from mlirhlo.debug.dump import protos
    from mlirhlo.formats import stablehlo as formats_stablehlo


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

DIALECTS: tuple[str, ...] = ("hlo", "stablehlo", "jaxpr")

RESULTS: tuple[str, ...] = ("numpy", "jax")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a function is lowered and executed."""

    platform: str = "cpu"
    lowering_platform: str = ""
    """Empty: the CPU's rules, and those of the TPU for Pallas kernels."""
    results: str = "numpy"
    passes: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    """XLA's, checked."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes that one call of a program needs, by JAX's names; nothing lies in a second memory of a host."""

    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    """Of results that lie over donated arguments."""
    temp_size_in_bytes: int = 0
    peak_memory_in_bytes: int = 0
    generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    serialized_buffer_assignment_proto: bytes = field(default=b"", repr=False)
    """XLA's `BufferAssignmentProto`: which value lies where. Empty for what is interpreted."""

    @classmethod
    def of(cls, stats: Any) -> MemoryStats:
        """JAX's own numbers."""
        return cls(**{each.name: getattr(stats, each.name) for each in fields(cls)})

    @classmethod
    def of_program(cls, program: Program) -> MemoryStats:
        """What a program of ours needs: its machine code, or the buffers that its module would take."""
        code, assigned = program.executable, b""
        if code is not None:
            assigned = protos.cpu_assignment(program.optimized).SerializeToString(
                deterministic=True
            )
            memory = code.memory
            arguments, results = memory.parameters, memory.results
            aliased, temporary = memory.aliased, memory.temporaries
        else:
            assignment = assign_buffers(HloModule(program.optimized))
            arguments, results = (
                sum(each.bytes for each in assignment.allocations if kind in each.kind)
                for kind in ("parameter", "maybe-live-out")
            )
            aliased, temporary = 0, assignment.temporary_bytes
        return cls(
            arguments,
            results,
            aliased,
            temporary,
            arguments + results - aliased + temporary,
            serialized_buffer_assignment_proto=assigned,
        )


def _costs(module: ModuleOp) -> dict[str, float]:
    return dict(analyse(module).total)


class _Described:
    """What JAX knows of arguments and results at every stage."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def traced(self) -> Any: ...

    @property
    def in_tree(self) -> Any:
        """Structure of `(args, kwargs)` without static arguments."""
        return self.traced.in_tree

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self.traced.out_tree

    @property
    def args_info(self) -> Any:
        """Shape, type and donation of every argument, in the structure of `in_tree`."""
        return self.traced.args_info

    @property
    def out_info(self) -> Any:
        """Shapes and types of the result, in its structure."""
        return self.traced.out_info

    @property
    def in_avals(self) -> Any:
        """JAX's types of the arguments, in the structure of `in_tree`."""
        return self.traced.in_avals

    @property
    def out_avals(self) -> Any:
        """JAX's types of the result's leaves."""
        return self.traced.out_avals

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Which of the flat arguments are donated."""
        return tuple(self.traced.donate_argnums)


@dataclass(slots=True, eq=False)
class Traced(_Described):
    """A function traced for arguments of one kind."""

    traced: Any = field(repr=False)
    """JAX's own object: `jax.stages.Traced`."""
    _static: StaticArguments = field(default_factory=StaticArguments, repr=False)
    _settings: Settings = field(default_factory=Settings)

    @property
    def jaxpr(self) -> Any:
        """The function as JAX traced it."""
        return self.traced.jaxpr

    @property
    def fun_name(self) -> str:
        """Name of the function."""
        return str(self.traced.fun_name)

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lowers, for the platform of `jit` or the first of these."""
        platform = lowering_platforms[0] if lowering_platforms else self._settings.lowering_platform
        if not platform and self._settings.platform == XLA:
            platform = "cpu"  # XLA's, which has no kernels
        lowered = lower(self.traced, platform)
        return Lowered(self.traced, lowered, self._static, self._settings)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lowered(_Described):
    """A function lowered for arguments of one kind."""

    traced: Any = field(repr=False)
    """JAX's own object: `jax.stages.Traced`."""
    lowered: Any = field(repr=False)
    """JAX's own object: `jax.stages.Lowered`."""
    _static: StaticArguments = field(default_factory=StaticArguments, repr=False)
    _settings: Settings = field(default_factory=Settings)

    @property
    def jaxpr(self) -> Any:
        """The function as JAX traced it."""
        return self.traced.jaxpr

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """The program as JAX prints it: `hlo`, `stablehlo` or `jaxpr`.

        Raises `HloError` HLO0601 for another dialect.
        """
        dialect = choose("dialect", dialect, DIALECTS)
        if dialect == "jaxpr":
            return str(self.jaxpr)
        return str(self.lowered.as_text(dialect=dialect, debug_info=debug_info))

    def compiler_ir(self, dialect: str = "hlo") -> XlaComputation | ModuleOp:
        """The program as an object of ours: a `Module` with the methods of JAX's `XlaComputation` for
        `hlo`, xDSL's module for `stablehlo`.

        Raises `HloError` HLO0601 for another dialect.
        """
        dialect = choose("dialect", dialect, DIALECTS[:2])
        return self.hlo() if dialect == "hlo" else self.stablehlo()

    def hlo(self) -> XlaComputation:
        """A new module of the hlo dialect, without optimisations."""
        return module_of(self.hlo_proto())

    def hlo_proto(self) -> bytes:
        """The serialised HloModuleProto that JAX hands to its compiler."""
        proto: bytes = self.lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto()
        return proto

    def stablehlo(self) -> ModuleOp:
        """A new module of the stablehlo dialect."""
        return formats_stablehlo.parse_module(self.as_text("stablehlo", debug_info=True), "<jax>")

    def cost_analysis(self) -> dict[str, float]:
        """Operations and bytes of the module before optimisations, by XLA's names."""
        return _costs(self.hlo().op)

    def compile(
        self,
        options: Mapping[str, OptionValue] | None = None,
        *,
        platform: str | None = None,
        passes: str | None = None,
        results: str | None = None,
    ) -> Compiled:
        """The program ready to be called.

        `options`: XLA's flags without dashes (`{"xla_dump_to": "dumps"}`), which go over those of `jit` and
        of the environment. The real XLA obeys all of them, the other platforms those of `docs/dumps.md`; a
        remark (HLO0523) names the others. What else is given is as in `jit`.

        Raises `HloError`: HLO0602 for an option that XLA does not know, HLO0603 for programs that
        cannot be executed here, HLO0432 and HLO0435 for what has no machine code, and the error of a
        registered pass that failed in the compiler.
        """
        settings = self._settings
        checked = {**settings.options, **check_options(options)}
        platform = platform_named(platform or settings.platform)
        results = choose("kind of results", results or settings.results, RESULTS)
        pipeline = settings.passes if passes is None else passes
        if platform == XLA:
            if pipeline:
                raise error(
                    "HLO0601",
                    "platform 'XLA' takes no pipeline of passes",
                    help="mlirhlo.jax.register_pass runs passes inside it",
                )
            return Compiled(self, checked, platform, results, self._compile_by_xla(checked))
        calling = values.Calling.of(self.lowered)
        module = self.hlo()
        if pipeline:
            module.opt(pipeline)
        dump_lowered(self.lowered)
        program = prepare(
            module.op,
            platform,
            options_for_us(checked),
            source=self.stablehlo,
            machine=machine_with(calling.callbacks),
        )
        return Compiled(self, checked, platform, results, program, calling)

    def _compile_by_xla(self, options: Mapping[str, OptionValue]) -> Any:
        from mlirhlo.integrations.jax.stages import compile_by_xla, optimized_module

        executable = compile_by_xla(self.lowered, options)
        obey_for_other_compiler(lambda: self.hlo().op, lambda: optimized_module(executable).op)
        return executable


@dataclass(eq=False, repr=False)
class Compiled(_Described):
    """A function ready to be called with arguments of one kind."""

    lowered: Lowered
    options: Mapping[str, OptionValue]
    """XLA's options, checked."""
    platform: str
    results: str
    executable: Any
    """A `mlirhlo.runtime.programs.Program`, or JAX's `jax.stages.Compiled`."""
    _calling: values.Calling | None = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, a tree as the function returns it. Raises `HloError` HLO0603 and HLO03xx."""
        if self._calling is None:
            return self._call_xla(args, kwargs)
        result = self.executable(self.flat_arguments(*args, **kwargs))
        return self._calling.result(result, self.lowered, self.results)

    def flat_arguments(self, *args: object, **kwargs: object) -> list[Any]:
        """What the module's parameters are for these arguments: numpy arrays in order."""
        calling = self._calling or values.Calling.of(self.lowered.lowered)
        given = self.lowered._static.dynamic(args, kwargs)  # pyright: ignore[reportPrivateUsage]
        return calling.arguments(given, self.lowered.lowered)

    def _call_xla(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        positional, named = self.lowered._static.dynamic(args, kwargs)  # pyright: ignore[reportPrivateUsage]
        result = self.executable(*positional, **named)
        if self.results == "jax":
            return result
        jax = require("jax", "jax", "mlirhlo.jax")
        return jax.tree.map(values.to_numpy, result)

    def compiler_ir(self) -> XlaComputation:
        """The module as the platform optimised it: what is executed."""
        if self._calling is not None:
            return XlaComputation(self.executable.optimized)
        from mlirhlo.integrations.jax.stages import optimized_module

        return XlaComputation(optimized_module(self.executable).op)

    def as_text(self) -> str:
        """HLO text of the module as the platform optimised it."""
        return self.compiler_ir().as_text()

    def runtime_executable(self) -> Any:
        """What has `hlo_modules()`: JAX's own executable for XLA, else this object."""
        return self if self._calling is not None else self.executable.runtime_executable()

    def hlo_modules(self) -> list[XlaComputation]:
        """The module as the platform optimised it, in a list as JAX has it."""
        return [self.compiler_ir()]

    def cost_analysis(self) -> dict[str, float]:
        """Operations and bytes of the optimised module, by XLA's names."""
        return _costs(self.compiler_ir().op)

    def memory_analysis(self) -> MemoryStats:
        """Bytes that one call needs, by JAX's names: of machine code, of the buffers that hold the values of what
        is interpreted, or XLA's own numbers."""
        if self._calling is None:
            return MemoryStats.of(self.executable.memory_analysis())
        return MemoryStats.of_program(self.executable)

    @property
    def input_shardings(self) -> Any:
        """Where arguments are, in the structure of `in_tree`: on one device, but with XLA."""
        return self._placed("input_shardings", self.in_avals)

    @property
    def output_shardings(self) -> Any:
        """Where results are, in the structure of the result."""
        return self._placed("output_shardings", self.out_info)

    @property
    def input_formats(self) -> Any:
        """Layouts and shardings of arguments, in the structure of `in_tree`: rows are contiguous, but with XLA."""
        return self._placed("input_formats", self.in_avals)

    @property
    def output_formats(self) -> Any:
        """Layouts and shardings of results, in the structure of the result."""
        return self._placed("output_formats", self.out_info)

    def _placed(self, name: str, types: Any) -> Any:
        """What JAX's compiled function has under a name."""
        if self._calling is None:
            return getattr(self.executable, name)
        jax = require("jax", "jax", "mlirhlo.jax")
        one = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
        layouts = require("jax.experimental.layout", "jax", "mlirhlo.jax")

        def of(array: Any) -> Any:
            if name.endswith("shardings"):
                return one
            return layouts.Format(layouts.Layout(tuple(range(len(array.shape))), ()), one)

        return jax.tree.map(of, types)

    @property
    def traced(self) -> Any:
        """JAX's own object: `jax.stages.Traced`."""
        return self.lowered.traced

    def call(self, *args: object, **kwargs: object) -> Any:
        """As calling the object."""
        return self(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<mlirhlo.jax.Compiled for {self.platform}>"
