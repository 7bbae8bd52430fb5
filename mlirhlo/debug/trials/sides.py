"""What runs a module: a platform, passes before it, or a command.

Interpreter            the interpreter
Interpreter:gpu        the interpreter, after the passes of a platform (`cpu`, `gpu`, `tpu`)
CPU:algsimp,dce        machine code, after two passes
CUDA                   the simulated GPU
XLA                    the real XLA of JAX, on the CPU
command:CMD            `CMD MODULE INPUTS.npz OUTPUTS.npz`
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from mlirhlo.debug.trials.texts import module_text
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.formats import write_file
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import replay
    from mlirhlo.formats import arrays
    from mlirhlo.interp import values
    from mlirhlo.rewrites import pipeline as rewrites_pipeline
    from mlirhlo.rewrites import pipelines
    from mlirhlo.runtime import programs


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

Array: TypeAlias = np.ndarray[Any, Any]

PLATFORMS = {"interpreter": "interpreter", "cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "xla": "XLA"}
"""Names of users, and those of `mlirhlo.runtime.programs`."""
PIPELINES = ("cpu", "gpu", "tpu")
_COMMAND = "command:"


@dataclass(frozen=True, slots=True)
class Side:
    """One way to run a module."""

    name: str
    """As the user wrote it."""
    platform: str
    """A platform of `mlirhlo.runtime.programs`; empty for a command."""
    passes: str = ""
    command: str = ""

    @staticmethod
    def parse(text: str) -> Side:
        """Raises `HloError` HLO0860 for what is no side."""
        if text.startswith(_COMMAND):
            return Side(text, "", command=text.removeprefix(_COMMAND))
        name, _, passes = text.partition(":")
        platform = PLATFORMS.get(name.strip().lower())
        if platform is None:
            raise error(
                "HLO0860",
                f"'{text}' is no side of a comparison",
                help="sides are Interpreter, CPU, CUDA, XLA, each with passes as in CPU:algsimp,dce, and command:CMD",
            )
        return Side(text, platform, passes.strip())

    def pipeline(self) -> Sequence[ModulePass]:
        """Passes that run before the platform. Raises `HloError` HLO0400 to HLO0402."""
        if not self.passes:
            return ()
        return (
            pipelines.pipelines_of(self.passes)
            if self.passes in PIPELINES
            else rewrites_pipeline.parse_pipeline(self.passes)
        )

    def run(self, module: ModuleOp, arguments: Sequence[Any]) -> list[Array]:
        """Arrays of the result, of all devices. The module may be changed. Raises `HloError`."""
        if self.passes:
            rewrites_pipeline.run_pipeline(module, self.pipeline())
        if self.command:
            return self._commanded(module, arguments)
        return execute(module, arguments, self.platform)

    def _commanded(self, module: ModuleOp, arguments: Sequence[Any]) -> list[Array]:
        with tempfile.TemporaryDirectory(prefix="hlo-side-") as folder:
            program, given, results = (
                os.path.join(folder, n) for n in ("module.hlo", "in.npz", "out.npz")
            )
            write_file(program, module_text(module).encode("utf-8", "surrogateescape"))
            view = HloModule(module)
            shape = TupleShape(tuple(p.shape for p in view.entry.parameters))
            arrays.write_npz(given, "in", [values.arrays_of(cast(Any, tuple(arguments)))], shape)
            done = subprocess.run(
                [*shlex.split(self.command), program, given, results],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                check=False,
            )
            if done.returncode or not os.path.exists(results):
                said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
                what = f"'{self.command}' ended with {done.returncode}"
                raise error("HLO0861", f"{what}: {said[0] if said else 'no results'}")
            return list(arrays.read_npz(results).leaves("out", [view.entry.root.shape], None))


def execute(module: ModuleOp, arguments: Sequence[Any], platform: str) -> list[Array]:
    """Arrays of a module's result on a platform; on all devices, where the interpreter simulates several."""
    if platform == "interpreter":
        inputs = replay.inputs_from_values(module, [arguments])
        return [a for value in replay.run(module, inputs) for a in values.arrays_of(value)]

    program = programs.prepare(module, platform)
    return [np.asarray(a) for a in values.arrays_of(program(arguments))]
