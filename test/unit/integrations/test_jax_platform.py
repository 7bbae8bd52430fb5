"""JAX on this compiler as a platform gives what it gives on XLA:CPU."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

pytest.importorskip("jax")

PROGRAMS = Path(__file__).with_name("jax_platform_programs.py")
GROUPS = ("values", "buffers", "callbacks", "programs", "devices")


def lines_of(platform: str, *groups: str) -> dict[str, str]:
    env = {**os.environ, "JAX_PLATFORMS": platform, "JAX_NUM_CPU_DEVICES": "4"}
    command = [sys.executable, str(PROGRAMS), *groups]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.partition(": ") for line in done.stdout.splitlines()]
    return {name: value for name, _, value in lines}


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    return lines_of("cpu", *GROUPS)


def agree(found: dict[str, str], expected: dict[str, str]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert near(value, found[name]), (name, value, found[name])


def near(left: str, right: str) -> bool:
    """Equal text, or numbers within a few roundings of f32."""
    if left == right:
        return True
    return _near(ast.literal_eval(left), ast.literal_eval(right))


def _near(left: object, right: object) -> bool:
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(_near, left, right))
    if isinstance(left, (float, complex)) and isinstance(right, (float, complex)):
        return bool(np.isclose(left, right, rtol=2e-5, atol=1e-5, equal_nan=True))
    return left == right


def test_machine_code_gives_what_xla_gives(expected: dict[str, str]) -> None:
    agree(lines_of("mlirhlo", *GROUPS), expected)


def test_the_interpreter_gives_what_xla_gives(expected: dict[str, str]) -> None:
    groups = ("values", "callbacks")
    wanted = {n: v for n, v in expected.items() if n.startswith(groups)}
    agree(lines_of("mlirhlo_interpreter", *groups), wanted)
