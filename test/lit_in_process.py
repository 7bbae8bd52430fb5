"""A format of lit: RUN lines made of our own tools run inside lit's process, the others in a shell.

A file of a few lines takes a tool some milliseconds, but starting Python takes it a third of a second;
so hundreds of small files are affordable. `lit -Dprocesses=1` starts processes all the same.
"""

from __future__ import annotations

import functools
import importlib.metadata
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from typing import Any
from unittest import mock

import lit.formats
import lit.Test
from lit.TestRunner import getTempPaths, parseIntegratedTestScriptCommands

Tool = Any
"""Takes the arguments, returns the exit code."""


def _filecheck(argv: Sequence[str]) -> int:
    from filecheck.main import main

    try:
        main(["filecheck", *argv])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@functools.cache
def _tool(name: str) -> Tool | None:
    """A tool's function; imported when it is first needed."""
    if name in ("filecheck", "FileCheck"):
        return _filecheck
    for script in importlib.metadata.distribution("mlirhlo").entry_points.select(name=name):
        return script.load()
    return None


class InProcess(lit.formats.ShTest):  # type: ignore[misc, name-defined]
    """`ShTest` that avoids processes where it can."""

    def execute(self, test: Any, litConfig: Any) -> Any:  # noqa: N803  as lit names it
        """The result of one file."""
        source = test.getSourcePath()
        commands = parseIntegratedTestScriptCommands(source, ["RUN:", "REQUIRES:", "XFAIL:"])
        lines = list(commands)
        plain = all(keyword == "RUN:" for _, keyword, _ in lines)
        pipes = [_pipe(line, source) for _, _, line in lines]
        if not plain or not all(pipes) or litConfig.params.get("processes"):
            return super().execute(test, litConfig)
        folder, _ = getTempPaths(test)
        os.makedirs(folder, exist_ok=True)
        with chdir(folder), mock.patch.dict(os.environ, test.config.environment, clear=True):
            for pipe in pipes:
                code, said = _run(pipe or [])
                if code:
                    shown = " | ".join(shlex.join(arguments) for _, arguments in pipe or [])
                    return lit.Test.Result(lit.Test.FAIL, f"exit code {code} of: {shown}\n{said}")
        return lit.Test.Result(lit.Test.PASS, "")


def _pipe(line: str, source: str) -> list[tuple[Tool, list[str]]] | None:
    """The commands of a RUN line, names in front; None where a shell is needed."""
    if any(character in line for character in "&;<>`$*\\"):
        return None
    words = shlex.split(line.replace("%s", shlex.quote(source)))
    if any("%" in word for word in words):
        return None
    found: list[tuple[Tool, list[str]]] = []
    while words:
        end = words.index("|") if "|" in words else len(words)
        command, words = words[:end], words[end + 1 :]
        tool = _tool(command[0]) if command else None
        if tool is None:
            return None
        found.append((tool, command))
    return found


def _run(pipe: Sequence[tuple[Tool, list[str]]]) -> tuple[int, str]:
    """The worst exit code of a pipe, and all it says."""
    data, worst, said = b"", 0, ""
    for tool, arguments in pipe:
        code, data, errors = _call(tool, arguments[1:], data)
        worst = worst or code
        said += errors
    return worst, said + data.decode(errors="replace")


def _call(tool: Callable[[Sequence[str]], int], arguments: list[str], given: bytes) -> Any:
    before = sys.stdin
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    errors = io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(errors))
        stack.callback(setattr, sys, "stdin", before)
        sys.stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
        code = tool(arguments)
        out.flush()
        return code, out.buffer.getvalue(), errors.getvalue()
