"""The TPU compiler, which needs no TPU, runs our passes too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from support import ROOT

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"
    ),
]

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from mlirhlo.jax import capture, register_pass

def f(x, y):
    return jnp.sin(x * y) * x

def add_instead(module):
    return module.as_text().replace(" multiply(", " add(")

def broken(module):
    raise ValueError("no dot")

x = jax.ShapeDtypeStruct((8, 128), np.float32)
compile = capture(f, topology="v5e:2x2")
for stage in ("pre-scheduler", "post-scheduler"):
    with register_pass(add_instead, stage, "tpu") as registered:
        captured = compile(x, x)
    count = captured.optimized_text.count
    print(stage, [(r.module_name, r.changed) for r in registered.runs],
          count(" multiply("), count(" add("))
    for s in captured.passes:
        if "apply-xla-transforms" in s.after:
            print(s.pipeline, s.text.count(" multiply("), s.text.count(" add("))
captured = compile(x, x)
print("none", captured.optimized_text.count(" multiply("), len(captured.passes) > 20)
print(captured.after("tpu_fusion").module.name)
with register_pass(broken, platforms="tpu"):
    try:
        compile(x, x)
    except Exception as problem:
        print(problem)
"""


def test_passes_run_in_the_tpu_compiler() -> None:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, timeout=300
    )
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "pre-scheduler [('jit_f', True)] 0 2",
        "apply_xla_transforms_pre_scheduling 0 2",
        "post-scheduler [('jit_f', True)] 0 2",
        "async_scheduling 0 2",
        "none 2 True",
    ], done.stderr
    assert lines[5] == "jit_f"
    assert "error[HLO0604]: pass 'broken' on module 'jit_f'" in lines[6]
