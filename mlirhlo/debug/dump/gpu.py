"""Dumps of the GPU compiler under XLA:GPU's names: LLVM IR, PTX, thunks, the device.

Source: dumps reference, "Fixed suffixes", "Thunks (GPU)".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.lowering.gpu.devices import write_device
from mlirhlo.lowering.gpu.library_calls import library_routine
from mlirhlo.lowering.gpu.planner import GpuPlan
from mlirhlo.lowering.gpu.ptx import TRIPLE, optimized_llvm, to_ptx
from mlirhlo.lowering.plan.steps import Branch, Callback, Copy, Kernel, Repeat, Step, While

if TYPE_CHECKING:
    from mlirhlo.debug.dump.writer import ModuleDump
    from mlirhlo.lowering.gpu.devices import GpuDevice
    from mlirhlo.lowering.plan.plan import Plan


def dump_plan(dump: ModuleDump, plan: Plan, device: GpuDevice) -> None:
    """What runs, in order, and what it is for."""
    if dump.wants_files:
        assert isinstance(plan, GpuPlan)
        dump.write(dump.stem("gpu_target_config.pbtxt"), lambda: write_device(device))
        dump.write(dump.stem("thunk_sequence.txt"), lambda: thunk_text(plan))
        dump.write(dump.stem("thunk_metadata.txt"), lambda: thunk_metadata(plan))
        if plan.constants:
            _dump_constants(dump, plan, device)


def _dump_constants(dump: ModuleDump, plan: GpuPlan, device: GpuDevice) -> None:
    """The memory of constants, as a module of its own; it is filled before the first launch."""
    lines = [f'target triple = "{TRIPLE}"', ""]
    for number, buffer in enumerate(plan.constants):
        array = f"[{buffer.size} x i8] zeroinitializer"
        lines.append(f"@buffer_for_constant_{number} = addrspace(1) global {array}, align 256")
    text = "\n".join([*lines, ""])
    number = 2 * len(plan.kernels)
    dump.write(dump.stem("constants.ir-no-opt.ll"), lambda: text)
    dump.write(dump.stem(f"{number}.ir-with-opt.ll"), lambda: optimized_llvm(text, device))
    dump.write(dump.stem(f"{number}.ptx"), lambda: to_ptx(text, device))


def dump_unit(dump: ModuleDump, number: int, text: str, ptx: str, device: GpuDevice) -> None:
    """LLVM assembly of a kernel before and after LLVM's passes, and its PTX; `number` is XLA's count."""
    if dump.wants_files:
        dump.write(dump.stem(f"{number}.ir-no-opt.ll"), lambda: text)
        dump.write(dump.stem(f"{number + 1}.ir-with-opt.ll"), lambda: optimized_llvm(text, device))
        dump.write(dump.stem(f"{number + 1}.ptx"), lambda: ptx)


@dataclass(frozen=True, slots=True)
class _Row:
    indent: str
    kind: str
    label: str
    details: str = ""
    instruction: str = ""
    """What it runs."""


def thunk_metadata(plan: GpuPlan) -> str:
    """`ThunkMetadataListProto` in text form: which instruction each line of `thunk_text` runs."""
    return "".join(
        f"thunk_metadata {{\n  thunk_info {{\n    profile_annotation: {json.dumps(row.instruction)}\n"
        f'    thunk_id: {number}\n  }}\n  thunk_kind: "{row.kind}"\n}}\n'
        for number, row in enumerate(_rows(plan.steps, plan, ""), 1)
    )


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
                name = plan.instructions[step.name].instruction_name or step.name
                for launch in plan.kernels[step.name].launches:
                    details = (
                        f"grid: {list(launch.grid)} threads: {list(launch.block)}  "
                        f"shared_memory: {launch.shared_bytes} bytes"
                    )
                    yield _Row(indent, "kKernel", launch.entry, details, name)
            case Copy():
                yield _Row(indent, "kCopy", "copy", f"size: {step.source.size} bytes")
            case Callback():
                op = plan.sites[step.site].op
                label = "move" if op is None else op.opcode.name
                name = "" if op is None else op.instruction_name or ""
                routine = library_routine(op)
                if routine is not None:
                    yield _Row(indent, "kCustomCall", routine.function, instruction=name)
                else:
                    yield _Row(indent, "kHostExecute", label, instruction=name)
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
