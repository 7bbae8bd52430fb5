"""All families of rules; importing this registers them."""

from mlirhlo.rewrites.stablehlo_simplify import (
    arithmetic,
    control,
    folding,
    indexing,
    movement,
)

FAMILIES = (folding, arithmetic, movement, indexing, control)


def register() -> None:
    """Does nothing more than importing this has done."""
