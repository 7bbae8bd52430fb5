"""Decisions on how structured kernels are computed: attributes that passes set, or a person writes.

An op with the attribute `structured.schedule` is computed by launches of its own, into memory; one without is computed
where it is read. Ops whose schedules name one launch are computed by it together.
"""

from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, schedule_of

__all__ = ["SCHEDULE", "Schedule", "schedule_of"]
