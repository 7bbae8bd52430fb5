"""Dumps of the GPU compiler under XLA:GPU's names: LLVM IR, PTX, thunks, the device.

Source: dumps reference, "Fixed suffixes", "Thunks (GPU)".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.lowering.plan.steps import Branch, Callback, Copy, Kernel, Repeat, Step, While

if TYPE_CHECKING:
    from mlirhlo.debug.dump.writer import ModuleDump
    from mlirhlo.lowering.gpu.devices import GpuDevice
    from mlirhlo.lowering.gpu.planner import GpuPlan
    from mlirhlo.lowering.plan.plan import Plan


def dump_plan(dump: ModuleDump, plan: Plan, device: GpuDevice) -> None:
    """What runs, in order, and what it is for."""
    from mlirhlo.lowering.gpu.devices import write_device
    from mlirhlo.lowering.gpu.planner import GpuPlan

    if dump.wants_files:
        assert isinstance(plan, GpuPlan)
        dump.write(dump.stem("gpu_target_config.pbtxt"), lambda: write_device(device))
        dump.write(dump.stem("thunk_sequence.txt"), lambda: thunk_text(plan))


def dump_unit(dump: ModuleDump, number: int, text: str, ptx: str, device: GpuDevice) -> None:
    """LLVM assembly of a kernel before and after LLVM's passes, and its PTX; `number` is XLA's count."""
    if dump.wants_files:
        from mlirhlo.lowering.gpu.ptx import optimized_llvm

        dump.write(dump.stem(f"{number}.ir-no-opt.ll"), lambda: text)
        dump.write(dump.stem(f"{number + 1}.ir-with-opt.ll"), lambda: optimized_llvm(text, device))
        dump.write(dump.stem(f"{number + 1}.ptx"), lambda: ptx)


@dataclass(frozen=True, slots=True)
class _Row:
    indent: str
    kind: str
    label: str
    details: str = ""


def thunk_text(plan: GpuPlan) -> str:
    """`NNN: KIND [neighbours] label details`, one line a step; what is inside of loops and branches indented."""
    rows = list(_rows(plan.steps, plan, ""))
    kinds = [f"{row.indent}{row.kind}" for row in rows]
    width = max(map(len, kinds), default=0)
    lines: list[str] = []
    for at, (kind, row) in enumerate(zip(kinds, rows, strict=True), 1):
        before = "source      " if at == 1 else f"prev={at - 1:03d} (1)"
        after = "sink        " if at == len(rows) else f"next={at + 1:03d} (1)"
        details = f" {row.details}" if row.details else ""
        lines.append(f"{at:03d}: {kind:<{width}} [{before} | {after}] {row.label}{details}\n")
    return "".join(lines)


def _rows(steps: Sequence[Step], plan: GpuPlan, indent: str) -> Iterator[_Row]:
    for step in steps:
        match step:
            case Kernel():
                for launch in plan.kernels[step.name].launches:
                    details = (
                        f"grid: {list(launch.grid)} threads: {list(launch.block)}  "
                        f"shared_memory: {launch.shared_bytes} bytes"
                    )
                    yield _Row(indent, "kKernel", launch.entry, details)
            case Copy():
                yield _Row(indent, "kCopy", "copy", f"size: {step.source.size} bytes")
            case Callback():
                op = plan.sites[step.site].op
                yield _Row(indent, "kHostExecute", "move" if op is None else op.opcode.name)
            case While():
                yield _Row(indent, "kWhile", "while")
                yield from _rows(step.condition, plan, f"{indent}  ")
                yield from _rows(step.body, plan, f"{indent}  ")
            case Repeat():
                yield _Row(indent, "kWhile", "while", f"trip_count: {step.rounds}")
                yield from _rows(step.body, plan, f"{indent}  ")
            case Branch():
                yield _Row(indent, "kConditional", f"{len(step.branches)} branches")
                for branch in step.branches:
                    yield from _rows(branch, plan, f"{indent}  ")
            case _:
                raise AssertionError("plans for GPUs have no slices")
