"""Starts tools quickly: one process has everything imported, and forks for every command.

    python test/tool_server.py serve FOLDER     until its standard input ends
    FOLDER/hlo-opt --help

A lit suite runs a tool a thousand times, and most of that time would be imports. A command behaves
as a process of its own: its arguments, directory, environment, standard streams and exit code are
those of the caller, and nothing it does is left for the next one.
"""

import array
import atexit
import gc
import importlib.metadata
import json
import os
import pkgutil
import shlex
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

Main = Callable[[], object]

SOCKET = "socket"


def call(path: str, command: list[str]) -> int:
    """Have the server run the command with this process's streams; its exit code."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    request = json.dumps([command, os.getcwd(), dict(os.environ)]).encode()
    streams = array.array("i", [0, 1, 2])
    head = len(request).to_bytes(8, "little")
    server.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    server.sendall(request)
    answer = server.recv(1)
    if not answer:
        print(f"{command[0]} ended without an exit code", file=sys.stderr)
        return 134
    return answer[0]


def entry_points() -> dict[str, Main]:
    """The console scripts of this project and filecheck's, loaded."""
    wanted = importlib.metadata.distribution("mlirhlo").entry_points
    scripts = [e for e in wanted if e.group == "console_scripts"]
    scripts += importlib.metadata.entry_points(group="console_scripts", name="filecheck")
    return {script.name: script.load() for script in scripts}


def exit_code(main: Main) -> int:
    """What the interpreter would exit with after `sys.exit(main())`."""
    try:
        sys.exit(main())  # type: ignore[arg-type]
    except SystemExit as done:
        if done.code is None or isinstance(done.code, int):
            return (done.code or 0) & 0xFF
        print(done.code, file=sys.stderr)
    except Exception:  # noqa: BLE001 (as the interpreter does at its top)
        traceback.print_exc()
    return 1


def work(connection: socket.socket, mains: dict[str, Main]) -> None:
    """In a child of its own: one command from its request to its exit code."""
    head, (streams, *_), _, _ = connection.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    size = int.from_bytes(head, "little")
    request = connection.makefile("rb").read(size)
    command, directory, environment = json.loads(request)
    given = array.array("i", streams[2])
    for number, stream in enumerate(given):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    sys.argv = [command[0], *command[1:]]
    code = exit_code(mains[command[0]])
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        code = code or 120
    connection.sendall(bytes([code]))


def serve(folder: Path) -> None:
    """Answer until standard input ends, which is when the starter is gone."""
    mains = entry_points()
    import_everything()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / SOCKET))
    listener.listen(64)
    for name in mains:
        words = [sys.executable, "-I", "-S", __file__, "run", str(folder / SOCKET), name]
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)

    def end_with_starter() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end_with_starter, daemon=True).start()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            try:
                work(connection, mains)
            except Exception:  # noqa: BLE001 (as the interpreter does at its top)
                traceback.print_exc()
            os._exit(0)
        connection.close()


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """A server of tools in the folder; it ends with this process, or when its input is closed."""
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError(f"the tools in {folder} did not start: exit code {server.wait()}")
    return server


def import_everything() -> None:
    """What any tool imports when it has work to do; front ends of other frameworks stay out."""
    import mlirhlo

    for module in pkgutil.walk_packages(mlirhlo.__path__, "mlirhlo."):
        if not {"jax", "tensorflow", "torch", "integrations"} & set(module.name.split(".")):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    verb, place, *rest = sys.argv[1:]
    if verb == "run":
        os._exit(call(place, rest))
    serve(Path(place))
