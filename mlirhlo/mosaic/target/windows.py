"""Blocks against the tiles of the arrays they are cut from.

In the last two dimensions (the last one of rank one) a block is a multiple of the array's tile, or the
whole array. The module does not say how large the arrays are: where the call does not either, the
index functions are followed over the grid, and the array is taken to be as large as they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.tpu.values import LANES, SUBLANES
from mlirhlo.mosaic.attributes import (
    dictionaries_of,
    integer_of,
    integers,
    integers_of,
    name_of,
    plain,
    string_of,
)
from mlirhlo.mosaic.interpreter.code import Functions
from mlirhlo.mosaic.interpreter.core import Core, Options
from mlirhlo.mosaic.target.divisible import is_divisible
from mlirhlo.mosaic.target.rules import ALIGNMENT, BLOCK, Refusal
from mlirhlo.mosaic.target.tiling import (
    element_name,
    is_memref,
    is_semaphore,
    rows_of_tile,
    space_of,
    width_in_bits,
)

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_DYNAMIC = -(1 << 63)


def window_problems(
    kernel: Operation, module: ModuleOp, operands: Sequence[tuple[int, ...]] | None
) -> Iterator[tuple[Operation, Refusal]]:
    """What is wrong with the blocks of a kernel."""
    bounds = integers_of(kernel, "iteration_bounds") or ()
    windows = dictionaries_of(kernel, "window_params") or ()
    arguments = [argument.type for argument in kernel.regions[0].blocks[0].args][len(bounds) :]
    prefetches = integer_of(kernel, "scalar_prefetch")
    dynamic = sum(bound == _DYNAMIC for bound in bounds)
    for number, window in enumerate(windows):
        at = prefetches + number
        if "window_bounds" not in window or at >= len(arguments):
            continue
        type_ = arguments[at]
        if not is_memref(type_) or is_semaphore(type_) or space_of(type_) not in ("vmem", "smem"):
            continue
        block = integers(window["window_bounds"])
        function = _function(module, plain(window["transform_indices"]))
        is_by_elements = "element_window" in str(window.get("window_kind", ""))
        array = None
        if operands is not None and dynamic + at < len(operands):
            array = tuple(operands[dynamic + at])
        elif function is not None and not is_by_elements:
            array = _least_array(function, bounds, block, module)
        bits = width_in_bits(element_name(type_))
        is_scalar = space_of(type_) == "smem"
        if array is not None and len(array) == len(block):
            tiles = _tiles(array, bits, is_whole=is_scalar)
            yield from ((kernel, r) for r in _block_problems(number, block, array, tiles))
        if is_scalar:
            continue
        if is_by_elements and function is not None:
            yield from ((kernel, r) for r in _start_problems(number, block, function, bits, array))


def _function(module: ModuleOp, name: str) -> Operation | None:
    functions: list[Operation] = [op for op in module.body.ops if name_of(op) == "func.func"]
    return next((op for op in functions if string_of(op, "sym_name") == name), None)


def _tiles(shape: Sequence[int], bits: int, *, is_whole: bool = False) -> dict[int, int]:
    """By dimension, what a block has to be a multiple of; of large tiles a part does in VMEM."""
    rank = len(shape)
    if rank == 1:
        return {0: LANES * (32 // bits)}
    rows = rows_of_tile(shape[-2], bits)
    return {rank - 1: LANES, rank - 2: rows if is_whole else min(rows, SUBLANES)}


def _block_problems(
    number: int, block: tuple[int, ...], array: tuple[int, ...], tiles: dict[int, int]
) -> Iterator[Refusal]:
    for dim, tile in tiles.items():
        if block[dim] % tile and block[dim] != array[dim]:
            yield Refusal(
                BLOCK,
                f"the block of operand {number} has {block[dim]} elements in dimension {dim}, "
                f"which is neither a multiple of the tile ({tile}) nor the whole array "
                f"({array[dim]})",
                f"make the block a multiple of {tile}, or as large as the array",
            )


def _start_problems(
    number: int,
    block: tuple[int, ...],
    function: Operation,
    bits: int,
    array: tuple[int, ...] | None,
) -> Iterator[Refusal]:
    """Element windows start at multiples of the tile."""
    returned = list(function.regions[0].blocks[0].ops)[-1].operands
    for dim, tile in _tiles(block if array is None else array, bits).items():
        if dim < len(returned) and not is_divisible(returned[dim], tile):
            yield Refusal(
                ALIGNMENT,
                f"the start of operand {number}'s window in dimension {dim} is not provably a "
                f"multiple of the tile ({tile})",
                f"multiply the index by a multiple of {tile}, or promise it with tpu.assume_multiple",
            )


def _least_array(
    function: Operation, bounds: tuple[int, ...], block: tuple[int, ...], module: ModuleOp
) -> tuple[int, ...] | None:
    """The array that the blocks of the grid's corners fill; None where that is not known."""
    if any(bound <= 0 for bound in bounds) or len(function.regions[0].blocks[0].args) != len(
        bounds
    ):
        return None
    call = _callable(function, module)
    if call is None:
        return None
    most = [0] * len(block)
    corners = product(*({0, bound - 1} for bound in bounds)) if len(bounds) <= 6 else ()
    for corner in corners:
        try:
            found = call(corner)
        except HloError:
            return None
        for dim, index in enumerate(found[: len(block)]):
            most[dim] = max(most[dim], int(index))
    return tuple((index + 1) * size for index, size in zip(most, block, strict=True))


def _callable(
    function: Operation, module: ModuleOp
) -> Callable[[Sequence[int]], tuple[Any, ...]] | None:
    import numpy as np

    try:
        prepared = Functions(module)[string_of(function, "sym_name") or ""]
    except HloError:
        return None
    core = Core(Options())

    def call(indices: Sequence[int]) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            return prepared(core, tuple(np.int32(index) for index in indices))

    return call
