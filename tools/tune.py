"""Times schedules of one kernel on the CPU, in turns, and says which options of passes write the fastest.

    python tools/tune.py sorted.hlo
    python tools/tune.py sorted.mlir --kernel sort_0 --schedules 30 --rounds 50
    python tools/tune.py sorted.hlo --lanes 8,16 --chunk 1,4,16 --output best.mlir

A file at stage hlo, structured or scheduled; without `--kernel` its first kernel with a schedule. A schedule is a row
of options: kinds of `cpu-choose-algorithm`, lanes of `cpu-vectorize`, chunks of `cpu-parallelize`; those that passes
choose by themselves come first, those that do not fit the kernel are left out. Each gives the results of the first to
within `--tolerance`, or is said to differ. Behind the table stands what to give to `hlo-opt --passes`.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp

from mlirhlo.cli.opt.gpu_stages import context
from mlirhlo.cli.opt.stage_files import continued, stage_of
from mlirhlo.cli.opt.stages import lowered, render_module
from mlirhlo.debug.options import Flags
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.formats import load
from mlirhlo.interp.fake_data import fake_array
from mlirhlo.interp.fake_data_uses import Demands
from mlirhlo.lowering.builder import WORKSPACE
from mlirhlo.lowering.llvm_text import print_llvm
from mlirhlo.lowering.loops import loops_of
from mlirhlo.lowering.loops.lowering import lowering_of
from mlirhlo.lowering.loops_to_llvm import convert_to_llvm
from mlirhlo.lowering.schedule.attributes import SCHEDULE
from mlirhlo.rewrites.pipeline import parse_pipeline
from mlirhlo.runtime.jit import Library, compile_object
from mlirhlo.runtime.threads import externals, set_thread_count

LANES = (0, 4, 8, 16, 32, 64)
CHUNKS = (1, 2, 4, 8, 16, 64, 256, 1024, 4096)


@dataclass
class Candidate:
    """A schedule that was compiled."""

    passes: str
    schedule: str
    module: ModuleOp
    run: Callable[[], None]
    results: list[Any]
    seconds: float = float("inf")


def kernel_of(path: Path, name: str) -> KernelOp:
    """The kernel of that name, or the first one with a schedule, without the schedule. Raises `HloError`."""
    data = path.read_bytes()
    stage = stage_of(data)
    if stage is None:
        module = lowered(load(data), "scheduled", None, Flags())
    else:
        module = continued(data, stage, "scheduled", str(path))
    kernels = [op for op in cast(ModuleOp, module).ops if isinstance(op, KernelOp)]
    for kernel in kernels:
        scheduled = [op for op in kernel.block.ops if lowering_of(op) is not None]
        if scheduled and name in ("", kernel.kernel_name):
            for op in scheduled:
                op.attributes.pop(SCHEDULE, None)
            return kernel
    raise SystemExit(
        f"{path} has no kernel with a schedule for the CPU"
        + (f" of the name {name}" if name else "")
    )


def pipelines(kernel: KernelOp, lanes: Sequence[int], chunks: Sequence[int]) -> Iterator[str]:
    """Rows of options, those with the fewest first."""
    kinds: Sequence[str] = next(low.kinds for op in kernel.block.ops if (low := lowering_of(op)))
    rows = sorted(
        product(("", *kinds), (-1, *lanes), (0, *chunks)),
        key=lambda row: (row[0] != "") + (row[1] >= 0) + (row[2] > 0),
    )
    for kind, width, chunk in rows:
        passes = [
            f"cpu-choose-algorithm{{kind={kind}}}" if kind else "cpu-choose-algorithm",
            f"cpu-vectorize{{lanes={width}}}" if width >= 0 else "cpu-vectorize",
            f"cpu-parallelize{{chunk={chunk}}}" if chunk else "cpu-parallelize",
        ]
        yield ",".join(passes)


def candidate(kernel: KernelOp, passes: str, inputs: Sequence[Any]) -> Candidate:
    """A kernel by the schedule that passes write. Raises `HloError` HLO0806 where it does not fit."""
    module = ModuleOp([kernel.clone()])
    for pass_ in parse_pipeline(passes):
        pass_.apply(context(), module)
    copy = cast(KernelOp, module.body.block.first_op)
    schedule = next(
        str(op.attributes[SCHEDULE]) for op in copy.block.ops if SCHEDULE in op.attributes
    )
    loops = loops_of(module.clone())
    function = cast(Any, loops.body.block.last_op)
    text = print_llvm(convert_to_llvm(loops))
    library = Library([compile_object(text)], [kernel.kernel_name], externals(text))
    shapes = [cast(ArrayShape, shape_of(v.type)) for v in kernel.results_returned]
    results = [np.empty(shape.dimensions, shape.element_type.dtype) for shape in shapes]
    size = function.attributes.get(WORKSPACE)
    memory = np.empty(size.value.data + 64 if isinstance(size, IntegerAttr) else 64, np.uint8)
    workspace = memory.ctypes.data + -memory.ctypes.data % 64
    pointers = [*(a.ctypes.data for a in (*inputs, *results)), workspace]
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(
        library.address(kernel.kernel_name)
    )

    def run(held: Any = (library, memory)) -> None:
        del held
        call(*pointers)

    run()
    return Candidate(passes, schedule, module, run, results)


def candidates(kernel: KernelOp, rows: Iterator[str], limit: int, seed: int) -> list[Candidate]:
    """One for each schedule that fits the kernel, at most `limit`."""
    generator = np.random.default_rng(seed)
    shapes = [cast(ArrayShape, shape_of(v.type)) for v in kernel.block.args]
    inputs = [np.ascontiguousarray(fake_array(s, Demands(), generator, False)) for s in shapes]
    by_schedule: dict[str, Candidate] = {}
    for passes in rows:
        try:
            found = candidate(kernel, passes, inputs)
        except HloError as problem:
            if problem.code not in ("HLO0806", "HLO0432"):
                raise
            continue
        by_schedule.setdefault(found.schedule, found)
        if len(by_schedule) >= limit:
            break
    return list(by_schedule.values())


def differs(results: Sequence[Any], expected: Sequence[Any], tolerance: float) -> bool:
    """Whether results are others than those of the first schedule."""
    for x, y in zip(results, expected, strict=True):
        if x.tobytes() == y.tobytes():
            continue
        if x.dtype.kind in "iub":
            return True
        p, q = (np.nan_to_num(a.astype(np.complex128)) for a in (x, y))
        if np.abs(p - q).max() > tolerance * np.abs(q).max():
            return True
    return False


def main() -> int:
    """Reads the command line; the exit status: 1 where a schedule gives other results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def numbers(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split(",")))

    parser.add_argument("file", type=Path)
    parser.add_argument("--kernel", default="", help="its name")
    parser.add_argument("--lanes", type=numbers, default=LANES, help="to try; default %(default)s")
    parser.add_argument("--chunk", type=numbers, default=CHUNKS, help="to try; default %(default)s")
    parser.add_argument("--schedules", type=int, default=24, help="at most; default %(default)s")
    parser.add_argument("--rounds", type=int, default=30, help="calls of each; default %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="default %(default)s")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="default %(default)s")
    parser.add_argument("--output", type=Path, help="where the kernel by the best schedule goes")
    arguments = parser.parse_args()
    set_thread_count(arguments.threads)
    try:
        return tune(arguments)
    finally:
        set_thread_count(0)


def tune(arguments: argparse.Namespace) -> int:
    """The exit status."""
    kernel = kernel_of(arguments.file, arguments.kernel)
    rows = pipelines(kernel, arguments.lanes, arguments.chunk)
    tried = candidates(kernel, rows, arguments.schedules, seed=0)
    for _ in range(arguments.rounds):
        for one in tried:
            start = time.perf_counter()
            one.run()
            one.seconds = min(one.seconds, time.perf_counter() - start)
    first, is_wrong = tried[0], False
    best = min(tried, key=lambda one: one.seconds)
    for one in sorted(tried, key=lambda one: one.seconds):
        notes = ["the passes' own"] if one is first else []
        if differs(one.results, first.results, arguments.tolerance):
            notes.append("other results")
            is_wrong = True
        print(f"{one.seconds * 1e6:10.1f} us  {one.schedule}  {', '.join(notes)}".rstrip())
    print(f"{first.seconds / best.seconds:.2f} times as fast as by the passes' own choice:")
    print(f"--passes='{best.passes}'")
    if arguments.output is not None:
        arguments.output.write_bytes(render_module(best.module))
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
