"""Schedules that a person wrote: each has code, or is refused with HLO0806."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.structured import KernelOp
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.kernels import structured_kernel
from mlirhlo.lowering.gpu.launches import launch_all
from mlirhlo.lowering.gpu.pipeline import optimize
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, schedule_of

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "benchmarks"))
import gpu_traffic  # pyright: ignore[reportMissingImports]

H100 = device("h100")
SHAPES: dict[str, list[Any]] = {
    "rows": [*gpu_traffic.reduces([(33, 1001)], ["f32"])][:1],
    "columns": [*gpu_traffic.reduces([(64, 1024)], ["f32"])][1:],
    "flat_columns": [*gpu_traffic.reduces([(70, 100)], ["f32"])][1:],
    "staged_rows": [*gpu_traffic.reduces([(1000, 3)], ["f32"])][:1],
    "transpose": [*gpu_traffic.transposes([((100, 300), (1, 0))], ["f32"])],
    "scan": [k for k in gpu_traffic.scans() if "[1,40000]" in k.shape][:1],
    "staged_scan": [k for k in gpu_traffic.scans() if "[77,7]" in k.shape][:1],
    "staged_elements": [*gpu_traffic.concatenations([(33, 17)], ["f32"])],
    "tiles": [*gpu_traffic.products()][:1],
    "mma": [k for k in gpu_traffic.products() if k.shape.startswith("bf16[70,81]")],
    "sort": [*gpu_traffic.sorts()][:1],
    "top_k": [*gpu_traffic.selections()][:1],
}


def kernels(text: str) -> Iterator[KernelOp]:
    """The scheduled kernels of a module."""
    module = HloModule(optimize(mlirhlo.parse(text).op, device=H100))
    computations = module.by_name()
    for op in module.entry.instructions:
        if op.opcode.name not in ("parameter", "constant", "tuple", "get-tuple-element"):
            yield structured_kernel("k", op, computations, H100)


def code_of(kernel: KernelOp) -> str | None:
    """The code with which a kernel is refused."""
    try:
        launch_all(kernel, "k", H100)
    except HloError as problem:
        return problem.code
    return None


def others(value: Any) -> list[Any]:
    """What a field may hold instead."""
    if isinstance(value, int):
        return sorted({-1, 0, 3, 2 * value, 4096} - {value})
    if isinstance(value, str):
        return ["tf32", "tf33"]
    changed = [
        (),
        (1,),
        (0, 0),
        (-1, -1, -1),
        (3, 5),
        (3, 5, 7),
        tuple(2 * n for n in value),
        (*value, 1),
    ]
    return [numbers for numbers in changed if numbers != value]


@pytest.mark.parametrize("kind", SHAPES)
def test_a_changed_field_has_code_or_is_refused(kind: str) -> None:
    kernel = next(k for k in kernels(SHAPES[kind][0].hlo) if kind in _kinds(k))
    scheduled = {op: s for op in kernel.block.ops if (s := schedule_of(op)) and s.kind == kind}
    refused = 0
    for field in fields(Schedule)[2:]:
        for value in others(getattr(next(iter(scheduled.values())), field.name)):
            for op, schedule in scheduled.items():
                op.attributes[SCHEDULE] = replace(schedule, **{field.name: value}).attribute()
            code = code_of(kernel)
            assert code in (None, "HLO0806"), (field.name, value)
            refused += code is not None
    assert refused > len(fields(Schedule))


def _kinds(kernel: KernelOp) -> set[str]:
    return {s.kind for op in kernel.block.ops if (s := schedule_of(op))}


@pytest.mark.one_case_in(4)
@pytest.mark.parametrize("kind", SHAPES)
def test_a_kind_is_for_its_ops(kind: str) -> None:
    """Every kernel as every kind."""
    for text in (rows[0].hlo for rows in SHAPES.values()):
        for kernel in kernels(text):
            for op in kernel.block.ops:
                if (schedule := schedule_of(op)) is not None:
                    op.attributes[SCHEDULE] = replace(schedule, kind=kind).attribute()
            assert code_of(kernel) in (None, "HLO0806", "HLO0802")
