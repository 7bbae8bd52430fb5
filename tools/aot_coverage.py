"""Compiles every program of the corpus ahead of time and runs it in a process without Python.

    python tools/aot_coverage.py                          # all, compiled by gcc, and by clang where it is installed
    python tools/aot_coverage.py --only dot --valgrind    # under valgrind too, where it is installed
    python tools/aot_coverage.py --march x86-64-v2,x86-64-v4 --weights file

Each becomes an object and a header; a test main reads arguments from files, runs twice on its own threads, and
writes the results, which have to be the recorded ones within the corpus' tolerance. Every object is made twice, and has
to have the same bytes. valgrind looks for wrong accesses of the last compiler's main; results of a run under it are not
compared, as it computes with other NaN than the processor. A row a program: bytes of the object, the time of a process
(with files read and written), what is wrong. The last row is a perceptron of 784, 128 and 10 units with weights as
arguments: "hello". Programs with instructions that run in Python are counted by the error's reason (HLO0840). The exit
status is 1 when one fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
from cpu_coverage import CORPUS, VARIANTS, Entry, _compare, programs, warm_up

from mlirhlo.aot import Ahead, compile_ahead, emitted
from mlirhlo.cli import inputs as files
from mlirhlo.debug import replay
from mlirhlo.diagnostics import HloError
from mlirhlo.formats import load
from mlirhlo.formats.arrays import read_npz

_MAIN = """
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static const long in[] = {{{inputs}}}, out[] = {{{outputs}}};
static void *get(long size) {{ return aligned_alloc(64, (size + 64) / 64 * 64); }}
int main(int argc, char **argv) {{
  struct timespec a, b;
  void *arguments[{arguments} + 1], *results[{results} + 1];
  char path[4096];
  if (argc < 2) return 2;
  for (int i = 0; i < {arguments}; ++i) {{
    arguments[i] = get(in[i]);
    snprintf(path, sizeof path, "%s/in%d", argv[1], i);
    FILE *f = fopen(path, "rb");
    if (!f || (long)fread(arguments[i], 1, in[i], f) != in[i]) return 3;
    fclose(f);
  }}
  for (int i = 0; i < {results}; ++i) results[i] = get(out[i]);
  void *arena = get({arena});
  int status = 0;
  snprintf(path, sizeof path, "%s/{name}.weights", argv[1]);
  {weights}
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int round = 0; !status && round < 2; ++round)
    status = {name}_run((const void *const *)arguments, results, arena, NULL);
  clock_gettime(CLOCK_MONOTONIC, &b);
  if (status) {{ fprintf(stderr, "%s\\n", {name}_error(status)); return 4; }}
  for (int i = 0; i < {results}; ++i) {{
    snprintf(path, sizeof path, "%s/out%d", argv[1], i);
    FILE *f = fopen(path, "wb");
    if (!f || (long)fwrite(results[i], 1, out[i], f) != out[i]) return 5;
    fclose(f);
  }}
  printf("%ld\\n", (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec);
  return 0;
}}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for and prints the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--variant", default="hlo", choices=VARIANTS, help="of modules [hlo]")
    parser.add_argument("--only", default="", help="programs whose name the pattern finds")
    parser.add_argument("--every", type=int, default=1, help="one program of so many [1]")
    parser.add_argument("--march", default="x86-64-v3", help="processors, with commas")
    parser.add_argument("--weights", default="embed", choices=("embed", "file"))
    parser.add_argument("--valgrind", action="store_true", help="run under valgrind too")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds of a run [60]")
    options = parser.parse_args(argv)
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    print(f"compilers: {', '.join(compilers) or 'none'}", flush=True)
    if "clang" not in compilers:
        print("clang is not installed: nothing is compiled by it")
    if options.valgrind and not shutil.which("valgrind"):
        print("valgrind is not installed: nothing runs under it")
        options.valgrind = False
    warm_up()
    verdicts: Counter[str] = Counter()
    sizes: list[int] = []
    seconds: list[float] = []
    chosen = list(programs([options.variant], options.only, kernels=False))[:: options.every]
    print(f"{'program':32} {'bytes':>9} {'ms':>7}")
    for entry, variant in chosen:
        size, spent = 0, 0.0
        try:
            verdict, size, spent = judged(entry, variant, options, compilers)
        except HloError as problem:
            diagnostic = problem.diagnostics[0]
            verdict = f"{diagnostic.code}: {diagnostic.message}"
            if diagnostic.code == "HLO0840":
                verdict = "HLO0840: " + diagnostic.message.partition(" = ")[2].partition(" runs")[0]
        except subprocess.TimeoutExpired:
            verdict = "hangs"
        else:
            sizes.append(size)
            seconds.append(spent)
        verdicts[verdict if verdict.startswith(("ok", "HLO")) else verdict.partition(":")[0]] += 1
        failed = "" if verdict.startswith(("ok", "HLO0840")) else "FAIL "
        print(f"{entry['name']:32} {size:9} {1e3 * spent:7.1f} {failed}{verdict[:300]}", flush=True)
    print()
    hello(options, compilers)
    for verdict, count in verdicts.most_common():
        print(f"{count:5}  {verdict[:140]}")
    if sizes:
        print(f"objects: {np.median(sizes):.0f} bytes in the median, {max(sizes)} at most")
        print(
            f"processes: {1e3 * np.median(seconds):.1f} ms in the median, with files read and written"
        )
    fine = sum(n for v, n in verdicts.items() if v.startswith(("ok", "HLO0840")))
    return int(fine != sum(verdicts.values()))


def judged(
    entry: Entry, variant: str, options: Any, compilers: Sequence[str]
) -> tuple[str, int, float]:
    """What became of a program, bytes of its object, and seconds of a run."""
    module = files.as_hlo(load(CORPUS / entry["files"][VARIANTS[variant]])).module
    inputs = replay.inputs_from_archive(module, read_npz(str(CORPUS / entry["files"]["npz"])))

    def compiled() -> Ahead:
        return compile_ahead(
            module,
            "program",
            march=options.march.split(","),
            weights_in_file=options.weights == "file",
        )

    ahead = compiled()
    if compiled() != ahead:
        return "other bytes the second time", 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in emitted(ahead, ["obj"]).items():
            (folder / file).write_bytes(data)
        (folder / "main.c").write_text(_main(ahead))
        leaves = ahead.signature.arguments
        arrays = [array for device in inputs.per_device for array in _leaves(device)]
        if len(arrays) != len(leaves):
            return f"wrong: {len(arrays)} arguments for {len(leaves)}", len(ahead.object), 0.0
        for number, (array, leaf) in enumerate(zip(arrays, leaves, strict=True)):
            stored = np.ascontiguousarray(np.asarray(array).transpose(leaf.order))
            (folder / f"in{number}").write_bytes(stored.tobytes())
        spent = 0.0
        for compiler in compilers:
            problem, spent = _run(ahead, folder, compiler, options)
            if problem := problem or _differs(entry, ahead, folder, len(inputs.per_device)):
                return f"{compiler}: {problem}", len(ahead.object), spent
        if options.valgrind and (problem := _under_valgrind(folder, _libraries(ahead)[1])):
            return problem, len(ahead.object), spent
    return "ok", len(ahead.object), spent


_HELLO = """HloModule hello
ENTRY e {
  x = f32[1,784] parameter(0)
  w = f32[784,128] parameter(1)
  v = f32[128,10] parameter(2)
  h = f32[1,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[1,128] tanh(h)
  ROOT y = f32[1,10] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def hello(options: Any, compilers: Sequence[str]) -> None:
    """Prints size and start of a small network: the least time of a process that runs it, of ten."""
    module = load(_HELLO.encode(), name="hello").module
    ahead = compile_ahead(module, "hello", march=options.march.split(","))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in emitted(ahead, ["obj"]).items():
            (folder / file).write_bytes(data)
        (folder / "main.c").write_text(_main(ahead))
        for number, leaf in enumerate(ahead.signature.arguments):
            (folder / f"in{number}").write_bytes(bytes(leaf.size))
        runs: list[tuple[float, float]] = []
        for compiler in [*compilers] * 5:
            _, spent = _run(ahead, folder, compiler, options)
            before = getrusage(RUSAGE_CHILDREN)
            subprocess.run([folder / "main", folder], capture_output=True, check=True)
            after = getrusage(RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            runs.append((spent, used))
        size = (folder / "main").stat().st_size
    print(
        f"hello: object {len(ahead.object)} bytes, program {size} bytes, process"
        f" {1e3 * min(spent for spent, _ in runs):.1f} ms,"
        f" {1e3 * min(used for _, used in runs):.1f} ms of the processor"
    )


def _main(ahead: Ahead) -> str:
    arguments, results = ahead.signature.arguments, ahead.signature.results
    return _MAIN.format(
        name=ahead.name,
        inputs=", ".join(str(leaf.size) for leaf in arguments) or "0",
        outputs=", ".join(str(leaf.size) for leaf in results) or "0",
        arguments=len(arguments),
        results=len(results),
        arena=ahead.arena_bytes,
        weights=f"status = {ahead.name}_load_weights(path);" if ahead.weights else "",
    )


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


def _run(ahead: Ahead, folder: Path, compiler: str, options: Any) -> tuple[str, float]:
    """What is wrong with building or running it, and seconds of the run."""
    libraries, path = _libraries(ahead)
    command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Werror", "main.c"]
    command += [f"{ahead.name}.o", "-o", "main", *libraries]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"does not compile: {done.stderr[-200:]}", 0.0
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": path}
    started = time.perf_counter()
    words = [str(folder / "main"), str(folder)]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=options.timeout
    )
    spent = time.perf_counter() - started
    if done.returncode:
        return f"exit status {done.returncode}: {done.stderr[-200:]}", spent
    return "", spent


def _under_valgrind(folder: Path, path: str) -> str:
    """What valgrind says of the main that was built last."""
    words = ["valgrind", "-q", "--error-exitcode=99", str(folder / "main"), str(folder)]
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": path}
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    return f"valgrind: {done.stderr[-300:]}" if done.returncode else ""


def _libraries(ahead: Ahead) -> tuple[list[str], str]:
    """Options of the linker, and where the LAPACK of NumPy's wheel lies."""
    if not any("openblas" in one for one in ahead.libraries):
        return list(ahead.libraries), ""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    found = next(folder.glob("libscipy_openblas64_*"))
    others = [one for one in ahead.libraries if "openblas" not in one]
    return [str(found), f"-Wl,-rpath-link,{folder}", *others], str(folder)


def _differs(entry: Entry, ahead: Ahead, folder: Path, devices: int) -> str:
    """What is wrong with the results of so many devices; nothing when they are the recorded ones."""
    got: list[Any] = []
    for number, leaf in enumerate(ahead.signature.results):
        data = (folder / f"out{number}").read_bytes()
        dtype = np.dtype(leaf.shape.element_type.dtype)
        sizes = [leaf.dimensions[d] for d in leaf.order]
        got.append(np.frombuffer(data, dtype).reshape(sizes).transpose(np.argsort(leaf.order)))
    each = len(got) // devices
    problem = _compare(entry, [got[d * each : (d + 1) * each] for d in range(devices)], None)
    return f"wrong: {problem}" if problem else ""


if __name__ == "__main__":
    sys.exit(main())
