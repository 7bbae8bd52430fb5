"""The process of `workers`: one request a line of standard input, one answer a line of standard output."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
from importlib import import_module
from typing import Any

_PREFIX = "mlirhlo.debug."
"""Tasks are functions of this package."""


def main(memory_bytes: int) -> None:
    """Serves requests until standard input ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.set_threshold(200_000, 50, 1000)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what evaluated code prints is nobody's answer
    for line in sys.stdin.buffer:
        request = json.loads(line)
        start = _limit_cpu(request["seconds"])
        answer = {**_answer(request), "cpu_seconds": time.process_time() - start}
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _limit_cpu(seconds: float) -> float:
    """Lets the kernel end the process when it has computed for `seconds` from now; the CPU time that it has used."""
    used = time.process_time()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + seconds) + 1, hard))
    return used


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    module, _, function = request["task"].partition(":")
    assert module.startswith(_PREFIX)
    try:
        return {"value": getattr(import_module(module), function)(**request["arguments"])}
    except MemoryError:
        return {"memory": True}
    except BaseException:  # noqa: BLE001  it is raised where the answer is read
        return {"raised": traceback.format_exc()}


if __name__ == "__main__":
    main(int(sys.argv[1]))
