"""Into and out of manual regions: the tiles stay, and count as whole arrays inside."""

from __future__ import annotations

from dataclasses import replace

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.spmd.emit import Emitter, shape_of_value
from mlirhlo.rewrites.spmd.grid import Axes, Grids, Placement
from mlirhlo.rewrites.spmd.part import Part, Tree, placed, reshard

INTO = "SPMDFullToShardShape"
MANUAL_BORDERS = (INTO, "SPMDShardToFullShape")


def border(
    op: CustomCallOp,
    argument: Tree,
    said: Placement | None,
    place: Placement | None,
    grids: Grids,
    emit: Emitter,
) -> Part:
    """The array of `argument` on the other side. `said` is where the operand's sharding puts it, `place` where
    the call's own puts the result. Raises `HloError` HLO0482 for what is no array in equal tiles.
    """
    if not isinstance(argument, Part) or place is None or not isinstance(op.shape, ArrayShape):
        raise error(
            "HLO0482",
            f"%{op.instruction_name}: {op.custom_call_target} is about one array with a sharding",
        )
    is_into = op.custom_call_target == INTO
    if is_into:
        outer, inside = argument.placement if said is None else said, place
    else:
        outer = place
        inside = argument.placement if said is None or argument.placement.manual else said
    outer, manual = _together(outer, inside, grids)
    outer = _split(outer, manual)
    dims = tuple(tuple(a for a in axes if a not in manual) for axes in outer.dims)
    if is_into and not place.is_whole and place.grid == outer.grid:
        dims = place.dims
    inner = Placement(outer.grid, dims, manual)
    value = reshard(argument, outer if is_into else inner, emit).value
    result = inner if is_into else outer
    have, expected = shape_of_value(value), result.local(op.shape.dimensions)
    if not isinstance(have, ArrayShape) or have.dimensions != expected:
        raise error(
            "HLO0482",
            f"%{op.instruction_name}: tiles of {have} are no {op.shape} in and out of a manual region",
            help="a manual region takes arrays whose dimensions fall into equal tiles",
        )
    return placed(value, op.shape, result, emit)


def _together(
    outer: Placement, inside: Placement, grids: Grids
) -> tuple[Placement, frozenset[int]]:
    """The placement outside on a grid that knows what is manual inside, and those axes: all, unless they are said."""
    if len(inside.manual) not in (0, len(inside.grid.sizes)):
        same = grids.on(inside.grid, outer)
        if same is not None:
            return same, inside.manual
    return outer, frozenset(outer.grid.axes)


def _split(outer: Placement, manual: frozenset[int]) -> Placement:
    """The same cuts with the manual axes of each dimension major."""
    dims: list[Axes] = []
    for axes in outer.dims:
        major = tuple(a for a in axes if a in manual)
        dims.append((*major, *(a for a in axes if a not in manual)))
    return replace(outer, dims=tuple(dims))
