"""Dumps as protobuf messages: HloProto with its buffer assignment, the memory report, metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from google.protobuf import text_format

from mlirhlo.debug.dump.reports import color_sections, memory_rows, memory_table
from mlirhlo.formats.proto import encode_module
from mlirhlo.formats.proto.buffer_assignment_pb2 import (
    BufferAssignmentProto,
    MemoryUsageReportProto,
)
from mlirhlo.formats.proto.containers_pb2 import HloModuleMetadataProto, HloProto

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.assignment import Assignment
    from mlirhlo.debug.dump.pass_run import PassRun
    from mlirhlo.lowering.plan.planner import Values


def hlo_proto(module: ModuleOp, number: int, assignment: Assignment | None) -> bytes:
    """An HloProto: the module under the id of its dumps, and its buffers where they are assigned."""
    proto = HloProto(hlo_module=encode_module(module, keep_config=False))
    proto.hlo_module.id = number
    if assignment is not None:
        proto.buffer_assignment.CopyFrom(assignment_proto(assignment, proto))
    return proto.SerializeToString(deterministic=True)


def cpu_assignment(module: ModuleOp) -> BufferAssignmentProto:
    """Which value lies where in the CPU's plan of a module that its passes have optimised.

    Raises `HloError` HLO0435 or HLO0432 for what has no code.
    """
    from mlirhlo.debug.dump.assignment import assign
    from mlirhlo.lowering.cpu.planner import plan_module

    values: Values = []
    plan = plan_module(module, values)
    proto = HloProto(hlo_module=encode_module(module, keep_config=False))
    return assignment_proto(assign(module, plan, values), proto)


def assignment_proto(assignment: Assignment, proto: HloProto) -> BufferAssignmentProto:
    """Which value lies where; instructions are named by their ids in `proto`."""
    ids: dict[tuple[str, str], int] = {}
    for message in proto.hlo_module.computations:
        for instruction in message.instructions:
            ids[message.name, instruction.name] = instruction.id
    result = BufferAssignmentProto()
    for value in assignment.values:
        logical = result.logical_buffers.add(id=value.number, size=value.size)
        logical.defined_at.instruction_id = ids.get((value.computation, value.name), 0)
        logical.defined_at.shape_index.extend(value.index)
        for computation, name, index in value.positions[1:]:
            alias = result.buffer_aliases.add(source_buffer_id=value.number)
            alias.location.instruction_id = ids.get((computation, name), 0)
            alias.location.shape_index.extend(index)
    for allocation in assignment.allocations:
        block = result.buffer_allocations.add(
            index=allocation.index,
            size=allocation.size,
            is_entry_computation_parameter=allocation.parameter is not None,
            maybe_live_out=allocation.is_output,
            is_constant=allocation.is_constant,
        )
        if allocation.parameter is not None:
            block.parameter_number, shape_index = allocation.parameter
            block.parameter_shape_index.extend(shape_index)
        for placed in allocation.placed:
            block.assigned.add(
                logical_buffer_id=placed.value.number, offset=placed.offset, size=placed.value.size
            )
    return result


def memory_report(assignment: Assignment) -> bytes:
    """A MemoryUsageReportProto."""
    report = MemoryUsageReportProto()
    for color, allocations in color_sections(assignment):
        total = sum(a.size for a in allocations)
        section = report.memory_space_allocation_entries.add(
            total_bytes=total, memory_space_color=color
        )
        so_far = 0
        for allocation in allocations:
            so_far += allocation.size
            section.allocation_entries.add(
                index=allocation.index,
                size=allocation.size,
                cumulative_size=so_far,
                cumulative_percentage=100.0 * so_far / total if total else 0.0,
                defining_positions=[str(p.value.position) for p in allocation.placed],
                hlo_text=memory_table(memory_rows(allocation)),
            )
    return report.SerializeToString(deterministic=True)


def metadata_text(number: int, runs: Sequence[PassRun]) -> str:
    """All passes of a module, as HloModuleMetadataProto in text."""
    message = HloModuleMetadataProto(canonical_module_id=number)
    for at, run in enumerate(runs, 1):
        message.pass_metadata.add(
            pass_id=at,
            pass_name=run.name,
            pipeline_name=run.pipeline,
            dump_filenames=run.files,
            module_changed=run.changed,
            module_id=number,
            start_timestamp_usec=run.start_us,
            end_timestamp_usec=run.end_us,
        )
    return text_format.MessageToString(message)
