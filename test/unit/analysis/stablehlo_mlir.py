"""Asks MLIR's verifier about programs, in a process of its own: some broken ones crash it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

_CHILD = """
import json, sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
with mlir.make_ir_context():
    for line in sys.stdin:
        try:
            ir.Module.parse(json.loads(line))
            said = ""
        except ir.MLIRError as problem:
            said = str(problem)
        print(json.dumps(said), flush=True)
"""


def refusals(texts: Sequence[str]) -> list[str]:
    """What MLIR says of each program: empty where it accepts it, `crashed` where it dies."""
    found: list[str] = []
    while len(found) < len(texts):
        lines = "".join(json.dumps(text) + "\n" for text in texts[len(found) :])
        done = subprocess.run(
            [sys.executable, "-c", _CHILD], input=lines, capture_output=True, text=True, check=False
        )
        said = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode > 0:
            raise RuntimeError(done.stderr)
        found += said
        if len(found) < len(texts):
            found.append("crashed")
    return found
