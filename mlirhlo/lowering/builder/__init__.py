"""Building functions of the loops stage.

    b = FunctionBuilder("scale", [memref_of(f32, 64), memref_of(f32, 64)])
    x, out = b.arguments
    with b.loop(0, 64, 16) as i:
        value = b.vector_load(x, [i], 16)
        b.vector_store(b.mulf(value, b.constant(2.0, value.type)), out, [i])
    function = b.finish()

Ops go to the end of the current block; constants stand once at the head of the function. Values are
scalars or vectors, and every arithmetic method takes both.

    with b.parallel(8, work=200_000) as part:   # rounds that may run at the same time
        …
    room = b.workspace(1 << 20)                 # memory for this call alone
    b.may_share(0, 1)                           # argument 1 may be the buffer of argument 0
"""

from mlirhlo.lowering.builder.function import Choice, FunctionBuilder, Loop
from mlirhlo.lowering.builder.types import (
    APPROXIMATE,
    EXACT,
    FROM_ANYWHERE,
    IN_PLACE,
    INDEX,
    NOALIAS,
    REASSOCIATE,
    SELDOM,
    UPDATES,
    WORK,
    WORKSPACE,
    Index,
    element_of,
    lanes_of,
    like,
    memref_of,
    part_of,
    vector_of,
)

__all__ = [
    "APPROXIMATE",
    "EXACT",
    "FROM_ANYWHERE",
    "INDEX",
    "IN_PLACE",
    "NOALIAS",
    "REASSOCIATE",
    "SELDOM",
    "UPDATES",
    "WORK",
    "WORKSPACE",
    "Choice",
    "FunctionBuilder",
    "Index",
    "Loop",
    "element_of",
    "lanes_of",
    "like",
    "memref_of",
    "part_of",
    "vector_of",
]
