"""How a tool ends: exit codes, diagnostics on the terminal, and reproducers of our own faults.

0 done, 1 the input is at fault, 2 the command line is, 3 we are.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.diagnostics import Diagnostic, HloError, Severity, out_of_memory
from mlirhlo.importing import ALONE, LATE

with LATE:
    from mlirhlo.rewrites import registry


if TYPE_CHECKING:
    from typing import TextIO

DONE, INPUT_AT_FAULT, USAGE, INTERNAL = 0, 1, 2, 3
INTERRUPTED = 130
"""As shells have it of a process that SIGINT ended."""

_COLOURS = {
    Severity.ERROR: "\x1b[1;31m",
    Severity.WARNING: "\x1b[1;33m",
    Severity.NOTE: "\x1b[1;36m",
    Severity.REMARK: "\x1b[1;34m",
}
_BOLD, _CARET, _RESET = "\x1b[1m", "\x1b[1;32m", "\x1b[0m"


class UsageError(HloError):
    """The command line is at fault: exit code 2."""


def usage_error(message: str, help: str | None = None) -> UsageError:
    """A `UsageError` HLO0502."""
    return UsageError(Diagnostic("HLO0502", message, help=help))


class Input:
    """What a tool is working on, so that an internal error can be handed on with it."""

    name: str = ""
    data: bytes | None = None


CURRENT_INPUT = Input()


def run_tool(tool: str, body: Callable[[Sequence[str]], int], argv: Sequence[str] | None) -> int:
    """Runs `body(arguments)` and turns whatever it raises into messages and an exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    if argv is None:
        _prepare_process()
    CURRENT_INPUT.name, CURRENT_INPUT.data = "", None
    try:
        code = body(arguments)
        sys.stdout.flush()
        if argv is None:
            gc.freeze()  # spares the interpreter's last collection
        return code
    except HloError as problem:
        if debug:
            import traceback

            traceback.print_exc()
        else:
            report(problem.diagnostics)
        return USAGE if isinstance(problem, UsageError) else INPUT_AT_FAULT
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt as problem:
        if not debug and (place := _place_in_loaded_pass(problem)) is not None:
            _report_loaded_pass(tool, arguments, problem, place)
        if argv is None:
            _leave()
        return INTERRUPTED
    except MemoryError as problem:
        if debug:
            raise
        report(out_of_memory(str(problem)).diagnostics)
        return INPUT_AT_FAULT
    except OSError as problem:
        if debug or not _is_about_output(problem):
            return _internal(tool, arguments, problem, debug)
        message = f"cannot write to standard output: {problem.strerror}"
        report([Diagnostic("HLO0503", message)])
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INPUT_AT_FAULT
    except Exception as problem:  # noqa: BLE001  all else is ours, and never a traceback
        return _internal(tool, arguments, problem, debug)
    except BaseException as problem:
        if debug or _place_in_loaded_pass(problem) is None:
            raise
        return _internal(tool, arguments, problem, debug)


def _prepare_process() -> None:
    # A module lives as long as the process: looking for garbage in it costs a third of the time. What is there joins
    # the oldest generation, and is not frozen: `paused_gc` spares the walk of what it sees made only then.
    gc.freeze()
    gc.unfreeze()
    gc.set_threshold(200_000, 50, 1000)
    ALONE.in_tool()
    _end_when_interrupted()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller: `tool >&-`
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  stays open
    # Results and remarks in one file or pipe, `2>&1`, stay in the order they were written.
    by_line = True if _are_one_file(sys.stdout, sys.stderr) else None
    for stream in (sys.stdout, sys.stderr):
        # Names in dumps and our own messages go beyond what some terminals can say.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=by_line)


_GRACE_S = 0.3
"""What an interrupted tool may take to end by itself."""


def _end_when_interrupted() -> None:
    """Ends the process on SIGINT also where no Python runs: in one call of machine code, of LLVM or NumPy."""
    import signal
    import threading
    import time

    if not hasattr(os, "set_blocking") or signal.getsignal(signal.SIGINT) is not _default_handler():
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> None:
        while (got := os.read(reader, 1)) and got[0] != signal.SIGINT:
            pass
        time.sleep(_GRACE_S)
        os._exit(INTERRUPTED)

    threading.Thread(target=wait, daemon=True, name="mlirhlo interrupts").start()


def _leave() -> None:
    """Ends the process without taking the interpreter's objects down, which may take longer than a user waits."""
    import atexit

    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  (ends processes of ours)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(INTERRUPTED)


def _default_handler() -> object:
    import signal

    return signal.default_int_handler


def _are_one_file(one: TextIO, other: TextIO) -> bool:
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError):
        return False


def _internal(tool: str, arguments: Sequence[str], problem: BaseException, debug: bool) -> int:
    if debug:
        raise problem
    if (place := _place_in_loaded_pass(problem)) is not None:
        _report_loaded_pass(tool, arguments, problem, place)
        return INPUT_AT_FAULT
    _report_internal(tool, arguments, problem)
    return INTERNAL


def _place_in_loaded_pass(problem: BaseException) -> str | None:
    """Where in a file of `--load-pass` something went wrong; None where it was in none."""
    import traceback

    for frame, line in reversed(list(traceback.walk_tb(problem.__traceback__))):
        if str(frame.f_globals.get("__name__", "")).startswith(registry.LOADED):
            return f"{frame.f_code.co_filename}:{line}"
    return None


def _report_loaded_pass(
    tool: str, arguments: Sequence[str], problem: BaseException, line: str
) -> None:
    # The driver of rules notes which one ran.
    where = ", ".join(getattr(problem, "__notes__", ())[:1]).removeprefix("in ") or "the pass"
    message = f"{line}: {where} raised {registry.described(problem)}"
    advice = "--debug shows the traceback"
    with suppress(OSError):
        path = _write_reproducer(tool, arguments, problem)
        advice += f"; {path} has it too, and the module"
    report([Diagnostic("HLO0415", message, help=advice)])


def _is_about_output(problem: OSError) -> bool:
    """A full disk or a closed terminal, and no file: those are told by who opens them."""
    return problem.filename is None and problem.errno in (errno.ENOSPC, errno.EIO, errno.EBADF)


def report(diagnostics: Iterable[Diagnostic], stream: TextIO | None = None) -> None:
    """Prints diagnostics, in colour on a terminal."""
    to = sys.stderr if stream is None else stream
    colour = uses_colour(to)
    for diagnostic in diagnostics:
        text = str(diagnostic)
        print(_coloured(text, diagnostic.severity) if colour else text, file=to)


def warn(code: str, message: str, help: str | None = None) -> None:
    """Prints a warning."""
    report([Diagnostic(code, message, help=help, severity=Severity.WARNING)])


def uses_colour(stream: TextIO) -> bool:
    """Whether `stream` is a terminal whose user has not set NO_COLOR."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _coloured(text: str, severity: Severity) -> str:
    lines = text.split("\n")
    place, mark, rest = lines[0].partition(f"{severity.value}[")
    code, bracket, message = rest.partition("]:")
    if mark:
        head = f"{_COLOURS[severity]}{mark}{code}{bracket}{_RESET}"
        lines[0] = f"{_BOLD}{place}{_RESET}{head}{_BOLD}{message}{_RESET}"
    for index, line in enumerate(lines[1:], 1):
        word, colon, tail = line.partition(": ")
        if line.strip().strip("~") == "^":
            lines[index] = f"{_CARET}{line}{_RESET}"
        elif colon and word in ("note", "help"):
            lines[index] = f"{_COLOURS[Severity.NOTE]}{word}:{_RESET} {tail}"
    return "\n".join(lines)


def _report_internal(tool: str, arguments: Sequence[str], problem: BaseException) -> None:
    import traceback

    last = traceback.extract_tb(problem.__traceback__)[-1]
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    # A message may be a whole module; its first line says enough.
    said = str(problem).split("\n", 1)[0][:300]
    message = f"{tool} failed at {where}: {type(problem).__name__}" + (f": {said}" if said else "")
    try:
        path = _write_reproducer(tool, arguments, problem)
        advice = f"this is a defect of mlirhlo; please report it with {path}, which has all we need"
    except OSError as trouble:
        advice = f"this is a defect of mlirhlo; no reproducer could be written ({trouble})"
    report([Diagnostic("HLO0901", message, help=advice)])


def _write_reproducer(tool: str, arguments: Sequence[str], problem: BaseException) -> str:
    """A file with command line, versions, traceback and the input; HLO and MLIR text can be run
    from it as it is, as all the rest is comments."""
    import platform
    import shlex
    import tempfile
    import traceback
    from importlib.metadata import version

    handle, path = tempfile.mkstemp(prefix=f"{tool}-", suffix=".reproducer.txt")
    versions = [f"mlirhlo {mlirhlo.__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {version(name)}" for name in ("xdsl", "numpy", "ml_dtypes", "protobuf")]
    head = [
        f"command: {tool} {shlex.join(arguments)}",
        f"versions: {', '.join(versions)}; {platform.platform()}",
        f"input: {CURRENT_INPUT.name or 'none'}",
        *"".join(traceback.format_exception(problem)).rstrip().split("\n"),
    ]
    data = CURRENT_INPUT.data or b""
    with os.fdopen(handle, "wb") as file:
        file.write("".join(f"// {line}\n" for line in head).encode(errors="replace"))
        if b"\0" in data or data[:2] == b"\x1f\x8b":
            import base64

            file.write(b"// The input is binary; base64 -d gives it back.\n")
            file.write(base64.encodebytes(data))
        else:
            file.write(data)
    return path
