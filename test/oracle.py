"""The real XLA in a child process: malformed input may abort it."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
from collections.abc import Callable, Sequence
from typing import Any


def ask(questions: Sequence[str], answer: Callable[[str], str]) -> list[str]:
    """`answer` of every question; `ERROR message` where it raises, `CRASH` where the process dies."""
    answers: list[str] = []
    while len(answers) < len(questions):
        answers += _in_child(questions[len(answers) :], answer)
        if len(answers) < len(questions):
            answers.append("CRASH")
    return answers


def _in_child(questions: Sequence[str], answer: Callable[[str], str]) -> list[str]:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        faulthandler.disable()  # it would tell of every abort on the parent's stderr
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as out:
            for question in questions:
                try:
                    text = answer(question)
                except Exception as problem:  # noqa: BLE001  # whatever XLA raises is the answer
                    text = f"ERROR {problem}"
                out.write(json.dumps(text) + "\n")
                out.flush()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        found = [json.loads(line) for line in lines if line.endswith("\n")]
    os.waitpid(pid, 0)
    return found


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
