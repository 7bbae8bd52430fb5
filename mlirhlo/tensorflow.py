"""TensorFlow's programs, run here; `load` needs no TensorFlow, `jit` and `auto_cluster` do.

    >>> import tensorflow as tf
    >>> from mlirhlo.tensorflow import jit
    >>> jit(lambda x: tf.nn.relu(x) * 2)(tf.constant([-1.0, 3.0]))
    array([0., 6.], dtype=float32)

`docs/integrations.md` shows all of it. `jit` raises `HloError` HLO0600 without TensorFlow.
"""

from __future__ import annotations

from mlirhlo.integrations.tensorflow.clustered import ClusteredFunction, auto_cluster
from mlirhlo.integrations.tensorflow.clustering.files import mark_for_compilation
from mlirhlo.integrations.tensorflow.functions import (
    STAGES,
    JittedFunction,
    Program,
    jit,
    load,
)
from mlirhlo.integrations.tensorflow.keras import compile_model

__all__ = [
    "STAGES", "ClusteredFunction", "JittedFunction", "Program", "auto_cluster", "compile_model", "jit", "load",
    "mark_for_compilation",
]  # fmt: skip
