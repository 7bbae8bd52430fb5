"""Running the tools in this process, as quickly as their own code allows."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def tool(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`tool("hlo_opt", "--emit=mlir", stdin="…")` runs a tool's `main`."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)

    def run(name: str, *argv: object, stdin: str | bytes = "") -> Ran:
        main = __import__(f"mlirhlo.cli.{name}", fromlist=["main"]).main
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capfd.readouterr()
        code = main([str(a) for a in argv])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run
