"""Names by which generated code and the runtime know each other, apart from what lowers and what builds the runtime."""

STOP = "mlirhlo_stop"
"""A byte outside that is not zero where loops are to end: the user has interrupted the process."""

PARALLEL_FOR = "mlirhlo_parallel_for"
"""`(task, args, n, most)`: runs `task(args, begin, end, range)` on at most `most` ranges of `0..n`."""

MAX_THREADS = 256
"""Threads of a pool, at the most."""

TO_BF16 = "__truncsfbf2"
"""`(x)`: an f32 as the nearest bf16; LLVM's name for it."""
