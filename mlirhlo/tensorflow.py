"""TensorFlow's programs, run here; `load` needs no TensorFlow, `jit` does.

    >>> import tensorflow as tf
    >>> from mlirhlo.tensorflow import jit
    >>> jit(lambda x: tf.nn.relu(x) * 2)(tf.constant([-1.0, 3.0]))
    array([0., 6.], dtype=float32)

`docs/integrations.md` shows all of it. `jit` raises `HloError` HLO0600 without TensorFlow.
"""

from __future__ import annotations

from mlirhlo.integrations.tensorflow.functions import (
    STAGES,
    JittedFunction,
    Program,
    jit,
    load,
)
from mlirhlo.integrations.tensorflow.keras import compile_model

__all__ = ["STAGES", "JittedFunction", "Program", "compile_model", "jit", "load"]
