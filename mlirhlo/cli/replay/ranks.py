"""A tool that a launcher of MPI started several times: rank 0 speaks and writes, the others compute."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout

from mlirhlo.cli.report import DONE
from mlirhlo.runtime.mpi import ranks

_PATIENCE_S = 1.0
"""How long another rank leaves the word to rank 0, which most often has the same problem."""


def run_as_rank(body: Callable[[], int], results: Sequence[int] = (DONE,)) -> int:
    """Runs a tool's body on this rank; an exit code that is none of `results` ends all ranks."""
    me = ranks()
    if me.rank == 0:
        code = body()
    else:
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            code = body()
        if code not in results:
            time.sleep(_PATIENCE_S)
            for line in said.getvalue().splitlines():
                print(f"[rank {me.rank}] {line}", file=sys.stderr)
    if code not in results:
        me.abort(code)
    return code
