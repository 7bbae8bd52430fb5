"""Keras models whose steps run here: the counterpart of `model.compile(jit_compile=True)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlirhlo.integrations.tensorflow.clustered import auto_cluster
from mlirhlo.integrations.tensorflow.functions import jit

_STEPS = ("train_step", "test_step", "predict_step")
"""Methods that Keras calls for each batch of `fit`, `evaluate` and `predict`."""


def compile_model(
    model: Any,
    *args: Any,
    platform: str | None = None,
    options: Mapping[str, object] | None = None,
    auto_jit: bool = False,
    **settings: Any,
) -> Any:
    """`model.compile(…, jit_compile=True)` with this compiler: `fit`, `evaluate` and `predict` run here.

    `args`, `settings`: those of `model.compile`, except `jit_compile` and `run_eagerly`. `platform`,
    `options`: as in `jit`. `auto_jit`: steps under auto-clustering, as `auto_cluster` does, which leaves
    to TensorFlow what cannot be compiled. Returns the model. Raises as `jit` and `auto_cluster` do; a
    step that cannot be compiled raises when it is first called.
    """
    kind: Any = model.__class__
    model.compile(*args, **settings, jit_compile=False, run_eagerly=True)
    for name in _STEPS:
        step = getattr(kind, name).__get__(model)
        if auto_jit:
            compiled = auto_cluster(step, platform=platform, options=options)
        else:
            compiled = jit(step, platform=platform, options=options, results="tensorflow")
        setattr(model, name, compiled)
    return model
