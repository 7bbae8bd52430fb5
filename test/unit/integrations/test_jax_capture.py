"""Every stage of a program in the real compiler, as objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError

pytestmark = pytest.mark.oracle

jax = pytest.importorskip("jax")
jnp = jax.numpy

X = np.linspace(0, 2, 12, dtype=np.float32).reshape(3, 4)


def program(x: Any, *, scale: Any) -> Any:
    return jnp.tanh(x @ x.T) * scale + 0.0


def test_every_stage_computes_the_same() -> None:
    from mlirhlo.jax import capture

    captured = capture(program)(X, scale=2.0)
    expected = np.tanh(X @ X.T) * 2
    assert "stablehlo.tanh" in {op.name for op in captured.stablehlo.walk()}
    assert "func.func public @main" in captured.lowered.as_text()
    assert "tanh" in str(captured.jaxpr)
    names = {stage.after for stage in captured.passes}
    assert {"pipeline-start", "fusion"} <= names
    assert [stage.number for stage in captured.passes] == sorted(s.number for s in captured.passes)
    modules = [captured.hlo, captured.optimized, *(stage.module for stage in captured.passes)]
    assert len(modules) > 10
    for module in modules:
        np.testing.assert_allclose(module(*captured.arguments), expected, 1e-5)
    assert captured.after("fusion").text.startswith("HloModule jit_program")
    assert any(name.endswith(".ll") for name in captured.files)
    assert captured.optimized.hlo.is_scheduled


def test_chosen_passes_and_shapes_only() -> None:
    from mlirhlo.jax import capture

    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    captured = capture(program, passes="fusion")(shape, scale=2.0)
    assert captured.arguments == ()
    assert {"fusion"} <= {stage.after for stage in captured.passes}
    assert len(captured.passes) < 6
    assert not capture(program, passes=False)(X, scale=1.0).passes
    with pytest.raises(HloError, match="no dump after a pass 'fusio'"):
        captured.after("fusio")
    with pytest.raises(HloError, match="unknown compile option"):
        capture(program, options={"xla_foo_bar": 1})(X, scale=1.0)
