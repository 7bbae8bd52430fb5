"""Where in the grid a kernel runs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.faults import misuse
from mlirhlo.mosaic.language.trace import current, emit_one, int_attr, vector_type
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value


def _dimension(axis: int | str, what: str) -> int:
    trace = current(what)
    if trace.is_index_map:
        raise misuse(f"{what} in an index map", "the indices of the grid are its arguments")
    if isinstance(axis, str):
        if axis not in trace.names:
            raise misuse(f"the grid has no dimension {axis!r}")
        return trace.names[axis]
    if not 0 <= axis < len(trace.grid):
        raise misuse(
            f"the grid has no dimension {axis}: it has {len(trace.grid)}",
            "give kernel_call a grid with that many dimensions",
        )
    return axis


@contextmanager
def within_grid(indices: Sequence[ArrayLike], sizes: Sequence[Any]) -> Generator[None]:
    """Within, `program_id` and `num_programs` are of this grid: that of a pipeline in the kernel."""
    trace = current()
    before = trace.grid_indices, trace.grid, trace.names
    trace.grid_indices = tuple(as_value(index, I32) for index in indices)
    trace.grid, trace.names = tuple(sizes), {}
    try:
        yield
    finally:
        trace.grid_indices, trace.grid, trace.names = before


def program_id(axis: int | str) -> Value:
    """The index of the step that runs, in a dimension of the grid."""
    return cast("Value", current("program_id").grid_indices[_dimension(axis, "program_id")])


def num_programs(axis: int | str) -> ArrayLike:
    """The size of a dimension of the grid; a plain number where Python knows it."""
    dim = _dimension(axis, "num_programs")
    size = current().grid[dim]
    if size is not None:
        return size
    ssa = emit_one("tpu.iteration_bound", [], vector_type((), I32), {"dim": int_attr(dim)})
    return Value(ssa, (), I32)


def align_to(a: ArrayLike, alignment: int) -> Any:
    """The least multiple of `alignment` that is not less than `a`."""
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than `x`. Raises `ValueError` for a negative one."""
    if x < 0:
        raise ValueError(f"next_power_of_2 of {x}, which is negative")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


def cdiv(a: ArrayLike, b: int) -> ArrayLike:
    """a / b, rounded up."""
    if isinstance(a, Value):
        return (a + (b - 1)) // b
    return -(-a // b)
