"""What the interpreter's tests share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_module


def run(text: str, *inputs: Any, **options: Any) -> list[np.ndarray]:
    """Outputs of a module, every result held against its declared shape."""
    return run_module(parse_module(text, "m.hlo"), inputs, check=True, **options)


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
