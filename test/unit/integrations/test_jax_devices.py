"""The compilers for TPUs and GPUs, which need no such device, run our passes too."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from support import ROOT, SHARED

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

H100 = SHARED / "reference/dump_samples/gpu_default/module_0001.jit_mlp.gpu_target_config.pbtxt"

needs_tpu = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None, reason="libtpu is not installed"
)
needs_gpu = pytest.mark.skipif(
    importlib.util.find_spec("jax_plugins") is None or not H100.is_file(),
    reason="JAX's CUDA plugin is not installed, or there is no shared data",
)

PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
from mlirhlo.jax import capture, register_pass

def f(x, y):
    return jnp.sin(x * y) * x

def add_instead(module):
    return module.as_text().replace(" multiply(", " add(")

def broken(module):
    raise ValueError("no dot")

x = jax.ShapeDtypeStruct((8, 128), np.float32)
platform, topology, fusion = sys.argv[1:]
compile = capture(f, topology=topology)
for stage in ("pre-scheduler", "post-scheduler"):
    with register_pass(add_instead, stage, platform) as registered:
        captured = compile(x, x)
    count = captured.optimized_text.count
    print(stage, [(r.module_name, r.changed) for r in registered.runs],
          count(" multiply("), count(" add("))
    for s in captured.passes:
        if "apply-xla-transforms" in s.after:
            print(s.pipeline, s.text.count(" multiply("), s.text.count(" add("))
captured = compile(x, x)
print("none", captured.optimized_text.count(" multiply("), len(captured.passes) > 20)
print(captured.after(fusion).module.name)
with register_pass(broken, platforms=platform):
    try:
        compile(x, x)
    except Exception as problem:
        print(problem)
"""


def lines_of(platform: str, topology: str, fusion: str) -> list[str]:
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, platform, topology, fusion]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@needs_tpu
def test_passes_run_in_the_tpu_compiler() -> None:
    lines = lines_of("tpu", "v5e:2x2", "tpu_fusion")
    assert lines[:6] == [
        "pre-scheduler [('jit_f', True)] 0 2",
        "apply_xla_transforms_pre_scheduling 0 2",
        "post-scheduler [('jit_f', True)] 0 2",
        "async_scheduling 0 2",
        "none 2 True",
        "jit_f",
    ]
    assert "error[HLO0604]: pass 'broken' on module 'jit_f'" in lines[6]


@needs_gpu
def test_passes_run_in_the_gpu_compiler() -> None:
    lines = lines_of("gpu", str(H100), "priority-fusion")
    assert lines[:6] == [
        "pre-scheduler [('jit_f', True)] 0 2",
        "optimization 0 2",
        "post-scheduler [('jit_f', True)] 0 2",
        "post-scheduler-xla-transforms 0 2",
        "none 2 True",
        "jit_f",
    ]
    assert "error[HLO0604]: pass 'broken' on module 'jit_f'" in lines[6]
