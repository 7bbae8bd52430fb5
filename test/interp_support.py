"""What the interpreter's tests share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module
from mlirhlo.interp.device_counts import machine_for
from mlirhlo.interp.machine import Machine
from mlirhlo.interp.values import results_of

PLATFORM = os.environ.get("MLIRHLO_TEST_PLATFORM", "interpreter")
"""`cpu`: these tests compile their programs, and so hold machine code against what they expect."""


def run(text: str, *inputs: Any, **options: Any) -> list[np.ndarray]:
    """Outputs of a module, every result held against its declared shape."""
    module = parse_module(text, "m.hlo")
    if PLATFORM == "cpu":
        return compiled(module, *inputs, **options)
    return run_module(module, inputs, check=True, **options)


def compiled(
    module: ModuleOp,
    *inputs: Any,
    machine: Machine | None = None,
    replica: int = 0,
    partition: int = 0,
) -> list[np.ndarray]:
    """Outputs of a module as machine code."""
    from mlirhlo.runtime.compiler import compile_module

    executable = compile_module(module, cached=False)
    machine = machine or machine_for(module)
    if machine.must_run_all(HloModule(module)):
        every = machine.run_devices(lambda r, p: executable.run_on(machine, r, p, inputs))
        value = every[machine.device(replica, partition)]
    else:
        value = executable.run_on(machine, replica, partition, inputs)
    return results_of(value)


def one(line: str, parameters: Sequence[str], *inputs: Any, computations: str = "") -> Any:
    """Output of one instruction `shape opcode(p0, p1), …`; a list when there are several."""
    given = "".join(f"  p{i} = {shape} parameter({i})\n" for i, shape in enumerate(parameters))
    out = run(f"HloModule m\n{computations}ENTRY e {{\n{given}  ROOT r = {line}\n}}\n", *inputs)
    return out[0] if len(out) == 1 else out


def adder(name: str, opcode: str = "add") -> str:
    """A reducer `f` of an element type."""
    return (
        f"f {{\n  a = {name}[] parameter(0)\n  b = {name}[] parameter(1)\n"
        f"  ROOT r = {name}[] {opcode}(a, b)\n}}\n"
    )
