"""What `call` and `run` know of memory: words of a descriptor, offsets in objects of CPython and NumPy, results.

`call_ir.py` and `run_ir.py` build the code, `calls.py` writes descriptors. Code out of the cache needs these numbers
and no builder.
"""

NO_MEMORY, DONE, STOPPED = range(3)
"""What `run` returns."""

HEAD, ROW = 16, 6
"""Words in front of the rows; words of a row."""

LARGE = 1 << 12
"""Bytes from which on results lie in memory of the pool, which is aligned to lines at least (the system's is
to 16 bytes) and whose pages are not taken from the system anew. Taking it costs some 200 ns."""

OBJECT_TYPE, VAR_SIZE, TUPLE_ITEMS, BYTES_DATA = 8, 16, 24, 32
ARRAY_DATA, ARRAY_RANK, ARRAY_DIMS, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 40, 56, 64
"""Offsets in objects; checked against live ones before `call` is used."""

READ, WRITTEN = 0x101, 0x501
"""Flags of arrays that can be taken as they are: C order, aligned; writable."""

C_ORDER = 0x1
"""The flag of C order; arrays of another order have their strides compared instead."""

MAIN, PARAMETERS, RESULTS, IS_TUPLE = range(4)
IS_LONG, ARRAY_TYPE, OUT, HANDLER = range(6, 10)
"""Words of a descriptor; those between are `run`'s."""
DTYPE, RANK, DIMS_OFFSET, BYTES, OWN, STRIDES_OFFSET = range(ROW)
"""Words of a row."""
