"""`register_pass`: one of our passes between the real compiler's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from mlirhlo.diagnostics import HloError, error
from mlirhlo.integrations.jax.hook import Hook, PassLike, PassRun, steps_of, title_of
from mlirhlo.integrations.jax.pjrt.client import PLATFORMS
from mlirhlo.integrations.jax.plugin import plugin_transforms
from mlirhlo.integrations.optional import choose, require

STAGES: tuple[str, ...] = ("pre-scheduler", "post-scheduler")
"""Where the compiler calls passes: after its own optimisations, before and after scheduling."""

_GPU = ("gpu", "cuda", "rocm")

_registered: dict[tuple[str, str], RegisteredPass] = {}
"""By name and stage."""


@dataclass(slots=True)
class RegisteredPass:
    """A pass in the compilers of this process. As a context manager it leaves them at the end."""

    name: str
    stage: str
    platforms: tuple[str, ...]
    hook: Hook
    _undo: list[Callable[[], object]]
    _recompiles: bool

    @property
    def runs(self) -> tuple[PassRun, ...]:
        """What it did so far, in order."""
        return tuple(self.hook.runs)

    @property
    def errors(self) -> tuple[HloError, ...]:
        """The errors of its runs so far."""
        return tuple(run.error for run in self.hook.runs if run.error is not None)

    def unregister(self) -> None:
        """Takes the pass out again; programs compiled with it are compiled anew."""
        if not self.hook.is_active:
            return
        self.hook.is_active = False
        if _registered.get((self.name, self.stage)) is self:
            del _registered[self.name, self.stage]
        for undo in self._undo:
            undo()
        _cache_on_again()
        if self._recompiles:
            _forget_programs()

    def __enter__(self) -> RegisteredPass:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.unregister()


def register_pass(
    passes: PassLike | Sequence[PassLike],
    stage: str = "pre-scheduler",
    platforms: str | Sequence[str] | None = None,
    *,
    name: str | None = None,
    modules: str | None = None,
    on_error: Literal["raise", "skip"] = "raise",
    verify: bool = True,
    keep: bool = False,
    recompile: bool = True,
) -> RegisteredPass:
    """Runs passes of ours inside XLA, on every program that JAX compiles from now on.

    - `passes`: a pipeline (`"cse,dce"`), an `HloPass`, or a function of a `mlirhlo.Module`, which
      changes it in place (and returns None or whether it did) or returns another one.
    - `stage`: `"pre-scheduler"` (after the optimisations) or `"post-scheduler"`.
    - `platforms`: `"cpu"`, `"gpu"`, `"tpu"`, the name of another plugin, or several; None for all
      that are installed.
    - `modules`: a regular expression; only modules in whose name it is found (`jit_f` for a
      function `f`) are given to the pass.
    - `on_error`: `"raise"` ends the compilation by an error that holds the pass's; `"skip"` warns
      and goes on with the module as it was.
    - `verify`: whether the module is checked before it goes back.
    - `keep`: whether `runs` keeps the modules before and after.
    - `recompile`: whether programs compiled before are compiled anew when called next.

    A second registration of a name at a stage replaces the first. While a pass is registered, JAX's
    compilation cache on disk is off, as its keys do not know the pass.

    Raises `HloError`: HLO0400 to HLO0402 for a wrong pipeline, HLO0601 for a stage, platform or
    pass there is not, HLO0606 where this jaxlib has no way in.
    """
    require("jax", "jax", "register_pass")
    stage = choose("stage", getattr(stage, "name", stage), STAGES)
    on_error_ = choose("on_error", on_error, ("raise", "skip"))
    wanted = _platforms(platforms)
    name = name or title_of(passes)
    try:
        pattern = None if modules is None else re.compile(modules)
    except re.error as problem:
        raise error("HLO0601", f"modules={modules!r} is no regular expression: {problem}") from None
    hook = Hook(name, steps_of(passes), pattern, on_error_ == "skip", verify, keep)
    former = _registered.get((name, stage))
    if former is not None:
        former.unregister()
    undo: list[Callable[[], object]] = []
    try:
        for platform in wanted:
            undo.append(_enter(platform, f"mlirhlo:{name}", stage, hook))
    except HloError:
        for step in undo:
            step()
        raise
    _cache_off()
    registered = RegisteredPass(name, stage, wanted, hook, undo, recompile)
    _registered[name, stage] = registered
    if recompile:
        _forget_programs()
    return registered


def registered_passes() -> tuple[RegisteredPass, ...]:
    """The passes that are registered now."""
    return tuple(_registered.values())


def transformed(proto: bytes, platform: str) -> bytes:
    """A serialised module after the passes that are registered for one of this
    compiler's platforms. Raises what a pass does."""
    for one in registered_passes():
        if one.hook.is_active and platform in one.platforms:
            proto = one.hook(proto, one.stage) or proto
    return proto


def _platforms(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Platforms under one name each; the three names of GPUs are one."""
    bridge = require("jax._src.xla_bridge", "jax", "register_pass")
    # JAX looks for plugins when it first needs a device, which may be later.
    plugins = (*getattr(bridge, "_backend_factories", {}), *PLATFORMS)
    if given is None:
        names = ["cpu", *plugins]
    else:
        known = ("cpu", *_GPU, "tpu", *plugins)
        names = [
            choose("platform", one, known) for one in ([given] if isinstance(given, str) else given)
        ]
    return tuple(dict.fromkeys("gpu" if one in _GPU else one for one in names))


def _enter(platform: str, name: str, stage: str, hook: Hook) -> Callable[[], object]:
    """Registers a hook with the compiler of one platform; returns what takes it out."""

    def callback(data: bytes) -> bytes | None:
        return hook(data, stage)

    if platform in PLATFORMS:
        return lambda: None  # this compiler asks for the passes itself, in front of its own
    number = STAGES.index(stage)
    # The plugin's own door serves compilation without a device too, which JAX's does not.
    if platform in ("gpu", "tpu") and (plugin := plugin_transforms(platform)) is not None:
        plugin.register(name, number, callback)
        return lambda: plugin.clear(name, number)
    xla = _jax_hook()
    jax_stage = xla.PipelineStage(number)
    names = list(_GPU) if platform == "gpu" else [platform]
    xla.register_hlo_module_transformation(callback, name=name, stage=jax_stage, platforms=names)

    def leave() -> None:
        # Clearing a plugin's pass would start every backend; its hook is switched off instead.
        if platform == "cpu":
            xla.clear_hlo_module_transformation(name, jax_stage, "cpu")

    return leave


def _jax_hook() -> Any:
    """`jax.extend.xla`. Raises `HloError` HLO0606 where this JAX has none."""
    try:
        xla = require("jax.extend.xla", "jax", "register_pass")
    except HloError:
        xla = None
    native = require("jax._src.lib", "jax", "register_pass")
    if xla is None or getattr(native, "_xla", None) is None:
        version = require("jax", "jax", "register_pass").__version__
        raise error(
            "HLO0606",
            f"JAX {version} offers no way into its compiler",
            help="pip install 'jax>=0.10.2' 'jaxlib>=0.10.2'",
        )
    return xla


def _forget_programs() -> None:
    require("jax", "jax", "register_pass").clear_caches()


_switched_off: list[bool] = []
"""Holds an entry while the cache on disk is off because of us."""


def _cache_off() -> None:
    """Switches JAX's cache on disk off: its keys do not know the pass."""
    jax = require("jax", "jax", "register_pass")
    if jax.config.jax_enable_compilation_cache:
        _switched_off.append(True)
        _switch_cache(False)


def _cache_on_again() -> None:
    """Switches it on again when no pass is left, if it was on."""
    if _switched_off and not _registered:
        _switched_off.clear()
        _switch_cache(True)


def _switch_cache(is_on: bool) -> None:
    require("jax", "jax", "register_pass").config.update("jax_enable_compilation_cache", is_on)
    # JAX decides once whether it uses the cache.
    require(
        "jax.experimental.compilation_cache.compilation_cache", "jax", "register_pass"
    ).reset_cache()
