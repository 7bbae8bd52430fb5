#!/usr/bin/env python3
"""How fast HLO text is read and printed, against the real XLA on the same machine in the same run.

    benchmarks/parse_print.py [FILE...] [--repeat 3] [--no-jaxlib] [--json OUT] [--against OLD]

Without files: the big dumps of the corpus. Every file has a process of its own. Figures are the best
of the repeats in CPU time; ours and jaxlib's parse take turns within one process, so that a machine
that slows down slows both, and the ratio is what to compare between machines and releases
(`--against` compares it with an earlier `--json`). Memory is measured in a process without jaxlib.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from support import CORPUS, DATA, run  # noqa: E402

INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)

WORSE = 1.25
"""A ratio that grew by more than this against an earlier run fails it; noise is below."""


def read(path: Path) -> str:
    """Text of a file that may be gzipped."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def memory(field: str) -> int:
    """Bytes of a field of Linux's account of this process: VmRSS is now, VmHWM the peak."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024


def measure_time(path: Path, repeat: int, with_jaxlib: bool) -> dict[str, float]:
    """Seconds of parsing and printing, and of jaxlib's parse, each the best of `repeat`."""
    from mlirhlo.formats.hlo_text import parse_module, print_module

    oracle = None
    if with_jaxlib:
        from jaxlib import _hlo  # pyright: ignore[reportAttributeAccessIssue]  # no stub

        oracle = _hlo.hlo_module_from_text
    text = read(path)
    best: dict[str, float] = {}
    for _ in range(repeat):
        started = time.process_time()
        module = parse_module(text)
        parsed = time.process_time()
        printed = print_module(module)
        ended = time.process_time()
        del module
        seconds = {"parse_s": parsed - started, "print_s": ended - parsed}
        best["printed_bytes"] = len(printed.encode())
        if oracle is not None:
            started = time.process_time()
            oracle(text)
            seconds["jaxlib_parse_s"] = time.process_time() - started
        best |= {name: min(value, best.get(name, value)) for name, value in seconds.items()}
    return best


def measure_memory(path: Path) -> dict[str, float]:
    """Bytes that parsing added to the process at its peak; Linux only."""
    from mlirhlo.formats.hlo_text import parse_module

    text = read(path)
    parse_module("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = memory("VmRSS")
    module = parse_module(text)
    added = memory("VmHWM") - before
    del module
    return {"peak_bytes": added}


def child(path: Path, *arguments: str) -> dict[str, float]:
    """One measurement in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", *arguments, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def one_file(path: Path, repeat: int, with_jaxlib: bool) -> dict[str, float]:
    """The figures of one file."""
    text = read(path)
    size = len(text.encode()) / 1e6
    count = len(INSTRUCTION.findall(text))
    times = child(path, f"--repeat={repeat}", *([] if with_jaxlib else ["--no-jaxlib"]))
    row = {
        "instructions": count,
        "MB": round(size, 2),
        "parse_instructions_per_s": round(count / times["parse_s"]),
        "parse_MB_per_s": round(size / times["parse_s"], 2),
        "print_MB_per_s": round(times["printed_bytes"] / 1e6 / times["print_s"], 2),
        "peak_bytes_per_instruction": round(child(path, "--memory")["peak_bytes"] / count),
    }
    if with_jaxlib:
        row["parse_ratio_to_jaxlib"] = round(times["parse_s"] / times["jaxlib_parse_s"], 2)
    return row


def start_up(repeat: int) -> dict[str, float]:
    """CPU seconds of starting, the best of several children."""
    small = DATA / "programs" / "fusion_chain" / "fusion_chain.hlo"
    commands: dict[str, tuple[str | Path, ...]] = {
        "python": (sys.executable, "-c", "pass"),
        "import mlirhlo": (sys.executable, "-c", "import mlirhlo"),
        "hlo-opt --help": ("hlo-opt", "--help"),
        "hlo-opt small.hlo": ("hlo-opt", small),
    }
    return {
        name: round(min(run(*command).cpu_s for _ in range(max(repeat, 5))), 3)
        for name, command in commands.items()
    }


def main() -> int:
    """Exit 1 when a ratio got worse than the one it is compared with."""
    parser = argparse.ArgumentParser(description="speed of reading and printing HLO text")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the best counts")
    parser.add_argument("--no-jaxlib", action="store_true", help="no comparison with XLA's parser")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures")
    parser.add_argument("--against", type=Path, metavar="OLD", help="figures of an earlier run")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        (path,) = options.files
        print(
            json.dumps(
                measure_memory(path)
                if options.memory
                else measure_time(path, options.repeat, not options.no_jaxlib)
            )
        )
        return 0
    files = options.files or sorted(CORPUS.glob("programs/big_*/*.hlo.gz"))
    if not files:
        parser.error(f"no files given, and no corpus at {CORPUS}")
    old = json.loads(options.against.read_text())["files"] if options.against else {}
    report: dict[str, dict[str, dict[str, float]]] = {"start_up_cpu_s": {}, "files": {}}
    print(
        f"{'file':44}{'instr.':>8}{'MB':>7}{'instr/s':>9}{'MB/s':>7}{'print':>7}{'B/instr':>9}",
        end="",
    )
    print(f"{'/jaxlib':>9}")
    worse = False
    for path in files:
        row = one_file(path, options.repeat, not options.no_jaxlib)
        report["files"][path.name] = row
        ratio = row.get("parse_ratio_to_jaxlib", float("nan"))
        print(
            f"{path.name[:43]:44}{row['instructions']:8}{row['MB']:7.1f}"
            f"{row['parse_instructions_per_s']:9}{row['parse_MB_per_s']:7.1f}"
            f"{row['print_MB_per_s']:7.1f}{row['peak_bytes_per_instruction']:9}{ratio:9.1f}",
            flush=True,
        )
        before = old.get(path.name, {}).get("parse_ratio_to_jaxlib")
        if before is not None and ratio > before * WORSE:
            worse = True
            print(f"  slower than before: {ratio} times jaxlib, was {before}")
    report["start_up_cpu_s"] = {"best": start_up(options.repeat)}
    print("start-up, CPU seconds: ", report["start_up_cpu_s"]["best"])
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
