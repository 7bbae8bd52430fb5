"""Which schedules have code on GPUs: the fields that each kind takes, and what their numbers have to be.

Schedules that passes choose hold by construction; one that a person wrote is refused here before it becomes code.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.ir import Operation

from mlirhlo.diagnostics import error
from mlirhlo.dialects.structured import (
    AssembleOp,
    ContractOp,
    FoldOp,
    GatherOp,
    LibraryOp,
    MapOp,
    RandomBitsOp,
    ScanOp,
    ScatterOp,
    SelectAndScatterOp,
    SortOp,
    TopKOp,
    sizes_of,
)
from mlirhlo.dialects.structured.base import yielded
from mlirhlo.lowering.gpu.devices import GpuDevice
from mlirhlo.lowering.schedule.attributes import SCHEDULE, Schedule, element_of
from mlirhlo.lowering.schedule.contractions import contraction_below, matrix_format
from mlirhlo.lowering.schedule.flat_columns import MOST_FOLDED
from mlirhlo.lowering.schedule.map_to_grid import ELEMENTWISE
from mlirhlo.lowering.schedule.matrix_products import matrix_product_of
from mlirhlo.lowering.schedule.reads import minor_dimension
from mlirhlo.lowering.schedule.row_chains import WARP, folds_below
from mlirhlo.lowering.schedule.scans import is_foldable
from mlirhlo.lowering.schedule.scatters import is_apart, is_atomic
from mlirhlo.lowering.schedule.transposes.boxes import crossing_of
from mlirhlo.lowering.schedule.transposes.lattices import Lattice

Failing: TypeAlias = "str | None"
"""What does not hold; None where all does."""
_MOST_NEIGHBOURS = 16
_MOST_SUMS = 256
"""Of a product, that a thread has registers for."""
_ANY_THREADS = ("columns", "flat_columns", "staged_rows")
"""Kinds whose blocks may have fewer threads than a warp."""
_UNIT_BYTES = 16
"""That threads copy at once."""
_TILE_RANK = 3


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a kind of schedule computes, and takes."""

    ops: tuple[type[Operation], ...]
    takes: tuple[str, ...] = ()
    """Fields beside `launch` and `kind`."""
    failing: Callable[[Sequence[Any], Schedule, GpuDevice], Failing] = lambda ops, s, gpu: None


def check_schedule(ops: Sequence[Operation], schedule: Schedule, device: GpuDevice) -> None:
    """Raises `HloError` HLO0806 where the ops of a launch cannot be computed by their schedule."""
    reason = _failing(ops, schedule, device)
    if reason is not None:
        text = ops[0].attributes[SCHEDULE]
        raise error("HLO0806", f"`{text}` is no schedule of `{ops[0].name}`: {reason}")


def _failing(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    kind = _KINDS.get(s.kind)
    if kind is None:
        return f"the kinds are {', '.join(_KINDS)}"
    if any(op.attributes[SCHEDULE] != ops[0].attributes[SCHEDULE] for op in ops):
        return f"another op of launch {s.launch} has another one"
    other = next((op for op in ops if not isinstance(op, kind.ops)), None)
    if other is not None:
        return f"`{other.name}` is not computed so"
    for field in fields(s):
        known = field.name in ("launch", "kind", *kind.takes)
        if not known and getattr(s, field.name) != field.default:
            return f"{s.kind} takes no {field.name}, but {', '.join(kind.takes) or 'nothing'}"
    return _failing_numbers(s, device) or kind.failing(ops, s, device)


def _failing_numbers(s: Schedule, device: GpuDevice) -> Failing:
    """Of any kind."""
    values = {f.name: getattr(s, f.name) for f in fields(s)}
    for name, value in values.items():
        if isinstance(value, int) and value < 0:
            return f"{name} is below 0"
        least = int(name not in ("pitches", "written"))
        if isinstance(value, tuple) and min(cast("tuple[int, ...]", value), default=1) < least:
            return f"{name} has a number below {least}"
    if s.threads > device.threads_per_block_limit:
        return f"threads are {device.threads_per_block_limit} at most on {device.name}"
    if s.threads % WARP and s.kind not in _ANY_THREADS:
        return f"threads are a multiple of {WARP}"
    if s.vector & (s.vector - 1) or s.vector > _MOST_NEIGHBOURS:
        return f"vector is a power of two, {_MOST_NEIGHBOURS} at most"
    return None


def _first_failing(*conditions: tuple[bool, str]) -> Failing:
    """What the first condition that does not hold says."""
    return next((text for holds, text in conditions if not holds), None)


def _elements(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    del device
    sizes = sizes_of(ops[0].results[0])
    width = max(s.vector, 1)
    return _first_failing(
        (all(sizes_of(op.results[0]) == sizes for op in ops), "its results have several shapes"),
        (
            width == 1 or all(isinstance(op, MapOp | GatherOp) for op in ops),
            "only maps and gathers compute neighbours at once",
        ),
        _is_whole(width, sizes[: minor_dimension(sizes) + 1]),
    )


def _is_whole(width: int, sizes: Sequence[int]) -> tuple[bool, str]:
    """Whether vectors end with the last of some dimensions."""
    last = sizes[-1] if sizes else 1
    return last % width == 0, f"vector does not divide a dimension of {last}"


def _folds(ops: Sequence[Operation]) -> Failing:
    """Why ops are not computed from folds of one space."""
    folds = folds_below(ops)
    spaces = {(sizes_of(f.outputs[0]), f.folded) for f in folds}
    return None if len(spaces) == 1 else "it is not computed from folds of one space"


def _transpose(ops: Sequence[MapOp], s: Schedule, device: GpuDevice) -> Failing:
    limit = device.shared_memory_per_block_optin
    for op in ops:
        crossing = crossing_of(op)
        if crossing is None:
            return "it reads along memory"
        rank = len(crossing.sizes)
        arrays = (s.tile, s.pitches, *((s.written, s.lanes) if s.lines else ()))
        if any(len(numbers) != rank for numbers in arrays) or prod(s.tile) > limit:
            return f"boxes have {rank} dimensions, and {limit} elements at most"
        if len(s.swizzle) not in (0, 3) or (not s.lines and (s.written or s.lanes)):
            return "swizzle has three numbers; written and lanes are for lines"
        if not _are_apart(crossing.order, s.tile, s.pitches, s.swizzle):
            return "elements share memory"
        if s.lines:
            if prod(s.lanes) != WARP or s.lines > max(s.tile) or max(s.tile) == 1:
                return f"lanes are {WARP} in all, and lines within the tile"
            part = Lattice(s.pitches, s.written, s.lanes, s.lines).part(crossing, s.tile)
            if not _are_apart(crossing.order, part, s.written, ()):
                return "elements share memory in the second array"
    return _first_failing(
        (s.threads > 0 and s.row_threads > 0, "threads and row_threads are missing"),
        (all(_divides_warp(n) for n in (s.row_threads, s.column_threads)), "runs divide no warp"),
        (s.is_across < 2, "is_across is 0 or 1"),
    )


def _divides_warp(number: int) -> bool:
    return number == 0 or WARP % number == 0


def _are_apart(
    groups: Sequence[int], tile: Sequence[int], pitches: Sequence[int], swizzle: Sequence[int]
) -> bool:
    """Whether each element of a box has an index of its own in shared memory, along the groups that are read."""
    steps = [np.arange(tile[group]) * pitches[group] for group in groups]
    index = functools.reduce(np.add.outer, steps, np.zeros((), np.int64))
    if swizzle:
        every, count, unit = swizzle
        index ^= index // every % count * unit
    return np.unique(index).size == index.size


def _rows(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    if wrong := _folds(ops):
        return wrong
    folds, parts, width = folds_below(ops), max(s.parts, 1), max(s.vector, 1)
    sizes, length = sizes_of(folds[0].outputs[0]), prod(folds[0].folded)
    is_alone = len(folds) == 1 and all(sizes_of(op.results[0]) == sizes for op in ops)
    most = s.threads * device.blocks_per_cluster_limit
    if not s.threads or not _is_power(s.row_threads):
        return "there are threads, and row_threads, a power of two"
    return _first_failing(
        (s.row_threads <= most, f"{device.name} has no more than {most} threads for a row"),
        (
            s.threads % s.row_threads == 0 or s.row_threads % s.threads == 0,
            "row_threads fill no blocks",
        ),
        (
            s.row_threads == 1 or s.row_threads * width * parts <= length,
            f"a row of {length} has no {width} elements for each of row_threads",
        ),
        _is_whole(width, folds[0].folded),
        (parts == 1 or is_alone, "blocks share a single fold only"),
        (parts == 1 or s.row_threads == s.threads, "blocks that share a row have no other one"),
        (length % (parts * width) == 0, f"a row of {length} has no {parts} equal parts"),
        (s.rounds <= max(prod(sizes), 1), f"there are {prod(sizes)} rows, for {s.rounds} rounds"),
        (not s.rounds or s.row_threads <= s.threads, "clusters compute one row"),
    )


def _is_power(number: int) -> bool:
    return number > 0 and not number & (number - 1)


def _staged_rows(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    return _rows(ops, s, device) or _first_failing(
        (s.row_threads <= s.threads, "row_threads are more than a block has")
    )


def _columns(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    del device
    if wrong := _folds(ops):
        return wrong
    folds, parts, width = folds_below(ops), max(s.parts, 1), max(s.vector, 1)
    sizes, length = sizes_of(folds[0].outputs[0]), prod(folds[0].folded)
    if not s.row_threads or not s.threads or s.threads % s.row_threads:
        return "there are threads, and row_threads that divide them"
    return _first_failing(
        (all(sizes_of(op.results[0]) == sizes for op in ops), "its results are not columns"),
        (length % parts == 0, f"a column of {length} has no {parts} equal parts"),
        (s.row_threads <= length // parts, f"a part has {length // parts} elements"),
        (parts == 1 or len(folds) == 1, "blocks share a single fold only"),
        _is_whole(width, sizes),
    )


def _flat_columns(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    del device
    if wrong := _folds(ops):
        return wrong
    folds = folds_below(ops)
    count, rows = prod(sizes_of(folds[0].outputs[0])), prod(folds[0].folded)
    if min(s.threads, s.vector, s.row_threads, s.parts) < 1 or s.row_threads > rows:
        return f"threads, vector, parts and up to {rows} row_threads are needed"
    slots, whole = s.row_threads * count, rows // s.row_threads
    share = -(-whole // s.parts)
    return _first_failing(
        (len(folds) == 1, "it is computed from several folds"),
        (slots % s.vector == 0 and rows * count % s.vector == 0, "vector does not divide the rows"),
        (
            -(-slots // (s.threads * s.vector)) * s.vector <= MOST_FOLDED,
            f"a thread folds {MOST_FOLDED} elements side by side at most",
        ),
        (s.parts == -(-whole // share), f"{whole} groups of rows have no {s.parts} parts"),
    )


def _scan(ops: Sequence[ScanOp], s: Schedule, device: GpuDevice) -> Failing:
    del device
    if not s.row_threads:
        alone = s.vector == s.parts == 0
        return None if alone else "without row_threads there are no vector and parts"
    return _first_failing(
        (all(map(is_foldable, ops)), "its order is fixed, so that no threads share a line"),
        (
            _is_power(s.row_threads) and s.row_threads >= WARP,
            f"row_threads is {WARP} times a power of two",
        ),
        (s.threads % s.row_threads == 0 and s.threads > 0, "row_threads do not divide threads"),
        (s.parts <= 1 or s.threads == s.row_threads, "blocks that share a line have no other one"),
        *(_is_whole(max(s.vector, 1), sizes_of(o.inputs[0])[: o.dim + 1]) for o in ops),
    )


def _staged_scan(ops: Sequence[ScanOp], s: Schedule, device: GpuDevice) -> Failing:
    del device
    if len(s.tile) != _TILE_RANK or len(s.pitches) != _TILE_RANK:
        return f"tile and pitches have {_TILE_RANK} numbers"
    lines, team = s.tile[0] * s.tile[2], max(s.row_threads, 1)
    reach = 0
    for pitch, size in sorted(zip(s.pitches, s.tile, strict=True)):
        if size > 1 and pitch <= reach:
            return "elements of the tile share memory"
        reach += (size - 1) * pitch
    return _first_failing(
        (team == 1 or all(map(is_foldable, ops)), "its order is fixed: row_threads is 1"),
        (_is_power(team), "row_threads is a power of two"),
        (lines * team <= s.threads, f"a tile of {lines} lines has no {team} threads for each"),
        (team <= s.tile[1], "row_threads are more than steps of the tile"),
    )


def _staged_elements(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    del device
    rank = len(sizes_of(ops[0].results[0]))
    return _first_failing(
        (s.threads > 0, "threads are missing"), (len(s.tile) == rank, f"tile has {rank} numbers")
    )


def _scatter(ops: Sequence[ScatterOp], s: Schedule, device: GpuDevice) -> Failing:
    del device
    return _first_failing(
        *(_is_whole(max(s.vector, 1), op.space) for op in ops),
        (all(is_apart(op) or is_atomic(op) for op in ops), "its updates have an order"),
    )


def _update(ops: Sequence[AssembleOp], s: Schedule, device: GpuDevice) -> Failing:
    del s, device
    is_update = all(len(op.pieces) > 1 and op.pieces[0].type == op.output.type for op in ops)
    return None if is_update else "it is no update of its first piece"


def _product(ops: Sequence[Operation], s: Schedule, device: GpuDevice) -> Failing:
    for op in ops:
        contraction = contraction_below(op)
        if contraction is None:
            return "it is computed from no product"
        format_ = "" if s.kind == "tiles" else matrix_format(contraction, device, tf32=True)
        if format_ is None:
            return f"the matrix units of {device.name} do not multiply its factors"
        if s.format != format_:
            return f'its format is "{format_}"'
        product = matrix_product_of(contraction)
        most = -(-product.size(product.terms) // max(s.terms, 1))
        if s.parts > max(most, 1):
            return f"there are {most} parts at most, of {s.terms} terms"
        element = min(element_of(value).byte_size for value in yielded(contraction.body))
        if min(s.rows, s.columns, s.terms) * element < _UNIT_BYTES:
            return f"sides of tiles have {_UNIT_BYTES} bytes at least"
        if (
            s.rows + s.columns
        ) * s.terms * s.stages * element > device.shared_memory_per_block_optin:
            return f"{device.name} has no shared memory for the tiles"
    if s.rows * s.columns > _MOST_SUMS * s.threads:
        return f"a thread has {_MOST_SUMS} sums at most"
    return None


_TILE = ("threads", "rows", "columns", "terms", "stages", "warps_down", "parts", "format")
_BOX = ("threads", "row_threads", "column_threads", "is_across")
_BOX_ARRAYS = ("tile", "pitches", "swizzle", "written", "lanes", "lines")
_CHAIN = (MapOp, FoldOp)
_KINDS = {
    "elements": _Kind(ELEMENTWISE, ("threads", "vector"), _elements),
    "staged_elements": _Kind(ELEMENTWISE, ("threads", "tile"), _staged_elements),
    "transpose": _Kind((MapOp,), (*_BOX, *_BOX_ARRAYS), _transpose),
    "rows": _Kind(_CHAIN, ("threads", "vector", "row_threads", "parts", "rounds"), _rows),
    "staged_rows": _Kind(_CHAIN, ("threads", "row_threads"), _staged_rows),
    "columns": _Kind(_CHAIN, ("threads", "vector", "row_threads", "parts"), _columns),
    "flat_columns": _Kind(_CHAIN, ("threads", "vector", "row_threads", "parts"), _flat_columns),
    "tiles": _Kind((MapOp, ContractOp), _TILE, _product),
    "mma": _Kind((MapOp, ContractOp), _TILE, _product),
    "wgmma": _Kind((MapOp, ContractOp), _TILE, _product),
    "scan": _Kind((ScanOp,), ("threads", "vector", "row_threads", "parts"), _scan),
    "staged_scan": _Kind((ScanOp,), ("threads", "row_threads", "tile", "pitches"), _staged_scan),
    "scatter": _Kind((ScatterOp,), ("threads", "vector"), _scatter),
    "scatter_by_one": _Kind((ScatterOp,), ("threads",)),
    "scatter_in_order": _Kind((ScatterOp,)),
    "select_and_scatter": _Kind((SelectAndScatterOp,), ("threads",)),
    "sort": _Kind((SortOp,)),
    "radix_sort": _Kind((SortOp,)),
    "top_k": _Kind((TopKOp,)),
    "update": _Kind((AssembleOp,), ("threads",), _update),
    "library": _Kind((LibraryOp,)),
    "random_bits": _Kind((RandomBitsOp,)),
}
