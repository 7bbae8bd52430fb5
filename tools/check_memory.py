#!/usr/bin/env python3
"""Runs the programs of the corpus in the debugging mode: bounds, guards, memory never written.

    tools/check_memory.py [--bytes N] [--threads N] [NAME …]

Prints what fails, then how often each outcome came; leaves 1 when memory was misused. `--bytes` leaves
longer texts out.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import mlirhlo
from mlirhlo.diagnostics import HloError


def corpus() -> Path:
    """Where the dumps are."""
    shared = os.environ.get("MLIRHLO_SHARED")
    return Path(shared or Path(__file__).parent.parent.parent / "shared") / "corpus"


def programs(most_bytes: int, names: Sequence[str] = ()) -> list[Path]:
    """Modules before and after optimisation with inputs beside them."""
    found = sorted(corpus().glob("programs/*/*.hlo"))
    return [
        p
        for p in found
        if p.stat().st_size <= most_bytes
        and (p.parent / f"{p.parent.name}.npz").is_file()
        and (not names or any(name in p.name for name in names))
    ]


def check(path: Path) -> str:
    """`ok`, or what went wrong: a code and the message, or why it was left out."""
    try:
        with np.load(path.parent / f"{path.parent.name}.npz") as archive:
            names = sorted((n for n in archive if n.startswith("in")), key=lambda n: int(n[2:]))
            given = [archive[name] for name in names]
        mlirhlo.compile(path, debug=True)(*given)
    except HloError as problem:
        return f"{problem.code} {path.name}: {problem}"
    except (ValueError, zipfile.BadZipFile) as problem:  # names or pickles of others
        return f"left out {path.name}: {problem}"
    except LookupError as problem:
        return f"failed {path.name}: {problem!r}"
    return "ok"


def main() -> None:
    """Runs the tool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--bytes", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    from mlirhlo.runtime.threads import set_thread_count

    set_thread_count(options.threads)
    counts: dict[str, int] = collections.Counter()
    for path in programs(options.bytes, options.names):
        outcome = check(path)
        counts[outcome.split()[0]] += 1
        if outcome.startswith("HLO04"):
            print(outcome, flush=True)
    print(dict(counts))
    sys.exit(1 if counts.get("HLO0439") or counts.get("HLO0440") else 0)


if __name__ == "__main__":
    main()
