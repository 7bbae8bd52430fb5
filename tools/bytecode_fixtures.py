#!/usr/bin/env python3
"""Renews the binary fixtures in test/data/bytecode with jaxlib (and flatbuffers, for `jax.export`).

    tools/bytecode_fixtures.py

For each of some StableHLO versions: one portable artifact of all functions of `ops.mlir` that this
version can express. For each version of the container: one small module. And what `jax.export` writes
with the oldest and the newest calling convention.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

VERSIONS = ("0.9.0", "0.11.0", "0.14.0", "1.0.0", "1.8.0", "1.17.0")

SMALL = """
#loc = loc("f.py":1:2)
module @small attributes {a.list = [1 : i8, -2.5 : f32, "x", @s, unit, tensor<?x2xf16>]} {
  func.func public @main(%a: tensor<4xf32> {a.b = true}, %p: i1) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc("f.py":3:4 to 5:6)
    %1 = stablehlo.add %a, %0 {n = array<i64: 1, 2>} : tensor<4xf32> loc("name"(#loc))
    %2:2 = "x.y"(%1, %1) ({
    ^bb0(%c: tensor<4xf32>):
      "x.br"(%1)[^bb1] : (tensor<4xf32>) -> ()
    ^bb1:
      "x.end"(%c) : (tensor<4xf32>) -> ()
    }) {t = #x.attr<[1, 2]>, u = !x.type} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, i1)
    return %2#0 : tensor<4xf32> loc(callsite(#loc at fused<"m">["u", unknown]))
  }
}
"""


def main() -> int:
    """Writes the files."""
    import mlir_oracle

    folder = ROOT / "test" / "data" / "bytecode"
    functions = mlir_oracle.functions()
    for version in VERSIONS:
        able = [  # the callee stands on its own
            text.partition("\n\n")[0]
            for text in functions.values()
            if mlir_oracle.artifact(text, version) is not None
        ]
        data = mlir_oracle.artifact("\n".join(able), version)
        assert data is not None
        (folder / f"ops_{version}.mlirbc").write_bytes(data)
    for number in range(7):
        (folder / f"small_v{number}.mlirbc").write_bytes(mlir_oracle.bytecode(SMALL, number))
    _exports(folder)
    return 0


def _exports(folder: Path) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import export

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")  # no folder of ours

    def function(x: jax.Array, y: jax.Array, unused: jax.Array) -> dict[str, jax.Array]:
        return {"a": jnp.sin(x) @ y, "b": (x > 0).sum()}

    arguments = (np.ones((3, 4), np.float32), np.ones((4, 2), np.float32), np.ones(3, np.int8))
    oldest = export.minimum_supported_calling_convention_version
    newest = export.maximum_supported_calling_convention_version
    for convention in (oldest, newest):
        jax.config.update("jax_export_calling_convention_version", convention)
        made = export.export(jax.jit(function), platforms=["cpu", "tpu"])(*arguments)
        data = bytes(made.serialize(vjp_order=1))
        name = "oldest" if convention == oldest else "newest"
        (folder / f"jax_export_{name}.bin").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
