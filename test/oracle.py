"""The real XLA in a child process: malformed input may abort it.

A server, started once and never running a thread, forks a child for every call of `ask`: forking the
process of the tests itself would hang as soon as JAX runs in it.
"""

from __future__ import annotations

import atexit
import faulthandler
import functools
import importlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

_END = "END"


def ask(questions: Sequence[str], answer: Callable[[str], str]) -> list[str]:
    """`answer` of every question; `ERROR message` where it raises, `CRASH` where the process dies.

    `answer` is a function at the top of its file: the child imports it.
    """
    answers: list[str] = []
    while len(answers) < len(questions):
        answers += _in_child(questions[len(answers) :], answer)
        if len(answers) < len(questions):
            answers.append("CRASH")
    return answers


@functools.cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(server.kill)
    return server


def _in_child(questions: Sequence[str], answer: Callable[[str], str]) -> list[str]:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    assert "<locals>" not in answer.__qualname__, "the child has to import the function"
    where = {"file": answer.__code__.co_filename, "name": answer.__qualname__, "path": sys.path}
    server.stdin.write(json.dumps({**where, "questions": list(questions)}) + "\n")
    server.stdin.flush()
    found: list[str] = []
    for line in server.stdout:
        if line == _END + "\n":
            return found
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:  # it died while it wrote
            continue
    raise RuntimeError("the server of the oracle has died")


@functools.cache
def _module(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"asked_{abs(hash(file))}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _serve() -> None:
    """Answers requests from standard input, each in a child of its own."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what XLA prints goes nowhere
    for line in sys.stdin:
        request = json.loads(line)
        sys.path[:] = request["path"]
        answer = getattr(_module(request["file"]), request["name"])
        pid = os.fork()
        if pid == 0:
            faulthandler.disable()
            for question in request["questions"]:
                try:
                    text = answer(question)
                except Exception as problem:  # noqa: BLE001  # whatever XLA raises is the answer
                    text = f"ERROR {problem}"
                out.write(json.dumps(text) + "\n")
                out.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        out.write(f"\n{_END}\n")
        out.flush()


def xla() -> Any:
    """jaxlib's module for HLO; it has no type stubs."""
    return importlib.import_module("jaxlib._hlo")


def constant(question: str) -> str:
    """`shape literal` as XLA prints it, from `shape|literal`."""
    _hlo = xla()
    shape, _, literal = question.partition("|")
    text = f"HloModule m\nENTRY e {{\n ROOT c = {shape} constant({literal})\n}}\n"
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    printed = _hlo.hlo_module_from_text(text).to_string(options)
    line = printed.split("ROOT %c = ")[1].split("\n")[0]
    return line.replace(" constant(", "|", 1)[:-1]


def sharding(text: str) -> str:
    """A sharding as XLA prints it."""
    _hlo = xla()
    return str(_hlo.HloSharding.from_string(text))


def sharding_v2(text: str) -> str:
    """A sharding by tiles."""
    _hlo = xla()
    return str(_hlo.HloSharding.from_string(text).v3_to_v2_sharding())


def groups(text: str) -> str:
    """Replica groups as XLA prints them, and as lists: `text|lists`."""
    _hlo = xla()
    module = _hlo.hlo_module_from_text(
        "HloModule m\nENTRY e {\n a = f32[4] parameter(0)\n"
        f" ROOT r = f32[8] all-gather(a), dimensions={{0}}, replica_groups={text}\n}}\n"
    )
    both = (module.to_string(), module.to_string(_hlo.HloPrintOptions.fingerprint()))
    return "|".join(t.split("replica_groups=")[1].split(", dimensions")[0] for t in both)


if __name__ == "__main__":
    _serve()
