"""The memory through which devices of one process meet: read by generated code and by the runtime.

A device has a context: words about itself, then a record for each collective of the module. The runtime adds it behind
the parameters of `main`.
"""

from __future__ import annotations

WORD = 8
"""Bytes of every field."""

WORLD, STATE, REPLICA, PARTITION, ACTIVE, FAULT = range(6)
"""Of a context: the world's address; the collective in which the device waits, as its number and 1, 0 when in none;
its coordinates; whether the device runs, where no Python does (`runtime/generated/device_threads_ir.py`); the number
and 1 of the collective whose operands do not fit, 0 where all do."""
ENDED = 0
"""Of a world: not 0 once it has ended."""
HEAD = 8
"""Words in front of the records."""

COUNT, POSITION, TABLE, MEETING, ROUND, SOURCE, TARGETS, ROUTES, COPIES = range(9)
"""Of a record: the devices of the group, 0 where this device is in none; its position among them; the address of the
published pointers, those of a buffer side by side; that of the counters; that of this device's number of rounds
there; the position of the device whose operands it gets, or -1; how many published pointers of a result this device
writes to; what it exchanges with devices of other processes (`runtime/generated/mpi_ir.py`), 0 where all are in this
one; the address of what it copies for the others (`runtime/copies.py`), 0 where they read its operands themselves."""
RECORD = 9
"""Words of a record."""

COPY_HEAD, COPY_ROW = 3, 3
"""Words of what is copied: the number of operands, and the tables of rounds of even and odd number; then of each
operand its bytes and the slots of these rounds."""

PUBLISH, ARRIVE, LEAVE = (f"mlirhlo_collective_{n}" for n in ("publish", "arrive", "leave"))
"""Functions outside: `publish(context, record, pointers, count)` says where this device's buffers are; `arrive` waits
until all of the group have, `leave` until all have moved their data: both `(context, record) -> 1` where they never
will."""


def record_offset(site: int) -> int:
    """Bytes from a context to the record of a site."""
    return WORD * (HEAD + RECORD * site)
