"""Modules as text and back: HLO, StableHLO, and kernels of the `tpu` dialect."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.formats import load, to_bytes
from mlirhlo.formats.hlo_text import PrintOptions
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats import mosaic


_KERNEL = re.compile(r"(?:#|\b)tpu\.|\bvector\.|\bmemref\.|\bstable_mosaic\.")


def read_module(data: bytes, name: str) -> ModuleOp:
    """The module in a file of any format; kernels too. Raises `HloError`."""
    if not data.startswith(b"HloModule") and is_kernel(
        text := data.decode("utf-8", "surrogateescape")
    ):
        return mosaic.parse_kernel(text, name)
    return load(data, name=name).module


def is_kernel(text: str) -> bool:
    """Whether a text is a kernel of the `tpu` dialect, and no program that holds one."""
    start = text[:20_000]
    return "func.func" in start and "stablehlo." not in start and _KERNEL.search(start) is not None


def is_hlo(module: ModuleOp) -> bool:
    """Whether a module is one of HLO."""
    return any(op.name == "hlo.computation" for op in module.ops)


def module_text(module: ModuleOp) -> str:
    """A module as text with all constants in full, in the dialect that it is of."""
    if is_hlo(module):
        data = to_bytes(module, "hlo", options=PrintOptions(large_constants=True))
    elif any(op.name.startswith(("tpu.", "vector.", "memref.")) for op in module.walk()):
        return mosaic.print_kernel(module)
    else:
        data = to_bytes(module, "mlir")
    return data.decode("utf-8", "surrogateescape")
