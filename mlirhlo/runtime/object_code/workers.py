"""Compiling in other processes: several at once, and out of reach of what LLVM may do to its own.

llvmlite holds one lock around every call of LLVM's, and LLVM ends the process where it does not know on.
Much assembly goes to workers, one for each processor; one that dies takes only its unit with it, which
is tried once more without optimisation. They start with the first such module and end with this process.

`MLIRHLO_COMPILE_WORKERS` says how many there are: 0 compiles everything in this process, any other number
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from mlirhlo.diagnostics import HloError, error
from mlirhlo.lowering.children import Pool, answer_requests
from mlirhlo.runtime.jit import compile_object

WORKERS = "MLIRHLO_COMPILE_WORKERS"

_MUCH = 512 << 10
"""Bytes of assembly that are worth starting workers: LLVM takes most of a second for them."""
_MOST = 8
_pool = Pool("from mlirhlo.runtime.object_code.workers import serve; serve()")


def compile_all(texts: Sequence[str], level: int) -> list[bytes]:
    """Object code of each text. Raises `HloError` HLO0433, and HLO0441 when a worker dies of one."""
    count = _worker_count(sum(map(len, texts)))
    if not count or not texts:
        return [compile_object(text, level=level) for text in texts]
    _pool.grow(count)

    def compiled(at: int) -> bytes:
        return _compiled(texts[at], level)

    from concurrent.futures import ThreadPoolExecutor

    # The longest first, so that none of them is left to the end.
    order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    threads = ThreadPoolExecutor(min(count, len(texts)))
    try:
        made = dict(zip(order, threads.map(compiled, order), strict=True))
    except BaseException:
        # Nobody waits for what is left: an interrupt ends long compilations.
        threads.shutdown(wait=False, cancel_futures=True)
        _pool.interrupt()
        raise
    threads.shutdown()
    return [made[at] for at in range(len(texts))]


def _worker_count(size: int) -> int:
    asked = os.environ.get(WORKERS, "").strip()
    if asked.isdigit():
        return int(asked)
    processors = os.cpu_count() or 1
    return min(processors, _MOST) if size >= _MUCH and processors > 1 else 0


def _compiled(text: str, level: int) -> bytes:
    for effort in (level, 0):
        with _pool.worker() as worker:
            try:
                is_failure, data = worker.call(effort, text.encode())
            except (EOFError, OSError):
                worker.stop()
                if worker.is_cancelled:
                    break
                continue
        if is_failure:
            raise error("HLO0433", data.decode())
        return data
    raise error(
        "HLO0441",
        "LLVM ended the process that compiled a kernel",
        help="this is a fault of the lowering, not of the program; please report it",
    )


def serve() -> None:
    """The worker's side: compiles what comes in."""
    answer_requests(_answer)


def _answer(level: int, text: bytes) -> tuple[int, bytes]:
    try:
        return 0, compile_object(text.decode(), level=level)
    except HloError as problem:
        return 1, problem.diagnostics[0].message.encode()
