"""`jit`, `Lowered`, `Compiled`: a function traced and lowered by JAX, executed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, update_wrapper
from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import error
from mlirhlo.integrations.computation import XlaComputation
from mlirhlo.integrations.ir import module_of
from mlirhlo.integrations.jax import values
from mlirhlo.integrations.jax.callbacks import machine_with
from mlirhlo.integrations.jax.lowering import dump_lowered, lower
from mlirhlo.integrations.jax.options import OptionValue, check_options, options_for_us
from mlirhlo.integrations.jax.static import StaticArguments
from mlirhlo.integrations.optional import choose, require
from mlirhlo.runtime.programs import XLA, obey_for_other_compiler, platform_named, prepare

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

DIALECTS: tuple[str, ...] = ("hlo", "stablehlo", "jaxpr")

RESULTS: tuple[str, ...] = ("numpy", "jax")


_FOLDER = os.path.dirname(os.path.abspath(__file__))


@cache
def _jax() -> Any:
    jax = require("jax", "jax", "mlirhlo.jax")
    # The places that JAX notes are those of the user's program.
    require("jax.extend.source_info_util", "jax", "mlirhlo.jax").register_exclusion(_FOLDER)
    return jax


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


class JittedFunction:
    """A function that is traced once for each kind of arguments and then executed here."""

    def __init__(
        self,
        function: Callable[..., object],
        settings: Settings,
        static: StaticArguments,
        jax_options: Mapping[str, object],
    ) -> None:
        self._function, self._jax_options = function, jax_options
        self._settings, self._static = settings, static
        is_jitted = hasattr(function, "trace") and hasattr(function, "lower")
        self._traceable: Any = function if is_jitted else _jax().jit(function, **jax_options)
        self._compiled: dict[object, Compiled] = {}
        update_wrapper(self, function, updated=())

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Traces and lowers for arguments like these (values or `jax.ShapeDtypeStruct`)."""
        return self._lowered(self._traceable.trace(*args, **kwargs))

    def lower_placed(
        self,
        platform: str,
        placed: Callable[[Any], Any],
        sharding: Any,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> Lowered:
        """Lowers for a device: `placed` puts each argument on it, `sharding` the results."""
        jax = _jax()
        positional = list(args)
        for number in range(len(args)):
            if not self._static.has(number, len(args)):
                positional[number] = jax.tree.map(placed, args[number])
        named = {
            name: value if name in self._static.names else jax.tree.map(placed, value)
            for name, value in kwargs.items()
        }
        options = {**self._jax_options, "out_shardings": sharding}
        traced = jax.jit(self._function, **options).trace(*positional, **named)
        return self._lowered(traced, platform)

    def _lowered(self, traced: Any, platform: str | None = None) -> Lowered:
        platform = platform or self._settings.lowering_platform
        if not platform and self._settings.platform == XLA:
            platform = "cpu"  # XLA's, which has no kernels
        return Lowered(traced, lower(traced, platform), self._static, self._settings)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, a tree as the function returns it.

        Raises `HloError` HLO0603 for programs that cannot be executed here, and HLO03xx.
        """
        # JAX keeps one jaxpr for equal arguments, so it stands for all that was traced.
        traced = self._traceable.trace(*args, **kwargs)
        compiled = self._compiled.get(traced.jaxpr)
        if compiled is None:
            compiled = self._compiled[traced.jaxpr] = self._lowered(traced).compile()
        return compiled(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forgets what was compiled."""
        self._compiled.clear()

    def __repr__(self) -> str:
        return f"<mlirhlo.jax.jit of {getattr(self, '__name__', '?')}>"


def _lowering_platforms() -> list[str]:
    bridge = require("jax._src.xla_bridge", "jax", "mlirhlo.jax")
    return sorted({"cpu", "cuda", "rocm", "tpu", *bridge.known_platforms()})


def jit(
    function: Callable[..., object] | None = None,
    *,
    platform: str | None = None,
    lowering_platform: str | None = None,
    results: str = "numpy",
    passes: str = "",
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, OptionValue] | None = None,
) -> Any:
    """`jax.jit`, executed here: `jit(f)(x)`, or as a decorator, with or without options.

    - `platform`: `"cpu"` for machine code (the default, unless `JAX_PLATFORM_NAME` says otherwise),
      `"interpreter"`, or `"XLA"` for JAX's own compiler and devices.
    - `lowering_platform`: the platform that JAX lowers for, `"cpu"`, `"tpu"` or `"cuda"`; without it the CPU,
      and Pallas kernels as for a TPU.
    - `results`: `"numpy"` arrays, or `"jax"` ones.
    - `passes`: a pipeline of ours that runs on the module first (`"cse,dce"`).
    - `compiler_options`: XLA's flags without dashes, as in `Lowered.compile`.
    - the others are `jax.jit`'s. Donated arguments are marked in the module; the arrays given stay.

    A function that `jax.jit` made is taken with its own options. Raises `HloError` HLO0600 without
    JAX, HLO0601 for an unknown platform and HLO0400 to HLO0402 for a wrong pipeline.
    """
    if passes:
        from mlirhlo.rewrites.pipeline import parse_pipeline

        parse_pipeline(passes)
    settings = Settings(
        platform_named(platform),
        choose("lowering platform", lowering_platform, _lowering_platforms())
        if lowering_platform
        else "",
        choose("kind of results", results, RESULTS),
        passes,
        check_options(compiler_options),
    )
    jax_options = {
        "static_argnums": static_argnums,
        "static_argnames": static_argnames,
        "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames,
        "keep_unused": keep_unused,
        "inline": inline,
    }
    _jax()

    def decorate(f: Callable[..., object]) -> JittedFunction:
        static = StaticArguments.of(f, static_argnums, static_argnames)
        return JittedFunction(f, settings, static, jax_options)

    return decorate if function is None else decorate(function)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lowered:
    """A function lowered for arguments of one kind."""

    traced: Any = field(repr=False)
    """JAX's own object: `jax.stages.Traced`."""
    lowered: Any = field(repr=False)
    """JAX's own object: `jax.stages.Lowered`."""
    _static: StaticArguments = field(default_factory=StaticArguments, repr=False)
    _settings: Settings = field(default_factory=Settings)

    @property
    def in_tree(self) -> Any:
        """Structure of `(args, kwargs)` without static arguments."""
        return self.lowered.in_tree

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self.lowered.out_tree

    @property
    def args_info(self) -> Any:
        """Shape, type and donation of every argument, in the structure of `in_tree`."""
        return self.lowered.args_info

    @property
    def out_info(self) -> Any:
        """Shapes and types of the result, in its structure."""
        return self.traced.out_info

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
        from mlirhlo.formats.stablehlo import parse_module

        return parse_module(self.as_text("stablehlo", debug_info=True), "<jax>")

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
class Compiled:
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
        return _jax().tree.map(values.to_numpy, result)

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
        from mlirhlo.analysis.cost import analyse

        return dict(analyse(self.compiler_ir().op).total)

    def __repr__(self) -> str:
        return f"<mlirhlo.jax.Compiled for {self.platform}>"
