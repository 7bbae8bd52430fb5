#!/usr/bin/env python3
"""Compares our partitioner with XLA's: bytes that a device sends, and results.

    tools/compare_partitioning.py                 sharded programs of the corpus, and fresh ones of JAX
    tools/compare_partitioning.py --only dot      those whose names match

A program of the corpus is partitioned from its annotated form and compared with its recorded module after
partitioning. A fresh one is a small JAX function with shardings: jaxlib lowers and partitions it for eight
CPU devices, we partition what it lowered. Bytes are those one device sends with the usual algorithms: k-1
tiles for an all-gather over k devices, (k-1)/k of its operand for a reduce-scatter or all-to-all, twice that
for an all-reduce, its operand for a collective-permute; loops count their known rounds. Results are held to
the recorded ones, or to jaxlib's run on eight devices.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import numpy as np  # noqa: E402

from mlirhlo.analysis.trip_count import trip_count  # noqa: E402
from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.dialects.hlo import HloModule  # noqa: E402
from mlirhlo.dialects.hlo.ops import WhileOp  # noqa: E402
from mlirhlo.dialects.hlo.ops.computation import ComputationOp  # noqa: E402
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape  # noqa: E402
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module  # noqa: E402
from mlirhlo.interp import run_spmd  # noqa: E402
from mlirhlo.interp.machine import Machine  # noqa: E402
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline  # noqa: E402

Inputs = list[Any]
Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Program:
    """One program to compare on."""

    name: str
    devices: int
    annotated: str
    """Before partitioning."""
    theirs: str
    """XLA's module of one partition."""
    inputs: list[Inputs]
    """By device."""
    outputs: list[Inputs]
    """By device."""


# ---------------------------------------------------------------- counting


def bytes_of(shape: Shape) -> int:
    """Bytes of all arrays."""
    if isinstance(shape, TupleShape):
        return sum(map(bytes_of, shape.elements))
    return shape.byte_size if isinstance(shape, ArrayShape) else 0


def sent(op: Any, partitions: int) -> float:
    """Bytes a device sends for one collective, on the average of all devices."""
    name = op.opcode.name.removesuffix("-start")
    size = sum(map(bytes_of, op.input_shapes))
    if name == "collective-permute":
        pairs = [(a, b) for a, b in op.source_target_pairs if a != b]
        return size * len(pairs) / partitions
    if name not in ("all-gather", "all-reduce", "reduce-scatter", "all-to-all"):
        return 0.0
    groups = op.replica_groups
    count = (groups.group_size if groups is not None else None) or partitions
    share = (count - 1) / count
    return {"all-gather": count - 1, "all-reduce": 2 * share}.get(name, share) * size


def collective_bytes(text: str) -> float:
    """Bytes a device sends in one run of a module."""
    module = HloModule(parse_module(text))
    by_name = module.by_name()

    def of(computation: ComputationOp) -> float:
        total = 0.0
        for op in computation.instructions:
            total += sent(op, module.num_partitions)
            rounds = (trip_count(op, by_name) or 1) if isinstance(op, WhileOp) else 1
            if not op.opcode.collective:
                total += rounds * sum(of(by_name[name]) for name in op.called_computations)
        return total

    return of(module.entry)


# ---------------------------------------------------------------- programs


def of_the_corpus() -> Iterator[Program]:
    """The sharded programs of the corpus."""
    import optimised_numerics as numerics

    for entry in numerics.programs("cpu_spmd", sharded=True):
        data, devices = numerics.data_of(entry), entry["devices"]
        folder = numerics.CORPUS
        yield Program(
            entry["name"],
            devices,
            (folder / entry["files"]["hlo"]).read_text(),
            (folder / entry["files"]["cpu_spmd"]).read_text(),
            [[v[d] for v in data["parts_in"]] for d in range(devices)],
            [[v[d] for v in data["parts_out"]] for d in range(devices)],
        )


def fresh(only: str) -> Iterator[Program]:
    """Programs of JAX, partitioned by jaxlib."""
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    partitioning_programs = importlib.import_module("partitioning_programs")  # beside this file

    for name, function, arguments, places, out in partitioning_programs.programs():
        if re.search(only, name):
            yield of_jax(name, function, arguments, places, out)


def of_jax(name: str, function: Function, arguments: Inputs, places: Any, out: Any) -> Program:
    """What jaxlib makes of a function with shardings."""
    import tempfile

    import jax

    put = [jax.device_put(a, s) for a, s in zip(arguments, places, strict=True)]
    jitted = jax.jit(function, in_shardings=places, out_shardings=out)
    with tempfile.TemporaryDirectory() as folder:
        lowered = jitted.lower(*put)
        compiled = lowered.compile(
            {"xla_dump_to": folder, "xla_dump_hlo_pass_re": "spmd-partitioning|spmd-cleanup"}
        )
        dumps = sorted(Path(folder).glob("*spmd-cleanup*after_pipeline-start*.txt"))
        dumps = dumps or sorted(Path(folder).glob("*after_spmd-partitioning*.txt"))
        theirs = dumps[-1].read_text() if dumps else str(compiled.as_text())
    results = jax.tree_util.tree_leaves(compiled(*put))
    # Partition p runs on the mesh's device p, whatever that one's own number is.
    devices = list(places[0].mesh.devices.flat)

    def parts(arrays: Any) -> list[Inputs]:
        found: list[Inputs] = [[] for _ in devices]
        for array in arrays:
            for shard in array.addressable_shards:
                found[devices.index(shard.device)].append(np.asarray(shard.data))
        return found

    unoptimised: Any = lowered.compiler_ir("hlo")
    text: str = unoptimised.as_hlo_module().to_string()
    return Program(name, len(devices), text, theirs, parts(put), parts(results))


# ---------------------------------------------------------------- comparing


def ours(program: Program) -> str:
    """Our module of one partition."""
    module = parse_module(program.annotated, program.name)
    passes = f"shardy-xla{{num-partitions={program.devices}}},spmd-partitioning,dce,tuple-simplifier,cse,dce"
    run_pipeline(module, parse_pipeline(passes))
    return print_module(module, PrintOptions(large_constants=True))


def agree(program: Program, text: str) -> bool:
    """Whether every device's results are as they should be."""
    machine = Machine(1, program.devices)
    got = run_spmd(parse_module(text), program.inputs, machine=machine)
    for found, wanted in zip(got, program.outputs, strict=True):
        for a, b in zip(found, wanted, strict=True):
            if a.shape != b.shape:
                return False
            x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
            scale = float(np.abs(y[np.isfinite(y)]).max(initial=1e-30))
            if not np.allclose(x, y, rtol=2e-4, atol=2e-5 * scale, equal_nan=True):
                return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; 1 when results differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="names that match this")
    parser.add_argument("--corpus", action="store_true", help="programs of the corpus alone")
    parser.add_argument("--show", action="store_true", help="print both modules")
    options = parser.parse_args(arguments)
    from itertools import chain

    rows = wrong = fine = 0
    print(f"{'program':32} {'ours':>10} {'XLA':>10}  verdict")
    for program in chain(of_the_corpus(), () if options.corpus else fresh(options.only)):
        if not re.search(options.only, program.name):
            continue
        try:
            text = ours(program)
        except HloError as problem:
            print(f"{program.name:32} {problem.code}")
            rows, wrong = rows + 1, wrong + 1
            continue
        mine, other = collective_bytes(text), collective_bytes(program.theirs)
        right = agree(program, text)
        rows, wrong, fine = rows + 1, wrong + (not right), fine + (mine <= other * 1.0001)
        verdict = (
            "fewer" if mine < other * 0.9999 else "as many" if mine <= other * 1.0001 else "MORE"
        )
        verdict += "" if right else ", RESULTS DIFFER"
        print(f"{program.name:32} {mine:10.0f} {other:10.0f}  {verdict}", flush=True)
        if options.show:
            print(program.annotated, program.theirs, text, sep="\n\n")
    print(
        f"{fine} of {rows} send no more bytes than XLA's ({100 * fine / max(rows, 1):.0f} %); {wrong} differ"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
