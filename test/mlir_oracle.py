"""jaxlib's MLIR as the judge of bytecode and portable artifacts."""

from __future__ import annotations

import io
import re
from typing import Any

from support import DATA

OPS = DATA / "bytecode" / "ops.mlir"
"""A function for each operation of StableHLO."""


def context() -> Any:
    """A context with the dialects of JAX."""
    from jax._src.interpreters import mlir  # type: ignore[attr-defined]
    from jax._src.lib import tpu  # type: ignore[attr-defined]

    made = mlir.make_ir_context()
    tpu.register_dialect(made)
    made.allow_unregistered_dialects = True
    return made


def parse(source: str | bytes) -> Any:
    """A module from text or bytecode, in a context of its own."""
    from jaxlib.mlir import ir

    with context():
        return ir.Module.parse(source)


def bytecode(text: str, version: int = 6) -> bytes:
    """The bytecode that MLIR writes of a text."""
    out = io.BytesIO()
    module = parse(text)
    with module.context:
        module.operation.write_bytecode(out, desired_version=version)
    return out.getvalue()


def printed(source: str | bytes) -> str:
    """A module as MLIR prints it, with locations."""
    return str(parse(source).operation.get_asm(enable_debug_info=True))


def artifact(text: str, version: str) -> bytes | None:
    """The portable artifact that StableHLO writes of a text; None where it refuses."""
    from jaxlib.mlir.dialects import stablehlo

    module = parse(text)
    with module.context:
        # Versions before 1.11.0 get no dialects they do not know, even where the writer would mix.
        new = tuple(map(int, version.split("."))) >= (1, 11, 0)
        for mixed in (False, True) if new else (False,):
            try:
                data = stablehlo.serialize_portable_artifact(
                    module, version, allow_other_dialects=mixed
                )
            except (RuntimeError, ValueError):
                continue
            return bytes(data)
        return None


def deserialized(data: bytes) -> str:
    """The program in a portable artifact, as StableHLO reads it."""
    from jaxlib.mlir.dialects import stablehlo

    with context() as made:
        return str(stablehlo.deserialize_portable_artifact(made, data))


def functions() -> dict[str, str]:
    """The functions of `OPS` by name, each a module that stands alone."""
    texts = re.split(r"\n\n(?=func\.func)", OPS.read_text().strip())[1:]
    named: dict[str, str] = {}
    for text in texts:
        match = re.search(r"@(\w+)\(", text)
        assert match is not None
        named[match[1]] = text
    callee = named["callee"]
    return {
        name: text if "@callee" not in text or name == "callee" else f"{text}\n\n{callee}"
        for name, text in named.items()
    }
