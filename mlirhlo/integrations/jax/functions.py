"""`jit`: a function traced and lowered by JAX, executed here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, update_wrapper
from typing import Any

from mlirhlo.importing import LATE
from mlirhlo.integrations.jax.compiled import RESULTS, Compiled, Lowered, Settings, Traced
from mlirhlo.integrations.jax.options import OptionValue, check_options
from mlirhlo.integrations.jax.static import StaticArguments
from mlirhlo.integrations.optional import choose, require
from mlirhlo.runtime.programs import platform_named

with LATE:
    from mlirhlo.rewrites import pipeline


_FOLDER = os.path.dirname(os.path.abspath(__file__))


@cache
def _jax() -> Any:
    jax = require("jax", "jax", "mlirhlo.jax")
    # The places that JAX notes are those of the user's program.
    require("jax.extend.source_info_util", "jax", "mlirhlo.jax").register_exclusion(_FOLDER)
    return jax


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

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Traces for arguments like these (values or `jax.ShapeDtypeStruct`)."""
        return Traced(self._traceable.trace(*args, **kwargs), self._static, self._settings)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Traces and lowers for arguments like these (values or `jax.ShapeDtypeStruct`)."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """Shapes and types of the result for arguments like these, in its structure; nothing runs."""
        return self._traceable.eval_shape(*args, **kwargs)

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
        return Traced(traced, self._static, self._settings).lower(lowering_platforms=(platform,))

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The result, a tree as the function returns it.

        Raises `HloError` HLO0603 for programs that cannot be executed here, and HLO03xx.
        """
        # JAX keeps one jaxpr for equal arguments, so it stands for all that was traced.
        traced = self._traceable.trace(*args, **kwargs)
        compiled = self._compiled.get(traced.jaxpr)
        if compiled is None:
            lowered = Traced(traced, self._static, self._settings).lower()
            compiled = self._compiled[traced.jaxpr] = lowered.compile()
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
        pipeline.parse_pipeline(passes)
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
