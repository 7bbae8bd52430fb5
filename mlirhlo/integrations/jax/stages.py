"""`capture`: every stage of a function on its way through the real compiler, as objects.

The compiler writes its dumps to a folder of ours for this one compilation (its own options ask
for them, no environment variable does); they are read back, and the folder is taken away.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlirhlo
from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE
from mlirhlo.integrations.jax.compiled import Lowered
from mlirhlo.integrations.jax.functions import JittedFunction, jit
from mlirhlo.integrations.jax.options import OptionValue, check_options
from mlirhlo.integrations.optional import require

with LATE:
    from mlirhlo.integrations.jax import hook, plugin, transforms


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo import Module

_STAGE_FILE = re.compile(
    r"module_\d+\.(?P<module>.+?)\.(?:cl_\d+\.)?(?P<number>\d{4,})\.(?P<pipeline>[^.]+)"
    r"\.after_(?P<after>.+?)(?:\.before_(?P<before>.+))?\.txt"
)
"""Source: dumps reference, names of the files of `--xla_dump_hlo_pass_re`."""

_FILE = re.compile(r"module_\d+\.(?P<module>.+)")


@dataclass(frozen=True, slots=True)
class PassStage:
    """The module between two passes of the compiler."""

    number: int
    """Its place among the dumps."""
    pipeline: str
    after: str
    """Pass that ran before it; `pipeline-start` for none."""
    before: str
    """Pass that runs next; `pipeline-end` for none, and empty where the dump does not say."""
    text: str = field(repr=False)
    """HLO text, with constants in full."""

    @property
    def module(self) -> Module:
        """A new module of ours."""
        return mlirhlo.parse(self.text, "hlo")


@dataclass(eq=False, repr=False)
class Capture:
    """All stages of one program."""

    lowered: Lowered
    arguments: tuple[Any, ...]
    """What the modules' parameters are: numpy arrays in order. Empty for shapes without values."""
    optimized_text: str
    """The compiler's module after all passes; constants in full."""
    passes: tuple[PassStage, ...]
    """The module between the passes that were asked for, in order."""
    files: Mapping[str, bytes]
    """Everything else the compiler dumped, by the end of its name: buffer assignments, LLVM IR."""
    executable: Any
    """JAX's own object: `jax.stages.Compiled`."""

    @property
    def jaxpr(self) -> Any:
        """The function as JAX traced it."""
        return self.lowered.jaxpr

    @cached_property
    def stablehlo(self) -> ModuleOp:
        """The program as JAX lowered it; `lowered.as_text()` is its text."""
        return self.lowered.stablehlo()

    @cached_property
    def hlo(self) -> Module:
        """The module before optimisations."""
        return self.lowered.hlo()

    @cached_property
    def optimized(self) -> Module:
        """The compiler's module after all passes."""
        return mlirhlo.parse(self.optimized_text, "hlo")

    def after(self, name: str) -> PassStage:
        """The module after the last run of a pass. Raises `HloError` HLO0601 when there is none."""
        for stage in reversed(self.passes):
            if stage.after == name:
                return stage
        near = ", ".join(dict.fromkeys(stage.after for stage in self.passes))
        raise error("HLO0601", f"no dump after a pass {name!r}", help=f"there are {near or 'none'}")

    def __repr__(self) -> str:
        name, count = self.hlo.name, len(self.passes)
        return f"<mlirhlo.jax.Capture of {name!r}: {count} dumps, {len(self.files)} other files>"


def capture(
    function: Callable[..., object],
    *,
    passes: str | bool = True,
    options: Mapping[str, OptionValue] | None = None,
    topology: str | None = None,
    **jit_options: Any,
) -> Callable[..., Capture]:
    """`capture(f)(*args)` compiles `f` for arguments like these and returns all its stages.

    - `passes`: a regular expression of passes to dump the module around; True for all, False for
      none.
    - `options`: XLA's flags without dashes, as in `Lowered.compile`.
    - `topology`: compiles for a device that need not be there: TPUs by name (`"v5e:2x2"`; needs
      libtpu), a GPU by the file that describes it (`….gpu_target_config.pbtxt`, which XLA dumps;
      needs JAX's CUDA plugin).
    - `jit_options`: as in `jit`.

    Nothing is executed. Raises `HloError` HLO0600 without JAX or libtpu, HLO0602 for an unknown
    option, and the error of a registered pass that failed in the compiler.
    """
    jitted = function if isinstance(function, JittedFunction) else jit(function, **jit_options)
    pattern = passes if isinstance(passes, str) else ".*" if passes else ""

    def captured(*args: object, **kwargs: object) -> Capture:
        arguments: tuple[Any, ...] = ()
        if topology is None:
            lowered = jitted.lower(*args, **kwargs)
            if not _has_shapes_only((args, kwargs)):
                arguments = tuple(lowered.compile(platform="XLA").flat_arguments(*args, **kwargs))
        else:
            lowered = _lower_for(topology, jitted, args, kwargs)
        return _compiled(lowered, arguments, pattern, check_options(options))

    return captured


def _has_shapes_only(tree: object) -> bool:
    jax = require("jax", "jax", "capture")
    return any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves(tree))


def _compiled(
    lowered: Lowered, arguments: Sequence[Any], pattern: str, options: dict[str, OptionValue]
) -> Capture:
    with tempfile.TemporaryDirectory(prefix="mlirhlo-") as folder:
        dumps: dict[str, OptionValue] = {
            "xla_dump_to": folder,
            "xla_dump_hlo_as_text": True,
            "xla_dump_large_constants": True,
        }
        if pattern:
            dumps["xla_dump_hlo_pass_re"] = pattern
        executable = compile_by_xla(lowered.lowered, {**dumps, **options})
        stages, files = _read(Path(str(options.get("xla_dump_to", folder))), _name(lowered))
    text = files.get("after_optimizations.txt")
    optimized = executable.as_text() if text is None else text.decode("utf-8", "surrogateescape")
    return Capture(lowered, tuple(arguments), optimized, stages, files, executable)


def _name(lowered: Lowered) -> str:
    return hook.name_of(lowered.hlo_proto())


def _read(folder: Path, module: str) -> tuple[tuple[PassStage, ...], dict[str, bytes]]:
    """The dumps of `module` in a folder; programs that JAX compiled on the way stay out."""
    stages: list[PassStage] = []
    files: dict[str, bytes] = {}
    for path in sorted(folder.iterdir()):
        match = _STAGE_FILE.fullmatch(path.name)
        if match is not None and match["module"] == module:
            text = path.read_text("utf-8", "surrogateescape")
            before = match["before"] or ""
            number = int(match["number"])
            stages.append(PassStage(number, match["pipeline"], match["after"], before, text))
        elif match is None and path.is_file() and (match := _FILE.fullmatch(path.name)):
            if match["module"].startswith(f"{module}."):
                rest = match["module"].removeprefix(f"{module}.")
                name = re.sub(r"^cl_\d+\.|^(cpu|gpu|tpu|sm_[\d.]+_gpu|TPU)_(?=after_)", "", rest)
                files[name] = path.read_bytes()
    return tuple(sorted(stages, key=lambda stage: stage.number)), files


def compile_by_xla(lowered: Any, options: Mapping[str, OptionValue]) -> Any:
    """JAX's executable. An error of a registered pass is raised as it was, not as JAX's."""
    passes = transforms.registered_passes()
    before = [len(one.errors) for one in passes]
    try:
        return lowered.compile(compiler_options=dict(options) or None)
    except Exception as problem:
        for one, count in zip(passes, before, strict=True):
            if len(one.errors) > count and one.hook.ends_compilation:
                raise one.errors[-1] from None
        raise _refused(problem) from problem


def _refused(problem: Exception) -> Exception:
    """XLA's refusal of an option, with our code; other errors as they are."""
    message = str(problem)
    if "compile option" in message or "While setting option" in message:
        return error("HLO0602", message.removeprefix("INVALID_ARGUMENT: "))
    return problem


def optimized_module(executable: Any) -> Module:
    """The module after all of the compiler's passes."""
    try:
        modules = executable.runtime_executable().hlo_modules()
        return mlirhlo.load(modules[0].as_serialized_hlo_module_proto(), "pb")
    except (AttributeError, IndexError, HloError):
        return mlirhlo.parse(executable.as_text(), "hlo")


def _lower_for(
    topology: str, jitted: JittedFunction, args: tuple[object, ...], kwargs: dict[str, object]
) -> Lowered:
    """Lowers for the first device of a topology that is not there."""
    import numpy as np

    jax = require("jax", "jax", "capture")
    topologies = require("jax.experimental.topologies", "jax", "capture")
    is_gpu = Path(topology).is_file()
    if not is_gpu:
        require("libtpu", "tpu", "compiling for TPUs")
        plugin.prepare_tpu()
    try:
        if is_gpu:
            described = {"target_config": Path(topology).read_text(), "topology": "1x1x1"}
            found = topologies.get_topology_desc(platform="cuda", **described)
        else:
            found = topologies.get_topology_desc(platform="tpu", topology_name=topology)
    except Exception as problem:  # noqa: BLE001 - the compiler reports by many types
        raise error(
            "HLO0601",
            f"unknown topology {topology!r}: {problem}",
            help="known are such as v4:2x2x1, v5e:2x2, v5p:2x2x1, v6e:2x2, or a GPU's target config",
        ) from None
    mesh = jax.sharding.Mesh(np.array(found.devices[:1]), ("device",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def placed(value: Any) -> Any:
        like = jax.eval_shape(lambda x: x, value)  # pyright: ignore[reportUnknownLambdaType]
        return jax.ShapeDtypeStruct(like.shape, like.dtype, sharding=sharding)

    platform = "cuda" if is_gpu else "tpu"
    return jitted.lower_placed(platform, placed, sharding, args, kwargs)
