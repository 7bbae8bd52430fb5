#!/usr/bin/env python3
"""Temporaries of the corpus' programs: our arena beside what XLA:CPU says it needs.

    tools/compare_memory.py [--bytes N] [NAME …]

Kernels' workspaces, in which products pack their operands, are left out, as XLA leaves out what Eigen
allocates while it runs. Prints programs whose arena is larger than XLA's temporaries (and than 4 KiB), then
the ratio of all bytes together, the geometric mean, and the ratio with workspaces. `--bytes` leaves longer
texts out. Needs jax.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import statistics
from pathlib import Path
from typing import Any

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.cpu.compiler import lower
from mlirhlo.lowering.plan.arena import assign_offsets

os.environ["JAX_PLATFORMS"] = "cpu"

_SMALL = 4096
"""Bytes that nobody misses."""


def corpus() -> Path:
    """Where the dumps are."""
    shared = os.environ.get("MLIRHLO_SHARED")
    return Path(shared or Path(__file__).parent.parent.parent / "shared") / "corpus"


def xla_temporaries(text: str) -> int:
    """Bytes that XLA:CPU reports for a module. Raises what jaxlib does."""
    jax: Any = importlib.import_module("jax")
    hlo: Any = importlib.import_module("jaxlib._hlo")
    lib: Any = importlib.import_module("jaxlib._jax")
    device = jax.devices("cpu")[0]
    module = hlo.hlo_module_from_text(text)
    computation = hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = lib.mlir.xla_computation_to_mlir_module(computation)
    options = lib.CompileOptions()
    executable = device.client.compile_and_load(mlir, lib.DeviceList((device,)), options)
    return int(executable.get_compiled_memory_stats().temp_size_in_bytes)


def main() -> None:
    """Runs the tool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--bytes", type=int, default=20_000)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    pairs: list[tuple[int, int]] = []
    everything = 0
    print(f"{'':44}{'ours':>12}{'XLA':>12}")
    for path in sorted(corpus().glob("programs/*/*.hlo")):
        if path.name.count(".") != 1 or path.stat().st_size > options.bytes:
            continue  # modules as they were before any compiler's passes
        if options.names and not any(name in path.name for name in options.names):
            continue
        text = path.read_text()
        try:
            theirs = xla_temporaries(text)
            plan = lower(mlirhlo.parse(text).static_op).plan
        except (HloError, RuntimeError, LookupError, ValueError):
            continue
        ours = assign_offsets([b for b in plan.buffers if not b.workspace])
        everything += plan.arena_size
        pairs.append((max(ours, 1), max(theirs, 1)))
        if ours > max(theirs, _SMALL):
            print(f"{path.name:44}{ours:12}{theirs:12}", flush=True)
    if pairs:
        total = sum(o for o, _ in pairs) / sum(t for _, t in pairs)
        large = [(o, t) for o, t in pairs if max(o, t) > _SMALL]
        mean = statistics.geometric_mean([max(o, _SMALL) / max(t, _SMALL) for o, t in large] or [1])
        whole = everything / sum(t for _, t in pairs)
        print(
            f"{len(pairs)} programs: ours ÷ XLA's {total:.2f} of all bytes, {mean:.2f} on average"
        )
        print(f"with workspaces {whole:.2f} of all bytes")


if __name__ == "__main__":
    main()
